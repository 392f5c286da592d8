/*
 * fabricd_main.h - the start of the program. This room chooses the role, starts and stops its parts in order,
 * and links the parts.
 */
#ifndef FABRICD_MAIN_FABRICD_MAIN_H
#define FABRICD_MAIN_FABRICD_MAIN_H

#include "fabricd/config/config.h"

/* The whole program, called by main(). */
int fabricd_main(int argc, char **argv);

/* Replace the configured store with the configured backup. Returns the exit status; the log has the details.
 */
int restore_run(const struct config *config);

/* Run the role scheduler, after the options; returns its exit status. */
int scheduler_run(struct config *config);

/*
 * The same in three steps, for a caller that runs the loop itself: begin, run scheduler_loop() until the role
 * is leaving, end. If begin fails, the reason is in the log. The configuration outlives the role. *again: the
 * role has to start again, after a restore or because the store's disk has room again. Returns the code of
 * the last sweep with --once, else PMIXFAB_OK.
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
