#include "fabricd/channel/channel_client.h"

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
#include "fabricd/channel/channel_stream.h"
#include "topo/base/backoff.h"

#define CONNECT_MS     5000  /* until an address is given up */
#define GREET_MS       25000 /* until both are known to each other: each munged may need 10 s */
#define FIRST_PAUSE_MS 50
#define MAX_PAUSE_MS   5000

#define NOT_REACHED "the scheduler cannot be reached"
#define NOT_IN_TIME "the scheduler does not answer in time"
#define OWN_MUNGED  "munged of this host does not answer in time"

enum state { NO_CONNECTION, RESOLVING, CONNECTING, GREETING, CONNECTED };

struct asked {
    struct asked *prev, *next;
    struct channel_client *client;
    enum channel_type type;
    uint32_t number; /* 0: it waits for a connection */
    uint8_t *body;   /* NULL: it was sent, or is the job's */
    size_t size, most;
    bool sealing, sent;
    struct credential_job *job;
    struct timer *deadline;
    channel_reply_fn fn;
    void *cbdata;
    uint8_t *answer; /* that is being opened, the job's */
    size_t answer_size;
};

struct channel_client {
    struct event_base *base;
    const struct config *config;
    struct credential_worker *worker;
    struct channel_client_calls calls;
    uid_t scheduler_uid;
    struct address_place places[ADDRESS_MOST_PLACES];
    uint64_t told[ADDRESS_MOST_PLACES]; /* hash of the last failure that was told of each */
    unsigned n_places, at;
    struct credential_addresses addresses; /* of that place */
    uint32_t next_address;
    enum state state;
    bool started;
    struct credential_job *job; /* of the state */
    void *job_body;             /* its body: the job's until it is done */
    struct stream *stream;
    struct channel_frame frame;
    struct channel_seal nonces;
    uint8_t welcome[CHANNEL_NONCE];
    uint32_t last; /* number of a request */
    struct asked *asked;
    struct timer *pause, *late;
    struct backoff again; /* milliseconds */
};

static void client_try_next(struct channel_client *client);

/* ---- requests ------------------------------------------------------------------------------------- */

/* It is in no list any more. */
static void asked_reply(struct asked *asked, const struct channel_reply *what)
{
    struct channel_reply reply = *what;
    const channel_reply_fn fn = asked->fn;
    void *cbdata = asked->cbdata;
    if (asked->job != NULL) /* which lets its bytes go */
        asked->body = NULL;
    credential_cancel(asked->job);
    timer_free(asked->deadline);
    free(asked->body);
    free(asked);
    if (fn != NULL)
        fn(&reply, cbdata);
    free(reply.body);
}

static void asked_end(struct asked *asked, const struct channel_reply *reply)
{
    DL_DELETE(asked->client->asked, asked);
    asked_reply(asked, reply);
}

static void asked_fail(struct asked *asked, int code, const char *reason, bool away)
{
    asked_end(asked, &(struct channel_reply){.code = code, .reason = reason, .away = away});
}

static void asked_on_deadline(void *arg)
{
    struct asked *asked = arg;
    if (asked->sealing || asked->answer != NULL)
        asked_fail(asked, PMIXFAB_ERR_TIMEOUT, OWN_MUNGED, true);
    else if (asked->client->state == CONNECTED)
        asked_fail(asked, PMIXFAB_ERR_TIMEOUT, NOT_IN_TIME, true);
    else
        asked_fail(asked, PMIXFAB_ERR_UNREACH, NOT_REACHED, true);
}

/* ---- the end of a connection, or of an attempt ---------------------------------------------------- */

/* Its body is ours again. */
static void client_job_done(struct channel_client *client)
{
    client->job = NULL;
    free(client->job_body);
    client->job_body = NULL;
}

