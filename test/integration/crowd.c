/*
 * crowd.c - a crowd of hosts that deliver to a fabricd over the nodes' channel, with times. For benches.
 *
 *   crowd URI HOST:PORT HOSTS DEVICES
 *
 * Each host has a connection of its own. Host h (from 0) is "nodeH" and has the HCAs h, HOSTS + h, 2 * HOSTS
 * + h,
 * ... of a generated fabric (test/fabrics/fabrics.h). It prints "ready", and takes lines from standard input:
 *   all              every host delivers its first report, all of them before the first answer; prints
 *                    "all MS_ACKNOWLEDGED MS_UPDATED": when the last was acknowledged, and when the next
 *                    PMIX_FABRIC_UPDATED was here. Credentials are made before that.
 *   change H TEXT    host H has another firmware and delivers the change; prints "change MS_ACKNOWLEDGED
 *                    MS_UPDATED", from before its credential is made
 * An answer that is none, or a refusal, ends it with status 1.
 */
#include <pmix_tool.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "test/fabrics/reports.h"
#include "test/integration/channel_tool.h"
#include "test/integration/stock_status.h"
#include "topo/model/delivery.h"

#define FIRST_HCA      0x100000u /* its GUID; the port's is the next, the next HCA's the one after that */
#define MOST_HOSTS     10000u
#define MOST_DEVICES   64u
#define FIRST_FIRMWARE "20.31.1014"

static unsigned n_hosts, n_devices;
static struct host {
    struct fab_report held; /* as delivered last */
    struct channel_peer peer;
    void *bytes; /* a delivery, and its credential */
    size_t size;
    char *credential;
} * crowd;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned n_updated;
static double updated; /* when the last of them came */

static void die(const char *what, const char *why)
{
    fprintf(stderr, "crowd: %s: %s\n", what, why);
    exit(1);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* ---- what comes back, on PMIx's thread ------------------------------------------------------------------
 */

static void on_event(size_t handler, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[],
                     size_t n, pmix_info_t *results, size_t nresults,
                     pmix_event_notification_cbfunc_fn_t done, void *cbdata)
{
    (void)handler, (void)status, (void)source, (void)info, (void)n, (void)results, (void)nresults;
    pthread_mutex_lock(&lock);
    updated = now();
    n_updated++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    if (done != NULL)
        done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, cbdata);
}

