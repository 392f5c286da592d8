#include "fabricd/node/node_wait.h"

#include <stdlib.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/log.h"

#define WAIT_MS      45000 /* the scheduler answers within 20 s; each munged may need 10 s */
#define ODD_PAUSE_MS 1000  /* before the next question, after an invalid answer */
#define MAX_QUICK    4     /* answers without a pause in a row that are accepted */

struct node_wait {
    struct channel_client *client;
    struct node_wait_calls calls;
    struct timer *again;
    bool connected, asking; /* asking: a question is open */
    bool known;             /* the scheduler has answered on this connection */
    struct channel_wait last;
    int64_t asked, heard; /* times */
    unsigned quick;       /* early answers in a row */
};

static void wait_ask(struct node_wait *w);

static void wait_take(struct node_wait *w, const struct channel_news *news)
{
    const int64_t now = clock_now(CLOCK_MONOTONIC);
    w->quick = now - w->asked < ODD_PAUSE_MS * 1000 ? w->quick + 1 : 0;
    w->heard = now;
    w->known = true;
    w->last = (struct channel_wait){
        .generation = news->generation, .published = news->published, .stale = news->stale};
    w->calls.news(news, w->quick > 0, w->calls.cbdata);
    if (w->quick < MAX_QUICK)
        wait_ask(w);
    else
        wait_at_random(w->again, ODD_PAUSE_MS); /* many early answers, or an error: avoid a tight loop */
}

/* Drop the connection to a scheduler that has not proven itself for so long. */
static void wait_failed(struct node_wait *w, const char *reason)
{
    log_debug("wait: no news from the scheduler: %s", reason);
    if (!w->connected)
        return;
    if (clock_now(CLOCK_MONOTONIC) - w->heard >= WAIT_MS * INT64_C(1000))
        channel_client_reset(w->client);
    else
        wait_at_random(w->again, ODD_PAUSE_MS);
}

static void wait_on_news(struct channel_reply *reply, void *cbdata)
{
    struct node_wait *w = cbdata;
    struct channel_news news = {.n = 0};
    w->asking = false;
    if (reply->code != PMIXFAB_OK)
        wait_failed(w, reply->reason);
    else if (channel_get_news(reply->body, reply->size, &news) != PMIXFAB_OK)
        wait_failed(w, "they are invalid");
    else
        wait_take(w, &news);
    free(news.planes);
}

static void wait_ask(struct node_wait *w)
{
    uint8_t *body = NULL;
    if (!w->connected || w->asking || (body = malloc(CHANNEL_MAX_WORDS)) == NULL)
        return;
    w->last.held = w->calls.acked(w->calls.cbdata);
    w->last.at_once = !w->known;
    w->asked = clock_now(CLOCK_MONOTONIC);
    w->asking = channel_client_ask(w->client, CHANNEL_WAIT, body, channel_put_wait(&w->last, body),
                                   CHANNEL_MAX_NEWS, WAIT_MS, wait_on_news, w) == PMIXFAB_OK;
    timer_cancel(w->again);
}

static void wait_on_again(void *arg)
{
    wait_ask(arg);
}

void node_wait_connected(struct node_wait *w, bool connected)
{
    w->connected = connected;
    w->known = false;
    w->quick = 0;
    w->heard = clock_now(CLOCK_MONOTONIC);
    if (connected)
        wait_ask(w);
}

int node_wait_new(struct event_base *base, struct channel_client *client, const struct node_wait_calls *calls,
                  struct node_wait **out)
{
    struct node_wait *w = *out = calloc(1, sizeof(*w));
    if (w == NULL)
        return PMIXFAB_ERR_NOMEM;
    *w = (struct node_wait){.client = client, .calls = *calls};
    w->again = timer_new(base, wait_on_again, w);
    if (w->again != NULL)
        return PMIXFAB_OK;
    node_wait_free(w);
    *out = NULL;
    return PMIXFAB_ERR_NOMEM;
}

void node_wait_free(struct node_wait *w)
{
    if (w == NULL)
        return;
    timer_free(w->again);
    free(w);
}
