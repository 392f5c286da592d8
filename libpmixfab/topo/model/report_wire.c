/*
 * report_wire.c - encode a whole report, a change, and a delivery of a host's report.
 *
 * After the head (frame.h):
 * - a report: length of the host's name u8 and the name; number of items u32; items. An item has source u8,
 *   number of facts u8, and facts. A fact has kind u8, estimate u8, length u8, and text. All are in canonical
 *   order, so that equal reports have equal bytes.
 * - a change: digests of the old and the new report, u64 each; number of removed items u32, their indices in
 *   the old one, ascending, u16 each; number of added items u32, and these. An item with a changed fact is
 *   removed and added.
 * - a delivery: digest of the base u64, of the result u64; failed sources u16, those of them that are unknown
 *   u16; length of the host's name u8 and the name; the body.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "topo/base/bytes.h"
#include "topo/model/delivery.h"
#include "topo/model/report_parts.h"

static const struct frame_kind report_kind = {
    {'f', 'a', 'b', 'h', 'o', 's', 't', '\n'}, 1, FAB_REPORT_MAX_SIZE, "the report of a host"};

/* Write the head of a frame into the room before the content. */
static int wire_seal(const struct frame_kind *kind, struct fab_bytes *out, void **bytes, size_t *size)
{
    if (out->failed || out->n > kind->max) {
        free(out->at);
        return out->failed ? PMIXFAB_ERR_NOMEM : PMIXFAB_ERR_RANGE;
    }
    frame_seal(kind, out->at, out->n);
    *bytes = out->at;
    *size = out->n;
    return PMIXFAB_OK;
}

static void wire_put_text(struct fab_bytes *out, const char *text)
{
    const size_t len = strlen(text);
    fab_bytes_put(out, len, 1);
    fab_bytes_add(out, text, len);
}

static void wire_put_item(struct fab_bytes *out, const struct fab_report *report, uint32_t item)
{
    const struct fab_report_item *of = &report->items[item];
    fab_bytes_put(out, of->source, 1);
    fab_bytes_put(out, of->n, 1);
    for (uint32_t i = of->first; i < of->first + of->n; i++) {
        fab_bytes_put(out, report->facts[i].kind, 1);
        fab_bytes_put(out, report->facts[i].estimate, 1);
        wire_put_text(out, report->pool + report->facts[i].text);
    }
}

int fab_report_encode(const struct fab_report *report, void **bytes, size_t *size)
{
    struct fab_bytes out = {0};
    *bytes = NULL;
    *size = 0;
    if (!report->finished)
        return PMIXFAB_ERR_INVAL;
    fab_bytes_more(&out, FRAME_HEAD);
    wire_put_text(&out, report->host);
    fab_bytes_put(&out, report->n_items, 4);
    for (uint32_t i = 0; i < report->n_items; i++)
        wire_put_item(&out, report, i);
    return wire_seal(&report_kind, &out, bytes, size);
}

uint64_t fab_report_digest(const struct fab_report *report)
{
    void *bytes;
    size_t size;

    if (fab_report_encode(report, &bytes, &size) != PMIXFAB_OK)
        return 0;
    uint64_t digest = XXH3_64bits(bytes, size);
    free(bytes);
    return digest == 0 ? 1 : digest;
}

static int wire_get_item(struct frame *in, struct fab_report *report, struct fab_err *err)
{
    uint64_t source = frame_get(in, 1), n = frame_get(in, 1);

    if (source <= FAB_FROM_SUBNET || source >= FAB_SOURCES || n == 0)
        return fab_fail(err, PMIXFAB_ERR_CORRUPT, "an item of the report has no source or no facts");
    int rc = report_append_item(report, (unsigned)source);
    for (uint64_t i = 0; rc == PMIXFAB_OK && i < n; i++) {
        uint64_t what = frame_get(in, 1), estimate = frame_get(in, 1), len = frame_get(in, 1);
        const void *text = frame_bytes(in, len);
        if (in->overrun || what == 0 || what >= FAB_FACTS || estimate > 1 || len == 0 ||
            memchr(text, 0, len) != NULL)
            return fab_fail(err, PMIXFAB_ERR_CORRUPT, "a fact of the report is damaged");
        rc = report_append_fact(report, report->n_items - 1, (unsigned)what, estimate != 0, text, len);
    }
    if (rc != PMIXFAB_OK)
        return fab_fail(err, rc, "%s",
                        rc == PMIXFAB_ERR_NOMEM ? "out of memory for the report of a host"
                                                : "the report has too many items or facts");
    return PMIXFAB_OK;
}

