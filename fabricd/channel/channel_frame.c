/* channel_frame.c - writing and reading the bytes of the nodes' channel. */
#include "fabricd/channel/channel_frame.h"

#include <nettle/memops.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/base/frame.h"
#include "topo/base/text.h"

static const char magic[8] = "FabChan"; /* with its 0 */
static const char seal_magic[8] = "FabSeal";

/* ---- frames --------------------------------------------------------------------------------------- */

int channel_put_head(struct evbuffer *out, const struct channel_head *head, const char *credential)
{
    uint8_t bytes[CHANNEL_HEAD], *at = bytes + sizeof(magic);
    memcpy(bytes, magic, sizeof(magic));
    at = frame_put(at, head->version, 2);
    at = frame_put(at, head->type, 1);
    at = frame_put(at, 0, 1);
    at = frame_put(at, head->request, 4);
    at = frame_put(at, head->credential, 4);
    frame_put(at, head->body, 4);
    return evbuffer_add(out, bytes, sizeof(bytes)) == 0 &&
                   evbuffer_add(out, credential, head->credential) == 0
               ? PMIXFAB_OK
               : PMIXFAB_ERR_NOMEM;
}

int channel_put(struct evbuffer *out, const struct channel_head *head, const char *credential,
                const void *body)
{
    const int rc = channel_put_head(out, head, credential);
    return rc == PMIXFAB_OK && evbuffer_add(out, body, head->body) != 0 ? PMIXFAB_ERR_NOMEM : rc;
}

/* What the first bytes are that are not ours. A PMIx library begins with a head of four bytes 0xff. */
static int channel_fail_foreign(const uint8_t *bytes, size_t n, struct fab_err *err)
{
    static const uint8_t pmix[4] = {0xff, 0xff, 0xff, 0xff};
    char text[24];
    if (memcmp(bytes, pmix, n < sizeof(pmix) ? n : sizeof(pmix)) == 0)
        return fab_fail(
            err, PMIXFAB_ERR_FOREIGN,
            "it speaks PMIx: a PMIx tool connects to the address in fabricd.uri, and a node of an "
            "older fabricd has to be upgraded");
    fab_text_clean(text, sizeof(text), (const char *)bytes, n, NULL);
    return fab_fail(err, PMIXFAB_ERR_FOREIGN, "it speaks another protocol, which begins with \"%s\"", text);
}

static int channel_take_head(struct channel_frame *frame, struct evbuffer *in, struct fab_err *err)
{
    uint8_t bytes[CHANNEL_HEAD];
    const ssize_t n = evbuffer_copyout(in, bytes, sizeof(bytes));
    const size_t known = n < (ssize_t)sizeof(magic) ? (size_t)(n < 0 ? 0 : n) : sizeof(magic);
    if (memcmp(bytes, magic, known) != 0)
        return channel_fail_foreign(bytes, (size_t)n, err);
    if (n < (ssize_t)sizeof(bytes))
        return CHANNEL_MORE;
    evbuffer_drain(in, sizeof(bytes));
    struct frame fields = {.at = bytes + sizeof(magic), .end = bytes + sizeof(bytes)};
    frame->head.version = (uint16_t)frame_get(&fields, 2);
    frame->head.type = (uint8_t)frame_get(&fields, 1);
    const uint64_t zero = frame_get(&fields, 1);
    frame->head.request = (uint32_t)frame_get(&fields, 4);
    frame->head.credential = (uint32_t)frame_get(&fields, 4);
    frame->head.body = (uint32_t)frame_get(&fields, 4);
    if (frame->head.version != CHANNEL_VERSION && frame->head.type != CHANNEL_REFUSED)
        return fab_fail(err, frame->head.version < CHANNEL_VERSION ? PMIXFAB_ERR_OLDER : PMIXFAB_ERR_NEWER,
                        "it speaks version %u of the nodes' channel, and this fabricd version %d: use one "
                        "version of fabricd",
                        (unsigned)frame->head.version, CHANNEL_VERSION);
    if (zero != 0)
        return fab_fail(err, PMIXFAB_ERR_CORRUPT, "the head of a frame contradicts itself");
    if (frame->head.credential > CHANNEL_MAX_CREDENTIAL)
        return fab_fail(err, PMIXFAB_ERR_RANGE, "a credential of %u bytes: at most %d are taken",
                        (unsigned)frame->head.credential, CHANNEL_MAX_CREDENTIAL);
    return PMIXFAB_OK;
}

