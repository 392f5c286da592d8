/*
 * stock_member.c - a process of a job, or a tool, that knows only the stock PMIx library, and does what its
 * arguments say, one after the other.
 *
 *   stock_member [--tool URI [--name NSPACE]] ACTION...
 *
 * ACTION is [RANK+RANK...:]NAME[_nb][=ARGUMENT[,ARGUMENT...]]; without ranks all do it. Each writes one line,
 * "RANK NAME=ARGUMENTS: STATUS[ VALUE]", where STATUS is the library's name of it.
 */
#include <pmix.h>
#include <pmix_tool.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "test/integration/stock_member.h"
#include "test/integration/stock_member_jobs.h"
#include "test/integration/stock_member_talk.h"
#include "test/integration/stock_member_time.h"
#include "test/integration/stock_status.h"

static bool is_tool;

/* ---- data --------------------------------------------------------------------------------------- */

static pmix_status_t do_put(struct action *a)
{
    pmix_value_t value;
    char *bytes = NULL;
    if (a->words[1][0] == '#') { /* so many bytes */
        size_t size = (size_t)atol(a->words[1] + 1);
        bytes = calloc(1, size);
        value = (pmix_value_t){.type = PMIX_BYTE_OBJECT, .data.bo = {.bytes = bytes, .size = size}};
    } else {
        value = (pmix_value_t){.type = PMIX_STRING, .data.string = a->words[1]};
    }
    pmix_status_t rc = PMIx_Put(PMIX_GLOBAL, a->words[0], &value);
    free(bytes);
    return rc;
}

static pmix_status_t do_commit(struct action *a)
{
    (void)a;
    return PMIx_Commit();
}

/* get=NSPACE/RANK,KEY[,SECONDS] */
static pmix_status_t do_get(struct action *a)
{
    pmix_proc_t proc[MOST_WORDS];
    pmix_value_t *value = NULL;
    pmix_info_t info;
    int seconds = atoi(word(a, 2, "5"));
    procs_of(a->words[0], proc);
    PMIX_INFO_LOAD(&info, PMIX_TIMEOUT, &seconds, PMIX_INT);
    pmix_status_t rc = PMIx_Get(&proc[0], a->words[1], &info, 1, &value);
    if (rc == PMIX_SUCCESS) {
        say_value(a, value);
        PMIX_VALUE_RELEASE(value);
    }
    return rc;
}

/* fence=PROCS[,collect|plain[,SECONDS]] */
static pmix_status_t do_fence(struct action *a)
{
    pmix_proc_t procs[MOST_WORDS];
    pmix_info_t info[2];
    size_t n = 1, n_procs = procs_of(a->n > 0 ? a->words[0] : strdup("*"), procs);
    bool collect = strcmp(word(a, 1, "plain"), "collect") == 0;
    int seconds = atoi(word(a, 2, "0"));
    PMIX_INFO_LOAD(&info[0], PMIX_COLLECT_DATA, &collect, PMIX_BOOL);
    if (seconds > 0)
        PMIX_INFO_LOAD(&info[n++], PMIX_TIMEOUT, &seconds, PMIX_INT);
    return PMIx_Fence(procs, n_procs, info, n);
}

/* Several fences at once, each of all ranks and with another one of `fences=N`. */
static int fences_left;
static pmix_status_t fences_status;

