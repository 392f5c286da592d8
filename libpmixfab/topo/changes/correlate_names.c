/*
 * correlate_names.c - renamed hosts, and two hosts that claim or claimed one name.
 *
 * If an HCA appears under the name of another host, there are two raw changes: a changed name and a lost
 * host. They look as if the host were gone. The operator needs to see that the name is in use already.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "topo/base/order.h"
#include "topo/base/search.h"
#include "topo/base/text.h"
#include "topo/changes/changes_private.h"

/* An HCA in both inventories whose host has another name. */
struct renaming {
    uint32_t raw, before, after; /* the change of its name; the HCA before and after */
    const char *from, *to;       /* hosts */
    struct renaming *next; /* the next renaming with the same two names, in the order of the raw changes */
    bool first;            /* the first of those with the same two names */
};

static bool find_renaming(const struct correlation *s, uint32_t raw, struct renaming *out)
{
    const uint64_t guid = s->raw->changes[raw].guid;
    if (s->raw->changes[raw].kind != FAB_CHANGE_NAME || s->taken[raw])
        return false;
    const uint32_t b = fab_inventory_find(s->before, guid), a = fab_inventory_find(s->after, guid);
    if (b == FAB_NONE || a == FAB_NONE || !is_kind(s->after, a, FAB_HCA))
        return false;
    *out = (struct renaming){.raw = raw,
                             .before = b,
                             .after = a,
                             .from = fab_str(s->before, s->before->nodes[b].host),
                             .to = fab_str(s->after, s->after->nodes[a].host)};
    return strcmp(out->from, out->to) != 0;
}

static void clean_name(const char *name, char clean[FAB_NODE_TEXT])
{
    fab_text_clean(clean, FAB_NODE_TEXT, name, strlen(name), NULL);
}

/* ---- two hosts with one name ------------------------------------------------------------------------ */

/* The HCAs of an inventory in order of names. */
struct by_name {
    const struct fab_inventory *inv;
    struct named *list;
    uint32_t n;
};

static int compare_hosts(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    return strcmp(x->host, y->host);
}

/* The HCAs with the same host, or with the same full name. */
struct alike {
    const struct named *list;
    uint32_t n;
};

static struct alike find_alike(const struct by_name *names, uint32_t node,
                               int (*compare)(const void *, const void *))
{
    const struct named key = named_node(names->inv, node), *list = names->list;
    const uint32_t first = FAB_LOWER_BOUND(0, names->n, i, compare(&list[i], &key) < 0);
    const uint32_t end = FAB_LOWER_BOUND(first, names->n, i, compare(&list[i], &key) <= 0);
    return (struct alike){list + first, end - first};
}

/* Return whether all HCAs of this one's host in one inventory belong to one host in the other. */
static bool is_all_of(const struct correlation *s, const struct by_name *names, uint32_t node,
                      const char *other)
{
    const bool old = names->inv == s->before;
    const struct fab_inventory *there = old ? s->after : s->before;
    const struct alike host = find_alike(names, node, compare_hosts);
    for (uint32_t i = 0; i < host.n; i++) {
        const uint32_t is = (old ? s->to_after : s->to_before)[host.list[i].node];
        if (is == FAB_NONE || strcmp(fab_str(there, there->nodes[is].host), other) != 0)
            return false;
    }
    return true;
}

/* Take the change of a host that was lost or added only because the whole host has another name. */
static uint32_t claim_whole_host(struct correlation *s, enum fab_change_kind kind,
                                 const struct by_name *names, uint32_t node, const char *other)
{
    const uint32_t raw = claim_host(s, kind, fab_str(names->inv, names->inv->nodes[node].host));
    if (raw == FAB_NONE || is_all_of(s, names, node, other))
        return raw;
    unclaim(s, raw);
    return FAB_NONE;
}

#define PLACE_TEXT (FAB_PORT_TEXT + 24)

