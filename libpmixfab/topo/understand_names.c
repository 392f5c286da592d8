/* understand_names.c - hosts and switches that are called otherwise. */
#include <string.h>

#include "topo/text.h"
#include "topo/understand_priv.h"

/* ---- who has a name -------------------------------------------------------------------------------- */

/* The name under which people look for a node. */
static const char *name_of(const struct fab_inventory *inv, uint32_t node)
{
    return fab_str(inv, is_kind(inv, node, FAB_HCA) ? inv->nodes[node].host : inv->nodes[node].name);
}

static bool has_name(const struct fab_inventory *inv, const char *name)
{
    for (uint32_t i = 0; i < inv->n_nodes; i++) {
        if (strcmp(name_of(inv, i), name) == 0)
            return true;
    }
    return false;
}

bool story_renamed_node(const struct story *s, const char *was, uint32_t after)
{
    const char *name = name_of(s->after, after);
    return *was != '\0' && *name != '\0' && strcmp(was, name) != 0 && !has_name(s->after, was) &&
           !has_name(s->before, name);
}

bool story_switch_renamed(const struct story *s, uint64_t guid)
{
    uint32_t b = fab_inventory_find(s->before, guid), a = fab_inventory_find(s->after, guid);
    return b != FAB_NONE && a != FAB_NONE && is_kind(s->after, a, FAB_SWITCH) &&
           story_renamed_node(s, name_of(s->before, b), a);
}

/* ---- hosts by another name ------------------------------------------------------------------------ */

/* A change of an HCA's name, as far as that is its host's. */
static bool host_renamed(const struct story *s, uint32_t raw, const char **before, const char **after)
{
    const struct fab_change *change = &s->raw->changes[raw];
    if (change->kind != FAB_CHANGE_NAME || s->taken[raw])
        return false;
    uint32_t b = fab_inventory_find(s->before, change->guid), a = fab_inventory_find(s->after, change->guid);
    if (b == FAB_NONE || a == FAB_NONE || !is_kind(s->after, a, FAB_HCA) ||
        strcmp(fab_str(s->before, s->before->nodes[b].name), fab_str(s->after, s->after->nodes[a].name)) != 0)
        return false;
    *before = fab_str(s->before, s->before->nodes[b].host);
    *after = fab_str(s->after, s->after->nodes[a].host);
    return true;
}

/* The host's last HCA with its old name went, and the first one with its new name came. */
static void rename_host(struct story *s, uint32_t raw, const char *from, const char *to)
{
    const char *before, *after;
    char clean_from[DIFF_NODE_TEXT], clean_to[DIFF_NODE_TEXT];
    uint32_t lost = story_take_host(s, FAB_CHANGE_HOST_LOST, from);
    uint32_t added = lost == FAB_NONE ? FAB_NONE : story_take_host(s, FAB_CHANGE_HOST_ADDED, to);

    if (added == FAB_NONE) { /* a part of a host: told as it is */
        if (lost != FAB_NONE)
            s->taken[lost] = false;
        s->n_taken = 0;
        return;
    }
    uint64_t guid = s->raw->changes[raw].guid;
    for (uint32_t i = raw; i < s->raw->n && s->raw->changes[i].kind == FAB_CHANGE_NAME; i++) {
        if (host_renamed(s, i, &before, &after) && strcmp(before, from) == 0 && strcmp(after, to) == 0)
            story_take_this(s, i);
    }
    story_subject(s, from);
    story_subject(s, to);
    fab_text_clean(clean_from, sizeof(clean_from), from, strlen(from), NULL);
    fab_text_clean(clean_to, sizeof(clean_to), to, strlen(to), NULL);
    s->past.renamed = true;
    story_tell(s, FAB_CHANGE_NAME, guid, 0, clean_from, clean_from, clean_to,
               "the same GUIDs under another host's name");
}

void story_renamed(struct story *s)
{
    const char *before, *after;
    for (uint32_t i = 0; i < s->raw->n; i++) {
        if (host_renamed(s, i, &before, &after) && strcmp(before, after) != 0)
            rename_host(s, i, before, after);
    }
}
