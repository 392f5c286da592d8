#include "fabricd/config/config.h"

#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fabricd/util/log.h"
#include "topo/base/cidr.h"

void config_clear(struct config_list *list)
{
    for (unsigned i = 0; i < list->n; i++)
        free(list->items[i]);
    list->n = 0;
}

int config_text(char **text, const char *value)
{
    char *copy = strdup(value);
    if (copy == NULL)
        return PMIXFAB_ERR_NOMEM;
    free(*text);
    *text = copy;
    return PMIXFAB_OK;
}

int config_append(struct config_list *list, const char *value)
{
    if (list->n == CONFIG_MAX_LIST)
        return PMIXFAB_ERR_RANGE;
    char *copy = strdup(value);
    if (copy == NULL)
        return PMIXFAB_ERR_NOMEM;
    list->items[list->n++] = copy;
    return PMIXFAB_OK;
}

/* ---- one setting -------------------------------------------------------------------------------- */

enum setting_type { TEXT, NUMBER, LIST, WORDS, ARGUMENTS, BOOLEAN, CHOICE };

struct setting {
    const char *section, *name;
    enum setting_type type;
    size_t offset;
    unsigned min, max, initial; /* NUMBER, and CHOICE, which is stored as its position */
    const char *const *choices;
    const char *text; /* TEXT: the default, NULL: none */
};

static const char *const choices_log[] = {"error", "warning", "info", "debug", NULL};
static const char *const choices_cost[] = {"rate", "hops", NULL};
static const char *const choices_groups[] = {"leaf", "pod", NULL};

static const char *const choices_role[] = {"scheduler", "node", NULL};

#define AT(field) .offset = offsetof(struct config, field)
static const struct setting settings[] = {
    {"fabricd", "role", CHOICE, AT(role), .choices = choices_role},
    {"fabricd", "scheduler", TEXT, AT(scheduler)},
    {"fabricd", "host", TEXT, AT(host)},
    {"fabricd", "rundir", TEXT, AT(rundir), .text = "/run/fabricd"},
    {"fabricd", "store", TEXT, AT(store), .text = "/var/lib/fabricd/fabricd.db"},
    {"fabricd", "probe", LIST, AT(probes)},
    {"fabricd", "interval", NUMBER, AT(interval), .min = 0, .max = 86400, .initial = CONFIG_UNSET},
    {"fabricd", "deadline", NUMBER, AT(deadline), .min = 1, .max = 3600, .initial = 60},
    {"fabricd", "log", CHOICE, AT(log), .choices = choices_log, .initial = PMIXFAB_LOG_INFO},
    {"fabricd", "cost_model", CHOICE, AT(cost_model), .choices = choices_cost},
    {"fabricd", "groups", CHOICE, AT(groups), .choices = choices_groups},
    {"fabricd", "default_plane", TEXT, AT(default_plane)},
    {"fabricd", "vendor", TEXT, AT(vendor)},
    {"names", "pattern", TEXT, AT(names_pattern)},
    {"names", "map", TEXT, AT(names_map)},
    {"ibnetdisc", "max_smps", NUMBER, AT(max_smps), .min = 1, .max = 256, .initial = 32},
    {"ibnetdisc", "timeout_ms", NUMBER, AT(timeout_ms), .min = 0, .max = 60000},
    {"ibnetdisc", "retries", NUMBER, AT(retries), .min = 0, .max = 100},
    {"nodes", "user", TEXT, AT(node_user)},
    {"nodes", "debounce_ms", NUMBER, AT(debounce_ms), .min = 10, .max = 60000, .initial = 500},
    {"nodes", "mirror_delay_ms", NUMBER, AT(mirror_delay_ms), .min = 0, .max = 60000, .initial = 1000},
    {"changes", "light_sweep", NUMBER, AT(light_sweep), .min = 0, .max = 3600, .initial = 1},
    {"changes", "debounce", NUMBER, AT(debounce), .min = 0, .max = 3600, .initial = 2},
    {"changes", "debounce_max", NUMBER, AT(debounce_max), .min = 0, .max = 3600, .initial = 15},
    {"changes", "hook", ARGUMENTS, AT(hook)},
    {"changes", "hook_deadline", NUMBER, AT(hook_deadline), .min = 1, .max = 3600, .initial = 10},
    {"changes", "retain_seconds", NUMBER, AT(retain_seconds), .min = 0, .max = 31536000, .initial = 600},
    {"changes", "flap_count", NUMBER, AT(flap_count), .min = 0, .max = 16, .initial = 3},
    {"changes", "flap_window", NUMBER, AT(flap_window), .min = 1, .max = 86400, .initial = 60},
    {"changes", "suppress", NUMBER, AT(suppress), .min = 1, .max = 86400, .initial = 30},
    {"changes", "suppress_max", NUMBER, AT(suppress_max), .min = 1, .max = 86400, .initial = 600},
    {"metrics", "file", TEXT, AT(metrics_file)},
    {"history", "days", NUMBER, AT(history_days), .min = 0, .max = 36500, .initial = 400},
    {"history", "changes", NUMBER, AT(history_changes), .min = 0, .max = 1000000000, .initial = 1000000},
    {"store", "keep_days", NUMBER, AT(store_keep_days), .min = 0, .max = 36500, .initial = 30},
    {"security", "admins", WORDS, AT(admins)},
    {"security", "remote", BOOLEAN, AT(remote)},
};

