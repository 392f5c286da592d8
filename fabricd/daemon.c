#include "fabricd/daemon.h"

#include <event2/thread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fabricd/control_priv.h"
#include "fabricd/log.h"
#include "fabricd/look.h"
#include "fabricd/node.h"
#include "fabricd/options.h"
#include "fabricd/process.h"
#include "fabricd/publish.h"
#include "fabricd/server.h"
#include "fabricd/sweep.h"
#include "fabricd/watch.h"
#include "topo/names.h"

/*
 * One thing at a time: idle -> sweeping -> publishing (pending events, putting in place, updated events) ->
 * idle. What is asked for meanwhile is remembered and done next.
 */
struct daemon {
    const struct config *config;
    struct event_base *base;
    struct publisher *publisher;
    struct control *control;
    struct sweep *sweep;
    struct publication *publication; /* from pending to updated */
    struct event *timer, *signals[3];
    uint64_t number;     /* of the sweep that runs or ran last */
    bool accept_partial; /* of that sweep */
    bool partial;        /* in that sweep, ports lead nowhere that did not before */
    bool again;          /* another one was asked for meanwhile */
    bool again_accept;
    bool serving; /* the PMIx server runs */
    int last_code;
    struct daemon_status status;
};

static void start_sweep(struct daemon *d);

static int64_t now_microseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* ---- for the control socket --------------------------------------------------------------------- */

void daemon_status(const struct daemon *d, struct daemon_status *out)
{
    *out = d->status;
    out->sweeping = d->sweep != NULL;
    out->interval = d->config->interval;
}

struct store *daemon_store(struct daemon *d)
{
    return publisher_store(d->publisher);
}

const struct config *daemon_config(const struct daemon *d)
{
    return d->config;
}

static bool busy(const struct daemon *d)
{
    return d->sweep != NULL || d->publication != NULL;
}

uint64_t daemon_sweep(struct daemon *d, bool accept_partial)
{
    if (!busy(d)) {
        const struct timeval now = {0};
        d->again_accept |= accept_partial;
        d->again = true;
        event_add(d->timer, &now);
        return d->number + 1;
    }
    d->again = true;
    d->again_accept |= accept_partial;
    return d->number + 1;
}

/* ---- the end of a sweep ------------------------------------------------------------------------- */

static void wait_for_next(struct daemon *d)
{
    struct timeval interval = {.tv_sec = d->config->interval};
    if (d->config->once) {
        event_base_loopbreak(d->base);
        return;
    }
    if (d->again)
        interval.tv_sec = 0;
    else if (d->config->interval == 0)
        return;
    event_add(d->timer, &interval);
}

/* The text goes to people and into JSON: what is not printable ASCII does not. */
static void keep_reason(struct daemon *d, const char *text)
{
    snprintf(d->status.stale_reason, sizeof(d->status.stale_reason), "%s", text);
    for (char *p = d->status.stale_reason; *p != '\0'; p++)
        if ((unsigned char)*p < ' ' || (unsigned char)*p > '~')
            *p = '?';
}

/* Everything that a sweep was for is done, or failed: tell those who wait, and go on. */
static void end_sweep(struct daemon *d, int code, const char *message, bool changed)
{
    d->last_code = code;
    d->status.partial = code == PMIXFAB_ERR_PARTIAL || (code == PMIXFAB_OK && d->partial);
    if (code == PMIXFAB_OK) {
        if (d->status.stale)
            log_info("sweep: the fabric answers again");
        d->status.stale = false;
        d->status.stale_since = 0;
    } else {
        keep_reason(d, message);
        log_error("%s", message);
        if (!d->status.stale)
            d->status.stale_since = now_microseconds();
        d->status.stale = true;
    }
    served_set_stale(d->status.stale);
    if (d->control != NULL) {
        const struct swept swept = {.number = d->number,
                                    .code = code,
                                    .message = d->status.stale_reason,
                                    .generation = d->status.generation,
                                    .changed = changed,
                                    .partial = d->status.partial};
        control_swept(d->control, &swept);
    }
    wait_for_next(d);
}

/* ---- publishing --------------------------------------------------------------------------------- */

static void tell(struct daemon *d, bool pending, events_done_fn next)
{
    const struct publication *p = d->publication;
    if (d->control != NULL)
        for (uint32_t i = 0; i < p->n; i++)
            control_event(d->control, pending, &p->planes[i], p->generation);
    if (d->serving)
        events_announce(d->base, pending, p->planes, p->n, p->generation, next, d);
    else
        next(d);
}

