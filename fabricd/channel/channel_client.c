/* channel_client.c - a node's end: a connection to a scheduler, and the requests on it. */
#include <netdb.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>
#include <xxhash.h>

#include "fabricd/base/address.h"
#include "fabricd/base/clock.h"
#include "fabricd/base/log.h"
#include "fabricd/base/timer.h"
#include "fabricd/channel/channel_priv.h"
#include "topo/base/backoff.h"

#define CONNECT_MS     5000  /* timeout of an address */
#define GREET_MS       25000 /* timeout of the mutual verification: each munged may need 10 s */
#define FIRST_PAUSE_MS 50
#define MAX_PAUSE_MS   5000

#define NOT_REACHED "the scheduler cannot be reached"
#define NOT_IN_TIME "the scheduler did not answer in time"
#define OWN_MUNGED  "munged of this host did not answer in time"

enum state { NO_CONNECTION, GREETING, CONNECTED };

struct asked {
    struct exchange x; /* number 0: waits for a connection */
    uint8_t *body;     /* of a waiting request */
    size_t size, most;
    bool sent, answered; /* answered: munge checks the answer */
    struct timer *deadline;
    channel_reply_fn fn;
    void *cbdata;
};

struct channel_client {
    struct link link;
    struct event_base *base;
    const struct config *config;
    struct channel_client_calls calls;
    uid_t scheduler_uid;
    struct address_place places[ADDRESS_MOST_PLACES];
    uint64_t told[ADDRESS_MOST_PLACES]; /* hash of the last reported failure of each place */
    unsigned n_places, at;
    struct credential_addresses addresses; /* of the current place */
    uint32_t next_address;
    enum state state;
    struct credential_job *resolving;
    uint32_t last; /* number of the last request */
    struct timer *pause, *late;
    struct backoff again; /* milliseconds */
};

static void client_try_next(struct channel_client *client);

/* ---- requests ------------------------------------------------------------------------------------- */

static void asked_end(struct asked *asked, const struct channel_reply *what)
{
    struct channel_reply reply = *what;
    const channel_reply_fn fn = asked->fn;
    void *cbdata = asked->cbdata;
    DL_DELETE(asked->x.link->exchanges, &asked->x);
    credential_cancel(asked->x.job);
    timer_free(asked->deadline);
    free(asked->body);
    free(asked);
    if (fn != NULL)
        fn(&reply, cbdata);
    free(reply.body);
}

/* Fail a request for a local reason. */
static void asked_fail(struct asked *asked, int code, const char *reason)
{
    asked_end(asked, &(struct channel_reply){.code = code, .reason = reason, .away = true});
}

static void asked_on_deadline(void *arg)
{
    struct asked *asked = arg;
    if (asked->x.job != NULL)
        asked_fail(asked, PMIXFAB_ERR_TIMEOUT, OWN_MUNGED);
    else if (asked->x.number != 0)
        asked_fail(asked, PMIXFAB_ERR_TIMEOUT, NOT_IN_TIME);
    else
        asked_fail(asked, PMIXFAB_ERR_UNREACH, NOT_REACHED);
}

/* ---- end of a connection, or of an attempt -------------------------------------------------------- */

/* Return the oldest request that was sent. */
static struct asked *client_first(const struct channel_client *client)
{
    struct exchange *exchange;
    DL_FOREACH(client->link.exchanges, exchange)
    {
        if (exchange->number != 0) /* NOLINT(clang-analyzer-unix.Malloc): a freed one is not in the list */
            return (struct asked *)exchange;
    }
    return NULL;
}

static void client_close(struct channel_client *client)
{
    struct asked *asked;
    const bool was = client->state == CONNECTED;
    client->state = NO_CONNECTION;
    credential_cancel(client->resolving);
    client->resolving = NULL;
    link_close(&client->link);
    timer_cancel(client->late);
    if (was)
        client->calls.connected(false, client->calls.cbdata);
    while ((asked = client_first(client)) != NULL) /* the callee may send a new request */
        asked_fail(asked, PMIXFAB_ERR_UNREACH, NOT_REACHED);
}

static void client_pause(struct channel_client *client)
{
    const int64_t pause = backoff_next(&client->again);
    client->at = 0;
    client->addresses.n = client->next_address = 0;
    /* spreads the reconnections of many nodes */
    timer_after(client->pause, pause / 2 + chance_below((uint32_t)pause + 1));
}

/* Report a failure of the current place. */
static void client_tell(struct channel_client *client, int code, const char *why)
{
    const struct address_place *place = &client->places[client->at];
    char reason[640];
    snprintf(reason, sizeof(reason), "scheduler %s port %u: %s", place->host, (unsigned)place->port, why);
    const uint64_t hash = XXH3_64bits(reason, strlen(reason));
    if (client->told[client->at] != hash)
        client->calls.failed(code, reason, client->calls.cbdata);
    client->told[client->at] = hash;
}

