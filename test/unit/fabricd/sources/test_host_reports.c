/* Reports of hosts: what is taken, stored and kept, and when it is time to publish. */
#include "test/unit/report_say.h"
#include "test/unit/store_fixture.h"

#include <event2/thread.h>
#include <utlist.h>

#include "fabricd/sources/host_reports.h"

/* ---- a loop of one's own, and deliveries over the control socket's door ---- */

struct answer {
    unsigned n;
    int code;
    uint64_t held;
    char reason[512];
};

struct world {
    struct folder *folder;
    struct event_base *base;
    struct config config;
    struct store *store;
    struct host_reports *nodes;
    struct ingest *ingest;
    unsigned changed;
};

static void on_changed(void *cbdata)
{
    struct world *world = cbdata;
    world->changed++;
}

static void open_world(struct world *world)
{
    world->changed = 0;
    config_init(&world->config);
    assert_int_equal(config_text(&world->config.host, "head"), PMIXFAB_OK);
    world->config.debounce_ms = 60;
    evthread_use_pthreads();
    world->base = event_base_new();
    assert_non_null(world->base);
    world->store = open_store(world->folder->db);
    assert_int_equal(host_reports_new(world->base, &world->config, world->store, NULL, on_changed, world,
                                      &world->nodes, fresh_err()),
                     PMIXFAB_OK);
    const struct ingest_parts parts = {.base = world->base, .config = &world->config};
    must_do(ingest_start(&parts, host_reports_accept, world->nodes, &world->ingest, fresh_err()));
}

static void close_world(struct world *world)
{
    ingest_stop(world->ingest);
    host_reports_free(world->nodes);
    store_close(world->store);
    config_destroy(&world->config);
    event_base_free(world->base);
}

static void reopen(struct world *world)
{
    close_world(world);
    open_world(world);
}

static int setup(void **state)
{
    struct world *world = must_have(sizeof(*world));
    void *folder = NULL;
    if (folder_setup(&folder) != 0)
        return -1;
    world->folder = folder;
    *state = world;
    open_world(world);
    return 0;
}

static int teardown(void **state)
{
    OWNED(free) struct world *world = *state;
    void *folder = world->folder;
    close_world(world);
    return folder_teardown(&folder);
}

static void on_limit(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    *(bool *)arg = true;
}

/* Turn the loop until the number is reached. */
static void turn_until(struct world *world, const unsigned *number, unsigned want)
{
    bool late = false;
    const struct timeval limit = {.tv_sec = 20};
    struct event *event = evtimer_new(world->base, on_limit, &late);
    event_add(event, &limit);
    while (*number < want && !late)
        event_base_loop(world->base, EVLOOP_ONCE);
    event_free(event);
    assert_int_equal(*number, want);
}

static void on_answer(int code, uint64_t held, const char *reason, void *cbdata)
{
    struct answer *answer = cbdata;
    answer->n++;
    answer->code = code;
    answer->held = held;
    snprintf(answer->reason, sizeof(answer->reason), "%s", reason);
}

/* A host with so many ports and this firmware. */
static struct fab_report report_of(const char *host, unsigned ports, const char *firmware)
{
    struct fab_report report = {0};
    assert_int_equal(fab_report_host(&report, host, NULL), PMIXFAB_OK);
    for (unsigned i = 0; i < ports; i++)
        report_say(&report, "verbs: name mlx5_%u, firmware %s", i, firmware);
    assert_int_equal(fab_report_finish(&report, NULL), PMIXFAB_OK);
    return report;
}

/* Fill in who it is of, encode, and deliver. */
static void deliver_as(struct world *world, struct fab_delivery *delivery, const char *host,
                       const struct fab_report *before, const struct fab_report *after, struct answer *answer)
{
    OWNED(free) void *body = NULL, *bytes = NULL;
    size_t size;
    delivery->base = before == NULL ? 0 : fab_report_digest(before);
    delivery->digest = fab_report_digest(after);
    snprintf(delivery->host, sizeof(delivery->host), "%s", host);
    int rc = before == NULL ? fab_report_encode(after, &body, &delivery->size)
                            : fab_report_delta(before, after, &body, &delivery->size);
    assert_int_equal(rc, PMIXFAB_OK);
    delivery->body = body;
    assert_int_equal(fab_delivery_encode(delivery, &bytes, &size), PMIXFAB_OK);
    memset(answer, 0, sizeof(*answer));
    must_do(ingest_local(world->ingest, bytes, size, 7, on_answer, answer, fresh_err()));
}

static void deliver(struct world *world, const char *host, const struct fab_report *before,
                    const struct fab_report *after, struct answer *answer)
{
    struct fab_delivery delivery = {.digest = 0};
    deliver_as(world, &delivery, host, before, after, answer);
}

static void wait_answer(struct world *world, struct answer *answer)
{
    turn_until(world, &answer->n, 1);
}

