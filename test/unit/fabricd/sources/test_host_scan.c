/* Children that probe, and the one report that is made of them. The child is this program again: what it does
 * is told by the argument of its probe. */

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fabricd/base/log.h"
#include "fabricd/process/child.h"
#include "fabricd/sources/host_scan.h"
#include "probes/registry.h"
#include "test/unit/test.h"

OWNER(event_base_free, struct event_base)

/* ---- the child ---------------------------------------------------------------------------------- */

static bool begins(const char *text, const char *part)
{
    return strncmp(text, part, strlen(part)) == 0;
}

static int hand_over(enum fab_source source, const char *firmware)
{
    SCOPED(fab_report) report = {0};
    uint32_t item;
    OWNED(free) void *bytes = NULL;
    size_t size;
    bool good = fab_report_host(&report, "localhost", NULL) == 0 &&
                fab_report_item(&report, source, &item) == 0 &&
                fab_report_fact(&report, item, FAB_FACT_NAME, "mlx5_0") == 0 &&
                fab_report_fact(&report, item, FAB_FACT_FIRMWARE, firmware) == 0 &&
                fab_report_finish(&report, NULL) == 0 && fab_report_encode(&report, &bytes, &size) == 0 &&
                child_write(bytes, size) == 0;
    return good ? 0 : 9;
}

static void write_many(size_t n)
{
    char bytes[1000];
    memset(bytes, 'x', sizeof(bytes));
    for (; n > sizeof(bytes); n -= sizeof(bytes))
        if (child_write(bytes, sizeof(bytes)) != 0)
            _exit(9);
    child_write(bytes, n);
}

/* Something that outlives the child and holds its pipe open, in a group of its own or not. It has left the
 * group when this returns: the child's end is the end of all who are still in it. */
static void leave_behind(bool apart)
{
    int left[2];
    char none;
    if (pipe(left) != 0)
        _exit(9);
    if (fork() != 0) {
        close(left[1]);
        if (read(left[0], &none, 1) != 0)
            _exit(9);
        close(left[0]);
        return;
    }
    if (apart)
        setsid();
    close(left[0]);
    close(left[1]);
    sleep(20);
    _exit(0);
}

static int play(const char *part, enum fab_source source)
{
    if (begins(part, "see="))
        return hand_over(source, part + 4);
    if (begins(part, "fail=")) {
        child_note(PMIXFAB_LOG_ERROR, part + 5, NULL);
        return 1;
    }
    if (begins(part, "nothing=")) {
        child_note(PMIXFAB_LOG_ERROR, part + 8, NULL);
        return CHILD_NOTHING;
    }
    if (begins(part, "bytes="))
        write_many(strtoul(part + 6, NULL, 10));
    else if (begins(part, "exit="))
        fprintf(stderr, "some chatter\nlast words\n"), _exit(atoi(part + 5));
    else if (strcmp(part, "hang") == 0)
        sleep(60);
    else if (strcmp(part, "crash") == 0)
        signal(SIGSEGV, SIG_DFL), raise(SIGSEGV);
    else if (strcmp(part, "endless") == 0)
        write_many(SIZE_MAX);
    else if (begins(part, "leave")) {
        leave_behind(strcmp(part, "leave=apart") == 0);
        return hand_over(source, "1.0");
    } else if (strcmp(part, "notes") == 0) {
        for (int level = 1; level <= 3; level++)
            child_note((enum pmixfab_level)level, "a note", NULL);
        fprintf(stderr, "chatter without end");
    } else if (strcmp(part, "fds") == 0) { /* none but the first four, and the one of this scan */
        for (int fd = 4; fd < 256; fd++)
            if (write(fd, "", 0) == 0 || errno != EBADF)
                return 1;
    } else if (strcmp(part, "env") == 0) {
        const char *value = getenv("LOOK_TEST");
        child_write(value == NULL ? "none" : value, value == NULL ? 4 : strlen(value));
    }
    return 0;
}

static int play_child(int argc, char **argv)
{
    const char *arg = NULL;
    if (argc < 4 || !child_begin(argv[2]))
        return 8;
    probe_find(argv[3], &arg);
    int n = (int)strcspn(argv[3], ":");
    char name[32];
    snprintf(name, sizeof(name), "%.*s", n, argv[3]);
    return play(arg == NULL ? "" : arg, fab_source_parse(name));
}

/* ---- one child ---------------------------------------------------------------------------------- */

struct ended {
    unsigned n;
    int code;
    struct fab_err err;
    char bytes[64];
    size_t size;
};