static int channel_begin(struct channel_frame *frame, struct evbuffer *in, channel_allow_fn allow,
                         void *cbdata, struct fab_err *err)
{
    int rc = channel_take_head(frame, in, err);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = allow(&frame->head, cbdata, err);
    if (rc < 0)
        return rc;
    frame->begun = true;
    frame->got = 0;
    frame->credential = calloc(1, (size_t)frame->head.credential + 1);
    if (frame->credential != NULL && rc != CHANNEL_SKIP)
        frame->body = malloc((size_t)frame->head.body + 1);
    if (frame->credential == NULL || (rc != CHANNEL_SKIP && frame->body == NULL))
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    return PMIXFAB_OK;
}

int channel_take(struct channel_frame *frame, struct evbuffer *in, channel_allow_fn allow, void *cbdata,
                 struct fab_err *err)
{
    const int rc = frame->begun ? PMIXFAB_OK : channel_begin(frame, in, allow, cbdata, err);
    if (rc != PMIXFAB_OK)
        return rc;
    const size_t whole = (size_t)frame->head.credential + frame->head.body;
    for (size_t n = evbuffer_get_length(in); n > 0 && frame->got < whole; n = evbuffer_get_length(in)) {
        const bool text = frame->got < frame->head.credential;
        const size_t end = text ? frame->head.credential : whole;
        const size_t want = n < end - frame->got ? n : end - frame->got;
        if (text)
            evbuffer_remove(in, frame->credential + frame->got, want);
        else if (frame->body != NULL)
            evbuffer_remove(in, frame->body + (frame->got - frame->head.credential), want);
        else
            evbuffer_drain(in, want);
        frame->got += want;
    }
    return frame->got < whole ? CHANNEL_MORE : PMIXFAB_OK;
}

void channel_frame_clear(struct channel_frame *frame)
{
    free(frame->credential);
    free(frame->body);
    *frame = (struct channel_frame){.begun = false};
}

/* ---- seals ---------------------------------------------------------------------------------------- */

void channel_digest(const void *body, size_t size, uint8_t digest[CHANNEL_DIGEST])
{
    struct sha256_ctx ctx;
    sha256_init(&ctx);
    if (size > 0)
        sha256_update(&ctx, size, body);
    sha256_digest(&ctx, CHANNEL_DIGEST, digest);
}

void channel_seal_put(const struct channel_seal *seal, const uint8_t digest[CHANNEL_DIGEST],
                      uint8_t out[CHANNEL_SEAL])
{
    uint8_t *at = out + sizeof(seal_magic);
    memcpy(out, seal_magic, sizeof(seal_magic));
    at = frame_put(at, seal->type, 4);
    at = frame_put(at, seal->request, 4);
    memcpy(at, seal->node, CHANNEL_NONCE);
    memcpy(at + CHANNEL_NONCE, seal->scheduler, CHANNEL_NONCE);
    memcpy(at + 2 * CHANNEL_NONCE, digest, CHANNEL_DIGEST);
}

