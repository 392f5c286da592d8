/* diff_tell.c - a change that is not between two inventories, about a cable. */
#include "topo/diff_internal.h"
#include "topo/text.h"

/* The name under which people look for this node, as the next one in the list; the list's end behind it. */
static size_t add_subject(const struct fab_inventory *inv, const struct fab_node *node, char *list,
                          size_t size)
{
    const char *name = fab_str(inv, node->kind == FAB_HCA ? node->host : node->name);
    size_t n = fab_text_clean(list, size - 1, name, strlen(name), NULL);
    n += n > 0;
    list[n] = '\0';
    return n;
}

int fab_diff_tell_port(struct fab_diff *diff, enum fab_change_kind kind, const struct fab_inventory *inv,
                       uint32_t port, const char *before, const char *after, const char *why)
{
    struct diff_walk walk = {.diff = diff};
    const struct fab_port *end = &inv->ports[port];
    char what[DIFF_WHAT_TEXT], subjects[2 * DIFF_NODE_TEXT] = "";

    size_t n = add_subject(inv, &inv->nodes[end->node], subjects, DIFF_NODE_TEXT);
    if (end->peer == FAB_NONE) {
        diff_port_text(inv, end, what);
    } else {
        diff_link_text(inv, end, what);
        add_subject(inv, &inv->nodes[inv->ports[end->peer].node], subjects + n, DIFF_NODE_TEXT);
    }
    diff_put(&walk, &(struct fab_change){.kind = kind,
                                         .guid = inv->nodes[end->node].guid,
                                         .port = end->num,
                                         .what = what,
                                         .before = (char *)before,
                                         .after = (char *)after,
                                         .why = why,
                                         .subjects = subjects,
                                         .n_raw = 0});
    if (walk.rc == PMIXFAB_OK)
        fab_diff_sort(diff);
    return walk.rc;
}
