/*
 * relay.c - the connections of nodes to the scheduler, played: what a node's loop asks of the relay, and what
 * the scheduler's PMIx server answers. Stands in for fabricd/node/node_queue.c, libpmixfab's relay, and
 * the munge of nodes.
 */
#include "pmix/relay/relay.h"

#include <pmix.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "fabricd/base/timer.h"
#include "fabricd/node/node_credential.h"
#include "fabricd/node/node_queue.h"
#include "fabricd/server/server.h"
#include "fabricd/serving/served.h"
#include "pmix/answers/info.h"
#include "test/sim/nodes.h"

#define CONNECTS (100 * SIM_MS)      /* so long does it take */
#define SILENCE  (20 * SIM_SECOND)   /* a subscription, and a question for scan requests, is answered then */
#define NUMBERS  (UINT64_C(1) << 32) /* deliveries of nodes have numbers above */

enum ask_kind { ASK_DELIVER, ASK_SCAN_REQUESTS, ASK_QUERY };

struct ask {
    struct ask *prev, *next;
    struct loop_queue *queue;
    loop_queue_answer_fn fn;
    void *cbdata;
    enum ask_kind kind;
    char *text;      /* the credential; the host; the plane */
    bool snapshot;   /* of the plane */
    uint64_t number; /* known digest, or of the delivery */
    bool sent;
    struct timer *deadline, *step; /* step: it is sent, or answered */
    struct loop_queue_answer answer;
    bool answered;
};

struct loop_queue {
    struct loop_queue *prev, *next;
    struct sim_node *node;
    struct event_base *base;
    struct timer *bell, *connects, *again;
    loop_queue_news_fn news_fn;
    void *news_cbdata;
    bool open, connected;
    struct ask *asks;
};

struct host_here {
    struct host_here *prev, *next;
    char host[64];
    uint64_t held;
    bool scan;
};

static struct {
    struct sim *sim;
    bool up;
    struct loop_queue *queues, *beginning;
    struct host_here *hosts;
    uint64_t number;
} relay;

static struct host_here *host_here(const char *host)
{
    struct host_here *here;
    DL_FOREACH(relay.hosts, here)
    {
        if (strcmp(here->host, host) == 0)
            return here;
    }
    here = calloc(1, sizeof(*here));
    if (here == NULL)
        sim_fail("out of memory");
    snprintf(here->host, sizeof(here->host), "%s", host);
    DL_APPEND(relay.hosts, here);
    return here;
}

void relay_begin(struct sim *s)
{
    struct host_here *here, *next;
    DL_FOREACH_SAFE(relay.hosts, here, next)
    {
        free(here);
    }
    memset(&relay, 0, sizeof(relay));
    relay.sim = s;
    relay.number = NUMBERS;
}

/* ---- answers
 * ------------------------------------------------------------------------------------------------------------
 */

static void ask_free(struct ask *ask)
{
    DL_DELETE(ask->queue->asks, ask);
    timer_free(ask->deadline);
    timer_free(ask->step);
    for (size_t i = 0; i < ask->answer.n; i++)
        PMIX_PDATA_DESTRUCT(&ask->answer.data[i]);
    free(ask->answer.data);
    free(ask->text);
    free(ask);
}

/* On the node's loop. */
static void ask_on_answer(void *arg)
{
    struct ask *ask = arg;
    ask->fn(&ask->answer, ask->cbdata);
    ask_free(ask);
}

static void ask_answer(struct ask *ask, pmix_status_t status)
{
    if (ask->answered)
        return;
    ask->answered = true;
    ask->answer.status = status;
    timer_free(ask->step);
    ask->step = timer_new(ask->queue->base, ask_on_answer, ask);
    timer_fire(ask->step);
}

static pmix_value_t *ask_add(struct ask *ask, const char *key, pmix_data_type_t type)
{
    struct loop_queue_answer *answer = &ask->answer;
    if (answer->data == NULL)
        answer->data = calloc(3, sizeof(*answer->data));
    if (answer->data == NULL)
        sim_fail("out of memory");
    pmix_pdata_t *data = &answer->data[answer->n++];
    PMIX_PDATA_CONSTRUCT(data);
    PMIX_LOAD_KEY(data->key, key);
    data->value.type = type;
    return &data->value;
}

