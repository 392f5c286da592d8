/* names_pattern.c - what a node description says: by the default patterns, or by an operator's own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/base/text.h"
#include "topo/model/names_priv.h"

static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

static bool name_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_alnum(char c)
{
    return is_lower(c) || name_is_digit(c) || (c >= 'A' && c <= 'Z');
}

size_t names_count_digits(const char *s)
{
    size_t n = 0;
    while (name_is_digit(s[n]))
        n++;
    return n;
}

/* A device that udev has named by its GUID, "ibx98039b03000a1b2c": [a-z]+x[0-9a-f]{12,16}. It may end with a
 * letter. */
static bool is_called_by_guid(const char *s)
{
    const char *x = strrchr(s, 'x'); /* no digit */
    if (x == NULL || x == s)
        return false;
    for (const char *c = s; c < x; c++)
        if (!is_lower(*c))
            return false;
    const size_t digits = strspn(x + 1, "0123456789abcdef");
    return digits >= 12 && digits <= 16 && x[1 + digits] == '\0';
}

/* HCA-[0-9]+, [a-z][a-z0-9_]*[0-9], or by a GUID, to the end of the text. */
static bool name_is_device(const char *s)
{
    size_t n = 0;
    if (strncmp(s, "HCA-", 4) == 0) {
        size_t digits = names_count_digits(s + 4);
        return digits > 0 && s[4 + digits] == '\0';
    }
    if (!is_lower(s[0]))
        return false;
    while (is_lower(s[n]) || name_is_digit(s[n]) || s[n] == '_')
        n++;
    return s[n] == '\0' && (name_is_digit(s[n - 1]) || is_called_by_guid(s));
}

/* FAB_NAMES_PATTERN by hand: regexec() takes a microsecond for each name, which is most of naming a fabric.
 */
static bool match_default(const char *text, struct names_split *out)
{
    size_t n = 0;

    if (!is_alnum(text[0]))
        return false;
    while (is_alnum(text[n]) || text[n] == '.' || text[n] == '_' || text[n] == '-')
        n++;
    *out = (struct names_split){.host = text, .host_len = n};
    if (text[n] == '\0')
        return true;
    size_t gap = strspn(text + n, " ");
    if (gap == 0 || !name_is_device(text + n + gap))
        return false;
    out->device = text + n + gap;
    out->device_len = strlen(out->device);
    return true;
}

/* "MT4123", "MT25408": what an HCA calls itself until its host gives it a name. */
static bool is_factory_name(const struct names_split *s)
{
    if (s->device != NULL || s->host_len < 6 || strncmp(s->host, "MT", 2) != 0)
        return false;
    return names_count_digits(s->host + 2) == s->host_len - 2;
}

static bool has_group(const regmatch_t *group)
{
    return group->rm_so >= 0 && group->rm_eo > group->rm_so;
}

static bool match_regex(const struct fab_pattern *pattern, const char *text, struct names_split *out)
{
    regmatch_t groups[NAMES_GROUPS];
    const size_t last = pattern->regex.re_nsub;

    if (regexec(&pattern->regex, text, NAMES_GROUPS, groups, 0) != 0 || !has_group(&groups[1]))
        return false;
    *out = (struct names_split){.host = text + groups[1].rm_so,
                                .host_len = (size_t)(groups[1].rm_eo - groups[1].rm_so)};
    if (last > 1 && has_group(&groups[last])) {
        out->device = text + groups[last].rm_so;
        out->device_len = (size_t)(groups[last].rm_eo - groups[last].rm_so);
    }
    return true;
}

bool names_split_text(const struct fab_names *names, const char *text, struct names_split *out)
{
    if (names->hosts.compiled)
        return match_regex(&names->hosts, text, out);
    return match_default(text, out) && !is_factory_name(out);
}

/* ---- switches -------------------------------------------------------------------------------------- */

