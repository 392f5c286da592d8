/*
 * delivery.h - the bytes in which a host sends its report to the scheduler: the whole report, or the changes.
 *
 * They are sent inside a munge credential, which proves their sender and that they are unaltered.
 */
#ifndef FAB_TOPO_MODEL_DELIVERY_H
#define FAB_TOPO_MODEL_DELIVERY_H

#include "topo/model/report.h"

#define FAB_DELIVERY_MAX (FAB_REPORT_MAX_SIZE + 1024)

struct fab_delivery {
    char host[FAB_HOST_MAX + 1];
    uint64_t base;    /* digest of the report that body changes; 0: body is a whole report */
    uint64_t digest;  /* digest of the resulting report */
    uint32_t failed;  /* sources whose probe failed: bits 1 << enum fab_source */
    uint32_t unknown; /* those of them whose former items the sender does not have */
    const void
        *body; /* from fab_report_encode() or fab_report_delta(); after decode: inside the given bytes */
    size_t size;
};

int fab_delivery_encode(const struct fab_delivery *delivery, void **bytes,
                        size_t *size); /* free *bytes with free() */

/* Decode. Checks head, lengths and name, but not the body. Errors as fab_report_decode(). */
int fab_delivery_decode(const void *bytes, size_t size, struct fab_delivery *out, struct fab_err *err);

/*
 * Make the report of a delivery; *out is initialised here. `held` is the stored report of this host, NULL:
 * none. Sources unknown to the sender keep their items of `held`, so the digest can differ.
 * PMIXFAB_ERR_CONFLICT: the delivery changes another report than the stored one (the sender must send the
 * whole report), the names differ, or the digest is not that of the result.
 */
int fab_delivery_open(const struct fab_delivery *delivery, const struct fab_report *held,
                      struct fab_report *out, struct fab_err *err);

#endif
