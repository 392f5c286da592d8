/* channel_frame.c - encoding and decoding of the nodes' channel. */
#include "fabricd/channel/channel_priv.h"

#include <nettle/memops.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/base/frame.h"
#include "topo/base/text.h"

static const char magic[8] = "FabChan"; /* includes the terminating 0 */
static const char seal_magic[8] = "FabSeal";

/* ---- fields --------------------------------------------------------------------------------------- */

/* The body that is written (out is set) or read: one function lists the fields in order for both. */
struct body {
    uint8_t *out;
    struct frame in;
};

static uint64_t body_number(struct body *b, uint64_t value, unsigned bytes)
{
    if (b->out == NULL)
        return frame_get(&b->in, bytes);
    b->out = frame_put(b->out, value, bytes);
    return value;
}

static void body_bytes(struct body *b, void *bytes, size_t n)
{
    if (b->out != NULL) {
        memcpy(b->out, bytes, n);
        b->out += n;
        return;
    }
    const uint8_t *from = frame_bytes(&b->in, n);
    if (from != NULL)
        memcpy(bytes, from, n);
}

/* size: including the terminating 0. */
static void body_text(struct body *b, char *text, size_t size)
{
    const size_t len = (size_t)body_number(b, strnlen(text, size - 1), 2);
    if (len >= size)
        b->in.overrun = true;
    else
        body_bytes(b, text, len);
    if (b->out == NULL && strnlen(text, size) != len) /* the text contains a 0 */
        b->in.overrun = true;
}

static struct body body_in(const void *bytes, size_t size)
{
    return (struct body){.in = {.at = bytes, .end = (const uint8_t *)bytes + size}};
}

/* ---- frames --------------------------------------------------------------------------------------- */

static void body_head(struct body *b, struct channel_head *head)
{
    head->version = (uint16_t)body_number(b, head->version, 2);
    head->type = (uint8_t)body_number(b, head->type, 1);
    b->in.overrun |= body_number(b, 0, 1) != 0;
    head->request = (uint32_t)body_number(b, head->request, 4);
    head->credential = (uint32_t)body_number(b, head->credential, 4);
    head->body = (uint32_t)body_number(b, head->body, 4);
}

int channel_put_head(struct evbuffer *out, const struct channel_head *head, const char *credential)
{
    uint8_t bytes[CHANNEL_HEAD];
    struct channel_head copy = *head;
    struct body b = {.out = bytes + sizeof(magic)};
    memcpy(bytes, magic, sizeof(magic));
    body_head(&b, &copy);
    return evbuffer_add(out, bytes, sizeof(bytes)) == 0 &&
                   evbuffer_add(out, credential, head->credential) == 0
               ? PMIXFAB_OK
               : PMIXFAB_ERR_NOMEM;
}

/* Report that the first bytes belong to another protocol. A PMIx library begins with four bytes 0xff. */
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
    struct body b = body_in(bytes + sizeof(magic), sizeof(bytes) - sizeof(magic));
    body_head(&b, &frame->head);
    if (frame->head.version != CHANNEL_VERSION && frame->head.type != CHANNEL_REFUSED)
        return fab_fail(err, frame->head.version < CHANNEL_VERSION ? PMIXFAB_ERR_OLDER : PMIXFAB_ERR_NEWER,
                        "it speaks version %u of the nodes' channel, and this fabricd version %d: use one "
                        "version of fabricd",
                        (unsigned)frame->head.version, CHANNEL_VERSION);
    if (b.in.overrun)
        return fab_fail(err, PMIXFAB_ERR_CORRUPT, "the head of a frame is inconsistent");
    if (frame->head.credential > CHANNEL_MAX_CREDENTIAL)
        return fab_fail(err, PMIXFAB_ERR_RANGE, "a credential of %u bytes: at most %d are accepted",
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
        return fab_fail(err, PMIXFAB_ERR_FOREIGN, "does not seal a message of fabricd");
    channel_seal_put(seal, digest, right);
    if (memeql_sec(payload, right, names) == 0)
        return fab_fail(err, PMIXFAB_ERR_PERM, "seals another message, or one of another connection");
    if (memeql_sec((const uint8_t *)payload + names, digest, CHANNEL_DIGEST) == 0)
        return fab_fail(err, PMIXFAB_ERR_PERM, "seals other content");
    return PMIXFAB_OK;
}

/* ---- bodies --------------------------------------------------------------------------------------- */

static void body_hello(struct body *b, struct channel_hello *hello)
{
    body_bytes(b, hello->nonce, CHANNEL_NONCE);
    body_text(b, hello->host, sizeof(hello->host));
}