int channel_seal_check(const struct channel_seal *seal, const uint8_t digest[CHANNEL_DIGEST],
                       const void *payload, size_t size, struct fab_err *err)
{
    const size_t names = CHANNEL_SEAL - CHANNEL_DIGEST;
    uint8_t right[CHANNEL_SEAL];
    if (size != CHANNEL_SEAL || memcmp(payload, seal_magic, sizeof(seal_magic)) != 0)
        return fab_fail(err, PMIXFAB_ERR_FOREIGN, "seals no message of fabricd");
    channel_seal_put(seal, digest, right);
    if (memeql_sec(payload, right, names) == 0)
        return fab_fail(err, PMIXFAB_ERR_PERM, "seals another message, or one of another connection");
    if (memeql_sec((const uint8_t *)payload + names, digest, CHANNEL_DIGEST) == 0)
        return fab_fail(err, PMIXFAB_ERR_PERM, "seals another content");
    return PMIXFAB_OK;
}

/* ---- bodies --------------------------------------------------------------------------------------- */

static struct frame body_of(const void *body, size_t size)
{
    return (struct frame){.at = body, .end = (const uint8_t *)body + size};
}

/* Everything was there, and nothing else is. */
static int body_end(const struct frame *in)
{
    return in->overrun || frame_left(in) > 0 ? PMIXFAB_ERR_CORRUPT : PMIXFAB_OK;
}

static uint8_t *frame_put_text(uint8_t *at, const char *text, size_t len)
{
    at = frame_put(at, len, 2);
    memcpy(at, text, len);
    return at + len;
}

/* Into `size` bytes with the 0 behind it. */
static void frame_get_text(struct frame *in, char *out, size_t size)
{
    const size_t len = (size_t)frame_get(in, 2);
    const uint8_t *text = len < size ? frame_bytes(in, len) : NULL;
    out[0] = '\0';
    if (text == NULL || memchr(text, '\0', len) != NULL) {
        in->overrun = true;
        return;
    }
    memcpy(out, text, len);
    out[len] = '\0';
}

size_t channel_put_hello(const struct channel_hello *hello, uint8_t out[CHANNEL_MAX_WORDS])
{
    memcpy(out, hello->nonce, CHANNEL_NONCE);
    return (size_t)(frame_put_text(out + CHANNEL_NONCE, hello->host, strlen(hello->host)) - out);
}

int channel_get_hello(const void *body, size_t size, struct channel_hello *out)
{
    struct frame in = body_of(body, size);
    const uint8_t *nonce = frame_bytes(&in, CHANNEL_NONCE);
    if (nonce == NULL)
        return PMIXFAB_ERR_CORRUPT;
    memcpy(out->nonce, nonce, CHANNEL_NONCE);
    frame_get_text(&in, out->host, sizeof(out->host));
    return body_end(&in);
}

size_t channel_put_outcome(const struct channel_outcome *outcome, uint8_t out[CHANNEL_MAX_WORDS])
{
    uint8_t *at = frame_put(out, (uint32_t)outcome->code, 4);
    at = frame_put(at, outcome->held, 8);
    const size_t len = strnlen(outcome->reason, sizeof(outcome->reason) - 1);
    return (size_t)(frame_put_text(at, outcome->reason, len) - out);
}

int channel_get_outcome(const void *body, size_t size, struct channel_outcome *out)
{
    struct frame in = body_of(body, size);
    out->code = (int)(int32_t)(uint32_t)frame_get(&in, 4);
    out->held = frame_get(&in, 8);
    frame_get_text(&in, out->reason, sizeof(out->reason));
    fab_text_clean(out->reason, sizeof(out->reason), out->reason, strlen(out->reason), NULL);
    return out->code > 0 ? PMIXFAB_ERR_CORRUPT : body_end(&in);
}

#define WAIT_STALE   1u
#define WAIT_AT_ONCE 2u
#define NEWS_SCAN    2u

size_t channel_put_wait(const struct channel_wait *wait, uint8_t out[CHANNEL_MAX_WORDS])
{
    uint8_t *at = frame_put(out, wait->held, 8);
    at = frame_put(at, wait->generation, 8);
    at = frame_put(at, (uint64_t)wait->published, 8);
    at = frame_put(at, (wait->stale ? WAIT_STALE : 0) | (wait->at_once ? WAIT_AT_ONCE : 0), 1);
    return (size_t)(at - out);
}