static void place_text(const struct fab_inventory *inv, uint32_t node, char text[PLACE_TEXT])
{
    const struct fab_node *hca = &inv->nodes[node];
    char port[FAB_PORT_TEXT] = "";
    for (uint32_t p = hca->first_port; p < hca->first_port + hca->n_ports && port[0] == '\0'; p++) {
        if (inv->ports[p].peer != FAB_NONE)
            fab_port_text(inv, &inv->ports[inv->ports[p].peer], port);
    }
    snprintf(text, PLACE_TEXT, "0x%016" PRIx64 "%s%s", hca->guid, port[0] != '\0' ? " at " : "", port);
}

/* sure: the HCAs have the same host and device name, else the same host name. */
static void conclude_claimed(struct correlation *s, const struct renaming *claimed,
                             const struct by_name *names, struct alike alike, bool sure)
{
    const struct fab_change *change = claim_this(s, claimed->raw);
    const struct fab_told_end at = {change->guid, 0};
    const bool now = names->inv == s->after;
    const uint32_t node = now ? claimed->after : claimed->before;
    const uint32_t other = alike.list[0].node != node ? alike.list[0].node : alike.list[1].node;
    char name[FAB_NODE_TEXT], mine[PLACE_TEXT], others[PLACE_TEXT], number[24] = "two";

    clean_name(now ? claimed->to : claimed->from, name);
    place_text(names->inv, node, mine);
    place_text(names->inv, other, others);
    if (alike.n > 2 && sure)
        snprintf(number, sizeof(number), "%" PRIu32, alike.n);
    subject_node(s, s->before, claimed->before);
    subject_node(s, s->after, claimed->after);
    say(s, change->what, change->before, change->after);
    if (now)
        conclude(s, FAB_CHANGE_NAME, at, "%s hosts claim the name %.80s: %.120s, and %.120s%s", number, name,
                 mine, others, sure ? "" : "; or one host has both");
    else
        conclude(s, FAB_CHANGE_NAME, at, "%s hosts claimed the name %.80s: %.120s has its own now%s", number,
                 name, mine, sure ? "" : "; or one host had both");
}

static void conclude_claim(struct correlation *s, const struct renaming *claimed,
                           const struct by_name *before, const struct by_name *after)
{
    const struct alike is = find_alike(after, claimed->after, compare_named),
                       was = find_alike(before, claimed->before, compare_named);
    const struct alike host = find_alike(after, claimed->after, compare_hosts),
                       host_was = find_alike(before, claimed->before, compare_hosts);
    const uint32_t lost = claim_whole_host(s, FAB_CHANGE_HOST_LOST, before, claimed->before, claimed->to);
    const uint32_t added = claim_whole_host(s, FAB_CHANGE_HOST_ADDED, after, claimed->after, claimed->from);
    const bool whole = lost != FAB_NONE && added != FAB_NONE; /* the whole host has another name */

    if (!whole && is.n > 1) {
        conclude_claimed(s, claimed, after, is, true);
    } else if (!whole && was.n > 1) {
        conclude_claimed(s, claimed, before, was, true);
    } else if (!whole && lost != FAB_NONE && host.n > 1) {
        conclude_claimed(s, claimed, after, host, false);
    } else if (!whole && added != FAB_NONE && host_was.n > 1) {
        conclude_claimed(s, claimed, before, host_was, false);
    } else {
        unclaim(s, lost);
        unclaim(s, added);
    }
}

static void conclude_claims(struct correlation *s)
{
    struct by_name before = {s->before, NULL, 0}, after = {s->after, NULL, 0};
    for (uint32_t i = 0; i < s->raw->n && s->out.rc == PMIXFAB_OK; i++) {
        struct renaming claimed;
        if (!find_renaming(s, i, &claimed))
            continue;
        if (before.list == NULL) {
            before.list = list_named(before.inv, &before.n);
            after.list = list_named(after.inv, &after.n);
        }
        if (before.list == NULL || after.list == NULL)
            s->out.rc = PMIXFAB_ERR_NOMEM;
        else
            conclude_claim(s, &claimed, &before, &after);
    }
    free(before.list);
    free(after.list);
}