#define N_SETTINGS (sizeof(settings) / sizeof(settings[0]))

void config_init(struct config *config)
{
    *config = (struct config){0};
    for (const struct setting *s = settings; s < settings + N_SETTINGS; s++) {
        void *field = (char *)config + s->offset;
        if (s->type == NUMBER || s->type == CHOICE)
            *(unsigned *)field = s->initial;
        else if (s->text != NULL)
            *(char **)field = strdup(s->text);
    }
}

void config_destroy(struct config *config)
{
    for (const struct setting *s = settings; s < settings + N_SETTINGS; s++) {
        void *field = (char *)config + s->offset;
        if (s->type == TEXT)
            free(*(char **)field);
        else if (s->type == LIST || s->type == WORDS || s->type == ARGUMENTS)
            config_clear(field);
    }
    config_clear(&config->ethernet); /* these two have sections of their own */
    config_clear(&config->sweep_env);
    *config = (struct config){0};
}

static int set_number(const struct setting *s, unsigned *field, const char *value, struct fab_err *err)
{
    char *end;
    errno = 0;
    unsigned long number = strtoul(value, &end, 10);
    if (!isdigit((unsigned char)value[0]) || *end != '\0' || errno != 0 || number < s->min || number > s->max)
        return fab_fail(err, PMIXFAB_ERR_SYNTAX, "%s is \"%.40s\": give a number from %u to %u", s->name,
                        value, s->min, s->max);
    *field = (unsigned)number;
    return PMIXFAB_OK;
}

static int set_choice(const struct setting *s, unsigned *field, const char *value, struct fab_err *err)
{
    char known[128] = "";
    for (unsigned i = 0; s->choices[i] != NULL; i++) {
        if (strcmp(value, s->choices[i]) == 0) {
            *field = i;
            return PMIXFAB_OK;
        }
        strncat(known, i > 0 ? ", " : "", sizeof(known) - strlen(known) - 1);
        strncat(known, s->choices[i], sizeof(known) - strlen(known) - 1);
    }
    return fab_fail(err, PMIXFAB_ERR_SYNTAX, "%s is \"%.40s\": it can be one of %s", s->name, value, known);
}

static int set_boolean(const struct setting *s, bool *field, const char *value, struct fab_err *err)
{
    if (strcmp(value, "yes") != 0 && strcmp(value, "no") != 0)
        return fab_fail(err, PMIXFAB_ERR_SYNTAX, "%s is \"%.40s\": give yes or no", s->name, value);
    *field = value[0] == 'y';
    return PMIXFAB_OK;
}

/* Words with any of these between them. */
static int set_words(struct config_list *list, const char *value, const char *between)
{
    char *copy = strdup(value), *rest = NULL;
    if (copy == NULL)
        return PMIXFAB_ERR_NOMEM;
    int rc = PMIXFAB_OK;
    for (char *word = strtok_r(copy, between, &rest); word != NULL && rc == 0;
         word = strtok_r(NULL, between, &rest))
        rc = config_append(list, word);
    free(copy);
    return rc;
}

static int set_pair(struct config_list *list, const char *name, const char *value)
{
    char *text;
    if (asprintf(&text, "%s=%s", name, value) < 0)
        return PMIXFAB_ERR_NOMEM;
    int rc = config_append(list, text);
    free(text);
    return rc;
}

