/* What fabricd says to its fronts, one after the other, and what it does not believe of them. */
#include <event2/event.h>
#include <event2/thread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fabricd/base/clock.h"
#include "fabricd/front/front_state.h"
#include "test/unit/test.h"
#include "topo/base/frame.h"

static struct config config;
static struct front *front;
static int theirs; /* the front's end of the channel */
static unsigned n_done;

static bool on_received(const struct front_message *message, void *cbdata)
{
    (void)message, (void)cbdata;
    return true;
}

static void on_closed(const char *why, void *cbdata)
{
    (void)why, (void)cbdata;
}

/* The next front, which is told all there is. */
static void begin(void)
{
    static const struct channel_fns fns = {.received = on_received, .closed = on_closed};
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    theirs = ends[1];
    front->number++;
    front->life.began = clock_now(CLOCK_MONOTONIC) / 1000;
    assert_int_equal(channel_new(front->base, ends[0], 4096, &fns, &front->channel), PMIXFAB_OK);
    front_tell_all(front);
}

static void lose(void)
{
    channel_free(front->channel);
    close(theirs);
    front->channel = NULL;
    front->ready = false;
    front_go_on(front);
}

/* How many announcements it has heard; the last one's numbers. */
struct heard {
    unsigned pending, updated;
    uint64_t generation, number;
    uint32_t n;
};

static struct heard hear(void)
{
    static uint8_t bytes[65536];
    struct heard heard = {0};
    size_t size = 0;
    ssize_t n;
    for (int i = 0; i < 3; i++)
        event_base_loop(front->base, EVLOOP_NONBLOCK);
    while ((n = recv(theirs, bytes + size, sizeof(bytes) - size, MSG_DONTWAIT)) > 0)
        size += (size_t)n;
    for (size_t at = 0; at < size;) {
        struct frame head = {.at = bytes + at, .end = bytes + size};
        const size_t length = (size_t)frame_get(&head, FRONT_HEAD);
        struct front_received got;
        assert_int_equal(front_message_read(bytes + at + FRONT_HEAD, length, &got), PMIXFAB_OK);
        if (got.message.kind == FRONT_ANNOUNCE) {
            heard.pending += got.message.a == 1;
            heard.updated += got.message.a == 0;
            heard.generation = got.message.b;
            heard.number = got.message.c;
            heard.n = got.message.n;
        }
        front_message_free(&got);
        at += FRONT_HEAD + length;
    }
    return heard;
}

static void says(enum front_kind kind, uint64_t c, bool good)
{
    assert_int_equal(
        front_take_word(front, &(struct front_message){.kind = kind, .c = c, .text = "", .more = ""}), good);
}

static void on_done(void *cbdata)
{
    (void)cbdata;
    n_done++;
}

static void announce(bool pending, uint32_t plane, uint64_t generation)
{
    const struct event_plane planes[] = {{.index = plane, .name = "ib"}};
    front_announce(front, pending, planes, 1, generation, on_done, NULL);
}

static void world(void)
{
    evthread_use_pthreads();
    config = (struct config){.rundir = "/nowhere", .host = "host"};
    front = must_have(sizeof(*front));
    front->base = event_base_new();
    front->config = &config;
    front->served = served_new();
    assert_int_equal(front_words_start(front), PMIXFAB_OK);
    n_done = 0;
    begin();
}

static void world_end(void)
{
    lose();
    front_words_stop(front);
    event_base_loop(front->base, EVLOOP_NONBLOCK);
    event_base_free(front->base);
    served_free(front->served);
    free(front);
}

TEST(a_pair)
{
    world();
    front->ready = true;
    announce(true, 1, 2);
    struct heard heard = hear();
    assert_true(heard.pending == 1 && heard.updated == 0 && n_done == 0);
    says(FRONT_ANNOUNCED, heard.number, true);
    assert_int_equal(n_done, 1);
    announce(false, 1, 2);
    heard = hear();
    assert_true(heard.pending == 0 && heard.updated == 1 && heard.generation == 2 && n_done == 1);
    says(FRONT_ANNOUNCED, heard.number - 1, true); /* late: not this one */
    assert_int_equal(n_done, 1);
    says(FRONT_ANNOUNCED, heard.number, true);
    assert_int_equal(n_done, 2);
    lose();
    begin();
    heard = hear();
    assert_int_equal(heard.pending + heard.updated, 0); /* never twice */
    world_end();
}