static void on_ended(struct child_result *result, void *cbdata)
{
    struct ended *ended = cbdata;
    ended->n++;
    ended->code = result->code;
    ended->err = result->err;
    ended->size = result->size;
    snprintf(ended->bytes, sizeof(ended->bytes), "%.*s", (int)(result->size < 60 ? result->size : 60),
             result->bytes == NULL ? "" : (const char *)result->bytes);
}

static size_t announced; /* what total() says */

static size_t total(const void *head, size_t n)
{
    assert_non_null(head);
    assert_true(n > 0);
    return announced;
}

static struct config_list no_env;

static struct child *begin_child(struct event_base *base, char *part, unsigned deadline, size_t limit,
                                 struct ended *ended)
{
    char daemon[16], spec[64];
    struct child *child;
    snprintf(daemon, sizeof(daemon), "%d", (int)getpid());
    snprintf(spec, sizeof(spec), "verbs:%s", part);
    char *argv[] = {"test_look", HOST_SCAN_CHILD_OPTION, daemon, spec, NULL};
    const struct child_order order = {.what = "child",
                                      .argv = argv,
                                      .env = &no_env,
                                      .deadline = deadline,
                                      .limit = limit,
                                      .total = total,
                                      .done = on_ended,
                                      .cbdata = ended};
    memset(ended, 0, sizeof(*ended));
    must_do(child_start(base, &order, &child, fresh_err()));
    return child;
}

static void run_child(char *part, unsigned deadline, size_t limit, struct ended *ended)
{
    struct event_base *base = event_base_new();
    begin_child(base, part, deadline, limit, ended);
    event_base_dispatch(base); /* it ends: nothing is left behind on the loop */
    assert_int_equal(ended->n, 1);
    event_base_free(base);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* nor among the processes */
}

static void must_end(char *part, int code, const char *text)
{
    struct ended ended;
    run_child(part, 20, 100000, &ended);
    if (ended.code != code || strcmp(ended.err.text, text) != 0)
        print_error("%s: %d: %s\n", part, ended.code, ended.err.text);
    assert_int_equal(ended.code, code);
    assert_string_equal(ended.err.text, text);
}

TEST(test_ends)
{
    must_end("", PMIXFAB_OK, "");
    must_end("notes", PMIXFAB_OK, "");
    must_end("fds", PMIXFAB_OK, "");
    must_end("fail=no such device", PMIXFAB_ERR_IO, "child: no such device");
    must_end("nothing=no devices", PMIXFAB_ERR_UNSUPPORTED, "child: no devices");
    must_end("crash", PMIXFAB_ERR_IO, "child: the child was killed by signal 11 (Segmentation fault)");
    must_end("exit=7", PMIXFAB_ERR_IO,
             "child: the child ended with status 7; its last output was: last words");
    /* A library's exit() with our number is nobody's word. */
    must_end("exit=3", PMIXFAB_ERR_IO,
             "child: the child ended with status 3; its last output was: last words");
}

TEST(test_sizes)
{
    static const size_t limit = 300000;
    static const struct {
        const char *part;
        size_t size, announced;
        bool good;
    } cases[] = {
        {"bytes=0", 0, 0, true},
        {"bytes=1", 1, 0, true},
        {"bytes=65536", 65536, 0, true},
        {"bytes=65537", 65537, 0, true},
        {"bytes=300000", 300000, 0, true},
        {"bytes=300001", 0, 0, false},
        {"endless", 0, 0, false},
        {"bytes=200000", 200000, 200000, true},
        {"bytes=200000", 0, 199999, false},
        {"bytes=200000", 200000, 250000, true}, /* the reader's to refuse */
        {"bytes=200000", 0, 300001, false},
        {"bytes=200000", 0, 100, false},
    };
    struct ended ended;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        announced = cases[i].announced;
        run_child((char *)cases[i].part, 20, limit, &ended);
        if (ended.code != (cases[i].good ? PMIXFAB_OK : PMIXFAB_ERR_CORRUPT))
            print_error("%s, %zu: %d: %s\n", cases[i].part, announced, ended.code, ended.err.text);
        assert_int_equal(ended.code, cases[i].good ? PMIXFAB_OK : PMIXFAB_ERR_CORRUPT);
        if (cases[i].good)
            assert_int_equal(ended.size, cases[i].size);
    }
    announced = 0;
}