static void must_deliver(struct world *world, const char *host, const struct fab_report *before,
                         const struct fab_report *after)
{
    struct answer answer;
    deliver(world, host, before, after, &answer);
    wait_answer(world, &answer);
    if (answer.code != PMIXFAB_OK)
        print_error("%s\n", answer.reason);
    assert_int_equal(answer.code, PMIXFAB_OK);
    assert_string_equal(answer.reason, "");
    assert_int_equal(answer.held, fab_report_digest(after));
}

static void must_answer_no(struct world *world, struct answer *answer, int code, const char *part)
{
    wait_answer(world, answer);
    if (answer->code != code || strstr(answer->reason, part) == NULL)
        print_error("%d: %s\n", answer->code, answer->reason);
    assert_int_equal(answer->code, code);
    assert_non_null(strstr(answer->reason, part));
}

static void must_know(struct world *world, const struct fab_report *report)
{
    const struct node_report *held = host_reports_find(world->nodes, report->host);
    assert_non_null(held);
    assert_true(fab_report_equal(&held->report, report));
    assert_int_equal(held->digest, fab_report_digest(report));
}

/* ---- taking ---- */

TEST_IN(test_two_of_one_host_at_once, struct world *world, setup, teardown)
{
    struct answer answers[4];
    SCOPED(fab_report) first = report_of("node1", 1, "1.0"), second = report_of("node1", 2, "1.0");
    SCOPED(fab_report) third = report_of("node1", 3, "1.0");
    deliver(world, "node1", NULL, &first, &answers[0]);
    deliver(world, "node1", &first, &second, &answers[1]);
    deliver(world, "node1", &second, &third, &answers[2]);
    deliver(world, "node1", &first, &third, &answers[3]);
    for (int i = 0; i < 3; i++) {
        wait_answer(world, &answers[i]);
        assert_int_equal(answers[i].code, PMIXFAB_OK);
    }
    must_answer_no(world, &answers[3], PMIXFAB_ERR_CONFLICT, "node1");
    assert_int_equal(answers[3].held, fab_report_digest(&third));
    must_know(world, &third);
}

TEST_IN(test_forgotten_by_the_name_that_it_has, struct world *world, setup, teardown)
{
    struct answer answer;
    SCOPED(fab_report) first = report_of("node1", 1, "1.0");
    deliver(world, "node1", NULL, &first, &answer);
    wait_answer(world, &answer);
    assert_int_equal(answer.code, PMIXFAB_OK);
    const struct node_report *report = host_reports_find(world->nodes, "node1");
    assert_non_null(report);
    assert_int_equal(host_reports_forget(world->nodes, report->report.host, fresh_err()), PMIXFAB_OK);
    assert_null(host_reports_find(world->nodes, "node1"));
}

TEST_IN(test_refused, struct world *world, setup, teardown)
{
    struct answer answer;
    SCOPED(fab_report) first = report_of("node1", 1, "1.0"), second = report_of("node1", 2, "1.0");
    SCOPED(fab_report) foreign = report_of("node2", 2, "1.0"), address = report_of("167772167", 1, "1.0");
    must_refuse(host_reports_forget(world->nodes, "node1", fresh_err()), PMIXFAB_ERR_NOTFOUND, "node1");
    deliver(world, "167772167", NULL, &address, &answer); /* it is whose a resolver says */
    must_answer_no(world, &answer, PMIXFAB_ERR_PERM, "is an address");
    deliver(world, "node1", &first, &second, &answer); /* a change of what is not held */
    must_answer_no(world, &answer, PMIXFAB_ERR_CONFLICT, "node1");
    assert_int_equal(answer.held, 0);
    must_deliver(world, "node1", NULL, &first);
    deliver(world, "node1", &second, &first, &answer); /* of something else */
    must_answer_no(world, &answer, PMIXFAB_ERR_CONFLICT, "node1");
    assert_int_equal(answer.held, fab_report_digest(&first));
    deliver(world, "node1", NULL, &foreign,
            &answer); /* says something else inside; asking for it again is no use */
    must_answer_no(world, &answer, PMIXFAB_ERR_CORRUPT, "node1");
    must_know(world, &first);
    assert_null(host_reports_find(world->nodes, "node2"));
}

/* Nothing is written for what is known, and nothing is to be published. */
TEST_IN(test_unchanged, struct world *world, setup, teardown)
{
    SCOPED(fab_report) report = report_of("node1", 1, "1.0");
    must_deliver(world, "node1", NULL, &report);
    turn_until(world, &world->changed, 1);
    int64_t received = host_reports_find(world->nodes, "node1")->received;
    int before = sqlite3_total_changes(world->store->db);
    must_deliver(world, "node1", NULL, &report);
    must_deliver(world, "node1", &report, &report);
    assert_int_equal(sqlite3_total_changes(world->store->db), before);
    assert_int_equal(host_reports_find(world->nodes, "node1")->received, received);
    assert_int_equal(world->changed, 1);
}

