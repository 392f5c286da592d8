/* The configuration file: what it takes, and how it refuses. */

#include <unistd.h>

#include "fabricd/config/config.h"
#include "test/unit/test.h"

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

static int read_text(struct config *config, const char *text, struct fab_err *err)
{
    write_file(path, text, strlen(text));
    config_init(config);
    return config_read(config, path, err);
}

TEST(takes_every_setting)
{
    SCOPED(config) config;
    struct fab_err err = {""};
    int rc =
        read_text(&config,
                  "# a comment\n[fabricd]\nrundir = /tmp/r\nstore=/tmp/s.db\nprobe = ibnetdisc\n"
                  "probe = file:/tmp/x\ninterval = 7\ndeadline = 9\nlog = debug\ncost_model = hops\n"
                  "groups = pod\ndefault_plane = ib3\nvendor = ACME\n[names]\npattern = ^(x)$\nmap = /tmp/m\n"
                  "[ibnetdisc]\nmax_smps = 8\ntimeout_ms = 100\nretries = 2\n"
                  "[sweep.env]\nA = b c\nLD_PRELOAD = /tmp/l.so\n[security]\nadmins = root, daemon\n"
                  "remote = yes\n",
                  &err);
    assert_string_equal(err.text, "");
    assert_int_equal(rc, PMIXFAB_OK);
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
    assert_int_equal(config.admins.n, 2);
    assert_string_equal(config.admins.items[1], "daemon");
    assert_true(config.remote);
}

/* What is refused, the code, and what the message must name: line, column and reason. */
static const struct {
    const char *text, *says;
} refused[] = {
    {"[fabricd]\ninterval = soon\n", ":2:1: interval is \"soon\""},
    {"[fabricd]\ninterval = -1\n", ":2:1: interval is \"-1\""},
    {"[fabricd]\ninterval = 99999999999999999999\n", ":2:1: interval is"},
    {"[fabricd]\n\n  deadline = 0\n", ":3:3: deadline is \"0\""},
    {"[fabricd]\nlog = loud\n", ":2:1: log is \"loud\": it can be one of error, warning, info, debug"},
    {"[fabricd]\nrundir =\n", ":2:1: rundir is empty"},
    {"[fabricd]\ncolour = red\n", ":2:1: there is no setting \"colour\" in section [fabricd]"},
    {"[nowhere]\nx = 1\n", ":2:1: there is no setting \"x\" in section [nowhere]"},
    {"[security]\nremote = maybe\n", ":2:1: remote is \"maybe\": give yes or no"},
    {"[ibnetdisc]\nmax_smps = 257\n", ":2:1: max_smps is \"257\": give a number from 1 to 256"},
    {"[fabricd\ninterval = 1\n", ":1:1: neither a [section]"},
    {"[fabricd]\njust words\n", ":2:1: neither a [section]"},
    {"[changes]\nsuppress_max = 20\nsuppress = 60\n", ":3:1: suppress_max is 20, less than suppress, 60: "},
    {"[changes]\nsuppress = 601\n", ":2:1: suppress_max is 600 (the default), less than suppress, 601: "},
    {"[changes]\ndebounce_max = 1\n", ":2:1: debounce_max is 1, less than debounce, 2 (the default): "},
    {"[metrics]\nfile = fabricd.prom\n", ":2:1: file is \"fabricd.prom\": give the file's whole path"},
    {"[metrics]\nfile = /nonexistent/fabricd.prom\n", ":2:1: file: there is no folder \"/nonexistent\""},
    {"[metrics]\nfile = /tmp/\n", ":2:1: file is \"/tmp/\""},
};

/* What fits just so, and a run directory that is made at the start. */
TEST(takes_what_fits)
{
    static const char *const taken[] = {
        "[changes]\nsuppress = 60\nsuppress_max = 60\ndebounce = 20\ndebounce_max = 20\n",
        "[metrics]\nfile = /fabricd.prom\n",
        "[metrics]\nfile = /nonexistent/fabricd.prom\n[fabricd]\nrundir = /nonexistent\n",
    };
    for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
        SCOPED(config) config;
        struct fab_err err = {""};
        assert_int_equal(read_text(&config, taken[i], &err), PMIXFAB_OK);
        assert_string_equal(err.text, "");
    }
}

TEST(refuses_with_its_place)
{
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        SCOPED(config) config;
        struct fab_err err = {""};
        int rc = read_text(&config, refused[i].text, &err);
        assert_true(rc < 0);
        if (strstr(err.text, refused[i].says) == NULL || strncmp(err.text, path, strlen(path)) != 0)
            fail_msg("\"%s\" gives \"%s\", which does not say \"%s\"", refused[i].text, err.text,
                     refused[i].says);
        assert_null(strchr(err.text, '\n'));
    }
}

TEST(refuses_long_lines_and_long_lists)
{
    SCOPED(config) config;
    struct fab_err err = {""};
    char text[8192] = "[fabricd]\nvendor = ";
    memset(text + strlen(text), 'x', 4000);
    must_fail(read_text(&config, text, &err), PMIXFAB_ERR_SYNTAX, &err, ":2:1: the line is too long");
    config_destroy(&config);

    strcpy(text, "[fabricd]\n");
    for (int i = 0; i <= CONFIG_MAX_LIST; i++)
        strcat(text, "probe = ibnetdisc\n");
    assert_int_equal(read_text(&config, text, &err), PMIXFAB_ERR_RANGE);
}

TEST(refuses_an_absent_file)
{
    SCOPED(config) config;
    config_init(&config);
    must_refuse(config_read(&config, "/nonexistent/fabricd.conf", fresh_err()), PMIXFAB_ERR_IO,
                "/nonexistent/fabricd.conf: cannot be read");
}

TEST(checks_what_belongs_together)
{
    static const struct {
        const char *section, *name, *value, *says;
    } wrong[] = {
        {"fabricd", "probe", "telepathy", "there is none of this name"},
        {"names", "pattern", "(", ""},
        {"security", "admins", "no-such-user-here", "there is no user"},
    };
    for (size_t i = 0; i < 3; i++) {
        SCOPED(config) config;
        struct fab_err err = {""};
        config_init(&config);
        must_do(config_set(&config, wrong[i].section, wrong[i].name, wrong[i].value, &err));
        assert_true(config_check(&config, &err) < 0);
        assert_non_null(strstr(err.text, wrong[i].says));
    }
}

TEST(makes_paths_absolute)
{
    SCOPED(config) config;
    config_init(&config);
    must_do(config_set(&config, "fabricd", "rundir", "run", fresh_err()));
    must_do(config_check(&config, fresh_err()));
    assert_int_equal(config.rundir[0], '/');
    assert_string_equal(config.rundir + strlen(config.rundir) - 4, "/run");
}

TEST_GROUP(make_file, remove_file)
