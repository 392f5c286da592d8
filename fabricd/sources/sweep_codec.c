/*
 * sweep_codec.c - the protocol between the daemon and its sweeping child.
 *
 * Both run on the same machine, so numbers are in its byte order. The child's output is checked nevertheless,
 * because a library in it may have overwritten memory.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/sources/sweep.h"
#include "topo/model/inventory_wire.h"

/* ---- the probes' results -------------------------------------------------------------------------- */

void sweep_parts_destroy(struct sweep_parts *parts)
{
    for (unsigned i = 0; i < parts->n; i++)
        fab_inventory_destroy(&parts->inv[i]);
    parts->n = 0;
}

int sweep_parts_decode(const void *bytes, size_t size, struct sweep_parts *parts, struct fab_err *err)
{
    const char *at = bytes;
    parts->n = 0;
    do {
        const uint64_t total = size < FAB_WIRE_HEAD ? 0 : fab_wire_total(at);
        int rc = PMIXFAB_OK;
        if (parts->n == CONFIG_MAX_LIST || total > size)
            rc = fab_fail(err, PMIXFAB_ERR_CORRUPT,
                          "the probes' results do not have the length in their head");
        else /* an invalid inventory is not used here */
            rc = fab_wire_decode(at, total == 0 ? size : (size_t)total, &parts->inv[parts->n], err);
        if (rc != PMIXFAB_OK) {
            sweep_parts_destroy(parts);
            return rc;
        }
        parts->n++;
        at += total;
        size -= (size_t)total;
    } while (size > 0);
    return PMIXFAB_OK;
}

/* ---- the order ------------------------------------------------------------------------------------ */

struct order_head {
    uint32_t probes, n;
    uint64_t parts; /* bytes */
    uint64_t all;
};

int sweep_order_encode(const struct switch_sweep *part, void **bytes, size_t *size)
{
    const struct dirty_switches *dirty = part->dirty;
    const struct order_head head = {
        .probes = dirty->probes, .n = dirty->n, .parts = part->size, .all = dirty->all};
    const size_t guids = dirty->n * sizeof(*dirty->guids);
    *size = sizeof(head) + guids + part->size;
    char *to = *bytes = malloc(*size);
    if (to == NULL)
        return PMIXFAB_ERR_NOMEM;
    memcpy(to, &head, sizeof(head));
    if (guids > 0)
        memcpy(to + sizeof(head), dirty->guids, guids);
    memcpy(to + sizeof(head) + guids, part->parts, part->size);
    return PMIXFAB_OK;
}

