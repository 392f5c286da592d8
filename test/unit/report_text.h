/* report_text.h - what a probe reported, held against the items that it should have. */
#ifndef TEST_REPORT_TEXT_H
#define TEST_REPORT_TEXT_H

#include "probes/core/probe.h"
#include "test/unit/test.h"

/* The report, finished, as a recorded machine of the host "h". Free it. */
static inline char *report_text(struct fab_report *report)
{
    char *text = NULL;
    size_t size = 0;
    assert_int_equal(fab_report_host(report, "h", NULL), PMIXFAB_OK);
    must_do(fab_report_finish(report, fresh_err()));
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    assert_int_equal(probe_record(report, out), PMIXFAB_OK);
    fclose(out);
    return text;
}

/* items: those that it should have, in order, each a line of JSON with ' for ". The report is destroyed. */
static inline void expect_items(struct fab_report *report, const char *items)
{
    OWNED(free) char *wanted = NULL, *text = report_text(report);
    size_t size = 0;
    FILE *out = open_memstream(&wanted, &size);
    assert_non_null(out);
    fprintf(out, "{\"host\": \"h\", \"items\": [");
    for (const char *p = items; *p != '\0'; p++) {
        if (p == items || p[-1] == '\n')
            fprintf(out, "%s\n  ", p == items ? "" : ",");
        if (*p != '\n')
            fputc(*p == '\'' ? '"' : *p, out);
    }
    fprintf(out, "%s]}\n", items[0] != '\0' ? "\n" : "");
    fclose(out);
    assert_string_equal(text, wanted);
    fab_report_destroy(report);
}

/* Notes of a probe, counted, with the last one. */
struct notes {
    unsigned n;
    char last[256];
};

static inline void count_note(enum pmixfab_level level, const char *line, void *cbdata)
{
    struct notes *notes = cbdata;
    (void)level;
    notes->n++;
    snprintf(notes->last, sizeof(notes->last), "%s", line);
}

#endif
