/*
 * jobs.h - the jobs of this host, each a namespace of processes on this host. All on the loop, except
 * jobs_post().
 */
#ifndef FABRIC_HOST_JOB_JOBS_H
#define FABRIC_HOST_JOB_JOBS_H

#include <event2/buffer.h>
#include <event2/event.h>
#include <pmix_server.h>
#include <stdbool.h>
#include <sys/types.h>

#include "fabricd/base/timer.h"
#include "fabricd/base/watch.h"

#define JOBS_MOST_PROCS 4096 /* of a job */

/* An output stream of a process. */
struct host_stream {
    struct host_proc *proc;
    pmix_iof_channel_t channel;
    struct watch *readable; /* NULL: closed */
    struct evbuffer *line;  /* the beginning of a line that is not complete */
};

struct host_proc {
    struct host_job *job;
    pmix_rank_t rank;
    uint32_t app;
    void (*on_end)(struct host_proc *proc, int status);
    pid_t pid;  /* 0: not running */
    bool group; /* it leads a process group */
    struct watch *ended;
    struct host_stream out[2];
    struct evbuffer *input; /* for its standard input; NULL: none */
    struct watch *writable;
    bool input_ends;
    int exit_code;           /* of the process, or 128 plus its signal */
    pmix_proc_state_t state; /* for queries */
    bool connected, finalized, aborted;
    bool ending; /* its end was requested, not that of the whole job */
};

/* The parts and options of a job. */
struct job_order {
    const pmix_app_t *apps;
    size_t n_apps;
    const pmix_info_t *info; /* for all applications: environment variables */
    size_t n_info;
    const pmix_proc_t *parent; /* NULL: the host itself */
    bool recoverable;          /* the other processes continue when one fails */
    bool tagged;               /* each output line on this host begins with the rank of its process */
    pmix_iof_channel_t away;   /* goes to the spawner instead of this host's output */
    bool inherits;             /* rank 0 inherits our standard input */
    pmix_rank_t input_to;      /* target of PMIx_IOF_push; PMIX_RANK_INVALID: none */
};

struct host_job {
    struct host_job *prev, *next;
    pmix_nspace_t nspace;
    pmix_proc_t parent; /* its nspace is "": the host itself */
    bool recoverable, tagged;
    pmix_iof_channel_t away, pulled; /* to the spawner; additionally to other processes */
    bool ending;                     /* its end was requested */
    struct timer *patience;          /* before SIGKILL */
    pmix_status_t status;            /* of the first process that failed */
    int exit_code;
    pmix_rank_t failed; /* PMIX_RANK_UNDEF: none */
    uint32_t n, running;
    struct host_proc *procs; /* by rank */
};

/* Set the loop; before the server starts. */
void jobs_init(struct event_base *base);

/*
 * Let the loop call fn(arg), in the order of the calls. This is called on the library's thread. (For the
 * opposite direction see pmix/relay/thread.h.) False: there is no memory, and fn is not called.
 */
bool jobs_post(void (*fn)(void *arg), void *arg);

/* Start a job. PMIX_SUCCESS: it runs, and nspace is its name. Otherwise an error of the standard, and nothing
 * of the job is left. */
pmix_status_t jobs_start(const struct job_order *order, pmix_nspace_t nspace);

/* Find a job. NULL: there is none. */
struct host_job *jobs_find(const char *nspace);
struct host_proc *jobs_find_proc(const pmix_proc_t *proc);
struct host_job *jobs_first(void);

/* Set the function to call when a job has ended and all receivers were notified, or when it could not be
 * started; it is freed afterwards. */
void jobs_on_end(void (*fn)(const struct host_job *job));

/* End a job by SIGTERM, and by SIGKILL if it does not end in time. jobs_kill() ends it at once by SIGKILL. */
void jobs_terminate(struct host_job *job);
void jobs_kill(struct host_job *job);

/* End all jobs with the host; jobs_start() then returns PMIX_ERR_NOT_AVAILABLE. */
void jobs_terminate_all(void);

/* ---- processes: rank_process.c ---- */

/*
 * Start a process; its on_end is called when it has ended, with the status of waitpid(). Returns an error of
 * the standard if it cannot be executed.
 */
pmix_status_t process_start(struct event_base *base, struct host_proc *proc, const struct job_order *order);

/* Close the process's descriptors, if any; does not wait for the process. */
void process_close(struct host_proc *proc);

/* Send a signal; does nothing if the process has ended. */
void process_signal(const struct host_proc *proc, int signo);

/*
 * Write bytes to the standard input of the process; size 0: end of file. PMIX_ERR_OUT_OF_RESOURCE: the
 * process does not read them.
 */
pmix_status_t process_input(struct host_proc *proc, const void *bytes, size_t size);

/* Return whether it is one of PMIX_SET_ENVAR, _ADD_, _UNSET_, _PREPEND_ and _APPEND_ENVAR. */
bool variables_is_directive(const pmix_info_t *info);

/* ---- output of processes, line by line: rank_output.c ---- */

/* Forward output to the spawner, if that was requested, else to our own standard output and error; and to the
 * processes that pulled it. Takes the descriptor, also on error. */
bool output_open(struct event_base *base, struct host_stream *stream, struct host_proc *proc,
                 pmix_iof_channel_t channel, int fd);

/* Forward the rest after the end of the process. */
void output_drain(struct host_stream *stream);

void output_close(struct host_stream *stream);

/* Forward text as if the process had written it; proc NULL: the text is of no process. */
void output_text(const struct host_proc *proc, pmix_iof_channel_t channel, const char *text, size_t size);

/* Note that the host ends: from now on a slow reader is waited for only a short time. Async-signal-safe. */
void output_will_end(void);

#endif