TEST(test_deadline)
{
    struct ended ended;
    run_child("hang", 1, 1000, &ended);
    assert_int_equal(ended.code, PMIXFAB_ERR_TIMEOUT);
    assert_string_equal(ended.err.text, "child: timed out after 1 s: killed");
    /* What it left in its group ends with it; what left the group holds the pipe, until the deadline. */
    run_child("leave", 20, 1000, &ended);
    assert_int_equal(ended.code, PMIXFAB_OK);
    run_child("leave=apart", 1, 1000, &ended);
    assert_int_equal(ended.code, PMIXFAB_ERR_TIMEOUT);
}

TEST(test_environment)
{
    struct ended ended;
    run_child("env", 20, 1000, &ended);
    assert_string_equal(ended.bytes, "none");
    config_append(&no_env, "LOOK_TEST=configured");
    run_child("env", 20, 1000, &ended);
    assert_string_equal(ended.bytes, "configured");
    setenv("LOOK_TEST", "of the daemon", 1);
    run_child("env", 20, 1000, &ended);
    assert_string_equal(ended.bytes, "configured");
    config_clear(&no_env);
    run_child("env", 20, 1000, &ended);
    assert_string_equal(ended.bytes, "of the daemon");
    unsetenv("LOOK_TEST");
}

/* Several at a time: each its own result, none waits for another. */
TEST(test_side_by_side)
{
    static char *const parts[] = {"bytes=70000", "hang",    "fail=one", "exit=4",
                                  "crash",       "bytes=3", "env",      "hang"};
    struct ended ended[8];
    struct child *children[8];
    struct event_base *base = event_base_new();
    for (int i = 0; i < 8; i++)
        children[i] = begin_child(base, parts[i], 20, 100000, &ended[i]);
    while (ended[0].n + ended[2].n + ended[3].n + ended[4].n + ended[5].n + ended[6].n < 6)
        event_base_loop(base, EVLOOP_ONCE);
    assert_int_equal(ended[0].size, 70000);
    assert_string_equal(ended[2].err.text, "child: one");
    assert_int_equal(ended[5].size, 3);
    assert_int_equal(ended[1].n + ended[7].n, 0);
    child_cancel(children[1]);
    child_cancel(children[7]);
    child_cancel(NULL);
    assert_int_equal(event_base_loop(base, EVLOOP_NONBLOCK), 1); /* nothing is left on it */
    assert_int_equal(ended[1].n + ended[7].n, 0);
    event_base_free(base);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

/* ---- a scan ------------------------------------------------------------------------------------- */

struct scanned {
    unsigned n, asked, failed;
    struct fab_err err;
    struct fab_report report;
};

static void on_scanned(struct host_scan_result *result, void *cbdata)
{
    struct scanned *scanned = cbdata;
    scanned->n++;
    scanned->asked = result->asked;
    scanned->failed = result->failed;
    scanned->err = result->err;
    scanned->report = result->report;
    fab_report_init(&result->report); /* taken */
}

static void set_probes(struct config *config, const char *const *probes)
{
    config_init(config);
    assert_int_equal(config_text(&config->host, "node7"), PMIXFAB_OK);
    config->deadline = 20;
    for (int i = 0; probes[i] != NULL; i++)
        assert_int_equal(config_append(&config->probes, probes[i]), PMIXFAB_OK);
}

static void scan(const char *const *probes, unsigned deadline, const struct fab_report *before,
                 struct scanned *scanned)
{
    SCOPED(config) config;
    struct host_scan *one;
    OWNED(event_base_free) struct event_base *base = event_base_new();
    memset(scanned, 0, sizeof(*scanned));
    set_probes(&config, probes);
    config.deadline = deadline;
    assert_true(host_scan_wanted(&config));
    must_do(host_scan_start(base, &config, before, 0, on_scanned, scanned, &one, fresh_err()));
    event_base_dispatch(base);
    assert_int_equal(scanned->n, 1);
    assert_true(scanned->report.finished);
    assert_string_equal(scanned->report.host, "node7");
}

#define PROBES(...) ((const char *const[]){__VA_ARGS__, NULL})

/* What a source says, "" where it says nothing. */
static const char *said(const struct scanned *scanned, enum fab_source source)
{
    const char *text = "";
    for (uint32_t i = 0; i < scanned->report.n_items; i++)
        if (scanned->report.items[i].source == source)
            text = fab_report_text(&scanned->report, i, FAB_FACT_FIRMWARE);
    return text;
}

TEST(test_one_report)
{
    struct scanned scanned;
    scan(PROBES("verbs:see=1.0", "ibnetdisc", "hwloc:see=2.0", "ucx:nothing=no ucx here", "file:x"), 20, NULL,
         &scanned);
    assert_int_equal(scanned.asked, 3); /* those of the fabric are the sweep's */
    assert_int_equal(scanned.failed, 0);
    assert_int_equal(scanned.report.n_items, 2);
    assert_string_equal(said(&scanned, FAB_FROM_VERBS), "1.0");
    assert_string_equal(said(&scanned, FAB_FROM_HWLOC), "2.0");
    fab_report_destroy(&scanned.report);
    scan(PROBES("ucx:nothing=no ucx here"), 20, NULL, &scanned);
    assert_int_equal(scanned.failed + scanned.report.n_items, 0);
    fab_report_destroy(&scanned.report);
}

/* A probe that fails costs its own news only, and what it said before stands. */
TEST(test_failures)
{
    static const char *const failures[] = {"hang",      "crash", "fail=no luck", "exit=5", "endless",
                                           "bytes=100", "",      "notes"};
    static const char *const others[] = {"hwloc:see=2.0", "ucx:see=3.0"};
    struct scanned before, scanned;
    scan(PROBES("verbs:see=1.0", "hwloc:see=1.5", "ucx:see=1.7"), 20, NULL, &before);
    assert_int_equal(before.report.n_items, 3);
    for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
        char spec[64];
        snprintf(spec, sizeof(spec), "verbs:%s", failures[i]);
        scan(PROBES(spec, others[0], others[1]), i == 0 ? 1 : 20, &before.report, &scanned);
        assert_int_equal(scanned.asked, 3);
        assert_int_equal(scanned.failed, 1);
        assert_true(strncmp(scanned.err.text, "scan verbs: ", 12) == 0);
        assert_string_equal(said(&scanned, FAB_FROM_VERBS), "1.0");
        assert_string_equal(said(&scanned, FAB_FROM_HWLOC), "2.0");
        assert_string_equal(said(&scanned, FAB_FROM_UCX), "3.0");
        fab_report_destroy(&scanned.report);
        scan(PROBES(spec, others[0]), i == 0 ? 1 : 20, NULL, &scanned); /* it has said nothing before */
        assert_string_equal(said(&scanned, FAB_FROM_VERBS), "");
        assert_int_equal(scanned.report.n_items, 1);
        fab_report_destroy(&scanned.report);
    }
    /* What is no more there is gone: that is news, and no failure. */
    scan(PROBES("verbs:nothing=gone", others[0], others[1]), 20, &before.report, &scanned);
    assert_int_equal(scanned.failed, 0);
    assert_string_equal(said(&scanned, FAB_FROM_VERBS), "");
    fab_report_destroy(&scanned.report);
    fab_report_destroy(&before.report);
}

