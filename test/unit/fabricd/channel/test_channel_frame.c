/* The bytes of the nodes' channel: what is put is read, cut at each byte, with each byte altered, and
 * bounded. */
#include <string.h>

#include "test/channel_peer.h"
#include "test/unit/test.h"

static const struct channel_head heads[] = {
    {CHANNEL_VERSION, CHANNEL_HELLO, 1, 9, 30},
    {CHANNEL_VERSION, CHANNEL_DELIVER, 7, 300, 1000},
    {CHANNEL_VERSION, CHANNEL_REFUSED, 0, 0, 14},
    {CHANNEL_VERSION, CHANNEL_SNAPSHOT, UINT32_MAX, CHANNEL_MAX_CREDENTIAL, 100000},
    {CHANNEL_VERSION, CHANNEL_FETCH, 3, 12, 0},
};

static struct evbuffer *put(const struct channel_head *head)
{
    struct evbuffer *out = evbuffer_new();
    OWNED(free) char *credential = must_have(head->credential + 1);
    OWNED(free) char *body = must_have(head->body);
    memset(credential, 'c', head->credential);
    memset(body, 'b', head->body);
    assert_int_equal(channel_put(out, head, credential, body), PMIXFAB_OK);
    return out;
}

static int allow(const struct channel_head *head, void *cbdata, struct fab_err *err)
{
    (void)err, (void)head;
    return *(int *)cbdata;
}

static int take(struct channel_frame *frame, struct evbuffer *in, int allowed)
{
    struct fab_err err = {""};
    const int rc = channel_take(frame, in, allow, &allowed, &err);
    assert_true((rc < 0) == (err.text[0] != '\0') || allowed < 0);
    return rc;
}

static void check_same(const struct channel_frame *frame, const struct channel_head *head)
{
    assert_int_equal(frame->head.type, head->type);
    assert_int_equal(frame->head.request, head->request);
    assert_int_equal(strlen(frame->credential), head->credential);
    assert_int_equal(frame->head.body, head->body);
    for (size_t i = 0; i < head->body; i++)
        assert_int_equal(frame->body[i], 'b');
}

TEST(frames_byte_by_byte)
{
    for (size_t k = 0; k < sizeof(heads) / sizeof(heads[0]); k++) {
        struct evbuffer *whole = put(&heads[k]), *in = evbuffer_new();
        struct channel_frame frame = {.begun = false};
        int rc = CHANNEL_MORE;
        while (rc == CHANNEL_MORE) {
            assert_int_equal(evbuffer_remove_buffer(whole, in, 1), 1); /* a cut frame is never whole */
            rc = take(&frame, in, PMIXFAB_OK);
        }
        assert_int_equal(rc, PMIXFAB_OK);
        assert_int_equal(evbuffer_get_length(whole), 0);
        check_same(&frame, &heads[k]);
        channel_frame_clear(&frame);
        evbuffer_free(whole);
        evbuffer_free(in);
    }
}

TEST(several_at_once_and_one_that_is_skipped)
{
    struct evbuffer *in = put(&heads[1]), *more = put(&heads[0]);
    struct channel_frame frame = {.begun = false};
    evbuffer_add_buffer(in, more);
    assert_int_equal(take(&frame, in, CHANNEL_SKIP), PMIXFAB_OK);
    assert_null(frame.body);
    assert_int_equal(frame.head.request, 7);
    channel_frame_clear(&frame);
    assert_int_equal(take(&frame, in, PMIXFAB_OK), PMIXFAB_OK);
    check_same(&frame, &heads[0]);
    channel_frame_clear(&frame);
    assert_int_equal(take(&frame, in, PMIXFAB_OK), CHANNEL_MORE);
    evbuffer_free(in);
    in = put(&heads[1]);
    assert_int_equal(take(&frame, in, PMIXFAB_ERR_RANGE), PMIXFAB_ERR_RANGE);
    assert_null(frame.body);
    evbuffer_free(in);
    evbuffer_free(more);
}

static void must_fail_head(const void *bytes, size_t size, int code, const char *part)
{
    struct evbuffer *in = evbuffer_new();
    struct channel_frame frame = {.begun = false};
    struct fab_err err = {""};
    int allowed = PMIXFAB_OK;
    evbuffer_add(in, bytes, size);
    must_fail(channel_take(&frame, in, allow, &allowed, &err), code, &err, part);
    evbuffer_free(in);
    channel_frame_clear(&frame);
}

TEST(heads_that_are_wrong)
{
    struct evbuffer *good = put(&heads[0]);
    unsigned char bytes[CHANNEL_HEAD];
    evbuffer_copyout(good, bytes, sizeof(bytes));
    evbuffer_free(good);
    must_fail_head("GET / HTTP/1.1\r\n\r\n", 18, PMIXFAB_ERR_FOREIGN, "begins with \"GET / HTTP/1.1??");
    must_fail_head("G", 1, PMIXFAB_ERR_FOREIGN, "another protocol");
    must_fail_head("\xff\xff\xff\xff\xff\xff\xff\xff", 8, PMIXFAB_ERR_FOREIGN, "it speaks PMIx");
    bytes[8] = 2;
    must_fail_head(bytes, sizeof(bytes), PMIXFAB_ERR_NEWER,
                   "version 2 of the nodes' channel, and this fabricd version 1");
    bytes[8] = 0;
    must_fail_head(bytes, sizeof(bytes), PMIXFAB_ERR_OLDER, "version 0");
    bytes[8] = 1;
    bytes[11] = 1;
    must_fail_head(bytes, sizeof(bytes), PMIXFAB_ERR_CORRUPT, "is inconsistent");
    bytes[11] = 0;
    bytes[18] = 1;
    must_fail_head(bytes, sizeof(bytes), PMIXFAB_ERR_RANGE, "at most 4096 are accepted");
}