static void client_close(struct channel_client *client)
{
    struct asked *asked, *next, *lost = NULL;
    const bool was = client->state == CONNECTED;
    client->state = NO_CONNECTION;
    credential_cancel(client->job); /* it frees its body */
    client->job = NULL;
    client->job_body = NULL;
    stream_close(client->stream);
    client->stream = NULL;
    channel_frame_clear(&client->frame);
    timer_cancel(client->late);
    DL_FOREACH_SAFE(client->asked, asked, next)
    {
        if (asked->number == 0)
            continue;
        DL_DELETE(client->asked, asked);
        DL_APPEND(lost, asked);
    }
    if (was)
        client->calls.connected(false, client->calls.cbdata);
    DL_FOREACH_SAFE(lost, asked, next)
    {
        DL_DELETE(lost, asked);
        asked_reply(
            asked, &(struct channel_reply){.code = PMIXFAB_ERR_UNREACH, .reason = NOT_REACHED, .away = true});
    }
}

static void client_pause(struct channel_client *client)
{
    const int64_t pause = backoff_next(&client->again);
    client->at = 0;
    client->addresses.n = client->next_address = 0;
    timer_after(client->pause, pause / 2 + chance_below((uint32_t)pause + 1)); /* many nodes come again */
}

/* Of this place. */
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

/* An attempt, or a connection that was made. */
static void client_fail(struct channel_client *client, int code, const char *why)
{
    char reason[512];
    const bool was = client->state == CONNECTED;
    snprintf(reason, sizeof(reason), "%s", why); /* it may be in the frame */
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
    if (client->started)
        client_pause(client);
}

static void client_on_late(void *arg)
{
    struct channel_client *client = arg;
    client_fail(client, PMIXFAB_ERR_TIMEOUT,
                client->state == GREETING && client->job != NULL ? OWN_MUNGED : "it does not answer in time");
}

/* ---- frames come ---------------------------------------------------------------------------------- */

static struct asked *client_find(const struct channel_client *client, uint32_t number)
{
    struct asked *asked;
    DL_FOREACH(client->asked, asked)
    {
        if (asked->sent && asked->number == number && asked->answer == NULL)
            return asked;
    }
    return NULL;
}

/* (a channel_allow_fn) */
static int client_allow(const struct channel_head *head, void *cbdata, struct fab_err *err)
{
    const struct channel_client *client = cbdata;
    size_t most = CHANNEL_MAX_WORDS;
    if (head->type != CHANNEL_REFUSED && client->state == CONNECTED) {
        const struct asked *asked = client_find(client, head->request);
        if (asked == NULL) /* whoever asked has given it up */
            return head->request <= client->last
                       ? CHANNEL_SKIP
                       : fab_fail(err, PMIXFAB_ERR_FOREIGN, "it answers what was not asked");
        if (head->type != (asked->type | CHANNEL_IS_ANSWER))
            return fab_fail(err, PMIXFAB_ERR_FOREIGN, "it answers something else than was asked");
        most = asked->most;
    } else if (head->type != CHANNEL_REFUSED && head->type != CHANNEL_WELCOME) {
        return fab_fail(err, PMIXFAB_ERR_FOREIGN, "it does not say who it is");
    }
    if (head->body > most)
        return fab_fail(err, PMIXFAB_ERR_RANGE, "it answers with %u bytes, and at most %zu are taken",
                        (unsigned)head->body, most);
    return PMIXFAB_OK;
}

/* Is it a scheduler's, by who made it? */
static int client_check_maker(const struct channel_client *client, const struct credential_result *result,
                              struct fab_err *err)
{
    const int rc = credential_explain(result, "this host", err);
    const uid_t uid = result->maker.uid;
    if (rc != PMIXFAB_OK || uid == 0 || uid == geteuid() || uid == client->scheduler_uid)
        return rc;
    return fab_fail(err, PMIXFAB_ERR_PERM,
                    "uid %u on %s answers, which is not root, nor whom the scheduler may run as ([node] "
                    "scheduler_user)",
                    (unsigned)uid, credential_address_text(result->maker.origin).text);
}

