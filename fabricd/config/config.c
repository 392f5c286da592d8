/* config.c - the table of settings, and the source of each value. */
#include "fabricd/config/setting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    list->at[list->n] = (struct config_place){0};
    list->items[list->n++] = copy;
    return PMIXFAB_OK;
}

/* ---- the table ----------------------------------------------------------------------------------- */

static const char *const choices_log[] = {"error", "warning", "info", "debug", NULL};
static const char *const choices_cost[] = {"rate", "hops", NULL};
static const char *const choices_groups[] = {"leaf", "pod", "unit", "auto", NULL};

static const char *const choices_foreign[] = {"yes", "no", "group", NULL};
static const char *const choices_role[] = {"scheduler", "node", "host", NULL};

#define LIVE      true
#define FIXED     false
#define AT(field) .offset = offsetof(struct config, field)
const struct setting config_settings[] = {
    {"fabricd", "role", CHOICE, FIXED, AT(role), .choices = choices_role},
    {"fabricd", "scheduler", TEXT, FIXED, AT(scheduler)},
    {"fabricd", "host", TEXT, FIXED, AT(host)},
    {"fabricd", "rundir", TEXT, FIXED, AT(rundir), .text = "/run/fabricd"},
    {"fabricd", "store", TEXT, FIXED, AT(store), .text = "/var/lib/fabricd/fabricd.db"},
    {"fabricd", "probe", LIST, FIXED, AT(probes)},
    {"fabricd", "interval", NUMBER, LIVE, AT(interval), .min = 0, .max = 86400, .initial = CONFIG_UNSET},
    {"fabricd", "deadline", NUMBER, LIVE, AT(deadline), .min = 1, .max = 3600, .initial = 60},
    {"fabricd", "log", CHOICE, LIVE, AT(log), .choices = choices_log, .initial = PMIXFAB_LOG_INFO},
    {"fabricd", "cost_model", CHOICE, FIXED, AT(cost_model), .choices = choices_cost},
    {"fabricd", "groups", CHOICE, FIXED, AT(groups), .choices = choices_groups, .initial = FAB_GROUP_AUTO},
    {"fabricd", "default_plane", TEXT, FIXED, AT(default_plane)},
    {"fabricd", "vendor", TEXT, FIXED, AT(vendor)},
    {"fabric", "compute", TEXT, FIXED, AT(compute)},
    {"names", "pattern", TEXT, LIVE, AT(names_pattern)},
    {"names", "switch_pattern", TEXT, LIVE, AT(switch_pattern)},
    {"names", "map", TEXT, LIVE, AT(names_map)},
    {"ibnetdisc", "max_smps", NUMBER, LIVE, AT(max_smps), .min = 1, .max = 256, .initial = 32},
    {"ibnetdisc", "timeout_ms", NUMBER, LIVE, AT(timeout_ms), .min = 0, .max = 60000},
    {"ibnetdisc", "retries", NUMBER, LIVE, AT(retries), .min = 0, .max = 100},
    {"nodes", "user", TEXT, FIXED, AT(node_user)},
    {"nodes", "listen", TEXT, FIXED, AT(nodes_listen)},
    {"nodes", "port", NUMBER, FIXED, AT(nodes_port), .min = 0, .max = 65535, .initial = 7135},
    {"nodes", "debounce_ms", NUMBER, LIVE, AT(debounce_ms), .min = 10, .max = 60000, .initial = 500},
    {"nodes", "mirror_delay_ms", NUMBER, LIVE, AT(mirror_delay_ms), .min = 0, .max = 60000, .initial = 1000},
    {"node", "scheduler_user", TEXT, FIXED, AT(scheduler_user)},
    {"node", "serve", BOOLEAN, FIXED, AT(node_serve)},
    {"ethernet", NULL, PAIRS, FIXED, AT(ethernet)},
    {"sweep.env", NULL, PAIRS, LIVE, AT(sweep_env)},
    {"changes", "light_sweep", NUMBER, LIVE, AT(light_sweep), .min = 0, .max = 3600, .initial = 1},
    {"changes", "debounce", NUMBER, LIVE, AT(debounce), .min = 0, .max = 3600, .initial = 2},
    {"changes", "debounce_max", NUMBER, LIVE, AT(debounce_max), .min = 0, .max = 3600, .initial = 15},
    {"changes", "counters", NUMBER, LIVE, AT(counters), .min = 0, .max = 3600, .initial = 60},
    {"changes", "hook", ARGUMENTS, LIVE, AT(hook)},
    {"changes", "hook_deadline", NUMBER, LIVE, AT(hook_deadline), .min = 1, .max = 3600, .initial = 10},
    {"changes", "retain_seconds", NUMBER, LIVE, AT(retain_seconds), .min = 0, .max = 31536000,
     .initial = 600},
    {"changes", "flap_count", NUMBER, LIVE, AT(flap_count), .min = 0, .max = 16, .initial = 3},
    {"changes", "flap_window", NUMBER, LIVE, AT(flap_window), .min = 1, .max = 86400, .initial = 60},
    {"changes", "suppress", NUMBER, LIVE, AT(suppress), .min = 1, .max = 86400, .initial = 30},
    {"changes", "suppress_max", NUMBER, LIVE, AT(suppress_max), .min = 1, .max = 86400, .initial = 600},
    {"check", "inactive_seconds", NUMBER, LIVE, AT(inactive_seconds), .min = 0, .max = 31536000,
     .initial = 600},
    {"check", "capture_seconds", NUMBER, LIVE, AT(capture_seconds), .min = 0, .max = 31536000},
    {"check", "counters_round", NUMBER, LIVE, AT(counters_round), .min = 0, .max = 31536000, .initial = 600},
    {"check", "counters_rate", NUMBER, LIVE, AT(counters_rate), .min = 1, .max = 1000, .initial = 50},
    {"exports", "folder", TEXT, FIXED, AT(export_folder), .text = "/var/lib/fabricd/exports"},
    {"exports", "pace", NUMBER, LIVE, AT(export_pace), .min = 1, .max = 86400, .initial = 10},
    {"exports", "deadline", NUMBER, LIVE, AT(export_deadline), .min = 1, .max = 3600, .initial = 60},
    {"exports", "max_shrink", NUMBER, LIVE, AT(export_max_shrink), .min = 0, .max = 100, .initial = 25},
    {"exports.files", NULL, PAIRS, FIXED, AT(exports)},
    {"exports.commands", NULL, PAIRS, FIXED, AT(export_commands)},
    {"groups", "above", TEXT, FIXED, AT(export_above)},
    {"slurm", "topologies", TEXT, FIXED, AT(slurm_topologies)},
    {"slurm", "round", NUMBER, LIVE, AT(slurm_round), .min = 0, .max = 86400},
    {"slurm", "apply", BOOLEAN, LIVE, AT(slurm_apply)},
    {"slurm", "repair", BOOLEAN, LIVE, AT(slurm_repair)},
    {"metrics", "file", TEXT, LIVE, AT(metrics_file)},
    {"metrics", "listen", TEXT, LIVE, AT(metrics_listen)},
    {"history", "days", NUMBER, LIVE, AT(history_days), .min = 0, .max = 36500, .initial = 400},
    {"history", "changes", NUMBER, LIVE, AT(history_changes), .min = 0, .max = 1000000000,
     .initial = 1000000},
    {"store", "keep_days", NUMBER, LIVE, AT(store_keep_days), .min = 0, .max = 36500, .initial = 30},
    {"endpoints", "quota", NUMBER, LIVE, AT(endpoints_quota), .min = 0, .max = 1000000000, .initial = 1024},
    {"endpoints.pools", NULL, PAIRS, LIVE, AT(pools)},
    {"security", "admins", WORDS, LIVE, AT(admins)},
    {"security", "remote", BOOLEAN, FIXED, AT(remote)},
    {"pmix", "start", BOOLEAN, FIXED, AT(pmix_start), .initial = true},
    {"pmix", "listen", TEXT, FIXED, AT(pmix_listen)},
    {"pmix", "port", NUMBER, FIXED, AT(pmix_port), .min = 0, .max = 65535},
    {"pmix", "foreign_tools", CHOICE, FIXED, AT(foreign_tools), .choices = choices_foreign},
    {0},
};

