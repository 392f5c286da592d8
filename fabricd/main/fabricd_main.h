/*
 * fabricd_main.h - the room where the program begins: which role, in which order its parts start and stop,
 * and what each is handed of the others.
 */
#ifndef FABRICD_MAIN_FABRICD_MAIN_H
#define FABRICD_MAIN_FABRICD_MAIN_H

#include "fabricd/config/config.h"

/* The whole program behind main(). */
int fabricd_main(int argc, char **argv);

/* Put the backup of the configuration in place of its store; the exit status. What happened is logged. */
int restore_run(const struct config *config);

/* The role scheduler, after the options; its exit status. */
int scheduler_run(struct config *config);

/*
 * The same in its three steps, for a caller that runs the loop itself: begin (on error the reason is in the
 * log), run scheduler_loop() until the role is leaving, end. The configuration outlives the role. *again: the
 * role is to begin anew, after a restore or because the store's disk has room again. Returns the code of the
 * last sweep with
 * --once, else PMIXFAB_OK.
 */
struct role;
struct loop;
struct scheduler;
int scheduler_begin(struct config *config, struct role **out);
struct loop *scheduler_loop(struct role *role);
struct scheduler *scheduler_of(struct role *role);  /* engine/scheduler.h */
struct ingest *scheduler_ingest(struct role *role); /* sources/ingest.h */
bool scheduler_is_leaving(const struct role *role);
int scheduler_end(struct role *role, bool *again);

#endif