static void asked_on_opened(const struct credential_result *result, void *cbdata)
{
    struct asked *asked = cbdata;
    struct channel_client *client = asked->client;
    struct channel_reply reply = {.reason = "", .body = asked->answer, .size = asked->answer_size};
    struct fab_err err = {""};
    const int rc = client_check_maker(client, result, &err);
    asked->job = NULL;
    asked->answer = NULL;
    if (rc == PMIXFAB_OK) {
        asked_end(asked, &reply);
        return;
    }
    free(reply.body);
    if (rc == PMIXFAB_ERR_UNREACH || rc == PMIXFAB_ERR_NOMEM)
        asked_fail(asked, rc, err.text, true);
    else
        client_fail(client, rc, err.text);
}

static void client_open(struct channel_client *client, struct asked *asked)
{
    struct channel_frame *frame = &client->frame;
    struct channel_seal seal = client->nonces;
    const struct credential_body body = {
        .bytes = frame->body, .size = frame->head.body, .release = free, .owner = frame->body};
    seal.type = frame->head.type;
    seal.request = frame->head.request;
    asked->answer = frame->body;
    asked->answer_size = frame->head.body;
    asked->job = credential_verify(client->worker, &seal, frame->credential, &body, asked_on_opened, asked);
    if (asked->job == NULL) {
        free(frame->body);
        asked->answer = NULL;
        asked_fail(asked, PMIXFAB_ERR_NOMEM, "out of memory", true);
    }
    *frame = (struct channel_frame){.begun = false};
}

/* False: there is no connection any more. */
static bool client_take_refusal(struct channel_client *client)
{
    struct channel_frame *frame = &client->frame;
    struct channel_outcome outcome;
    struct asked *asked = client_find(client, frame->head.request);
    if (channel_get_outcome(frame->body, frame->head.body, &outcome) != PMIXFAB_OK ||
        outcome.code == PMIXFAB_OK) {
        client_fail(client, PMIXFAB_ERR_FOREIGN, "it refuses without saying why");
        return false;
    }
    const uint32_t number = frame->head.request;
    channel_frame_clear(frame);
    if (number == 0 || client->state != CONNECTED) {
        client_fail(client, outcome.code, outcome.reason);
        return false;
    }
    if (asked != NULL)
        asked_fail(asked, outcome.code, outcome.reason, false);
    return client->state == CONNECTED;
}

static void client_on_welcome(const struct credential_result *result, void *cbdata);

static void client_take_welcome(struct channel_client *client)
{
    struct channel_frame *frame = &client->frame;
    const struct credential_body body = {
        .bytes = frame->body, .size = frame->head.body, .release = free, .owner = frame->body};
    struct channel_seal seal = client->nonces;
    if (frame->head.body != CHANNEL_NONCE || frame->head.request != client->last || client->job != NULL) {
        client_fail(client, PMIXFAB_ERR_FOREIGN, "it does not say who it is");
        return;
    }
    memcpy(client->welcome, frame->body, CHANNEL_NONCE);
    memcpy(seal.scheduler, frame->body, CHANNEL_NONCE);
    seal.type = CHANNEL_WELCOME;
    seal.request = client->last;
    client->job_body = frame->body;
    client->job =
        credential_verify(client->worker, &seal, frame->credential, &body, client_on_welcome, client);
    *frame = (struct channel_frame){.begun = false};
    if (client->job == NULL) {
        client_job_done(client);
        client_fail(client, PMIXFAB_ERR_NOMEM, "out of memory");
    }
}

/* False: there is no connection any more. */
static bool client_take_frame(struct channel_client *client)
{
    struct channel_frame *frame = &client->frame;
    if (frame->head.type == CHANNEL_REFUSED)
        return client_take_refusal(client);
    if (client->state == GREETING) {
        client_take_welcome(client);
        return client->state == GREETING;
    }
    struct asked *asked = client_find(client, frame->head.request);
    if (asked != NULL && frame->body != NULL)
        client_open(client, asked);
    else
        channel_frame_clear(frame);
    return client->state == CONNECTED;
}