/* "MF0;NAME:MODEL/U1" is NAME, and "MF0;NAME:MODEL/L04/U1", a chip of a director, NAME/L04/U1. */
static bool switch_default(const char *desc, char out[NAMES_MAX_SIZE])
{
    if (strncmp(desc, "MF0;", 4) != 0)
        return false;
    const char *name = desc + 4, *chip = strchr(name, '/');
    const char *colon = chip == NULL ? NULL : memrchr(name, ':', (size_t)(chip - name));
    if (colon == NULL || colon == name)
        return false;
    size_t len = (size_t)(colon - name);
    name = fab_text_trim(name, &len);
    snprintf(out, NAMES_MAX_SIZE, "%.*s%s", (int)len, name, strcmp(chip, "/U1") == 0 ? "" : chip);
    return len > 0;
}

/* The groups that match, one after the other. */
static bool switch_regex(const struct fab_pattern *pattern, const char *desc, char out[NAMES_MAX_SIZE])
{
    regmatch_t groups[NAMES_GROUPS];
    char text[NAMES_DESC_MAX + 1];
    size_t n = 0;

    snprintf(text, sizeof(text), "%s", desc);
    out[0] = '\0';
    if (regexec(&pattern->regex, text, NAMES_GROUPS, groups, 0) != 0)
        return false;
    for (size_t i = 1; i <= pattern->regex.re_nsub; i++)
        if (has_group(&groups[i]) && n + NAMES_DESC_MAX < NAMES_MAX_SIZE)
            n += (size_t)snprintf(out + n, NAMES_MAX_SIZE - n, "%.*s",
                                  (int)(groups[i].rm_eo - groups[i].rm_so), text + groups[i].rm_so);
    return n > 0;
}

void names_switch_text(const struct fab_names *names, const char *desc, char out[NAMES_MAX_SIZE])
{
    const struct fab_pattern *own = &names->switches;
    if (!(own->compiled ? switch_regex(own, desc, out) : switch_default(desc, out)))
        snprintf(out, NAMES_MAX_SIZE, "%s", desc);
}

/* ---- patterns --------------------------------------------------------------------------------------- */

/* whose, and what is to be in parentheses: for the message. */
static int pattern_compile(struct fab_pattern *out, const char *pattern, const char *whose, const char *what,
                           struct fab_err *err)
{
    char reason[160];
    int rc = regcomp(&out->regex, pattern, REG_EXTENDED);
    if (rc != 0) {
        regerror(rc, &out->regex, reason, sizeof(reason));
        return fab_fail(err, PMIXFAB_ERR_SYNTAX, "%s pattern \"%s\": %s", whose, pattern, reason);
    }
    if (out->regex.re_nsub < 1 || out->regex.re_nsub >= NAMES_GROUPS) {
        regfree(&out->regex);
        return fab_fail(err, PMIXFAB_ERR_SYNTAX,
                        "%s pattern \"%s\": put the part that is the %s in parentheses (1 to 9 groups)",
                        whose, pattern, what);
    }
    out->compiled = true;
    return PMIXFAB_OK;
}

int fab_names_switches(struct fab_names *names, const char *pattern, struct fab_err *err)
{
    return pattern == NULL ? PMIXFAB_OK : pattern_compile(&names->switches, pattern, "switch", "name", err);
}

int fab_names_new(const char *pattern, struct fab_names **out, struct fab_err *err)
{
    *out = NULL;
    struct fab_names *names = calloc(1, sizeof(*names));
    if (names == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    int rc = pattern == NULL || strcmp(pattern, FAB_NAMES_PATTERN) == 0
                 ? PMIXFAB_OK
                 : pattern_compile(&names->hosts, pattern, "host", "host", err);
    if (rc == PMIXFAB_OK)
        *out = names;
    else
        free(names);
    return rc;
}

void fab_names_free(struct fab_names *names)
{
    if (names == NULL)
        return;
    if (names->hosts.compiled)
        regfree(&names->hosts.regex);
    if (names->switches.compiled)
        regfree(&names->switches.regex);
    for (uint32_t i = 0; i < names->n_map; i++)
        free(names->map[i].name);
    free(names->map);
    free(names);
}
