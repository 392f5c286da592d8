/* checker_state.h - the checker's state, for checker.c and checker_front.c. */
#ifndef FABRICD_CHECKER_CHECKER_STATE_H
#define FABRICD_CHECKER_CHECKER_STATE_H

#include <pthread.h>

#include "fabricd/base/timer.h"
#include "fabricd/checker/checker.h"
#include "fabricd/process/child.h"
#include "fabricd/process/supervisor.h"

struct checker {
    pthread_mutex_t lock;
    bool running;
    struct asked *waiting, *under_way; /* the latter are with the child */
    unsigned n_under_way;
    uint32_t last;          /* number of a question */
    struct bufferevent *to; /* the child; NULL: there is none */

    /* ---- the loop's alone ---- */
    struct event_base *base;
    struct timer *bell, *look;
    struct child *child;
    bool broken;      /* what it says is no answer */
    bool hung;        /* the last one: until another one runs, each question fails at once */
    int64_t look_due; /* milliseconds of the monotonic clock */
    struct supervisor life;
    struct front *front;
    unsigned n_of_front; /* questions of the front that wait */
};

/* checker_start(), but nothing for the front (checker_front.c is above). */
int checker_start_alone(struct event_base *base, struct checker **out);

#endif
