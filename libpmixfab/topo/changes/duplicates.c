/*
 * duplicates.c - two hosts that claim one name, and hosts that did.
 *
 * An HCA that comes under the name of another host is, in the raw changes, a name, and a host lost: as if its
 * host were gone. What an operator has to see is that a name is somebody's already.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/base/text.h"
#include "topo/changes/correlation.h"

/* The HCAs of an inventory, by their names. */
struct by_name {
    const struct fab_inventory *inv;
    struct correlation_named *list;
    uint32_t n;
};

static bool duplicate_sort(const struct fab_inventory *inv, struct by_name *out)
{
    *out = (struct by_name){.inv = inv};
    out->list = correlation_list_named(inv, NULL, NULL, &out->n);
    return out->list != NULL;
}

static int correlation_compare_hosts(const void *a, const void *b)
{
    const struct correlation_named *x = a, *y = b;
    return strcmp(x->host, y->host);
}

/* The HCAs that have an HCA's host, or its whole name: list[first .. first+n-1]. */
struct alike {
    uint32_t first, n;
};

static struct alike duplicate_find(const struct by_name *names, uint32_t node, bool hosts_only)
{
    const struct correlation_named key = correlation_name_of(names->inv, node), *list = names->list;
    int (*compare)(const void *, const void *) =
        hosts_only ? correlation_compare_hosts : correlation_compare_named;
    uint32_t first = FAB_LOWER_BOUND(0, names->n, i, compare(&list[i], &key) < 0);
    uint32_t end = FAB_LOWER_BOUND(first, names->n, i, compare(&list[i], &key) <= 0);
    return (struct alike){first, end - first};
}

/* Another one of them. */
static uint32_t other_than(const struct by_name *names, struct alike alike, uint32_t node)
{
    uint32_t first = names->list[alike.first].node;
    return first != node ? first : names->list[alike.first + 1].node;
}

/* ---- one claim ----------------------------------------------------------------------------------- */

struct claim {
    uint32_t raw, before, after; /* the change of the name, and its HCA */
    const char *from, *to;       /* hosts */
};

/* Are all HCAs of this one's host, in the one inventory, those of a host in the other? */
static bool all_of(const struct correlation *s, const struct by_name *names, uint32_t node, const char *other)
{
    const bool old = names->inv == s->before;
    const struct fab_inventory *there = old ? s->after : s->before;
    const struct alike host = duplicate_find(names, node, true);
    for (uint32_t i = host.first; i < host.first + host.n; i++) {
        uint32_t is = (old ? s->to_after : s->to_before)[names->list[i].node];
        if (is == FAB_NONE || strcmp(fab_str(there, there->nodes[is].host), other) != 0)
            return false;
    }
    return true;
}

static void duplicate_place_text(const struct fab_inventory *inv, uint32_t node,
                                 char text[FAB_PORT_TEXT + 24])
{
    const struct fab_node *hca = &inv->nodes[node];
    char port[FAB_PORT_TEXT];
    snprintf(text, FAB_PORT_TEXT + 24, "0x%016" PRIx64, hca->guid);
    for (uint32_t i = 0; i < hca->n_ports; i++) {
        uint32_t peer = peer_of(inv, node, i);
        if (peer == FAB_NONE)
            continue;
        fab_port_text(inv, &inv->ports[peer], port);
        snprintf(text, FAB_PORT_TEXT + 24, "0x%016" PRIx64 " at %s", hca->guid, port);
        return;
    }
}

/* What they are called, where hosts are counted by HCAs of one host's and device's name. */
static void duplicate_explain(const struct correlation *s, const struct claim *claim,
                              const struct by_name *names, struct alike alike, bool sure,
                              char why[DIFF_WHY_TEXT])
{
    const bool now = names->inv == s->after;
    const uint32_t node = now ? claim->after : claim->before;
    char name[FAB_NODE_TEXT], mine[FAB_PORT_TEXT + 24], others[FAB_PORT_TEXT + 24], number[24] = "two";
    fab_text_clean(name, sizeof(name), now ? claim->to : claim->from, strlen(now ? claim->to : claim->from),
                   NULL);
    duplicate_place_text(names->inv, node, mine);
    duplicate_place_text(names->inv, other_than(names, alike, node), others);
    if (alike.n > 2 && sure)
        snprintf(number, sizeof(number), "%" PRIu32, alike.n);
    if (now)
        snprintf(why, DIFF_WHY_TEXT, "%s hosts claim the name %.80s: %.120s, and %.120s%s", number, name,
                 mine, others, sure ? "" : "; or one host has both");
    else
        snprintf(why, DIFF_WHY_TEXT, "%s hosts claimed the name %.80s: %.120s has its own now%s", number,
                 name, mine, sure ? "" : "; or one host had both");
}

