/*
 * checker.h - the process that opens munge credentials and resolves names, because both may hang.
 *
 * munged and name servers are asked with calls that block, for as long as those like. A child does that: it
 * is asked with a deadline, and one that keeps a question beyond it is killed and replaced. It has no store,
 * no descriptor but its pipes, no capabilities, and cannot gain privileges. This header is fabricd's side;
 * side/ is the child's. It is started with the first question.
 */
#ifndef FABRICD_CHECKER_CHECKER_H
#define FABRICD_CHECKER_CHECKER_H

#include <event2/event.h>
#include <stdbool.h>

#include "fabricd/checker/question.h"

/* The first argument of the child's command line. */
#define CHECKER_CHILD_OPTION "--checker-child"
int checker_child(int argc, char **argv);

#define CHECKER_PATIENCE_MS 3000  /* for a credential: where no munged listens its library tries for 2.3 s */
#define CHECKER_NAME_MS     10000 /* for a name: resolvers have deadlines of their own, mostly below this */

/* On the loop, whose events other threads may use. What the front asks is answered from here on, too.
 * PMIXFAB_ERR_NOMEM. */
struct checker;
struct front;
int checker_start(struct event_base *base, struct front *front, struct checker **out);
/* Who waits hears that there is no answer; before the threads end that ask. NULL allowed. */
void checker_stop(struct checker *checker);
void checker_free(struct checker *checker); /* when no thread asks any more. NULL allowed */

/* On the loop, once. answer: gone when this returns; NULL: none came in time, ask again later. */
typedef void (*checker_done_fn)(const struct checker_answer *answer, void *cbdata);

/* Any thread. False: there is no checker, and `done` is not called. */
bool checker_ask(struct checker *checker, enum checker_kind kind, const char *text, checker_done_fn done,
                 void *cbdata);

/* The same for a thread that waits, not the loop's. bytes: free(). False: no answer. */
struct checker_opened {
    struct checker_answer answer; /* without bytes */
    void *bytes;
    size_t size;
};
bool checker_ask_and_wait(struct checker *checker, enum checker_kind kind, const char *text,
                          struct checker_opened *out);

struct checker_status {
    pid_t pid;         /* 0: none runs now, nothing was asked */
    unsigned replaced; /* those that ended and were not meant to */
    int64_t last;      /* when the last of them did, microseconds since 1970 */
    const char *why;   /* and how; "". Valid until the next one ends */
};
void checker_status(const struct checker *checker, struct checker_status *status);

#endif