/* Handle a failed attempt, or a lost connection. */
static void client_fail(struct channel_client *client, int code, const char *why)
{
    char reason[512];
    const bool was = client->state == CONNECTED;
    snprintf(reason, sizeof(reason), "%s", why); /* `why` may be in the frame */
    client_close(client);
    client_tell(client, code, reason);
    if (was)
        client_pause(client);
    else
        client_try_next(client);
}

void channel_client_reset(struct channel_client *client)
{
    client_close(client);
    client_pause(client);
}

static void client_on_late(void *arg)
{
    client_fail(arg, PMIXFAB_ERR_TIMEOUT, "it did not answer in time");
}

/* ---- incoming answers ----------------------------------------------------------------------------- */

static struct asked *client_find(const struct link *link, uint32_t number)
{
    struct exchange *exchange;
    DL_FOREACH(link->exchanges, exchange)
    {
        struct asked *asked = (struct asked *)exchange;
        if (asked->sent && !asked->answered && exchange->number == number)
            return asked;
    }
    return NULL;
}

/* A channel_allow_fn. */
static int client_allow(const struct channel_head *head, void *cbdata, struct fab_err *err)
{
    const struct channel_client *client = cbdata;
    const struct asked *asked = client_find(&client->link, head->request);
    size_t most = CHANNEL_MAX_WORDS;
    if (head->type != CHANNEL_REFUSED) {
        if (client->state != CONNECTED && (asked == NULL || head->type != CHANNEL_WELCOME))
            return fab_fail(err, PMIXFAB_ERR_FOREIGN, "it sends no credential");
        if (asked == NULL) /* the request has timed out */
            return head->request <= client->last
                       ? CHANNEL_SKIP
                       : fab_fail(err, PMIXFAB_ERR_FOREIGN, "it sends an answer without a request");
        if (head->type != (asked->x.type | CHANNEL_IS_ANSWER))
            return fab_fail(err, PMIXFAB_ERR_FOREIGN, "its answer does not match the request");
        most = asked->most;
    }
    if (head->body > most)
        return fab_fail(err, PMIXFAB_ERR_RANGE, "its answer has %u bytes: at most %zu are accepted",
                        (unsigned)head->body, most);
    return PMIXFAB_OK;
}

static int client_take_refusal(struct channel_client *client, const struct channel_frame *frame,
                               struct fab_err *err)
{
    struct channel_outcome outcome;
    struct asked *asked = client_find(&client->link, frame->head.request);
    if (channel_get_outcome(frame->body, frame->head.body, &outcome) != PMIXFAB_OK ||
        outcome.code == PMIXFAB_OK)
        return fab_fail(err, PMIXFAB_ERR_FOREIGN, "it refuses without a reason");
    if (frame->head.request == 0 || client->state != CONNECTED)
        return fab_fail(err, outcome.code, "%s", outcome.reason);
    if (asked != NULL)
        asked_end(asked, &(struct channel_reply){.code = outcome.code, .reason = outcome.reason});
    return CHANNEL_SKIP;
}

/* One of link_calls. */
static int client_on_came(const struct channel_frame *frame, struct link *link, struct exchange **exchange,
                          struct fab_err *err)
{
    struct asked *asked = client_find(link, frame->head.request);
    if (frame->head.type == CHANNEL_REFUSED)
        return client_take_refusal((struct channel_client *)link, frame, err);
    if (asked == NULL || frame->body == NULL)
        return CHANNEL_SKIP;
    if (asked->x.type == CHANNEL_HELLO) { /* its nonce seals the answer, too */
        if (frame->head.body != CHANNEL_NONCE)
            return fab_fail(err, PMIXFAB_ERR_FOREIGN, "it sends no credential");
        memcpy(link->nonces.scheduler, frame->body, CHANNEL_NONCE);
    }
    asked->answered = true;
    *exchange = &asked->x;
    return PMIXFAB_OK;
}

/* Check that the credential was made by a scheduler. */
static int client_check_maker(const struct channel_client *client, const struct credential_result *result,
                              struct fab_err *err)
{
    const int rc = credential_explain(result, "this host", err);
    const uid_t uid = result->maker.uid;
    if (rc != PMIXFAB_OK || uid == 0 || uid == geteuid() || uid == client->scheduler_uid)
        return rc;
    return fab_fail(
        err, PMIXFAB_ERR_PERM,
        "uid %u on %s answers, which is neither root nor the scheduler's user ([node] scheduler_user)",
        (unsigned)uid, credential_address_text(result->maker.origin).text);
}

