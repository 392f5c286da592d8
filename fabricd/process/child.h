/*
 * child.h - run children in one of three ways:
 * - a part of this program as a probing child with a deadline, whose output is read as bytes
 * - a part of this program as a child that stays and uses a socket (pmix_server.h)
 * - another program, which gets input and returns nothing.
 *
 * The room process/ contains fabricd's children and its own process (process.h).
 *
 * Libraries that access hardware can abort, hang or flood their process. In a child, that costs one attempt
 * only. The first part of this file is for the daemon, the second for the child.
 */
#ifndef FABRICD_PROCESS_CHILD_H
#define FABRICD_PROCESS_CHILD_H

#include <event2/event.h>

#include "fabricd/config/config.h"

/* Limit of lines on standard error of another program that are logged. */
#define CHILD_LINES 100

/* ---- the daemon's side -------------------------------------------------------------------------- */

struct child_result {
    int code; /* 0: success; PMIXFAB_ERR_UNSUPPORTED: its exit status was CHILD_NOTHING; else the error */
    struct fab_err err;   /* one line that begins with the order's `what` */
    int exit_status;      /* -1: killed */
    unsigned char *bytes; /* its output on descriptor 3; freed after `done`, unless that sets it to NULL */
    size_t size;
    double milliseconds;
};

struct child_order {
    const char *what;    /* for messages: "sweep", "scan verbs"; up to 60 bytes */
    const char *program; /* NULL: this program; else a path, and there is no output, */
    bool ours;           /* unless it is a program of fabricd that follows the protocol of a child */
    char *const *argv;   /* terminated by NULL; argv[0] is the program's name */
    const struct config_list *env; /* KEY=VALUE added to the daemon's environment; may be NULL */
    const char *input;             /* its standard input, kept by the caller until `done`; NULL: empty */
    size_t input_size;
    int channel; /* a socket as its standard input instead, for both directions; 0: none. The caller closes it
                  */
    bool logs;   /* its error notes go to the log, too; CHILD_LINES a second at most */
    bool many;   /* it gets the daemon's limit of descriptors */
    unsigned deadline; /* seconds; 0: none */
    size_t limit;      /* bytes; a longer output is PMIXFAB_ERR_CORRUPT, and the child is killed */
    /* Return the size that the header announces, 0: not known (yet). May be NULL. */
    size_t (*total)(const void *head, size_t n);
    /*
     * For a child that stays: called when bytes have arrived, with all bytes there are. Returns how many of
     * them are processed; these are removed. May be NULL. It must not cancel the child.
     */
    size_t (*said)(const unsigned char *bytes, size_t n, void *cbdata);
    void (*done)(struct child_result *result, void *cbdata); /* once, on the loop */
    void *cbdata;
};

struct child;

/* Start a child; any number at a time. On error `done` is not called. The order may be freed after the call,
 * but not its input. */
int child_start(struct event_base *base, const struct child_order *order, struct child **out,
                struct fab_err *err);

pid_t child_pid(const struct child *child);

/* Kill the child and free it; `done` is not called any more. NULL allowed. After child_leave() it first has
 * until CHILD_LEAVE to end. */
void child_cancel(struct child *child);

/* Ask the child to end (SIGTERM); `done` is called as usual. */
void child_ask_to_end(struct child *child);

/*
 * Let a child end in order, after the loop has stopped, so that it can close its files. Closes its pipes and,
 * if `ask`, sends SIGTERM. child_cancel() will wait for it until CHILD_LEAVE milliseconds after this call.
 * `done` is not called any more. NULL allowed.
 */
void child_leave(struct child *child, bool ask);
#define CHILD_LEAVE 1000

/* ---- the child's side --------------------------------------------------------------------------- */

/* Exit status of a child whose source is not available; the reason is a note of the level error, as for other
 * errors. */
#define CHILD_NOTHING 3

/* Make this process die with the daemon, leave no core file, and write whole lines to standard error. daemon:
 * its process number as text. False: the daemon is gone. */
bool child_begin(const char *daemon);

/* Write a line for the daemon's log. An error is not logged: it becomes the reason. Has the type of struct
 * probe_sink's note. */
void child_note(enum pmixfab_level level, const char *line, void *cbdata);

/* Read standard input to its end; free(*bytes). PMIXFAB_ERR_IO, _NOMEM, _RANGE: more than the limit. */
int child_read(void **bytes, size_t *size, size_t limit);

/* Write the output for the daemon. PMIXFAB_ERR_IO: the daemon does not read any more. */
int child_write(const void *bytes, size_t size);

#endif
