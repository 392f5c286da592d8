/* What nodes deliver, on its way in. */

#include <event2/thread.h>
#include <utlist.h>

#include "test/unit/ingest_lab.h"

/* ---- the queue ---- */

struct answers {
    unsigned n, good, busy, other, refused;
    char reason[512];
};

static void on_answer(int code, uint64_t held, const char *reason, void *cbdata)
{
    struct answers *answers = cbdata;
    answers->n++;
    answers->refused += code == INGEST_NOBODY;
    answers->good += code == PMIXFAB_OK;
    answers->busy += code == PMIXFAB_ERR_BUSY;
    answers->other += code < 0 && code != PMIXFAB_ERR_BUSY;
    assert_true(code == PMIXFAB_OK || held == 0);
    if (code != PMIXFAB_OK) /* the good ones may be answered last */
        snprintf(answers->reason, sizeof(answers->reason), "%s", reason);
}

static void take_all(struct ingest_item *list, void *cbdata)
{
    struct ingest_item *item, *next;
    (void)cbdata;
    DL_FOREACH_SAFE(list, item, next)
    {
        assert_string_equal(item->delivery.host, "node7");
        assert_int_equal(item->uid, lab.uid);
        ingest_answer(item, PMIXFAB_OK, item->delivery.digest, "");
    }
}

static struct config config;
static struct event_base *base;
static struct ingest *ingest;

static void start_ingest(void)
{
    config_init(&config);
    assert_int_equal(config_text(&config.host, "head"), PMIXFAB_OK);
    evthread_use_pthreads();
    base = event_base_new();
    assert_non_null(base);
    const struct ingest_parts parts = {.base = base, .config = &config};
    must_do(ingest_start(&parts, take_all, NULL, &ingest, fresh_err()));
}

static void stop_ingest(void)
{
    ingest_stop(ingest);
    ingest = NULL;
    config_destroy(&config);
    event_base_free(base);
}

static void give(const char *credential, struct answers *answers)
{
    ingest_deliver(ingest, credential, on_answer, answers);
}

static void give_many(unsigned n, const char *credential, struct answers *answers)
{
    for (unsigned i = 0; i < n; i++)
        give(credential, answers);
}

static void turn_until(struct answers *answers, unsigned n)
{
    while (answers->n < n)
        assert_int_equal(event_base_loop(base, EVLOOP_ONCE | EVLOOP_NO_EXIT_ON_EMPTY), 0);
    assert_int_equal(answers->n, n);
}

static char *credential_of(size_t size)
{
    char *text = must_have(size + 1);
    memset(text, 'x', size);
    return memcpy(text, "MUNGE:", 6);
}

LAB_TEST(test_at_the_door)
{
    struct answers answers = {0};
    give("MUNGE:x:", &answers); /* not started */
    assert_int_equal(answers.refused, 1);
    start_ingest();
    give("", &answers);
    give("x", &answers);
    assert_int_equal(answers.other, 2);
    assert_string_equal(answers.reason, "what was delivered is no munge credential");
    OWNED(free) char *large = credential_of(INGEST_MAX_CREDENTIAL + 1);
    give(large, &answers);
    assert_int_equal(answers.other, 3);
    assert_non_null(strstr(answers.reason, "bytes: at most"));
    large[INGEST_MAX_CREDENTIAL] = '\0';
    give(large, &answers);
    turn_until(&answers, 5);
    assert_int_equal(answers.good, 1);
    stop_ingest();
}

LAB_TEST(test_bounds)
{
    struct answers answers = {0};
    start_ingest();
    set_gate(true);
    give_many(INGEST_MAX_ITEMS, "MUNGE:x:", &answers);
    assert_int_equal(answers.n, 0);
    give("MUNGE:x:", &answers);
    assert_int_equal(answers.busy, 1);
    assert_non_null(strstr(answers.reason, "come again later"));
    set_gate(false);
    turn_until(&answers, INGEST_MAX_ITEMS + 1);
    assert_true(answers.good >= INGEST_BURST); /* the rest is more than one host may deliver at once */
    assert_int_equal(answers.good + answers.busy, answers.n);
    assert_non_null(strstr(answers.reason, "node7 delivers more often"));

    memset(&answers, 0, sizeof(answers));
    OWNED(free) char *large = credential_of(INGEST_MAX_CREDENTIAL);
    set_gate(true);
    unsigned fit = INGEST_MAX_BYTES / INGEST_MAX_CREDENTIAL;
    give_many(fit, large, &answers);
    assert_int_equal(answers.n, 0);
    give(large, &answers);
    assert_int_equal(answers.busy, 1);
    set_gate(false);
    turn_until(&answers, fit + 1);
    stop_ingest();
}

LAB_TEST(test_no_munged)
{
    struct answers answers = {0};
    lab.error = EMUNGE_SOCKET;
    start_ingest();
    give_many(100, "MUNGE:x:", &answers);
    turn_until(&answers, 100);
    assert_int_equal(answers.other, 100);
    assert_string_equal(answers.reason, INGEST_NO_MUNGED);
    stop_ingest();
}

/* The stop has begun: munged answers. */
static void on_turned_away(int code, uint64_t held, const char *reason, void *cbdata)
{
    on_answer(code, held, reason, cbdata);
    set_gate(false);
}

/* What waits for a thread is turned away before the threads are waited for. */
LAB_TEST(test_stop)
{
    struct answers answers = {0}, late = {0};
    start_ingest();
    set_gate(true);
    for (unsigned i = 0; i < 50; i++)
        ingest_deliver(ingest, "MUNGE:x:", on_turned_away, &answers);
    wait_until_at_the_gate(true);
    assert_int_equal(answers.n, 0);
    stop_ingest();
    assert_int_equal(answers.refused, 50);
    give("MUNGE:x:", &late);
    assert_int_equal(late.refused, 1);
    start_ingest(); /* and again */
    give("MUNGE:x:", &late);
    turn_until(&late, 2);
    assert_int_equal(late.good, 1);
    stop_ingest();
}

/* A munged that does not come back is not waited for: who asked is answered, and the rest is let go later. */
LAB_TEST(test_stop_without_waiting)
{
    struct answers answers = {0};
    ingest_calls = &hasty_calls;
    lab.error = EMUNGE_CRED_INVALID; /* so that the thread asks nothing of the lab after the gate */
    start_ingest();
    set_gate(true);
    give_many(3, "MUNGE:x:", &answers);
    wait_until_at_the_gate(true);
    stop_ingest();
    assert_int_equal(answers.refused, 3);
    set_gate(false);
    wait_until_at_the_gate(false);
    assert_int_equal(answers.n, 3); /* its thread goes its way */
}
