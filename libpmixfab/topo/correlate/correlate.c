/* understand.c - what several changes come to: the list of changes, and which of them are told. */
#include "topo/correlate/correlate.h"

#include <stdlib.h>
#include <string.h>

#include "topo/base/text.h"
#include "topo/correlate/correlation.h"

/* ---- raw changes ---------------------------------------------------------------------------------- */

static int correlation_order_keys(const struct fab_change *x, const struct fab_change *y)
{
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    if (x->guid != y->guid)
        return x->guid < y->guid ? -1 : 1;
    return x->port < y->port ? -1 : x->port > y->port;
}

static int raw_compare_key(const void *a, const void *b, void *raw)
{
    const uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    const struct fab_diff *diff = raw;
    int order = correlation_order_keys(&diff->changes[i], &diff->changes[k]);
    return order != 0 ? order : i < k ? -1 : i > k; /* several facts of one port */
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
    char what[DIFF_NODE_TEXT];
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
    char clean[DIFF_NODE_TEXT];
    size_t size = fab_text_clean(clean, sizeof(clean), name, strlen(name), NULL) + 1;

    if (s->out.rc != 0 || size == 1)
        return;
    for (const char *at = list->used > 0 ? list->text : ""; *at != '\0'; at = fab_subject_next(at)) {
        if (strcmp(at, clean) == 0)
            return;
    }
    if (list->used + size + 1 > list->cap) {
        size_t cap = 2 * list->cap + size + 256;
        char *larger = realloc(list->text, cap);
        if (larger == NULL) {
            s->out.rc = PMIXFAB_ERR_NOMEM;
            return;
        }
        list->text = larger;
        list->cap = cap;
    }
    memcpy(list->text + list->used, clean, size);
    list->used += size;
    list->text[list->used] = '\0';
}

void correlation_subject_node(struct correlation *s, const struct fab_inventory *inv, uint32_t node)
{
    char text[DIFF_NODE_TEXT];
    const char *name = fab_node_known_as(inv, &inv->nodes[node]);

    if (*name != '\0') {
        correlation_subject(s, name);
        return;
    }
    diff_node_text(inv, &inv->nodes[node], text);
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

/* ---- the way -------------------------------------------------------------------------------------- */

static bool correlate_prepare(struct correlation *s)
{
    const struct fab_diff *raw = s->raw;

    s->by_key = malloc((raw->n + 1u) * sizeof(*s->by_key));
    s->taken = calloc(raw->n + 1u, sizeof(*s->taken));
    s->to_after = malloc((s->before->n_nodes + 1u) * sizeof(*s->to_after));
    s->to_before = malloc((s->after->n_nodes + 1u) * sizeof(*s->to_before));
    if (s->by_key == NULL || s->taken == NULL || s->to_after == NULL || s->to_before == NULL)
        return false;
    for (uint32_t i = 0; i < raw->n; i++)
        s->by_key[i] = i;
    if (raw->n > 1)
        qsort_r(s->by_key, raw->n, sizeof(*s->by_key), raw_compare_key, (void *)raw);
    return true;
}

static void correlate_conclude(struct correlation *s)
{
    correlation_switches_replaced(s);
    correlation_hcas_replaced(s);
    correlation_hosts_moved(s);
    correlation_cables_moved(s);
    correlation_claims(s);
    correlation_renamed(s);
    if (correlation_match_lost(s))
        correlation_returned(s);
    correlation_gone(s);
    correlation_ports(s);
    correlation_rest(s);
}

int fab_diff_correlate_with(const struct fab_inventory *before, const struct fab_inventory *after,
                            struct fab_retired *lost, struct fab_diff *diff)
{
    struct fab_diff told = {0};
    struct correlation s = {
        .before = before, .after = after, .raw = diff, .lost = lost, .out = {.diff = &told}};

    if ((!before->finished && before->n_nodes > 0) || !after->finished)
        return PMIXFAB_ERR_INVAL;
    for (uint32_t i = 0; lost != NULL && i < lost->cables.n; i++)
        lost->cables.items[i].used = false;
    if (diff->n == 0)
        return PMIXFAB_OK;
    s.out.rc = correlate_prepare(&s) ? correlation_match(&s) : PMIXFAB_ERR_NOMEM;
    if (s.out.rc == PMIXFAB_OK)
        correlate_conclude(&s);
    free(s.by_key);
    free(s.taken);
    free(s.to_after);
    free(s.to_before);
    free(s.lost_after);
    free(s.after_lost);
    free(s.ends);
    free(s.subjects.text);
    if (s.out.rc != PMIXFAB_OK) {
        fab_diff_destroy(&told);
        return s.out.rc;
    }
    fab_diff_sort(&told);
    told.n_lost = diff->n_lost;
    fab_diff_destroy(diff);
    *diff = told;
    return PMIXFAB_OK;
}