int sweep_order_decode(const void *bytes, size_t size, struct dirty_switches *dirty,
                       struct sweep_parts *parts, struct fab_err *err)
{
    struct order_head head;
    const char *at = bytes;
    *dirty = (struct dirty_switches){0};
    parts->n = 0;
    if (size < sizeof(head))
        return fab_fail(err, PMIXFAB_ERR_CORRUPT, "the order is too short");
    memcpy(&head, at, sizeof(head));
    at += sizeof(head);
    size -= sizeof(head);
    if (head.n > size / sizeof(uint64_t) || size - head.n * sizeof(uint64_t) != head.parts)
        return fab_fail(err, PMIXFAB_ERR_CORRUPT, "the order does not have the length in its head");
    dirty->all = head.all != 0;
    dirty->probes = head.probes;
    dirty->guids = malloc((head.n + 1) * sizeof(*dirty->guids));
    if (dirty->guids == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory for %u changes", head.n);
    memcpy(dirty->guids, at, head.n * sizeof(*dirty->guids));
    dirty->n = dirty->cap = head.n;
    return sweep_parts_decode(at + head.n * sizeof(*dirty->guids), (size_t)head.parts, parts, err);
}

/* ---- the answer ----------------------------------------------------------------------------------- */

/* Before the merged inventory and the parts; with one part only, there is no merged inventory. */
struct answer_head {
    uint64_t total; /* bytes, including this head */
    uint64_t all;   /* bytes of the merged inventory, with several parts */
    uint32_t n, whole;
    char why[sizeof(((struct fab_err *)NULL)->text)];
};

size_t sweep_answer_total(const void *bytes, size_t n)
{
    uint64_t total;
    if (n < sizeof(total))
        return 0;
    memcpy(&total, bytes, sizeof(total));
    return total < sizeof(struct answer_head) || total > SWEEP_ANSWER_MAX ? SIZE_MAX : (size_t)total;
}

int sweep_answer_encode(const struct sweep_answer *answer, const struct sweep_parts *parts, void **bytes,
                        size_t *size)
{
    void *wires[CONFIG_MAX_LIST + 1] = {NULL};
    size_t sizes[CONFIG_MAX_LIST + 1];
    struct answer_head head = {.n = parts->n, .whole = answer->whole};
    unsigned n = 0;
    int rc = PMIXFAB_OK;
    memcpy(head.why, answer->why.text, sizeof(head.why));
    *size = sizeof(head);
    if (parts->n > 1) {
        rc = fab_wire_encode(&answer->inv, &wires[n], &sizes[n]);
        head.all = rc == PMIXFAB_OK ? sizes[n] : 0;
        n++;
    }
    for (unsigned i = 0; i < parts->n && rc == PMIXFAB_OK; i++, n++)
        rc = fab_wire_encode(&parts->inv[i], &wires[n], &sizes[n]);
    for (unsigned i = 0; i < n && rc == PMIXFAB_OK; i++)
        *size += sizes[i];
    head.total = *size;
    char *to = *bytes = rc == PMIXFAB_OK ? malloc(*size) : NULL;
    if (to != NULL) {
        memcpy(to, &head, sizeof(head));
        to += sizeof(head);
    } else if (rc == PMIXFAB_OK) {
        rc = PMIXFAB_ERR_NOMEM;
    }
    for (unsigned i = 0; i < n; i++) {
        if (rc == PMIXFAB_OK) {
            memcpy(to, wires[i], sizes[i]);
            to += sizes[i];
        }
        free(wires[i]);
    }
    return rc;
}

int sweep_parts_check(const struct sweep_parts *parts, struct fab_err *err)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < parts->n; i++)
        n += parts->inv[i].n_nodes;
    if (n <= SWEEP_NODES_MAX)
        return PMIXFAB_OK;
    return fab_fail(err, PMIXFAB_ERR_RANGE,
                    "the fabric has %" PRIu64
                    " HCAs and switches, and at most %u are accepted: check the files that probes read",
                    n, SWEEP_NODES_MAX);
}

int sweep_answer_decode(void *bytes, size_t *size, struct sweep_answer *answer, struct fab_err *err)
{
    struct answer_head head;
    char *at = bytes;
    fab_inventory_init(&answer->inv);
    if (*size < sizeof(head))
        return fab_fail(err, PMIXFAB_ERR_TRUNCATED, "the sweep's answer ends after %zu bytes", *size);
    memcpy(&head, at, sizeof(head));
    const size_t rest = *size - sizeof(head);
    if (head.total != *size || head.all > rest || head.n == 0 || head.n > CONFIG_MAX_LIST ||
        (head.n > 1) != (head.all > 0) || memchr(head.why, '\0', sizeof(head.why)) == NULL)
        return fab_fail(err, head.total > *size ? PMIXFAB_ERR_TRUNCATED : PMIXFAB_ERR_CORRUPT,
                        "the sweep's answer does not match its head");
    answer->whole = head.whole != 0;
    memcpy(answer->why.text, head.why, sizeof(head.why));
    int rc = fab_wire_decode(at + sizeof(head), head.n > 1 ? (size_t)head.all : rest, &answer->inv, err);
    *size = rest - (size_t)head.all;
    memmove(at, at + sizeof(head) + head.all, *size);
    return rc;
}
