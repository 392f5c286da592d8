/* Recorded machines: what is read, what is refused and how, and what is written is read back. */
#include <unistd.h>

#include "probes/core/record.h"
#include "test/unit/test.h"

static const char machine[] =
    "{\"host\": \"node7\", \"items\": [\n"
    " {\"source\": \"verbs\", \"name\": \"mlx5_0\", \"port\": \"1\", \"gid\": [\"fe80::1\", \"fe80::2\"]},\n"
    " {\"source\": \"ucx\", \"name\": \"mlx5_0\", \"transport\": \"rc_mlx5\",\n"
    "  \"estimates\": {\"bandwidth\": \"98000\", \"transport\": [\"ud_mlx5\"]}},\n"
    " {\"source\": \"verbs\", \"name\": \"mlx5_1\", \"gid\": \"fe80::3\"}\n"
    "]}\n";

static int parse(const char *text, enum fab_source source, struct fab_report *report, struct fab_err *err)
{
    fab_report_init(report);
    return record_parse(text, strlen(text), "m.json", source, report, err);
}

static const struct fab_report_item *only_item(struct fab_report *report, uint32_t n)
{
    assert_int_equal(fab_report_finish(report, NULL), PMIXFAB_OK);
    assert_int_equal(report->n_items, n);
    return report->items;
}

TEST(test_items_of_one_source)
{
    SCOPED(fab_report) report;
    assert_int_equal(parse(machine, FAB_FROM_VERBS, &report, NULL), PMIXFAB_OK);
    assert_string_equal(report.host, "node7");
    assert_int_equal(only_item(&report, 2)[0].n, 4);
    assert_string_equal(fab_report_text(&report, 0, FAB_FACT_NAME), "mlx5_0");
    assert_string_equal(fab_report_text(&report, 0, FAB_FACT_GID), "fe80::1");
    assert_string_equal(fab_report_text(&report, 1, FAB_FACT_GID), "fe80::3");
}

TEST(test_estimates)
{
    SCOPED(fab_report) report;
    assert_int_equal(parse(machine, FAB_FROM_UCX, &report, NULL), PMIXFAB_OK);
    const struct fab_report_item *item = only_item(&report, 1);
    assert_int_equal(item->n, 4);
    for (uint32_t i = 0; i < item->n; i++) {
        const struct fab_report_fact *fact = &report.facts[item->first + i];
        const char *text = report.pool + fact->text;
        assert_int_equal(fact->estimate, strcmp(text, "98000") == 0 || strcmp(text, "ud_mlx5") == 0);
    }
}

/* A report that has a host keeps it. */
TEST(test_host)
{
    SCOPED(fab_report) report = {0};
    assert_int_equal(fab_report_host(&report, "mine", NULL), PMIXFAB_OK);
    assert_int_equal(record_parse(machine, strlen(machine), "m", FAB_FROM_UCX, &report, NULL), PMIXFAB_OK);
    assert_string_equal(report.host, "mine");
}

#define VERBS(FACTS) "{\"host\": \"a\", \"items\": [{\"source\": \"verbs\"" FACTS "}]}"

