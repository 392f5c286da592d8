/* renamed.c - hosts and switches that are called otherwise. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/base/order.h"
#include "topo/base/text.h"
#include "topo/changes/correlation.h"

/* ---- who has a name -------------------------------------------------------------------------------- */

static bool has_name(const struct fab_inventory *inv, const char *name)
{
    for (uint32_t i = 0; i < inv->n_nodes; i++) {
        if (strcmp(fab_node_known_as(inv, &inv->nodes[i]), name) == 0)
            return true;
    }
    return false;
}

bool correlation_renamed_node(const struct correlation *s, const char *was, uint32_t after)
{
    const char *name = fab_node_known_as(s->after, &s->after->nodes[after]);
    return *was != '\0' && *name != '\0' && strcmp(was, name) != 0 && !has_name(s->after, was) &&
           !has_name(s->before, name);
}

bool correlation_switch_renamed(const struct correlation *s, uint64_t guid)
{
    uint32_t b = fab_inventory_find(s->before, guid), a = fab_inventory_find(s->after, guid);
    return b != FAB_NONE && a != FAB_NONE && is_kind(s->after, a, FAB_SWITCH) &&
           correlation_renamed_node(s, fab_node_known_as(s->before, &s->before->nodes[b]), a);
}

/* ---- hosts by another name ------------------------------------------------------------------------ */

/* A change of an HCA's name, as far as that is its host's. */
static bool host_renamed(const struct correlation *s, uint32_t raw, const char **before, const char **after)
{
    const struct fab_change *change = &s->raw->changes[raw];
    if (change->kind != FAB_CHANGE_NAME || s->taken[raw])
        return false;
    uint32_t b = fab_inventory_find(s->before, change->guid), a = fab_inventory_find(s->after, change->guid);
    if (b == FAB_NONE || a == FAB_NONE || !is_kind(s->after, a, FAB_HCA))
        return false;
    *before = fab_str(s->before, s->before->nodes[b].host);
    *after = fab_str(s->after, s->after->nodes[a].host);
    return true;
}

/* An HCA of which that is so. Those with the same two names are a run, in the order of the raw changes. */
struct renaming {
    const char *from, *to;
    uint32_t raw;
    bool first;            /* of its run */
    struct renaming *next; /* in it */
};

static int compare_renamings(const void *x, const void *y)
{
    const struct renaming *a = *(const struct renaming *const *)x, *b = *(const struct renaming *const *)y;
    return strcmp(a->from, b->from) ?: strcmp(a->to, b->to) ?: FAB_ORDER(a->raw, b->raw);
}

/* Of a run: are devices called otherwise, too? The first of them. */
static void say_devices(const struct correlation *s, const struct renaming *run, char why[DIFF_WHY_TEXT])
{
    char was[FAB_NODE_TEXT] = "", is[FAB_NODE_TEXT];
    uint32_t n = 0;
    for (; run != NULL; run = run->next) {
        const uint64_t guid = s->raw->changes[run->raw].guid;
        const char *before = fab_str(s->before, s->before->nodes[fab_inventory_find(s->before, guid)].name);
        const char *after = fab_str(s->after, s->after->nodes[fab_inventory_find(s->after, guid)].name);
        if (strcmp(before, after) == 0 || n++ > 0)
            continue;
        fab_text_clean(was, sizeof(was), before, strlen(before), NULL);
        fab_text_clean(is, sizeof(is), after, strlen(after), NULL);
    }
    int used = snprintf(why, DIFF_WHY_TEXT, "the same GUIDs under another host's name");
    if (n > 0)
        used +=
            snprintf(why + used, DIFF_WHY_TEXT - (size_t)used, "; device %.60s is called %.60s now", was, is);
    if (n > 1)
        snprintf(why + used, DIFF_WHY_TEXT - (size_t)used, ", and %" PRIu32 " more", n - 1);
}

/* The host's last HCA with its old name went, and the first one with its new name came. */
static void rename_host(struct correlation *s, const struct renaming *run)
{
    const char *from = run->from, *to = run->to;
    char clean_from[FAB_NODE_TEXT], clean_to[FAB_NODE_TEXT], why[DIFF_WHY_TEXT];
    uint32_t lost = claim_raw_host(s, FAB_CHANGE_HOST_LOST, from);
    uint32_t added = lost == FAB_NONE ? FAB_NONE : claim_raw_host(s, FAB_CHANGE_HOST_ADDED, to);

    if (added == FAB_NONE) { /* a part of a host: told as it is */
        if (lost != FAB_NONE)
            s->taken[lost] = false;
        s->n_taken = 0;
        return;
    }
    uint64_t guid = s->raw->changes[run->raw].guid;
    say_devices(s, run, why);
    for (; run != NULL; run = run->next)
        claim_raw_this(s, run->raw);
    correlation_subject(s, from);
    correlation_subject(s, to);
    fab_text_clean(clean_from, sizeof(clean_from), from, strlen(from), NULL);
    fab_text_clean(clean_to, sizeof(clean_to), to, strlen(to), NULL);
    s->past.renamed = true;
    correlation_conclude(s, FAB_CHANGE_NAME, guid, 0, clean_from, clean_from, clean_to, why);
}

/* Sorted by their names, so that a name map under which all are called otherwise costs no pass for each. */
static void find_runs(struct renaming *list, struct renaming **by_name, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        by_name[i] = &list[i];
    qsort(by_name, n, sizeof(struct renaming *), compare_renamings);
    for (uint32_t i = 0; i < n; i++) {
        struct renaming *before = i == 0 ? NULL : by_name[i - 1], *this = by_name[i];
        this->first =
            before == NULL || strcmp(before->from, this->from) != 0 || strcmp(before->to, this->to) != 0;
        if (!this->first)
            before->next = this;
    }
}

/* A run that is no host's renaming at its first HCA is none at the others: what is taken stays taken. */
void correlation_renamed(struct correlation *s)
{
    uint32_t n = 0;
    struct renaming *list = calloc(s->raw->n + 1u, sizeof(*list));
    struct renaming **by_name = calloc(s->raw->n + 1u, sizeof(struct renaming *));

    if (list == NULL || by_name == NULL) {
        s->out.rc = PMIXFAB_ERR_NOMEM;
    } else {
        for (uint32_t i = 0; i < s->raw->n; i++) {
            list[n].raw = i;
            if (host_renamed(s, i, &list[n].from, &list[n].to) && strcmp(list[n].from, list[n].to) != 0)
                n++;
        }
        find_runs(list, by_name, n);
        for (uint32_t i = 0; i < n; i++)
            if (list[i].first)
                rename_host(s, &list[i]);
    }
    free(by_name);
    free(list);
}