static void duplicate_add(struct correlation *s, const struct claim *claim, const char *why)
{
    const struct fab_change *change = claim_raw_this(s, claim->raw);
    correlation_subject_node(s, s->before, claim->before);
    correlation_subject_node(s, s->after, claim->after);
    correlation_conclude(s, FAB_CHANGE_NAME, change->guid, 0, change->what, change->before, change->after,
                         why);
}

static void give_back(struct correlation *s, uint32_t raw)
{
    if (raw != FAB_NONE) {
        s->taken[raw] = false;
        s->n_taken--;
    }
}

/* A host that is lost, or that came, only because all of it is called otherwise. */
static uint32_t take_host(struct correlation *s, enum fab_change_kind kind, const struct by_name *names,
                          uint32_t node, const char *other)
{
    const char *host = fab_str(names->inv, names->inv->nodes[node].host);
    uint32_t raw = claim_raw_host(s, kind, host);
    if (raw == FAB_NONE || all_of(s, names, node, other))
        return raw;
    give_back(s, raw);
    return FAB_NONE;
}

static void duplicate_conclude(struct correlation *s, const struct claim *claim, const struct by_name *before,
                               const struct by_name *after)
{
    const struct alike is = duplicate_find(after, claim->after, false),
                       was = duplicate_find(before, claim->before, false);
    const struct alike host = duplicate_find(after, claim->after, true),
                       host_was = duplicate_find(before, claim->before, true);
    char why[DIFF_WHY_TEXT];
    uint32_t lost = take_host(s, FAB_CHANGE_HOST_LOST, before, claim->before, claim->to);
    uint32_t added = take_host(s, FAB_CHANGE_HOST_ADDED, after, claim->after, claim->from);

    if (lost != FAB_NONE && added != FAB_NONE) { /* a whole host under another name */
        give_back(s, lost);
        give_back(s, added);
        return;
    }
    if (is.n > 1)
        duplicate_explain(s, claim, after, is, true, why);
    else if (was.n > 1)
        duplicate_explain(s, claim, before, was, true, why);
    else if (lost != FAB_NONE && host.n > 1)
        duplicate_explain(s, claim, after, host, false, why);
    else if (added != FAB_NONE && host_was.n > 1)
        duplicate_explain(s, claim, before, host_was, false, why);
    else {
        give_back(s, lost);
        give_back(s, added);
        return;
    }
    duplicate_add(s, claim, why);
}

void correlation_claims(struct correlation *s)
{
    struct by_name before = {0}, after = {0};
    for (uint32_t i = 0; i < s->raw->n && s->out.rc == PMIXFAB_OK; i++) {
        const struct fab_change *change = &s->raw->changes[i];
        if (change->kind != FAB_CHANGE_NAME || s->taken[i])
            continue;
        struct claim claim = {.raw = i,
                              .before = fab_inventory_find(s->before, change->guid),
                              .after = fab_inventory_find(s->after, change->guid)};
        if (claim.before == FAB_NONE || claim.after == FAB_NONE || !is_kind(s->after, claim.after, FAB_HCA))
            continue;
        claim.from = fab_str(s->before, s->before->nodes[claim.before].host);
        claim.to = fab_str(s->after, s->after->nodes[claim.after].host);
        if (strcmp(claim.from, claim.to) == 0)
            continue;
        if (before.list == NULL && (!duplicate_sort(s->before, &before) || !duplicate_sort(s->after, &after)))
            s->out.rc = PMIXFAB_ERR_NOMEM;
        else
            duplicate_conclude(s, &claim, &before, &after);
    }
    free(before.list);
    free(after.list);
}
