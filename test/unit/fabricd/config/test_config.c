/* The configuration: what the file may say, and how what it may not is refused. */

#include <unistd.h>

#include "fabricd/config/config.h"
#include "test/unit/test.h"
#include "topo/base/nearest_words.h"

static char path[] = "/tmp/fabricd-config.XXXXXX";

FIXTURE(make_file)
{
    strcpy(path + strlen(path) - 6, "XXXXXX");
    int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

FIXTURE(remove_file)
{
    return unlink(path);
}

static void read_text(struct config *config, const char *text, struct config_mistakes *mistakes)
{
    write_file(path, text, strlen(text));
    *mistakes = (struct config_mistakes){0};
    config_init(config);
    config_read(config, path, mistakes);
}

/* As options_read() does it. */
static void read_and_check(struct config *config, const char *text, struct config_mistakes *mistakes)
{
    read_text(config, text, mistakes);
    if (config_at(config, &config->store).line == CONFIG_DEFAULT)
        must_do(config_text(&config->store, "/tmp/fabricd.db"));
    config->check_only = true; /* also the store, which a start opens by itself */
    config_check(config, mistakes);
}

static void add_line(const char *line, void *cbdata)
{
    char *all = cbdata;
    const size_t len = strlen(path);
    strcat(all, strncmp(line, path, len) == 0 && line[len] == ':' ? line + len + 1 : line);
    strcat(all, "\n");
}

/* All lines, without the file's name. */
static void lines_of(const struct config_mistakes *mistakes, char all[static 65536])
{
    all[0] = '\0';
    config_mistakes_tell(mistakes, add_line, all);
}

static void must_say(const char *text, const char *lines)
{
    static char said[65536];
    SCOPED(config) config;
    SCOPED(config_mistakes) mistakes;
    read_and_check(&config, text, &mistakes);
    lines_of(&mistakes, said);
    if (strcmp(said, lines) != 0)
        fail_msg("%s\ngives:\n%sinstead of:\n%s", text, said, lines);
}

TEST(takes_every_setting)
{
    SCOPED(config) config;
    SCOPED(config_mistakes) mistakes;
    read_text(&config,
              "# a comment\n[fabricd]\nrundir = /tmp/r\nstore=/tmp/s.db\nprobe = ibnetdisc\n"
              "probe = file:/tmp/x\ninterval = 7\ndeadline = 9\nlog = debug\ncost_model = hops\n"
              "groups = pod\ndefault_plane = ib3\nvendor = ACME\n[names]\npattern = ^(x)$\nmap = /tmp/m\n"
              "[ibnetdisc]\nmax_smps = 8\ntimeout_ms = 100\nretries = 2\n"
              "[sweep.env]\nA = b c\nLD_PRELOAD = /tmp/l.so\nEMPTY =\n[security]\nadmins = root, daemon\n"
              "remote = yes\n",
              &mistakes);
    assert_int_equal(config_mistakes_count(&mistakes), 0);
    assert_string_equal(config.rundir, "/tmp/r");
    assert_string_equal(config.store, "/tmp/s.db");
    assert_int_equal(config.probes.n, 2);
    assert_string_equal(config.probes.items[1], "file:/tmp/x");
    assert_int_equal(config.interval, 7);
    assert_int_equal(config.deadline, 9);
    assert_int_equal(config.log, PMIXFAB_LOG_DEBUG);
    assert_int_equal(config.cost_model, FAB_COST_HOPS);
    assert_int_equal(config.groups, FAB_GROUP_POD);
    assert_string_equal(config.default_plane, "ib3");
    assert_string_equal(config.vendor, "ACME");
    assert_string_equal(config.names_pattern, "^(x)$");
    assert_int_equal(config.max_smps, 8);
    assert_int_equal(config.timeout_ms, 100);
    assert_int_equal(config.retries, 2);
    assert_string_equal(config.sweep_env.items[0], "A=b c");
    assert_string_equal(config.sweep_env.items[1], "LD_PRELOAD=/tmp/l.so");
    assert_string_equal(config.sweep_env.items[2], "EMPTY=");
    assert_int_equal(config.admins.n, 2);
    assert_string_equal(config.admins.items[1], "daemon");
    assert_true(config.remote);
}

/* Comments of either kind, at the beginning and behind a value; blanks; what only looks like a comment. */
TEST(takes_comments)
{
    SCOPED(config) config;
    SCOPED(config_mistakes) mistakes;
    read_text(
        &config,
        "\xef\xbb\xbf; one\r\n  # two\n[fabricd] ; three\n\tinterval = 7 # four\r\ndeadline = 8 ; five\n"
        "scheduler = fabricd.0;tcp4://10.91.0.1:24242\nvendor = A#C;ME\n[sweep.env] # six\nA = ;\nB = #\n",
        &mistakes);
    assert_int_equal(config_mistakes_count(&mistakes), 0);
    assert_int_equal(config.interval, 7);
    assert_int_equal(config.deadline, 8);
    assert_string_equal(config.scheduler, "fabricd.0;tcp4://10.91.0.1:24242");
    assert_string_equal(config.vendor, "A#C;ME");
    assert_string_equal(config.sweep_env.items[0], "A=");
    assert_string_equal(config.sweep_env.items[1], "B=");
}

/* A section may be continued, and what is a list may have several lines. */
TEST(takes_what_stands_twice_where_it_may)
{
    SCOPED(config) config;
    SCOPED(config_mistakes) mistakes;
    read_text(&config,
              "[security]\nadmins = root\n[fabricd]\ninterval = 7\n[security]\nadmins = daemon\n[fabricd]\n"
              "probe = ibnetdisc:a\nprobe = ibnetdisc:b\n",
              &mistakes);
    assert_int_equal(config_mistakes_count(&mistakes), 0);
    assert_int_equal(config.admins.n, 2);
    assert_int_equal(config.probes.n, 2);
    assert_int_equal(config.interval, 7);
}

#define F       "[fabricd]\n"
#define NEITHER "neither a [section], nor name = value, nor a comment\n"
#define RAISE   ": raise the one or lower the other\n"

#define REMOTE "[security]\nremote = yes\n[pmix]\n"
#define OLD_PLACE                                                                                            \
    ": a URI of a PMIx server or a run directory is not accepted any more: give the scheduler's host, as "   \
    "scheduler = HOST or HOST:PORT\n"
#define PLACE ": expected HOST or HOST:PORT, or [ADDRESS]:PORT for IPv6\n"
#define NEEDS_REMOTE                                                                                         \
    " is for connections of other hosts: set [security] remote = yes on the scheduler's host, or leave it "  \
    "out\n"
#define ADDRESS "give an address and a port, as 127.0.0.1:9400 or [::1]:9400\n"
#define LISTEN                                                                                               \
    "give an interface's name, or a network or address of IPv4, as ib0, 10.92.0.0/24 or 10.92.0.1\n"

/* A wrong configuration, and all that is said about it: each mistake's line, column and reason. */
static const struct {
    const char *text, *lines;
} wrong[] = {
    /* values */
    {F "interval = soon\n", "2:12: interval is \"soon\": give a number from 0 to 86400\n"},
    {F "interval = -1\n", "2:12: interval is \"-1\": give a number from 0 to 86400\n"},
    {F "interval=86401", "2:10: interval is \"86401\": give a number from 0 to 86400\n"},
    {F "interval = 99999999999999999999\n",
     "2:12: interval is \"99999999999999999999\": give a number from 0 to 86400\n"},
    {F "interval = 1 2\n", "2:12: interval is \"1 2\": give a number from 0 to 86400\n"},
    {F "interval =\n", "2:11: interval is \"\": give a number from 0 to 86400\n"},
    {F "\n  deadline = 0\n", "3:14: deadline is \"0\": give a number from 1 to 3600\n"},
    {F "log = loud\n", "2:7: log is \"loud\": give one of error, warning, info, debug\n"},
    {F "cost_model = cheap\n", "2:14: cost_model is \"cheap\": give one of rate, hops\n"},
    {F "groups = rack\n", "2:10: groups is \"rack\": give one of leaf, pod, unit, auto\n"},
    {F "rundir =\n", "2:9: rundir is empty: give a value or remove the line\n"},
    {F "vendor = ; nobody\n", "2:9: vendor is empty: give a value or remove the line\n"},
    {"[security]\nremote = maybe\n", "2:10: remote is \"maybe\": give yes or no\n"},
    {"[ibnetdisc]\nmax_smps = 257\n", "2:12: max_smps is \"257\": give a number from 1 to 256\n"},
    {"[nodes]\ndebounce_ms = 9\n", "2:15: debounce_ms is \"9\": give a number from 10 to 60000\n"},
    {"[changes]\nflap_count = 17\n", "2:14: flap_count is \"17\": give a number from 0 to 16\n"},
    {"[history]\ndays = never\n", "2:8: days is \"never\": give a number from 0 to 36500\n"},
    /* names */
    {F "colour = red\n", "2:1: there is no setting \"colour\" in section [fabricd]: see fabricd.conf(5)\n"},
    {F "intervall = 1\n", "2:1: there is no setting \"intervall\" in section [fabricd]: is it interval?\n"},
    {F "  hook = /bin/true\n",
     "2:3: there is no setting \"hook\" in section [fabricd]: it belongs to [changes]\n"},
    {"[nowhere]\nx = 1\ny = 2\n", "1:1: there is no section [nowhere]: see fabricd.conf(5)\n"},
    {" [change]\nhook = /none\n", "1:2: there is no section [change]: is it [changes]?\n"},
    {"interval = 1\ndeadline = 2\n", "1:1: a setting before the first [section]\n"},
    /* lines */
    {"[fabricd\ninterval = soon\n", "1:1: " NEITHER},
    {"[]\n", "1:1: " NEITHER},
    {F "just words\n", "2:1: " NEITHER},
    {F "= 1\n", "2:1: " NEITHER},
    /* twice */
    {F "interval = 1\n\ninterval = 1\n", "4:1: interval is set in line 2 already: remove one of them\n"},
    {F "store = /tmp/fabricd-a.db\n[names]\n" F "store = /tmp/fabricd-b.db\n",
     "5:1: store is set in line 2 already: remove one of them\n"},
    {"[changes]\nhook = /bin/true\nhook = /bin/true\n",
     "3:1: hook is set in line 2 already: remove one of them\n"},
    {"[sweep.env]\nA = 1\nB = 1\nA = 2\n", "4:1: A is set in line 2 already: remove one of them\n"},
    {"[ethernet]\nroce = 10.0.0.0/8\nroce = 11.0.0.0/8\n",
     "3:1: roce is set in line 2 already: remove one of them\n"},
    /* what does not fit */
    {"[changes]\nsuppress_max = 20\nsuppress = 60\n",
     "3:12: suppress_max is 20, less than suppress, 60" RAISE},
    {"[changes]\nsuppress = 601\n", "2:12: suppress_max is 600 (the default), less than suppress, 601" RAISE},
    {"[changes]\ndebounce_max = 1\n", "2:16: debounce_max is 1, less than debounce, 2 (the default)" RAISE},
    {F "role = node\nprobe = ethernet\n",
     "2:8: the role node needs the host of its scheduler: give --scheduler HOST[:PORT]\n"},
    {F "role = node\nprobe = ethernet\nscheduler = fabricd.0;tcp4://10.91.0.1:24242\n",
     "4:13: scheduler" OLD_PLACE},
    {F "role = node\nprobe = ethernet\nscheduler = /run/fabricd\n", "4:13: scheduler" OLD_PLACE},
    {F "role = node\nprobe = ethernet\nscheduler = head:\n", "4:13: scheduler: \"head:\"" PLACE},
    {F "role = node\nprobe = ethernet\nscheduler = head, , b\n", "4:13: scheduler: \"\"" PLACE},
    {F "role = node\nprobe = ethernet\nscheduler = head:65536\n", "4:13: scheduler: \"head:65536\"" PLACE},
    {F "role = node\nprobe = ethernet\nscheduler = [::1\n", "4:13: scheduler: \"[::1\"" PLACE},
    {"[nodes]\nlisten = 10.92.0\n", "2:10: [nodes] listen: \"10.92.0\": " LISTEN},
    {F "scheduler = x\n", "2:13: scheduler is for the role node: give --role node, too\n"},
    {F "role = node\nscheduler = x\nprobe = ibnetdisc\n",
     "4:9: probe \"ibnetdisc\" reads the fabric: it is for the role scheduler only\n"},
    /* what is not there */
    {F "probe = ibnetdisc\nprobe = telepathy:x # is there?\n",
     "3:9: probe \"telepathy:x\": there is no probe of this name (fabricd --help lists them)\n"},
    {"[security]\nadmins = root, no-such-user\n",
     "2:16: admins: there is no user \"no-such-user\" on this host\n"},
    {"[nodes]\nuser = no-such-user\n", "2:8: [nodes] user: there is no user \"no-such-user\" on this host\n"},
    {"[changes]\nhook = true x\n", "2:8: [changes] hook: \"true\": give the program's whole path\n"},
    {"[changes]\nhook = /nonexistent x\n",
     "2:8: [changes] hook: \"/nonexistent\": there is no such program, or fabricd may not run it\n"},
    {"[changes]\nhook = /etc/passwd\n",
     "2:8: [changes] hook: \"/etc/passwd\": there is no such program, or fabricd may not run it\n"},
    {"[metrics]\nfile = fabricd.prom\n", "2:8: file is \"fabricd.prom\": give the file's whole path\n"},
    {"[metrics]\nfile = /tmp/\n", "2:8: file is \"/tmp/\": give the file's whole path\n"},
    {"[metrics]\nfile = /nonexistent/fabricd.prom\n",
     "2:8: file: there is no folder \"/nonexistent\": make it first\n"},
    {"[metrics]\nlisten = 9400\n", "2:10: [metrics] listen: \"9400\": " ADDRESS},
    {"[metrics]\nlisten = 127.0.0.1\n", "2:10: [metrics] listen: \"127.0.0.1\": " ADDRESS},
    {"[metrics]\nlisten = ::1:0\n", "2:10: [metrics] listen: \"::1:0\": " ADDRESS},
    {"[metrics]\nlisten = localhost:9400\n", "2:10: [metrics] listen: \"localhost:9400\": " ADDRESS},
    {"[metrics]\nlisten = 203.0.113.77:9400\n", "2:10: [metrics] listen: 203.0.113.77:9400: this host cannot "
                                                "listen at this address: Cannot assign requested "
                                                "address\n"},
    {F "store = /nonexistent/fabricd.db\n",
     "2:9: store: there is no folder \"/nonexistent\": make it first\n"},
    {"[names]\npattern = (\n", "2:11: host pattern \"(\": Unmatched ( or \\(\n"},
    {"[names]\npattern = ^node$\n",
     "2:11: host pattern \"^node$\": put the part with the host in parentheses (1 to 9 groups)\n"},
    {"[names]\nmap = /nonexistent\n", "2:7: map: /nonexistent: cannot be read: No such file or directory\n"},
    {"[pmix]\nport = 65536\n", "2:8: port is \"65536\": give a number from 0 to 65535\n"},
    {"[pmix]\nlisten = lo\n", "2:10: [pmix] listen" NEEDS_REMOTE},
    {F "role = node\nscheduler = x\n[pmix]\nlisten = lo\n[security]\nremote = yes\n",
     "5:10: [pmix] listen" NEEDS_REMOTE},
    {REMOTE "listen = 10.92.0.1/24\n",
     "4:10: [pmix] listen: \"10.92.0.1/24\" is not a network: bits are set after the first 24\n"},
    {REMOTE "listen = 10.92.0\n", "4:10: [pmix] listen: \"10.92.0\": " LISTEN},
    {REMOTE "listen = fd00::1\n", "4:10: [pmix] listen: \"fd00::1\": " LISTEN},
    {REMOTE "listen = ib0,ib1\n", "4:10: [pmix] listen: \"ib0,ib1\": " LISTEN},
    {REMOTE "listen = no-such-if\n", "4:10: [pmix] listen: no interface of this host that is up and has an "
                                     "IPv4 address is called no-such-if: "
                                     "bring it up, or name another\n"},
    {REMOTE "listen = 203.0.113.77\n", "4:10: [pmix] listen: no interface of this host that is up has an "
                                       "IPv4 address in 203.0.113.77: bring it "
                                       "up, or name another\n"},
    {"[ethernet]\nib7 = 10.0.0.0/8\n", "2:1: \"ib7\" cannot be the name of an Ethernet plane\n"},
    {"[ethernet]\nroce = 10.0.0.0\n", "2:8: plane roce: \"10.0.0.0\" is not a network: give an address and a "
                                      "length, as 10.91.0.0/16 or fd00::/64\n"},
};
#define N_WRONG (sizeof(wrong) / sizeof(wrong[0]))
_Static_assert(N_WRONG >= 45, "so many at least");

TEST(refuses_each_with_its_place)
{
    for (size_t i = 0; i < N_WRONG; i++) {
        must_say(wrong[i].text, wrong[i].lines);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(wrong[i].text, wrong[k].text);
    }
}

/* However many there are, they are told in one run and in the order of the file, with what the names map has.
 */
TEST(tells_all_mistakes_at_once)
{
    OWNED(free) char *map = NULL;
    assert_true(asprintf(&map, "%s.map", path) > 0);
    const char names[] = "0x1 \"a\"\nleaf1\n0x1 \"b\"\n0x2 c\n";
    write_file(map, names, strlen(names));
    must_say(
        printed("[fabricd]\nlogg = debug\ninterval = soon\ndeadline = 1\ndeadline = 2\nprobe = x\nrubbish\n"
                "[names]\npattern = [\nmap = %s\n[chnges]\nhook = /x\n[changes]\nhook = x\ndebounce_max = 0\n"
                "[security]\nadmins = nobody-1, root nobody-2\n",
                map),
        printed("2:1: there is no setting \"logg\" in section [fabricd]: is it log?\n"
                "3:12: interval is \"soon\": give a number from 0 to 86400\n"
                "5:1: deadline is set in line 4 already: remove one of them\n"
                "6:9: probe \"x\": there is no probe of this name (fabricd --help lists them)\n"
                "7:1: neither a [section], nor name = value, nor a comment\n"
                "9:11: host pattern \"[\": Invalid regular expression\n"
                "%s:2:1: expected a node GUID (0x and up to 16 hexadecimal digits)\n"
                "%s:4:5: expected a name in double quotes\n"
                "%s:3:1: node 0x0000000000000001 is called \"b\" here and \"a\" in line 1\n"
                "11:1: there is no section [chnges]: is it [changes]?\n"
                "14:8: [changes] hook: \"x\": give the program's whole path\n"
                "15:16: debounce_max is 0, less than debounce, 2 (the default): raise the one or lower the "
                "other\n"
                "17:10: admins: there is no user \"nobody-1\" on this host\n"
                "17:25: admins: there is no user \"nobody-2\" on this host\n",
                map, map, map));
    unlink(map);
}

TEST(tells_a_hundred_and_how_many_more)
{
    static char text[8192], said[65536];
    SCOPED(config) config;
    SCOPED(config_mistakes) mistakes;
    text[0] = '\0';
    for (int i = 0; i < 120; i++)
        strcat(text, "rubbish\n");
    read_text(&config, text, &mistakes);
    assert_int_equal(config_mistakes_count(&mistakes), 120);
    lines_of(&mistakes, said);
    assert_non_null(strstr(said, "100:1: neither"));
    assert_null(strstr(said, "101:1: neither"));
    assert_string_equal(strstr(said, "and "), "and 20 more mistakes\n");
}

/* What fits just so, and a run directory that is made at the start. */
TEST(takes_what_fits)
{
    must_say("[changes]\nsuppress = 60\nsuppress_max = 60\ndebounce = 20\ndebounce_max = 20\n", "");
    must_say("[metrics]\nfile = /fabricd.prom\n", "");
    must_say("[metrics]\nfile = /nonexistent/fabricd.prom\n[fabricd]\nrundir = /nonexistent\n", "");
    must_say("", "");
    must_say("# nothing\n\n;\n[fabricd]", "");
}

TEST(refuses_long_lines_long_lists_and_what_is_no_text)
{
    static char text[2 << 20];
    strcpy(text, "[fabricd]\nvendor = ");
    memset(text + strlen(text), 'x', 4000);
    strcat(text, "\nrubbish\n");
    must_say(text, "2:1: the line is too long\n3:1: neither a [section], nor name = value, nor a comment\n");

    strcpy(text, "[fabricd]\n");
    for (int i = 0; i <= CONFIG_MAX_LIST; i++)
        strcat(text, "probe = ibnetdisc\n");
    must_say(text, "34:9: more than 32 entries for \"probe\"\n");

    SCOPED(config) config;
    SCOPED(config_mistakes) mistakes = {0};
    write_file(path, "[fabricd]\nlog = d\0bug\n", 22);
    config_init(&config);
    config_read(&config, path, &mistakes);
    lines_of(&mistakes, text);
    assert_string_equal(text, "2:8: a byte 0: the file is not a text\n");
    config_mistakes_destroy(&mistakes);

    memset(text, '\n', sizeof(text));
    write_file(path, text, sizeof(text));
    config_read(&config, path, &mistakes);
    assert_non_null(strstr(mistakes.items[0].text, ": too large for a configuration"));
}

TEST(refuses_an_absent_file)
{
    SCOPED(config) config;
    SCOPED(config_mistakes) mistakes = {0};
    config_init(&config);
    config_read(&config, "/nonexistent/fabricd.conf", &mistakes);
    assert_int_equal(mistakes.n, 1);
    assert_string_equal(mistakes.items[0].text,
                        "/nonexistent/fabricd.conf: cannot be read: No such file or directory");
}

static void count_value(const struct config_value *value, void *cbdata)
{
    char *all = cbdata;
    if (value->at.line != CONFIG_DEFAULT)
        strcat(all, printed("[%s] %s = %s (%d:%d)\n", value->section, value->name,
                            value->value == NULL ? "none" : value->value, value->at.line, value->at.column));
}

TEST(tells_what_is_in_force_and_where_it_comes_from)
{
    static char all[4096];
    SCOPED(config) config;
    SCOPED(config_mistakes) mistakes;
    read_text(&config,
              "[fabricd]\nlog = debug\nprobe = ibnetdisc:a\nprobe = ibnetdisc:b\nvendor = ACME\n[security]\n"
              "admins = root,  daemon\nremote = yes\n[ethernet]\nroce = 10.0.0.0/8\n",
              &mistakes);
    const struct config_place at = {CONFIG_COMMAND_LINE, 0};
    const struct config_line line = {"fabricd", "interval", "5", at, at};
    must_do(config_put(&config, &line, &mistakes));
    must_do(config_tell(&config, count_value, all));
    assert_string_equal(all, "[fabricd] probe = ibnetdisc:a (3:9)\n[fabricd] probe = ibnetdisc:b (4:9)\n"
                             "[fabricd] interval = 5 (-1:0)\n[fabricd] log = debug (2:7)\n"
                             "[fabricd] vendor = ACME (5:10)\n[ethernet] roce = 10.0.0.0/8 (10:8)\n"
                             "[security] admins = root daemon (7:10)\n[security] remote = yes (8:10)\n");
}

TEST(makes_paths_absolute)
{
    SCOPED(config) config;
    SCOPED(config_mistakes) mistakes;
    read_and_check(&config, "[fabricd]\nrundir = run\n", &mistakes);
    assert_int_equal(config_mistakes_count(&mistakes), 0);
    assert_int_equal(config.rundir[0], '/');
    assert_string_equal(config.rundir + strlen(config.rundir) - 4, "/run");
}

TEST_GROUP(make_file, remove_file)
