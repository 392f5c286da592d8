/*
 * scheduler.h - the room that decides when to sweep and when to publish: rounds, what is dirty between them,
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

/* What there is to say beside the snapshots. Times are microseconds since 1970, 0: none. */
struct scheduler_status {
    uint64_t generation;
    int64_t published, stale_since, last_sweep;
    double sweep_ms, publish_s; /* publish_s: from the finished sweep to the files in place */
    uint32_t nodes;             /* how many report */
    struct publisher_waits waits;
    bool stale, partial, sweeping;
    bool light_sweeps; /* light sweeps are configured, and there is a probe that can */
    struct monitor_status monitor;
    int64_t dirty_since; /* what waits for its sweep, microseconds since 1970; 0: nothing does */
    char stale_reason[480];
    int code;                       /* of the last sweep */
    struct sweep_findings findings; /* of that */
};
void scheduler_status(const struct scheduler *scheduler, struct scheduler_status *out);

/* The subnet manager of the fabric's probe of this number, and that probe as it is configured; NULL: there
 * are no more. Where nothing is known of it, nothing was missed either. */
const struct manager *scheduler_subnet_manager(const struct scheduler *scheduler, unsigned probe,
                                               const char **spec);
/* "node001 HCA-1[1] (LID 1)" */
#define SCHEDULER_MANAGER_TEXT (FAB_PORT_TEXT + 16)
void scheduler_manager_text(const struct scheduler *scheduler, const struct probe_manager *manager,
                            char text[SCHEDULER_MANAGER_TEXT]);

/*
 * Read the counters of these ports (not needed after the call), and look at them for an hour; what came of it
 * is in scheduler_counters(). done is called once, later, on the loop; not after giving up.
 * PMIXFAB_ERR_NOMEM, _RANGE.
 */
struct counter_job;
typedef void (*counters_read_fn)(int code, const struct fab_err *err, void *cbdata);
int scheduler_read_counters(struct scheduler *scheduler, const struct publish_ports *ports,
                            counters_read_fn done, void *cbdata, struct counter_job **job,
                            struct fab_err *err);
void scheduler_counters_give_up(struct counter_job *job);
const struct counter_watch *scheduler_counters(const struct scheduler *scheduler);
/* The same of all cabled ports, as slow rounds read them; how many rounds are complete. */
const struct counter_watch *scheduler_all_counters(const struct scheduler *scheduler, uint64_t *rounds);

/* What `systemctl status` shows. */
void scheduler_tell_service(const struct scheduler *scheduler);

/*
 * Ask for a sweep that begins after now. sw: one of the switches of this name (or GUID) is enough, and of
 * what was dirty; where that cannot be, everything is swept, and it is told why. NULL: of everything.
 * Returns its number: control_swept() is called with it, or with a higher one, when it is done.
 */
uint64_t scheduler_refresh(struct scheduler *scheduler, const char *sw, bool accept_partial);

/* Look now at all that looks wrong (findings/findings.h); or when nothing has changed for a moment. */
int scheduler_look(struct scheduler *scheduler, struct fab_err *err);
/* The same, but what was found last will do, for a moment, where a look takes long. */
int scheduler_look_at_hand(struct scheduler *scheduler, struct fab_err *err);
void scheduler_look_soon(struct scheduler *scheduler);

/* Put right what is not in the run directory as it is served. Returns of how many planes that was so. */
uint32_t scheduler_mend(struct scheduler *scheduler);

/* As publisher_forget(), now. */
uint32_t scheduler_forget(struct scheduler *scheduler, const char *name, bool *there);

/* What is under way, as "a sweep"; NULL: nothing is, and nothing is due now. */
const char *scheduler_busy(const struct scheduler *scheduler);
/* The newest generation that is in place and announced; 0: none. */
uint64_t scheduler_announced(const struct scheduler *scheduler);

/* "sweeping for 4 s; the last sweep took 8.1 s": after so long, and then each time after so long. */
#define SCHEDULER_FIRST_PROGRESS_MS 2000
#define SCHEDULER_PROGRESS_MS       5000
#define SCHEDULER_PROGRESS_TEXT     96
void scheduler_progress_text(const struct scheduler *scheduler, int64_t since,
                             char text[SCHEDULER_PROGRESS_TEXT]);

#endif