static void client_on_bytes(struct evbuffer *in, void *cbdata)
{
    struct channel_client *client = cbdata;
    const struct stream *stream = client->stream;
    struct fab_err err = {""};
    int rc;
    while ((rc = channel_take(&client->frame, in, client_allow, client, &err)) == PMIXFAB_OK)
        if (!client_take_frame(client) || client->stream != stream)
            return;
    if (rc < 0)
        client_fail(client, rc, err.text);
}

static void client_on_lost(const char *why, void *cbdata)
{
    client_fail(cbdata, PMIXFAB_ERR_UNREACH, why);
}

/* ---- requests go ---------------------------------------------------------------------------------- */

static void asked_on_sealed(const struct credential_result *result, void *cbdata)
{
    struct asked *asked = cbdata;
    struct channel_client *client = asked->client;
    const struct channel_head head = {.version = CHANNEL_VERSION,
                                      .type = (uint8_t)asked->type,
                                      .request = asked->number,
                                      .credential = result->text == NULL ? 0 : (uint32_t)strlen(result->text),
                                      .body = (uint32_t)asked->size};
    char text[200];
    asked->job = NULL;
    asked->sealing = false;
    if (result->munge != EMUNGE_SUCCESS) {
        snprintf(text, sizeof(text), "munge makes no credential: %s: does munged run on this host?",
                 munge_strerror(result->munge));
        asked_fail(asked, PMIXFAB_ERR_IO, text, true);
        return;
    }
    asked->sent = channel_put(stream_out(client->stream), &head, result->text, asked->body) == PMIXFAB_OK;
    free(asked->body);
    asked->body = NULL;
    if (!asked->sent)
        asked_fail(asked, PMIXFAB_ERR_NOMEM, "out of memory", true);
}

static void asked_send(struct asked *asked)
{
    struct channel_client *client = asked->client;
    struct channel_seal seal = client->nonces;
    const struct credential_body body = {
        .bytes = asked->body, .size = asked->size, .release = free, .owner = asked->body};
    asked->number = ++client->last;
    seal.type = (uint8_t)asked->type;
    seal.request = asked->number;
    asked->job = credential_seal(client->worker, &seal, &body, asked_on_sealed, asked);
    asked->sealing = asked->job != NULL; /* else its deadline ends it */
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
    asked->client = client;
    asked->type = type;
    asked->body = body;
    asked->size = size;
    asked->most = most;
    asked->fn = fn;
    asked->cbdata = cbdata;
    DL_APPEND(client->asked, asked);
    timer_after(asked->deadline, deadline_ms);
    if (client->state == CONNECTED)
        asked_send(asked);
    return PMIXFAB_OK;
}

/* ---- a connection is made ------------------------------------------------------------------------- */

static void client_on_welcome(const struct credential_result *result, void *cbdata)
{
    struct channel_client *client = cbdata;
    struct fab_err err = {""};
    struct asked *asked, *next;
    client_job_done(client);
    const int rc = client_check_maker(client, result, &err);
    if (rc != PMIXFAB_OK) {
        client_fail(client, rc, err.text);
        return;
    }
    memcpy(client->nonces.scheduler, client->welcome, CHANNEL_NONCE);
    client->state = CONNECTED;
    client->told[client->at] = 0;
    timer_cancel(client->late);
    backoff_reset(&client->again);
    client->calls.connected(true, client->calls.cbdata);
    DL_FOREACH_SAFE(client->asked, asked, next)
    {
        if (asked->number == 0)
            asked_send(asked);
    }
}