_Static_assert(sizeof(config_settings) / sizeof(config_settings[0]) <= CONFIG_MAX_SETTINGS + 1, "raise it");

void config_init(struct config *config)
{
    *config = (struct config){0};
    for (const struct setting *s = config_settings; s->section != NULL; s++) {
        void *field = (char *)config + s->offset;
        if (s->type == NUMBER || s->type == CHOICE)
            *(unsigned *)field = s->initial;
        else if (s->type == BOOLEAN)
            *(bool *)field = s->initial != 0;
        else if (s->text != NULL)
            *(char **)field = strdup(s->text);
    }
}

static bool is_list(const struct setting *s)
{
    return s->type == LIST || s->type == PAIRS || s->type == WORDS || s->type == ARGUMENTS;
}

void config_destroy(struct config *config)
{
    for (const struct setting *s = config_settings; s->section != NULL; s++) {
        void *field = (char *)config + s->offset;
        if (s->type == TEXT)
            free(*(char **)field);
        else if (is_list(s))
            config_clear(field);
    }
    free(config->tool_users);
    *config = (struct config){0};
}

struct config_place config_at(const struct config *config, const void *field)
{
    for (size_t i = 0; config_settings[i].section != NULL; i++)
        if ((const char *)config + config_settings[i].offset == field)
            return config->at[i];
    return (struct config_place){0};
}

