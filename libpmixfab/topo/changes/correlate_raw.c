/* correlate_raw.c - raw changes of conclusions, and the texts of conclusions. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "topo/base/array.h"
#include "topo/base/natural.h"
#include "topo/base/order.h"
#include "topo/base/search.h"
#include "topo/base/text.h"
#include "topo/changes/changes_private.h"

/*
 * ---- raw changes, taken or not ---------------------------------------------------------------------------
 */

static int order_keys(const struct fab_change *x, const struct fab_change *y)
{
    return FAB_ORDER(x->kind, y->kind) ?: FAB_ORDER(x->guid, y->guid) ?: FAB_ORDER(x->port, y->port);
}

static int compare_keys(const void *a, const void *b, void *raw)
{
    const uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    const struct fab_diff *diff = raw;
    return order_keys(&diff->changes[i], &diff->changes[k]) ?: FAB_ORDER(i, k); /* several facts of a port */
}

bool index_raw_changes(struct correlation *s)
{
    const struct fab_diff *raw = s->raw;

    s->by_key = malloc((raw->n + 1u) * sizeof(*s->by_key));
    s->taken = calloc(raw->n + 1u, sizeof(*s->taken));
    if (s->by_key == NULL || s->taken == NULL)
        return false;
    for (uint32_t i = 0; i < raw->n; i++)
        s->by_key[i] = i;
    qsort_r(s->by_key, raw->n, sizeof(*s->by_key), compare_keys, (void *)raw);
    return true;
}

const struct fab_change *claim_this(struct correlation *s, uint32_t raw)
{
    s->taken[raw] = true;
    s->now.n_taken++;
    return &s->raw->changes[raw];
}

void unclaim(struct correlation *s, uint32_t raw)
{
    if (raw == FAB_NONE)
        return;
    s->taken[raw] = false;
    s->now.n_taken--;
}

uint32_t claim(struct correlation *s, enum fab_change_kind kind, struct fab_told_end of)
{
    const bool any = of.port == FAB_NONE;
    const struct fab_change key = {.kind = kind, .guid = of.guid, .port = any ? 0 : of.port};
    const struct fab_change *list = s->raw->changes;
    uint32_t at = FAB_LOWER_BOUND(0, s->raw->n, i, order_keys(&list[s->by_key[i]], &key) < 0);

    for (; at < s->raw->n; at++) {
        const uint32_t raw = s->by_key[at];
        if (list[raw].kind != kind || list[raw].guid != of.guid || (!any && list[raw].port != of.port))
            break;
        if (!s->taken[raw]) {
            claim_this(s, raw);
            return raw;
        }
    }
    return FAB_NONE;
}

void claim_all_of_node(struct correlation *s, enum fab_change_kind kind, uint64_t guid)
{
    while (claim(s, kind, (struct fab_told_end){guid, FAB_NONE}) != FAB_NONE)
        continue;
}

/* Changes are in order of kind, then of subject. */
uint32_t claim_host(struct correlation *s, enum fab_change_kind kind, const char *name)
{
    char what[FAB_NODE_TEXT];
    const struct fab_change *list = s->raw->changes;

    fab_text_clean(what, sizeof(what), name, strlen(name), NULL);
    uint32_t at =
        FAB_LOWER_BOUND(0, s->raw->n, i,
                        list[i].kind != kind ? list[i].kind < kind : fab_natural_cmp(list[i].what, what) < 0);
    for (; at < s->raw->n && list[at].kind == kind && strcmp(list[at].what, what) == 0; at++) {
        if (!s->taken[at]) {
            claim_this(s, at);
            return at;
        }
    }
    return FAB_NONE;
}

uint32_t claim_link(struct correlation *s, const struct fab_inventory *inv, uint32_t port)
{
    const uint32_t peer = inv->ports[port].peer, lower = peer < port ? peer : port;
    return peer == FAB_NONE ? FAB_NONE
                            : claim(s, inv == s->after ? FAB_CHANGE_LINK_ADDED : FAB_CHANGE_LINK_LOST,
                                    port_end(inv, lower));
}

/* ---- a conclusion -------------------------------------------------------------------------------------- */

void subject(struct correlation *s, const char *name)
{
    struct conclusion *now = &s->now;
    char clean[FAB_NODE_TEXT];
    size_t size = fab_text_clean(clean, sizeof(clean), name, strlen(name), NULL) + 1;

    if (s->out.rc != 0 || size == 1)
        return;
    for (const char *at = now->n_subjects > 0 ? now->subjects : ""; *at != '\0'; at = fab_subject_next(at)) {
        if (strcmp(at, clean) == 0)
            return;
    }
    if (!FAB_ARRAY_ROOM(&now->subjects, &now->cap_subjects, now->n_subjects + size + 1)) {
        s->out.rc = PMIXFAB_ERR_NOMEM;
        return;
    }
    memcpy(now->subjects + now->n_subjects, clean, size);
    now->n_subjects += size;
    now->subjects[now->n_subjects] = '\0';
}

void subject_node(struct correlation *s, const struct fab_inventory *inv, uint32_t node)
{
    char text[FAB_NODE_TEXT];
    const char *name = fab_node_known_as(inv, &inv->nodes[node]);

    if (*name == '\0')
        fab_node_text(inv, &inv->nodes[node], text);
    subject(s, *name != '\0' ? name : text);
}

void subject_link(struct correlation *s, const struct fab_inventory *inv, uint32_t port)
{
    subject_node(s, inv, inv->ports[port].node);
    if (inv->ports[port].peer != FAB_NONE)
        subject_node(s, inv, peer_node(inv, port));
}

void say(struct correlation *s, const char *what, const char *before, const char *after)
{
    const char *const texts[] = {what, before, after};
    char *const to[] = {s->now.what, s->now.before, s->now.after};
    for (int i = 0; i < 3; i++) {
        if (texts[i] != NULL)
            snprintf(to[i], FAB_LINK_TEXT, "%s", texts[i]);
    }
}

void unsay(struct correlation *s)
{
    struct conclusion *now = &s->now;
    now->what[0] = now->before[0] = now->after[0] = '\0';
    now->former = 0;
    now->seen = 0;
    now->renamed = now->was_lost = false;
    now->n_subjects = 0;
}

void conclude(struct correlation *s, enum fab_change_kind kind, struct fab_told_end at, const char *why, ...)
{
    struct conclusion *now = &s->now;
    char text[DIFF_WHY_TEXT];
    va_list args;

    va_start(args, why);
    vsnprintf(text, sizeof(text), why, args);
    va_end(args);
    diff_put(&s->out, &(struct fab_change){.kind = kind,
                                           .guid = at.guid,
                                           .port = at.port,
                                           .what = now->what,
                                           .before = now->before,
                                           .after = now->after,
                                           .why = text,
                                           .subjects = now->n_subjects > 0 ? now->subjects : NULL,
                                           .n_raw = now->n_taken,
                                           .was_lost = now->was_lost,
                                           .renamed = now->renamed,
                                           .former = now->former,
                                           .last_seen = now->seen});
    unsay(s);
    now->n_taken = 0;
}
