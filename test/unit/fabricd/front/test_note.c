/* Whose message a front was lost on: the page that it shares, and who is refused because of that. */
#include <arpa/inet.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fabricd/front/front.h"
#include "fabricd/front/front_note.h"
#include "fabricd/front/refusals.h"
#include "test/unit/test.h"

TEST(what_one_notes_the_other_reads)
{
    struct guard_origin origin;
    char byte;
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    int note = note_hand_over(ends[0]);
    assert_true(note >= 0);
    assert_int_equal(write(ends[0], "x", 1), 1);
    struct guard_note *page = note_take(ends[1]);
    assert_non_null(page);
    assert_true(read(ends[1], &byte, 1) == 1 && byte == 'x'); /* what is said behind it is there */
    assert_false(note_read(note, &origin));
    page->origin = (struct guard_origin){.local = 1, .uid = 7};
    assert_false(note_read(note, &origin));
    page->noted = 1;
    assert_true(note_read(note, &origin) && origin.local == 1 && origin.uid == 7);
    assert_int_not_equal(ftruncate(note, 0), 0); /* nor can the other end */
    assert_int_not_equal(ftruncate(note, 1 << 20), 0);
    munmap(page, sizeof(*page));
    close(note);
    close(ends[0]);
    assert_null(note_take(ends[1])); /* nobody is there */
    close(ends[1]);
}

TEST(nothing_is_handed_over)
{
    struct guard_origin origin;
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    assert_int_equal(write(ends[0], "", 1), 1);
    assert_null(note_take(ends[1]));
    close(ends[0]);
    close(ends[1]);
    assert_false(note_read(-1, &origin));
}

/* Whatever stands there becomes an origin that is compared as bytes, or none. */
TEST(lies)
{
    struct guard_origin origin;
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    int note = note_hand_over(ends[0]);
    struct guard_note *page = note_take(ends[1]);
    memset(page, 0xff, sizeof(*page));
    assert_true(note_read(note, &origin) && origin.local == 1 && origin.uid == UINT32_MAX);
    assert_true(IN6_IS_ADDR_UNSPECIFIED(&origin.address));
    page->origin.local = 0;
    assert_true(note_read(note, &origin) && origin.local == 0 && origin.uid == 0);
    memset(&page->origin, 0, sizeof(page->origin));
    assert_false(note_read(note, &origin));
    munmap(page, sizeof(*page));
    close(note);
    close(ends[0]);
    close(ends[1]);
}

static struct guard_origin user(uint32_t uid)
{
    return (struct guard_origin){.local = 1, .uid = uid};
}

static struct refusals refusals;

static unsigned refused_now(int64_t now)
{
    unsigned at = 0, n = 0;
    while (refusals_next(&refusals, &at, now) != NULL)
        n++;
    return n;
}

TEST(longer_each_time)
{
    const uid_t spared[] = {0, 5};
    struct guard_origin one = user(7), root = user(0), other = {.local = 0, .uid = 0};
    int64_t now = 1000;
    refusals = (struct refusals){.all = {{.seconds = 0}}};
    assert_int_equal(refusals_add(&refusals, &root, spared, 2, now), 0);
    assert_int_equal(refused_now(now), 0);
    other.address.s6_addr[15] = 5; /* an address is spared by no uid */
    assert_int_equal(refusals_add(&refusals, &other, spared, 2, now), REFUSED_FIRST);
    assert_int_equal(refused_now(now + REFUSED_FIRST * 1000 - 1), 1);
    assert_int_equal(refused_now(now + REFUSED_FIRST * 1000), 0);
    for (unsigned seconds = REFUSED_FIRST; seconds < REFUSED_MOST; seconds *= 2) {
        assert_int_equal(refusals_add(&refusals, &one, spared, 2, now), seconds);
        now += seconds * 1000 + 1;
    }
    assert_int_equal(refusals_add(&refusals, &one, spared, 2, now), REFUSED_MOST);
    now += (REFUSED_MOST + REFUSED_AGAIN) * INT64_C(1000);
    assert_int_equal(refusals_add(&refusals, &one, spared, 2, now), REFUSED_MOST);
    now += (REFUSED_MOST + REFUSED_AGAIN) * INT64_C(1000) + 1; /* it was quiet */
    assert_int_equal(refusals_add(&refusals, &one, spared, 2, now), REFUSED_FIRST);
}

TEST(no_more_than_so_many)
{
    refusals = (struct refusals){.all = {{.seconds = 0}}};
    for (uint32_t uid = 1; uid <= 3 * REFUSALS_MAX; uid++) {
        const struct guard_origin one = user(uid);
        assert_int_equal(refusals_add(&refusals, &one, NULL, 0, uid), REFUSED_FIRST);
    }
    assert_int_equal(refused_now(1), REFUSALS_MAX);
    unsigned at = 0;
    for (const struct refusal *one; (one = refusals_next(&refusals, &at, 1)) != NULL;)
        assert_true(one->origin.uid > 2 * REFUSALS_MAX); /* the latest */
}

TEST(origins_as_text)
{
    struct guard_origin origin = {.local = 1, .uid = 1000};
    char text[ORIGIN_TEXT];
    origin_text(&origin, text);
    assert_string_equal(text, "uid 1000");
    origin = (struct guard_origin){.local = 0};
    origin_text(&origin, text);
    assert_string_equal(text, "");
    assert_int_equal(inet_pton(AF_INET6, "2001:db8::7", &origin.address), 1);
    origin_text(&origin, text);
    assert_string_equal(text, "2001:db8::7");
    assert_int_equal(inet_pton(AF_INET6, "::ffff:127.0.0.1", &origin.address), 1);
    origin_text(&origin, text);
    assert_string_equal(text, "127.0.0.1");
}
