/* delivery.c - deliveries of recorded machines, as their hosts would make them. */
#include "topo/model/delivery.h"

#include <stdlib.h>
#include <string.h>

#include "fabricd/base/base64.h"
#include "probes/core/record.h"
#include "test/sim/played.h"

void report_of_record(const char *record, struct fab_report *report)
{
    struct fab_err err = {""};
    int rc = PMIXFAB_OK;
    fab_report_init(report);
    for (int source = 1; rc == PMIXFAB_OK && source < FAB_SOURCES; source++) {
        rc = record_parse(record, strlen(record), "record", (enum fab_source)source, report, &err);
        if (rc == PMIXFAB_ERR_UNSUPPORTED)
            rc = PMIXFAB_OK;
    }
    if (rc != PMIXFAB_OK || fab_report_finish(report, &err) != PMIXFAB_OK)
        sim_fail("%s", err.text);
}

const char *sim_delivery(const char *record, const char *before)
{
    static char *text;
    struct fab_report report, last;
    struct fab_delivery delivery = {.base = 0};
    void *body = NULL, *bytes = NULL;
    size_t size = 0;
    report_of_record(record, &report);
    delivery.digest = fab_report_digest(&report);
    memcpy(delivery.host, report.host, sizeof(delivery.host));
    int rc;
    if (before == NULL) {
        rc = fab_report_encode(&report, &body, &delivery.size);
    } else {
        report_of_record(before, &last);
        delivery.base = fab_report_digest(&last);
        rc = fab_report_delta(&last, &report, &body, &delivery.size);
        fab_report_destroy(&last);
    }
    delivery.body = body;
    if (rc == PMIXFAB_OK)
        rc = fab_delivery_encode(&delivery, &bytes, &size);
    if (rc != PMIXFAB_OK)
        sim_fail("delivery: %s", pmixfab_strerror(rc));
    free(text);
    text = base64_encode(bytes, size);
    free(body);
    free(bytes);
    fab_report_destroy(&report);
    return text;
}

int sim_deliver_from(struct sim *s, const char *base64, const char *from, unsigned uid)
{
    void *bytes;
    size_t size;
    if (base64_decode(base64, strlen(base64), &bytes, &size) != PMIXFAB_OK)
        sim_fail("a delivery is not in base64");
    sim_note(s, "delivery: from %s by uid %u", from, uid);
    const int code = front_deliver(s, from, uid, bytes, size);
    free(bytes);
    return code;
}
