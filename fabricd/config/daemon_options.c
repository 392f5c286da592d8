/* daemon_options.c - the command line over the configuration file; and the reload of both while the daemon
 * runs. */
#include "fabricd/config/setting.h"

#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabricd/base/components.h"
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
    {"config", 'c', "FILE", 0, "the configuration (default " DEFAULT_FILE ", if it exists)", 0},
    {"role", OPT_ROLE, "ROLE", 0, "scheduler (the default), or node (for a compute node)", 0},
    {"scheduler", OPT_SCHEDULER, "HOST", 0,
     "role node: the host of the scheduler's fabricd, as HOST or HOST:PORT", 0},
    {"rundir", OPT_RUNDIR, "DIR", 0,
     "the run directory, for snapshots, URI and control socket (default /run/fabricd)", 0},
    {"store", OPT_STORE, "FILE", 0, "the database (default /var/lib/fabricd/fabricd.db)", 0},
    {"probe", 'p', "NAME[:ARG]", 0, "read this source; repeat it for several (default ibnetdisc)", 0},
    {"interval", 'i', "SECONDS", 0, "time between sweeps; 0: sweep only on request (default 60)", 0},
    {"foreground", 'f', NULL, 0, "stay in the foreground and log to standard error", 0},
    {"once", OPT_ONCE, NULL, 0, "sweep, store and publish once, and exit", 0},
    {"check-config", OPT_CHECK, NULL, 0, "check the configuration, and exit", 0},
    {"available", OPT_AVAILABLE, NULL, 0,
     "list the probes and PMIx components, and whether each works on this host, and exit", 0},
    {"record", OPT_RECORD, "FILE", 0,
     "scan this host once, write the result (\"-\": to standard output), and exit", 0},
    {"restore", OPT_RESTORE, "FILE", 0, "replace the database with this backup, keep the old one, and exit",
     0},
    {"pmix-unit", OPT_PMIX_UNIT, NULL, 0, "do not start fabricd-pmix: a unit of its own runs it", 0},
    {"help", 'h', NULL, 0, "this help", -1},
    {"usage", OPT_USAGE, NULL, OPTION_HIDDEN, NULL, -1},
    {NULL, '?', NULL, OPTION_HIDDEN, NULL, -1},
    {"version", 'V', NULL, 0, "print the version", -1},
    {0},
};

/* Options that override a setting of [fabricd], in this order. */
static const struct {
    int key;
    const char *setting;
} settings_of_options[] = {{OPT_ROLE, "role"},
                           {OPT_SCHEDULER, "scheduler"},
                           {OPT_RUNDIR, "rundir"},
                           {OPT_STORE, "store"},
                           {'i', "interval"}};
#define N_SETTINGS (sizeof(settings_of_options) / sizeof(settings_of_options[0]))

/* Options without a setting: a text, or a bool if the option takes no argument. */
static const struct {
    int key;
    size_t offset;
} fields_of_options[] = {
    {OPT_RECORD, offsetof(struct config, record)},    {OPT_RESTORE, offsetof(struct config, restore)},
    {'f', offsetof(struct config, foreground)},       {OPT_ONCE, offsetof(struct config, once)},
    {OPT_CHECK, offsetof(struct config, check_only)},
};

/* The command line, kept until the file was read, since it overrides the file. */
struct command_line {
    struct config *config;
    const char *file, *settings[N_SETTINGS];
    char *probes[CONFIG_MAX_LIST];
    unsigned n_probes;
    bool pmix_unit;
};

static void print_component(enum component_fit fit, const char *path, const char *text, void *cbdata)
{
    (void)cbdata;
    printf("%-10s %-3s %s: %s\n", "PMIx", fit == COMPONENT_FITS ? "yes" : "no", path, text);
}

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
    (void)components_look(print_component, NULL);
}

