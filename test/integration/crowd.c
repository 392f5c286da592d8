/*
 * crowd.c - a crowd of hosts that deliver to a fabricd over PMIx, with times. For benches.
 *
 *   crowd URI HOSTS DEVICES [each]
 *
 * All over one connection; with "each", the first reports come from a process and over a connection of each
 * host's own, as from a thousand nodes.
 *
 * Host h (from 0) is "nodeH" and has the HCAs h, HOSTS + h, 2 * HOSTS + h, ... of a generated fabric
 * (test/fabrics/fabrics.h). It prints "ready", and takes lines from standard input:
 *   all              every host delivers its first report, all of them before the first answer; prints
 *                    "all MS_ACKNOWLEDGED MS_UPDATED": when the last was acknowledged, and when the next
 *                    PMIX_FABRIC_UPDATED was here. Credentials are made before that.
 *   change H TEXT    host H has another firmware and delivers the change; prints "change MS_ACKNOWLEDGED
 *                    MS_UPDATED", from before its credential is made
 * An answer that is none, or a refusal, ends it with status 1.
 */
#include <munge.h>
#include <pmix_tool.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "pmix/relay/relay.h"
#include "test/fabrics/reports.h"
#include "test/integration/stock_status.h"
#include "topo/model/delivery.h"

#define FIRST_HCA      0x100000u /* its GUID; the port's is the next, the next HCA's the one after that */
#define MOST_HOSTS     10000u
#define MOST_DEVICES   64u
#define FIRST_FIRMWARE "20.31.1014"

static unsigned n_hosts, n_devices;
static struct fab_report *held; /* of each host: as delivered last */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned n_answered, n_updated;
static double acknowledged, updated; /* when the last of them came */

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

