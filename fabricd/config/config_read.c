/*
 * config_read.c - read the configuration file line by line, and collect all its mistakes. Written for
 * fabricd, because libraries for such files report neither columns nor the lines of duplicate settings.
 */
#include "fabricd/config/setting.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/base/log.h"
#include "topo/base/array.h"
#include "topo/base/cidr.h"
#include "topo/base/error.h"
#include "topo/base/formats.h"
#include "topo/base/nearest_words.h"

/* ---- mistakes ---- */

static bool stands_later(struct config_place a, struct config_place b)
{
    return a.line > b.line || (a.line == b.line && a.column > b.column);
}

void config_mistake_there(struct config_mistakes *mistakes, struct config_place at, const char *text)
{
    uint32_t to = mistakes->n;
    char *copy = NULL;
    if (to < CONFIG_MAX_MISTAKES && FAB_ARRAY_ROOM(&mistakes->items, &mistakes->room, to + 1))
        copy = strdup(text);
    if (copy == NULL) {
        mistakes->more++;
        return;
    }
    for (; to > 0 && stands_later(mistakes->items[to - 1].at, at); to--)
        mistakes->items[to] = mistakes->items[to - 1];
    mistakes->items[to] = (struct config_mistake){at, copy};
    mistakes->n++;
}

int config_mistake(struct config_mistakes *mistakes, struct config_place at, const char *fmt, ...)
{
    struct fab_err reason, text;
    va_list args;
    va_start(args, fmt);
    fab_vfail(&reason, PMIXFAB_ERR_SYNTAX, fmt, args);
    va_end(args);
    if (at.line > 0)
        fab_fail(&text, PMIXFAB_ERR_SYNTAX, "%s:%d:%d: %s", mistakes->file, at.line, at.column, reason.text);
    config_mistake_there(mistakes, at, at.line > 0 ? text.text : reason.text);
    return PMIXFAB_ERR_SYNTAX;
}

uint32_t config_mistakes_count(const struct config_mistakes *mistakes)
{
    return mistakes->n + mistakes->more;
}

void config_mistakes_tell(const struct config_mistakes *mistakes,
                          void (*tell)(const char *line, void *cbdata), void *cbdata)
{
    char more[80];
    for (uint32_t i = 0; i < mistakes->n; i++)
        tell(mistakes->items[i].text, cbdata);
    if (mistakes->more == 0)
        return;
    snprintf(more, sizeof(more), "and %u more mistakes", (unsigned)mistakes->more);
    tell(more, cbdata);
}

static void log_mistake(const char *line, void *cbdata)
{
    (void)cbdata;
    log_error("%s", line);
}

void config_mistakes_log(const struct config_mistakes *mistakes)
{
    config_mistakes_tell(mistakes, log_mistake, NULL);
}

void config_mistakes_destroy(struct config_mistakes *mistakes)
{
    for (uint32_t i = 0; i < mistakes->n; i++)
        free(mistakes->items[i].text);
    free(mistakes->items);
    *mistakes = (struct config_mistakes){0};
}

/* A setting on its way into the configuration. */
struct putting {
    struct config *config;
    const struct config_line *line;
    struct config_mistakes *mistakes;
};

#define REFUSE(p, ...)      config_mistake((p)->mistakes, (p)->line->value_at, __VA_ARGS__)
#define REFUSE_NAME(p, ...) config_mistake((p)->mistakes, (p)->line->name_at, __VA_ARGS__)

/* ---- a value -------------------------------------------------------------------------------------- */

static int put_number(const struct putting *p, const struct setting *s, unsigned *field)
{
    const char *value = p->line->value;
    char *end;
    errno = 0;
    unsigned long number = strtoul(value, &end, 10);
    if (!isdigit((unsigned char)value[0]) || *end != '\0' || errno != 0 || number < s->min || number > s->max)
        return REFUSE(p, "%s is \"%.40s\": give a number from %u to %u", s->name, value, s->min, s->max);
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
    return REFUSE(p, "%s is \"%.40s\": give one of %s", s->name, p->line->value, known);
}

static int put_boolean(const struct putting *p, const struct setting *s, bool *field)
{
    const char *value = p->line->value;
    if (strcmp(value, "yes") != 0 && strcmp(value, "no") != 0)
        return REFUSE(p, "%s is \"%.40s\": give yes or no", s->name, value);
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
        config_mistake(p->mistakes, at, "more than %d entries for \"%.40s\"", CONFIG_MAX_LIST, p->line->name);
    else
        config_mistake(p->mistakes, at, "out of memory");
    return rc;
}

/* Split a value into words at any of these characters; each word has its own place. */
static int put_words(const struct putting *p, struct config_list *list, const char *between)
{
    struct config_place at = p->line->value_at;
    char *copy = strdup(p->line->value), *rest = NULL;
    int rc = copy == NULL ? config_mistake(p->mistakes, at, "out of memory") : PMIXFAB_OK;
    for (char *word = copy == NULL ? NULL : strtok_r(copy, between, &rest); word != NULL && rc == 0;
         word = strtok_r(NULL, between, &rest)) {
        at.column = at.line > 0 ? p->line->value_at.column + (int)(word - copy) : at.column;
        rc = put_item(p, list, word, at);
    }
    free(copy);
    return rc;
}