static void on_fence(pmix_status_t status, void *cbdata)
{
    (void)cbdata;
    pthread_mutex_lock(&lock);
    fences_left--;
    if (status != PMIX_SUCCESS)
        fences_status = status;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

/* fences=PROCS,PROCS...: those of them that have this rank, all under way at once */
static pmix_status_t do_fences(struct action *a)
{
    pmix_proc_t procs[MOST_WORDS][MOST_WORDS];
    fences_status = PMIX_SUCCESS;
    for (int i = 0; i < a->n; i++) {
        size_t n = procs_of(a->words[i], procs[i]);
        bool in = false;
        for (size_t k = 0; k < n; k++)
            in |= procs[i][k].rank == self.rank || procs[i][k].rank == PMIX_RANK_WILDCARD;
        if (!in)
            continue;
        pthread_mutex_lock(&lock);
        fences_left++;
        pthread_mutex_unlock(&lock);
        pmix_status_t rc = PMIx_Fence_nb(procs[i], n, NULL, 0, on_fence, NULL);
        if (rc != PMIX_SUCCESS)
            on_fence(rc, NULL);
    }
    pthread_mutex_lock(&lock);
    while (fences_left > 0)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return fences_status;
}

/* ---- what is published ---------------------------------------------------------------------------- */

/* "wrong": a value that is no range */
static size_t load_range(const struct action *a, int i, pmix_info_t *info)
{
    if (strcmp(word(a, i, ""), "wrong") == 0) {
        PMIX_INFO_LOAD(info, PMIX_RANGE, "wrong", PMIX_STRING);
        return 1;
    }
    uint8_t range = range_of(word(a, i, ""));
    if (range == 0)
        return 0;
    PMIX_INFO_LOAD(info, PMIX_RANGE, &range, PMIX_DATA_RANGE);
    return 1;
}

/* publish=KEY,VALUE[,RANGE[,PERSISTENCE[,KEY2]]] */
static pmix_status_t do_publish(struct action *a)
{
    pmix_info_t info[4];
    size_t n = 1;
    PMIX_INFO_LOAD(&info[0], a->words[0], a->words[1], PMIX_STRING);
    n += load_range(a, 2, &info[n]);
    if (a->n > 3) {
        uint8_t persist = persistence_of(a->words[3]);
        PMIX_INFO_LOAD(&info[n++], PMIX_PERSISTENCE, &persist, PMIX_PERSIST);
    }
    if (a->n > 4)
        PMIX_INFO_LOAD(&info[n++], a->words[4], a->words[1], PMIX_STRING);
    return a->nb ? op_wait(PMIx_Publish_nb(info, n, on_op, NULL)) : PMIx_Publish(info, n);
}

static void on_lookup(pmix_status_t status, pmix_pdata_t data[], size_t n, void *cbdata)
{
    if (status == PMIX_SUCCESS && n == 1)
        say_value(cbdata, &data[0].value);
    op_end(status);
}

/* lookup=KEY[,RANGE[,SECONDS]]: with seconds it waits */
static pmix_status_t do_lookup(struct action *a)
{
    pmix_pdata_t data;
    pmix_info_t info[3];
    int all = 0, seconds = atoi(word(a, 2, "0"));
    size_t n = load_range(a, 1, info);
    PMIX_PDATA_CONSTRUCT(&data);
    PMIX_LOAD_KEY(data.key, a->words[0]);
    if (a->n > 2) {
        PMIX_INFO_LOAD(&info[n], PMIX_WAIT, &all, PMIX_INT);
        PMIX_INFO_LOAD(&info[n + 1], PMIX_TIMEOUT, &seconds, PMIX_INT);
        n += 2;
    }
    if (a->nb)
        return op_wait(PMIx_Lookup_nb((char *[]){a->words[0], NULL}, info, n, on_lookup, a));
    pmix_status_t rc = PMIx_Lookup(&data, 1, info, n);
    if (rc == PMIX_SUCCESS)
        say_value(a, &data.value);
    return rc;
}

/* unpublish=KEY[,RANGE]; "*": all of its own */
static pmix_status_t do_unpublish(struct action *a)
{
    char *keys[] = {a->words[0], NULL};
    pmix_info_t info[1];
    size_t n = load_range(a, 1, info);
    char **list = strcmp(a->words[0], "*") == 0 ? NULL : keys;
    return a->nb ? op_wait(PMIx_Unpublish_nb(list, info, n, on_op, NULL)) : PMIx_Unpublish(list, info, n);
}

/* flood=BYTES: values of so many bytes until it is refused; how many there were */
static pmix_status_t do_flood(struct action *a)
{
    const size_t size = (size_t)atol(a->words[0]);
    char *bytes = calloc(1, size), key[32];
    pmix_byte_object_t bo = {.bytes = bytes, .size = size};
    pmix_status_t rc = PMIX_SUCCESS;
    size_t n = 0;
    for (; rc == PMIX_SUCCESS; n++) {
        uint8_t persist = PMIX_PERSIST_PROC;
        pmix_info_t info[2];
        snprintf(key, sizeof(key), "flood%zu", n);
        PMIX_INFO_LOAD(&info[0], key, &bo, PMIX_BYTE_OBJECT);
        PMIX_INFO_LOAD(&info[1], PMIX_PERSISTENCE, &persist, PMIX_PERSIST);
        rc = PMIx_Publish(info, 2);
        PMIX_INFO_DESTRUCT(&info[0]);
    }
    free(bytes);
    snprintf(a->said, sizeof(a->said), " %zu", n - 1);
    return rc;
}

/* fencetime=N[,BYTES]: so many fences of all, microseconds of the median one; with bytes each puts and
 * commits a value of that size before, and the fence collects: all of that together */
static pmix_status_t do_fencetime(struct action *a)
{
    static double took[100000];
    const size_t n = (size_t)atol(a->words[0]);
    char text[32];
    struct action data = {.words = {"fenced", text}, .n = 2};
    pmix_proc_t all;
    pmix_info_t info;
    bool collect = a->n > 1;
    pmix_status_t rc = PMIX_SUCCESS;
    snprintf(text, sizeof(text), "#%s", word(a, 1, "0"));
    PMIX_LOAD_PROCID(&all, self.nspace, PMIX_RANK_WILDCARD);
    PMIX_INFO_LOAD(&info, PMIX_COLLECT_DATA, &collect, PMIX_BOOL);
    for (size_t i = 0; rc == PMIX_SUCCESS && i < n && i < 100000; i++) {
        const double start = now_us();
        if (collect)
            rc = do_put(&data);
        if (collect && rc == PMIX_SUCCESS)
            rc = PMIx_Commit();
        if (rc == PMIX_SUCCESS)
            rc = PMIx_Fence(&all, 1, &info, 1);
        took[i] = now_us() - start;
    }
    qsort(took, n, sizeof(took[0]), compare_times);
    snprintf(a->said, sizeof(a->said), " %.1f", took[n / 2]);
    return rc;
}

/* ---- the process -------------------------------------------------------------------------------- */

static pmix_status_t do_abort(struct action *a)
{
    pmix_proc_t procs[MOST_WORDS];
    size_t n = a->n > 2 ? procs_of(a->words[2], procs) : 0;
    return PMIx_Abort(atoi(word(a, 0, "1")), word(a, 1, "aborted"), n > 0 ? procs : NULL, n);
}

static pmix_status_t do_exit(struct action *a)
{
    fflush(stdout);
    _exit(atoi(word(a, 0, "0")));
}

static pmix_status_t do_kill(struct action *a)
{
    fflush(stdout);
    raise(atoi(word(a, 0, "9")));
    return PMIX_SUCCESS;
}

/* Until this file is there. */
static pmix_status_t do_await(struct action *a)
{
    const struct timespec pause = {.tv_nsec = 5000000};
    while (access(a->words[0], F_OK) != 0)
        nanosleep(&pause, NULL);
    return PMIX_SUCCESS;
}

static pmix_status_t do_touch(struct action *a)
{
    FILE *file = fopen(a->words[0], "w");
    if (file != NULL)
        fclose(file);
    return file == NULL ? PMIX_ERROR : PMIX_SUCCESS;
}

/* pid=FILE: its number, for who wants to see it go */
static pmix_status_t do_pid(struct action *a)
{
    snprintf(a->said, sizeof(a->said), " %d", (int)getpid());
    return PMIX_SUCCESS;
}

/* query=KEY[,NSPACE] */
static pmix_status_t do_query(struct action *a)
{
    pmix_query_t query;
    pmix_info_t *results = NULL;
    size_t n = 0;
    pmix_status_t rc;
    PMIX_QUERY_CONSTRUCT(&query);
    for (char *rest = a->words[0], *key; (key = strsep(&rest, "+")) != NULL;)
        PMIX_ARGV_APPEND(rc, query.keys, key);
    PMIX_QUERY_QUALIFIERS_CREATE(&query, a->n > 1 ? 2 : 1);
    PMIX_INFO_LOAD(&query.qualifiers[0], PMIX_QUERY_REFRESH_CACHE, NULL, PMIX_BOOL);
    if (a->n > 1) {
        pmix_proc_t proc;
        name_of(a->words[1], 0, &proc);
        PMIX_INFO_LOAD(&query.qualifiers[1], PMIX_NSPACE, proc.nspace, PMIX_STRING);
    }
    rc = PMIx_Query_info(&query, 1, &results, &n);
    if (rc == PMIX_SUCCESS && n > 0)
        say_value(a, &results[0].value);
    return rc;
}

/* ---- all of them -------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    pmix_status_t (*fn)(struct action *a);
} actions[] = {
    {"put", do_put},
    {"commit", do_commit},
    {"get", do_get},
    {"fence", do_fence},
    {"fences", do_fences},
    {"abort", do_abort},
    {"exit", do_exit},
    {"kill", do_kill},
    {"await", do_await},
    {"touch", do_touch},
    {"pid", do_pid},
    {"query", do_query},
    {"publish", do_publish},
    {"lookup", do_lookup},
    {"unpublish", do_unpublish},
    {"flood", do_flood},
    {"time", do_time},
    {"rate", do_rate},
    {"fencetime", do_fencetime},
    {"spawn", do_spawn},
    {"spawns", do_spawns},
    {"listen", do_listen},
    {"hear", do_hear},
    {"pull", do_pull},
    {"push", do_push},
    {"register", do_register},
    {"deregister", do_deregister},
    {"notify", do_notify},
    {"events", do_events},
    {"control", do_control},
    {"monitor", do_monitor},
    {"allocate", do_allocate},
    {"group", do_group},
    {"credential", do_credential},
    {"log", do_log},
    {"connect", do_connect},
    {"disconnect", do_disconnect},
};

static bool is_mine(char **text)
{
    char *colon = strchr(*text, ':'), *equals = strchr(*text, '=');
    bool mine = false;
    if (colon == NULL || (equals != NULL && equals < colon))
        return true;
    *colon = '\0';
    for (char *rest = *text, *one; (one = strsep(&rest, "+")) != NULL;)
        mine |= rank_of(one) == self.rank;
    *text = colon + 1;
    return mine;
}

static int do_one(char *text)
{
    static struct action a;
    char shown[1024];
    if (!is_mine(&text))
        return 0;
    snprintf(shown, sizeof(shown), "%s", text);
    char *rest = strchr(text, '=');
    if (rest != NULL)
        *rest++ = '\0';
    char *form = strstr(text, "_nb");
    a.nb = form != NULL;
    if (form != NULL)
        *form = '\0';
    a.n = 0;
    a.said[0] = '\0';
    for (char *one; rest != NULL && a.n < MOST_WORDS && (one = strsep(&rest, ",")) != NULL;)
        a.words[a.n++] = one;
    for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
        if (strcmp(actions[i].name, text) != 0)
            continue;
        pmix_status_t rc = actions[i].fn(&a);
        printf("%d %s: %s%s\n", is_tool ? -1 : (int)self.rank, shown, stock_status(rc), a.said);
        fflush(stdout);
        return 0;
    }
    fprintf(stderr, "stock_member: no action %s\n", text);
    return 1;
}

static pmix_status_t start_tool(const char *uri, const char *name)
{
    pmix_info_t info[3];
    pmix_rank_t rank = 0;
    size_t n = 1;
    PMIX_INFO_LOAD(&info[0], PMIX_SERVER_URI, uri, PMIX_STRING);
    if (name != NULL) {
        PMIX_INFO_LOAD(&info[1], PMIX_TOOL_NSPACE, name, PMIX_STRING);
        PMIX_INFO_LOAD(&info[2], PMIX_TOOL_RANK, &rank, PMIX_PROC_RANK);
        n = 3;
    }
    is_tool = true;
    return PMIx_tool_init(&self, info, n);
}

int main(int argc, char **argv)
{
    int first = 1, failed = 0;
    const char *uri = NULL, *name = NULL;
    for (; first + 1 < argc && strncmp(argv[first], "--", 2) == 0; first += 2)
        *(strcmp(argv[first], "--tool") == 0 ? &uri : &name) = argv[first + 1];
    pmix_status_t rc = uri != NULL ? start_tool(uri, name) : PMIx_Init(&self, NULL, 0);
    if (rc != PMIX_SUCCESS) {
        fprintf(stderr, "stock_member: start: %s\n", stock_status(rc));
        return 1;
    }
    for (int i = first; i < argc && failed == 0; i++)
        failed = do_one(argv[i]);
    rc = is_tool ? PMIx_tool_finalize() : PMIx_Finalize(NULL, 0);
    if (rc != PMIX_SUCCESS)
        fprintf(stderr, "stock_member: finalize: %s\n", stock_status(rc));
    return failed;
}
