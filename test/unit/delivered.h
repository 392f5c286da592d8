/* delivered.h - for tests: what a host would deliver as a whole. */
#ifndef TEST_UNIT_DELIVERED_H
#define TEST_UNIT_DELIVERED_H

#include "test/unit/test.h"
#include "topo/model/delivery.h"

/* With one item, this interface; NULL: with none. free() it. */
static inline void *delivery_of(const char *host, const char *interface, uint64_t base, size_t *size)
{
    SCOPED(fab_report) report = {0};
    struct fab_delivery delivery = {.base = base};
    void *bytes;
    uint32_t item;
    assert_int_equal(fab_report_host(&report, host, NULL), 0);
    if (interface != NULL) {
        assert_int_equal(fab_report_item(&report, FAB_FROM_ETHERNET, &item), 0);
        assert_int_equal(fab_report_fact(&report, item, FAB_FACT_INTERFACE, interface), 0);
    }
    assert_int_equal(fab_report_finish(&report, NULL), 0);
    snprintf(delivery.host, sizeof(delivery.host), "%s", host);
    delivery.digest = fab_report_digest(&report);
    OWNED(free) void *body = NULL;
    assert_int_equal(fab_report_encode(&report, &body, &delivery.size), 0);
    delivery.body = body;
    assert_int_equal(fab_delivery_encode(&delivery, &bytes, size), 0);
    return bytes;
}

#endif