/* ---- renamed hosts ----------------------------------------------------------------------------------- */

static int compare_renamings(const void *x, const void *y)
{
    const struct renaming *a = *(const struct renaming *const *)x, *b = *(const struct renaming *const *)y;
    return strcmp(a->from, b->from) ?: strcmp(a->to, b->to) ?: FAB_ORDER(a->raw, b->raw);
}

/* Write whether devices of a run have other names, too: the first of them. */
static void devices_text(const struct correlation *s, const struct renaming *run, char text[DIFF_WHY_TEXT])
{
    char was[FAB_NODE_TEXT] = "", is[FAB_NODE_TEXT], more[32] = "";
    uint32_t n = 0;
    for (; run != NULL; run = run->next) {
        const char *before = fab_str(s->before, s->before->nodes[run->before].name);
        const char *after = fab_str(s->after, s->after->nodes[run->after].name);
        if (strcmp(before, after) == 0 || n++ > 0)
            continue;
        clean_name(before, was);
        clean_name(after, is);
    }
    text[0] = '\0';
    if (n > 1)
        snprintf(more, sizeof(more), ", and %" PRIu32 " more", n - 1);
    if (n > 0)
        snprintf(text, DIFF_WHY_TEXT, "; device %.60s is called %.60s now%s", was, is, more);
}

/* Conclude for a host whose last HCA with the old name is gone and whose first HCA with the new name came. */
static void conclude_host_renamed(struct correlation *s, const struct renaming *run)
{
    const struct fab_told_end at = {s->raw->changes[run->raw].guid, 0};
    const uint32_t lost = claim_host(s, FAB_CHANGE_HOST_LOST, run->from);
    const uint32_t added = lost == FAB_NONE ? FAB_NONE : claim_host(s, FAB_CHANGE_HOST_ADDED, run->to);
    char devices[DIFF_WHY_TEXT], from[FAB_NODE_TEXT], to[FAB_NODE_TEXT];

    if (added == FAB_NONE) { /* a part of a host: reported unchanged */
        unclaim(s, lost);
        return;
    }
    devices_text(s, run, devices);
    subject(s, run->from);
    subject(s, run->to);
    clean_name(run->from, from);
    clean_name(run->to, to);
    say(s, from, from, to);
    s->now.renamed = true;
    for (; run != NULL; run = run->next)
        claim_this(s, run->raw);
    conclude(s, FAB_CHANGE_NAME, at, "the same GUIDs under another host's name%s", devices);
}

/*
 * Sort by names, so that a name map that renames every host does not cost a pass for each. A run that is not
 * a host's renaming at its first HCA is none at the others: taken changes stay taken.
 */
static void conclude_hosts_renamed(struct correlation *s)
{
    uint32_t n = 0;
    struct renaming *list = calloc(s->raw->n + 1u, sizeof(*list));
    struct renaming **by_name = calloc(s->raw->n + 1u, sizeof(struct renaming *));

    if (list == NULL || by_name == NULL) {
        s->out.rc = PMIXFAB_ERR_NOMEM;
        goto cleanup;
    }
    for (uint32_t i = 0; i < s->raw->n; i++)
        n += find_renaming(s, i, &list[n]);
    for (uint32_t i = 0; i < n; i++)
        by_name[i] = &list[i];
    qsort(by_name, n, sizeof(struct renaming *), compare_renamings);
    for (uint32_t i = 0; i < n; i++) {
        struct renaming *last = i == 0 ? NULL : by_name[i - 1], *this = by_name[i];
        this->first = last == NULL || strcmp(last->from, this->from) != 0 || strcmp(last->to, this->to) != 0;
        if (!this->first)
            last->next = this;
    }
    for (uint32_t i = 0; i < n; i++)
        if (list[i].first)
            conclude_host_renamed(s, &list[i]);
cleanup:
    free(by_name);
    free(list);
}

void conclude_names(struct correlation *s)
{
    conclude_claims(s);
    conclude_hosts_renamed(s);
}
