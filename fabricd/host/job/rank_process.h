/* rank_process.h - one process of a job: its start, its three streams, its end. On the loop. */
#ifndef FABRICD_HOST_JOB_RANK_PROCESS_H
#define FABRICD_HOST_JOB_RANK_PROCESS_H

#include "fabricd/host/job/jobs.h"

/*
 * Start it; its on_end is called when it has ended, with the status of waitpid(). The standard's error where
 * it cannot be executed.
 */
pmix_status_t process_start(struct event_base *base, struct host_proc *proc, const struct job_order *order);

/* NULL-safe in all its parts; it does not wait for the process. */
void process_close(struct host_proc *proc);

/* One that has ended is left in peace. */
void process_signal(const struct host_proc *proc, int signo);

/* Bytes for its standard input; size 0: that is all. PMIX_ERR_OUT_OF_RESOURCE: it does not read them. */
pmix_status_t process_input(struct host_proc *proc, const void *bytes, size_t size);

#endif
