/*
 * stock_tool.c - a tool that knows only the stock PMIx library, as a scheduler's or an operator's would be.
 *
 *   stock_tool URI register [KEY=VALUE...]   PMIx_Fabric_register, its info array, a line each
 *   stock_tool URI update [KEY=VALUE...]     PMIx_Fabric_update, of what was registered with KEY=VALUE first
 *   stock_tool URI watch [N]                 events as they come, a line each; ends after N events
 *   stock_tool URI cycle                     register, wait for a PENDING/UPDATED pair, update, deregister
 *   stock_tool URI query KEY [KEY=VALUE...]  PMIx_Query_info with qualifiers
 *   stock_tool URI time N                    median time of N registers, in microseconds
 *
 * KEY=VALUE are plane=, vendor=, identifier=, index=. Status 0, or 1 with the error on standard error.
 */
#include <pmix_tool.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "test/integration/stock_lines.h"
#include "test/integration/stock_status.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned n_events, n_updated;

static int fail(const char *what, pmix_status_t rc)
{
    fprintf(stderr, "%s: %s (%d)\n", what, stock_status(rc), rc);
    return 1;
}

static double microseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void print_value(const char *key, const pmix_value_t *value)
{
    printf("%s ", key);
    switch (value->type) {
    case PMIX_STRING:
        printf("string %s\n", value->data.string);
        break;
    case PMIX_SIZE:
        printf("size %zu\n", value->data.size);
        break;
    case PMIX_UINT32:
        printf("uint32 %u\n", value->data.uint32);
        break;
    case PMIX_UINT64:
        printf("uint64 %lu\n", (unsigned long)value->data.uint64);
        break;
    case PMIX_INT64:
        printf("int64 %ld\n", (long)value->data.int64);
        break;
    case PMIX_POINTER:
        printf("pointer %s\n", value->data.ptr == NULL ? "null" : "set");
        break;
    case PMIX_BYTE_OBJECT:
        printf("bytes %zu\n", value->data.bo.size);
        break;
    case PMIX_DATA_ARRAY:
        printf("array %zu of type %u:", value->data.darray->size, value->data.darray->type);
        for (size_t i = 0; i < value->data.darray->size; i++) {
            if (value->data.darray->type == PMIX_UINT32)
                printf(" %u", ((uint32_t *)value->data.darray->array)[i]);
            else if (value->data.darray->type == PMIX_STRING)
                printf(" %s", ((char **)value->data.darray->array)[i]);
        }
        printf("\n");
        break;
    default:
        printf("type %u\n", value->type);
    }
}

static void print_all(const pmix_info_t *info, size_t n)
{
    for (size_t i = 0; i < n; i++)
        print_value(info[i].key, &info[i].value);
    fflush(stdout);
}

static size_t parse_directives(char **args, int n, pmix_info_t *out)
{
    static const struct {
        const char *word, *key;
    } words[] = {{"plane=", PMIX_FABRIC_PLANE},
                 {"vendor=", PMIX_FABRIC_VENDOR},
                 {"identifier=", PMIX_FABRIC_IDENTIFIER}};
    size_t count = 0;
    for (int i = 0; i < n; i++) {
        for (size_t k = 0; k < sizeof(words) / sizeof(words[0]); k++)
            if (strncmp(args[i], words[k].word, strlen(words[k].word)) == 0)
                PMIX_INFO_LOAD(&out[count], words[k].key, args[i] + strlen(words[k].word), PMIX_STRING),
                    count++;
        if (strncmp(args[i], "index=", 6) == 0) {
            size_t index = strtoul(args[i] + 6, NULL, 10);
            PMIX_INFO_LOAD(&out[count], PMIX_FABRIC_INDEX, &index, PMIX_SIZE), count++;
        } else if (strncmp(args[i], "badindex=", 9) == 0) { /* an index of the wrong type */
            PMIX_INFO_LOAD(&out[count], PMIX_FABRIC_INDEX, args[i] + 9, PMIX_STRING), count++;
        }
    }
    return count;
}

static int do_register(char **args, int n)
{
    pmix_fabric_t fabric;
    pmix_info_t directives[16];
    size_t count = parse_directives(args, n > 16 ? 16 : n, directives);
    PMIX_FABRIC_CONSTRUCT(&fabric);
    pmix_status_t rc = PMIx_Fabric_register(&fabric, count > 0 ? directives : NULL, count);
    if (rc != PMIX_SUCCESS)
        return fail("register", rc);
    print_all(fabric.info, fabric.ninfo);
    return 0;
}

static int do_update(char **args, int n)
{
    pmix_fabric_t fabric;
    pmix_info_t directives[16];
    size_t count = parse_directives(args, n > 16 ? 16 : n, directives);
    pmix_status_t rc = PMIX_SUCCESS;
    PMIX_FABRIC_CONSTRUCT(&fabric);
    if (count > 0)
        rc = PMIx_Fabric_register(&fabric, directives, count);
    if (rc != PMIX_SUCCESS)
        return fail("register", rc);
    rc = PMIx_Fabric_update(&fabric);
    if (rc != PMIX_SUCCESS)
        return fail("update", rc);
    print_all(fabric.info, fabric.ninfo);
    return 0;
}

