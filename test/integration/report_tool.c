/*
 * report_tool RECORDED [BEFORE]: the bytes in which a host would deliver a recorded machine, on standard
 * output: whole, or as what leads to it from another one. --digest RECORDED prints the report's digest
 * instead.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/core/record.h"
#include "topo/model/delivery.h"

static int read_machine(const char *path, struct fab_report *report, struct fab_err *err)
{
    fab_report_init(report);
    for (int source = 1; source < FAB_SOURCES; source++) {
        int rc = record_scan(path, (enum fab_source)source, report, err);
        if (rc != PMIXFAB_OK && rc != PMIXFAB_ERR_UNSUPPORTED)
            return rc;
    }
    return fab_report_finish(report, err);
}

static int print_delivery(const struct fab_report *report, const struct fab_report *before)
{
    struct fab_delivery delivery = {.digest = fab_report_digest(report)};
    void *body = NULL, *bytes = NULL;
    size_t size = 0;
    memcpy(delivery.host, report->host, sizeof(delivery.host));
    delivery.base = before == NULL ? 0 : fab_report_digest(before);
    int rc = before == NULL ? fab_report_encode(report, &body, &delivery.size)
                            : fab_report_delta(before, report, &body, &delivery.size);
    delivery.body = body;
    if (rc == PMIXFAB_OK)
        rc = fab_delivery_encode(&delivery, &bytes, &size);
    if (rc == PMIXFAB_OK && fwrite(bytes, 1, size, stdout) != size)
        rc = PMIXFAB_ERR_IO;
    free(body);
    free(bytes);
    return rc;
}

int main(int argc, char **argv)
{
    struct fab_report report, before;
    struct fab_err err = {{0}};
    bool digest = argc == 3 && strcmp(argv[1], "--digest") == 0;
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: report_tool RECORDED [BEFORE] | --digest RECORDED\n");
        return 2;
    }
    fab_report_init(&before);
    int rc = read_machine(argv[digest ? 2 : 1], &report, &err);
    if (rc == PMIXFAB_OK && argc == 3 && !digest)
        rc = read_machine(argv[2], &before, &err);
    if (rc == PMIXFAB_OK && digest)
        printf("%016" PRIx64 "\n", fab_report_digest(&report));
    else if (rc == PMIXFAB_OK)
        rc = print_delivery(&report, argc == 3 ? &before : NULL);
    if (rc != PMIXFAB_OK)
        fprintf(stderr, "%s (%s)\n", err.text, pmixfab_strerror(rc));
    fab_report_destroy(&report);
    fab_report_destroy(&before);
    return rc == PMIXFAB_OK ? 0 : 1;
}
