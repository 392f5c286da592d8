/*
 * report_delta.c - what leads from one report of a host to another.
 *
 * Behind the head (frame.h): digest of the one u64, of the other u64; number of items that went u32, their
 * indices in the one, ascending, u16 each; number of items that came u32, and these as in report_wire.c.
 * An item of which a fact changed has gone and come.
 */
#include <stdlib.h>

#include "topo/model/report_wire.h"

#define FIXED (FRAME_HEAD + 8 + 8 + 4 + 4)

static const struct frame_kind kind = {
    {'f', 'a', 'b', 'd', 'e', 'l', 't', 'a'}, 1, FAB_REPORT_MAX_SIZE, "the change of a host's report"};

/* Items that only one of the reports has: indices, ascending. */
struct delta {
    uint32_t *gone, *came;
    uint32_t n_gone, n_came;
};

static void delta_free(struct delta *delta)
{
    free(delta->gone);
    free(delta->came);
}

/* Both are in one order, so one walk side by side finds them. */
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
    size_t total = FIXED + 2 * (size_t)delta->n_gone;
    uint64_t base = fab_report_digest(before), result = fab_report_digest(after);

    for (uint32_t i = 0; i < delta->n_came; i++)
        total += report_wire_item_size(after, delta->came[i]);
    if (total > FAB_REPORT_MAX_SIZE)
        return PMIXFAB_ERR_RANGE;
    uint8_t *start = malloc(total);
    if (start == NULL || base == 0 || result == 0) {
        free(start);
        return PMIXFAB_ERR_NOMEM;
    }
    uint8_t *at = frame_put(start + FRAME_HEAD, base, 8);
    at = frame_put(at, result, 8);
    at = frame_put(at, delta->n_gone, 4);
    for (uint32_t i = 0; i < delta->n_gone; i++)
        at = frame_put(at, delta->gone[i], 2);
    at = frame_put(at, delta->n_came, 4);
    for (uint32_t i = 0; i < delta->n_came; i++)
        at = report_wire_put_item(at, after, delta->came[i]);
    frame_seal(&kind, start, total);
    *bytes = start;
    *size = total;
    return PMIXFAB_OK;
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

/* Everything but what went. */
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
                            "%s: a change of the report takes away what is not there", before->host);
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
        return fab_fail(err, PMIXFAB_ERR_CORRUPT, "%s: a change of the report has no end", after->host);
    for (uint64_t i = 0; rc == PMIXFAB_OK && i < n; i++)
        rc = report_wire_get_item(in, after, err);
    if (rc == PMIXFAB_OK && frame_left(in) > 0)
        rc = fab_fail(err, PMIXFAB_ERR_CORRUPT, "%s: %zu bytes of a change of the report belong to no item",
                      after->host, frame_left(in));
    return rc;
}

static int delta_apply(const struct fab_report *before, struct frame *in, struct fab_report *after,
                       struct fab_err *err)
{
    uint64_t base = frame_get(in, 8), result = frame_get(in, 8);

    if (base != fab_report_digest(before))
        return fab_fail(err, PMIXFAB_ERR_CONFLICT,
                        "%s: the change is of another report than the one held: the whole is needed",
                        before->host);
    memcpy(after->host, before->host, sizeof(after->host));
    int rc = read_gone(before, in, after, err) ?: read_came(in, after, err) ?: fab_report_finish(after, err);
    if (rc == PMIXFAB_OK && fab_report_digest(after) != result)
        rc = fab_fail(err, PMIXFAB_ERR_CORRUPT, "%s: a change leads to another report than it says",
                      before->host);
    return rc;
}

int fab_report_apply(const struct fab_report *before, const void *bytes, size_t size,
                     struct fab_report *after, struct fab_err *err)
{
    struct frame in;

    fab_report_init(after);
    if (!before->finished)
        return fab_fail(err, PMIXFAB_ERR_INVAL, "a change is applied to an unfinished report");
    int rc = frame_open(&kind, bytes, size, &in, err) ?: delta_apply(before, &in, after, err);
    if (rc != PMIXFAB_OK)
        fab_report_destroy(after);
    return rc;
}
