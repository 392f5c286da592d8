/*
 * report_say.h - what a host says, as text for tests:
 *
 *     report_say(&report, "verbs: name mlx5_0, port 1, port-guid #101, ~latency 600\n"
 *                  "hwloc: name mlx5_0, numa %u", numa);
 *
 * An item a line, facts between commas; #101 is a GUID, ~ an estimate, and a kind without a text is not said.
 * Without cmocka, since fuzzers use it.
 */
#ifndef TEST_UNIT_REPORT_SAY_H
#define TEST_UNIT_REPORT_SAY_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/model/report.h"

static inline void report_say_must(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "a test says what cannot be said: %s\n", what);
    abort();
}

/* "port-guid #101" */
static inline void report_say_fact(struct fab_report *report, uint32_t item, char *fact)
{
    bool estimate = *fact == '~';
    char guid[24], *kind = fact + estimate, *text = strchr(kind, ' ');
    if (text != NULL)
        *text++ = '\0';
    report_say_must(fab_fact_parse(kind) != 0, kind);
    if (text != NULL && *text == '#') {
        snprintf(guid, sizeof(guid), "0x%016" PRIx64, (uint64_t)strtoull(text + 1, NULL, 16));
        text = guid;
    }
    report_say_must(
        (estimate ? fab_report_estimate : fab_report_fact)(report, item, fab_fact_parse(kind), text) == 0,
        kind);
}

static inline void report_say_item(struct fab_report *report, char *line)
{
    char *facts = strstr(line, ": "), *next;
    uint32_t item;
    report_say_must(facts != NULL, line);
    *facts = '\0';
    report_say_must(fab_report_item(report, fab_source_parse(line), &item) == 0, line);
    for (char *fact = facts + 2; fact != NULL; fact = next) {
        if ((next = strstr(fact, ", ")) != NULL) {
            *next = '\0';
            next += 2;
        }
        report_say_fact(report, item, fact);
    }
}

static inline void report_say_list(struct fab_report *report, const char *fmt, va_list args)
{
    char *text = NULL, *rest = NULL;
    report_say_must(vasprintf(&text, fmt, args) >= 0, fmt);
    for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
        report_say_item(report, line);
    free(text);
}

static inline void report_say(struct fab_report *report, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static inline void report_say(struct fab_report *report, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    report_say_list(report, fmt, args);
    va_end(args);
}

/* The whole report of a host, finished. */
static inline struct fab_report report_said(const char *host, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static inline struct fab_report report_said(const char *host, const char *fmt, ...)
{
    struct fab_report report;
    va_list args;
    fab_report_init(&report);
    report_say_must(fab_report_host(&report, host, NULL) == 0, host);
    va_start(args, fmt);
    report_say_list(&report, fmt, args);
    va_end(args);
    report_say_must(fab_report_finish(&report, NULL) == 0, host);
    return report;
}

#endif
