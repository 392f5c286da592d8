/* checker_front.c - what the front asks the checker: who makes a connection. */
#include <munge.h>
#include <stdlib.h>

#include "fabricd/checker/checker_state.h"
#include "fabricd/front/front.h"

#define MOST_ASKED                                                                                           \
    8192 /* of 4 KiB at most each; a front that somebody took over asks for as many as it likes */

struct front_question {
    struct checker *checker;
    uint64_t number;
};

static void front_checker_done(const struct checker_answer *answer, void *cbdata)
{
    struct front_question *question = cbdata;
    struct checker *checker = question->checker;
    checker->n_of_front--;
    if (answer != NULL && answer->code == (int)EMUNGE_SUCCESS)
        front_checked(checker->front, question->number, true, answer->uid, answer->gid);
    else
        front_checked(checker->front, question->number, false, 0, 0);
    free(question);
}

static void checker_from_front(const char *credential, uint64_t number, void *cbdata)
{
    struct checker *checker = cbdata;
    struct front_question *question = checker->n_of_front >= MOST_ASKED ? NULL : malloc(sizeof(*question));
    if (question != NULL) {
        *question = (struct front_question){checker, number};
        checker->n_of_front++;
        if (checker_ask(checker, CHECKER_CREDENTIAL, credential, front_checker_done, question))
            return;
        checker->n_of_front--;
        free(question);
    }
    front_checked(checker->front, number, false, 0, 0);
}

int checker_start(struct event_base *base, struct front *front, struct checker **out)
{
    const int rc = checker_start_alone(base, out);
    if (rc != PMIXFAB_OK)
        return rc;
    (*out)->front = front;
    front_on_check(front, checker_from_front, *out);
    return rc;
}
