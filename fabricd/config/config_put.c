/* config_put.c - one setting, as somebody wrote it. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/config/setting.h"
#include "topo/base/cidr.h"
#include "topo/base/error.h"
#include "topo/base/formats.h"
#include "topo/base/nearest_words.h"

/* A line on its way into the configuration. */
struct putting {
    struct config *config;
    const struct config_line *line;
    struct config_mistakes *mistakes;
};

/* ---- a value -------------------------------------------------------------------------------------- */

static int put_number(const struct putting *p, const struct setting *s, unsigned *field)
{
    const char *value = p->line->value;
    char *end;
    errno = 0;
    unsigned long number = strtoul(value, &end, 10);
    if (!isdigit((unsigned char)value[0]) || *end != '\0' || errno != 0 || number < s->min || number > s->max)
        return config_mistake(p->mistakes, PMIXFAB_ERR_SYNTAX, p->line->value_at,
                              "%s is \"%.40s\": give a number from %u to %u", s->name, value, s->min, s->max);
    *field = (unsigned)number;
    return PMIXFAB_OK;
}

static int put_choice(const struct putting *p, const struct setting *s, unsigned *field)
{
    char known[128] = "";
    for (unsigned i = 0; s->choices[i] != NULL; i++) {
        if (strcmp(p->line->value, s->choices[i]) == 0) {
            *field = i;
            return PMIXFAB_OK;
        }
        strncat(known, i > 0 ? ", " : "", sizeof(known) - strlen(known) - 1);
        strncat(known, s->choices[i], sizeof(known) - strlen(known) - 1);
    }
    return config_mistake(p->mistakes, PMIXFAB_ERR_SYNTAX, p->line->value_at,
                          "%s is \"%.40s\": it can be one of %s", s->name, p->line->value, known);
}

static int put_boolean(const struct putting *p, const struct setting *s, bool *field)
{
    const char *value = p->line->value;
    if (strcmp(value, "yes") != 0 && strcmp(value, "no") != 0)
        return config_mistake(p->mistakes, PMIXFAB_ERR_SYNTAX, p->line->value_at,
                              "%s is \"%.40s\": give yes or no", s->name, value);
    *field = value[0] == 'y';
    return PMIXFAB_OK;
}

static int put_item(const struct putting *p, struct config_list *list, const char *text,
                    struct config_place at)
{
    int rc = config_append(list, text);
    if (rc == PMIXFAB_OK)
        list->at[list->n - 1] = at;
    else if (rc == PMIXFAB_ERR_RANGE)
        config_mistake(p->mistakes, rc, at, "more than %d entries for \"%.40s\"", CONFIG_MAX_LIST,
                       p->line->name);
    else
        config_mistake(p->mistakes, rc, at, "out of memory");
    return rc;
}

/* Words with any of these between them, each with its own place. */
static int put_words(const struct putting *p, struct config_list *list, const char *between)
{
    struct config_place at = p->line->value_at;
    char *copy = strdup(p->line->value), *rest = NULL;
    int rc = copy == NULL ? config_mistake(p->mistakes, PMIXFAB_ERR_NOMEM, at, "out of memory") : PMIXFAB_OK;
    for (char *word = copy == NULL ? NULL : strtok_r(copy, between, &rest); word != NULL && rc == 0;
         word = strtok_r(NULL, between, &rest)) {
        at.column = at.line > 0 ? p->line->value_at.column + (int)(word - copy) : at.column;
        rc = put_item(p, list, word, at);
    }
    free(copy);
    return rc;
}

