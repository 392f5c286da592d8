#include "fabricd/front/message.h"

#include <stdlib.h>
#include <string.h>

#include "topo/base/frame.h"

/* kind, a, b, c, then each text with its zero, then the planes: index, generation, name with its zero. */

static size_t message_put_number(uint8_t *at, uint64_t value, unsigned bytes)
{
    return (size_t)(frame_put(at, value, bytes) - at);
}

static size_t message_size(const struct front_message *message)
{
    size_t size = 1 + 3 * 8 + strlen(message->text) + 1 + strlen(message->more) + 1 + 4;
    for (uint32_t i = 0; i < message->n; i++)
        size += 4 + 8 + strlen(message->planes[i].name) + 1;
    return size;
}

static size_t message_put_text(uint8_t *at, const char *text)
{
    const size_t size = strlen(text) + 1;
    memcpy(at, text, size);
    return size;
}

int front_message_put(struct evbuffer *out, const struct front_message *message)
{
    struct front_message full = *message;
    full.text = message->text != NULL ? message->text : "";
    full.more = message->more != NULL ? message->more : "";
    const size_t size = message_size(&full);
    uint8_t *bytes = malloc(FRONT_HEAD + size), *at = bytes;
    if (bytes == NULL)
        return PMIXFAB_ERR_NOMEM;
    at += message_put_number(at, size, FRONT_HEAD);
    at += message_put_number(at, full.kind, 1);
    at += message_put_number(at, full.a, 8);
    at += message_put_number(at, full.b, 8);
    at += message_put_number(at, full.c, 8);
    at += message_put_text(at, full.text);
    at += message_put_text(at, full.more);
    at += message_put_number(at, full.n, 4);
    for (uint32_t i = 0; i < full.n; i++) {
        at += message_put_number(at, full.planes[i].index, 4);
        at += message_put_number(at, full.generations == NULL ? 0 : full.generations[i], 8);
        at += message_put_text(at, full.planes[i].name);
    }
    const int rc = evbuffer_add(out, bytes, FRONT_HEAD + size);
    free(bytes);
    return rc == 0 ? PMIXFAB_OK : PMIXFAB_ERR_NOMEM;
}

/* The text that is next; NULL: none ends here. */
static const char *message_get_text(struct frame *in)
{
    const size_t left = frame_left(in);
    const uint8_t *end = left == 0 ? NULL : memchr(in->at, '\0', left);
    return end == NULL ? NULL : (const char *)frame_bytes(in, (size_t)(end - in->at) + 1);
}

static int read_planes(struct frame *in, uint32_t n, struct front_received *out)
{
    if (n > FRONT_MAX_PLANES)
        return PMIXFAB_ERR_CORRUPT;
    out->planes = calloc((size_t)n + 1, sizeof(*out->planes));
    out->generations = calloc((size_t)n + 1, sizeof(*out->generations));
    if (out->planes == NULL || out->generations == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t i = 0; i < n; i++) {
        out->planes[i].index = (uint32_t)frame_get(in, 4);
        out->generations[i] = frame_get(in, 8);
        const char *name = message_get_text(in);
        if (name == NULL || strlen(name) >= sizeof(out->planes[i].name))
            return PMIXFAB_ERR_CORRUPT;
        memcpy(out->planes[i].name, name, strlen(name) + 1);
    }
    return PMIXFAB_OK;
}

int front_message_read(const void *bytes, size_t size, struct front_received *out)
{
    struct frame in = {.at = bytes, .end = (const uint8_t *)bytes + size};
    struct front_message *message = &out->message;
    *out = (struct front_received){.planes = NULL};
    const uint64_t kind = frame_get(&in, 1);
    message->kind = (enum front_kind)kind;
    message->a = frame_get(&in, 8);
    message->b = frame_get(&in, 8);
    message->c = frame_get(&in, 8);
    message->text = message_get_text(&in);
    message->more = message->text == NULL ? NULL : message_get_text(&in);
    if (kind == 0 || kind >= FRONT_KINDS || message->more == NULL)
        return PMIXFAB_ERR_CORRUPT;
    message->n = (uint32_t)frame_get(&in, 4);
    int rc = in.overrun ? PMIXFAB_ERR_CORRUPT : read_planes(&in, message->n, out);
    if (rc == PMIXFAB_OK && (in.overrun || frame_left(&in) > 0))
        rc = PMIXFAB_ERR_CORRUPT;
    if (rc != PMIXFAB_OK)
        front_message_free(out);
    message->planes = out->planes;
    message->generations = out->generations;
    return rc;
}

void front_message_free(struct front_received *received)
{
    free(received->planes);
    free(received->generations);
    received->planes = NULL;
    received->generations = NULL;
}
