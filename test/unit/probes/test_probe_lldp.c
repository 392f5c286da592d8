/* test_probe_lldp.c - what lldpctl says, from text; and lldpctl itself, played by scripts. With a real lldpd:
 * test_probe_lldp.py. */
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "probes/lldp/lldp.h"
#include "test/unit/report_text.h"

extern const struct probe fabricd_probe;

/* A neighbour as json0 has it; ' stands for ". */
#define NEIGHBOUR(NAME, VIA, TYPE, ID, SYSTEM, CAPABILITY, PORT_TYPE, PORT)                                  \
    "{'name': '" NAME "', 'via': '" VIA "', 'chassis': [{'id': [{'type': '" TYPE "', 'value': '" ID          \
    "'}], 'name': [{'value': '" SYSTEM "'}]" CAPABILITY "}], 'port': [{'id': [{'type': '" PORT_TYPE          \
    "', 'value': '" PORT "'}], 'descr': [{'value': 'a port'}]}]}"
#define BRIDGE                                                                                               \
    ", 'capability': [{'type': 'Bridge', 'enabled': true}, {'type': 'Router', 'enabled': false}, "           \
    "{'type': 'Station', 'enabled': false}]"
#define ROUTER      ", 'capability': [{'type': 'Bridge', 'enabled': false}, {'type': 'Router', 'enabled': true}]"
#define STATION     ", 'capability': [{'type': 'Bridge', 'enabled': false}, {'type': 'Station', 'enabled': true}]"
#define HEARD(LIST) "{'lldp': [{'interface': [" LIST "]}]}"

static char *quoted(const char *text)
{
    char *out = strdup(text);
    assert_non_null(out);
    for (char *p = out; *p != '\0'; p++)
        if (*p == '\'')
            *p = '"';
    return out;
}

/* Read a text; the number of notes comes back. */
static unsigned expect(const char *text, const char *items)
{
    struct notes notes = {0};
    const struct probe_sink sink = {count_note, &notes};
    struct fab_report report;
    struct fab_err err = {{0}};
    char *json = quoted(text);
    fab_report_init(&report);
    int rc = lldp_read(json, strlen(json), "x", &sink, &report, &err);
    if (rc != PMIXFAB_OK)
        fail_msg("%s", err.text);
    expect_items(&report, items);
    free(json);
    return notes.n;
}

TEST(test_switches)
{
    assert_int_equal(
        expect(HEARD(NEIGHBOUR(
                   "eth1", "LLDP", "mac", "06:A8:F6:5B:01:4F", "leaf1", BRIDGE, "ifname",
                   "Ethernet12") ", " NEIGHBOUR("eth0", "LLDP", "local", "Leaf 2", "", ROUTER, "mac",
                                                "06:A8:F6:5B:01:50") ", " NEIGHBOUR("eth2", "LLDP", "ip",
                                                                                    "10.0.0.9", "leaf3", "",
                                                                                    "local", "517")),
               "{'source': 'lldp', 'interface': 'eth0', 'switch-id': 'local Leaf 2', 'switch-port': "
               "'06:a8:f6:5b:01:50'}\n"
               "{'source': 'lldp', 'interface': 'eth1', 'switch-id': '06:a8:f6:5b:01:4f', 'switch-name': "
               "'leaf1', 'switch-port': 'Ethernet12'}\n"
               "{'source': 'lldp', 'interface': 'eth2', 'switch-id': 'ip 10.0.0.9', 'switch-name': 'leaf3', "
               "'switch-port': '517'}\n"),
        0);
}

/* Nobody heard: that is an answer, too. */
TEST(test_nobody)
{
    assert_int_equal(expect("{'lldp': [{}]}", ""), 0);
    assert_int_equal(expect("{'lldp': []}", ""), 0);
    assert_int_equal(expect(HEARD(""), ""), 0);
}

/* Two hosts on one cable hear each other. */
TEST(test_no_switch)
{
    assert_int_equal(expect(HEARD(NEIGHBOUR("eth0", "LLDP", "mac", "06:a8:f6:5b:01:4f", "node2", STATION,
                                            "ifname", "eth0")),
                            ""),
                     1);
}