static void on_answer(pmix_status_t rc, pmix_pdata_t data[], size_t n, void *cbdata)
{
    (void)cbdata;
    int code = 1;
    const char *reason = "";
    if (rc != PMIX_SUCCESS)
        die("a delivery", stock_status(rc));
    for (size_t i = 0; i < n; i++) {
        if (PMIX_CHECK_KEY(&data[i], RELAY_CODE) && data[i].value.type == PMIX_INT32)
            code = data[i].value.data.int32;
        else if (PMIX_CHECK_KEY(&data[i], RELAY_REASON) && data[i].value.type == PMIX_STRING)
            reason = data[i].value.data.string;
    }
    if (code != PMIXFAB_OK)
        die("a delivery is refused", reason);
    pthread_mutex_lock(&lock);
    acknowledged = now();
    n_answered++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

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

static void wait_until(unsigned answers, unsigned updates)
{
    pthread_mutex_lock(&lock);
    while (n_answered < answers || n_updated < updates)
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

/* The credential of a delivery: of the whole, or with `before` of what changed. */
static char *credential_of(const struct fab_report *before, const struct fab_report *after)
{
    struct fab_delivery delivery = {.base = 0, .digest = fab_report_digest(after)};
    void *body = NULL, *bytes = NULL;
    size_t size = 0;
    char *credential = NULL;
    snprintf(delivery.host, sizeof(delivery.host), "%s", after->host);
    if (before != NULL)
        delivery.base = fab_report_digest(before);
    int rc = before != NULL ? fab_report_delta(before, after, &body, &delivery.size)
                            : fab_report_encode(after, &body, &delivery.size);
    delivery.body = body;
    if (rc == PMIXFAB_OK)
        rc = fab_delivery_encode(&delivery, &bytes, &size);
    if (rc != PMIXFAB_OK)
        die(after->host, pmixfab_strerror(rc));
    munge_err_t status = munge_encode(&credential, NULL, bytes, (int)size);
    if (status != EMUNGE_SUCCESS)
        die("munge", munge_strerror(status));
    free(bytes);
    free(body);
    return credential;
}

static void give(char *credential)
{
    char *keys[] = {RELAY_DELIVER, NULL};
    pmix_info_t info;
    PMIX_INFO_LOAD(&info, RELAY_CREDENTIAL, credential, PMIX_STRING);
    pmix_status_t rc = PMIx_Lookup_nb(keys, &info, 1, on_answer, NULL);
    if (rc != PMIX_SUCCESS)
        die("a delivery", stock_status(rc));
    PMIX_INFO_DESTRUCT(&info);
    free(credential);
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

/* ---- a process for each host ----------------------------------------------------------------------------
 */

static bool each;
static int go[2] = {-1, -1};      /* its end is the word to deliver */
static int reports[2] = {-1, -1}; /* of the children: when they were connected, and acknowledged */

static void child(const char *uri, unsigned h)
{
    char byte;
    close(go[1]);
    char *credential = credential_of(NULL, &held[h]);
    connect_to(uri);
    double at = now();
    if (write(reports[1], &at, sizeof(at)) != sizeof(at) || read(go[0], &byte, 1) != 0)
        die("a host", "nobody is there any more");
    give(credential);
    wait_until(1, 0);
    if (write(reports[1], &acknowledged, sizeof(acknowledged)) != sizeof(acknowledged))
        die("a host", "nobody is there any more");
    PMIx_tool_finalize();
    _exit(0);
}

/* So many words of children; the latest time in them. */
static double hear(unsigned n)
{
    double at, last = 0;
    for (unsigned i = 0; i < n; i++) {
        if (read(reports[0], &at, sizeof(at)) != sizeof(at))
            die("a host", "it has ended without a word");
        if (at > last)
            last = at;
    }
    return last;
}

/* As many at a time as the server lets wait. Before this process is a tool. */
static void start_each(const char *uri)
{
    const unsigned at_once = 100;
    if (pipe(go) != 0 || pipe(reports) != 0)
        die("each", "no pipe");
    for (unsigned h = 0; h < n_hosts; h++) {
        pid_t pid = fork();
        if (pid < 0)
            die("each", "no process");
        if (pid == 0)
            child(uri, h);
        if ((h + 1) % at_once == 0)
            hear(at_once);
    }
    hear(n_hosts % at_once);
    close(go[0]);
    close(reports[1]); /* so that their end is heard */
}

static void deliver_each(void)
{
    unsigned updates = n_updated + 1;
    double start = now();
    close(go[1]);
    double last = hear(n_hosts);
    wait_until(0, updates);
    printf("all %.3f %.3f\n", last - start, updated - start);
    while (wait(NULL) > 0)
        ;
}

static void deliver_all(void)
{
    if (each) {
        deliver_each();
        return;
    }
    char **credentials = calloc(n_hosts, sizeof(*credentials));
    if (credentials == NULL)
        die("credentials", "out of memory");
    for (unsigned h = 0; h < n_hosts; h++)
        credentials[h] = credential_of(NULL, &held[h]);
    unsigned answers = n_answered + n_hosts, updates = n_updated + 1;
    double start = now();
    for (unsigned h = 0; h < n_hosts; h++)
        give(credentials[h]);
    wait_until(answers, updates);
    printf("all %.3f %.3f\n", acknowledged - start, updated - start);
    free(credentials);
}

static void deliver_change(unsigned h, const char *firmware)
{
    struct fab_report after;
    if (h >= n_hosts)
        die("change", "no such host");
    make(h, firmware, &after);
    unsigned answers = n_answered + 1, updates = n_updated + 1;
    double start = now();
    give(credential_of(&held[h], &after));
    wait_until(answers, updates);
    printf("change %.3f %.3f\n", acknowledged - start, updated - start);
    fab_report_destroy(&held[h]);
    held[h] = after;
}

/* ---- the program ----------------------------------------------------------------------------------------
 */

int main(int argc, char **argv)
{
    char line[128], text[64];
    unsigned h;
    each = argc == 5 && strcmp(argv[4], "each") == 0;
    argc -= each;
    n_hosts = argc == 4 ? (unsigned)atoi(argv[2]) : 0;
    n_devices = argc == 4 ? (unsigned)atoi(argv[3]) : 0;
    if (n_hosts == 0 || n_hosts > MOST_HOSTS || n_devices == 0 || n_devices > MOST_DEVICES) {
        fprintf(stderr, "usage: crowd URI HOSTS DEVICES [each]\n");
        return 2;
    }
    held = calloc(n_hosts, sizeof(*held));
    if (held == NULL)
        die("reports", "out of memory");
    for (h = 0; h < n_hosts; h++)
        make(h, FIRST_FIRMWARE, &held[h]);
    if (each)
        start_each(argv[1]);
    connect_to(argv[1]);
    printf("ready\n");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin) != NULL) {
        if (strcmp(line, "all\n") == 0)
            deliver_all();
        else if (sscanf(line, "change %u %63s", &h, text) == 2)
            deliver_change(h, text);
        fflush(stdout);
    }
    for (h = 0; h < n_hosts; h++)
        fab_report_destroy(&held[h]);
    free(held);
    PMIx_tool_finalize();
    return 0;
}