static void answer_query_of(struct ask *ask)
{
    struct served_set *set = served_get(front_served());
    const struct served_plane *plane = NULL;
    for (uint32_t i = 0; set != NULL && i < set->n; i++)
        if (strcmp(set->planes[i]->info.name, ask->text) == 0)
            plane = set->planes[i];
    if (plane != NULL && ask->snapshot) {
        pmix_byte_object_t *bytes = &ask_add(ask, PMIXFAB_KEY_SNAPSHOT, PMIX_BYTE_OBJECT)->data.bo;
        bytes->bytes = malloc(plane->size);
        if (bytes->bytes == NULL)
            sim_fail("out of memory");
        memcpy(bytes->bytes, plane->bytes, plane->size);
        bytes->size = plane->size;
    } else if (plane != NULL) {
        ask_add(ask, PMIXFAB_KEY_GENERATION, PMIX_UINT64)->data.uint64 = plane->info.generation;
        ask_add(ask, FAB_KEY_PUBLISHED, PMIX_INT64)->data.int64 = plane->info.published;
    }
    ask_answer(ask, plane == NULL ? PMIX_ERR_NOT_FOUND : PMIX_SUCCESS);
    served_set_put(set);
}

static void answer_scan_requests(struct ask *ask, bool silent)
{
    struct host_here *here = host_here(ask->text);
    if (!here->scan && here->held == ask->number && !silent)
        return;
    ask_add(ask, RELAY_SCAN_REQUEST, PMIX_STRING)->data.string = strdup(here->scan ? RELAY_SCAN : "");
    ask_add(ask, RELAY_DIGEST, PMIX_UINT64)->data.uint64 = here->held;
    here->scan = false;
    ask_answer(ask, PMIX_SUCCESS);
}

static void ask_on_silence(void *arg)
{
    answer_scan_requests(arg, true);
}

bool relay_answered(uint64_t number, int code, uint64_t held, const char *reason)
{
    struct loop_queue *queue;
    struct ask *ask;
    DL_FOREACH(relay.queues, queue)
    {
        DL_FOREACH(queue->asks, ask)
        {
            if (ask->kind != ASK_DELIVER || ask->number != number)
                continue;
            ask_add(ask, RELAY_CODE, PMIX_INT32)->data.int32 = code;
            ask_add(ask, RELAY_REASON, PMIX_STRING)->data.string = strdup(reason);
            ask_add(ask, RELAY_DIGEST, PMIX_UINT64)->data.uint64 = held;
            ask_answer(ask, PMIX_SUCCESS);
            return true;
        }
    }
    return number > NUMBERS; /* of a node that does not wait any more */
}

/* ---- questions: at the scheduler
 * -------------------------------------------------------------------------------------- */

static void ask_on_sent(void *arg)
{
    struct ask *ask = arg;
    timer_free(ask->step);
    ask->step = NULL;
    switch (ask->kind) {
    case ASK_DELIVER:
        ask->number = ++relay.number;
        if (!front_bring(ask->text, ask->number))
            ask_answer(ask, PMIX_ERR_NOT_AVAILABLE);
        return;
    case ASK_SCAN_REQUESTS:
        answer_scan_requests(ask, false);
        if (ask->answered)
            return;
        ask->step = timer_new(NULL, ask_on_silence, ask);
        timer_after_us(ask->step, SILENCE);
        return;
    case ASK_QUERY:
        answer_query_of(ask);
    }
}

static void ask_send(struct ask *ask)
{
    if (ask->sent || ask->answered || !ask->queue->connected)
        return;
    ask->sent = true;
    ask->step = timer_new(NULL, ask_on_sent, ask);
    timer_fire(ask->step);
}

static void ask_on_deadline(void *arg)
{
    struct ask *ask = arg;
    ask_answer(ask, ask->queue->connected ? PMIX_ERR_TIMEOUT : PMIX_ERR_UNREACH);
}