TEST(lost_between_the_halves)
{
    world();
    front->ready = true;
    announce(true, 1, 2);
    lose();
    assert_int_equal(n_done, 1); /* nobody waits for it */
    announce(false, 1, 2);
    assert_int_equal(n_done, 2);
    begin();
    struct heard heard = hear();
    assert_true(heard.updated == 1 && heard.pending == 0 && heard.generation == 2 && heard.n == 1);
    lose(); /* this one did not come so far either; and there is more meanwhile */
    announce(true, 3, 3);
    announce(false, 3, 3);
    begin();
    heard = hear();
    assert_true(heard.updated == 1 && heard.generation == 3 && heard.n == 2);
    front->ready = true;
    says(FRONT_ANNOUNCED, heard.number, true);
    lose();
    begin();
    heard = hear();
    assert_int_equal(heard.updated, 0);
    world_end();
}

TEST(while_one_begins)
{
    world();
    assert_int_equal(hear().updated, 0);
    announce(true, 1, 2);
    announce(false, 1, 2); /* it serves the former set perhaps, and somebody has it from there */
    struct heard heard = hear();
    assert_true(heard.pending == 0 && heard.updated == 1 && heard.generation == 2 && n_done == 2);
    front->ready = true;
    says(FRONT_ANNOUNCED, heard.number, true);
    lose();
    begin();
    assert_int_equal(hear().updated, 0);
    world_end();
}

TEST(names_are_not_used_up)
{
    world();
    says(FRONT_NAMED, 256, true);
    assert_int_equal(front->first_name, 256 + 65536);
    says(FRONT_NAMED, UINT32_MAX / 2 - 1, false);
    says(FRONT_NAMED, UINT64_MAX, false);
    assert_int_equal(front->first_name, 256 + 65536);
    front->life.began -= 3600 * 1000; /* in an hour many may come */
    says(FRONT_NAMED, 100000000, true);
    assert_int_equal(front->first_name, 100000000 + 65536);
    lose();
    begin();
    says(FRONT_NAMED, front->first_name + 512, true);
    world_end();
}

TEST(uris)
{
    static const char *const bad[] = {"",
                                      "fabricd.0",
                                      "fabricd.0;tcp4://",
                                      "fabricd.0;tcp4://127.0.0.1",
                                      "fabricd.0;tcp4://127.0.0.1:",
                                      "fabricd.0;tcp4://127.0.0.1:0",
                                      "fabricd.0;tcp4://127.0.0.1:65536",
                                      "fabricd.0;tcp4://127.0.0.1:-1",
                                      "fabricd.0;tcp4://127.0.0.1:12x",
                                      "fabricd.0;tcp4://127.example.org:12",
                                      "fabricd.0;tcp4://127.0.0.1:1;tcp4://192.0.2.1:12",
                                      "fabricd.0;usock://127.0.0.1:12",
                                      "fabricd.0;tcp4://127.0.0.1:12\n2.0.0",
                                      "fabricd.0;tcp4://127.0.0.1 :12",
                                      "fabrice.0;tcp4://127.0.0.1:12"};
    const char *good = "fabricd.0;tcp4://127.0.0.1:12", *far = "fabricd.0;tcp4://192.0.2.1:12";
    unsigned port = 0;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(front_uri_read(bad[i], good, true, &port));
    assert_true(front_uri_read(good, "", false, &port) && port == 12);
    assert_true(front_uri_read("fabricd.0;tcp6://[::1]:65535", good, false, &port) && port == 65535);
    assert_true(front_uri_read(far, good, true, &port));
    assert_false(front_uri_read(far, good, false, &port));
}