TEST_IN(test_store_refuses, struct world *world, setup, teardown)
{
    struct answer answer;
    struct fab_err err = {""};
    SCOPED(fab_report) first = report_of("node1", 1, "1.0"), second = report_of("node1", 2, "1.0");
    must_deliver(world, "node1", NULL, &first);
    assert_int_equal(sqlite3_exec(world->store->db, "PRAGMA query_only = 1", NULL, NULL, NULL), SQLITE_OK);
    deliver(world, "node1", &first, &second, &answer);
    wait_answer(world, &answer);
    assert_true(answer.code < 0 && answer.code != PMIXFAB_ERR_CONFLICT);
    assert_non_null(strstr(answer.reason, "node1: store "));
    assert_int_equal(answer.held, fab_report_digest(&first));
    must_know(world, &first);
    struct fab_report own;
    assert_int_equal(fab_report_copy(&own, &second), PMIXFAB_OK);
    assert_false(host_reports_own(world->nodes, &own, &err));
    assert_non_null(strstr(err.text, "store "));
    must_know(world, &first);
    assert_int_equal(sqlite3_exec(world->store->db, "PRAGMA query_only = 0", NULL, NULL, NULL), SQLITE_OK);
    must_deliver(world, "node1", &first, &second);
}

/* How many lines of the file have all that. */
static unsigned count_lines(FILE *log, const char *host, const char *text)
{
    char line[1024];
    unsigned n = 0;
    rewind(log);
    while (fgets(line, sizeof(line), log) != NULL)
        n += strstr(line, host) != NULL && strstr(line, text) != NULL;
    return n;
}

/* A node that tells another thing each time does not fill the log, and takes nobody else's line. */
TEST_IN(test_probes_that_flip, struct world *world, setup, teardown)
{
    struct fab_report reports[2];
    reports[0] = report_of("node1", 1, "1.0");
    reports[1] = report_of("node2", 1, "1.0");
    must_deliver(world, "node1", NULL, &reports[0]);
    must_deliver(world, "node2", NULL, &reports[1]);
    FILE *log = tmpfile();
    int kept = dup(STDERR_FILENO);
    assert_true(log != NULL && kept >= 0 && dup2(fileno(log), STDERR_FILENO) >= 0);
    for (uint32_t i = 1; i < 200; i++) {
        uint32_t sources = i % 3 == 0 ? 0 : 1u << FAB_FROM_VERBS | i % 2 << FAB_FROM_UCX;
        host_reports_failed(world->nodes, "node1", sources);
        if (host_reports_find(world->nodes, "node1")->failed != sources)
            break;
    }
    host_reports_failed(world->nodes, "node2", 1u << FAB_FROM_UCX);
    host_reports_failed(world->nodes, "node2", 0);
    dup2(kept, STDERR_FILENO);
    close(kept);
    assert_int_equal(host_reports_find(world->nodes, "node1")->failed,
                     1u << FAB_FROM_VERBS | 1u << FAB_FROM_UCX);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(count_lines(log, reports[i].host, "failed probes"), 1);
        assert_int_equal(count_lines(log, reports[i].host, "no probe fails there any more"), 1);
    }
    fclose(log);
    for (unsigned i = 0; i < 2; i++)
        fab_report_destroy(&reports[i]);
}

/* ---- what is stored and is no report ---- */

TEST_IN(test_damaged, struct world *world, setup, teardown)
{
    uint32_t n;
    SCOPED(fab_report) good = report_of("node2", 1, "1.0"), report = report_of("node1", 1, "1.0");
    must_deliver(world, "node2", NULL, &good);
    OWNED(free) void *bytes;
    size_t size;
    assert_int_equal(fab_report_encode(&report, &bytes, &size), PMIXFAB_OK);
    const struct store_report rows[] = {
        {.host = "node1", .digest = fab_report_digest(&report) ^ 1, .bytes = bytes, .size = size},
        {.host = "node3", .digest = fab_report_digest(&report), .bytes = bytes, .size = size},
        {.host = "node4", .digest = fab_report_digest(&report), .bytes = bytes, .size = size - 1},
        {.host = "node5", .digest = 1, .bytes = "", .size = 0},
    };
    must_do(store_reports_put(world->store, rows, 4, fresh_err()));
    reopen(world);
    host_reports_all(world->nodes, &n);
    assert_int_equal(n, 1);
    must_know(world, &good);
    must_deliver(world, "node1", NULL, &report);
}

/* ---- when it is time ---- */

/* Hosts that never become quiet do not keep it from being published. */
TEST_IN(test_patience, struct world *world, setup, teardown)
{
    struct fab_report reports[2];
    unsigned turn = 0;
    reports[0] = report_of("node1", 1, "1.0");
    reports[1] = report_of("node1", 1, "2.0");
    must_deliver(world, "node1", NULL, &reports[0]);
    turn_until(world, &world->changed, 1);
    while (world->changed < 2 && turn < 100000) {
        must_deliver(world, "node1", &reports[turn % 2], &reports[(turn + 1) % 2]);
        turn++;
    }
    assert_int_equal(world->changed, 2);
    assert_true(turn > 1);
    fab_report_destroy(&reports[0]);
    fab_report_destroy(&reports[1]);
}