/* Read the name and the items. */
static int report_read_body(struct frame *in, struct fab_report *report, struct fab_err *err)
{
    char host[FAB_HOST_MAX + 1] = "";
    uint64_t len = frame_get(in, 1);
    const void *name = frame_bytes(in, len);
    uint64_t n = frame_get(in, 4);

    if (in->overrun || len > FAB_HOST_MAX || memchr(name, 0, len) != NULL)
        return fab_fail(err, PMIXFAB_ERR_CORRUPT, "the report does not name its host");
    memcpy(host, name, len);
    int rc = fab_report_host(report, host, err);
    for (uint64_t i = 0; rc == PMIXFAB_OK && i < n; i++)
        rc = wire_get_item(in, report, err);
    if (rc == PMIXFAB_OK && frame_left(in) > 0)
        rc = fab_fail(err, PMIXFAB_ERR_CORRUPT, "%s: %zu bytes of the report belong to no item", host,
                      frame_left(in));
    return rc;
}

int fab_report_decode(const void *bytes, size_t size, struct fab_report *report, struct fab_err *err)
{
    struct frame in;

    fab_report_init(report);
    int rc = frame_open(&report_kind, bytes, size, &in, err) ?: report_read_body(&in, report, err)
             ?: fab_report_finish(report, err);
    if (rc != PMIXFAB_OK)
        fab_report_destroy(report);
    return rc;
}

/* ---- changes --------------------------------------------------------------------------------------- */

static const struct frame_kind delta_kind = {
    {'f', 'a', 'b', 'd', 'e', 'l', 't', 'a'}, 1, FAB_REPORT_MAX_SIZE, "the change of a host's report"};

/* Indices of the items that only one of the reports has, ascending. */
struct delta {
    uint32_t *gone, *came;
    uint32_t n_gone, n_came;
};

static void delta_free(struct delta *delta)
{
    free(delta->gone);
    free(delta->came);
}

/* Both are in one order, so one parallel pass finds them. */
static int delta_find(const struct fab_report *before, const struct fab_report *after, struct delta *delta)
{
    uint32_t b = 0, a = 0;

    *delta = (struct delta){.gone = malloc(before->n_items * sizeof(uint32_t) + 1),
                            .came = malloc(after->n_items * sizeof(uint32_t) + 1)};
    if (delta->gone == NULL || delta->came == NULL) {
        delta_free(delta);
        return PMIXFAB_ERR_NOMEM;
    }
    while (b < before->n_items || a < after->n_items) {
        int order = b == before->n_items  ? 1
                    : a == after->n_items ? -1
                                          : report_items_compare(before, b, after, a);
        if (order < 0)
            delta->gone[delta->n_gone++] = b;
        else if (order > 0)
            delta->came[delta->n_came++] = a;
        b += order <= 0;
        a += order >= 0;
    }
    return PMIXFAB_OK;
}

static int delta_write(const struct fab_report *before, const struct fab_report *after,
                       const struct delta *delta, void **bytes, size_t *size)
{
    const uint64_t base = fab_report_digest(before), result = fab_report_digest(after);
    struct fab_bytes out = {.failed = base == 0 || result == 0};
    fab_bytes_more(&out, FRAME_HEAD);
    fab_bytes_put(&out, base, 8);
    fab_bytes_put(&out, result, 8);
    fab_bytes_put(&out, delta->n_gone, 4);
    for (uint32_t i = 0; i < delta->n_gone; i++)
        fab_bytes_put(&out, delta->gone[i], 2);
    fab_bytes_put(&out, delta->n_came, 4);
    for (uint32_t i = 0; i < delta->n_came; i++)
        wire_put_item(&out, after, delta->came[i]);
    return wire_seal(&delta_kind, &out, bytes, size);
}

int fab_report_delta(const struct fab_report *before, const struct fab_report *after, void **bytes,
                     size_t *size)
{
    struct delta delta;

    *bytes = NULL;
    *size = 0;
    if (!before->finished || !after->finished || strcmp(before->host, after->host) != 0)
        return PMIXFAB_ERR_INVAL;
    int rc = delta_find(before, after, &delta);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = delta_write(before, after, &delta, bytes, size);
    delta_free(&delta);
    return rc;
}