/* A plane's name is also a file name. Names of InfiniBand planes are reserved. */
static int check_ethernet(const struct putting *p)
{
    const char *name = p->line->name;
    struct fab_err why = {""};
    size_t len = strlen(name);
    bool taken = strcmp(name, "unattached") == 0 ||
                 (strncmp(name, "ib", 2) == 0 && strspn(name + 2, "0123456789") == len - 2);
    if (taken || len > 63 || name[0] == '.' ||
        strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") != len)
        return REFUSE_NAME(p, "\"%.40s\" cannot be the name of an Ethernet plane", name);
    if (fab_cidr_check(p->line->value, &why) != PMIXFAB_OK)
        return REFUSE(p, "plane %s: %s", name, why.text);
    return PMIXFAB_OK;
}

/* Check the endpoint numbers of a pool, FIRST-LAST. */
static int check_pool(const struct putting *p)
{
    char *end = NULL;
    const char *text = p->line->value;
    const unsigned long long first = strtoull(text, &end, 10);
    const bool two = isdigit((unsigned char)text[0]) && *end == '-' && isdigit((unsigned char)end[1]);
    const unsigned long long last = two ? strtoull(end + 1, &end, 10) : 0;
    if (!two || *end != '\0')
        return REFUSE(p, "plane %.40s: %.40s: give two numbers, as 20000-29999", p->line->name, text);
    if (first < 1 || first > last || last > UINT32_MAX)
        return REFUSE(p, "plane %.40s: %.40s: give numbers from 1 to 4294967295, the lower one first",
                      p->line->name, text);
    return PMIXFAB_OK;
}

/* Reject more words than a child can get. */
static int check_word_count(const struct putting *p, unsigned most)
{
    const char between[] = " \t";
    unsigned n = 0;
    for (const char *at = p->line->value; *(at += strspn(at, between)) != '\0'; at += strcspn(at, between))
        n++;
    if (n > most)
        return REFUSE(p, "%.200s has %u words: give no more than %u", p->line->name, n, most);
    return PMIXFAB_OK;
}

/* Check the FORMAT OPTIONS of an export. */
static int check_export(const struct putting *p)
{
    const char *name = p->line->name;
    if (name[0] != '/' && strchr(name, '/') != NULL)
        return REFUSE_NAME(p, "%.200s: give a name in [exports] folder, or a whole path", name);
    if (!fab_is_export_format(p->line->value, strcspn(p->line->value, " \t")))
        return REFUSE(p, "%.100s is \"%.40s\": give a format of fabricctl export, then its options: %s", name,
                      p->line->value, FAB_EXPORT_FORMATS);
    return check_word_count(p, CONFIG_EXPORT_WORDS);
}

static int refuse_twice(const struct putting *p, struct config_place before)
{
    return REFUSE_NAME(p, "%.40s is set in line %d already: remove one of them", p->line->name, before.line);
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
        return REFUSE_NAME(p, "out of memory");
    rc = put_item(p, list, text, line->value_at);
    free(text);
    return rc;
}

static int put_text(const struct putting *p, const struct setting *s, char **field)
{
    if (p->line->value[0] == '\0')
        return REFUSE(p, "%s is empty: give a value or remove the line", s->name);
    int rc = config_text(field, p->line->value);
    return rc == PMIXFAB_OK ? rc : REFUSE(p, "out of memory");
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

/* ---- finding the setting --------------------------------------------------------------------------- */

/* Report an unknown setting, with its right section or a similar name. */
static int refuse_name(const struct putting *p)
{
    const struct config_line *line = p->line;
    const char *names[CONFIG_MAX_SETTINGS];
    size_t n = 0;
    for (const struct setting *s = config_settings; s->section != NULL; s++) {
        if (s->name != NULL && strcmp(s->name, line->name) == 0)
            return REFUSE_NAME(p, "there is no setting \"%.40s\" in section [%.40s]: it belongs to [%s]",
                               line->name, line->section, s->section);
        if (s->name != NULL && strcmp(s->section, line->section) == 0)
            names[n++] = s->name;
    }
    const char *nearest = fab_nearest_word(line->name, names, n);
    return REFUSE_NAME(p, "there is no setting \"%.40s\" in section [%.40s]: %s%s%s", line->name,
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
            config->at[i] = line->value_at; /* a rejected value has a place, too */
        return put_value(&p, s);
    }
    return refuse_name(&p);
}

/* ---- the file ---- */

#define LINE_MAX_BYTES 2048
#define FILE_MAX_BYTES (1u << 20)

struct conf_reader {
    struct config *config;
    struct config_mistakes *mistakes;
    char section[64];
    bool known; /* false: skip the lines of an unknown section */
    int line;
    size_t bytes; /* read so far */
};

static int conf_mistake(const struct conf_reader *r, size_t at, const char *reason)
{
    const struct config_place place = {r->line, (int)at + 1};
    return config_mistake(r->mistakes, place, "%s", reason);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Remove a comment (# or ;, at the beginning or after a blank) and the blanks around the text. Returns the
 * offset of the text. */
static size_t conf_trim(char *text, size_t len)
{
    size_t begin = 0;
    while (begin < len && is_blank(text[begin]))
        begin++;
    for (size_t i = begin; i < len; i++)
        if ((text[i] == '#' || text[i] == ';') && (i == begin || is_blank(text[i - 1])))
            len = i;
    while (len > begin && is_blank(text[len - 1]))
        len--;
    text[len] = '\0';
    return begin;
}

/* Skip lines up to the next section. */
static void conf_skip_section(struct conf_reader *r)
{
    r->known = false;
    snprintf(r->section, sizeof(r->section), "?");
}

static void conf_section(struct conf_reader *r, const char *text, size_t begin)
{
    const char *names[CONFIG_MAX_SETTINGS];
    size_t n = 0, len = strlen(text + begin);
    if (text[begin + len - 1] != ']' || len < 3) {
        conf_skip_section(r);
        conf_mistake(r, begin, "neither a [section], nor name = value, nor a comment");
        return;
    }
    snprintf(r->section, sizeof(r->section), "%.*s", (int)(len - 2), text + begin + 1);
    r->known = false;
    for (const struct setting *s = config_settings; s->section != NULL; s++) {
        r->known |= strcmp(s->section, r->section) == 0;
        names[n++] = s->section;
    }
    if (r->known)
        return;
    const char *nearest = fab_nearest_word(r->section, names, n);
    const struct config_place place = {r->line, (int)begin + 1};
    config_mistake(r->mistakes, place, "there is no section [%.40s]: %s%s%s", r->section,
                   nearest == NULL ? "see fabricd.conf(5)" : "is it [", nearest == NULL ? "" : nearest,
                   nearest == NULL ? "" : "]?");
}

static void conf_setting(struct conf_reader *r, char *text, size_t begin)
{
    char *equals = strchr(text + begin, '=');
    if (equals == NULL || equals == text + begin) {
        conf_mistake(r, begin, "neither a [section], nor name = value, nor a comment");
        return;
    }
    if (r->section[0] == '\0') {
        conf_skip_section(r); /* one message is enough */
        conf_mistake(r, begin, "a setting before the first [section]");
        return;
    }
    size_t value = (size_t)(equals - text) + 1, end = value - 1;
    while (is_blank(text[value]))
        value++;
    while (is_blank(text[end - 1]))
        end--;
    text[end] = '\0';
    const struct config_line line = {
        r->section, text + begin, text + value, {r->line, (int)begin + 1}, {r->line, (int)value + 1}};
    if (r->known)
        config_put(r->config, &line, r->mistakes);
}

static void conf_line(struct conf_reader *r, char *text, size_t len)
{
    if (r->line == 1 && len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) /* a byte order mark */
        memset(text, ' ', 3);
    if (len > LINE_MAX_BYTES) {
        conf_mistake(r, 0, "the line is too long");
        return;
    }
    if (strlen(text) < len) {
        conf_mistake(r, strlen(text), "a byte 0: the file is not a text");
        return;
    }
    const size_t begin = conf_trim(text, len);
    if (text[begin] == '[')
        conf_section(r, text, begin);
    else if (text[begin] != '\0')
        conf_setting(r, text, begin);
}

/* Read the next line. Only LINE_MAX_BYTES of it are stored; len is its full length. False: at the end, or the
 * file is too large. */
static bool conf_next(struct conf_reader *r, FILE *file, char text[LINE_MAX_BYTES + 1], size_t *len)
{
    int c = EOF;
    for (*len = 0; r->bytes < FILE_MAX_BYTES && (c = getc(file)) != EOF; (*len)++) {
        r->bytes++;
        if (c == '\n')
            break;
        if (*len < LINE_MAX_BYTES)
            text[*len] = (char)c;
    }
    text[*len < LINE_MAX_BYTES ? *len : LINE_MAX_BYTES] = '\0';
    r->line++;
    const bool whole = r->bytes < FILE_MAX_BYTES;
    return c != EOF || (whole && *len > 0);
}

void config_read(struct config *config, const char *path, struct config_mistakes *mistakes)
{
    struct conf_reader r = {.config = config, .mistakes = mistakes};
    const struct config_place nowhere = {CONFIG_DEFAULT, 0};
    char text[LINE_MAX_BYTES + 1];
    size_t len;
    mistakes->file = config->file = path;
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        config_mistake(mistakes, nowhere, "%s: cannot be read: %s", path, strerror(errno));
        return;
    }
    while (conf_next(&r, file, text, &len))
        conf_line(&r, text, len);
    if (ferror(file))
        config_mistake(mistakes, nowhere, "%s: reading it failed: %s", path, strerror(errno));
    else if (r.bytes == FILE_MAX_BYTES)
        config_mistake(mistakes, nowhere, "%s: too large for a configuration", path);
    fclose(file);
}
