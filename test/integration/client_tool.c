/*
 * client_tool.c - a program that links libpmixfab, as a scheduler's plug-in would, and does what it is told.
 *
 *   client_tool URI, then a command a line on standard input:
 *     open [KEY=VALUE...]            pmixfab_open_pmix, what came and whether it is mapped, close
 *     list                           pmixfab_list_pmix
 *     register SLOT [KEY=VALUE...]   pmixfab_register; every cell of the matrix compared with pmixfab_cost
 *     stock SLOT                     PMIx_Fabric_register: an object that is none of libpmixfab's
 *     update SLOT                    pmixfab_update: the same pointers or new ones; the matrix compared
 *     deregister SLOT
 *     cost SLOT A B                  of two devices, by the matrix
 *     rounds N THREADS               register, update, deregister; by how much the resident set grew
 *     nulls                          null and zero everything
 *
 * KEY=VALUE are plane=, vendor=, identifier=, index=. An answer is one line: the command, the code, facts.
 * When the library has noticed that the server is gone: "lost".
 */
#include <inttypes.h>
#include <pmix_tool.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pmixfab.h"
#include "test/integration/stock_status.h"

#define SLOTS 4

static pmix_fabric_t slots[SLOTS];

/* ---- what an object holds ------------------------------------------------------------------------- */

static const pmix_value_t *value_of(const pmix_fabric_t *fabric, const char *key)
{
    for (size_t i = 0; i < fabric->ninfo; i++)
        if (PMIX_CHECK_KEY(&fabric->info[i], key))
            return &fabric->info[i].value;
    return NULL;
}

static const uint16_t *matrix_of(const pmix_fabric_t *fabric, size_t *n)
{
    const pmix_value_t *devices = value_of(fabric, PMIX_FABRIC_NUM_DEVICES);
    const pmix_value_t *matrix = value_of(fabric, PMIX_FABRIC_COST_MATRIX);
    *n = devices != NULL && devices->type == PMIX_SIZE ? devices->data.size : 0;
    return matrix != NULL && matrix->type == PMIX_POINTER ? matrix->data.ptr : NULL;
}

/* Cells that are not what the cost call says; -1 where there is no matrix. */
static long wrong_cells(const pmix_fabric_t *fabric)
{
    size_t n;
    const uint16_t *matrix = matrix_of(fabric, &n);
    const struct pmixfab *fab = pmixfab_of(fabric);
    long wrong = 0;
    if (matrix == NULL || fab == NULL)
        return -1;
    for (uint32_t a = 0; a < n; a++) {
        for (uint32_t b = 0; b < n; b++) {
            uint16_t cost;
            wrong += pmixfab_cost(fab, a, b, &cost) != PMIXFAB_OK || cost != matrix[a * n + b];
        }
    }
    return wrong;
}

/* Is a snapshot's file mapped into this process? */
static bool is_mapped(void)
{
    char line[512];
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps != NULL && fgets(line, sizeof(line), maps) != NULL)
        found |= strstr(line, ".snap") != NULL;
    if (maps != NULL)
        fclose(maps);
    return found;
}

static void print_fab(const struct pmixfab *fab)
{
    struct pmixfab_plane plane;
    if (pmixfab_plane(fab, &plane) == PMIXFAB_OK)
        printf(" plane %s index %u generation %" PRIu64 " devices %u %s", plane.name, plane.index,
               plane.generation, plane.n_devices, is_mapped() ? "mapped" : "copied");
}

static void print_object(const pmix_fabric_t *fabric)
{
    const pmix_value_t *generation = value_of(fabric, PMIXFAB_KEY_GENERATION);
    print_fab(pmixfab_of(fabric));
    printf(" object %zu told %" PRIu64 " wrong %ld", fabric->index,
           generation != NULL ? generation->data.uint64 : 0, wrong_cells(fabric));
}

/* ---- commands ------------------------------------------------------------------------------------- */

static size_t parse_directives(char *rest, pmix_info_t *out, size_t max)
{
    static const struct {
        const char *word, *key;
    } words[] = {{"plane=", PMIX_FABRIC_PLANE},
                 {"vendor=", PMIX_FABRIC_VENDOR},
                 {"identifier=", PMIX_FABRIC_IDENTIFIER}};
    size_t n = 0;
    for (char *word = strtok(rest, " "); word != NULL && n < max; word = strtok(NULL, " ")) {
        size_t index = strncmp(word, "index=", 6) == 0 ? strtoul(word + 6, NULL, 10) : 0;
        for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
            if (strncmp(word, words[i].word, strlen(words[i].word)) == 0)
                PMIX_INFO_LOAD(&out[n], words[i].key, word + strlen(words[i].word), PMIX_STRING), n++;
        if (strncmp(word, "index=", 6) == 0)
            PMIX_INFO_LOAD(&out[n], PMIX_FABRIC_INDEX, &index, PMIX_SIZE), n++;
    }
    return n;
}

