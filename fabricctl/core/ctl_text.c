/*
 * ctl_text.c - strings as they may be shown.
 */
#include "fabricctl/core/ctl_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "topo/base/hostlist.h"
#include "topo/base/text.h"

void ctl_clean(char *text)
{
    fab_text_clean(text, strlen(text) + 1, text, strlen(text), NULL);
}

char *ctl_clean_copy(const char *text)
{
    char *copy = strdup(text);

    if (copy != NULL)
        ctl_clean(copy);
    return copy;
}

static bool is_formula(const char *text)
{
    char *end;

    if (text[0] == '\0' || strchr("=+-@\t\r", text[0]) == NULL)
        return false;
    strtod(text, &end);
    return strspn(text, "0123456789.eE+-") != strlen(text) || end == text || *end != '\0';
}

void ctl_csv_field(FILE *out, const char *text)
{
    bool formula = is_formula(text);

    if (!formula && strpbrk(text, ",\"\r\n") == NULL) {
        fputs(text, out);
        return;
    }
    fputs(formula ? "\"'" : "\"", out);
    for (; *text != '\0'; text++) {
        if (*text == '"')
            putc('"', out);
        putc(*text, out);
    }
    putc('"', out);
}

char *ctl_join_names(const char *const *names, size_t n, const char *separator)
{
    char *text = NULL;
    size_t size;
    FILE *out = separator != NULL ? open_memstream(&text, &size) : NULL;
    bool failed;

    if (separator == NULL)
        return fab_hostlist_fold(names, n);
    if (out == NULL)
        return NULL;
    for (size_t i = 0; i < n; i++)
        fprintf(out, "%s%s", i > 0 ? separator : "", names[i]);
    failed = ferror(out) != 0;
    if (fclose(out) != 0 || failed) {
        free(text);
        return NULL;
    }
    return text;
}

bool ctl_guid_name(const char *name)
{
    return strncmp(name, "0x", 2) == 0 && strlen(name) == 18 && strspn(name + 2, "0123456789abcdef") == 16;
}

const char *ctl_time(int64_t microseconds, char buf[static CTL_TIME_SIZE])
{
    int64_t rest = microseconds % 1000000;
    time_t seconds;
    struct tm tm;
    size_t len;

    seconds = (time_t)(microseconds / 1000000);
    if (rest < 0) {
        rest += 1000000;
        seconds--;
    }
    buf[0] = '\0';
    if (gmtime_r(&seconds, &tm) == NULL)
        return buf;
    len = strftime(buf, CTL_TIME_SIZE, "%Y-%m-%dT%H:%M:%S", &tm);
    if (len > 0)
        snprintf(buf + len, CTL_TIME_SIZE - len, ".%06" PRId64 "Z", rest);
    return buf;
}

void ctl_cut_to_seconds(char *text)
{
    struct tm tm = {0};
    char *end = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);

    if (end != NULL && *end == '.' && strspn(end + 1, "0123456789") == 6 && strcmp(end + 7, "Z") == 0)
        strcpy(end, "Z");
}

const char *ctl_shown_time(const char *time, bool longer, char buf[static CTL_TIME_SIZE])
{
    snprintf(buf, CTL_TIME_SIZE, "%s", time != NULL ? time : "-");
    if (!longer)
        ctl_cut_to_seconds(buf);
    return buf;
}
