/*
 * scheduler_findings.c - make findings from the scheduler's own state (failed sweeps, suppressed cables,
 * ...). Decide when to check for them, and for the findings of topo/changes/check.h in the served state.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/log.h"
#include "fabricd/base/timer.h"
#include "fabricd/engine/publisher.h"
#include "fabricd/engine/scheduler_state.h"
#include "fabricd/jobs/history_trim.h"
#include "fabricd/jobs/slurm_rounds.h"
#include "fabricd/pmix/pmix_server.h"
#include "probes/registry.h"

#define SECOND    INT64_C(1000000)
#define PMIX_TOLD (3600 * SECOND) /* how long a lost PMIx server is a finding */

/* A check in progress. */
struct look {
    struct scheduler *d;
    struct fab_findings flapping, others;
    int rc; /* PMIXFAB_ERR_NOMEM: findings are missing */
};

static void __attribute__((format(printf, 5, 6)))
add_finding(struct look *look, enum fab_check_kind kind, struct fab_about about, const char *where,
            const char *fmt, ...)
{
    char *what = NULL;
    va_list args;
    va_start(args, fmt);
    if (look->rc == PMIXFAB_OK && vasprintf(&what, fmt, args) < 0)
        look->rc = PMIXFAB_ERR_NOMEM;
    else if (look->rc == PMIXFAB_OK)
        look->rc = fab_findings_add(kind == FAB_CHECK_FLAPPING ? &look->flapping : &look->others, kind, about,
                                    where, what);
    va_end(args);
    free(what);
}

struct time_text {
    char text[32];
};
static struct time_text time_text(int64_t microseconds)
{
    struct time_text out;
    struct tm utc;
    const time_t seconds = (time_t)(microseconds / SECOND);
    gmtime_r(&seconds, &utc);
    strftime(out.text, sizeof(out.text), "%Y-%m-%dT%H:%M:%SZ", &utc);
    return out;
}

