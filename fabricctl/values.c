/*
 * values.c - what the values of options mean.
 */
#include "fabricctl/values.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fabricctl/core/suggest.h"
#include "fabricctl/core/wait.h"
#include "fabricctl/show/show_findings.h"
#include "fabricctl/show/wanted.h"
#include "topo/base/formats.h"

enum ctl_exit ctl_set_format(struct ctl *ctl, const char *text)
{
    static const char *const names[] = {[CTL_TEXT] = "text", [CTL_JSON] = "json", [CTL_CSV] = "csv"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i], text) == 0) {
            ctl->format = (enum ctl_format)i;
            return CTL_DONE;
        }
    return ctl_usage("no such format: --format %s: there are text, json and csv", text);
}

enum ctl_exit ctl_set_json(struct ctl *ctl, const char *text)
{
    (void)text;
    ctl->format = CTL_JSON;
    return CTL_DONE;
}

/* ---- completion ---- */

static void print_value(const char *name, void *cbdata)
{
    (void)cbdata;
    if (strpbrk(name, " \t'\"\\$`") == NULL) /* which a shell would take for something else */
        puts(name);
}

static void print_words(const char *words)
{
    for (; *words != '\0'; words += strcspn(words, ", "), words += strspn(words, ", "))
        printf("%.*s\n", (int)strcspn(words, ", "), words);
}

enum ctl_exit ctl_print_values(const struct ctl *ctl, const char *of)
{
    static const struct {
        const char *of, *words;
    } fixed[] = {{"--format", "text json csv"},
                 {"--severity", "error warning notice"},
                 {"--objective", "sum max switches"},
                 {"log", "error warning info debug"},
                 {"export", FAB_EXPORT_FORMATS}};
    unsigned kinds = strcmp(of, "--plane") == 0 ? CTL_PLANES
                     : strcmp(of, "--host") == 0 || strcmp(of, "--from") == 0 || strcmp(of, "--exclude") == 0
                         ? CTL_HOSTS
                     : strcmp(of, "--switch") == 0 ? CTL_SWITCHES
                                                   : ctl_names_of(of);

    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
        if (strcmp(fixed[i].of, of) == 0)
            print_words(fixed[i].words);
    if (kinds != 0)
        ctl_each_name(ctl, kinds, print_value, NULL);
    return CTL_DONE;
}

enum ctl_exit ctl_set_limit(struct ctl *ctl, const char *text)
{
    char *end;
    unsigned long value;

    errno = 0;
    value = strtoul(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || value == 0 || value > 1000000000)
        return ctl_usage("not a number: -n %s: give a number from 1 up", text);
    ctl->limit = (uint32_t)value;
    return CTL_DONE;
}

/* A number with s, m, h or d behind it; of seconds without. What is too much for a number is the most that
 * there is: who is asked knows his bound, and tells it. */
static bool read_time(const char *text, uint32_t *seconds)
{
    static const char units[] = "smhd";
    static const uint32_t lengths[] = {1, 60, 3600, 86400};
    const char *unit;
    char *end;
    unsigned long value;

    errno = 0;
    value = strtoul(text, &end, 10);
    unit = *end == '\0' ? units : strchr(units, *end);
    if (text[0] < '0' || text[0] > '9' || value == 0 || unit == NULL || (*end != '\0' && end[1] != '\0'))
        return false;
    *seconds = errno != 0 || value > UINT32_MAX / lengths[unit - units]
                   ? UINT32_MAX
                   : (uint32_t)value * lengths[unit - units];
    return true;
}

enum ctl_exit ctl_set_time(struct ctl *ctl, const char *text)
{
    return read_time(text, &ctl->seconds)
               ? CTL_DONE
               : ctl_usage("not a time: --for %s: give a number with s, m, h or d behind it, as 4h", text);
}

/* "2h" ago, or a date with or without a time, of UTC. */
enum ctl_exit ctl_set_since(struct ctl *ctl, const char *text)
{
    static const char *const forms[] = {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d"};

    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        struct tm tm = {0};
        const char *end = strptime(text, forms[i], &tm);

        if (end != NULL && (strcmp(end, "") == 0 || strcmp(end, "Z") == 0) && timegm(&tm) > 0) {
            ctl->since = timegm(&tm);
            return CTL_DONE;
        }
    }
    uint32_t ago;
    if (!read_time(text, &ago) || text[strlen(text) - 1] <= '9')
        return ctl_usage("not a time: --since %s: give 2h, 3d, 2026-11-20 or 2026-11-20T08:00 (UTC)", text);
    ctl->since = ctl_now() - ago;
    ctl->since = ctl->since > 0 ? ctl->since : 1;
    return CTL_DONE;
}

enum ctl_exit ctl_set_severity(struct ctl *ctl, const char *text)
{
    ctl->severity = ctl_severity(text);
    return ctl->severity != 0
               ? CTL_DONE
               : ctl_usage("no such severity: --severity %s: there are error, warning and notice", text);
}