static void do_open(char *rest)
{
    pmix_info_t directives[8];
    struct pmixfab *fab;
    size_t n = parse_directives(rest, directives, 8);
    int rc = pmixfab_open_pmix(n > 0 ? directives : NULL, n, &fab);
    printf("open %d", rc);
    if (rc == PMIXFAB_OK)
        print_fab(fab);
    pmixfab_close(fab);
}

static void do_list(void)
{
    char **names;
    size_t n;
    printf("list %d", pmixfab_list_pmix(&names, &n));
    for (size_t i = 0; i < n; i++)
        printf(" %s", names[i]);
    pmixfab_list_free(names, n);
}

static void do_register(pmix_fabric_t *fabric, char *rest)
{
    pmix_info_t directives[8];
    size_t n = parse_directives(rest, directives, 8);
    int rc = pmixfab_register(fabric, n > 0 ? directives : NULL, n);
    printf("register %d", rc);
    if (rc == PMIXFAB_OK)
        print_object(fabric);
}

static void do_update(pmix_fabric_t *fabric)
{
    size_t n;
    const void *info = fabric->info, *fab = pmixfab_of(fabric), *matrix = matrix_of(fabric, &n);
    int rc = pmixfab_update(fabric);
    bool same = fabric->info == info && pmixfab_of(fabric) == fab && matrix_of(fabric, &n) == matrix;
    printf("update %d %s", rc, same ? "same" : "new");
    if (pmixfab_of(fabric) != NULL)
        print_object(fabric);
}

static void do_deregister(pmix_fabric_t *fabric)
{
    int rc = pmixfab_deregister(fabric);
    printf("deregister %d info %s", rc, fabric->info == NULL ? "null" : "set");
}

static void do_cost(const pmix_fabric_t *fabric, char *rest)
{
    char *a_name = strtok(rest, " "), *b_name = strtok(NULL, " ");
    uint32_t a = 0, b = 0;
    size_t n;
    const uint16_t *matrix = matrix_of(fabric, &n);
    int rc = pmixfab_find(pmixfab_of(fabric), a_name, &a);
    if (rc == PMIXFAB_OK)
        rc = pmixfab_find(pmixfab_of(fabric), b_name, &b);
    printf("cost %d", rc);
    if (rc == PMIXFAB_OK && matrix != NULL)
        printf(" %u", matrix[a * n + b]);
}

/* ---- rounds --------------------------------------------------------------------------------------- */

static long resident_kb(void)
{
    long pages = 0, ignored;
    FILE *f = fopen("/proc/self/statm", "re");
    if (f == NULL || fscanf(f, "%ld %ld", &ignored, &pages) != 2)
        pages = 0;
    if (f != NULL)
        fclose(f);
    return pages * 4;
}

static void *run_rounds(void *arg)
{
    unsigned left = *(unsigned *)arg;
    long failed = 0;
    for (; left > 0; left--) {
        pmix_fabric_t fabric;
        PMIX_FABRIC_CONSTRUCT(&fabric);
        failed += pmixfab_register(&fabric, NULL, 0) != PMIXFAB_OK || wrong_cells(&fabric) != 0 ||
                  pmixfab_update(&fabric) != PMIXFAB_OK || pmixfab_deregister(&fabric) != PMIXFAB_OK;
    }
    return (void *)failed;
}

/* Rounds in several threads; how many failed. */
static long all_rounds(unsigned n, unsigned threads)
{
    pthread_t ids[16];
    long failed = 0;
    for (unsigned i = 0; i < threads; i++)
        pthread_create(&ids[i], NULL, run_rounds, &n);
    for (unsigned i = 0; i < threads; i++) {
        void *result;
        pthread_join(ids[i], &result);
        failed += (long)result;
    }
    return failed;
}

static void do_rounds(char *rest)
{
    char *n_text = strtok(rest, " "), *threads_text = strtok(NULL, " ");
    unsigned n = (unsigned)strtoul(n_text, NULL, 10), threads = (unsigned)strtoul(threads_text, NULL, 10);
    long failed = all_rounds(n / 4, threads); /* what is grown once stays */
    long before = resident_kb();
    failed += all_rounds(n, threads);
    printf("rounds %ld grown %ld kB", failed, resident_kb() - before);
}

/* ---- null and zero everything ----------------------------------------------------------------------- */

