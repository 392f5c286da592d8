#include "fabricd/node_mail.h"

#include <pmix.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "fabricd/log.h"

struct letter {
    struct letter *prev, *next;
    struct mail *mail;
    mail_answer_fn fn; /* NULL: news */
    void *cbdata;
    struct mail_answer answer;
    bool connected;
    struct relay_news news;
};

struct mail {
    struct event *bell;
    pthread_mutex_t lock;
    struct letter *box;
    mail_news_fn news_fn;
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
static void queue_post(struct mail *mail, struct letter *letter)
{
    pthread_mutex_lock(&mail->lock);
    DL_APPEND(mail->box, letter);
    pthread_mutex_unlock(&mail->lock);
    event_active(mail->bell, EV_READ, 0);
}

/* On the loop. */
static void queue_on_wakeup(evutil_socket_t fd, short what, void *arg)
{
    struct mail *mail = arg;
    struct letter *letter, *next;
    (void)fd, (void)what;
    pthread_mutex_lock(&mail->lock);
    struct letter *all = mail->box;
    mail->box = NULL;
    pthread_mutex_unlock(&mail->lock);
    DL_FOREACH_SAFE(all, letter, next)
    {
        if (letter->fn != NULL)
            letter->fn(&letter->answer, letter->cbdata);
        else if (mail->news_fn != NULL)
            mail->news_fn(letter->connected, &letter->news, mail->news_cbdata);
        letter_free(letter);
    }
}

int mail_new(struct event_base *base, struct mail **out)
{
    struct mail *mail = *out = calloc(1, sizeof(*mail));
    if (mail == NULL)
        return PMIXFAB_ERR_NOMEM;
    pthread_mutex_init(&mail->lock, NULL);
    mail->bell = event_new(base, -1, EV_PERSIST, queue_on_wakeup, mail);
    if (mail->bell != NULL)
        return PMIXFAB_OK;
    mail_free(mail);
    *out = NULL;
    return PMIXFAB_ERR_NOMEM;
}

void mail_free(struct mail *mail)
{
    struct letter *letter, *next;
    if (mail == NULL)
        return;
    DL_FOREACH_SAFE(mail->box, letter, next)
    {
        letter_free(letter);
    }
    if (mail->bell != NULL)
        event_free(mail->bell);
    pthread_mutex_destroy(&mail->lock);
    free(mail);
}

/* ---- answers ------------------------------------------------------------------------------------ */

static bool copy_data(struct mail_answer *answer, const pmix_pdata_t *data, size_t n)
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
    queue_post(letter->mail, letter);
}

int mail_ask(struct mail *mail, const char *op, const pmix_info_t *info, size_t n, unsigned deadline_ms,
             mail_answer_fn fn, void *cbdata)
{
    struct letter *letter = calloc(1, sizeof(*letter));
    if (letter == NULL)
        return PMIXFAB_ERR_NOMEM;
    *letter = (struct letter){.mail = mail, .fn = fn, .cbdata = cbdata};
    int rc = relay_ask(op, info, n, deadline_ms, queue_post_answer, letter);
    if (rc != PMIXFAB_OK)
        free(letter);
    return rc;
}

pmix_value_t *mail_value(struct mail_answer *answer, const char *key, pmix_data_type_t type)
{
    for (size_t i = 0; i < answer->n; i++)
        if (strcmp(answer->data[i].key, key) == 0 && answer->data[i].value.type == type)
            return &answer->data[i].value;
    return NULL;
}

/* ---- news --------------------------------------------------------------------------------------- */

/* On the relay's thread. */
static void queue_post_news(bool connected, const struct relay_news *news, void *cbdata)
{
    struct mail *mail = cbdata;
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
    queue_post(mail, letter);
}

void mail_on_news(struct mail *mail, mail_news_fn fn, void *cbdata)
{
    mail->news_fn = fn;
    mail->news_cbdata = cbdata;
    relay_on_news(fn == NULL ? NULL : queue_post_news, mail);
}