static void after_updated(void *arg)
{
    struct daemon *d = arg;
    publication_free(d->publication);
    d->publication = NULL;
    end_sweep(d, PMIXFAB_OK, "", true);
}

/* Handlers in this process have let go of the old content: put the new one in place. */
static void after_pending(void *arg)
{
    struct daemon *d = arg;
    d->status.generation = d->publication->generation;
    d->status.published = d->publication->set->published;
    publish_finish(d->publisher, d->publication);
    watch_published();
    tell(d, false, after_updated);
}

static void publish(struct daemon *d, struct publication *publication)
{
    d->publication = publication;
    log_info("generation %llu: %u change%s, %u plane%s published",
             (unsigned long long)publication->generation, publication->n_changes,
             publication->n_changes == 1 ? "" : "s", publication->n, publication->n == 1 ? "" : "s");
    tell(d, true, after_pending);
}

static void on_swept(struct sweep_result *result, void *arg)
{
    struct daemon *d = arg;
    struct fab_err err = result->err;
    struct publication *publication = NULL;
    struct publish_report report = {0};
    d->sweep = NULL;
    d->status.last_sweep = now_microseconds();
    d->status.sweep_ms = result->milliseconds;
    int rc = result->code;
    if (rc == PMIXFAB_OK) {
        rc = publish_prepare(d->publisher, &result->inv, d->accept_partial, &publication, &report, &err);
        if (rc != PMIXFAB_OK && err.text[0] == '\0')
            fab_fail(&err, rc, "publish: %s", pmixfab_strerror(rc));
        d->partial = report.dangling > 0;
        if (report.nowhere > 0 && d->status.dangling != report.nowhere) /* said once, not at each sweep */
            log_warning("sweep: %u ports are up and lead nowhere, or did not answer", report.nowhere);
        d->status.dangling = report.nowhere;
        d->status.unnamed = report.unnamed;
        if (report.inactive > 0 && d->status.inactive != report.inactive)
            log_warning("sweep: %u cabled ports are not active: does a subnet manager run?", report.inactive);
        d->status.inactive = report.inactive;
    }
    log_debug("sweep %llu: %.1f ms, %s", (unsigned long long)d->number, result->milliseconds,
              pmixfab_strerror(rc));
    if (rc == PMIXFAB_OK && publication != NULL)
        publish(d, publication);
    else
        end_sweep(d, rc, err.text, false);
}

/* Somebody removed the run directory: make it anew, so that callers find us again. Its snapshots follow when
 * the sweep is done. */
static void mend_rundir(struct daemon *d)
{
    struct fab_err err = {""};
    if (d->control == NULL || !process_lost(d->config))
        return;
    process_unlock();
    int rc = process_lock(d->config, &err);
    if (rc == PMIXFAB_OK)
        rc = control_listen(d->control, &err);
    if (rc == PMIXFAB_OK)
        rc = process_write_uri(d->config, server_uri(), &err);
    if (rc == PMIXFAB_OK)
        log_warning("run directory: %s was removed, made anew", d->config->rundir);
    else
        log_error("run directory: it was removed, and cannot be made anew: %s", err.text);
}

static void start_sweep(struct daemon *d)
{
    struct fab_err err = {""};
    mend_rundir(d);
    d->accept_partial = d->again_accept;
    d->again = d->again_accept = false;
    d->number++;
    if (sweep_start(d->base, d->config, on_swept, d, &d->sweep, &err) != PMIXFAB_OK)
        end_sweep(d, PMIXFAB_ERR_IO, err.text, false);
}

/* ---- events of the loop ------------------------------------------------------------------------- */

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct daemon *d = arg;
    (void)fd;
    (void)what;
    if (!busy(d))
        start_sweep(d);
}

static void on_signal(evutil_socket_t signo, short what, void *arg)
{
    struct daemon *d = arg;
    (void)what;
    if (signo == SIGHUP) {
        log_info("SIGHUP: sweeping");
        daemon_sweep(d, false);
        return;
    }
    log_info("%s: stopping", signo == SIGTERM ? "SIGTERM" : "SIGINT");
    event_base_loopbreak(d->base);
}