TEST(test_refused)
{
    static const struct {
        const char *text;
        int code;
        const char *says;
    } cases[] = {
        {"", PMIXFAB_ERR_SYNTAX, "m.json:1:"},
        {"{\"host\": \"a\",\n \"items\": [,]}", PMIXFAB_ERR_SYNTAX, "m.json:2:"},
        {"[]", PMIXFAB_ERR_SYNTAX, "not a recorded machine"},
        {"{\"host\": \"a\"}", PMIXFAB_ERR_SYNTAX, "not a recorded machine"},
        {"{\"items\": []}", PMIXFAB_ERR_SYNTAX, "\"host\" is missing"},
        {"{\"host\": \"a b\", \"items\": []}", PMIXFAB_ERR_SYNTAX, "not a host name"},
        {"{\"host\": \"a\", \"host\": \"a\", \"items\": []}", PMIXFAB_ERR_SYNTAX, "uplicate"},
        {"{\"host\": \"a\", \"items\": []}", PMIXFAB_ERR_UNSUPPORTED, "no items of verbs"},
        {"{\"host\": \"a\", \"items\": [1]}", PMIXFAB_ERR_SYNTAX, "item 1: is not an object"},
        {"{\"host\": \"a\", \"items\": [{}]}", PMIXFAB_ERR_SYNTAX, "item 1: \"source\""},
        {"{\"host\": \"a\", \"items\": [{\"source\": \"subnet\"}]}", PMIXFAB_ERR_SYNTAX, "\"source\""},
        {"{\"host\": \"a\", \"items\": [], \"x\": 1}", PMIXFAB_ERR_SYNTAX, "\"x\" is not a part"},
        {VERBS(", \"nam\": \"x\""), PMIXFAB_ERR_SYNTAX, "\"nam\": is not the name of a fact"},
        {VERBS(", \"port\": 1"), PMIXFAB_ERR_SYNTAX, "\"port\": is neither a string"},
        {VERBS(", \"port\": \"255\""), PMIXFAB_ERR_SYNTAX, "1 to 254"},
        {VERBS(", \"port\": [\"1\"]"), PMIXFAB_ERR_SYNTAX, "a single text"},
        {VERBS(", \"gid\": [\"fe80::1\", 2]"), PMIXFAB_ERR_SYNTAX, "\"gid\": is neither a string"},
        {VERBS(", \"name\": \"\""), PMIXFAB_ERR_SYNTAX, "1 to 63 bytes"},
        {VERBS(", \"estimates\": []"), PMIXFAB_ERR_SYNTAX, "\"estimates\": is not an object"},
        {VERBS(", \"estimates\": {\"estimates\": {}}"), PMIXFAB_ERR_SYNTAX, "not the name of a fact"},
        {VERBS("}, {\"source\": \"ucx\", \"port\": \"0\""), PMIXFAB_ERR_SYNTAX, "item 2: \"port\""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED(fab_report) report;
        struct fab_err err = {{0}};
        int rc = parse(cases[i].text, FAB_FROM_VERBS, &report, &err);
        if (rc != cases[i].code || strstr(err.text, cases[i].says) == NULL ||
            strncmp(err.text, "m.json", 6) != 0)
            fail_msg("%s: %d, \"%s\"", cases[i].text, rc, err.text);
    }
}

TEST(test_files)
{
    char path[] = "/tmp/record-XXXXXX";
    SCOPED(fab_report) report = {0};
    struct fab_err err = {{0}};
    must_fail(record_scan("/nonexistent/m", FAB_FROM_VERBS, &report, &err), PMIXFAB_ERR_NOTFOUND, &err,
              "/nonexistent/m: No such file");
    assert_int_equal(record_scan("/", FAB_FROM_VERBS, &report, &err), PMIXFAB_ERR_IO);
    assert_int_equal(record_scan("/dev/zero", FAB_FROM_VERBS, &report, &err), PMIXFAB_ERR_RANGE);
    int fd = mkstemp(path);
    assert_int_equal(write(fd, machine, sizeof(machine) - 1), sizeof(machine) - 1);
    close(fd);
    assert_int_equal(record_scan(path, FAB_FROM_VERBS, &report, &err), PMIXFAB_OK);
    only_item(&report, 2);
    unlink(path);
}

/* ---- what is written is read back ---- */

/* All items of the text, as a report. */
static void read_back(const char *text, struct fab_report *report)
{
    fab_report_init(report);
    for (int source = FAB_FROM_VERBS; source < FAB_SOURCES; source++) {
        struct fab_err err = {{0}};
        int rc = record_parse(text, strlen(text), "back", source, report, &err);
        if (rc != PMIXFAB_OK && rc != PMIXFAB_ERR_UNSUPPORTED)
            fail_msg("%s\n%s", err.text, text);
    }
    assert_int_equal(fab_report_finish(report, NULL), PMIXFAB_OK);
}

static void assert_same_when_read_back(const struct fab_report *report)
{
    SCOPED(fab_report) back;
    OWNED(free) char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_int_equal(probe_record(report, out), PMIXFAB_OK);
    fclose(out);
    read_back(text, &back);
    assert_true(fab_report_equal(report, &back));
    assert_string_equal(report->host, back.host);
}

static void random_item(struct fab_report *report)
{
    static const enum fab_fact many[] = {FAB_FACT_PROVIDER, FAB_FACT_PROTOCOL, FAB_FACT_TRANSPORT};
    static const char *const texts[] = {"a", "\"quoted\\\"", "\xc3\xa4\xc3\xb6", "tab\tbed", "x;y", "\xff"};
    uint32_t item;
    assert_int_equal(fab_report_item(report, 1 + rand() % (FAB_SOURCES - 1), &item), PMIXFAB_OK);
    fab_report_printf(report, item, FAB_FACT_NAME, "dev%d", rand() % 100);
    if (rand() % 2)
        fab_report_fact(report, item, FAB_FACT_VENDOR, texts[rand() % 6]);
    if (rand() % 2)
        fab_report_estimate(report, item, FAB_FACT_LATENCY, "600");
    for (int n = rand() % 8; n > 0; n--)
        (rand() % 2 ? fab_report_fact : fab_report_estimate)(report, item, many[rand() % 3],
                                                             texts[rand() % 6]);
}

TEST(test_written_and_read)
{
    srand(5);
    for (int round = 0; round < 300; round++) {
        SCOPED(fab_report) report = {0};
        fab_report_host(&report, "node-1.cluster", NULL);
        for (int n = rand() % 20; n > 0; n--)
            random_item(&report);
        assert_int_equal(fab_report_finish(&report, NULL), PMIXFAB_OK);
        assert_same_when_read_back(&report);
    }
}

TEST(test_writing_fails)
{
    SCOPED(fab_report) report = {0};
    fab_report_host(&report, "a", NULL);
    FILE *full = fopen("/dev/full", "w");
    assert_non_null(full);
    assert_int_equal(probe_record(&report, full), PMIXFAB_ERR_INVAL);
    assert_int_equal(fab_report_finish(&report, NULL), PMIXFAB_OK);
    assert_int_equal(probe_record(&report, full), PMIXFAB_ERR_IO);
    fclose(full);
}
