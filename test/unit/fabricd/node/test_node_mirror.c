/* A node's mirror against a scheduler that says anything: only what is whole, and what was asked for, gets
 * into the run directory and into service. The channel is played here; the delay is over when a test says so.
 */

#include <event2/event.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabricd/node/node_mirror.h"
#include "fabricd/serving/rundir.h"
#include "test/unit/served_small.h"
#include "test/unit/test.h"

/* ---- time and the channel --------------------------------------------------------------------------- */

static struct event *due; /* the one timer that a mirror has */

int event_add(struct event *event, const struct timeval *tv)
{
    (void)tv;
    due = event;
    return 0;
}

int event_pending(const struct event *event, short what, struct timeval *tv)
{
    (void)event, (void)what, (void)tv;
    return due != NULL;
}

static void let_time_pass(void)
{
    struct event *event = due;
    assert_non_null(event);
    due = NULL;
    event_get_callback(event)(-1, EV_TIMEOUT, event_get_callback_arg(event));
}

static struct {
    channel_reply_fn fn;
    void *cbdata;
    struct channel_fetch fetch;
} asked;

int channel_client_ask(struct channel_client *client, enum channel_type type, void *body, size_t size,
                       size_t most, unsigned deadline_ms, channel_reply_fn fn, void *cbdata)
{
    (void)client, (void)deadline_ms;
    assert_null(asked.fn);
    assert_int_equal(type, CHANNEL_FETCH);
    assert_true(most > 0);
    assert_int_equal(channel_get_fetch(body, size, &asked.fetch), PMIXFAB_OK);
    free(body);
    asked.fn = fn;
    asked.cbdata = cbdata;
    return PMIXFAB_OK;
}

static void reply(struct channel_reply *reply)
{
    channel_reply_fn fn = asked.fn;
    assert_non_null(fn);
    asked.fn = NULL;
    fn(reply, asked.cbdata);
    free(reply->body);
}

static void reply_status(int code, bool away)
{
    struct channel_reply answer = {.code = code, .reason = "why", .away = away};
    reply(&answer);
}

static void reply_bytes(const void *bytes, size_t size)
{
    struct channel_reply answer = {.reason = "", .body = malloc(size + 1), .size = size};
    memcpy(answer.body, bytes, size);
    reply(&answer);
}

/* ---- the node ----------------------------------------------------------------------------------- */

static char rundir[64];
static struct config config = {.rundir = rundir};
static struct mirror *mirror;
static unsigned n_events, n_done;
static int last_code;

static unsigned n_served;
static struct served *served;
static bool is_slow; /* what comes next waits for go_on() */
static void (*then)(void *cbdata);
static void *then_cbdata;

static void on_changes(bool pending, const struct event_plane *planes, uint32_t n, uint64_t generation,
                       void (*next)(void *cbdata), void *next_cbdata, void *cbdata)
{
    (void)pending, (void)planes, (void)generation, (void)cbdata;
    n_events += n;
    then = next;
    then_cbdata = next_cbdata;
    if (!is_slow)
        next(next_cbdata);
}

static void on_served(void *cbdata)
{
    (void)cbdata;
    n_served++;
}

static void on_done(int code, const char *reason, void *cbdata)
{
    (void)cbdata;
    assert_true((code == PMIXFAB_OK) == (reason[0] == '\0'));
    last_code = code;
    n_done++;
}

static void start(struct event_base *base)
{
    const struct mirror_calls calls = {on_changes, on_served, on_done, NULL};
    n_events = n_done = n_served = 0;
    is_slow = false;
    due = NULL;
    asked.fn = NULL;
    served = served_new();
    assert_int_equal(mirror_new(base, &config, NULL, &calls, served, &mirror, fresh_err()), PMIXFAB_OK);
}

static void stop(void)
{
    mirror_free(mirror);
    served_free(served);
}

static int setup(void **state)
{
    strcpy(rundir, "/tmp/fabricd-mirror-XXXXXX");
    if (mkdtemp(rundir) == NULL)
        return 1;
    *state = event_base_new();
    start(*state);
    return 0;
}

static int teardown(void **state)
{
    stop();
    event_base_free(*state);
    return remove_folder(rundir);
}

/* The scheduler's planes. */
static struct served_plane *ib0, *ib1;

static int64_t other; /* ib1 was published so much later than it was */

static void news(uint64_t generation, int64_t published, bool both)
{
    struct channel_plane planes[2] = {
        {.index = 0, .generation = 7, .name = "ib0", .published = ib0->info.published, .size = ib0->size},
        {.index = 1,
         .generation = 7,
         .name = "ib1",
         .published = ib1->info.published + other,
         .size = ib1->size}};
    const struct channel_news told = {
        .generation = generation, .published = published, .n = both ? 2 : 1, .planes = planes};
    mirror_news(mirror, &told);
}

static void serves(uint64_t generation, uint32_t n)
{
    struct served_set *set = served_get(served);
    assert_int_equal(set->generation, generation);
    assert_int_equal(set->n, n);
    served_set_put(set);
}

static bool has_file(const char *name)
{
    return access(printed("%s/%s", rundir, name), F_OK) == 0;
}

static void fetch_both(void)
{
    news(7, 100, true);
    let_time_pass();
    assert_int_equal(asked.fetch.index, 0);
    reply_bytes(ib0->bytes, ib0->size);
    reply_bytes(ib1->bytes, ib1->size);
    assert_int_equal(last_code, PMIXFAB_OK);
    serves(7, 2);
}