static int do_query(char **args, int n)
{
    pmix_query_t *query;
    pmix_info_t *results = NULL;
    size_t nresults = 0;
    bool yes = true;
    PMIX_QUERY_CREATE(query, 1);
    pmix_status_t rc;
    PMIX_ARGV_APPEND(rc, query->keys, args[0]);
    PMIX_QUERY_QUALIFIERS_CREATE(query, 16);
    query->nqual = parse_directives(args + 1, n > 15 ? 14 : n - 1, query->qualifiers);
    PMIX_INFO_LOAD(&query->qualifiers[query->nqual], PMIX_QUERY_REFRESH_CACHE, &yes, PMIX_BOOL);
    query->nqual++;
    rc = PMIx_Query_info(query, 1, &results, &nresults);
    if (rc != PMIX_SUCCESS)
        return fail("query", rc);
    print_all(results, nresults);
    return 0;
}

static void on_event(size_t handler, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[],
                     size_t n, pmix_info_t *results, size_t nresults,
                     pmix_event_notification_cbfunc_fn_t cbfunc, void *cbdata)
{
    (void)handler, (void)source, (void)results, (void)nresults;
    print_fabric_event(status, info, n);
    if (cbfunc != NULL)
        cbfunc(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, cbdata);
    pthread_mutex_lock(&lock);
    n_events++;
    n_updated += status == PMIX_FABRIC_UPDATED;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static int listen_for_events(void)
{
    pmix_status_t codes[] = {PMIX_FABRIC_UPDATE_PENDING, PMIX_FABRIC_UPDATED};
    pmix_status_t rc = PMIx_Register_event_handler(codes, 2, NULL, 0, on_event, NULL, NULL);
    if (rc < 0)
        return fail("register for events", rc);
    printf("watching\n");
    fflush(stdout);
    return 0;
}

static void wait_for(const unsigned *counter, unsigned n)
{
    pthread_mutex_lock(&lock);
    while (*counter < n)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static int do_watch(unsigned n)
{
    if (listen_for_events() != 0)
        return 1;
    wait_for(&n_events, n);
    return 0;
}

static int do_cycle(void)
{
    pmix_fabric_t fabric;
    PMIX_FABRIC_CONSTRUCT(&fabric);
    pmix_status_t rc = PMIx_Fabric_register(&fabric, NULL, 0);
    if (rc != PMIX_SUCCESS)
        return fail("register", rc);
    print_all(fabric.info, fabric.ninfo);
    if (listen_for_events() != 0)
        return 1;
    wait_for(&n_updated, 1);
    rc = PMIx_Fabric_update(&fabric);
    if (rc != PMIX_SUCCESS)
        return fail("update", rc);
    printf("updated\n");
    print_all(fabric.info, fabric.ninfo);
    return 0;
}

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static int do_time(unsigned n)
{
    double *times = calloc(n + 1, sizeof(*times));
    for (unsigned i = 0; i < n; i++) {
        pmix_fabric_t fabric;
        PMIX_FABRIC_CONSTRUCT(&fabric);
        double start = microseconds();
        pmix_status_t rc = PMIx_Fabric_register(&fabric, NULL, 0);
        times[i] = microseconds() - start;
        if (rc != PMIX_SUCCESS)
            return fail("register", rc);
        PMIX_INFO_FREE(fabric.info, fabric.ninfo);
    }
    qsort(times, n, sizeof(*times), compare);
    printf("%.1f\n", times[n / 2]);
    free(times);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: stock_tool URI register|update|watch|cycle|query|time ...\n");
        return 2;
    }
    pmix_proc_t self;
    pmix_info_t info;
    PMIX_INFO_LOAD(&info, PMIX_SERVER_URI, argv[1], PMIX_STRING);
    pmix_status_t rc = PMIx_tool_init(&self, &info, 1);
    if (rc != PMIX_SUCCESS)
        return fail("connect", rc);
    int status = 2;
    if (strcmp(argv[2], "register") == 0)
        status = do_register(argv + 3, argc - 3);
    else if (strcmp(argv[2], "update") == 0)
        status = do_update(argv + 3, argc - 3);
    else if (strcmp(argv[2], "query") == 0 && argc > 3)
        status = do_query(argv + 3, argc - 3);
    else if (strcmp(argv[2], "watch") == 0)
        status = do_watch(argc > 3 ? (unsigned)atoi(argv[3]) : 1u << 31);
    else if (strcmp(argv[2], "cycle") == 0)
        status = do_cycle();
    else if (strcmp(argv[2], "time") == 0)
        status = do_time(argc > 3 ? (unsigned)atoi(argv[3]) : 1000);
    fflush(stdout);
    PMIx_tool_finalize();
    return status;
}