/* One of link_calls. */
static void client_on_opened(struct exchange *exchange, const struct credential_result *result,
                             struct channel_bytes *body)
{
    struct asked *asked = (struct asked *)exchange;
    struct channel_client *client = (struct channel_client *)exchange->link;
    const struct channel_reply reply = {.reason = "", .body = body->bytes, .size = body->size};
    struct fab_err err = {""};
    const int rc = client_check_maker(client, result, &err);
    if (rc == PMIXFAB_OK) {
        body->bytes = NULL;
        asked_end(asked, &reply);
    } else if (rc == PMIXFAB_ERR_UNREACH || rc == PMIXFAB_ERR_NOMEM) {
        asked_fail(asked, rc, err.text);
    } else {
        client_fail(client, rc, err.text);
    }
}

/* One of link_calls. */
static void client_on_ended(struct link *link, int code, const char *why)
{
    client_fail((struct channel_client *)link, code, why);
}

/* One of stream_calls. */
static void client_on_lost(const char *why, void *cbdata)
{
    client_fail(cbdata, PMIXFAB_ERR_UNREACH, why);
}

/* ---- outgoing requests ---------------------------------------------------------------------------- */

/* One of link_calls. */
static void client_on_sealed(struct exchange *exchange, const struct credential_result *result)
{
    struct asked *asked = (struct asked *)exchange;
    char text[200];
    asked->sent = result->munge == EMUNGE_SUCCESS;
    if (asked->sent)
        return;
    snprintf(text, sizeof(text), "munge made no credential: %s: check that munged runs on this host",
             munge_strerror(result->munge));
    asked_fail(asked, PMIXFAB_ERR_IO, text);
}

static void asked_send(struct asked *asked)
{
    struct channel_client *client = (struct channel_client *)asked->x.link;
    const struct channel_body body = channel_body_of(asked->body, asked->size);
    asked->body = NULL;
    asked->x.number = ++client->last;
    link_send(&asked->x, asked->x.type, &body); /* if munge cannot be asked, the request times out */
}

int channel_client_ask(struct channel_client *client, enum channel_type type, void *body, size_t size,
                       size_t most, unsigned deadline_ms, channel_reply_fn fn, void *cbdata)
{
    struct asked *asked = calloc(1, sizeof(*asked));
    if (asked == NULL || (asked->deadline = timer_new(client->base, asked_on_deadline, asked)) == NULL) {
        free(asked);
        free(body);
        return PMIXFAB_ERR_NOMEM;
    }
    asked->x = (struct exchange){.link = &client->link, .type = (uint8_t)type};
    asked->body = body;
    asked->size = size;
    asked->most = most;
    asked->fn = fn;
    asked->cbdata = cbdata;
    DL_APPEND(client->link.exchanges, &asked->x);
    timer_after(asked->deadline, deadline_ms);
    if (client->state == CONNECTED || type == CHANNEL_HELLO)
        asked_send(asked);
    return PMIXFAB_OK;
}

/* ---- connecting ----------------------------------------------------------------------------------- */

static void client_on_welcome(struct channel_reply *reply, void *cbdata)
{
    struct channel_client *client = cbdata;
    struct exchange *exchange;
    if (client->state != GREETING)
        return;
    if (reply->code != PMIXFAB_OK) {
        client_fail(client, reply->code, reply->reason);
        return;
    }
    client->state = CONNECTED;
    client->told[client->at] = 0;
    backoff_reset(&client->again);
    client->calls.connected(true, client->calls.cbdata);
    DL_FOREACH(client->link.exchanges, exchange)
    {
        if (exchange->number == 0 && client->state == CONNECTED)
            asked_send((struct asked *)exchange);
    }
}

/* One of stream_calls. */
static void client_on_connected(void *cbdata)
{
    struct channel_client *client = cbdata;
    struct channel_hello hello = {.host = ""};
    uint8_t *body = malloc(CHANNEL_MAX_WORDS);
    client->state = GREETING;
    client->last = 0;
    timer_cancel(client->late);
    chance_bytes(hello.nonce, CHANNEL_NONCE);
    memcpy(client->link.nonces.node, hello.nonce, CHANNEL_NONCE);
    snprintf(hello.host, sizeof(hello.host), "%s", client->config->host);
    if (body == NULL ||
        channel_client_ask(client, CHANNEL_HELLO, body, channel_put_hello(&hello, body), CHANNEL_MAX_WORDS,
                           GREET_MS, client_on_welcome, client) != PMIXFAB_OK)
        client_fail(client, PMIXFAB_ERR_NOMEM, "out of memory");
}