/* The next step waits until it is told, and what is published meanwhile is followed afterwards. */
TEST_WITH(test_slow_to_tell, setup, teardown)
{
    is_slow = true;
    news(7, 100, true);
    let_time_pass();
    reply_bytes(ib0->bytes, ib0->size);
    reply_bytes(ib1->bytes, ib1->size);
    assert_int_equal(n_events, 2);
    assert_false(has_file("ib0.snap"));
    serves(0, 0);
    then(then_cbdata);
    assert_true(has_file("ib0.snap") && has_file("ib1.snap"));
    assert_int_equal(n_events, 4);
    assert_int_equal(n_served, 1);
    assert_int_equal(n_done, 0);
    serves(7, 2);
    news(8, 200, false);
    assert_null(due);
    is_slow = false;
    then(then_cbdata);
    assert_int_equal(n_done, 2);
    assert_int_equal(n_served, 2);
    serves(8, 1);
    is_slow = true; /* and the end, half-way */
    news(9, 300, true);
    let_time_pass();
    reply_bytes(ib1->bytes, ib1->size);
}

/* Nothing of a generation gets in before all of it is there and good. */
TEST_WITH(test_what_is_refused, setup, teardown)
{
    OWNED(free) char *damaged = must_have(ib1->size);
    for (int i = 0; i < 8; i++) {
        news(7, 100, true);
        let_time_pass();
        reply_bytes(ib0->bytes, ib0->size);
        assert_int_equal(asked.fetch.index, 1);
        memcpy(damaged, ib1->bytes, ib1->size);
        damaged[ib1->size / 2] ^= 1;
        if (i == 0)
            reply_status(PMIXFAB_ERR_TIMEOUT, true);
        else if (i == 1)
            reply_status(PMIXFAB_ERR_BUSY, false);
        else if (i == 2)
            reply_status(PMIXFAB_ERR_NOTFOUND, false); /* there is another generation: its news follow */
        else if (i == 3)
            reply_bytes("", 0);
        else if (i == 4)
            reply_bytes(ib1->bytes, ib1->size - 1);
        else if (i == 5)
            reply_bytes(damaged, ib1->size);
        else if (i == 6)
            reply_bytes(ib0->bytes, ib0->size); /* another plane */
        else
            news(9, 300, false), reply_bytes(ib1->bytes, ib1->size); /* it has gone on meanwhile */
        serves(0, 0);
        assert_false(has_file("ib0.snap") || has_file("ib1.snap"));
        if (i < 7 && i != 2)
            assert_true(last_code != PMIXFAB_OK);
    }
    assert_int_equal(asked.fetch.index, 0); /* of the newer one */
    reply_bytes(ib0->bytes, ib0->size);
    serves(9, 1);
    stop();
    start(*state); /* for the teardown */
}

/* Equal numbers are not enough: a scheduler may have lost its store, and count anew. */
TEST_WITH(test_another_history, setup, teardown)
{
    fetch_both();
    news(0, 0, false); /* a scheduler that knows nothing */
    assert_null(due);
    assert_int_equal(last_code, PMIXFAB_ERR_NOTFOUND);
    serves(7, 2);
    stop();
    start(*state);
    serves(7, 2); /* from the files */
    news(8, 200, true);
    let_time_pass();
    assert_null(asked.fn); /* both are as they are */
    serves(8, 2);
    other = 12345; /* ib1 is another one of the same number */
    news(9, 300, true);
    let_time_pass();
    assert_int_equal(asked.fetch.index, 1);
    other = 0;
    reply_bytes(ib1->bytes, ib1->size);
    serves(9, 2);
}

/* ---- what stands in the run directory ------------------------------------------------------------- */

static void put(const char *name, const void *bytes, size_t size)
{
    write_file(printed("%s/%s", rundir, name), bytes, size);
}

TEST_WITH(test_loads_what_is_good, setup, teardown)
{
    put("ib0.snap", ib0->bytes, ib0->size);
    put("other.snap", ib1->bytes, ib1->size); /* not this name's plane */
    put("cut.snap", ib0->bytes, ib0->size / 2);
    put("empty.snap", "", 0);
    put(".ib1.snap.new", ib1->bytes, ib1->size);
    put("text", "no snapshot", 11);
    assert_int_equal(mkdir(printed("%s/folder.snap", rundir), 0755), 0);
    assert_int_equal(mkfifo(printed("%s/fifo.snap", rundir), 0644), 0); /* nobody writes: it must not wait */
    assert_int_equal(symlink("ib0.snap", printed("%s/link.snap", rundir)), 0);
    stop();
    start(*state);
    serves(7, 1);
    assert_true(has_file("ib0.snap") && has_file("text"));
    assert_false(has_file("other.snap") || has_file("cut.snap") || has_file(".ib1.snap.new"));
}

FIXTURE(make_planes)
{
    ib0 = small_plane("fattree2:2,1,2", "ib0", 0, true);
    ib1 = small_plane("torus:3,3:1", "ib1", 1, false);
    return ib0 == NULL || ib1 == NULL;
}

FIXTURE(put_planes)
{
    served_plane_put(ib0);
    served_plane_put(ib1);
    return 0;
}

TEST_GROUP(make_planes, put_planes)
