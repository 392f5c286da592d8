/*
 * delivery.h - the bytes in which a host hands its report to the scheduler: the whole, or what changed.
 *
 * They travel inside a munge credential, which says who made them and where, and that nobody altered them.
 */
#ifndef FAB_TOPO_MODEL_DELIVERY_H
#define FAB_TOPO_MODEL_DELIVERY_H

#include "topo/model/report.h"

#define FAB_DELIVERY_MAX (FAB_REPORT_MAX_SIZE + 1024)

struct fab_delivery {
    char host[FAB_HOST_MAX + 1];
    uint64_t base;    /* digest of the report that body changes; 0: body is a whole report */
    uint64_t digest;  /* of the report that it leads to */
    uint32_t failed;  /* sources whose probe failed: bits 1 << enum fab_source */
    uint32_t unknown; /* those of them of which the sender does not know either what they said before */
    const void *body; /* fab_report_encode() or fab_report_delta(); decode: inside the bytes given */
    size_t size;
};

int fab_delivery_encode(const struct fab_delivery *delivery, void **bytes, size_t *size); /* free(*bytes) */

/* Checks head, lengths and name; not the body. Errors as fab_report_decode(). */
int fab_delivery_decode(const void *bytes, size_t size, struct fab_delivery *out, struct fab_err *err);

/*
 * The report that a delivery leads to, *out initialised here; with what `held` says of the sources that are
 * unknown to the sender, so that its digest may be another one. `held` is what is held of this host, NULL:
 * nothing. PMIXFAB_ERR_CONFLICT: it changes another report than the one held (the sender must give the
 * whole), the names do not agree, or the digest is not the result's.
 */
int fab_delivery_open(const struct fab_delivery *delivery, const struct fab_report *held,
                      struct fab_report *out, struct fab_err *err);

#endif
