/*
 * scheduler.h - the room that decides when to sweep and when to publish: rounds, dirty switches between them,
 * reports of nodes, requests of operators. main/ starts and stops it.
 */
#ifndef FABRICD_ENGINE_SCHEDULER_H
#define FABRICD_ENGINE_SCHEDULER_H

#include "fabricd/config/config.h"
#include "fabricd/engine/publish.h"
#include "fabricd/sources/manager.h"
#include "fabricd/sources/monitor.h"
#include "fabricd/sources/port_counters.h"

struct scheduler;

/* The status beside the snapshots. Times are microseconds since 1970, 0: none. */
struct scheduler_status {
    uint64_t generation;
    int64_t published, stale_since, last_sweep;
    double sweep_ms, publish_s; /* publish_s: from the finished sweep to the files in place */
    uint32_t nodes;             /* number of reporting hosts */
    struct publisher_waits waits;
    bool stale, partial, sweeping;
    bool light_sweeps; /* light sweeps are configured, and a probe can make them */
    struct monitor_status monitor;
    int64_t dirty_since; /* of the changes that wait for a sweep, microseconds since 1970; 0: none */
    char stale_reason[480];
    int code;                       /* of the last sweep */
    struct sweep_findings findings; /* of the last sweep */
};
void scheduler_status(const struct scheduler *scheduler, struct scheduler_status *out);

/*
 * Return the state of the subnet manager for the fabric probe of this number, and the configured probe;
 * NULL: no such probe. A manager without data has not missed a query.
 */
const struct manager *scheduler_subnet_manager(const struct scheduler *scheduler, unsigned probe,
                                               const char **spec);
/* "node001 HCA-1[1] (LID 1)" */
#define SCHEDULER_MANAGER_TEXT (FAB_PORT_TEXT + 16)
void scheduler_manager_text(const struct scheduler *scheduler, const struct probe_manager *manager,
                            char text[SCHEDULER_MANAGER_TEXT]);

/*
 * Read the counters of these ports (may be freed after the call), and watch them for an hour; the result is
 * in scheduler_counters(). done is called once, later, on the loop; not after the job was cancelled.
 * PMIXFAB_ERR_NOMEM, _RANGE.
 */
struct counter_job;
typedef void (*counters_read_fn)(int code, const struct fab_err *err, void *cbdata);
int scheduler_read_counters(struct scheduler *scheduler, const struct publish_ports *ports,
                            counters_read_fn done, void *cbdata, struct counter_job **job,
                            struct fab_err *err);
void scheduler_counters_give_up(struct counter_job *job);
const struct counter_watch *scheduler_counters(const struct scheduler *scheduler);
/* Return the counters of all cabled ports from the slow rounds. rounds: number of complete rounds. */
const struct counter_watch *scheduler_all_counters(const struct scheduler *scheduler, uint64_t *rounds);

/* Send the status line of `systemctl status`. */
void scheduler_tell_service(const struct scheduler *scheduler);

/*
 * Request a sweep that begins after now. With `sw`, a sweep of the switches of this name (or GUID) and of the
 * dirty switches is sufficient. If that is not possible, everything is swept, and the reason is in the
 * answer. With NULL, everything is swept. Returns the number of the sweep. When the sweep is done,
 * control_swept() is called with this number or a higher one.
 */
uint64_t scheduler_refresh(struct scheduler *scheduler, const char *sw, bool accept_partial);

/* Check for findings now (engine/findings.h). The second function checks a moment after the last change. */
int scheduler_look(struct scheduler *scheduler, struct fab_err *err);
/* The same, but use the last findings if a check would take long. */
int scheduler_look_at_hand(struct scheduler *scheduler, struct fab_err *err);
void scheduler_look_soon(struct scheduler *scheduler);

/* Repair the files of the run directory that differ from the served set. Returns the number of planes
 * repaired. */
uint32_t scheduler_mend(struct scheduler *scheduler);

/* Call publisher_forget() and publish. */
uint32_t scheduler_forget(struct scheduler *scheduler, const char *name, bool *there);

/* Return the running activity, such as "a sweep"; NULL: no activity runs or is due. */
const char *scheduler_busy(const struct scheduler *scheduler);
/* Return the newest generation that is in place and announced; 0: no generation is. */
uint64_t scheduler_announced(const struct scheduler *scheduler);

/* "sweeping for 4 s; the last sweep took 8.1 s": first after this time, then at this interval. */
#define SCHEDULER_FIRST_PROGRESS_MS 2000
#define SCHEDULER_PROGRESS_MS       5000
#define SCHEDULER_PROGRESS_TEXT     96
void scheduler_progress_text(const struct scheduler *scheduler, int64_t since,
                             char text[SCHEDULER_PROGRESS_TEXT]);

#endif
