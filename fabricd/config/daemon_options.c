#include "fabricd/config/daemon_options.h"

#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabricd/base/log.h"
#include "probes/registry.h"

#define DEFAULT_FILE "/etc/fabricd.conf"

enum {
    OPT_RUNDIR = 256,
    OPT_STORE,
    OPT_ONCE,
    OPT_CHECK,
    OPT_ROLE,
    OPT_SCHEDULER,
    OPT_AVAILABLE,
    OPT_RECORD,
    OPT_RESTORE,
    OPT_PMIX_UNIT,
    OPT_USAGE
};

static const struct argp_option options[] = {
    {"config", 'c', "FILE", 0, "read this configuration (default " DEFAULT_FILE ", where it exists)", 0},
    {"role", OPT_ROLE, "ROLE", 0, "scheduler (the default), or node: on a compute node", 0},
    {"scheduler", OPT_SCHEDULER, "URI", 0,
     "of the scheduler's fabricd (or its run directory), for the role node", 0},
    {"rundir", OPT_RUNDIR, "DIR", 0, "run directory: snapshots, URI, control socket (default /run/fabricd)",
     0},
    {"store", OPT_STORE, "FILE", 0, "database (default /var/lib/fabricd/fabricd.db)", 0},
    {"probe", 'p', "NAME[:ARG]", 0, "ask this source; may be given several times (default ibnetdisc)", 0},
    {"interval", 'i', "SECONDS", 0, "between sweeps; 0: only when asked (default 60)", 0},
    {"foreground", 'f', NULL, 0, "stay in the foreground and log to standard error", 0},
    {"once", OPT_ONCE, NULL, 0, "sweep, store, publish, exit", 0},
    {"check-config", OPT_CHECK, NULL, 0, "read the configuration, say whether it is good, exit", 0},
    {"available", OPT_AVAILABLE, NULL, 0, "say for each probe whether it can work on this host, exit", 0},
    {"record", OPT_RECORD, "FILE", 0,
     "look at this host once, write what its probes see (\"-\": to standard output), exit", 0},
    {"restore", OPT_RESTORE, "FILE", 0, "put this backup in place of the database, which is kept, and exit",
     0},
    {"pmix-unit", OPT_PMIX_UNIT, NULL, 0, "fabricd-pmix is not started: it is a unit of its own", 0},
    {"help", 'h', NULL, 0, "this help", -1},
    {"usage", OPT_USAGE, NULL, OPTION_HIDDEN, NULL, -1},
    {NULL, '?', NULL, OPTION_HIDDEN, NULL, -1},
    {"version", 'V', NULL, 0, "the version", -1},
    {0},
};

/* The command line, kept until the file was read: it goes over the file. */
struct command_line {
    const char *file, *role, *scheduler, *rundir, *store, *interval, *record, *restore;
    char *probes[CONFIG_MAX_LIST];
    unsigned n_probes;
    bool foreground, once, check, pmix_unit;
};

static void print_available(void)
{
    for (unsigned i = 0; probe_registry[i] != NULL && probe_registry[i]->name != NULL; i++) {
        struct fab_err err = {""};
        char text[256] = "";
        const struct probe *probe = probe_load(probe_registry[i], &err);
        int rc = probe == NULL ? PMIXFAB_ERR_UNSUPPORTED : probe->available(text, sizeof(text));
        printf("%-10s %-3s %s\n", probe_registry[i]->name, rc == PMIXFAB_OK ? "yes" : "no",
               probe == NULL ? err.text : text);
    }
}

/* Options whose values are kept as they are; those that go over a setting of [fabricd] do so in this order.
 */
#define AT(field) offsetof(struct command_line, field)
static const struct kept_option {
    int key;
    size_t offset; /* of a text, or where the option takes none of a bool */
    const char *setting;
} kept_options[] = {
    {'c', AT(file), NULL},
    {OPT_ROLE, AT(role), "role"},
    {OPT_SCHEDULER, AT(scheduler), "scheduler"},
    {OPT_RUNDIR, AT(rundir), "rundir"},
    {OPT_STORE, AT(store), "store"},
    {'i', AT(interval), "interval"},
    {OPT_RECORD, AT(record), NULL},
    {OPT_RESTORE, AT(restore), NULL},
    {OPT_PMIX_UNIT, AT(pmix_unit), NULL},
    {'f', AT(foreground), NULL},
    {OPT_ONCE, AT(once), NULL},
    {OPT_CHECK, AT(check), NULL},
};
#define N_KEPT (sizeof(kept_options) / sizeof(kept_options[0]))

static bool keep_option(struct command_line *line, int key, const char *arg)
{
    for (size_t i = 0; i < N_KEPT; i++) {
        void *field = (char *)line + kept_options[i].offset;
        if (kept_options[i].key != key)
            continue;
        if (arg != NULL)
            *(const char **)field = arg;
        else
            *(bool *)field = true;
        return true;
    }
    return false;
}

