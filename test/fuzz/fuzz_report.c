/*
 * Any bytes at all as a report of a host, and as the change of one: refused, or a finished report that can be
 * encoded, compared and told of. A mutation rarely meets a checksum, so the same bytes are tried a second
 * time with head, size and checksum made right, and a change with the digest of what it is a change of.
 */
#include "test/unit/report_random.h"
#include "test/unit/wire_seal.h"
#include "topo/changes/changes.h"

#define HEAD 32

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int ok)
{
    if (!ok)
        abort();
}

/* What was let in is as good as a report of our own. */
static void use(const struct fab_report *report, const struct fab_report *base)
{
    struct fab_report back;
    struct fab_diff diff = {0};
    void *bytes = NULL;
    size_t size = 0;

    must(report->finished && report->n_items <= FAB_REPORT_MAX_ITEMS);
    must(fab_report_encode(report, &bytes, &size) == 0 && size <= FAB_REPORT_MAX_SIZE);
    must(fab_report_decode(bytes, size, &back, NULL) == 0);
    must(fab_report_equal(report, &back) && fab_report_digest(report) == fab_report_digest(&back));
    free(bytes);
    must(fab_report_changes(report, &back, &diff) == 0 && diff.n == 0);
    fab_report_destroy(&back);
    if (strcmp(report->host, base->host) == 0) {
        must(fab_report_changes(base, report, &diff) == 0);
        fab_diff_destroy(&diff);
        int rc = fab_report_delta(base, report, &bytes, &size);
        must(rc == 0 || rc == PMIXFAB_ERR_RANGE);
        if (rc == 0)
            must(fab_report_apply(base, bytes, size, &back, NULL) == 0 && fab_report_equal(report, &back));
        free(bytes);
        fab_report_destroy(&back);
    }
}

static void try_bytes(const struct fab_report *base, const uint8_t *bytes, size_t size)
{
    struct fab_report report;
    struct fab_err err = {{0}};

    if (fab_report_decode(bytes, size, &report, &err) == 0)
        use(&report, base);
    else
        must(err.text[0] != '\0' && report.items == NULL);
    fab_report_destroy(&report);
    err.text[0] = '\0';
    if (fab_report_apply(base, bytes, size, &report, &err) == 0)
        use(&report, base);
    else
        must(err.text[0] != '\0' && report.items == NULL);
    fab_report_destroy(&report);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t heads[2][16] = {{'f', 'a', 'b', 'h', 'o', 's', 't', '\n', 1},
                                         {'f', 'a', 'b', 'd', 'e', 'l', 't', 'a', 1}};
    struct fab_report base;
    uint64_t random = 1;

    report_random(&base, &random, "node001", 2, 1);
    try_bytes(&base, data, size);
    uint8_t *sealed = size < HEAD + 8 ? NULL : malloc(size);
    for (int i = 0; sealed != NULL && i < 2; i++) {
        memcpy(sealed, data, size);
        memcpy(sealed, heads[i], sizeof(heads[i]));
        if (i == 1)
            wire_put(sealed + HEAD, fab_report_digest(&base), 8);
        wire_seal(sealed, size);
        try_bytes(&base, sealed, size);
    }
    free(sealed);
    fab_report_destroy(&base);
    return 0;
}
