/*
 * child.h - this program again as a child that probes, with a deadline; what it writes comes back as bytes.
 *
 * Libraries that talk to hardware can abort, hang or flood their process. In a child that costs one attempt
 * and nothing else.
 */
#ifndef FABRICD_CHILD_H
#define FABRICD_CHILD_H

#include <event2/event.h>

#include "fabricd/config.h"

struct child_result {
    int code; /* 0: it ended well; else why not */
    struct fab_err err;
    const unsigned char *bytes; /* what it wrote to descriptor 3 */
    size_t size;
    double milliseconds;
};

struct child_order {
    const char *what;              /* for messages: "sweep", "look verbs" */
    char *const *argv;             /* ended by NULL; argv[0] is the program's name */
    const struct config_list *env; /* KEY=VALUE beside the daemon's own environment */
    unsigned deadline;             /* seconds */
    size_t limit;                  /* bytes; more is PMIXFAB_ERR_CORRUPT and the child's end */
    size_t (*total)(const void *head,
                    size_t n); /* may be NULL: the size that a beginning announces, 0: not known */
    void (*done)(struct child_result *result, void *cbdata); /* once, on the loop */
    void *cbdata;
};

struct child;

/* On error `done` is not called. The order need not outlive the call. */
int child_start(struct event_base *base, const struct child_order *order, struct child **out,
                struct fab_err *err);

/* Kill it and forget it; `done` is not called any more. NULL is allowed. */
void child_cancel(struct child *child);

#endif
