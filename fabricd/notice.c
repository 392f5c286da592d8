/* notice.c - the daemon's side of the cheap look: the child's life, and what it says. */
#include "fabricd/notice.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabricd/child.h"
#include "fabricd/log.h"
#include "fabricd/sweep.h"

#define FIRST_PAUSE 1u /* seconds until a child that ended is started again; then twice as many */
#define MAX_PAUSE   60u
#define GOOD_LOOKS  30u /* of one child: then what was wrong is over */
#define TO_END      2u  /* seconds for one that is asked to end */
#define LINES_LIMIT (1u << 20)

struct notice {
    struct event_base *base;
    const struct config *config;
    void (*fn)(const struct probe_noticed *noticed, void *cbdata);
    void *cbdata;
    struct child *child;
    struct event *timer; /* for its next start; while it runs, until it counts as hung */
    void *bytes;         /* the inventory that the child has */
    size_t size;
    void *next; /* and the one that another child gets when this one has ended; NULL: none */
    size_t next_size;
    struct notice_lines lines;
    unsigned pause, good;
    bool told; /* that it cannot look: once */
};

bool notice_wanted(const struct config *config)
{
    if (config->look == 0 || config->once || config->role == ROLE_NODE)
        return false;
    for (unsigned i = 0; i < config->probes.n; i++) {
        const struct probe *probe = probe_find(config->probes.items[i], NULL);
        if (probe != NULL && probe->watch_open != NULL)
            return true;
    }
    return false;
}

/* ---- what it says --------------------------------------------------------------------------------- */

static bool notice_any(const struct probe_noticed *noticed)
{
    return noticed->all || noticed->probes != 0 || noticed->n > 0;
}

void notice_forget(struct probe_noticed *noticed)
{
    noticed->all = false;
    noticed->probes = 0;
    noticed->n = 0;
}

bool notice_line(struct notice_lines *lines, const char *line)
{
    struct notice_status *status = &lines->status;
    uint64_t guid, requests, microseconds, probe;
    char more;
    if (sscanf(line, "all %" SCNu64 "%c", &probe, &more) == 1) {
        if (probe < CONFIG_MAX_LIST)
            lines->noticed.probes |= 1u << probe;
    } else if (sscanf(line, "node 0x%" SCNx64 "%c", &guid, &more) == 1) {
        if (probe_noticed_add(&lines->noticed, guid, NULL) != PMIXFAB_OK)
            lines->noticed.all = true;
    } else if (sscanf(line, "look %" SCNu64 " %" SCNu64 "%c", &microseconds, &requests, &more) == 2) {
        status->looks++;
        status->noticed += notice_any(&lines->noticed);
        status->requests = requests;
        status->look_ms = (double)microseconds / 1e3;
        status->watching = true;
        return true;
    }
    return false;
}

static void monitor_wake(struct notice *notice, unsigned seconds)
{
    const struct timeval pause = {.tv_sec = seconds};
    event_add(notice->timer, &pause);
}

/* It may take as long as a sweep, and then hangs. */
static void watch_over(struct notice *notice)
{
    monitor_wake(notice, notice->config->look + notice->config->deadline);
}

static size_t on_said(const unsigned char *bytes, size_t n, void *cbdata)
{
    struct notice *notice = cbdata;
    size_t at = 0;
    const unsigned char *end;
    while ((end = memchr(bytes + at, '\n', n - at)) != NULL) {
        char line[80];
        snprintf(line, sizeof(line), "%.*s", (int)(end - (bytes + at)), (const char *)bytes + at);
        at = (size_t)(end - bytes) + 1;
        if (!notice_line(&notice->lines, line))
            continue;
        if (++notice->good == GOOD_LOOKS) {
            notice->pause = FIRST_PAUSE;
            notice->told = false;
        }
        if (notice->next == NULL) /* else it is about to end */
            watch_over(notice);
        struct probe_noticed *noticed = &notice->lines.noticed;
        if (notice_any(noticed))
            notice->fn(noticed, notice->cbdata);
        notice_forget(noticed);
    }
    return at;
}

/* ---- its life ------------------------------------------------------------------------------------- */

/* It is no more: after a pause, another one. */
static void monitor_ended(struct notice *notice, const char *why)
{
    notice->lines.status.watching = false;
    if (!notice->told)
        log_warning("%s: changes are seen at sweeps only, until it looks again", why);
    notice->told = true;
    monitor_wake(notice, notice->pause);
    notice->pause = notice->pause * 2 < MAX_PAUSE ? notice->pause * 2 : MAX_PAUSE;
}

static void monitor_start_child(struct notice *notice);

