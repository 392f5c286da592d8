/*
 * delivery.c - the bytes in which a host hands over its report.
 *
 * Behind the head (frame.h): digest of the base u64, of the result u64; sources that failed u16, those of
 * them that are unknown u16; length of the host's name u8 and the name; the body.
 */
#include "topo/model/delivery.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "topo/base/frame.h"
#include "topo/model/report_parts.h"

static const struct frame_kind kind = {
    {'f', 'a', 'b', 'g', 'i', 'v', 'e', '\n'}, 2, FAB_DELIVERY_MAX, "the delivery of a host's report"};

/* What is unknown has failed, and the subnet is no source of a report. */
static bool good_sources(uint32_t failed, uint32_t unknown)
{
    const uint32_t all = (1u << FAB_SOURCES) - (1u << (FAB_FROM_SUBNET + 1));
    return (failed & ~all) == 0 && (unknown & ~failed) == 0;
}

int fab_delivery_encode(const struct fab_delivery *delivery, void **bytes, size_t *size)
{
    *bytes = NULL;
    *size = 0;
    if (report_check_host(delivery->host, NULL) != PMIXFAB_OK || delivery->digest == 0 ||
        delivery->body == NULL || delivery->size == 0 || !good_sources(delivery->failed, delivery->unknown))
        return PMIXFAB_ERR_INVAL;
    if (delivery->size > FAB_REPORT_MAX_SIZE)
        return PMIXFAB_ERR_RANGE;
    size_t len = strlen(delivery->host), total = FRAME_HEAD + 8 + 8 + 2 + 2 + 1 + len + delivery->size;
    uint8_t *start = malloc(total);
    if (start == NULL)
        return PMIXFAB_ERR_NOMEM;

    uint8_t *at = frame_put(start + FRAME_HEAD, delivery->base, 8);
    at = frame_put(at, delivery->digest, 8);
    at = frame_put(at, delivery->failed, 2);
    at = frame_put(at, delivery->unknown, 2);
    at = frame_put(at, len, 1);
    memcpy(at, delivery->host, len);
    memcpy(at + len, delivery->body, delivery->size);
    frame_seal(&kind, start, total);
    *bytes = start;
    *size = total;
    return PMIXFAB_OK;
}

static int read_delivery(struct frame *in, struct fab_delivery *out, struct fab_err *err)
{
    out->base = frame_get(in, 8);
    out->digest = frame_get(in, 8);
    out->failed = (uint32_t)frame_get(in, 2);
    out->unknown = (uint32_t)frame_get(in, 2);
    uint64_t len = frame_get(in, 1);
    const void *host = frame_bytes(in, len);

    if (in->overrun || len > FAB_HOST_MAX || memchr(host, 0, len) != NULL || out->digest == 0)
        return fab_fail(err, PMIXFAB_ERR_CORRUPT, "a delivery does not say of which report it is");
    if (!good_sources(out->failed, out->unknown))
        return fab_fail(err, PMIXFAB_ERR_CORRUPT, "a delivery names sources that there are not");
    memcpy(out->host, host, len);
    out->size = frame_left(in);
    if (out->size == 0 || out->size > FAB_REPORT_MAX_SIZE)
        return fab_fail(err, PMIXFAB_ERR_CORRUPT, "a delivery holds an impossible %zu bytes", out->size);
    out->body = frame_bytes(in, out->size);
    return report_check_host(out->host, err);
}

int fab_delivery_decode(const void *bytes, size_t size, struct fab_delivery *out, struct fab_err *err)
{
    struct frame in;

    memset(out, 0, sizeof(*out));
    int rc = frame_open(&kind, bytes, size, &in, err) ?: read_delivery(&in, out, err);
    if (rc != PMIXFAB_OK)
        memset(out, 0, sizeof(*out));
    return rc;
}

/* A change leads from what is held, and from nothing else. */
static int check_base(const struct fab_delivery *delivery, const struct fab_report *held, struct fab_err *err)
{
    if (held == NULL)
        return fab_fail(err, PMIXFAB_ERR_CONFLICT,
                        "%s: a change came, but no report is held: the whole is needed", delivery->host);
    uint64_t digest = fab_report_digest(held);
    if (digest == 0)
        return fab_fail(err, held->finished ? PMIXFAB_ERR_NOMEM : PMIXFAB_ERR_INVAL,
                        "%s: the report held cannot be compared", delivery->host);
    if (digest != delivery->base)
        return fab_fail(err, PMIXFAB_ERR_CONFLICT,
                        "%s: a change of report %016" PRIx64 " came, %016" PRIx64
                        " is held: the whole is needed",
                        delivery->host, delivery->base, digest);
    return PMIXFAB_OK;
}

/* Is what came what was announced? */
static int check_result(const struct fab_delivery *delivery, const struct fab_report *out,
                        struct fab_err *err)
{
    if (strcmp(out->host, delivery->host) != 0)
        return fab_fail(err, PMIXFAB_ERR_CONFLICT, "%s delivers a report of %s", delivery->host, out->host);
    uint64_t digest = fab_report_digest(out);
    if (digest == 0)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "%s: out of memory for its report", delivery->host);
    if (digest != delivery->digest)
        return fab_fail(err, PMIXFAB_ERR_CONFLICT,
                        "%s: the delivery leads to report %016" PRIx64 ", not to %016" PRIx64 " as it says",
                        delivery->host, digest, delivery->digest);
    return PMIXFAB_OK;
}

/* A source that the sender knows nothing of says what it said. */
static int fill_unknown(const struct fab_delivery *delivery, const struct fab_report *held,
                        struct fab_report *out, struct fab_err *err)
{
    int rc = PMIXFAB_OK;

    for (uint32_t i = 0; i < out->n_items; i++)
        if ((delivery->unknown >> out->items[i].source & 1) != 0)
            return fab_fail(err, PMIXFAB_ERR_CORRUPT, "%s: the delivery says what it calls unknown: of %s",
                            delivery->host, fab_source_name(out->items[i].source));
    if (held == NULL || delivery->unknown == 0)
        return PMIXFAB_OK;
    for (unsigned source = 0; rc == PMIXFAB_OK && source < FAB_SOURCES; source++)
        if ((delivery->unknown >> source & 1) != 0)
            rc = fab_report_merge_source(out, held, (enum fab_source)source);
    if (rc != PMIXFAB_OK)
        return fab_fail(err, rc, "%s: what its failed probes said before does not fit into the report",
                        delivery->host);
    return fab_report_finish(out, err);
}

int fab_delivery_open(const struct fab_delivery *delivery, const struct fab_report *held,
                      struct fab_report *out, struct fab_err *err)
{
    int rc;

    fab_report_init(out);
    if (delivery->base == 0) {
        rc = fab_report_decode(delivery->body, delivery->size, out, err);
    } else {
        rc = check_base(delivery, held, err)
                 ?: fab_report_apply(held, delivery->body, delivery->size, out, err);
    }
    if (rc == PMIXFAB_OK)
        rc = check_result(delivery, out, err);
    if (rc == PMIXFAB_OK)
        rc = fill_unknown(delivery, held, out, err);
    if (rc != PMIXFAB_OK)
        fab_report_destroy(out);
    return rc;
}