static void client_on_hello_sealed(const struct credential_result *result, void *cbdata)
{
    struct channel_client *client = cbdata;
    struct channel_hello hello = {.host = ""};
    uint8_t body[CHANNEL_MAX_WORDS];
    char text[200];
    client_job_done(client);
    if (result->munge != EMUNGE_SUCCESS) {
        snprintf(text, sizeof(text), "munge makes no credential: %s: does munged run on this host?",
                 munge_strerror(result->munge));
        client_fail(client, PMIXFAB_ERR_IO, text);
        return;
    }
    memcpy(hello.nonce, client->nonces.node, CHANNEL_NONCE);
    snprintf(hello.host, sizeof(hello.host), "%s", client->config->host);
    const struct channel_head head = {.version = CHANNEL_VERSION,
                                      .type = CHANNEL_HELLO,
                                      .request = client->last,
                                      .credential = (uint32_t)strlen(result->text),
                                      .body = (uint32_t)channel_put_hello(&hello, body)};
    if (channel_put(stream_out(client->stream), &head, result->text, body) != PMIXFAB_OK)
        client_fail(client, PMIXFAB_ERR_NOMEM, "out of memory");
}

static void client_on_connected(void *cbdata)
{
    struct channel_client *client = cbdata;
    struct channel_hello hello = {.host = ""};
    uint8_t *body = malloc(CHANNEL_MAX_WORDS);
    client->state = GREETING;
    client->nonces = (struct channel_seal){.type = CHANNEL_HELLO, .request = client->last = 1};
    chance_bytes(client->nonces.node, CHANNEL_NONCE);
    memcpy(hello.nonce, client->nonces.node, CHANNEL_NONCE);
    snprintf(hello.host, sizeof(hello.host), "%s", client->config->host);
    timer_after(client->late, GREET_MS);
    if (body != NULL) {
        const struct credential_body sealed = {
            .bytes = body, .size = channel_put_hello(&hello, body), .release = free, .owner = body};
        client->job_body = body;
        client->job =
            credential_seal(client->worker, &client->nonces, &sealed, client_on_hello_sealed, client);
    }
    if (client->job == NULL) {
        client_job_done(client);
        client_fail(client, PMIXFAB_ERR_NOMEM, "out of memory");
    }
}

static void client_connect(struct channel_client *client)
{
    static const struct stream_calls calls = {client_on_connected, client_on_bytes, NULL, client_on_lost};
    union credential_address *to = &client->addresses.at[client->next_address++];
    const uint16_t port = htons(client->places[client->at].port);
    if (to->any.sa_family == AF_INET6)
        to->v6.sin6_port = port;
    else
        to->v4.sin_port = port;
    client->state = CONNECTING;
    timer_after(client->late, CONNECT_MS);
    client->stream = stream_connect(client->base, to, &calls, client);
    if (client->stream == NULL)
        timer_after(client->late, 0);
}

static void client_on_resolved(const struct credential_result *result, void *cbdata)
{
    struct channel_client *client = cbdata;
    char text[300];
    client->job = NULL;
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
    client->state = RESOLVING;
    client->addresses.n = client->next_address = 0;
    client->job = credential_resolve(client->worker, client->places[client->at].host, AF_UNSPEC,
                                     client_on_resolved, client);
    if (client->job == NULL)
        client_pause(client);
}

/* The next address of this place, or the next place, or a pause. */
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
    client->started = true;
    client_resolve(client);
}

/* ---- life ----------------------------------------------------------------------------------------- */

/* Whom the scheduler may run as, beside root: a name or a number. By default fabricd, where there is one. */
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
        return fab_fail(
            err, PMIXFAB_ERR_NOTFOUND,
            "[node] scheduler_user: there is no user \"%.60s\" on this host: give the number that "
            "it has on the scheduler's",
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
    client->worker = credential_worker_new(base);
    client->pause = timer_new(base, client_on_pause, client);
    client->late = timer_new(base, client_on_late, client);
    if (client->worker == NULL || client->pause == NULL || client->late == NULL)
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
    struct asked *asked, *next;
    if (client == NULL)
        return;
    DL_FOREACH_SAFE(client->asked, asked, next)
    {
        asked->fn = NULL;
        asked_end(asked, &(struct channel_reply){.reason = ""});
    }
    client->state = NO_CONNECTION;
    client_close(client);
    credential_worker_free(client->worker);
    timer_free(client->pause);
    timer_free(client->late);
    free(client);
}