static void start_next(struct notice *notice)
{
    free(notice->bytes);
    notice->bytes = notice->next;
    notice->size = notice->next_size;
    notice->next = NULL;
    monitor_start_child(notice);
}

static void monitor_on_child_ended(struct child_result *result, void *cbdata)
{
    struct notice *notice = cbdata;
    notice->child = NULL;
    event_del(notice->timer);
    if (notice->next != NULL) {
        start_next(notice);
        return;
    }
    if (result->code == PMIXFAB_ERR_UNSUPPORTED) { /* this inventory cannot be watched */
        notice->lines.status.watching = false;
        log_debug("%s", result->err.text);
        return;
    }
    monitor_ended(notice, result->code == PMIXFAB_OK ? "cheap look: its process ended" : result->err.text);
}

static void monitor_start_child(struct notice *notice)
{
    const struct config *config = notice->config;
    struct fab_err err = {""};
    char daemon[16], look[16], smps[16], timeout[16], retries[16];
    snprintf(daemon, sizeof(daemon), "%d", (int)getpid());
    snprintf(look, sizeof(look), "%u", config->look);
    snprintf(smps, sizeof(smps), "%u", config->max_smps);
    snprintf(timeout, sizeof(timeout), "%u", config->timeout_ms);
    snprintf(retries, sizeof(retries), "%u", config->retries);
    char *argv[CONFIG_MAX_LIST + 8] = {"fabricd", NOTICE_CHILD_OPTION, daemon, look, smps, timeout, retries};
    sweep_probes(config, argv + 7);
    const struct child_order order = {.what = "cheap look",
                                      .argv = argv,
                                      .env = &config->sweep_env,
                                      .input = notice->bytes,
                                      .input_size = notice->size,
                                      .limit = LINES_LIMIT,
                                      .said = on_said,
                                      .done = monitor_on_child_ended,
                                      .cbdata = notice};
    notice_forget(&notice->lines.noticed);
    notice->good = 0;
    if (child_start(notice->base, &order, &notice->child, &err) != PMIXFAB_OK) {
        log_warning("%s", err.text);
        monitor_wake(notice, MAX_PAUSE);
        return;
    }
    watch_over(notice);
}

static void monitor_on_timeout(evutil_socket_t fd, short what, void *arg)
{
    struct notice *notice = arg;
    (void)fd, (void)what;
    if (notice->child == NULL) {
        if (notice->next != NULL)
            start_next(notice);
        else
            monitor_start_child(notice);
        return;
    }
    child_cancel(notice->child);
    notice->child = NULL;
    if (notice->next != NULL)
        start_next(notice);
    else
        monitor_ended(notice, "cheap look: it hangs, and was killed");
}

void notice_watch(struct notice *notice, void *bytes, size_t size)
{
    if (notice->child != NULL && notice->next == NULL && size == notice->size &&
        memcmp(bytes, notice->bytes, size) == 0) {
        free(bytes);
        return;
    }
    free(notice->next);
    notice->next = bytes;
    notice->next_size = size;
    notice->lines.status.watching = false;
    if (notice->child != NULL) {
        child_ask_to_end(notice->child);
        monitor_wake(notice, TO_END);
    } else if (!event_pending(notice->timer, EV_TIMEOUT, NULL)) {
        start_next(notice);
    }
}

const void *notice_inventory(const struct notice *notice, size_t *size)
{
    *size = notice->next != NULL ? notice->next_size : notice->size;
    return notice->next != NULL ? notice->next : notice->bytes;
}

void notice_status(const struct notice *notice, struct notice_status *out)
{
    *out = notice->lines.status;
}

int notice_new(struct event_base *base, const struct config *config,
               void (*fn)(const struct probe_noticed *noticed, void *cbdata), void *cbdata,
               struct notice **out)
{
    struct notice *notice = *out = calloc(1, sizeof(*notice));
    if (notice == NULL)
        return PMIXFAB_ERR_NOMEM;
    *notice =
        (struct notice){.base = base, .config = config, .fn = fn, .cbdata = cbdata, .pause = FIRST_PAUSE};
    notice->timer = evtimer_new(base, monitor_on_timeout, notice);
    if (notice->timer != NULL)
        return PMIXFAB_OK;
    free(notice);
    *out = NULL;
    return PMIXFAB_ERR_NOMEM;
}

void notice_leave(struct notice *notice)
{
    if (notice != NULL)
        child_leave(notice->child, true);
}

void notice_free(struct notice *notice)
{
    if (notice == NULL)
        return;
    child_cancel(notice->child);
    event_free(notice->timer);
    probe_noticed_free(&notice->lines.noticed);
    free(notice->bytes);
    free(notice->next);
    free(notice);
}
