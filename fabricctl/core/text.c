/*
 * text.c - strings as they may be shown.
 */
#include "fabricctl/core/text.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

/* A name cut into what stands before its last digits, and those. */
struct numbered {
    const char *digits;
    size_t prefix; /* bytes before the digits */
    size_t width;  /* 0: does not end in a number that can be counted on */
    uint64_t number;
};

static struct numbered numbered_split(const char *name)
{
    struct numbered c = {.prefix = strlen(name)};

    /* nine digits cannot overflow; longer numbers are serial numbers and stay names */
    while (c.prefix > 0 && isdigit((unsigned char)name[c.prefix - 1]) && c.width < 9) {
        c.prefix--;
        c.width++;
    }
    if (c.prefix > 0 && isdigit((unsigned char)name[c.prefix - 1])) {
        c.prefix += c.width;
        c.width = 0;
    }
    c.digits = name + c.prefix;
    c.number = c.width > 0 ? strtoull(c.digits, NULL, 10) : 0;
    return c;
}

/* How many of names[0..n-1] follow each other in one counting run. */
static size_t run_length(const char *const *names, size_t n)
{
    struct numbered first = numbered_split(names[0]);
    size_t len = 1;

    while (first.width > 0 && len < n) {
        struct numbered next = numbered_split(names[len]);
        bool padded = first.digits[0] == '0' || next.digits[0] == '0';

        if (next.width == 0 || next.prefix != first.prefix ||
            memcmp(names[0], names[len], first.prefix) != 0 || next.number != first.number + len ||
            (padded && next.width != first.width))
            break;
        len++;
    }
    return len;
}

/* One prefix with all its runs that stand next to each other; returns how many names it took. */
static size_t fold_prefix(FILE *out, const char *const *names, size_t n)
{
    struct numbered first = numbered_split(names[0]);
    size_t done = run_length(names, n), end = done;

    while (first.width > 0 && end < n) {
        struct numbered next = numbered_split(names[end]);

        if (next.width == 0 || next.prefix != first.prefix || memcmp(names[0], names[end], first.prefix) != 0)
            break;
        end += run_length(names + end, n - end);
    }
    if (end == 1) {
        fputs(names[0], out);
        return 1;
    }
    fwrite(names[0], 1, first.prefix, out);
    for (size_t i = 0; i < end; i += done) {
        done = run_length(names + i, end - i);
        fprintf(out, "%c%s", i == 0 ? '[' : ',', numbered_split(names[i]).digits);
        if (done > 1)
            fprintf(out, "-%s", numbered_split(names[i + done - 1]).digits);
    }
    putc(']', out);
    return end;
}

char *ctl_join_names(const char *const *names, size_t n, const char *separator)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    bool failed;

    if (out == NULL)
        return NULL;
    for (size_t i = 0; separator != NULL && i < n; i++)
        fprintf(out, "%s%s", i > 0 ? separator : "", names[i]);
    for (size_t i = 0; separator == NULL && i < n;) {
        if (i > 0)
            putc(',', out);
        i += fold_prefix(out, names + i, n - i);
    }
    failed = ferror(out) != 0;
    if (fclose(out) != 0 || failed) {
        free(text);
        return NULL;
    }
    return text;
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