static bool keep_option(struct command_line *line, int key, const char *arg)
{
    for (size_t i = 0; i < N_SETTINGS; i++)
        if (settings_of_options[i].key == key) {
            line->settings[i] = arg;
            return true;
        }
    for (size_t i = 0; i < sizeof(fields_of_options) / sizeof(fields_of_options[0]); i++) {
        void *field = (char *)line->config + fields_of_options[i].offset;
        if (fields_of_options[i].key != key)
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
    if (key == OPT_ROLE && strcmp(arg, "host") == 0) /* the other options of fabric-host are unknown here */
        argp_failure(state, 2, 0, "the role host is a program of its own: fabric-host, see fabric-host(1)");
    if (keep_option(line, key, arg))
        return 0;
    switch (key) {
    case 'c':
        line->file = arg;
        return 0;
    case 'p':
        if (line->n_probes == CONFIG_MAX_LIST)
            argp_error(state, "more than %d probes", CONFIG_MAX_LIST);
        else
            line->probes[line->n_probes++] = arg;
        return 0;
    case OPT_PMIX_UNIT:
        line->pmix_unit = true;
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

/* --help ends with the list of built-in probes. */
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

static void options_override_config(const struct command_line *line, struct config_mistakes *mistakes)
{
    struct config *config = line->config;
    const char *file = line->file;
    if (file == NULL && access(DEFAULT_FILE, F_OK) == 0)
        file = DEFAULT_FILE;
    if (file != NULL)
        config_read(config, file, mistakes);
    for (size_t i = 0; i < N_SETTINGS; i++)
        if (line->settings[i] != NULL)
            put_option(config, settings_of_options[i].setting, line->settings[i], mistakes);
    if (line->n_probes > 0)
        config_clear(&config->probes);
    for (unsigned i = 0; i < line->n_probes; i++)
        put_option(config, "probe", line->probes[i], mistakes);
    config->foreground |= config->once || config->check_only || config->record != NULL;
    if (line->pmix_unit)
        config->pmix_start = false;
    config_check(config, mistakes);
}

static char started_in[PATH_MAX];

void options_go_back(void)
{
    if (started_in[0] == '/' && chdir(started_in) != 0)
        log_warning(
            "cannot change to %s, where fabricd was started: %s; relative names refer to another folder",
            started_in, strerror(errno));
}

int options_read(int argc, char **argv, struct config *config, struct config_mistakes *mistakes)
{
    static const struct argp argp = {
        .options = options,
        .parser = take_option,
        .doc =
            "fabricd keeps a current map of a cluster's InfiniBand or Ethernet fabric and serves distances, "
            "faults and changes to schedulers, jobs and operators.\v ",
        .help_filter = help_filter,
    };
    struct command_line line = {.config = config};
    argp_err_exit_status = 2;
    if (argp_parse(&argp, argc, argv, ARGP_IN_ORDER | ARGP_NO_HELP, NULL, &line) != 0)
        return PMIXFAB_ERR_INVAL;
    config->argc = argc;
    config->argv = argv;
    int here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (started_in[0] != '\0')
        options_go_back();
    else if (getcwd(started_in, sizeof(started_in)) == NULL)
        started_in[0] = '\0'; /* the folder was removed: no name is relative to it */
    options_override_config(&line, mistakes);
    if (here >= 0 && fchdir(here) != 0)
        log_debug("the working directory stays %s: %s", started_in, strerror(errno));
    if (here >= 0)
        close(here);
    return config_mistakes_count(mistakes) == 0 ? PMIXFAB_OK : PMIXFAB_ERR_SYNTAX;
}

int options_parse(int argc, char **argv, struct config *config)
{
    struct config_mistakes mistakes = {0};
    int rc = options_read(argc, argv, config, &mistakes);
    config_mistakes_log(&mistakes);
    config_mistakes_destroy(&mistakes);
    return rc == PMIXFAB_OK ? rc : PMIXFAB_ERR_INVAL;
}

/* ---- reload ---- */

static bool same_text(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static bool same_list(const struct config_list *a, const struct config_list *b)
{
    for (unsigned i = 0; i < a->n && i < b->n; i++)
        if (strcmp(a->items[i], b->items[i]) != 0)
            return false;
    return a->n == b->n;
}

static size_t value_size(const struct setting *s)
{
    return s->type == TEXT                          ? sizeof(char *)
           : s->type == NUMBER || s->type == CHOICE ? sizeof(unsigned)
           : s->type == BOOLEAN                     ? sizeof(bool)
                                                    : sizeof(struct config_list);
}

static bool same_value(const struct setting *s, const void *a, const void *b)
{
    if (s->type == TEXT)
        return same_text(*(char *const *)a, *(char *const *)b);
    return value_size(s) == sizeof(struct config_list) ? same_list(a, b) : memcmp(a, b, value_size(s)) == 0;
}

/* Take over a setting of the new configuration. An equal value stays in its memory, since others may point to
 * it; only its place is taken over. A different value is exchanged if it can change now. */
static bool take_setting(struct config *config, struct config *fresh, size_t i)
{
    const struct setting *s = &config_settings[i];
    void *now = (char *)config + s->offset, *then = (char *)fresh + s->offset;
    struct config_list kept;
    const bool same = same_value(s, now, then);
    if (same && value_size(s) == sizeof(struct config_list)) {
        memcpy(((struct config_list *)now)->at, ((struct config_list *)then)->at, sizeof(kept.at));
    } else if (!same && s->live) {
        memcpy(&kept, now, value_size(s));
        memcpy(now, then, value_size(s));
        memcpy(then, &kept, value_size(s));
    }
    if (same || s->live)
        config->at[i] = fresh->at[i];
    return same;
}

int config_reload(struct config *config, struct config_reload *out)
{
    const struct config_place nowhere = {CONFIG_DEFAULT, 0};
    struct config fresh;
    *out = (struct config_reload){0};
    config_init(&fresh);
    int rc = options_read(config->argc, config->argv, &fresh, &out->mistakes);
    if (config->file != NULL && fresh.file == NULL) {
        config_mistake(&out->mistakes, nowhere, "%s: the file does not exist any more", config->file);
        rc = PMIXFAB_ERR_NOTFOUND;
    }
    for (size_t i = 0; rc == PMIXFAB_OK && config_settings[i].section != NULL; i++) {
        const struct setting *s = &config_settings[i];
        if (take_setting(config, &fresh, i))
            continue;
        if (s->live)
            out->changed[out->n_changed++] = s;
        else
            out->restart[out->n_restart++] = s;
    }
    if (rc == PMIXFAB_OK)
        config->file = fresh.file;
    config_destroy(&fresh);
    return rc;
}

int config_can_start(const struct config *config, struct fab_err *err)
{
    struct config fresh;
    struct config_mistakes mistakes = {0};
    config_init(&fresh);
    int rc = options_read(config->argc, config->argv, &fresh, &mistakes);
    if (rc != PMIXFAB_OK)
        fab_fail(err, rc, "the configuration has mistakes: %s",
                 mistakes.n > 0 ? mistakes.items[0].text : "?");
    config_mistakes_destroy(&mistakes);
    config_destroy(&fresh);
    return rc;
}

void config_reload_destroy(struct config_reload *reload)
{
    config_mistakes_destroy(&reload->mistakes);
}

bool config_reload_has(const struct config_reload *reload, const char *section, const char *name)
{
    for (unsigned i = 0; i < reload->n_changed; i++)
        if (strcmp(reload->changed[i]->section, section) == 0 && same_text(reload->changed[i]->name, name))
            return true;
    return false;
}

void config_name_text(const struct setting *setting, char text[static CONFIG_NAME_SIZE])
{
    snprintf(text, CONFIG_NAME_SIZE, "[%s]%s%s", setting->section, setting->name != NULL ? " " : "",
             setting->name != NULL ? setting->name : "");
}

void config_names_text(const struct setting *const *settings, unsigned n, char text[static CONFIG_NAMES_SIZE])
{
    size_t len = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < n && len < CONFIG_NAMES_SIZE - CONFIG_NAME_SIZE; i++) {
        char name[CONFIG_NAME_SIZE];
        config_name_text(settings[i], name);
        len += (size_t)snprintf(text + len, CONFIG_NAMES_SIZE - len, "%s%s", i > 0 ? ", " : "", name);
    }
}