TEST(test_cancelled)
{
    SCOPED(config) config;
    struct scanned scanned = {0};
    struct host_scan *one;
    struct event_base *base = event_base_new();
    set_probes(&config, PROBES("verbs:hang", "hwloc:hang", "ucx:see=1"));
    must_do(host_scan_start(base, &config, NULL, 0, on_scanned, &scanned, &one, fresh_err()));
    event_base_loop(base, EVLOOP_NONBLOCK);
    host_scan_cancel(one);
    host_scan_cancel(NULL);
    assert_int_equal(event_base_loop(base, EVLOOP_NONBLOCK), 1);
    assert_int_equal(scanned.n, 0);
    event_base_free(base);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

TEST(test_wanted)
{
    SCOPED(config) config;
    struct host_scan *one;
    OWNED(event_base_free) struct event_base *base = event_base_new();
    set_probes(&config, PROBES("file:x"));
    assert_true(sweep_wanted(&config) && !host_scan_wanted(&config));
    must_refuse(host_scan_start(base, &config, NULL, 0, on_scanned, NULL, &one, fresh_err()),
                PMIXFAB_ERR_NOTFOUND, "");
    assert_null(one);
    config_append(&config.probes, "hwloc");
    assert_true(sweep_wanted(&config) && host_scan_wanted(&config));
    config_clear(&config.probes);
    config_append(&config.probes, "hwloc");
    assert_true(!sweep_wanted(&config) && host_scan_wanted(&config));
}

FIXTURE(say_little)
{
    log_open(PMIXFAB_LOG_ERROR, 0);
    return 0;
}

TEST_GROUP(say_little, NULL)
TEST_CHILD(HOST_SCAN_CHILD_OPTION, play_child)