/* Add findings whose text already exists; NULL: no finding. */
static void find_texts(struct look *look)
{
    const struct scheduler *d = look->d;
    const char *names = d->publisher->names_fault.text, *file, *listener;
    const char *file_fault = metrics_fault(d->metrics, 0, &file);
    const char *listen_fault = metrics_fault(d->metrics, 1, &listener);
    const char *unfit = d->component_unfit.text[0] != '\0' ? d->component_unfit.text : NULL;
    const struct {
        enum fab_check_kind kind;
        const char *about, *where, *what;
    } texts[] = {
        {FAB_CHECK_STALE, "sweep", "sweep", d->status.stale ? d->status.stale_reason : NULL},
        {FAB_CHECK_NAME_MAP, "names", "[names]", names[0] != '\0' ? names : NULL},
        {FAB_CHECK_HISTORY_CHANGED, "history", "store", history_check_fault(d->history_check)},
        {FAB_CHECK_METRICS, "file", file, file_fault},
        {FAB_CHECK_METRICS, "listen", listener, listen_fault},
        {FAB_CHECK_COMPONENT, d->component_unfit.path, d->component_unfit.path, unfit},
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (texts[i].what != NULL)
            add_finding(look, texts[i].kind, fab_about_text(texts[i].about), texts[i].where, "%s",
                        texts[i].what);
}

static void find_no_cable(struct look *look)
{
    const uint32_t n = publisher_inventory(look->d->publisher)->n_nodes;
    if (publisher_sees_no_cable(look->d->publisher))
        add_finding(look, FAB_CHECK_NO_CABLE, fab_about_text(""), "the fabric",
                    "the sweep found %u node%s and no cable", n, n == 1 ? "" : "s");
}

/* Add ports that made the last sweep partial. */
static void find_partial(struct look *look)
{
    const struct scheduler_status *status = &look->d->status;
    const bool partial = status->stale && status->code == PMIXFAB_ERR_PARTIAL;
    const uint32_t n = partial ? status->findings.dangling : 0;
    for (uint32_t i = 0; i < n && i < PUBLISH_NAMED; i++) {
        const struct publish_nowhere *named = &status->findings.named[i];
        char more[48] = "";
        if (n > PUBLISH_NAMED && i == PUBLISH_NAMED - 1)
            snprintf(more, sizeof(more), "; and %u more", (unsigned)(n - PUBLISH_NAMED));
        add_finding(look, FAB_CHECK_PARTIAL, fab_about_text(named->port), named->port,
                    "leads nowhere now, or did not answer%s%s%s",
                    named->was[0] != '\0' ? "; served as leading to " : "", named->was, more);
    }
}

/* Add suppressed objects, which change without a publication. */
static void find_suppressed(struct look *look)
{
    struct publisher *publisher = look->d->publisher;
    const struct damped *damped;
    struct moment now;
    moment_now(&now);
    for (uint32_t at = 0; (damped = damping_next(publisher->damping, &at)) != NULL;) {
        const struct damping_end end = damped->key.end, far = damped->key.far;
        const struct fab_about about = {.end = {{end.guid, end.port}, {far.guid, far.port}}};
        const int64_t wall = now.wall - now.running;
        char guid[24];
        snprintf(guid, sizeof(guid), "0x%016" PRIx64, end.guid);
        add_finding(look, FAB_CHECK_FLAPPING, about,
                    damped_what(damped)[0] != '\0' ? damped_what(damped) : guid,
                    "came or went %u times since %s; suppressed until %s", damped->changes,
                    time_text(wall + damped->times[0]).text, time_text(wall + damped->until).text);
    }
    if (look->rc == PMIXFAB_OK)
        look->rc = fab_check_causes(&publisher->current, &publisher->absent.lost, &publisher->findings,
                                    &look->flapping);
}

/* Add subnet managers that are gone, and those that are not the usual ones. */
static void find_managers(struct look *look)
{
    const struct manager *manager;
    const char *probe;
    for (unsigned i = 0; (manager = scheduler_subnet_manager(look->d, i, &probe)) != NULL; i++) {
        const bool gone = manager_is_gone(manager);
        char where[80], name[SCHEDULER_MANAGER_TEXT];
        struct fab_about about = fab_about_text(probe);
        about.state = manager->now.guid;
        snprintf(where, sizeof(where), "subnet of %.60s", probe);
        scheduler_manager_text(look->d, &manager->now, name);
        if (gone)
            add_finding(look, FAB_CHECK_MANAGER_GONE, about, where,
                        "no subnet manager has answered since %s; the last one was %s",
                        time_text(manager->missed_since).text, name);
        else if (manager_is_another(manager))
            add_finding(look, FAB_CHECK_MANAGER_CHANGED, about, where,
                        "%s took over at %s; it is not the usual one", name, time_text(manager->since).text);
    }
}

static void add_growth(struct look *look, const struct watched_port *port)
{
    char where[FAB_PORT_TEXT], peer[FAB_PORT_TEXT], grown[COUNTERS_TEXT];
    struct fab_about about = {.end = {{port->last.guid, port->last.num}}};
    if (!publisher_port_texts(look->d->publisher, port->last.guid, port->last.num, where, peer))
        return;
    for (unsigned c = 0; c < PROBE_COUNTERS; c++)
        about.state |= (uint64_t)(port->grown[c] > 0) << c;
    counter_growth_text(port, grown);
    add_finding(look, FAB_CHECK_COUNTERS, about, where, "%s since %s%s%s", grown,
                time_text(port->grows_since).text, peer[0] != '\0' ? "; its cable leads to " : "", peer);
}

/* Add ports whose error counters grow: any growth after a change, else more than usual. */
static void find_counters(struct look *look)
{
    const struct counter_watch *watch = &look->d->counter_watch, *all = &look->d->all_counters.watch;
    for (uint32_t i = 0; i < watch->n; i++)
        if (watch->ports[i].grows_since != 0)
            add_growth(look, &watch->ports[i]);
    for (uint32_t i = 0; i < all->n; i++) {
        const struct watched_port *port = &all->ports[i], *same;
        if (port->grows_since == 0 || counter_level(port->grown) <= 1)
            continue;
        same = counter_watch_find(watch, port->last.guid, port->last.num);
        if (same == NULL || same->grows_since == 0)
            add_growth(look, port);
    }
}

/* Add files that replace a sweep and are not written any more. */
static void find_old_captures(struct look *look)
{
    const struct config *config = look->d->config;
    char *specs[CONFIG_MAX_LIST];
    struct stat status;
    const unsigned n = config->capture_seconds == 0 ? 0 : sweep_probes(config, specs);
    for (unsigned i = 0; i < n; i++) {
        const char *path = NULL;
        const struct probe *probe = probe_find(specs[i], &path);
        if (probe == NULL || !probe->file || path == NULL || stat(path, &status) != 0 ||
            clock_now(CLOCK_REALTIME) / SECOND - status.st_mtim.tv_sec <= (int64_t)config->capture_seconds)
            continue;
        add_finding(look, FAB_CHECK_OLD_CAPTURE, fab_about_text(path), path, "written at %s",
                    time_text(status.st_mtim.tv_sec * SECOND).text);
    }
}

/* Add generations that were published and are not in the store. */
static void find_history_gone(struct look *look)
{
    const struct publisher *publisher = look->d->publisher;
    for (uint32_t i = 0; i < publisher->n_gone; i++) {
        const struct store_gone *gone = &publisher->gone[i];
        char where[64];
        snprintf(where, sizeof(where), "generations %" PRIu64 " to %" PRIu64, gone->above + 1, gone->newest);
        add_finding(look, FAB_CHECK_HISTORY_GONE, fab_about_text(where), where, "%s", gone->why);
    }
}

/*
 * Return the microseconds for which the last loss of the PMIx server remains a finding; 0 or less: it is
 * not a finding.
 */
static int64_t pmix_told_for(const struct pmix_server_status *pmix)
{
    return pmix->last == 0 ? 0 : pmix->last + PMIX_TOLD - clock_now(CLOCK_REALTIME);
}

static void find_pmix_replaced(struct look *look)
{
    struct fab_about about = fab_about_text("pmix");
    struct pmix_server_status pmix;
    pmix_server_status(look->d->pmix, &pmix);
    about.state = pmix.replaced;
    pmix.why += strncmp(pmix.why, "pmix: ", 6) == 0 ? 6 : 0;
    if (pmix_told_for(&pmix) > 0)
        add_finding(look, FAB_CHECK_PMIX_REPLACED, about, "pmix", "%s at %s; %u since the start", pmix.why,
                    time_text(pmix.last).text, pmix.replaced);
}

static void add_slurm(const char *path, const char *why, bool differs, void *arg)
{
    why += strncmp(why, "slurm: ", 7) == 0 ? 7 : 0;
    add_finding(arg, differs ? FAB_CHECK_SLURM : FAB_CHECK_SLURM_REMARK, fab_about_text(path), path, "%s",
                why);
}

/* Add files that Slurm differs from, and the hold of the exports. */
static void find_exports(struct look *look)
{
    const json_t *hold = exports_held(look->d->exports);
    slurm_rounds_differing(exports_slurm(look->d->exports), add_slurm, look);
    if (hold != NULL)
        add_finding(look, FAB_CHECK_EXPORTS_HELD, fab_about_text("exports"), "exports", "since %s by %s: %s",
                    json_string_value(json_object_get(hold, "since")) ?: "an unknown time",
                    json_string_value(json_object_get(hold, "user")) ?: "somebody",
                    json_string_value(json_object_get(hold, "reason")) ?: "no reason given");
}

#define LARGE_NODES 2000 /* from this size on, work takes too long for callers of the control socket */

static bool serves_large(const struct scheduler *d)
{
    return publisher_inventory(d->publisher)->n_nodes >= LARGE_NODES;
}

void scheduler_beside(struct scheduler *d, uint32_t nodes, void (*run)(void *arg), void *arg)
{
    if (nodes >= LARGE_NODES || serves_large(d))
        control_beside(d->control, run, arg);
    else
        run(arg);
}

/* The input and result of a check on a thread. */
struct checking {
    struct scheduler *d;
    struct fab_err *err;
    int rc;
};

static void check_on_thread(void *arg)
{
    struct checking *checking = arg;
    struct scheduler *d = checking->d;
    uint32_t n;
    const struct node_report *const *reports = host_reports_all(d->nodes, &n);
    checking->rc = publisher_check(d->publisher, reports, n, checking->err);
}

static int check_served(struct scheduler *d, struct fab_err *err)
{
    struct checking checking = {d, err, PMIXFAB_OK};
    d->checking = true;
    if (!d->publisher->checked)
        scheduler_beside(d, 0, check_on_thread, &checking);
    d->checking = false;
    return checking.rc;
}

int scheduler_look(struct scheduler *d, struct fab_err *err)
{
    if (d->checking) /* a caller of `status` during the check */
        return PMIXFAB_OK;
    static void (*const finders[])(struct look * look) = {
        find_texts,    find_no_cable,     find_partial,      find_suppressed,    find_managers,
        find_counters, find_old_captures, find_history_gone, find_pmix_replaced, find_exports};
    struct look look = {.d = d};
    const struct fab_findings *const lists[] = {&d->publisher->findings, &look.flapping, &look.others};
    int rc = check_served(d, err);
    if (rc != PMIXFAB_OK)
        return rc;
    for (size_t i = 0; i < sizeof(finders) / sizeof(finders[0]); i++)
        finders[i](&look);
    rc = look.rc != PMIXFAB_OK
             ? fab_fail(err, look.rc, "check: out of memory")
             : findings_look(d->findings, lists, 3, clock_now(CLOCK_REALTIME), hooks_wanted(d->hooks), err);
    if (look.rc == PMIXFAB_OK && findings_changed(d->findings))
        metrics_write(d->metrics);
    fab_findings_destroy(&look.flapping);
    fab_findings_destroy(&look.others);
    return rc;
}

int scheduler_look_at_hand(struct scheduler *d, struct fab_err *err)
{
    if (d->publisher->checked || d->look == NULL || !serves_large(d))
        return scheduler_look(d, err);
    scheduler_look_soon(d);
    return PMIXFAB_OK;
}

/* ---- schedule -------------------------------------------------------------------------------------- */

#define LOOK_AT_AGE (60 * SECOND) /* of files */

/* Set the timer for findings that change by time. */
static void look_later(struct scheduler *d)
{
    int64_t wait = findings_wait(d->findings, clock_now(CLOCK_REALTIME));
    struct pmix_server_status pmix;
    pmix_server_status(d->pmix, &pmix);
    const int64_t told = pmix_told_for(&pmix);
    if (told > 0 && (wait < 0 || wait > told))
        wait = told;
    if (d->config->capture_seconds > 0 && (wait < 0 || wait > LOOK_AT_AGE))
        wait = LOOK_AT_AGE;
    d->look_soon = false;
    if (wait < 0)
        timer_cancel(d->look);
    else
        timer_after(d->look, (wait < SECOND ? SECOND : wait) / 1000); /* by the wall clock, which may jump */
}

json_t *scheduler_look_now(struct scheduler *d)
{
    struct fab_err err = {""};
    if (d->look == NULL)
        return NULL;
    if (scheduler_look(d, &err) != PMIXFAB_OK)
        log_error("%s", err.text);
    look_later(d);
    return findings_news(d->findings);
}

static void on_look(void *arg)
{
    struct scheduler *d = arg;
    d->look_soon = false;
    if (d->publication != NULL || (d->round && d->sweep == NULL)) {
        scheduler_look_soon(d);
        return;
    }
    hooks_tell(d->hooks, &(struct hook_news){.generation = d->status.generation,
                                             .published = d->status.published,
                                             .findings = scheduler_look_now(d)});
}

uint32_t scheduler_mend(struct scheduler *d)
{
    const uint32_t mended =
        d->publication == NULL ? publisher_mend(d->publisher) : 0; /* otherwise its end does the same */
    return mended;
}

/* A file that the server has mapped may have been truncated: repair it for the next server. */
static void look_at_pmix(void *scheduler)
{
    scheduler_mend(scheduler);
    scheduler_look_soon(scheduler);
}

int scheduler_look_start(struct scheduler *d, struct fab_err *err)
{
    pmix_server_on_replaced(d->pmix, look_at_pmix, d);
    d->look = timer_new(d->base, on_look, d);
    return d->look == NULL ? no_memory(err) : PMIXFAB_OK;
}
