/* ctl_values.c - values of options. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fabricctl/ctl_options.h"
#include "fabricctl/service/service.h"
#include "fabricctl/show/show.h"
#include "fabricctl/simulate/simulate.h"
#include "topo/base/formats.h"

enum ctl_exit ctl_set_format(struct ctl *ctl, const char *text)
{
    static const char *const names[] = {[CTL_TEXT] = "text", [CTL_JSON] = "json", [CTL_CSV] = "csv"};
    for (size_t i = 0; i < CTL_COUNT(names); i++)
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

/*
 * Print the values that an option ("--format") or the arguments of a command ("show") can have, one a line,
 * for completion (--values).
 */
static void print_value(const char *name, void *cbdata)
{
    (void)cbdata;
    if (strpbrk(name, " \t'\"\\$`") == NULL) /* a shell would interpret these characters */
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
    } fixed[] = {{"--format", "text json csv"},       {"--severity", "error warning notice"},
                 {"--objective", "sum max switches"}, {"--for", "alltoall neighbours allreduce ring any"},
                 {"log", "error warning info debug"}, {"--pattern", SIM_PATTERNS},
                 {"export", FAB_EXPORT_FORMATS},      {"slurm", "diff apply"}};
    unsigned kinds = strcmp(of, "--plane") == 0 ? CTL_PLANES
                     : strcmp(of, "--host") == 0 || strcmp(of, "--from") == 0 ||
                             strcmp(of, "--exclude") == 0 || strcmp(of, "--hosts") == 0
                         ? CTL_HOSTS
                     : strcmp(of, "--switch") == 0 ? CTL_SWITCHES
                                                   : ctl_names_of(of);
    for (size_t i = 0; i < CTL_COUNT(fixed); i++)
        if (strcmp(fixed[i].of, of) == 0)
            print_words(fixed[i].words);
    if (strcmp(of, "schema") == 0)
        ctl_schema_each(print_value, NULL);
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

/*
 * Read a number followed by s, m, h or d; seconds without. A number that is too large becomes the maximum:
 * the receiver knows its limit and reports it.
 */
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

/* The command decides between a time and a pattern, and may come later in the command line. */
enum ctl_exit ctl_set_purpose(struct ctl *ctl, const char *text)
{
    ctl->purpose = text;
    return CTL_DONE;
}

enum ctl_exit ctl_set_time(struct ctl *ctl, const char *text)
{
    return read_time(text, &ctl->seconds)
               ? CTL_DONE
               : ctl_usage("not a time: --for %s: give a number with s, m, h or d behind it, as 4h", text);
}

/* Read "2h" (ago), or a date with or without a time, in UTC. */
enum ctl_exit ctl_set_since(struct ctl *ctl, const char *text)
{
    static const char *const forms[] = {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d"};
    for (size_t i = 0; i < CTL_COUNT(forms); i++) {
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

/* Read a number of at most `most`. */
static bool read_bounded(const char *text, unsigned long most, uint32_t *number)
{
    char *end;
    const unsigned long value = strtoul(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || value > most)
        return false;
    *number = (uint32_t)value;
    return true;
}

enum ctl_exit ctl_set_max_shrink(struct ctl *ctl, const char *text)
{
    return read_bounded(text, 100, &ctl->max_shrink)
               ? CTL_DONE
               : ctl_usage("no percentage: --max-shrink %s: give a number from 0 to 100 (no bound)", text);
}

enum ctl_exit ctl_set_spare(struct ctl *ctl, const char *text)
{
    return read_bounded(text, 10000, &ctl->spare)
               ? CTL_DONE
               : ctl_usage("not a number of blocks: --spare %s: give a number from 0 to 10000", text);
}

/* Read "24.11" as 2411. */
enum ctl_exit ctl_set_slurm(struct ctl *ctl, const char *text)
{
    unsigned year, month;
    char end;
    if (sscanf(text, "%2u.%2u%c", &year, &month, &end) != 2 || text[strspn(text, "0123456789.")] != '\0' ||
        year < 20 || month < 1 || month > 12)
        return ctl_usage("no version of Slurm: --slurm %s: give year and month, as 22.05, 24.11, 25.05",
                         text);
    ctl->slurm = year * 100 + month;
    return CTL_DONE;
}

/* Read a number of bytes, with K, M or G (of 1024) after it. */
enum ctl_exit ctl_set_bytes(struct ctl *ctl, const char *text)
{
    static const char units[] = "KMG";
    char *end;
    unsigned long long value;
    const char *unit;
    errno = 0;
    value = strtoull(text, &end, 10);
    unit = *end != '\0' ? strchr(units, *end) : NULL;
    if (text[0] >= '0' && text[0] <= '9' && errno == 0 && value > 0 && value <= SIM_BYTES_MAX &&
        (*end == '\0' || (unit != NULL && end[1] == '\0'))) {
        ctl->bytes = value << (unit != NULL ? 10 * (unit - units + 1) : 0);
        if (ctl->bytes <= SIM_BYTES_MAX)
            return CTL_DONE;
    }
    return ctl_usage("no number of bytes: --bytes %s: give 1 to %d, as 4096, 64K, 1M", text, SIM_BYTES_MAX);
}

enum ctl_exit ctl_set_severity(struct ctl *ctl, const char *text)
{
    ctl->severity = ctl_severity(text);
    return ctl->severity != 0
               ? CTL_DONE
               : ctl_usage("no such severity: --severity %s: there are error, warning and notice", text);
}
