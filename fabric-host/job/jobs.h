/*
 * jobs.h - the jobs that this host has started, each a namespace of processes on this host. All of it is on
 * the loop, but for jobs_post().
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

#define JOBS_MOST_PROCS 4096 /* of one job */

/* What a process writes, on its way. */
struct host_stream {
    struct host_proc *proc;
    pmix_iof_channel_t channel;
    struct watch *readable; /* NULL: it is closed */
    struct evbuffer *line;  /* begun, and not ended yet */
};

struct host_proc {
    struct host_job *job;
    pmix_rank_t rank;
    uint32_t app;
    void (*on_end)(struct host_proc *proc, int status);
    pid_t pid;  /* 0: it does not run */
    bool group; /* it leads a process group */
    struct watch *ended;
    struct host_stream out[2];
    struct evbuffer *input; /* for its standard input; NULL: nobody writes it */
    struct watch *writable;
    bool input_ends;
    int exit_code;           /* of the process, or 128 and its signal */
    pmix_proc_state_t state; /* for queries */
    bool connected, finalized, aborted;
    bool ending; /* it alone was told to */
};

/* What a job is made of, and how it is treated. */
struct job_order {
    const pmix_app_t *apps;
    size_t n_apps;
    const pmix_info_t *info; /* for all of them: variables */
    size_t n_info;
    const pmix_proc_t *parent; /* NULL: the host itself */
    bool recoverable;          /* the others go on when one fails */
    bool tagged;               /* each line of its output here says whose it is */
    pmix_iof_channel_t away;   /* goes to the one who spawned it, and is not written here */
    bool inherits;             /* rank 0 has our own standard input */
    pmix_rank_t input_to;      /* who is written to by PMIx_IOF_push; PMIX_RANK_INVALID: nobody */
};

struct host_job {
    struct host_job *prev, *next;
    pmix_nspace_t nspace;
    pmix_proc_t parent; /* its nspace is "": the host itself */
    bool recoverable, tagged;
    pmix_iof_channel_t away, pulled; /* to the one who spawned it; to somebody else as well */
    bool ending;                     /* it was told to */
    struct timer *patience;          /* then it is killed */
    pmix_status_t status;            /* of the first that failed */
    int exit_code;
    pmix_rank_t failed; /* PMIX_RANK_UNDEF: none */
    uint32_t n, running;
    struct host_proc *procs; /* by rank */
};

/* The loop; before the server starts. */
void jobs_init(struct event_base *base);

/* Call fn(arg) on the loop, in the order of these calls. From the library's thread. (The other way:
 * pmix/relay/thread.h.) False: no memory, and it is not called. */
bool jobs_post(void (*fn)(void *arg), void *arg);

/* PMIX_SUCCESS: it runs, and nspace is its name. Else the standard's error, and nothing of it is left. */
pmix_status_t jobs_start(const struct job_order *order, pmix_nspace_t nspace);

/* NULL: there is none. */
struct host_job *jobs_find(const char *nspace);
struct host_proc *jobs_find_proc(const pmix_proc_t *proc);
struct host_job *jobs_first(void);

/* Called when a job has ended and everybody was told, or could not be started whole; it is freed then. */
void jobs_on_end(void (*fn)(const struct host_job *job));

/* It ends by SIGTERM, and where that does not help by SIGKILL; or at once by that. */
void jobs_terminate(struct host_job *job);
void jobs_kill(struct host_job *job);

/* The host ends: all jobs do, and jobs_start() says PMIX_ERR_NOT_AVAILABLE. */
void jobs_terminate_all(void);

/* ---- processes: rank_process.c ---- */

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

/* It is one of PMIX_SET_ENVAR, _ADD_, _UNSET_, _PREPEND_ and _APPEND_ENVAR. */
bool variables_is_directive(const pmix_info_t *info);

/* ---- what they write, line by line: rank_output.c ---- */

/* To the one who spawned them where he asked for it, else to our own standard output and error; and to those
 * who pulled it as well. Takes the descriptor, also when it fails. */
bool output_open(struct event_base *base, struct host_stream *stream, struct host_proc *proc,
                 pmix_iof_channel_t channel, int fd);

/* The process has ended: all that is there, and no more. */
void output_drain(struct host_stream *stream);

void output_close(struct host_stream *stream);

/* As if the process had written it; NULL: it is nobody's. */
void output_text(const struct host_proc *proc, pmix_iof_channel_t channel, const char *text, size_t size);

/* We are to end: from now on nobody's reading is waited for but for a while. For signal handlers, too. */
void output_will_end(void);

#endif
