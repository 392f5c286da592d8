/*
 * Any bytes as what comes over the nodes' channel: frames, in pieces of a size that the first byte says, and
 * the body of each as every kind of body. The same bytes in one piece give the same frames. What is read and
 * has one form only gives the same bytes when it is put again.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/channel/channel_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
    if (!ok)
        abort();
}

static int allow(const struct channel_head *head, void *cbdata, struct fab_err *err)
{
    (void)cbdata, (void)err;
    return head->body > 1u << 20 ? PMIXFAB_ERR_RANGE : head->request % 5 == 4 ? CHANNEL_SKIP : PMIXFAB_OK;
}

static void same_again(const uint8_t *again, size_t n, const uint8_t *body, size_t size)
{
    must(n == size && memcmp(again, body, size) == 0);
}

static void try_bodies(const uint8_t *body, size_t size)
{
    uint8_t again[CHANNEL_MAX_WORDS];
    struct channel_hello hello;
    struct channel_outcome outcome;
    struct channel_wait wait;
    struct channel_fetch fetch;
    struct channel_news news;
    struct channel_seal seal = {.type = 1};
    uint8_t digest[CHANNEL_DIGEST] = {0};
    struct fab_err err = {""};
    void *bytes;
    size_t n;
    if (channel_get_hello(body, size, &hello) == PMIXFAB_OK)
        same_again(again, channel_put_hello(&hello, again), body, size);
    if (channel_get_fetch(body, size, &fetch) == PMIXFAB_OK)
        same_again(again, channel_put_fetch(&fetch, again), body, size);
    if (channel_get_outcome(body, size, &outcome) == PMIXFAB_OK)
        must(strlen(outcome.reason) < sizeof(outcome.reason) && outcome.code <= 0);
    channel_get_wait(body, size, &wait);
    if (channel_get_news(body, size, &news) == PMIXFAB_OK) {
        must(channel_put_news(&news, &bytes, &n) == PMIXFAB_OK && n == size);
        free(bytes);
        free(news.planes);
    }
    must(channel_seal_check(&seal, digest, body, size, &err) == PMIXFAB_OK || err.text[0] != '\0');
}

/* Reads all of it; returns how many frames there were, and a sum of them. */
static unsigned read_all(const uint8_t *data, size_t size, size_t piece, uint64_t *sum, int *end)
{
    struct evbuffer *in = evbuffer_new();
    struct channel_frame frame = {.begun = false};
    struct fab_err err = {""};
    unsigned n = 0;
    *sum = 0;
    *end = CHANNEL_MORE;
    must(in != NULL);
    while (size > 0 && *end >= 0) {
        const size_t now = size < piece ? size : piece;
        evbuffer_add(in, data, now);
        data += now;
        size -= now;
        while ((*end = channel_take(&frame, in, allow, NULL, &err)) == PMIXFAB_OK) {
            n++;
            *sum = *sum * 31 + frame.head.request + frame.head.body + strlen(frame.credential);
            if (frame.body != NULL)
                try_bodies(frame.body, frame.head.body);
            channel_frame_clear(&frame);
        }
    }
    channel_frame_clear(&frame);
    evbuffer_free(in);
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t sum, sum_again;
    int end, end_again;
    if (size == 0)
        return 0;
    const unsigned n = read_all(data + 1, size - 1, 1 + data[0] % 64, &sum, &end);
    const unsigned again = read_all(data + 1, size - 1, size, &sum_again, &end_again);
    must(n == again && sum == sum_again && end == end_again);
    try_bodies(data + 1, size - 1);
    return 0;
}
