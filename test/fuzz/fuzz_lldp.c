/*
 * Any bytes at all as what lldpctl says, or as a recorded machine: refused with a reason, or items that make
 * a report which can be finished, written and read back as the same.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/core/record.h"
#include "probes/lldp/lldp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int ok)
{
    if (!ok)
        abort();
}

/* What was read is as good as a probe's own. */
static void use(struct fab_report *report)
{
    struct fab_report back;
    char *text = NULL;
    size_t size = 0;
    struct fab_err err = {{0}};
    bool record = report->host[0] != '\0';
    if (!record)
        must(fab_report_host(report, "h", NULL) == PMIXFAB_OK);
    if (fab_report_finish(report, &err) != PMIXFAB_OK) {
        must(record && err.text[0] != '\0'); /* which may contradict itself */
        return;
    }
    FILE *out = open_memstream(&text, &size);
    must(out != NULL && probe_record(report, out) == PMIXFAB_OK);
    fclose(out);
    fab_report_init(&back);
    int rc = lldp_read(text, size, "again", NULL, &back, NULL);
    if (report->n_items == 0) {
        must(rc == PMIXFAB_ERR_UNSUPPORTED); /* a record without items of this source */
    } else {
        must(rc == PMIXFAB_OK && fab_report_finish(&back, NULL) == PMIXFAB_OK);
        must(fab_report_equal(report, &back));
    }
    fab_report_destroy(&back);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fab_report report;
    struct fab_err err = {{0}};
    fab_report_init(&report);
    if (lldp_read((const char *)data, size, "f", NULL, &report, &err) == PMIXFAB_OK)
        use(&report);
    else
        must(err.text[0] != '\0');
    fab_report_destroy(&report);
    return 0;
}