TEST(seals)
{
    const struct channel_seal seal = {CHANNEL_DELIVER, 9, "a node's nonce", "a scheduler's"};
    uint8_t digest[CHANNEL_DIGEST], bytes[CHANNEL_SEAL];
    struct fab_err err = {""};
    static const uint8_t empty[4] = {0xe3, 0xb0, 0xc4, 0x42}; /* of SHA-256 of nothing */
    channel_digest("", 0, digest);
    assert_memory_equal(digest, empty, sizeof(empty));
    channel_seal_put(&seal, digest, bytes);
    must(channel_seal_check(&seal, digest, bytes, sizeof(bytes), &err), &err);
    for (size_t i = 0; i < sizeof(bytes); i++) {
        for (unsigned bit = 1; bit < 256; bit *= 2) {
            bytes[i] ^= (uint8_t)bit;
            must_fail(channel_seal_check(&seal, digest, bytes, sizeof(bytes), fresh_err()),
                      i < 8 ? PMIXFAB_ERR_FOREIGN : PMIXFAB_ERR_PERM, fresh_err(), "");
            bytes[i] ^= (uint8_t)bit;
        }
        assert_true(channel_seal_check(&seal, digest, bytes, i, &err) == PMIXFAB_ERR_FOREIGN);
    }
}

/* Each kind of body, with how it is read. */
static int read_hello(const void *body, size_t size)
{
    struct channel_hello out;
    return channel_get_hello(body, size, &out);
}

static int read_outcome(const void *body, size_t size)
{
    struct channel_outcome out;
    return channel_get_outcome(body, size, &out);
}

static int read_wait(const void *body, size_t size)
{
    struct channel_wait out;
    return channel_get_wait(body, size, &out);
}

static int read_fetch(const void *body, size_t size)
{
    struct channel_fetch out;
    return channel_get_fetch(body, size, &out);
}

static int read_news(const void *body, size_t size)
{
    struct channel_news out;
    const int rc = channel_get_news(body, size, &out);
    assert_true(rc == PMIXFAB_OK || out.planes == NULL);
    free(out.planes);
    return rc;
}

/* Whole it is read; shorter or longer by a byte it is not; altered it is read or refused, and nothing else.
 */
static void try_body(const void *body, size_t size, int (*read)(const void *body, size_t size))
{
    assert_int_equal(read(body, size), PMIXFAB_OK);
    for (size_t n = 0; n <= size + 1; n++) {
        OWNED(free) uint8_t *copy = must_have(n);
        memcpy(copy, body, n < size ? n : size);
        assert_int_equal(read(copy, n) == PMIXFAB_OK, n == size);
    }
    for (size_t i = 0; i < size; i++) {
        OWNED(free) uint8_t *copy = must_have(size);
        memcpy(copy, body, size);
        for (unsigned bit = 1; bit < 256; bit *= 2) {
            copy[i] ^= (uint8_t)bit;
            read(copy, size);
            copy[i] ^= (uint8_t)bit;
        }
    }
}

TEST(bodies)
{
    const struct channel_hello hello = {"a nonce", "node7.cluster"};
    const struct channel_outcome outcome = {PMIXFAB_ERR_PERM, 77, "uid 5 may\nnot"};
    const struct channel_wait wait = {1, 2, 3, true, false};
    const struct channel_fetch fetch = {1, UINT64_MAX};
    struct channel_plane planes[] = {{1, 7, 8, 9, "ib0"}, {2, 5, -1, UINT64_MAX, ""}};
    const struct channel_news news = {1, 2, -3, false, true, 2, planes};
    uint8_t body[CHANNEL_MAX_WORDS];
    struct channel_outcome read;
    struct channel_news told;
    void *bytes;
    size_t size;
    try_body(body, channel_put_hello(&hello, body), read_hello);
    size = channel_put_outcome(&outcome, body);
    try_body(body, size, read_outcome);
    assert_int_equal(channel_get_outcome(body, size, &read), PMIXFAB_OK);
    assert_true(read.code == PMIXFAB_ERR_PERM && read.held == 77);
    assert_string_equal(read.reason, "uid 5 may?not");
    try_body(body, channel_put_wait(&wait, body), read_wait);
    try_body(body, channel_put_fetch(&fetch, body), read_fetch);
    assert_int_equal(channel_put_news(&news, &bytes, &size), PMIXFAB_OK);
    try_body(bytes, size, read_news);
    assert_int_equal(channel_get_news(bytes, size, &told), PMIXFAB_OK);
    assert_true(told.scan && !told.stale && told.n == 2 && told.planes[1].published == -1);
    assert_string_equal(told.planes[0].name, "ib0");
    free(told.planes);
    free(bytes);
    const struct channel_news many = {.n = CHANNEL_MAX_PLANES + 1};
    assert_int_equal(channel_put_news(&many, &bytes, &size), PMIXFAB_ERR_RANGE);
}