static void client_connect(struct channel_client *client)
{
    static const struct link_calls calls = {{client_on_connected, link_on_bytes, NULL, client_on_lost},
                                            client_allow,
                                            client_on_came,
                                            client_on_opened,
                                            client_on_sealed,
                                            client_on_ended};
    union credential_address *to = &client->addresses.at[client->next_address++];
    const uint16_t port = htons(client->places[client->at].port);
    if (to->any.sa_family == AF_INET6)
        to->v6.sin6_port = port;
    else
        to->v4.sin_port = port;
    timer_after(client->late, CONNECT_MS);
    client->link.calls = &calls;
    client->link.stream = stream_connect(client->base, to, &calls.stream, client);
    if (client->link.stream == NULL)
        timer_after(client->late, 0);
}

static void client_on_resolved(const struct credential_result *result, void *cbdata)
{
    struct channel_client *client = cbdata;
    char text[300];
    client->resolving = NULL;
    if (result->error != 0 || result->addresses->n == 0) {
        snprintf(text, sizeof(text), "this host cannot resolve the name (%s)",
                 gai_strerror(result->error != 0 ? result->error : EAI_NONAME));
        client_fail(client, PMIXFAB_ERR_UNREACH, text);
        return;
    }
    client->addresses = *result->addresses;
    client->next_address = 0;
    client_connect(client);
}

static void client_resolve(struct channel_client *client)
{
    client->addresses.n = client->next_address = 0;
    client->resolving = credential_resolve(client->link.worker, client->places[client->at].host, AF_UNSPEC,
                                           client_on_resolved, client);
    if (client->resolving == NULL)
        client_pause(client);
}

/* Try the next address of this place, or the next place, or start a pause. */
static void client_try_next(struct channel_client *client)
{
    if (client->next_address < client->addresses.n) {
        client_connect(client);
    } else if (client->at + 1 < client->n_places) {
        client->at++;
        client_resolve(client);
    } else {
        client_pause(client);
    }
}

static void client_on_pause(void *arg)
{
    client_resolve(arg);
}

void channel_client_start(struct channel_client *client)
{
    client_resolve(client);
}

/* ---- creation and end ----------------------------------------------------------------------------- */

/* Find the user who may run the scheduler beside root: a name or a number. Default: fabricd, if that user
 * exists. */
static int find_scheduler_user(struct channel_client *client, struct fab_err *err)
{
    const char *name = client->config->scheduler_user;
    const struct passwd *user = getpwnam(name == NULL ? "fabricd" : name);
    char *end;
    client->scheduler_uid = user != NULL ? user->pw_uid : geteuid();
    if (user != NULL || name == NULL)
        return PMIXFAB_OK;
    const unsigned long uid = strtoul(name, &end, 10);
    if (end[0] != '\0' || uid >= UINT32_MAX)
        return fab_fail(err, PMIXFAB_ERR_NOTFOUND,
                        "[node] scheduler_user: there is no user \"%.60s\" on this host: give the user's "
                        "number on the scheduler's host",
                        name);
    client->scheduler_uid = (uid_t)uid;
    return PMIXFAB_OK;
}

int channel_client_new(struct event_base *base, const struct config *config,
                       const struct channel_client_calls *calls, struct channel_client **out,
                       struct fab_err *err)
{
    struct channel_client *client = *out = calloc(1, sizeof(*client));
    int rc = PMIXFAB_ERR_NOMEM;
    if (client == NULL)
        return fab_fail(err, rc, "out of memory");
    client->base = base;
    client->config = config;
    client->calls = *calls;
    client->again = (struct backoff){.first = FIRST_PAUSE_MS, .most = MAX_PAUSE_MS};
    client->link.worker = credential_worker_new(base);
    client->pause = timer_new(base, client_on_pause, client);
    client->late = timer_new(base, client_on_late, client);
    if (client->link.worker == NULL || client->pause == NULL || client->late == NULL)
        fab_fail(err, rc, "out of memory");
    else if ((rc = address_places(config->scheduler, CONFIG_NODES_PORT, client->places, &client->n_places,
                                  err)) == PMIXFAB_OK)
        rc = find_scheduler_user(client, err);
    if (rc == PMIXFAB_OK)
        return rc;
    channel_client_free(client);
    *out = NULL;
    return rc;
}

void channel_client_free(struct channel_client *client)
{
    struct exchange *exchange, *next;
    if (client == NULL)
        return;
    DL_FOREACH_SAFE(client->link.exchanges, exchange, next)
    {
        ((struct asked *)exchange)->fn = NULL;
        asked_fail((struct asked *)exchange, PMIXFAB_ERR_UNREACH, NOT_REACHED);
    }
    client->state = NO_CONNECTION;
    client_close(client);
    credential_worker_free(client->link.worker);
    timer_free(client->pause);
    timer_free(client->late);
    free(client);
}
