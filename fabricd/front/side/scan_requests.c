/* scan_requests.c - the way to the nodes: each keeps a question open, and a scan request is its answer. */
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <utlist.h>

#include "fabricd/front/side/side.h"
#include "fabricd/server/long_poll.h"
#include "fabricd/server/server.h"
#include "pmix/relay/relay.h"
#include "topo/model/report.h"

struct waiter {
    struct long_poll_waiter waiter;
    struct waiter *prev_here, *next_here; /* of its host */
    struct host *host;
    uint64_t digest; /* what the node delivered last */
    const char *order;
    uint64_t acked;
};

struct host {
    UT_hash_handle hh;
    uint64_t acked;
    time_t ordered_until; /* a scan request that met nobody waits for the node's next question; 0: none */
    struct waiter *waiters;
    char name[];
};

static struct host *hosts; /* as long as requests.lock is held */
static struct long_poll requests;

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

/* From those who wait to those who are answered. */
static void scan_waiter_take(struct waiter *waiter, const char *order, struct long_poll_waiter **due)
{
    waiter->order = order;
    waiter->acked = waiter->host->acked;
    DL_DELETE2(waiter->host->waiters, waiter, prev_here, next_here);
    long_poll_take(&requests, &waiter->waiter, due);
}

/* It hears that nothing is wanted. */
static void scan_waiter_expire(struct long_poll_waiter *base, struct long_poll_waiter **due)
{
    struct waiter *waiter = (struct waiter *)base;
    struct host *host = waiter->host;
    scan_waiter_take(waiter, "", due);
    drop_host(host);
}

/* ---- the answer --------------------------------------------------------------------------------- */

/* The library packs the answer before cbfunc returns, so everything in it stays ours. */
static void scan_waiter_answer(const struct long_poll_waiter *base)
{
    const struct waiter *waiter = (const struct waiter *)base;
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
    base->cbfunc(PMIX_SUCCESS, data, 2, base->cbdata);
}

static struct long_poll requests = {
    .lock = PTHREAD_MUTEX_INITIALIZER, .answer = scan_waiter_answer, .expire = scan_waiter_expire};

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
static void scan_waiter_queue(struct waiter *waiter, struct host *host, struct long_poll_waiter **due)
{
    waiter->host = host;
    DL_APPEND2(host->waiters, waiter, prev_here, next_here);
    bool ordered = host->ordered_until != 0 && host->ordered_until >= long_poll_now();
    if (ordered || waiter->digest != host->acked) {
        scan_waiter_take(waiter, ordered ? RELAY_SCAN : "", due);
        host->ordered_until = 0;
        drop_host(host);
    }
}

pmix_status_t side_scan_requests(const pmix_proc_t *requestor, const pmix_info_t info[], size_t n,
                                 pmix_lookup_cbfunc_t cbfunc, void *cbdata)
{
    const char *name;
    uint64_t digest;
    pmix_status_t rc = read_question(info, n, &name, &digest);
    if (rc != PMIX_SUCCESS)
        return rc;
    struct waiter *waiter = calloc(1, sizeof(*waiter));
    struct long_poll_waiter *due = NULL, *none = NULL; /* of the last it is this waiter alone */
    if (waiter == NULL)
        return PMIX_ERR_NOMEM;
    waiter->digest = digest;
    waiter->waiter.cbfunc = cbfunc;
    waiter->waiter.cbdata = cbdata;
    pthread_mutex_lock(&requests.lock);
    bool full =
        !long_poll_open(&requests, requestor) || !long_poll_add(&requests, &waiter->waiter, requestor);
    struct host *host = full ? NULL : scan_get_host(name);
    if (host != NULL)
        scan_waiter_queue(waiter, host, &due);
    else if (!full)
        long_poll_take(&requests, &waiter->waiter, &none);
    pthread_mutex_unlock(&requests.lock);
    if (host == NULL) {
        free(waiter);
        return full ? PMIX_ERR_NOT_AVAILABLE : PMIX_ERR_NOMEM;
    }
    long_poll_answer(due);
    return PMIX_SUCCESS;
}

/* ---- orders ------------------------------------------------------------------------------------- */

static unsigned scan_request_post(struct host *host, const char *what, struct long_poll_waiter **due)
{
    unsigned n = 0;
    while (host->waiters != NULL) {
        scan_waiter_take(host->waiters, what, due);
        n++;
    }
    return n;
}

static unsigned request_scan(struct host *host, struct long_poll_waiter **due)
{
    unsigned n = scan_request_post(host, RELAY_SCAN, due);
    /* Between two questions: its next one comes soon, if it is there at all. */
    host->ordered_until = n == 0 ? long_poll_now() + 2 * RELAY_SUBSCRIBE_SECONDS : 0;
    drop_host(host);
    return n > 0;
}

unsigned side_request_scan(const char *name)
{
    struct long_poll_waiter *due = NULL;
    struct host *host, *next;
    unsigned n = 0;
    pthread_mutex_lock(&requests.lock);
    if (name == NULL) {
        HASH_ITER(hh, hosts, host, next)
        {
            n += request_scan(host, &due);
        }
    } else if ((host = scan_find_host(name)) != NULL) {
        n = request_scan(host, &due);
    }
    pthread_mutex_unlock(&requests.lock);
    long_poll_answer_soon(due);
    return n;
}

void side_held(const char *name, uint64_t digest)
{
    struct long_poll_waiter *due = NULL;
    struct waiter *waiter, *next;
    pthread_mutex_lock(&requests.lock);
    struct host *host = digest == 0 ? scan_find_host(name) : scan_get_host(name);
    if (host != NULL) {
        host->acked = digest;
        /* Who says that he delivered something else has to know it. */
        DL_FOREACH_SAFE2(host->waiters, waiter, next, next_here)
        {
            if (waiter->digest != digest)
                scan_waiter_take(waiter, "", &due);
        }
        drop_host(host);
    }
    pthread_mutex_unlock(&requests.lock);
    long_poll_answer_soon(due);
}

/* ---- life --------------------------------------------------------------------------------------- */

int scan_requests_start_all(struct event_base *base)
{
    return long_poll_start(&requests, base);
}

void scan_requests_stop_all(void)
{
    struct host *host, *next;
    long_poll_stop(&requests);
    pthread_mutex_lock(&requests.lock);
    HASH_ITER(hh, hosts, host, next)
    {
        HASH_DEL(hosts, host); /* NOLINT(clang-analyzer-unix.Malloc): nothing links to a freed one */
        free(host);
    }
    pthread_mutex_unlock(&requests.lock);
}