static void read_question(struct ask *ask, const char *op, const pmix_info_t *info)
{
    if (strcmp(op, RELAY_DELIVER) == 0) {
        ask->kind = ASK_DELIVER;
        ask->text = strdup(info[0].value.data.string);
    } else if (strcmp(op, RELAY_SCAN_REQUESTS) == 0) {
        ask->kind = ASK_SCAN_REQUESTS;
        ask->text = strdup(info[0].value.data.string);
        ask->number = info[1].value.data.uint64;
    } else {
        const pmix_query_t *query = info[0].value.data.darray->array;
        ask->kind = ASK_QUERY;
        ask->text = strdup(query->qualifiers[0].value.data.string);
        ask->snapshot = strcmp(query->keys[0], PMIXFAB_KEY_SNAPSHOT) == 0;
    }
}

int loop_queue_ask(struct loop_queue *queue, const char *op, const pmix_info_t *info, size_t n,
                   unsigned deadline_ms, loop_queue_answer_fn fn, void *cbdata)
{
    struct ask *ask = calloc(1, sizeof(*ask));
    (void)n;
    if (ask == NULL)
        sim_fail("out of memory");
    *ask = (struct ask){.queue = queue, .fn = fn, .cbdata = cbdata};
    read_question(ask, op, info);
    ask->deadline = timer_new(queue->base, ask_on_deadline, ask);
    timer_after(ask->deadline, deadline_ms);
    DL_APPEND(queue->asks, ask);
    ask_send(ask);
    return PMIXFAB_OK;
}

/* ---- connections, and what is told over them
 * -------------------------------------------------------------------------- */

static void queue_on_bell(void *arg)
{
    struct loop_queue *queue = arg;
    struct relay_news news = {.generation = 0};
    struct served_set *set = queue->connected ? served_get(front_served()) : NULL;
    if (set != NULL) {
        news = (struct relay_news){.generation = set->generation,
                                   .published = set->published,
                                   .n = set->n,
                                   .stale = served_is_stale(front_served()),
                                   .planes = calloc(set->n + 1, sizeof(*news.planes))};
        for (uint32_t i = 0; i < set->n; i++) {
            const struct pmixfab_plane *info = &set->planes[i]->info;
            struct relay_plane *plane = &news.planes[i];
            *plane = (struct relay_plane){.index = info->index, .generation = info->generation};
            snprintf(plane->name, sizeof(plane->name), "%s", info->name);
        }
    }
    if (queue->connected)
        timer_after_us(queue->again, SILENCE);
    if (queue->news_fn != NULL && (set != NULL || !queue->connected))
        queue->news_fn(queue->connected, &news, queue->news_cbdata);
    free(news.planes);
    served_set_put(set);
}

void relay_tell(void)
{
    struct loop_queue *queue;
    DL_FOREACH(relay.queues, queue)
    {
        if (queue->connected)
            timer_fire(queue->bell);
    }
}

static void queue_on_connected(void *arg)
{
    struct loop_queue *queue = arg;
    struct ask *ask, *next;
    queue->connected = true;
    timer_fire(queue->bell);
    DL_FOREACH_SAFE(queue->asks, ask, next)
    {
        ask_send(ask);
    }
}

void relay_check(struct loop_queue *queue)
{
    struct ask *ask, *next;
    const bool can = relay.up && queue->open && !node_is_cut(queue->node);
    if (can && !queue->connected)
        timer_after_us(queue->connects, CONNECTS);
    if (can)
        return;
    timer_cancel(queue->connects);
    if (!queue->connected)
        return;
    queue->connected = false;
    timer_cancel(queue->again);
    timer_fire(queue->bell);
    DL_FOREACH_SAFE(queue->asks, ask, next)
    {
        if (ask->sent)
            ask_answer(ask, PMIX_ERR_UNREACH);
    }
}

void relay_up(bool up)
{
    struct loop_queue *queue;
    struct host_here *here;
    relay.up = up;
    DL_FOREACH(relay.queues, queue)
    {
        relay_check(queue);
    }
    DL_FOREACH(relay.hosts, here)
    {
        if (!up)
            here->held = here->scan = 0;
    }
}

