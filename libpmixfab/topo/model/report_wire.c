/*
 * report_wire.c - a report as bytes.
 *
 * Behind the head (frame.h): length of the host's name u8 and the name; number of items u32; items.
 * An item: source u8, number of facts u8; facts. A fact: kind u8, estimate u8, length u8, text.
 * All in canonical order, so that equal reports are equal bytes.
 */
#include "topo/model/report_wire.h"

#include <stdlib.h>
#include <xxhash.h>

static const struct frame_kind kind = {
    {'f', 'a', 'b', 'h', 'o', 's', 't', '\n'}, 1, FAB_REPORT_MAX_SIZE, "the report of a host"};

size_t report_wire_item_size(const struct fab_report *report, uint32_t item)
{
    const struct fab_report_item *of = &report->items[item];
    size_t size = REPORT_WIRE_ITEM + of->n * (size_t)REPORT_WIRE_FACT;

    for (uint32_t i = of->first; i < of->first + of->n; i++)
        size += strlen(report->pool + report->facts[i].text);
    return size;
}

uint8_t *report_wire_put_item(uint8_t *at, const struct fab_report *report, uint32_t item)
{
    const struct fab_report_item *of = &report->items[item];

    at = frame_put(at, of->source, 1);
    at = frame_put(at, of->n, 1);
    for (uint32_t i = of->first; i < of->first + of->n; i++) {
        const struct fab_report_fact *fact = &report->facts[i];
        const char *text = report->pool + fact->text;
        size_t len = strlen(text);
        at = frame_put(at, fact->kind, 1);
        at = frame_put(at, fact->estimate, 1);
        at = frame_put(at, len, 1);
        memcpy(at, text, len); /* NOLINT(bugprone-not-null-terminated-result): its length is before it */
        at += len;
    }
    return at;
}

int fab_report_encode(const struct fab_report *report, void **bytes, size_t *size)
{
    *bytes = NULL;
    *size = 0;
    if (!report->finished)
        return PMIXFAB_ERR_INVAL;
    size_t total = report_wire_head(report->host), len = strlen(report->host);
    for (uint32_t i = 0; i < report->n_items; i++)
        total += report_wire_item_size(report, i);
    uint8_t *start = malloc(total);
    if (start == NULL)
        return PMIXFAB_ERR_NOMEM;

    uint8_t *at = frame_put(start + FRAME_HEAD, len, 1);
    memcpy(at, report->host, len);
    at = frame_put(at + len, report->n_items, 4);
    for (uint32_t i = 0; i < report->n_items; i++)
        at = report_wire_put_item(at, report, i);
    frame_seal(&kind, start, total);
    *bytes = start;
    *size = total;
    return PMIXFAB_OK;
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

int report_wire_get_item(struct frame *in, struct fab_report *report, struct fab_err *err)
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
                        rc == PMIXFAB_ERR_NOMEM ? "out of memory for a report of a host"
                                                : "a report has too many items or facts");
    return PMIXFAB_OK;
}

/* The name and the items. */
static int report_read_body(struct frame *in, struct fab_report *report, struct fab_err *err)
{
    char host[FAB_HOST_MAX + 1] = "";
    uint64_t len = frame_get(in, 1);
    const void *name = frame_bytes(in, len);
    uint64_t n = frame_get(in, 4);

    if (in->overrun || len > FAB_HOST_MAX || memchr(name, 0, len) != NULL)
        return fab_fail(err, PMIXFAB_ERR_CORRUPT, "the report does not say of which host it is");
    memcpy(host, name, len);
    int rc = fab_report_host(report, host, err);
    for (uint64_t i = 0; rc == PMIXFAB_OK && i < n; i++)
        rc = report_wire_get_item(in, report, err);
    if (rc == PMIXFAB_OK && frame_left(in) > 0)
        rc = fab_fail(err, PMIXFAB_ERR_CORRUPT, "%s: %zu bytes of the report belong to no item", host,
                      frame_left(in));
    return rc;
}

int fab_report_decode(const void *bytes, size_t size, struct fab_report *report, struct fab_err *err)
{
    struct frame in;

    fab_report_init(report);
    int rc = frame_open(&kind, bytes, size, &in, err) ?: report_read_body(&in, report, err)
             ?: fab_report_finish(report, err);
    if (rc != PMIXFAB_OK)
        fab_report_destroy(report);
    return rc;
}
