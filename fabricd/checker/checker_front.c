/* checker_front.c - what the front asks the checker: who makes a connection. */
#include <munge.h>
#include <stdlib.h>

#include "fabricd/checker/checker.h"
#include "fabricd/front/front.h"

#define MOST_ASKED                                                                                           \
    8192 /* of 4 KiB at most each; a front that somebody took over asks for as many as it likes */

static unsigned n_asked;

static void front_checker_done(const struct checker_answer *answer, void *cbdata)
{
    uint64_t *number = cbdata;
    n_asked--;
    if (answer != NULL && answer->code == (int)EMUNGE_SUCCESS)
        front_checked(*number, true, answer->uid, answer->gid);
    else
        front_checked(*number, false, 0, 0);
    free(number);
}

static void checker_from_front(const char *credential, uint64_t number, void *cbdata)
{
    uint64_t *copy = n_asked >= MOST_ASKED ? NULL : malloc(sizeof(*copy));
    (void)cbdata;
    if (copy != NULL) {
        *copy = number;
        n_asked++;
        if (checker_ask(CHECKER_CREDENTIAL, credential, front_checker_done, copy))
            return;
        n_asked--;
        free(copy);
    }
    front_checked(number, false, 0, 0);
}

int checker_start(struct event_base *base)
{
    front_on_check(checker_from_front, NULL); /* without a checker it says no */
    return checker_start_alone(base);
}