static int make_events(struct daemon *d, struct fab_err *err)
{
    static const int signals[] = {SIGHUP, SIGTERM, SIGINT};
    evthread_use_pthreads();
    d->base = event_base_new();
    d->timer = d->base == NULL ? NULL : evtimer_new(d->base, on_timer, d);
    bool ok = d->timer != NULL;
    for (size_t i = 0; ok && i < 3; i++) {
        d->signals[i] = evsignal_new(d->base, signals[i], on_signal, d);
        ok = d->signals[i] != NULL && event_add(d->signals[i], NULL) == 0;
    }
    signal(SIGPIPE, SIG_IGN);
    return ok ? PMIXFAB_OK : fab_fail(err, PMIXFAB_ERR_NOMEM, "the event loop cannot be made");
}

/* ---- start and stop ----------------------------------------------------------------------------- */

static void stop(struct daemon *d)
{
    sweep_cancel(d->sweep);
    if (d->publication != NULL &&
        d->publication->set != NULL) /* stored: leave the run directory as the store is */
        publish_finish(d->publisher, d->publication);
    publication_free(d->publication);
    process_remove_uri(d->config);
    control_free(d->control);
    watch_stop();
    if (d->serving)
        server_stop();
    if (d->timer != NULL)
        event_free(d->timer);
    for (size_t i = 0; i < 3; i++)
        if (d->signals[i] != NULL)
            event_free(d->signals[i]);
    publisher_free(d->publisher);
    if (d->base != NULL)
        event_base_free(d->base);
    process_unlock();
}

/* In this order: what was published last is served before anything else is done. */
static int start(struct daemon *d, struct fab_err *err)
{
    int rc = process_lock(d->config, err);
    if (rc == PMIXFAB_OK)
        rc = publisher_new(d->config, &d->publisher, err);
    if (rc == PMIXFAB_OK)
        rc = make_events(d, err);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = store_generation(publisher_store(d->publisher), &d->status.generation, &d->status.published, err);
    if (rc != PMIXFAB_OK || d->config->once)
        return rc;
    if (watch_start(d->base) != PMIXFAB_OK)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    rc = server_start(d->config, err);
    if (rc != PMIXFAB_OK)
        return rc;
    d->serving = true;
    rc = control_new(d->base, d->config, control_scheduler_ops, d, &d->control, err);
    if (rc == PMIXFAB_OK)
        rc = process_write_uri(d->config, server_uri(), err);
    return rc;
}

static int run(const struct config *config)
{
    struct daemon d = {.config = config};
    struct fab_err err = {""};
    int rc = start(&d, &err);
    if (rc != PMIXFAB_OK) {
        log_error("%s", err.text);
        process_ready(false);
        stop(&d);
        return 1;
    }
    process_ready(true);
    if (!config->once)
        log_info("serving generation %llu at %s", (unsigned long long)d.status.generation, server_uri());
    daemon_sweep(&d, false); /* from within the loop, which can be left then */
    event_base_dispatch(d.base);
    rc = config->once ? d.last_code : PMIXFAB_OK;
    stop(&d);
    return rc == PMIXFAB_OK ? 0 : 1;
}

/* The rest of --check-config: what the configuration names must be readable, too. */
static int check_names(const struct config *config)
{
    struct fab_err err = {""};
    struct fab_names *names = NULL;
    if (publisher_names(config, &names, &err) != PMIXFAB_OK) {
        fprintf(stderr, "fabricd: %s\n", err.text);
        return 2;
    }
    fab_names_free(names);
    printf("the configuration is good\n");
    return 0;
}

int fabricd_main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], SWEEP_CHILD_OPTION) == 0)
        return sweep_child(argc, argv);
    if (argc > 1 && strcmp(argv[1], LOOK_CHILD_OPTION) == 0)
        return look_child(argc, argv);
    struct config config;
    config_init(&config);
    int status = 2;
    if (options_parse(argc, argv, &config) == PMIXFAB_OK) {
        log_open(config.log, 0);
        if (config.check_only) {
            status = check_names(&config);
        } else if (config.record != NULL) {
            status = look_record(&config);
        } else if (config.foreground || process_daemonize(&config) == PMIXFAB_OK) {
            status = config.role == ROLE_NODE ? node_run(&config) : run(&config);
        } else {
            status = 1;
        }
    }
    config_destroy(&config);
    return status;
}