/* A plane's name is a file's, too; names that the planes of InfiniBand get are not free. */
static int set_ethernet(struct config *config, const char *name, const char *value, struct fab_err *err)
{
    struct fab_err why = {""};
    size_t len = strlen(name);
    bool taken = strcmp(name, "unattached") == 0 ||
                 (strncmp(name, "ib", 2) == 0 && strspn(name + 2, "0123456789") == len - 2);
    if (taken || len > 63 || name[0] == '.' ||
        strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") != len)
        return fab_fail(err, PMIXFAB_ERR_SYNTAX, "\"%.40s\" cannot be the name of an Ethernet plane", name);
    if (fab_cidr_check(value, &why) != PMIXFAB_OK)
        return fab_fail(err, PMIXFAB_ERR_SYNTAX, "plane %s: %s", name, why.text);
    for (unsigned i = 0; i < config->ethernet.n; i++)
        if (strncmp(config->ethernet.items[i], name, len) == 0 && config->ethernet.items[i][len] == '=')
            return fab_fail(err, PMIXFAB_ERR_CONFLICT, "plane %s stands there twice", name);
    return set_pair(&config->ethernet, name, value);
}

static int set_field(struct config *config, const struct setting *s, const char *value, struct fab_err *err)
{
    void *field = (char *)config + s->offset;
    switch (s->type) {
    case TEXT:
        if (value[0] == '\0')
            return fab_fail(err, PMIXFAB_ERR_SYNTAX, "%s is empty: give a value or leave the line out",
                            s->name);
        return config_text(field, value);
    case NUMBER:
        return set_number(s, field, value, err);
    case LIST:
        return config_append(field, value);
    case WORDS:
        return set_words(field, value, ", \t");
    case ARGUMENTS: /* a later line replaces an earlier one: there is one program */
        config_clear(field);
        return set_words(field, value, " \t");
    case BOOLEAN:
        return set_boolean(s, field, value, err);
    case CHOICE:
        return set_choice(s, field, value, err);
    }
    return PMIXFAB_ERR_INVAL;
}

int config_set(struct config *config, const char *section, const char *name, const char *value,
               struct fab_err *err)
{
    int rc = PMIXFAB_ERR_NOTFOUND;
    if (strcmp(section, "sweep.env") == 0)
        rc = set_pair(&config->sweep_env, name, value);
    if (strcmp(section, "ethernet") == 0)
        rc = set_ethernet(config, name, value, err);
    for (size_t i = 0; i < N_SETTINGS; i++)
        if (strcmp(section, settings[i].section) == 0 && strcmp(name, settings[i].name) == 0)
            rc = set_field(config, &settings[i], value, err);
    if (rc == PMIXFAB_ERR_NOTFOUND)
        return fab_fail(err, rc, "there is no setting \"%.40s\" in section [%.40s]: see fabricd.conf(5)",
                        name, section);
    if (rc == PMIXFAB_ERR_RANGE)
        return fab_fail(err, rc, "more than %d entries for \"%.40s\"", CONFIG_MAX_LIST, name);
    if (rc == PMIXFAB_ERR_NOMEM)
        return fab_fail(err, rc, "out of memory");
    return rc;
}

/* ---- the file ----------------------------------------------------------------------------------- */

/* Settings that are looked at together when all have been read. */
static const char *const together[][2] = {{"changes", "debounce"},
                                          {"changes", "debounce_max"},
                                          {"changes", "suppress"},
                                          {"changes", "suppress_max"},
                                          {"metrics", "file"}};
enum { DEBOUNCE, LONGEST_WAIT, SUPPRESS, SUPPRESS_MAX, METRICS_FILE, N_TOGETHER };

/* inih tells its handler neither line nor column; the reader counts the one and keeps the line for the other.
 */
struct reading {
    int lines[N_TOGETHER]; /* 0: it is not in the file */
    struct config *config;
    struct fab_err *err;
    const char *path;
    FILE *file;
    int line, rc, bad, too_long; /* bad: the line that a setting was refused in */
    char text[256];
};

static char *ini_read_line(char *buffer, int size, void *stream)
{
    struct reading *r = stream;
    if (fgets(buffer, size, r->file) == NULL)
        return NULL;
    r->line++;
    if (strlen(buffer) == (size_t)size - 1 && buffer[size - 2] != '\n' && r->too_long == 0)
        r->too_long = r->line;
    snprintf(r->text, sizeof(r->text), "%s", buffer);
    return buffer;
}

static int handle_setting(void *user, const char *section, const char *name, const char *value)
{
    struct reading *r = user;
    struct fab_err reason = {""};
    if (r->rc != PMIXFAB_OK || r->too_long != 0)
        return 1;
    if (value == NULL)
        value = "";
    r->rc = config_set(r->config, section, name, value, &reason);
    if (r->rc != PMIXFAB_OK) {
        r->bad = r->line;
        const char *at = strstr(r->text, name);
        fab_fail(r->err, r->rc, "%s:%d:%d: %s", r->path, r->line, at == NULL ? 1 : (int)(at - r->text) + 1,
                 reason.text);
    }
    for (size_t i = 0; i < N_TOGETHER; i++)
        if (strcmp(section, together[i][0]) == 0 && strcmp(name, together[i][1]) == 0)
            r->lines[i] = r->line;
    return 1;
}

/* Whichever of two settings that do not fit comes later in the file, if either is there. */
static int check_pair(const struct reading *r, int less, unsigned low, int more, unsigned high)
{
    const int line = r->lines[less] > r->lines[more] ? r->lines[less] : r->lines[more];
    if (line == 0 || low >= high)
        return PMIXFAB_OK;
    return fab_fail(r->err, PMIXFAB_ERR_CONFLICT,
                    "%s:%d:1: %s is %u%s, less than %s, %u%s: raise the one or lower the other", r->path,
                    line, together[less][1], low, r->lines[less] == 0 ? " (the default)" : "",
                    together[more][1], high, r->lines[more] == 0 ? " (the default)" : "");
}

/* A file that can never be written would be noticed only when it is missed. The run directory is made at the
 * start. */
static int check_metrics_file(const struct reading *r)
{
    const char *file = r->config->metrics_file;
    const int line = r->lines[METRICS_FILE];
    const char *slash = line == 0 ? NULL : strrchr(file, '/');
    char folder[4096];
    struct stat st;
    if (line == 0)
        return PMIXFAB_OK;
    if (file[0] != '/' || slash[1] == '\0')
        return fab_fail(r->err, PMIXFAB_ERR_SYNTAX, "%s:%d:1: file is \"%.200s\": give the file's whole path",
                        r->path, line, file);
    snprintf(folder, sizeof(folder), "%.*s", slash == file ? 1 : (int)(slash - file), file);
    if (strcmp(folder, r->config->rundir) == 0 || (stat(folder, &st) == 0 && S_ISDIR(st.st_mode)))
        return PMIXFAB_OK;
    return fab_fail(r->err, PMIXFAB_ERR_NOTFOUND,
                    "%s:%d:1: file: there is no folder \"%.200s\": make it first", r->path, line, folder);
}

static int check_together(const struct reading *r)
{
    const struct config *config = r->config;
    int rc = check_pair(r, LONGEST_WAIT, config->debounce_max, DEBOUNCE, config->debounce);
    if (rc == PMIXFAB_OK)
        rc = check_pair(r, SUPPRESS_MAX, config->suppress_max, SUPPRESS, config->suppress);
    return rc == PMIXFAB_OK ? check_metrics_file(r) : rc;
}

int config_read(struct config *config, const char *path, struct fab_err *err)
{
    struct reading r = {.config = config, .err = err, .path = path};
    r.file = fopen(path, "re");
    if (r.file == NULL)
        return fab_fail(err, PMIXFAB_ERR_IO, "%s: cannot be read: %s", path, strerror(errno));
    int bad_line = ini_parse_stream(ini_read_line, &r, handle_setting, &r);
    int failed = ferror(r.file);
    fclose(r.file);
    if (failed)
        return fab_fail(err, PMIXFAB_ERR_IO, "%s: reading it failed", path);
    if (r.too_long != 0)
        return fab_fail(err, PMIXFAB_ERR_SYNTAX, "%s:%d:1: the line is too long", path, r.too_long);
    if (r.rc != PMIXFAB_OK && (bad_line == 0 || r.bad <= bad_line))
        return r.rc;
    if (bad_line != 0)
        return fab_fail(err, PMIXFAB_ERR_SYNTAX,
                        "%s:%d:1: neither a [section], nor name = value, nor a comment", path, bad_line);
    return check_together(&r);
}
