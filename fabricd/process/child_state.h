/* child_state.h - what child.c (what a child says, and its end) and child_start.c share. */
#ifndef FABRICD_PROCESS_CHILD_STATE_H
#define FABRICD_PROCESS_CHILD_STATE_H

#include <sys/types.h>

#include "fabricd/base/timer.h"
#include "fabricd/base/watch.h"
#include "fabricd/process/child.h"

struct child {
    char what[64];
    pid_t pid;
    int data_fd, text_fd, input_fd; /* -1: none */
    struct watch *data_watch, *text_watch, *input_watch, *child_watch;
    struct timer *deadline;
    struct child_order order; /* its input is what the child has not read yet; argv and env are gone */
    int64_t start, left;      /* microseconds; left: where child_leave() was called */
    unsigned lines; /* of another program that were logged; of one whose errors are, in this second: */
    int64_t second;

    unsigned char *bytes; /* what came through the pipe */
    size_t size, cap;
    bool ended;  /* the pipe is at its end */
    bool reaped; /* the child was waited for */
    bool leaves; /* it is to end by itself */
    bool timed_out;
    bool oversize;
    int status;
    char line[400]; /* the line of standard error that is being read */
    size_t line_len;
    char reason[400];  /* the last error that the child gave */
    char chatter[200]; /* the last line of a library's */
};

void child_free(struct child *child);
void child_close(int *fd);

/* Hear of its end. */
int child_watch(struct child *child, struct event_base *base);

/* Its pipes are open, non-blocking, and on the loop from here on. */
int child_listen(struct child *child, struct event_base *base);

#endif
