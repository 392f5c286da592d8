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

static struct credential_worker *worker;

static void start_ingest(void)
{
    config_init(&config);
    assert_int_equal(config_text(&config.host, "head"), PMIXFAB_OK);
    evthread_use_pthreads();
    base = event_base_new();
    assert_non_null(base);
    worker = credential_worker_new(base);
    const struct ingest_parts parts = {.base = base, .config = &config, .worker = worker};
    must_do(ingest_start(&parts, take_all, NULL, &ingest, fresh_err()));
}

static void stop_ingest(void)
{
    ingest_stop(ingest);
    ingest = NULL;
    credential_worker_free(worker);
    config_destroy(&config);
    event_base_free(base);
}

static void give(struct answers *answers)
{
    const struct credential_maker maker = lab_maker();
    ingest_deliver(ingest, &maker, lab_bytes(), (size_t)lab.size, on_answer, answers);
}

static void give_many(unsigned n, struct answers *answers)
{
    for (unsigned i = 0; i < n; i++)
        give(answers);
}

static void turn_until(struct answers *answers, unsigned n)
{
    while (answers->n < n)
        assert_int_equal(event_base_loop(base, EVLOOP_ONCE | EVLOOP_NO_EXIT_ON_EMPTY), 0);
    assert_int_equal(answers->n, n);
}

LAB_TEST(test_one)
{
    struct answers answers = {0};
    give(&answers); /* not started */
    assert_int_equal(answers.refused, 1);
    start_ingest();
    give(&answers);
    turn_until(&answers, 2);
    assert_int_equal(answers.good, 1);
    lab.size = 0;
    give(&answers);
    assert_int_equal(answers.other, 1);
    assert_string_equal(answers.reason,
                        "the credential of uid 0 on 10.0.0.7 contains no delivery: it is empty");
    stop_ingest();
}

LAB_TEST(test_bounds)
{
    struct answers answers = {0};
    start_ingest();
    set_gate(true);
    give_many(INGEST_MAX_ITEMS, &answers);
    assert_int_equal(answers.n, 0);
    give(&answers);
    assert_int_equal(answers.busy, 1);
    assert_non_null(strstr(answers.reason, "try again later"));
    set_gate(false);
    turn_until(&answers, INGEST_MAX_ITEMS + 1);
    assert_true(answers.good >= INGEST_BURST); /* the rest is more than one host may deliver at once */
    assert_int_equal(answers.good + answers.busy, answers.n);
    assert_non_null(strstr(answers.reason, "node7 delivers more often"));
    stop_ingest();

    memset(&answers, 0, sizeof(answers));
    const int size = FAB_DELIVERY_MAX;
    OWNED(free) char *large = must_have((size_t)size);
    lab.bytes = large;
    lab.size = size;
    start_ingest();
    set_gate(true);
    const struct credential_maker maker = lab_maker();
    for (unsigned i = 0; i < 2; i++) { /* they hold up the others */
        size_t bytes;
        void *first = delivery_of("node7", NULL, 0, &bytes);
        ingest_deliver(ingest, &maker, first, bytes, on_answer, &answers);
    }
    const unsigned fit = INGEST_MAX_BYTES / FAB_DELIVERY_MAX - 1;
    give_many(fit, &answers);
    assert_int_equal(answers.n, 0);
    give_many(2, &answers);
    assert_true(answers.busy > 0);
    set_gate(false);
    turn_until(&answers, fit + 4);
    stop_ingest();
}

/* What waits is turned away, also what a thread is asking for. */
static void stop_while_it_hangs(unsigned n)
{
    struct answers answers = {0};
    start_ingest();
    set_gate(true);
    give_many(n, &answers);
    for (unsigned i = 0; i < 10; i++)
        event_base_loop(base, EVLOOP_NONBLOCK);
    wait_until_at_the_gate(true);
    assert_int_equal(answers.n, 0);
    stop_ingest();
    assert_int_equal(answers.refused, n);
    set_gate(false);
    wait_until_at_the_gate(false); /* its thread goes its way */
    assert_int_equal(answers.n, n);
}

LAB_TEST(test_stop)
{
    struct answers late = {0};
    stop_while_it_hangs(50);
    give(&late);
    assert_int_equal(late.refused, 1);
    start_ingest(); /* and again */
    give(&late);
    turn_until(&late, 2);
    assert_int_equal(late.good, 1);
    stop_ingest();
}