/* The same switch by a second protocol or twice is one; two switches on one interface are none. */
TEST(test_several)
{
    static const char one[] =
        "{'source': 'lldp', 'interface': 'eth0', 'switch-id': '06:a8:f6:5b:01:4f', 'switch-name': 'leaf1', "
        "'switch-port': '12'}\n";
    assert_int_equal(
        expect(
            HEARD(NEIGHBOUR("eth0", "CDPv2", "local", "leaf1", "leaf1", BRIDGE, "ifname",
                            "E12") ", " NEIGHBOUR("eth0", "LLDP", "mac", "06:a8:f6:5b:01:4f", "leaf1", BRIDGE,
                                                  "ifname", "12") ", " NEIGHBOUR("eth0", "LLDP", "mac",
                                                                                 "06:A8:F6:5B:01:4F", "again",
                                                                                 BRIDGE, "ifname", "13")),
            one),
        0);
    assert_int_equal(
        expect(HEARD(NEIGHBOUR(
                   "eth0", "LLDP", "mac", "06:a8:f6:5b:01:4f", "leaf1", BRIDGE, "ifname",
                   "12") ", " NEIGHBOUR("eth1", "LLDP", "mac", "06:a8:f6:5b:01:4f", "leaf1", BRIDGE, "ifname",
                                        "13") ", " NEIGHBOUR("eth0", "LLDP", "mac", "06:a8:f6:5b:02:4f",
                                                             "leaf2", BRIDGE, "ifname", "12")),
               "{'source': 'lldp', 'interface': 'eth1', 'switch-id': '06:a8:f6:5b:01:4f', 'switch-name': "
               "'leaf1', 'switch-port': '13'}\n"),
        1);
    /* A host beside a switch does not count. */
    assert_int_equal(
        expect(HEARD(NEIGHBOUR("eth0", "LLDP", "mac", "06:a8:f6:5b:03:4f", "node2", STATION, "ifname",
                               "eth0") ", " NEIGHBOUR("eth0", "LLDP", "mac", "06:a8:f6:5b:01:4f", "leaf1",
                                                      BRIDGE, "ifname", "12")),
               one),
        1);
}

/* Nothing is believed of what came over the cable. */
TEST(test_nonsense)
{
    static const char *const left_out[] = {
        HEARD("{}"),
        HEARD("7, null, [], 'x'"),
        HEARD("{'name': 'eth0'}"),
        HEARD("{'name': 'eth0', 'chassis': [{'id': [{'type': 'mac'}]}]}"),
        HEARD("{'name': 'eth0', 'chassis': {'id': {'type': 'mac', 'value': '06:a8:f6:5b:01:4f'}}}"),
        HEARD(NEIGHBOUR("eth0", "LLDP", "mac", "00:00:00:00:00:00", "leaf1", BRIDGE, "ifname", "1")),
        HEARD(NEIGHBOUR("eth0", "LLDP", "mac", "06:a8:f6:5b:01", "leaf1", BRIDGE, "ifname", "1")),
        HEARD(NEIGHBOUR("eth0", "LLDP", "local", "a\\nb", "leaf1", BRIDGE, "ifname", "1")),
        HEARD(NEIGHBOUR("eth0", "LLDP", "two words", "", "leaf1", BRIDGE, "ifname", "1")),
        HEARD(NEIGHBOUR("", "LLDP", "mac", "06:a8:f6:5b:01:4f", "leaf1", BRIDGE, "ifname", "1")),
        HEARD(NEIGHBOUR("e\\u0007", "LLDP", "mac", "06:a8:f6:5b:01:4f", "leaf1", BRIDGE, "ifname", "1")),
    };
    for (size_t i = 0; i < sizeof(left_out) / sizeof(left_out[0]); i++)
        assert_true(expect(left_out[i], "") > 0);
    assert_int_equal(expect(HEARD(NEIGHBOUR("eth0", "", "mac", "06:a8:f6:5b:01:4f", "le\\u0000af\\n1", BRIDGE,
                                            "ifname", "\\u001b[31m")),
                            "{'source': 'lldp', 'interface': 'eth0', 'switch-id': '06:a8:f6:5b:01:4f', "
                            "'switch-name': 'le', 'switch-port': "
                            "'?[31m'}\n"),
                     0);
}

