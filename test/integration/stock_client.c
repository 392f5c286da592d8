/*
 * stock_client.c - a program on a node that knows only the stock PMIx library and asks for its fabric.
 *
 *   stock_client URI     as a tool that connects there
 *   stock_client client  as a client of the server that has started it
 *
 * Told on its standard input, answers with a line each:
 *   register   "register STATUS attributes N generation G plane P", the new fabric in use from now on;
 *              register KEY=VALUE...: with directives, plane=, vendor=, identifier=
 *   update     "update STATUS milliseconds T generation G plane P"
 *   burst N    N updates under way at a time: "burst answered N good M milliseconds T"
 *   flood N    the first half of a burst, without waiting: "flood N"; collect is the second half
 *   ping       asks a relay_host with own-query something it knows itself: "ping STATUS"
 *   watch      events as they come, a line each
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
static size_t n_all, n_sent, n_answered;
static double started;
static pmix_fabric_t fabric, *all;

static double milliseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static unsigned long generation_of(const pmix_fabric_t *of)
{
    for (size_t i = 0; i < of->ninfo; i++)
        if (PMIX_CHECK_KEY(&of->info[i], "pmixfab.generation"))
            return (unsigned long)of->info[i].value.data.uint64;
    return 0;
}

static const char *plane_of(const pmix_fabric_t *of)
{
    for (size_t i = 0; i < of->ninfo; i++)
        if (PMIX_CHECK_KEY(&of->info[i], PMIX_FABRIC_PLANE))
            return of->info[i].value.data.string;
    return "none";
}

static void release(pmix_fabric_t *of)
{
    if (of->info != NULL)
        PMIX_INFO_FREE(of->info, of->ninfo);
    of->info = NULL;
    of->ninfo = 0;
}

static size_t parse_directives(char *words, pmix_info_t *out, size_t max)
{
    static const char *const keys[][2] = {{"plane=", PMIX_FABRIC_PLANE},
                                          {"vendor=", PMIX_FABRIC_VENDOR},
                                          {"identifier=", PMIX_FABRIC_IDENTIFIER}};
    size_t n = 0;
    char *rest = NULL;
    for (char *word = strtok_r(words, " \n", &rest); word != NULL && n < max;
         word = strtok_r(NULL, " \n", &rest))
        for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
            if (strncmp(word, keys[i][0], strlen(keys[i][0])) == 0) {
                PMIX_INFO_LOAD(&out[n], keys[i][1], word + strlen(keys[i][0]), PMIX_STRING);
                n++;
                break;
            }
    return n;
}

static void do_register(char *words)
{
    pmix_info_t directives[4];
    release(&fabric);
    size_t n = parse_directives(words, directives, 4);
    pmix_status_t rc = PMIx_Fabric_register(&fabric, n == 0 ? NULL : directives, n);
    for (size_t i = 0; i < n; i++)
        PMIX_INFO_DESTRUCT(&directives[i]);
    printf("register %s attributes %zu generation %lu plane %s\n", stock_status(rc), fabric.ninfo,
           generation_of(&fabric), plane_of(&fabric));
}

static void do_update(void)
{
    double start = milliseconds();
    release(&fabric); /* the library does not */
    pmix_status_t rc = PMIx_Fabric_update(&fabric);
    printf("update %s milliseconds %.1f generation %lu plane %s\n", stock_status(rc), milliseconds() - start,
           generation_of(&fabric), plane_of(&fabric));
}

static void on_updated(pmix_status_t status, void *cbdata)
{
    (void)status, (void)cbdata;
    pthread_mutex_lock(&lock);
    n_answered++;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
}

static void send_updates(size_t n)
{
    all = calloc(n + 1, sizeof(*all));
    started = milliseconds();
    n_all = n;
    n_sent = n_answered = 0;
    for (size_t i = 0; i < n; i++) {
        PMIX_FABRIC_CONSTRUCT(&all[i]);
        n_sent += PMIx_Fabric_update_nb(&all[i], on_updated, NULL) == PMIX_SUCCESS;
    }
}

static void collect(void)
{
    size_t good = 0;
    pthread_mutex_lock(&lock);
    while (n_answered < n_sent)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    for (size_t i = 0; i < n_all; i++) {
        good += generation_of(&all[i]) > 0;
        release(&all[i]);
    }
    free(all);
    all = NULL;
    printf("burst answered %zu good %zu milliseconds %.1f\n", n_answered, good, milliseconds() - started);
}

/* The server answers this one itself, after everything that came before. */
static void ping(void)
{
    pmix_query_t *query;
    pmix_info_t *results = NULL;
    size_t n = 0;
    pmix_status_t rc;
    PMIX_QUERY_CREATE(query, 1);
    PMIX_ARGV_APPEND(rc, query->keys, "host.own");
    if (rc == PMIX_SUCCESS)
        rc = PMIx_Query_info(query, 1, &results, &n);
    PMIX_QUERY_FREE(query, 1);
    if (results != NULL)
        PMIX_INFO_FREE(results, n);
    printf("ping %s\n", stock_status(rc));
}

static void on_event(size_t handler, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[],
                     size_t n, pmix_info_t *results, size_t nresults,
                     pmix_event_notification_cbfunc_fn_t cbfunc, void *cbdata)
{
    (void)handler, (void)source, (void)results, (void)nresults;
    print_fabric_event(status, info, n);
    if (cbfunc != NULL)
        cbfunc(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, cbdata);
}

static void do_watch(void)
{
    pmix_status_t codes[] = {PMIX_FABRIC_UPDATE_PENDING, PMIX_FABRIC_UPDATED};
    PMIx_Register_event_handler(codes, 2, NULL, 0, on_event, NULL, NULL);
    printf("watching\n");
}

int main(int argc, char **argv)
{
    char line[256];
    pmix_proc_t self;
    pmix_info_t info;
    pmix_status_t rc;
    if (argc != 2)
        return 2;
    bool is_client = strcmp(argv[1], "client") == 0;
    PMIX_INFO_LOAD(&info, PMIX_SERVER_URI, argv[1], PMIX_STRING);
    rc = is_client ? PMIx_Init(&self, NULL, 0) : PMIx_tool_init(&self, &info, 1);
    if (rc != PMIX_SUCCESS) {
        fprintf(stderr, "connect: %s\n", stock_status(rc));
        return 1;
    }
    PMIX_FABRIC_CONSTRUCT(&fabric);
    printf("connected\n");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin) != NULL) {
        if (strncmp(line, "register", 8) == 0)
            do_register(line + 8);
        else if (strcmp(line, "update\n") == 0)
            do_update();
        else if (strcmp(line, "watch\n") == 0)
            do_watch();
        else if (strcmp(line, "ping\n") == 0)
            ping();
        else if (strcmp(line, "collect\n") == 0)
            collect();
        else if (strncmp(line, "burst ", 6) == 0)
            send_updates(strtoul(line + 6, NULL, 10)), collect();
        else if (strncmp(line, "flood ", 6) == 0)
            send_updates(strtoul(line + 6, NULL, 10)), printf("flood %zu\n", n_sent);
        fflush(stdout);
    }
    if (is_client)
        PMIx_Finalize(NULL, 0);
    else
        PMIx_tool_finalize();
    return 0;
}