static int append_kept(const struct fab_report *before, uint32_t from, uint32_t to, struct fab_report *after,
                       struct fab_err *err)
{
    for (uint32_t i = from; i < to; i++) {
        int rc = report_append_copy(after, before, i);
        if (rc != PMIXFAB_OK)
            return fab_fail(err, rc, "%s: no memory for a changed report", before->host);
    }
    return PMIXFAB_OK;
}

/* Copy the items that were not removed. */
static int read_gone(const struct fab_report *before, struct frame *in, struct fab_report *after,
                     struct fab_err *err)
{
    uint64_t n = frame_get(in, 4);
    uint32_t next = 0;
    int rc = PMIXFAB_OK;

    for (uint64_t i = 0; rc == PMIXFAB_OK && i < n; i++) {
        uint32_t gone = (uint32_t)frame_get(in, 2);
        if (in->overrun || gone < next || gone >= before->n_items)
            return fab_fail(err, PMIXFAB_ERR_CORRUPT,
                            "%s: the change removes an item that the report does not have", before->host);
        rc = append_kept(before, next, gone, after, err);
        next = gone + 1;
    }
    return rc == PMIXFAB_OK ? append_kept(before, next, before->n_items, after, err) : rc;
}

static int read_came(struct frame *in, struct fab_report *after, struct fab_err *err)
{
    uint64_t n = frame_get(in, 4);
    int rc = PMIXFAB_OK;

    if (in->overrun)
        return fab_fail(err, PMIXFAB_ERR_CORRUPT, "%s: the change of the report has no end", after->host);
    for (uint64_t i = 0; rc == PMIXFAB_OK && i < n; i++)
        rc = wire_get_item(in, after, err);
    if (rc == PMIXFAB_OK && frame_left(in) > 0)
        rc = fab_fail(err, PMIXFAB_ERR_CORRUPT, "%s: %zu bytes of the change belong to no item", after->host,
                      frame_left(in));
    return rc;
}

static int delta_apply(const struct fab_report *before, struct frame *in, struct fab_report *after,
                       struct fab_err *err)
{
    uint64_t base = frame_get(in, 8), result = frame_get(in, 8);

    if (base != fab_report_digest(before))
        return fab_fail(err, PMIXFAB_ERR_CONFLICT,
                        "%s: the change is for another report than the stored one: send the whole report",
                        before->host);
    memcpy(after->host, before->host, sizeof(after->host));
    int rc = read_gone(before, in, after, err) ?: read_came(in, after, err) ?: fab_report_finish(after, err);
    if (rc == PMIXFAB_OK && fab_report_digest(after) != result)
        rc = fab_fail(err, PMIXFAB_ERR_CORRUPT,
                      "%s: the result of the change has another digest than announced", before->host);
    return rc;
}

int fab_report_apply(const struct fab_report *before, const void *bytes, size_t size,
                     struct fab_report *after, struct fab_err *err)
{
    struct frame in;

    fab_report_init(after);
    if (!before->finished)
        return fab_fail(err, PMIXFAB_ERR_INVAL, "the change is applied to an unfinished report");
    int rc = frame_open(&delta_kind, bytes, size, &in, err) ?: delta_apply(before, &in, after, err);
    if (rc != PMIXFAB_OK)
        fab_report_destroy(after);
    return rc;
}

/* ---- deliveries ------------------------------------------------------------------------------------ */

static const struct frame_kind delivery_kind = {
    {'f', 'a', 'b', 'g', 'i', 'v', 'e', '\n'}, 2, FAB_DELIVERY_MAX, "the delivery of a host's report"};

/* An unknown source has failed, and the subnet is not a source of a report. */
static bool good_sources(uint32_t failed, uint32_t unknown)
{
    const uint32_t all = (1u << FAB_SOURCES) - (1u << (FAB_FROM_SUBNET + 1));
    return (failed & ~all) == 0 && (unknown & ~failed) == 0;
}