/* Those that wait and have something to hear now. */
static void look_at_waiters(void)
{
    struct loop_queue *queue;
    struct ask *ask;
    DL_FOREACH(relay.queues, queue)
    {
        DL_FOREACH(queue->asks, ask)
        {
            if (ask->kind == ASK_SCAN_REQUESTS && ask->sent && !ask->answered)
                answer_scan_requests(ask, false);
        }
    }
}

void relay_held(const char *host, uint64_t digest)
{
    host_here(host)->held = digest;
    look_at_waiters();
}

void relay_scan(const char *host)
{
    struct host_here *here;
    DL_FOREACH(relay.hosts, here)
    {
        if (host == NULL || strcmp(here->host, host) == 0)
            here->scan = true;
    }
    look_at_waiters();
}

/* ---- a node's end of it
 * ----------------------------------------------------------------------------------------------- */

int loop_queue_new(struct event_base *base, struct loop_queue **out)
{
    struct loop_queue *queue = *out = calloc(1, sizeof(*queue));
    if (queue == NULL)
        sim_fail("out of memory");
    *queue = (struct loop_queue){.node = node_running(), .base = base};
    queue->bell = timer_new(base, queue_on_bell, queue);
    queue->again = timer_new(base, queue_on_bell, queue);
    queue->connects = timer_new(NULL, queue_on_connected, queue);
    DL_APPEND(relay.queues, queue);
    node_has_queue(queue->node, queue);
    return PMIXFAB_OK;
}

void loop_queue_free(struct loop_queue *queue)
{
    struct ask *ask, *next;
    if (queue == NULL)
        return;
    DL_FOREACH_SAFE(queue->asks, ask, next)
    {
        ask_free(ask);
    }
    DL_DELETE(relay.queues, queue);
    timer_free(queue->bell);
    timer_free(queue->again);
    timer_free(queue->connects);
    node_has_queue(queue->node, NULL);
    free(queue);
}

void loop_queue_on_news(struct loop_queue *queue, loop_queue_news_fn fn, void *cbdata)
{
    queue->news_fn = fn;
    queue->news_cbdata = cbdata;
    relay.beginning = queue;
}

int pmixfab_relay_open(const char *where)
{
    (void)where;
    relay.beginning->open = true;
    relay_check(relay.beginning);
    return PMIXFAB_OK;
}

void pmixfab_relay_close(void)
{
}

int relay_check_library(bool tool)
{
    (void)tool;
    return PMIXFAB_OK;
}

int server_tool_start(const struct config *config, struct fab_err *err)
{
    (void)config, (void)err;
    return PMIXFAB_OK;
}

void server_stop(void)
{
}

/* ---- munge on the node
 * ------------------------------------------------------------------------------------------------ */

struct credential {
    struct credential *prev, *next;
    struct sim_node *node;
    struct timer *made;
    credential_done_fn done;
    void *cbdata, *bytes;
    size_t size;
};

static struct credential *waiting; /* for a munged that hangs */

static void credential_on_made(void *arg)
{
    struct credential c = *(struct credential *)arg;
    if (node_munge_hangs(c.node))
        return;
    credential_cancel(arg);
    c.done(EMUNGE_SUCCESS, front_credential(node_host(c.node), 0, c.bytes, c.size), c.cbdata);
    free(c.bytes);
}

int credential_make(struct event_base *base, void *bytes, size_t size, credential_done_fn done, void *cbdata,
                    struct credential **out)
{
    struct credential *c = *out = calloc(1, sizeof(*c));
    if (c == NULL)
        sim_fail("out of memory");
    *c = (struct credential){
        .node = node_running(), .done = done, .cbdata = cbdata, .bytes = bytes, .size = size};
    c->made = timer_new(base, credential_on_made, c);
    DL_APPEND(waiting, c);
    timer_fire(c->made);
    return PMIXFAB_OK;
}

void credential_cancel(struct credential *c)
{
    if (c == NULL)
        return;
    DL_DELETE(waiting, c);
    timer_free(c->made);
    free(c);
}

void relay_munge_goes_on(void)
{
    struct credential *c;
    DL_FOREACH(waiting, c)
    {
        timer_fire(c->made);
    }
}
