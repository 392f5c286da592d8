/*
 * child.h - this program again as a child that probes, with a deadline; what it writes comes back as bytes.
 * Or as one that stays and talks over a socket (pmix_server.h).
 * Or another program, which is told something and hands nothing back. The room process/ is fabricd among
 * other processes: its children, and its own life (process.h).
 *
 * Libraries that talk to hardware can abort, hang or flood their process. In a child that costs one attempt
 * and nothing else. The first part is for the daemon, the second for the child.
 */
#ifndef FABRICD_PROCESS_CHILD_H
#define FABRICD_PROCESS_CHILD_H

#include <event2/event.h>

#include "fabricd/config/config.h"

/* So many lines that another program says on its standard error go into the log. */
#define CHILD_LINES 100

/* ---- the daemon's side -------------------------------------------------------------------------- */

struct child_result {
    int code;             /* 0: it ended well; PMIXFAB_ERR_UNSUPPORTED: it said CHILD_NOTHING; else why not */
    struct fab_err err;   /* one line that begins with the order's `what` */
    int exit_status;      /* -1: it did not end by itself */
    unsigned char *bytes; /* what it wrote to descriptor 3; gone when `done` returns, unless taken (NULL) */
    size_t size;
    double milliseconds;
};

struct child_order {
    const char *what;    /* for messages: "sweep", "scan verbs"; up to 60 bytes */
    const char *program; /* NULL: this one again; else its path, and nothing comes back of it, */
    bool ours;           /* unless that is a program of fabricd's, which does all that a child does */
    char *const *argv;   /* ended by NULL; argv[0] is the program's name */
    const struct config_list *env; /* KEY=VALUE beside the daemon's own environment; may be NULL */
    const char *input;             /* its standard input, kept by the caller until `done`; NULL: empty */
    size_t input_size;
    int channel; /* a socket that is its standard input instead, both ways; 0: none. The caller closes it */
    bool logs;   /* its errors are lines of the log, too; CHILD_LINES a second at most */
    bool many;   /* it may have as many descriptors as the daemon */
    unsigned deadline; /* seconds; 0: it stays until it ends by itself */
    size_t limit;      /* bytes; more is PMIXFAB_ERR_CORRUPT and the child's end */
    /* The size that a beginning announces, 0: not known (yet). May be NULL. */
    size_t (*total)(const void *head, size_t n);
    /*
     * For one that stays: called when bytes have come, with all that are there; returns how many of them are
     * dealt with, which go away. May be NULL. It must not cancel the child.
     */
    size_t (*said)(const unsigned char *bytes, size_t n, void *cbdata);
    void (*done)(struct child_result *result, void *cbdata); /* once, on the loop */
    void *cbdata;
};

struct child;

/* Any number at a time. On error `done` is not called. The order need not outlive the call, but its input. */
int child_start(struct event_base *base, const struct child_order *order, struct child **out,
                struct fab_err *err);

pid_t child_pid(const struct child *child);

/* Kill it and forget it; `done` is not called any more. NULL is allowed. One that was left (below) has its
 * second first. */
void child_cancel(struct child *child);

/* Ask it to end by itself (SIGTERM): then `done` is called as ever. */
void child_ask_to_end(struct child *child);

/*
 * The loop does not run any more, and the child is to end in order, so that what it has open is closed: its
 * pipes are closed, it is asked to end where `ask`, and child_cancel() is going to wait for it until
 * CHILD_LEAVE milliseconds after this call. `done` is not called any more. NULL is allowed.
 */
void child_leave(struct child *child, bool ask);
#define CHILD_LEAVE 1000

/* ---- the child's side --------------------------------------------------------------------------- */

/* Exit status of a child whose source is not there; the reason is a note of the level error, as for others.
 */
#define CHILD_NOTHING 3

/* daemon: its process number as text. From now on this process dies with it, leaves no core file, and writes
 * whole lines to standard error. False: the daemon is gone. */
bool child_begin(const char *daemon);

/* A line for the daemon's log; an error is not logged, it becomes the reason. As struct probe_sink's note. */
void child_note(enum pmixfab_level level, const char *line, void *cbdata);

/* Everything that the daemon gives on standard input; free(*bytes). PMIXFAB_ERR_IO, _NOMEM, _RANGE: more
 * than the limit. */
int child_read(void **bytes, size_t *size, size_t limit);

/* Hand these bytes over. PMIXFAB_ERR_IO: the daemon does not read any more. */
int child_write(const void *bytes, size_t size);

#endif
