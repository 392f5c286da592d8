/* raw_changes.c - the list of raw changes, which of them are told, and of whom. */
#include <stdlib.h>
#include <string.h>

#include "topo/base/array.h"
#include "topo/base/natural.h"
#include "topo/base/order.h"
#include "topo/base/text.h"
#include "topo/changes/correlation.h"

static int correlation_order_keys(const struct fab_change *x, const struct fab_change *y)
{
    return FAB_ORDER(x->kind, y->kind) ?: FAB_ORDER(x->guid, y->guid) ?: FAB_ORDER(x->port, y->port);
}

static int raw_compare_key(const void *a, const void *b, void *raw)
{
    const uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    const struct fab_diff *diff = raw;
    return correlation_order_keys(&diff->changes[i], &diff->changes[k])
               ?: FAB_ORDER(i, k); /* several facts of one port */
}

bool raw_changes_index(struct correlation *s)
{
    const struct fab_diff *raw = s->raw;

    s->by_key = malloc((raw->n + 1u) * sizeof(*s->by_key));
    s->taken = calloc(raw->n + 1u, sizeof(*s->taken));
    if (s->by_key == NULL || s->taken == NULL)
        return false;
    for (uint32_t i = 0; i < raw->n; i++)
        s->by_key[i] = i;
    qsort_r(s->by_key, raw->n, sizeof(*s->by_key), raw_compare_key, (void *)raw);
    return true;
}

/* The first place in by_key that is not before this key. */
static uint32_t lower_bound(const struct correlation *s, enum fab_change_kind kind, uint64_t guid,
                            uint32_t port)
{
    const struct fab_change key = {.kind = kind, .guid = guid, .port = port};
    return FAB_LOWER_BOUND(0, s->raw->n, mid,
                           correlation_order_keys(&s->raw->changes[s->by_key[mid]], &key) < 0);
}

const struct fab_change *claim_raw_this(struct correlation *s, uint32_t raw)
{
    s->taken[raw] = true;
    s->n_taken++;
    return &s->raw->changes[raw];
}

uint32_t claim_raw(struct correlation *s, enum fab_change_kind kind, uint64_t guid, uint32_t port)
{
    uint32_t at = lower_bound(s, kind, guid, port == FAB_NONE ? 0 : port);

    for (; at < s->raw->n; at++) {
        const struct fab_change *c = &s->raw->changes[s->by_key[at]];
        if (c->kind != kind || c->guid != guid || (port != FAB_NONE && c->port != port))
            break;
        if (!s->taken[s->by_key[at]]) {
            claim_raw_this(s, s->by_key[at]);
            return s->by_key[at];
        }
    }
    return FAB_NONE;
}

void claim_raw_node(struct correlation *s, enum fab_change_kind kind, uint64_t guid)
{
    while (claim_raw(s, kind, guid, FAB_NONE) != FAB_NONE) {
    }
}

/* Changes are in the order of their kinds, then of what they are about. */
uint32_t claim_raw_host(struct correlation *s, enum fab_change_kind kind, const char *name)
{
    char what[FAB_NODE_TEXT];
    const struct fab_change *list = s->raw->changes;

    fab_text_clean(what, sizeof(what), name, strlen(name), NULL);
    uint32_t at =
        FAB_LOWER_BOUND(0, s->raw->n, i,
                        list[i].kind != kind ? list[i].kind < kind : fab_natural_cmp(list[i].what, what) < 0);
    for (; at < s->raw->n && list[at].kind == kind && strcmp(list[at].what, what) == 0; at++) {
        if (!s->taken[at]) {
            claim_raw_this(s, at);
            return at;
        }
    }
    return FAB_NONE;
}

uint32_t claim_raw_link(struct correlation *s, enum fab_change_kind kind, const struct fab_inventory *inv,
                        uint32_t port)
{
    uint32_t peer = inv->ports[port].peer, lower = peer < port ? peer : port;

    return peer == FAB_NONE
               ? FAB_NONE
               : claim_raw(s, kind, inv->nodes[inv->ports[lower].node].guid, inv->ports[lower].num);
}

/* ---- subjects ------------------------------------------------------------------------------------- */

void correlation_subject(struct correlation *s, const char *name)
{
    struct subjects *list = &s->subjects;
    char clean[FAB_NODE_TEXT];
    size_t size = fab_text_clean(clean, sizeof(clean), name, strlen(name), NULL) + 1;

    if (s->out.rc != 0 || size == 1)
        return;
    for (const char *at = list->used > 0 ? list->text : ""; *at != '\0'; at = fab_subject_next(at)) {
        if (strcmp(at, clean) == 0)
            return;
    }
    if (!FAB_ARRAY_ROOM(&list->text, &list->cap, list->used + size + 1)) {
        s->out.rc = PMIXFAB_ERR_NOMEM;
        return;
    }
    memcpy(list->text + list->used, clean, size);
    list->used += size;
    list->text[list->used] = '\0';
}

void correlation_subject_node(struct correlation *s, const struct fab_inventory *inv, uint32_t node)
{
    char text[FAB_NODE_TEXT];
    const char *name = fab_node_known_as(inv, &inv->nodes[node]);

    if (*name != '\0') {
        correlation_subject(s, name);
        return;
    }
    fab_node_text(inv, &inv->nodes[node], text);
    correlation_subject(s, text);
}

void correlation_subject_link(struct correlation *s, const struct fab_inventory *inv, uint32_t port)
{
    correlation_subject_node(s, inv, inv->ports[port].node);
    if (inv->ports[port].peer != FAB_NONE)
        correlation_subject_node(s, inv, inv->ports[inv->ports[port].peer].node);
}

void correlation_conclude(struct correlation *s, enum fab_change_kind kind, uint64_t guid, uint32_t port,
                          const char *what, const char *before, const char *after, const char *why)
{
    diff_put(&s->out, &(struct fab_change){.kind = kind,
                                           .guid = guid,
                                           .port = port,
                                           .what = (char *)what,
                                           .before = (char *)before,
                                           .after = (char *)after,
                                           .why = why,
                                           .subjects = s->subjects.used > 0 ? s->subjects.text : "",
                                           .n_raw = s->n_taken,
                                           .was_lost = s->past.was_lost,
                                           .renamed = s->past.renamed,
                                           .former = s->past.former,
                                           .last_seen = s->past.seen});
    s->n_taken = 0;
    s->past = (struct conclusion){0};
    s->subjects.used = 0;
}
