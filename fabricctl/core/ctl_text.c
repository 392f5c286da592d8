/* ctl_text.c - cleaned texts, JSON, messages and interrupts. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fabricctl/core/ctl.h"
#include "topo/base/hostlist.h"
#include "topo/base/text.h"

/* ---- strings that are safe to show ---- */

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

/* ---- values as JSON ---- */

json_t *ctl_json_text(const char *text)
{
    json_t *value;
    char *clean;
    if (text == NULL)
        return json_null();
    clean = ctl_clean_copy(text);
    value = clean == NULL ? NULL : json_string_nocheck(clean);
    free(clean);
    return value;
}

const char *ctl_text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

json_int_t ctl_number_of(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

bool ctl_is(const json_t *object, const char *key)
{
    return json_is_true(json_object_get(object, key));
}

static void say_scalar(FILE *out, const json_t *value)
{
    char *clean;
    if (json_is_string(value)) {
        clean = ctl_clean_copy(json_string_value(value));
        fputs(clean != NULL ? clean : "?", out);
        free(clean);
    } else if (json_is_boolean(value)) {
        fputs(json_is_true(value) ? "yes" : "no", out);
    } else if (json_is_integer(value)) {
        fprintf(out, "%lld", (long long)json_integer_value(value));
    } else if (json_is_real(value)) {
        fprintf(out, "%.1f", json_real_value(value));
    } else {
        putc('-', out);
    }
}

void ctl_say(FILE *out, const json_t *object, const char *text)
{
    for (const char *brace; (brace = strchr(text, '{')) != NULL; text += *text == '}') {
        char key[64];
        fwrite(text, 1, (size_t)(brace - text), out);
        text = brace + 1 + strcspn(brace + 1, "}");
        snprintf(key, sizeof key, "%.*s", (int)(text - brace - 1), brace + 1);
        say_scalar(out, json_object_get(object, key));
    }
    fputs(text, out);
}

json_t *ctl_json_rate(uint64_t mbps)
{
    if (mbps == 0)
        return json_null();
    return mbps % 1000 == 0 ? json_integer((json_int_t)(mbps / 1000)) : json_real((double)mbps / 1000);
}

enum ctl_exit ctl_json_print(FILE *out, json_t *value)
{
    int failed;
    if (value == NULL)
        return ctl_nomem();
    failed = json_dumpf(value, out, (CTL_JSON_FLAGS & ~JSON_COMPACT) | JSON_INDENT(2)) != 0 && !ferror(out);
    putc('\n', out);
    json_decref(value);
    return failed ? ctl_nomem() : CTL_DONE;
}

/* ---- failures, the end, and interrupts of fabricctl ---- */

static void error_line(const char *fmt, va_list args)
{
    char *line = NULL;
    if (vasprintf(&line, fmt, args) < 0) {
        fputs("fabricctl: out of memory\n", stderr);
        return;
    }
    ctl_clean(line);
    fprintf(stderr, "fabricctl: %s\n", line);
    free(line);
}

void ctl_error_line(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    error_line(fmt, args);
    va_end(args);
}

enum ctl_exit ctl_finish(enum ctl_exit status)
{
    int saved;
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    saved = errno;
    /* the program that closed the pipe knows the cause: `fabricctl devices | head` is not an error */
    if (saved != EPIPE)
        ctl_error("cannot write: standard output: %s",
                  saved != 0 ? strerror(saved) : "an earlier write failed");
    return CTL_FAILED;
}

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
}

void ctl_catch_interrupts(void)
{
    struct sigaction action = {.sa_handler = on_interrupt};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

bool ctl_interrupted(void)
{
    return interrupted != 0;
}
