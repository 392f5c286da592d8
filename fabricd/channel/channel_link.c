/*
 * channel_link.c - one end of a connection. Read frames and open their credentials. Seal and write
 * messages.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "fabricd/base/log.h"
#include "fabricd/channel/channel_priv.h"

static void body_free(const void *bytes, size_t size, void *owner)
{
    (void)bytes, (void)size;
    free(owner);
}

struct channel_body channel_body_of(void *bytes, size_t size)
{
    return (struct channel_body){.bytes = bytes, .size = size, .release = body_free, .owner = bytes};
}

static void body_release(const struct channel_body *body)
{
    body->release(body->bytes, body->size, body->owner);
}

/* Return the seal of a message of this type, for munge. */
static struct channel_seal exchange_begin(struct exchange *exchange, uint8_t type,
                                          const struct channel_body *body)
{
    struct channel_seal seal = exchange->link->nonces;
    exchange->asked = seal.type = type;
    exchange->body = *body;
    seal.request = exchange->number;
    return seal;
}

/* ---- incoming messages ---------------------------------------------------------------------------- */

static void link_on_opened(const struct credential_result *result, void *cbdata)
{
    struct exchange *exchange = cbdata;
    struct channel_bytes body = {exchange->body.owner, exchange->body.size};
    exchange->job = NULL;
    exchange->link->calls->opened(exchange, result, &body);
    free(body.bytes);
}

/* Process a complete frame. */
static int link_take(struct link *link, struct fab_err *err)
{
    static const struct credential_result no_memory = {.munge = EMUNGE_NO_MEMORY};
    struct channel_frame frame = link->frame;
    struct exchange *exchange = NULL;
    link->frame = (struct channel_frame){.begun = false};
    const int rc = link->calls->came(&frame, link, &exchange, err);
    if (rc == PMIXFAB_OK) {
        const struct channel_body body = channel_body_of(frame.body, frame.head.body);
        const struct channel_seal seal = exchange_begin(exchange, frame.head.type, &body);
        exchange->job =
            credential_munge(link->worker, &seal, frame.credential, &body, link_on_opened, exchange);
        frame.credential = NULL;
        frame.body = NULL;
        if (exchange->job == NULL)
            link_on_opened(&no_memory, exchange);
    }
    channel_frame_clear(&frame);
    return rc == CHANNEL_SKIP ? PMIXFAB_OK : rc;
}

void link_on_bytes(struct evbuffer *in, void *cbdata)
{
    struct link *link = cbdata;
    struct fab_err err = {""};
    bool closed = false;
    int rc = PMIXFAB_OK;
    link->closed = &closed;
    while (!closed && !link->finishing && rc == PMIXFAB_OK) {
        rc = channel_take(&link->frame, in, link->calls->allow, link, &err);
        if (rc == PMIXFAB_OK)
            rc = link_take(link, &err);
    }
    if (closed)
        return;
    link->closed = NULL;
    if (link->finishing)
        evbuffer_drain(in, SIZE_MAX);
    else if (rc < 0)
        link->calls->ended(link, rc, err.text);
}

/* ---- outgoing messages ---------------------------------------------------------------------------- */

/* The stream references the body until it is sent; it is not copied. */
static void exchange_write(const struct exchange *exchange, const char *credential)
{
    struct evbuffer *out = stream_out(exchange->link->stream);
    const struct channel_body *body = &exchange->body;
    const struct channel_head head = {.version = CHANNEL_VERSION,
                                      .type = exchange->asked,
                                      .request = exchange->number,
                                      .credential = (uint32_t)strlen(credential),
                                      .body = (uint32_t)body->size};
    if (channel_put_head(out, &head, credential) == PMIXFAB_OK &&
        evbuffer_add_reference(out, body->bytes, body->size, body->release, body->owner) == 0)
        return;
    body_release(body);
    log_error("nodes: out of memory");
}

static void link_on_sealed(const struct credential_result *result, void *cbdata)
{
    struct exchange *exchange = cbdata;
    exchange->job = NULL;
    if (result->text != NULL)
        exchange_write(exchange, result->text);
    else
        body_release(&exchange->body);
    exchange->link->calls->sealed(exchange, result);
}

bool link_send(struct exchange *exchange, uint8_t type, const struct channel_body *body)
{
    const struct channel_seal seal = exchange_begin(exchange, type, body);
    exchange->job = credential_munge(exchange->link->worker, &seal, NULL, body, link_on_sealed, exchange);
    if (exchange->job == NULL)
        body_release(body);
    return exchange->job != NULL;
}

void link_refuse(struct link *link, uint32_t number, int code, const char *reason)
{
    struct channel_outcome outcome = {.code = code};
    uint8_t body[CHANNEL_MAX_WORDS];
    struct evbuffer *out = stream_out(link->stream);
    snprintf(outcome.reason, sizeof(outcome.reason), "%s", reason);
    const struct channel_head head = {.version = CHANNEL_VERSION,
                                      .type = CHANNEL_REFUSED,
                                      .request = number,
                                      .body = (uint32_t)channel_put_outcome(&outcome, body)};
    if (channel_put_head(out, &head, "") != PMIXFAB_OK || evbuffer_add(out, body, head.body) != 0)
        log_error("nodes: out of memory");
}

/* ---- the end -------------------------------------------------------------------------------------- */

void link_finish(struct link *link)
{
    struct exchange *exchange;
    link->finishing = true;
    DL_FOREACH(link->exchanges, exchange)
    {
        credential_cancel(exchange->job); /* releases the body */
        exchange->job = NULL;
    }
}

void link_close(struct link *link)
{
    link_finish(link);
    if (link->closed != NULL)
        *link->closed = true;
    stream_close(link->stream);
    channel_frame_clear(&link->frame);
    *link = (struct link){.calls = link->calls, .worker = link->worker, .exchanges = link->exchanges};
}