/* A plane's name is a file's, too; names that the planes of InfiniBand get are not free. */
static int check_ethernet(const struct putting *p)
{
    const char *name = p->line->name;
    struct fab_err why = {""};
    size_t len = strlen(name);
    bool taken = strcmp(name, "unattached") == 0 ||
                 (strncmp(name, "ib", 2) == 0 && strspn(name + 2, "0123456789") == len - 2);
    if (taken || len > 63 || name[0] == '.' ||
        strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") != len)
        return config_mistake(p->mistakes, PMIXFAB_ERR_SYNTAX, p->line->name_at,
                              "\"%.40s\" cannot be the name of an Ethernet plane", name);
    if (fab_cidr_check(p->line->value, &why) != PMIXFAB_OK)
        return config_mistake(p->mistakes, PMIXFAB_ERR_SYNTAX, p->line->value_at, "plane %s: %s", name,
                              why.text);
    return PMIXFAB_OK;
}

/* Numbers of endpoints, FIRST-LAST. */
static int check_pool(const struct putting *p)
{
    char *end = NULL;
    const char *text = p->line->value;
    const unsigned long long first = strtoull(text, &end, 10);
    const bool two = isdigit((unsigned char)text[0]) && *end == '-' && isdigit((unsigned char)end[1]);
    const unsigned long long last = two ? strtoull(end + 1, &end, 10) : 0;
    if (!two || *end != '\0')
        return config_mistake(p->mistakes, PMIXFAB_ERR_SYNTAX, p->line->value_at,
                              "plane %.40s: %.40s: give two numbers, as 20000-29999", p->line->name, text);
    if (first < 1 || first > last || last > UINT32_MAX)
        return config_mistake(p->mistakes, PMIXFAB_ERR_RANGE, p->line->value_at,
                              "plane %.40s: %.40s: give numbers from 1 to 4294967295, the lower one first",
                              p->line->name, text);
    return PMIXFAB_OK;
}

/* More than a child can be given. */
static int check_word_count(const struct putting *p, unsigned most)
{
    const char between[] = " \t";
    unsigned n = 0;
    for (const char *at = p->line->value; *(at += strspn(at, between)) != '\0'; at += strcspn(at, between))
        n++;
    if (n > most)
        return config_mistake(p->mistakes, PMIXFAB_ERR_RANGE, p->line->value_at,
                              "%.200s has %u words: give no more than %u", p->line->name, n, most);
    return PMIXFAB_OK;
}

/* FORMAT OPTIONS of a file that is kept right. */
static int check_export(const struct putting *p)
{
    const char *name = p->line->name;
    if (name[0] != '/' && strchr(name, '/') != NULL)
        return config_mistake(p->mistakes, PMIXFAB_ERR_SYNTAX, p->line->name_at,
                              "%.200s: give a name in [exports] folder, or a whole path", name);
    if (!fab_is_export_format(p->line->value, strcspn(p->line->value, " \t")))
        return config_mistake(p->mistakes, PMIXFAB_ERR_NOTFOUND, p->line->value_at,
                              "%.100s is \"%.40s\": give a format of fabricctl export, then its options: %s",
                              name, p->line->value, FAB_EXPORT_FORMATS);
    return check_word_count(p, CONFIG_EXPORT_WORDS);
}

static int refuse_twice(const struct putting *p, struct config_place before)
{
    return config_mistake(p->mistakes, PMIXFAB_ERR_CONFLICT, p->line->name_at,
                          "%.40s stands in line %d already: leave one of them out", p->line->name,
                          before.line);
}

static int put_pair(const struct putting *p, const struct setting *s, struct config_list *list)
{
    const struct config_line *line = p->line;
    const size_t len = strlen(line->name);
    char *text;
    for (unsigned i = 0; i < list->n; i++)
        if (strncmp(list->items[i], line->name, len) == 0 && list->items[i][len] == '=')
            return refuse_twice(p, list->at[i]);
    int rc = strcmp(s->section, "ethernet") == 0           ? check_ethernet(p)
             : strcmp(s->section, "endpoints.pools") == 0  ? check_pool(p)
             : strcmp(s->section, "exports.files") == 0    ? check_export(p)
             : strcmp(s->section, "exports.commands") == 0 ? check_word_count(p, CONFIG_MAX_LIST)
                                                           : PMIXFAB_OK;
    if (rc != PMIXFAB_OK)
        return rc;
    if (asprintf(&text, "%s=%s", line->name, line->value) < 0)
        return config_mistake(p->mistakes, PMIXFAB_ERR_NOMEM, line->name_at, "out of memory");
    rc = put_item(p, list, text, line->value_at);
    free(text);
    return rc;
}

static int put_text(const struct putting *p, const struct setting *s, char **field)
{
    if (p->line->value[0] == '\0')
        return config_mistake(p->mistakes, PMIXFAB_ERR_SYNTAX, p->line->value_at,
                              "%s is empty: give a value or leave the line out", s->name);
    int rc = config_text(field, p->line->value);
    return rc == PMIXFAB_OK ? rc : config_mistake(p->mistakes, rc, p->line->value_at, "out of memory");
}

static int put_value(const struct putting *p, const struct setting *s)
{
    void *field = (char *)p->config + s->offset;
    switch (s->type) {
    case TEXT:
        return put_text(p, s, field);
    case NUMBER:
        return put_number(p, s, field);
    case LIST:
        return put_item(p, field, p->line->value, p->line->value_at);
    case PAIRS:
        return put_pair(p, s, field);
    case WORDS:
        return put_words(p, field, ", \t");
    case ARGUMENTS:
        return put_words(p, field, " \t");
    case BOOLEAN:
        return put_boolean(p, s, field);
    case CHOICE:
        return put_choice(p, s, field);
    }
    return PMIXFAB_ERR_INVAL;
}

/* ---- which one ------------------------------------------------------------------------------------- */

/* Where it belongs, or what it may be meant to be. */
static int refuse_name(const struct putting *p)
{
    const struct config_line *line = p->line;
    const char *names[CONFIG_MAX_SETTINGS];
    size_t n = 0;
    for (const struct setting *s = config_settings; s->section != NULL; s++) {
        if (s->name != NULL && strcmp(s->name, line->name) == 0)
            return config_mistake(p->mistakes, PMIXFAB_ERR_NOTFOUND, line->name_at,
                                  "there is no setting \"%.40s\" in section [%.40s]: it belongs to [%s]",
                                  line->name, line->section, s->section);
        if (s->name != NULL && strcmp(s->section, line->section) == 0)
            names[n++] = s->name;
    }
    const char *nearest = fab_nearest_word(line->name, names, n);
    return config_mistake(p->mistakes, PMIXFAB_ERR_NOTFOUND, line->name_at,
                          "there is no setting \"%.40s\" in section [%.40s]: %s%s%s", line->name,
                          line->section, nearest == NULL ? "see fabricd.conf(5)" : "is it ",
                          nearest == NULL ? "" : nearest, nearest == NULL ? "" : "?");
}

int config_put(struct config *config, const struct config_line *line, struct config_mistakes *mistakes)
{
    const struct putting p = {config, line, mistakes};
    for (size_t i = 0; config_settings[i].section != NULL; i++) {
        const struct setting *s = &config_settings[i];
        if (strcmp(line->section, s->section) != 0 || (s->name != NULL && strcmp(line->name, s->name) != 0))
            continue;
        const struct config_place before = config->at[i];
        const bool again = before.line > 0 && line->name_at.line > 0;
        if (again && s->type != LIST && s->type != WORDS && s->type != PAIRS)
            return refuse_twice(&p, before);
        if (s->type != PAIRS)
            config->at[i] = line->value_at; /* also of what is refused: it stands there */
        return put_value(&p, s);
    }
    return refuse_name(&p);
}