static void wait_updated(unsigned updates)
{
    pthread_mutex_lock(&lock);
    while (n_updated < updates)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

/* ---- deliveries -----------------------------------------------------------------------------------------
 */

static void make(unsigned h, const char *firmware, struct fab_report *out)
{
    struct host_hca hcas[MOST_DEVICES];
    struct fab_err err = {""};
    char host[32];
    snprintf(host, sizeof(host), "node%u", h);
    for (unsigned d = 0; d < n_devices; d++) {
        uint64_t guid = FIRST_HCA + 2 * ((uint64_t)d * n_hosts + h);
        hcas[d] = (struct host_hca){guid, guid + 1};
    }
    if (host_report(host, hcas, n_devices, firmware, out, &err) != PMIXFAB_OK)
        die(host, err.text);
}

/* A delivery of the whole, or with `before` of what changed. */
static void prepare(struct host *host, const struct fab_report *before, const struct fab_report *after)
{
    struct fab_delivery delivery = {.base = 0, .digest = fab_report_digest(after)};
    void *body = NULL;
    snprintf(delivery.host, sizeof(delivery.host), "%s", after->host);
    if (before != NULL)
        delivery.base = fab_report_digest(before);
    int rc = before != NULL ? fab_report_delta(before, after, &body, &delivery.size)
                            : fab_report_encode(after, &body, &delivery.size);
    delivery.body = body;
    if (rc == PMIXFAB_OK)
        rc = fab_delivery_encode(&delivery, &host->bytes, &host->size);
    if (rc != PMIXFAB_OK)
        die(after->host, pmixfab_strerror(rc));
    free(body);
    host->credential =
        channel_peer_seal(&host->peer, CHANNEL_DELIVER, ++host->peer.last, host->bytes, host->size);
}

static void give(struct host *host)
{
    channel_peer_put(&host->peer, CHANNEL_DELIVER, host->peer.last, host->credential, host->bytes,
                     host->size);
    free(host->credential);
    free(host->bytes);
}

/* When its answer was there. */
static double wait_acknowledged(struct host *host)
{
    struct channel_outcome outcome;
    if (!channel_peer_outcome(&host->peer, &outcome))
        die("a delivery", "no answer");
    if (outcome.code != PMIXFAB_OK)
        die("a delivery is refused", outcome.reason);
    return now();
}

static void connect_host(struct host *host, const char *place)
{
    struct channel_outcome why;
    host->peer.fd = -1;
    if (!tool_open(&host->peer, place))
        die(place, "nobody listens there");
    if (!channel_peer_hello(&host->peer, host->held.host, &why))
        die("connect", why.reason);
}

static void connect_to(const char *uri)
{
    pmix_status_t codes[] = {PMIX_FABRIC_UPDATED};
    pmix_proc_t self;
    pmix_info_t info;
    PMIX_INFO_LOAD(&info, PMIX_SERVER_URI, uri, PMIX_STRING);
    pmix_status_t rc = PMIx_tool_init(&self, &info, 1);
    if (rc == PMIX_SUCCESS) {
        rc = PMIx_Register_event_handler(codes, 1, NULL, 0, on_event, NULL, NULL);
        rc = rc < 0 ? rc : PMIX_SUCCESS;
    }
    if (rc != PMIX_SUCCESS)
        die("connect", stock_status(rc));
}

static void deliver_all(void)
{
    const unsigned updates = n_updated + 1;
    double last = 0;
    for (unsigned h = 0; h < n_hosts; h++)
        prepare(&crowd[h], NULL, &crowd[h].held);
    const double start = now();
    for (unsigned h = 0; h < n_hosts; h++)
        give(&crowd[h]);
    for (unsigned h = 0; h < n_hosts; h++)
        last = wait_acknowledged(&crowd[h]);
    wait_updated(updates);
    printf("all %.3f %.3f\n", last - start, updated - start);
}

static void deliver_change(unsigned h, const char *firmware)
{
    struct fab_report after;
    if (h >= n_hosts)
        die("change", "no such host");
    make(h, firmware, &after);
    const unsigned updates = n_updated + 1;
    const double start = now();
    prepare(&crowd[h], &crowd[h].held, &after);
    give(&crowd[h]);
    const double acknowledged = wait_acknowledged(&crowd[h]);
    wait_updated(updates);
    printf("change %.3f %.3f\n", acknowledged - start, updated - start);
    fab_report_destroy(&crowd[h].held);
    crowd[h].held = after;
}

/* ---- the program ----------------------------------------------------------------------------------------
 */

int main(int argc, char **argv)
{
    char line[128], text[64];
    unsigned h;
    n_hosts = argc == 5 ? (unsigned)atoi(argv[3]) : 0;
    n_devices = argc == 5 ? (unsigned)atoi(argv[4]) : 0;
    if (n_hosts == 0 || n_hosts > MOST_HOSTS || n_devices == 0 || n_devices > MOST_DEVICES) {
        fprintf(stderr, "usage: crowd URI HOST:PORT HOSTS DEVICES\n");
        return 2;
    }
    crowd = calloc(n_hosts, sizeof(*crowd));
    if (crowd == NULL)
        die("reports", "out of memory");
    for (h = 0; h < n_hosts; h++)
        make(h, FIRST_FIRMWARE, &crowd[h].held);
    connect_to(argv[1]);
    for (h = 0; h < n_hosts; h++)
        connect_host(&crowd[h], argv[2]);
    printf("ready\n");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin) != NULL) {
        if (strcmp(line, "all\n") == 0)
            deliver_all();
        else if (sscanf(line, "change %u %63s", &h, text) == 2)
            deliver_change(h, text);
        fflush(stdout);
    }
    for (h = 0; h < n_hosts; h++) {
        fab_report_destroy(&crowd[h].held);
        channel_peer_close(&crowd[h].peer);
    }
    free(crowd);
    PMIx_tool_finalize();
    return 0;
}