int fab_delivery_encode(const struct fab_delivery *delivery, void **bytes, size_t *size)
{
    struct fab_bytes out = {0};
    *bytes = NULL;
    *size = 0;
    if (report_check_host(delivery->host, NULL) != PMIXFAB_OK || delivery->digest == 0 ||
        delivery->body == NULL || delivery->size == 0 || !good_sources(delivery->failed, delivery->unknown))
        return PMIXFAB_ERR_INVAL;
    if (delivery->size > FAB_REPORT_MAX_SIZE)
        return PMIXFAB_ERR_RANGE;
    fab_bytes_more(&out, FRAME_HEAD);
    fab_bytes_put(&out, delivery->base, 8);
    fab_bytes_put(&out, delivery->digest, 8);
    fab_bytes_put(&out, delivery->failed, 2);
    fab_bytes_put(&out, delivery->unknown, 2);
    wire_put_text(&out, delivery->host);
    fab_bytes_add(&out, delivery->body, delivery->size);
    return wire_seal(&delivery_kind, &out, bytes, size);
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
        return fab_fail(err, PMIXFAB_ERR_CORRUPT, "the delivery does not name its host");
    if (!good_sources(out->failed, out->unknown))
        return fab_fail(err, PMIXFAB_ERR_CORRUPT, "the delivery names sources that do not exist");
    memcpy(out->host, host, len);
    out->size = frame_left(in);
    if (out->size == 0 || out->size > FAB_REPORT_MAX_SIZE)
        return fab_fail(err, PMIXFAB_ERR_CORRUPT, "the delivery has an impossible body of %zu bytes",
                        out->size);
    out->body = frame_bytes(in, out->size);
    return report_check_host(out->host, err);
}

int fab_delivery_decode(const void *bytes, size_t size, struct fab_delivery *out, struct fab_err *err)
{
    struct frame in;

    memset(out, 0, sizeof(*out));
    int rc = frame_open(&delivery_kind, bytes, size, &in, err) ?: read_delivery(&in, out, err);
    if (rc != PMIXFAB_OK)
        memset(out, 0, sizeof(*out));
    return rc;
}

/* A change applies to the stored report only. */
static int check_base(const struct fab_delivery *delivery, const struct fab_report *held, struct fab_err *err)
{
    if (held == NULL)
        return fab_fail(err, PMIXFAB_ERR_CONFLICT,
                        "%s: a change arrived, but no report is stored: send the whole report",
                        delivery->host);
    uint64_t digest = fab_report_digest(held);
    if (digest == 0)
        return fab_fail(err, held->finished ? PMIXFAB_ERR_NOMEM : PMIXFAB_ERR_INVAL,
                        "%s: cannot compare the stored report", delivery->host);
    if (digest != delivery->base)
        return fab_fail(err, PMIXFAB_ERR_CONFLICT,
                        "%s: a change of report %016" PRIx64 " arrived, but %016" PRIx64
                        " is stored: send the whole report",
                        delivery->host, delivery->base, digest);
    return PMIXFAB_OK;
}

/* Check that the result is the announced one. */
static int check_result(const struct fab_delivery *delivery, const struct fab_report *out,
                        struct fab_err *err)
{
    if (strcmp(out->host, delivery->host) != 0)
        return fab_fail(err, PMIXFAB_ERR_CONFLICT, "%s delivers the report of %s", delivery->host, out->host);
    uint64_t digest = fab_report_digest(out);
    if (digest == 0)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "%s: out of memory for its report", delivery->host);
    if (digest != delivery->digest)
        return fab_fail(err, PMIXFAB_ERR_CONFLICT,
                        "%s: the delivery results in report %016" PRIx64 ", not in the announced %016" PRIx64,
                        delivery->host, digest, delivery->digest);
    return PMIXFAB_OK;
}

/* Keep the former items of a source that the sender does not have. */
static int fill_unknown(const struct fab_delivery *delivery, const struct fab_report *held,
                        struct fab_report *out, struct fab_err *err)
{
    int rc = PMIXFAB_OK;

    for (uint32_t i = 0; i < out->n_items; i++)
        if ((delivery->unknown >> out->items[i].source & 1) != 0)
            return fab_fail(err, PMIXFAB_ERR_CORRUPT,
                            "%s: the delivery contains facts of a source that it marks as unknown: %s",
                            delivery->host, fab_source_name(out->items[i].source));
    if (held == NULL || delivery->unknown == 0)
        return PMIXFAB_OK;
    for (unsigned source = 0; rc == PMIXFAB_OK && source < FAB_SOURCES; source++)
        if ((delivery->unknown >> source & 1) != 0)
            rc = fab_report_merge_source(out, held, (enum fab_source)source);
    if (rc != PMIXFAB_OK)
        return fab_fail(err, rc, "%s: the former facts of its failed probes do not fit into the report",
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