const char *config_pair(const struct config_list *list, const char *name)
{
    const size_t len = strlen(name);
    for (unsigned i = 0; i < list->n; i++)
        if (strncmp(list->items[i], name, len) == 0 && list->items[i][len] == '=')
            return list->items[i] + len + 1;
    return NULL;
}

bool config_pool(const struct config *config, const char *plane, uint32_t *first, uint32_t *last)
{
    const char *numbers = config_pair(&config->pools, plane);
    char *end;
    if (numbers == NULL)
        return false;
    *first = (uint32_t)strtoul(numbers, &end, 10); /* checked when the pool was put into the configuration */
    *last = (uint32_t)strtoul(end + 1, NULL, 10);
    return true;
}

/* ---- the values in force ------------------------------------------------------------------------- */

typedef void (*tell_fn)(const struct config_value *value, void *cbdata);

static int tell_items(const struct setting *s, const struct config_list *list, tell_fn tell, void *cbdata)
{
    for (unsigned i = 0; i < list->n; i++) {
        struct config_value value = {s->section, s->name, list->items[i], list->at[i]};
        char *name = NULL;
        if (s->type == PAIRS) {
            const size_t len = strcspn(value.value, "=");
            if ((name = strndup(value.value, len)) == NULL)
                return PMIXFAB_ERR_NOMEM;
            value.name = name;
            value.value += len + 1;
        }
        tell(&value, cbdata);
        free(name);
    }
    return PMIXFAB_OK;
}

/* The words of a list of arguments are one value. */
static int tell_words(const struct config_list *list, struct config_value *value, tell_fn tell, void *cbdata)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (unsigned i = 0; i < list->n; i++)
        fprintf(out, "%s%s", i > 0 ? " " : "", list->items[i]);
    if (fclose(out) != 0) {
        free(text);
        return PMIXFAB_ERR_NOMEM;
    }
    value->value = list->n > 0 ? text : NULL;
    tell(value, cbdata);
    free(text);
    return PMIXFAB_OK;
}

int config_tell(const struct config *config, tell_fn tell, void *cbdata)
{
    int rc = PMIXFAB_OK;
    for (size_t i = 0; config_settings[i].section != NULL && rc == PMIXFAB_OK; i++) {
        const struct setting *s = &config_settings[i];
        const void *field = (const char *)config + s->offset;
        struct config_value value = {s->section, s->name, NULL, config->at[i]};
        char number[16];
        if (s->type == LIST || s->type == PAIRS) {
            rc = tell_items(s, field, tell, cbdata);
            continue;
        }
        if (is_list(s)) {
            rc = tell_words(field, &value, tell, cbdata);
            continue;
        }
        if (s->type == NUMBER)
            snprintf(number, sizeof(number), "%u", *(const unsigned *)field);
        value.value = s->type == TEXT      ? *(char *const *)field
                      : s->type == CHOICE  ? s->choices[*(const unsigned *)field]
                      : s->type == BOOLEAN ? (*(const bool *)field ? "yes" : "no")
                                           : number;
        tell(&value, cbdata);
    }
    return rc;
}