static error_t take_option(int key, char *arg, struct argp_state *state)
{
    struct command_line *line = state->input;
    if (key == OPT_ROLE && strcmp(arg, "host") == 0) /* its other options are not known here */
        argp_failure(state, 2, 0, "the role host is a program of its own: fabric-host, see fabric-host(1)");
    if (keep_option(line, key, arg))
        return 0;
    switch (key) {
    case 'p':
        if (line->n_probes == CONFIG_MAX_LIST)
            argp_error(state, "more than %d probes", CONFIG_MAX_LIST);
        else
            line->probes[line->n_probes++] = arg;
        return 0;
    case OPT_AVAILABLE:
        print_available();
        exit(0);
    case 'V':
        printf("fabricd %s\n", pmixfab_version());
        exit(0);
    case 'h':
    case '?':
        argp_state_help(state, stdout, ARGP_HELP_STD_HELP);
        return 0;
    case OPT_USAGE:
        argp_state_help(state, stdout, ARGP_HELP_USAGE | ARGP_HELP_EXIT_OK);
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "unexpected argument: %s", arg);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* --help ends with the probes that are built in. */
static char *help_filter(int key, const char *text, void *input)
{
    (void)input;
    if (key != ARGP_KEY_HELP_POST_DOC)
        return (char *)text;
    char *doc = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&doc, &size);
    if (out == NULL)
        return (char *)text;
    fprintf(out, "Probes:\n");
    for (unsigned i = 0; probe_registry[i] != NULL && probe_registry[i]->name != NULL; i++)
        fprintf(out, "  %-10s %s\n", probe_registry[i]->name, probe_registry[i]->summary);
    fprintf(out, "\nSee fabricd(8) and fabricd.conf(5).");
    fclose(out);
    return doc;
}

static void put_option(struct config *config, const char *name, const char *value,
                       struct config_mistakes *mistakes)
{
    const struct config_place at = {CONFIG_COMMAND_LINE, 0};
    const struct config_line line = {"fabricd", name, value, at, at};
    config_put(config, &line, mistakes);
}

static void options_override_config(const struct command_line *line, struct config *config,
                                    struct config_mistakes *mistakes)
{
    if (line->file != NULL)
        config_read(config, line->file, mistakes);
    else if (access(DEFAULT_FILE, F_OK) == 0)
        config_read(config, DEFAULT_FILE, mistakes);
    for (size_t i = 0; i < N_KEPT; i++) {
        const char *setting = kept_options[i].setting;
        const char *value =
            setting == NULL ? NULL : *(const char *const *)((const char *)line + kept_options[i].offset);
        if (value != NULL)
            put_option(config, setting, value, mistakes);
    }
    if (line->n_probes > 0)
        config_clear(&config->probes);
    for (unsigned i = 0; i < line->n_probes; i++)
        put_option(config, "probe", line->probes[i], mistakes);
    config->foreground = line->foreground || line->once || line->check || line->record != NULL;
    config->once = line->once;
    config->check_only = line->check;
    config->record = line->record;
    config->restore = line->restore;
    if (line->pmix_unit)
        config->pmix_start = false;
    config_check(config, mistakes);
}

static char started_in[PATH_MAX];

void options_go_back(void)
{
    if (started_in[0] == '/' && chdir(started_in) != 0)
        log_warning("%s, where fabricd was started: %s; relative names are looked for elsewhere", started_in,
                    strerror(errno));
}

int options_read(int argc, char **argv, struct config *config, struct config_mistakes *mistakes)
{
    static const struct argp argp = {
        .options = options,
        .parser = take_option,
        .doc = "Fabric topology service: discovers the fabric, serves costs, coordinates and groups over "
               "PMIx, and "
               "announces changes.\v ",
        .help_filter = help_filter,
    };
    struct command_line line = {0};
    argp_err_exit_status = 2;
    if (argp_parse(&argp, argc, argv, ARGP_IN_ORDER | ARGP_NO_HELP, NULL, &line) != 0)
        return PMIXFAB_ERR_INVAL;
    config->argc = argc;
    config->argv = argv;
    int here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (started_in[0] != '\0')
        options_go_back();
    else if (getcwd(started_in, sizeof(started_in)) == NULL)
        started_in[0] = '\0'; /* it was removed: nothing is relative to it */
    options_override_config(&line, config, mistakes);
    if (here >= 0 && fchdir(here) != 0)
        log_debug("the folder stays %s: %s", started_in, strerror(errno));
    if (here >= 0)
        close(here);
    return config_mistakes_count(mistakes) == 0 ? PMIXFAB_OK : PMIXFAB_ERR_SYNTAX;
}

static void print_mistake(const char *line, void *cbdata)
{
    (void)cbdata;
    log_error("%s", line);
}

int options_parse(int argc, char **argv, struct config *config)
{
    struct config_mistakes mistakes = {0};
    int rc = options_read(argc, argv, config, &mistakes);
    config_mistakes_tell(&mistakes, print_mistake, NULL);
    config_mistakes_destroy(&mistakes);
    return rc == PMIXFAB_OK ? rc : PMIXFAB_ERR_INVAL;
}
