/*
 * Any bytes at all as a recorded machine: refused with a reason, or items that make a report which is equal
 * when it is written and read back.
 */
#include <stdlib.h>
#include <string.h>

#include "probes/core/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int ok)
{
    if (!ok)
        abort();
}

static void write_and_read(const struct fab_report *report, enum fab_source source)
{
    struct fab_report back;
    struct fab_err err = {{0}};
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    must(out != NULL && probe_record(report, out) == PMIXFAB_OK);
    fclose(out);
    fab_report_init(&back);
    int rc = record_parse(text, size, "back", source, &back, &err);
    must(rc == PMIXFAB_OK || (rc == PMIXFAB_ERR_UNSUPPORTED && report->n_items == 0));
    must(fab_report_finish(&back, NULL) == PMIXFAB_OK);
    must(fab_report_equal(report, &back) && strcmp(report->host, back.host) == 0);
    fab_report_destroy(&back);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int source = FAB_FROM_VERBS; source < FAB_SOURCES; source++) {
        struct fab_report report;
        struct fab_err err = {{0}};
        fab_report_init(&report);
        int rc = record_parse((const char *)data, size, "fuzz", source, &report, &err);
        must((rc == PMIXFAB_OK) == (err.text[0] == '\0'));
        /* two facts of a kind that an item has one of, an estimate and another: refused here */
        if (rc == PMIXFAB_OK && fab_report_finish(&report, &err) == PMIXFAB_OK)
            write_and_read(&report, source);
        fab_report_destroy(&report);
        if (rc != PMIXFAB_OK && rc != PMIXFAB_ERR_UNSUPPORTED)
            break; /* the whole record is refused whoever asks */
    }
    return 0;
}