static void body_outcome(struct body *b, struct channel_outcome *outcome)
{
    outcome->code = (int)(int32_t)(uint32_t)body_number(b, (uint32_t)outcome->code, 4);
    outcome->held = body_number(b, outcome->held, 8);
    body_text(b, outcome->reason, sizeof(outcome->reason));
    if (b->out == NULL)
        fab_text_clean(outcome->reason, sizeof(outcome->reason), outcome->reason, strlen(outcome->reason),
                       NULL);
    b->in.overrun |= outcome->code > 0;
}

static void body_told(struct body *b, uint64_t *held, uint64_t *generation, int64_t *published, bool *stale,
                      bool *other)
{
    *held = body_number(b, *held, 8);
    *generation = body_number(b, *generation, 8);
    *published = (int64_t)body_number(b, (uint64_t)*published, 8);
    const uint64_t flags = body_number(b, (*stale ? 1u : 0) | (*other ? 2u : 0), 1);
    *stale = (flags & 1) != 0;
    *other = (flags & 2) != 0;
}

static void body_wait(struct body *b, struct channel_wait *wait)
{
    body_told(b, &wait->held, &wait->generation, &wait->published, &wait->stale, &wait->at_once);
}

static void body_fetch(struct body *b, struct channel_fetch *fetch)
{
    fetch->index = (uint32_t)body_number(b, fetch->index, 4);
    fetch->generation = body_number(b, fetch->generation, 8);
}

/* All fields except the planes. */
static void body_news(struct body *b, struct channel_news *news)
{
    body_told(b, &news->held, &news->generation, &news->published, &news->stale, &news->scan);
    news->n = (uint32_t)body_number(b, news->n, 4);
}

static void body_plane(struct body *b, struct channel_plane *plane)
{
    plane->index = (uint32_t)body_number(b, plane->index, 4);
    plane->generation = body_number(b, plane->generation, 8);
    plane->published = (int64_t)body_number(b, (uint64_t)plane->published, 8);
    plane->size = body_number(b, plane->size, 8);
    body_text(b, plane->name, sizeof(plane->name));
}

/* Return PMIXFAB_OK if all fields were there and no bytes are left. */
static int body_end(const struct body *b)
{
    return b->in.overrun || frame_left(&b->in) > 0 ? PMIXFAB_ERR_CORRUPT : PMIXFAB_OK;
}

#define BODY(name)                                                                                           \
    size_t channel_put_##name(const struct channel_##name *what, uint8_t out[CHANNEL_MAX_WORDS])             \
    {                                                                                                        \
        struct channel_##name copy = *what;                                                                  \
        struct body b = {.out = out};                                                                        \
        body_##name(&b, &copy);                                                                              \
        return (size_t)(b.out - out);                                                                        \
    }                                                                                                        \
    int channel_get_##name(const void *body, size_t size, struct channel_##name *out)                        \
    {                                                                                                        \
        struct body b = body_in(body, size);                                                                 \
        memset(out, 0, sizeof(*out));                                                                        \
        body_##name(&b, out);                                                                                \
        return body_end(&b);                                                                                 \
    }

BODY(hello)
BODY(outcome)
BODY(wait)
BODY(fetch)

int channel_put_news(const struct channel_news *news, void **out, size_t *size)
{
    struct channel_news copy = *news;
    struct body b = {.out = news->n > CHANNEL_MAX_PLANES ? NULL : malloc(64 + (size_t)news->n * 128)};
    const uint8_t *begin = *out = b.out;
    *size = 0;
    if (begin == NULL)
        return news->n > CHANNEL_MAX_PLANES ? PMIXFAB_ERR_RANGE : PMIXFAB_ERR_NOMEM;
    body_news(&b, &copy);
    for (uint32_t i = 0; i < news->n; i++)
        body_plane(&b, &news->planes[i]);
    *size = (size_t)(b.out - begin);
    return PMIXFAB_OK;
}

int channel_get_news(const void *body, size_t size, struct channel_news *out)
{
    struct body b = body_in(body, size);
    int rc = PMIXFAB_ERR_CORRUPT;
    *out = (struct channel_news){.held = 0};
    body_news(&b, out);
    if (b.in.overrun || out->n > CHANNEL_MAX_PLANES)
        goto error;
    rc = PMIXFAB_ERR_NOMEM;
    if ((out->planes = calloc(out->n + 1, sizeof(*out->planes))) == NULL)
        goto error;
    for (uint32_t i = 0; i < out->n && !b.in.overrun; i++)
        body_plane(&b, &out->planes[i]);
    if ((rc = body_end(&b)) == PMIXFAB_OK)
        return PMIXFAB_OK;
error:
    free(out->planes);
    *out = (struct channel_news){.held = 0};
    return rc;
}
