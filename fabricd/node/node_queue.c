#include "fabricd/node/node_queue.h"

#include <pmix.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "fabricd/base/log.h"
#include "fabricd/base/loop.h"
#include "fabricd/base/timer.h"

struct letter {
    struct letter *prev, *next;
    struct loop_queue *queue;
    loop_queue_answer_fn fn; /* NULL: news */
    void *cbdata;
    struct loop_queue_answer answer;
    bool connected;
    struct relay_news news;
};

struct loop_queue {
    struct timer *bell;
    pthread_mutex_t lock;
    struct letter *box;
    loop_queue_news_fn news_fn;
    void *news_cbdata;
};

static void letter_free(struct letter *letter)
{
    for (size_t i = 0; i < letter->answer.n; i++)
        PMIX_PDATA_DESTRUCT(&letter->answer.data[i]);
    free(letter->answer.data);
    free(letter->news.planes);
    free(letter);
}

/* Any thread. */
static void queue_post(struct loop_queue *queue, struct letter *letter)
{
    pthread_mutex_lock(&queue->lock);
    DL_APPEND(queue->box, letter);
    pthread_mutex_unlock(&queue->lock);
    timer_fire(queue->bell);
}

/* On the loop. */
static void queue_on_wakeup(void *arg)
{
    struct loop_queue *queue = arg;
    struct letter *letter, *next;
    pthread_mutex_lock(&queue->lock);
    struct letter *all = queue->box;
    queue->box = NULL;
    pthread_mutex_unlock(&queue->lock);
    DL_FOREACH_SAFE(all, letter, next)
    {
        if (letter->fn != NULL)
            letter->fn(&letter->answer, letter->cbdata);
        else if (queue->news_fn != NULL)
            queue->news_fn(letter->connected, &letter->news, queue->news_cbdata);
        letter_free(letter);
    }
}

int loop_queue_new(struct event_base *base, struct loop_queue **out)
{
    struct loop_queue *queue = *out = calloc(1, sizeof(*queue));
    if (queue == NULL)
        return PMIXFAB_ERR_NOMEM;
    pthread_mutex_init(&queue->lock, NULL);
    queue->bell = timer_new(base, queue_on_wakeup, queue);
    if (queue->bell != NULL)
        return PMIXFAB_OK;
    loop_queue_free(queue);
    *out = NULL;
    return PMIXFAB_ERR_NOMEM;
}

void loop_queue_free(struct loop_queue *queue)
{
    struct letter *letter, *next;
    if (queue == NULL)
        return;
    DL_FOREACH_SAFE(queue->box, letter, next)
    {
        letter_free(letter);
    }
    timer_free(queue->bell);
    pthread_mutex_destroy(&queue->lock);
    free(queue);
}

/* ---- answers ------------------------------------------------------------------------------------ */

static bool copy_data(struct loop_queue_answer *answer, const pmix_pdata_t *data, size_t n)
{
    answer->data = n == 0 ? NULL : calloc(n, sizeof(*answer->data));
    if (answer->data == NULL)
        return n == 0;
    for (; answer->n < n; answer->n++) {
        pmix_pdata_t *to = &answer->data[answer->n];
        PMIX_PDATA_CONSTRUCT(to);
        memcpy(to->key, data[answer->n].key, sizeof(to->key) - 1);
        if (PMIx_Value_xfer(&to->value, &data[answer->n].value) != PMIX_SUCCESS)
            return false;
    }
    return true;
}

/* On PMIx's thread. */
static void queue_post_answer(pmix_status_t status, const pmix_pdata_t *data, size_t n, void *cbdata)
{
    struct letter *letter = cbdata;
    letter->answer.status = status;
    if (status == PMIX_SUCCESS && !copy_data(&letter->answer, data, n))
        letter->answer.status = PMIX_ERR_NOMEM;
    queue_post(letter->queue, letter);
}

int loop_queue_ask(struct loop_queue *queue, const char *op, const pmix_info_t *info, size_t n,
                   unsigned deadline_ms, loop_queue_answer_fn fn, void *cbdata)
{
    struct letter *letter = calloc(1, sizeof(*letter));
    if (letter == NULL)
        return PMIXFAB_ERR_NOMEM;
    *letter = (struct letter){.queue = queue, .fn = fn, .cbdata = cbdata};
    int rc = relay_ask(op, info, n, deadline_ms, queue_post_answer, letter);
    if (rc != PMIXFAB_OK)
        free(letter);
    return rc;
}

/* ---- news --------------------------------------------------------------------------------------- */

/* On the relay's thread. */
static void queue_post_news(bool connected, const struct relay_news *news, void *cbdata)
{
    struct loop_queue *queue = cbdata;
    struct letter *letter = calloc(1, sizeof(*letter));
    if (letter != NULL) {
        letter->connected = connected;
        letter->news = *news;
        letter->news.planes = calloc(news->n + 1, sizeof(*news->planes));
    }
    if (letter == NULL || letter->news.planes == NULL) {
        log_error("out of memory: news of the scheduler are lost");
        free(letter);
        return;
    }
    if (news->n > 0)
        memcpy(letter->news.planes, news->planes, news->n * sizeof(*news->planes));
    queue_post(queue, letter);
}

void loop_queue_on_news(struct loop_queue *queue, loop_queue_news_fn fn, void *cbdata)
{
    queue->news_fn = fn;
    queue->news_cbdata = cbdata;
    relay_on_news(fn == NULL ? NULL : queue_post_news, queue);
}
