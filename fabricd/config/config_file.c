/*
 * config_file.c - the configuration file, line by line. A reader of our own: libraries for such files know
 * neither columns nor the lines of what stands there twice.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/config/setting.h"
#include "topo/base/error.h"
#include "topo/base/nearest_words.h"

#define LINE_MAX_BYTES 2048
#define FILE_MAX_BYTES (1u << 20)

struct conf_reader {
    struct config *config;
    struct config_mistakes *mistakes;
    char section[64];
    bool known; /* lines of an unknown section are not looked at */
    int line;
    size_t bytes; /* so far */
};

static int conf_mistake(const struct conf_reader *r, size_t at, const char *reason)
{
    const struct config_place place = {r->line, (int)at + 1};
    return config_mistake(r->mistakes, PMIXFAB_ERR_SYNTAX, place, "%s", reason);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Cut off what ends the line: a comment (# or ;, at the beginning or after a blank) and blanks. Returns where
 * it begins. */
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

/* Nobody knows what section the next lines are of. */
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
    config_mistake(r->mistakes, PMIXFAB_ERR_NOTFOUND, place, "there is no section [%.40s]: %s%s%s",
                   r->section, nearest == NULL ? "see fabricd.conf(5)" : "is it [",
                   nearest == NULL ? "" : nearest, nearest == NULL ? "" : "]?");
}

static void conf_setting(struct conf_reader *r, char *text, size_t begin)
{
    char *equals = strchr(text + begin, '=');
    if (equals == NULL || equals == text + begin) {
        conf_mistake(r, begin, "neither a [section], nor name = value, nor a comment");
        return;
    }
    if (r->section[0] == '\0') {
        conf_skip_section(r); /* to be told once */
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
    if (r->line == 1 && len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) /* what some editors begin with */
        memset(text, ' ', 3);
    if (len > LINE_MAX_BYTES) {
        conf_mistake(r, 0, "the line is too long");
        return;
    }
    if (strlen(text) < len) {
        conf_mistake(r, strlen(text), "a byte 0: this is no text");
        return;
    }
    const size_t begin = conf_trim(text, len);
    if (text[begin] == '[')
        conf_section(r, text, begin);
    else if (text[begin] != '\0')
        conf_setting(r, text, begin);
}

/* The next line, of which LINE_MAX_BYTES are kept; len is that of the whole. False: there is none, or the
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
        config_mistake(mistakes, PMIXFAB_ERR_IO, nowhere, "%s: cannot be read: %s", path, strerror(errno));
        return;
    }
    while (conf_next(&r, file, text, &len))
        conf_line(&r, text, len);
    if (ferror(file))
        config_mistake(mistakes, PMIXFAB_ERR_IO, nowhere, "%s: reading it failed: %s", path, strerror(errno));
    else if (r.bytes == FILE_MAX_BYTES)
        config_mistake(mistakes, PMIXFAB_ERR_RANGE, nowhere, "%s: larger than a configuration can be", path);
    fclose(file);
}
