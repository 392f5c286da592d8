/* scan_requests.c - the way to the nodes: each keeps a question open, and a scan request is its answer. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <uthash.h>
#include <utlist.h>

#include "fabricd/ingest/entry.h"
#include "fabricd/server/server.h"
#include "fabricd/util/now.h"
#include "pmix/relay/relay.h"
#include "pmix/relay/thread.h"

#define MAX_WAITERS 65536

struct waiter {
    struct waiter *prev, *next;           /* of all, in the order of their time */
    struct waiter *prev_here, *next_here; /* of its host */
    struct host *host;
    uint64_t digest; /* what the node delivered last */
    time_t until;    /* monotonic seconds */
    const char *order;
    uint64_t acked;
    pmix_lookup_cbfunc_t cbfunc;
    void *cbdata;
};

struct host {
    UT_hash_handle hh;
    uint64_t acked;
    time_t ordered_until; /* a scan request that met nobody waits for the node's next question; 0: none */
    struct waiter *waiters;
    char name[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct waiter *list;
static unsigned n_waiters;
static struct host *hosts;
static struct event *timer; /* NULL: not started, or stopped */

static time_t scan_clock_seconds(void)
{
    return (time_t)(microseconds_now(CLOCK_MONOTONIC) / 1000000);
}

/* ---- hosts: the lock is held -------------------------------------------------------------------- */

static struct host *scan_find_host(const char *name)
{
    struct host *host;
    HASH_FIND_STR(hosts, name, host);
    return host;
}

static struct host *scan_get_host(const char *name)
{
    struct host *host = scan_find_host(name);
    size_t size = strlen(name) + 1;
    if (host != NULL || (host = calloc(1, sizeof(*host) + size)) == NULL)
        return host;
    memcpy(host->name, name, size);
    HASH_ADD_KEYPTR(hh, hosts, host->name, size - 1, host);
    return host;
}

/* A host of which nothing is held is there for its waiters only. */
static void drop_host(struct host *host)
{
    if (host->acked != 0 || host->waiters != NULL)
        return;
    HASH_DEL(hosts, host);
    free(host);
}

/* From the list of those who wait to that of those who are answered. */
static void scan_waiter_move(struct waiter *waiter, const char *order, struct waiter **to)
{
    if (list == NULL)
        return;
    waiter->order = order;
    waiter->acked = waiter->host->acked;
    DL_DELETE2(waiter->host->waiters, waiter, prev_here, next_here);
    DL_DELETE(list, waiter);
    DL_APPEND(*to, waiter);
    n_waiters--;
}

/* ---- the answer --------------------------------------------------------------------------------- */

/* The library packs the answer before cbfunc returns, so everything in it stays ours. */
static void scan_waiter_answer(struct waiter *waiter)
{
    pmix_pdata_t data[2];
    for (size_t i = 0; i < 2; i++) {
        PMIX_PDATA_CONSTRUCT(&data[i]);
        data[i].proc = *server_self();
    }
    PMIX_LOAD_KEY(data[0].key, RELAY_SCAN_REQUEST);
    data[0].value.type = PMIX_STRING;
    data[0].value.data.string = (char *)waiter->order;
    PMIX_LOAD_KEY(data[1].key, RELAY_DIGEST);
    data[1].value.type = PMIX_UINT64;
    data[1].value.data.uint64 = waiter->acked;
    waiter->cbfunc(PMIX_SUCCESS, data, 2, waiter->cbdata);
    free(waiter);
}

static void scan_answer_due(pmix_status_t status, void *arg)
{
    struct waiter *due = arg, *waiter, *next;
    (void)status;
    DL_FOREACH_SAFE(due, waiter, next)
    {
        scan_waiter_answer(waiter);
    }
}

static void scan_refuse_due(pmix_status_t status, void *arg)
{
    struct waiter *due = arg, *waiter, *next;
    (void)status;
    DL_FOREACH_SAFE(due, waiter, next)
    {
        waiter->cbfunc(PMIX_ERR_NOT_AVAILABLE, NULL, 0, waiter->cbdata);
        free(waiter);
    }
}

/* ---- waiting ------------------------------------------------------------------------------------ */

static pmix_status_t read_question(const pmix_info_t info[], size_t n, const char **name, uint64_t *digest)
{
    struct fab_report report;
    *name = NULL;
    *digest = 0;
    for (size_t i = 0; i < n; i++) {
        if (PMIX_CHECK_KEY(&info[i], PMIX_HOSTNAME) && info[i].value.type == PMIX_STRING)
            *name = info[i].value.data.string;
        else if (PMIX_CHECK_KEY(&info[i], RELAY_DIGEST) && info[i].value.type == PMIX_UINT64)
            *digest = info[i].value.data.uint64;
    }
    fab_report_init(&report);
    bool good = *name != NULL && fab_report_host(&report, *name, NULL) == PMIXFAB_OK;
    fab_report_destroy(&report);
    return good ? PMIX_SUCCESS : PMIX_ERR_BAD_PARAM;
}

/* Put a new waiter into the list, or into the one of those that are answered at once. The lock is held. */
static void scan_waiter_queue(struct waiter *waiter, struct host *host, struct waiter **due)
{
    const struct timeval limit = {.tv_sec = RELAY_SUBSCRIBE_SECONDS};
    waiter->host = host;
    if (list == NULL)
        event_add(timer, &limit);
    DL_APPEND(list, waiter);
    DL_APPEND2(host->waiters, waiter, prev_here, next_here);
    n_waiters++;
    bool ordered = host->ordered_until != 0 && host->ordered_until >= scan_clock_seconds();
    if (ordered || waiter->digest != host->acked) {
        scan_waiter_move(waiter, ordered ? RELAY_SCAN : "", due);
        host->ordered_until = 0;
        drop_host(host);
    }
}

pmix_status_t ingest_scan_requests(const pmix_info_t info[], size_t n, pmix_lookup_cbfunc_t cbfunc,
                                   void *cbdata)
{
    const char *name;
    uint64_t digest;
    pmix_status_t rc = read_question(info, n, &name, &digest);
    if (rc != PMIX_SUCCESS)
        return rc;
    struct waiter *waiter = calloc(1, sizeof(*waiter)), *due = NULL;
    if (waiter == NULL)
        return PMIX_ERR_NOMEM;
    waiter->digest = digest;
    waiter->until = scan_clock_seconds() + RELAY_SUBSCRIBE_SECONDS;
    waiter->cbfunc = cbfunc;
    waiter->cbdata = cbdata;
    pthread_mutex_lock(&lock);
    bool full = timer == NULL || n_waiters >= MAX_WAITERS;
    struct host *host = full ? NULL : scan_get_host(name);
    if (host != NULL)
        scan_waiter_queue(waiter, host, &due);
    pthread_mutex_unlock(&lock);
    if (host == NULL) {
        free(waiter);
        return full ? PMIX_ERR_NOT_AVAILABLE : PMIX_ERR_NOMEM;
    }
    if (due != NULL)
        scan_waiter_answer(due);
    return PMIX_SUCCESS;
}

/* Those that have waited long enough hear that nothing is wanted. */
static void scan_on_timeout(evutil_socket_t fd, short what, void *arg)
{
    struct waiter *due = NULL;
    const time_t now = scan_clock_seconds();
    (void)fd, (void)what, (void)arg;
    pthread_mutex_lock(&lock);
    while (list != NULL && list->until <= now) {
        struct host *host = list->host;
        scan_waiter_move(list, "", &due);
        drop_host(host);
    }
    if (list != NULL && timer != NULL) {
        const struct timeval rest = {.tv_sec = list->until - now};
        event_add(timer, &rest);
    }
    pthread_mutex_unlock(&lock);
    if (due != NULL)
        fab_on_pmix_thread(scan_answer_due, due);
}

/* ---- orders ------------------------------------------------------------------------------------- */

static unsigned scan_request_post(struct host *host, const char *what, struct waiter **due)
{
    unsigned n = 0;
    while (host->waiters != NULL) {
        scan_waiter_move(host->waiters, what, due);
        n++;
    }
    return n;
}

static unsigned request_scan(struct host *host, struct waiter **due)
{
    unsigned n = scan_request_post(host, RELAY_SCAN, due);
    /* Between two questions: its next one comes soon, if it is there at all. */
    host->ordered_until = n == 0 ? scan_clock_seconds() + 2 * RELAY_SUBSCRIBE_SECONDS : 0;
    drop_host(host);
    return n > 0;
}

unsigned ingest_request_scan(const char *name)
{
    struct waiter *due = NULL;
    struct host *host, *next;
    unsigned n = 0;
    pthread_mutex_lock(&lock);
    if (name == NULL) {
        HASH_ITER(hh, hosts, host, next)
        {
            n += request_scan(host, &due);
        }
    } else if ((host = scan_find_host(name)) != NULL) {
        n = request_scan(host, &due);
    }
    pthread_mutex_unlock(&lock);
    if (due != NULL)
        fab_on_pmix_thread(scan_answer_due, due);
    return n;
}

void ingest_acked(const char *name, uint64_t digest)
{
    struct waiter *due = NULL, *waiter, *next;
    pthread_mutex_lock(&lock);
    struct host *host = digest == 0 ? scan_find_host(name) : scan_get_host(name);
    if (host != NULL) {
        host->acked = digest;
        /* Who says that he delivered something else has to know it. */
        DL_FOREACH_SAFE2(host->waiters, waiter, next, next_here)
        {
            if (waiter->digest != digest)
                scan_waiter_move(waiter, "", &due);
        }
        drop_host(host);
    }
    pthread_mutex_unlock(&lock);
    if (due != NULL)
        fab_on_pmix_thread(scan_answer_due, due);
}

/* ---- life --------------------------------------------------------------------------------------- */

int scan_requests_start_all(struct event_base *base)
{
    struct event *made = evtimer_new(base, scan_on_timeout, NULL);
    if (made == NULL)
        return PMIXFAB_ERR_NOMEM;
    pthread_mutex_lock(&lock);
    timer = made;
    pthread_mutex_unlock(&lock);
    return PMIXFAB_OK;
}

void scan_requests_stop_all(void)
{
    struct host *host, *next;
    pthread_mutex_lock(&lock);
    struct waiter *due = list;
    struct event *old = timer;
    list = NULL;
    timer = NULL;
    n_waiters = 0;
    HASH_ITER(hh, hosts, host, next)
    {
        HASH_DEL(hosts, host); /* NOLINT(clang-analyzer-unix.Malloc): nothing links to a freed one */
        free(host);
    }
    pthread_mutex_unlock(&lock);
    if (old != NULL)
        event_free(old);
    if (due != NULL) {
        fab_on_pmix_thread(scan_refuse_due, due);
        fab_wait_for_pmix_thread();
    }
}