static void do_nulls(void)
{
    pmix_fabric_t fabric;
    struct pmixfab *fab = (struct pmixfab *)&fabric;
    char **names;
    size_t n;
    int bad = 0;
    PMIX_FABRIC_CONSTRUCT(&fabric);
    bad += pmixfab_open_pmix(NULL, 0, NULL) != PMIXFAB_ERR_INVAL;
    bad += pmixfab_open_pmix(NULL, 3, &fab) != PMIXFAB_ERR_INVAL || fab != NULL;
    bad += pmixfab_list_pmix(NULL, NULL) != PMIXFAB_ERR_INVAL;
    bad += pmixfab_list_pmix(&names, NULL) != PMIXFAB_ERR_INVAL;
    bad += pmixfab_list_pmix(NULL, &n) != PMIXFAB_ERR_INVAL;
    bad += pmixfab_register(NULL, NULL, 0) != PMIXFAB_ERR_INVAL;
    bad += pmixfab_register(&fabric, NULL, 1) != PMIXFAB_ERR_INVAL;
    bad += pmixfab_update(NULL) != PMIXFAB_ERR_INVAL;
    bad += pmixfab_update(&fabric) != PMIXFAB_ERR_INVAL;
    bad += pmixfab_deregister(NULL) != PMIXFAB_ERR_INVAL;
    bad += pmixfab_deregister(&fabric) != PMIXFAB_ERR_INVAL;
    bad += pmixfab_of(NULL) != NULL;
    bad += pmixfab_of(&fabric) != NULL;
    fabric.module = &fabric; /* somebody else's */
    bad += pmixfab_update(&fabric) != PMIXFAB_ERR_INVAL || pmixfab_of(&fabric) != NULL;
    bad += fabric.info != NULL || fabric.ninfo != 0 || fabric.index != 0;
    pmixfab_close(NULL);
    pmixfab_list_free(NULL, 0);
    printf("nulls %d", bad);
}

static void obey(char *line)
{
    char *rest = line + strcspn(line, " ");
    if (*rest == ' ')
        *rest++ = '\0';
    if (strcmp(line, "open") == 0) {
        do_open(rest);
    } else if (strcmp(line, "list") == 0) {
        do_list();
    } else if (strcmp(line, "rounds") == 0) {
        do_rounds(rest);
    } else if (strcmp(line, "nulls") == 0) {
        do_nulls();
    } else {
        pmix_fabric_t *fabric = &slots[strtoul(rest, &rest, 10) % SLOTS];
        if (strcmp(line, "register") == 0)
            do_register(fabric, rest);
        else if (strcmp(line, "stock") == 0)
            printf("stock %d", PMIx_Fabric_register(fabric, NULL, 0));
        else if (strcmp(line, "update") == 0)
            do_update(fabric);
        else if (strcmp(line, "deregister") == 0)
            do_deregister(fabric);
        else if (strcmp(line, "cost") == 0)
            do_cost(fabric, rest);
        else
            printf("there is no %s", line);
    }
    printf("\n");
    fflush(stdout);
}

static void on_lost(size_t registration, pmix_status_t status, const pmix_proc_t *source, pmix_info_t *info,
                    size_t n, pmix_info_t *results, size_t n_results,
                    pmix_event_notification_cbfunc_fn_t done, void *cbdata)
{
    (void)registration, (void)status, (void)source, (void)info, (void)n, (void)results, (void)n_results;
    printf("lost\n");
    fflush(stdout);
    if (done != NULL)
        done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, cbdata);
}

int main(int argc, char **argv)
{
    pmix_status_t lost = PMIX_ERR_LOST_CONNECTION;
    pmix_proc_t self;
    pmix_info_t info;
    struct pmixfab *fab;
    char line[512];
    if (argc != 2) {
        fprintf(stderr, "usage: client_tool URI < COMMANDS\n");
        return 2;
    }
    printf("before %d\n", pmixfab_open_pmix(NULL, 0, &fab));
    PMIX_INFO_LOAD(&info, PMIX_SERVER_URI, argv[1], PMIX_STRING);
    pmix_status_t rc = PMIx_tool_init(&self, &info, 1);
    if (rc != PMIX_SUCCESS) {
        fprintf(stderr, "connect: %s\n", stock_status(rc));
        return 1;
    }
    for (size_t i = 0; i < SLOTS; i++)
        PMIX_FABRIC_CONSTRUCT(&slots[i]);
    PMIx_Register_event_handler(&lost, 1, NULL, 0, on_lost, NULL, NULL);
    printf("ready\n");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        obey(line);
    }
    for (size_t i = 0; i < SLOTS; i++)
        pmixfab_deregister(&slots[i]);
    PMIx_tool_finalize();
    printf("after %d\n", pmixfab_open_pmix(NULL, 0, &fab));
    return 0;
}
