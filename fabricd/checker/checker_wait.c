/* checker_wait.c - a question of a thread that waits for the answer. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/checker/checker.h"

struct wait_for_answer {
    pthread_mutex_t lock;
    pthread_cond_t come;
    bool over, answered;
    struct checker_opened *out;
};

static void wait_on_answer(const struct checker_answer *answer, void *cbdata)
{
    struct wait_for_answer *wait = cbdata;
    pthread_mutex_lock(&wait->lock);
    if (answer != NULL && (answer->size == 0 || (wait->out->bytes = malloc(answer->size)) != NULL)) {
        if (answer->size > 0)
            memcpy(wait->out->bytes, answer->bytes, answer->size);
        wait->out->answer = *answer;
        wait->out->answer.bytes = NULL;
        wait->out->size = answer->size;
        wait->answered = true;
    }
    wait->over = true;
    pthread_cond_signal(&wait->come);
    pthread_mutex_unlock(&wait->lock);
}

bool checker_ask_and_wait(struct checker *checker, enum checker_kind kind, const char *text,
                          struct checker_opened *out)
{
    struct wait_for_answer wait = {
        .lock = PTHREAD_MUTEX_INITIALIZER, .come = PTHREAD_COND_INITIALIZER, .out = out};
    *out = (struct checker_opened){.bytes = NULL};
    if (!checker_ask(checker, kind, text, wait_on_answer, &wait))
        return false;
    pthread_mutex_lock(&wait.lock);
    while (!wait.over)
        pthread_cond_wait(&wait.come, &wait.lock);
    pthread_mutex_unlock(&wait.lock);
    return wait.answered;
}