int channel_get_wait(const void *body, size_t size, struct channel_wait *out)
{
    struct frame in = body_of(body, size);
    out->held = frame_get(&in, 8);
    out->generation = frame_get(&in, 8);
    out->published = (int64_t)frame_get(&in, 8);
    const uint64_t flags = frame_get(&in, 1);
    out->stale = (flags & WAIT_STALE) != 0;
    out->at_once = (flags & WAIT_AT_ONCE) != 0;
    return body_end(&in);
}

size_t channel_put_fetch(const struct channel_fetch *fetch, uint8_t out[CHANNEL_MAX_WORDS])
{
    return (size_t)(frame_put(frame_put(out, fetch->index, 4), fetch->generation, 8) - out);
}

int channel_get_fetch(const void *body, size_t size, struct channel_fetch *out)
{
    struct frame in = body_of(body, size);
    out->index = (uint32_t)frame_get(&in, 4);
    out->generation = frame_get(&in, 8);
    return body_end(&in);
}

int channel_put_news(const struct channel_news *news, void **out, size_t *size)
{
    uint8_t *bytes = news->n > CHANNEL_MAX_PLANES ? NULL : malloc(64 + (size_t)news->n * 128);
    *out = bytes;
    *size = 0;
    if (bytes == NULL)
        return news->n > CHANNEL_MAX_PLANES ? PMIXFAB_ERR_RANGE : PMIXFAB_ERR_NOMEM;
    uint8_t *at = frame_put(bytes, news->held, 8);
    at = frame_put(at, news->generation, 8);
    at = frame_put(at, (uint64_t)news->published, 8);
    at = frame_put(at, (news->stale ? WAIT_STALE : 0) | (news->scan ? NEWS_SCAN : 0), 1);
    at = frame_put(at, news->n, 4);
    for (uint32_t i = 0; i < news->n; i++) {
        const struct channel_plane *plane = &news->planes[i];
        at = frame_put(at, plane->index, 4);
        at = frame_put(at, plane->generation, 8);
        at = frame_put(at, (uint64_t)plane->published, 8);
        at = frame_put(at, plane->size, 8);
        at = frame_put_text(at, plane->name, strlen(plane->name));
    }
    *size = (size_t)(at - bytes);
    return PMIXFAB_OK;
}

int channel_get_news(const void *body, size_t size, struct channel_news *out)
{
    struct frame in = body_of(body, size);
    *out = (struct channel_news){.held = frame_get(&in, 8)};
    out->generation = frame_get(&in, 8);
    out->published = (int64_t)frame_get(&in, 8);
    const uint64_t flags = frame_get(&in, 1), n = frame_get(&in, 4);
    out->stale = (flags & WAIT_STALE) != 0;
    out->scan = (flags & NEWS_SCAN) != 0;
    if (in.overrun || n > CHANNEL_MAX_PLANES)
        return PMIXFAB_ERR_CORRUPT;
    out->planes = calloc(n + 1, sizeof(*out->planes));
    if (out->planes == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (out->n = 0; out->n < n && !in.overrun; out->n++) {
        struct channel_plane *plane = &out->planes[out->n];
        plane->index = (uint32_t)frame_get(&in, 4);
        plane->generation = frame_get(&in, 8);
        plane->published = (int64_t)frame_get(&in, 8);
        plane->size = frame_get(&in, 8);
        frame_get_text(&in, plane->name, sizeof(plane->name));
    }
    if (body_end(&in) == PMIXFAB_OK)
        return PMIXFAB_OK;
    free(out->planes);
    *out = (struct channel_news){.held = 0};
    return PMIXFAB_ERR_CORRUPT;
}
