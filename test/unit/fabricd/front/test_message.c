/* What fabricd and its front say to each other: what is put is read, and what is no message is refused. */
#include <string.h>

#include "fabricd/front/message.h"
#include "test/fabrics/fabrics.h"
#include "test/unit/test.h"

static const struct event_plane planes[] = {
    {1, "ib0", ""}, {4000000000U, "a plane with a longer name", ""}, {3, "", ""}};
static const uint64_t generations[] = {1, UINT64_MAX, 0};

static const struct front_message some[] = {
    {.kind = FRONT_BEGIN, .c = 70000},
    {.kind = FRONT_CHECKED,
     .a = 1,
     .b = 19,
     .c = UINT64_MAX,
     .text = "node7 delivers more often than once a second"},
    {.kind = FRONT_MEANT, .a = 5, .b = 0, .text = "a.namespace", .more = "and more"},
    {.kind = FRONT_SERVE,
     .a = 12,
     .b = (uint64_t)INT64_MAX,
     .n = 3,
     .planes = planes,
     .generations = generations},
    {.kind = FRONT_ANNOUNCE, .a = 1, .b = 12, .c = 7, .n = 2, .planes = planes},
};
enum { N_SOME = sizeof(some) / sizeof(some[0]) };

static struct evbuffer *put(const struct front_message *message)
{
    struct evbuffer *bytes = evbuffer_new();
    assert_non_null(bytes);
    assert_int_equal(front_message_put(bytes, message), PMIXFAB_OK);
    return bytes;
}

static void check_same(const struct front_message *got, const struct front_message *want)
{
    assert_int_equal(got->kind, want->kind);
    assert_true(got->a == want->a && got->b == want->b && got->c == want->c);
    assert_string_equal(got->text, want->text != NULL ? want->text : "");
    assert_string_equal(got->more, want->more != NULL ? want->more : "");
    assert_int_equal(got->n, want->n);
    for (uint32_t i = 0; i < want->n; i++) {
        assert_int_equal(got->planes[i].index, want->planes[i].index);
        assert_string_equal(got->planes[i].name, want->planes[i].name);
        assert_true(got->generations[i] == (want->generations == NULL ? 0 : want->generations[i]));
    }
}

TEST(what_is_put_is_read)
{
    for (unsigned m = 0; m < N_SOME; m++) {
        struct evbuffer *bytes = put(&some[m]);
        const size_t size = evbuffer_get_length(bytes);
        const uint8_t *at = evbuffer_pullup(bytes, -1);
        struct front_received received;
        assert_int_equal((size_t)at[0] + ((size_t)at[1] << 8), size - FRONT_HEAD);
        assert_int_equal(front_message_read(at + FRONT_HEAD, size - FRONT_HEAD, &received), PMIXFAB_OK);
        check_same(&received.message, &some[m]);
        front_message_free(&received);
        evbuffer_free(bytes);
    }
}

TEST(a_part_or_more_is_none)
{
    for (unsigned m = 0; m < N_SOME; m++) {
        struct evbuffer *bytes = put(&some[m]);
        const size_t size = evbuffer_get_length(bytes) - FRONT_HEAD;
        uint8_t longer[512];
        struct front_received received;
        assert_true(size < sizeof(longer));
        memcpy(longer, evbuffer_pullup(bytes, -1) + FRONT_HEAD, size);
        longer[size] = 0;
        for (size_t part = 0; part <= size + 1; part++)
            if (part != size)
                assert_int_equal(front_message_read(longer, part, &received), PMIXFAB_ERR_CORRUPT);
        evbuffer_free(bytes);
    }
}