static void refuse(const char *text, int code, const char *why)
{
    struct fab_report report;
    struct fab_err err = {{0}};
    char *json = quoted(text);
    fab_report_init(&report);
    assert_int_equal(lldp_read(json, strlen(json), "x.json", NULL, &report, &err), code);
    assert_int_equal(strncmp(err.text, "x.json:", 7), 0);
    if (strstr(err.text, why) == NULL)
        fail_msg("%s", err.text);
    fab_report_destroy(&report);
    free(json);
}

TEST(test_refused)
{
    refuse("", PMIXFAB_ERR_SYNTAX, "x.json:1:0:");
    refuse("{'lldp': [", PMIXFAB_ERR_SYNTAX, "x.json:1:");
    refuse("{'lldp': {'interface': {'eth0': {}}}}", PMIXFAB_ERR_SYNTAX, "lldpctl -f json0");
    refuse("{'other': 1}", PMIXFAB_ERR_SYNTAX, "no recorded machine");
    refuse("[]", PMIXFAB_ERR_SYNTAX, "no recorded machine");
    refuse("{'host': 'h', 'items': []}", PMIXFAB_ERR_UNSUPPORTED, "nothing of lldp");

    /* More neighbours than any host has interfaces. */
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    fprintf(out, "{'lldp': [{'interface': [");
    for (int i = 0; i < 1025; i++)
        fprintf(out, "%s{'name': 'e%d', 'chassis': [{'id': [{'type': 'local', 'value': 'x'}]}]}",
                i > 0 ? "," : "", i);
    fprintf(out, "]}]}");
    fclose(out);
    refuse(text, PMIXFAB_ERR_RANGE, "1024");
    free(text);
}

/* The other form that the probe's file may have. */
TEST(test_record)
{
    expect("{'host': 'node1', 'items': [{'source': 'verbs', 'name': 'mlx5_0'}, {'source': 'lldp', "
           "'interface': 'eth0', 'switch-id': '06:a8:f6:5b:01:4f'}]}",
           "{'source': 'lldp', 'interface': 'eth0', 'switch-id': '06:a8:f6:5b:01:4f'}\n");
}

/* ---- lldpctl ---- */

static char folder[64], *path_before;

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/test_probe_lldp.XXXXXX");
    path_before = strdup(getenv("PATH") != NULL ? getenv("PATH") : "");
    return mkdtemp(folder) == NULL || path_before == NULL ? -1 : 0;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[128];
    setenv("PATH", path_before, 1);
    free(path_before);
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    return system(command);
}

/* An lldpctl that does this; what it said is to be freed. */
static int ask(const char *script, const char *socket, unsigned deadline, struct lldp_output *out,
               struct fab_err *err)
{
    char path[128], with[512];
    snprintf(path, sizeof(path), "%s/lldpctl", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\n%s\n", script);
    fclose(file);
    assert_int_equal(chmod(path, 0755), 0);
    snprintf(with, sizeof(with), "relative:%s:%s", folder, path_before);
    setenv("PATH", with, 1);
    err->text[0] = '\0';
    return lldp_ask(socket, deadline, out, err);
}

TEST(test_ask)
{
    struct lldp_output out;
    struct fab_err err;
    assert_int_equal(ask("echo \"$*\"; echo oops >&2", "/a socket", 20000, &out, &err), PMIXFAB_OK);
    assert_int_equal(out.size, strlen("-f json0 -u /a socket\n"));
    assert_memory_equal(out.text, "-f json0 -u /a socket\n", out.size);
    free(out.text);
    assert_int_equal(ask("echo \"$*\"; ls /proc/self/fd | wc -l", NULL, 20000, &out, &err), PMIXFAB_OK);
    /* Standard input, output, errors, and the folder that ls looks at: no other descriptor goes with it. */
    assert_int_equal(out.size, strlen("-f json0\n4\n"));
    assert_memory_equal(out.text, "-f json0\n4\n", out.size);
    free(out.text);
    /* Much, and on both ways at once. */
    assert_int_equal(ask("head -c 3000000 /dev/zero | tr '\\0' x & head -c 3000000 /dev/zero >&2; wait", NULL,
                         60000, &out, &err),
                     PMIXFAB_OK);
    assert_int_equal(out.size, 3000000);
    assert_int_equal(out.text[0], 'x');
    assert_int_equal(out.text[2999999], 'x');
    free(out.text);
}

static void fails(const char *script, unsigned deadline, int code, const char *why)
{
    struct lldp_output out;
    struct fab_err err;
    assert_int_equal(ask(script, NULL, deadline, &out, &err), code);
    assert_null(out.text);
    if (strstr(err.text, why) == NULL)
        fail_msg("%s", err.text);
}

TEST(test_ask_fails)
{
    fails("echo '2026-01-01T00:00:00 [WARN/control] unable to connect' >&2; echo more >&2; exit 1", 20000,
          PMIXFAB_ERR_UNSUPPORTED, "lldpd does not answer: unable to connect; start it");
    fails("exit 3", 20000, PMIXFAB_ERR_UNSUPPORTED, "does not say why");
    fails("kill -9 $$", 20000, PMIXFAB_ERR_UNSUPPORTED, "lldpd does not answer");
    fails("echo {}; exec sleep 600", 50, PMIXFAB_ERR_TIMEOUT, "no answer in time");
    fails("exec >&- 2>&-; exec sleep 600", 50, PMIXFAB_ERR_TIMEOUT, "no answer in time");
    fails("exec yes", 60000, PMIXFAB_ERR_RANGE, "more than 8 MiB");
}

/* A host without lldpd. */
TEST(test_no_lldpctl)
{
    struct lldp_output out;
    struct fab_err err = {{0}};
    if (access("/usr/sbin/lldpctl", F_OK) == 0 || access("/usr/bin/lldpctl", F_OK) == 0)
        skip();
    setenv("PATH", "/nowhere", 1);
    assert_int_equal(lldp_ask(NULL, 1000, &out, &err), PMIXFAB_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.text, "no lldpctl"));
}

/* The probe, as the daemon's child has it: the socket comes from the environment. */
TEST(test_probe)
{
    const struct probe_config config = {0}, missing = {.arg = "/nowhere/x.json"};
    struct fab_report report;
    struct fab_err err = {{0}};
    struct lldp_output out;
    char text[480];
    assert_int_equal(ask("echo '{\"lldp\": [{\"interface\": [{\"name\": \"eth0\", \"chassis\": [{\"id\": "
                         "[{\"type\": \"local\", \"value\": \"'$4'\"}]}]}]}]}'",
                         "s", 20000, &out, &err),
                     PMIXFAB_OK);
    free(out.text);
    setenv("LLDPD_SOCKET", "/x", 1);
    fab_report_init(&report);
    assert_int_equal(fabricd_probe.scan(&config, NULL, &report, &err), PMIXFAB_OK);
    unsetenv("LLDPD_SOCKET");
    expect_items(&report, "{'source': 'lldp', 'interface': 'eth0', 'switch-id': 'local /x'}\n");
    assert_int_equal(fabricd_probe.available(text, sizeof(text)), PMIXFAB_OK);
    assert_string_equal(text, "lldpd answers, switches on 0 interfaces"); /* without a name: no switch */
    fab_report_init(&report);
    assert_int_equal(fabricd_probe.scan(&missing, NULL, &report, &err), PMIXFAB_ERR_NOTFOUND);
    fab_report_destroy(&report);
}

TEST_GROUP(make_folder, remove_folder)
