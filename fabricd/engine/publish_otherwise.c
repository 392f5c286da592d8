/* publish_otherwise.c - for a comparison: what is served otherwise than the sweep sees it, without a change.
 */
#include "fabricd/engine/update.h"

/* About this node of an inventory, or the cable of this port of it. */
static int verify_tell(struct update *update, enum fab_change_kind kind, const struct fab_inventory *inv,
                       uint32_t node, uint32_t port, const char *const *words)
{
    struct fab_told_end end = {inv->nodes[node].guid, 0}, far = {0, 0};
    if (port != FAB_NONE) {
        const struct fab_port *peer = &inv->ports[inv->ports[port].peer];
        end.port = inv->ports[port].num;
        far = (struct fab_told_end){inv->nodes[peer->node].guid, peer->num};
    }
    return fab_diff_append(&update->otherwise->diff, kind, &inv, 1, end, far, words[0], words[1], words[2]);
}

int update_verify_name(struct update *update, uint64_t guid, const char *why)
{
    static const char *const kept = "kept";
    const char *const words[] = {kept, "not said", why};
    const struct fab_inventory *before = &update->publisher->current;
    const uint32_t node = fab_inventory_find(before, guid);
    if (update->otherwise == NULL || node == FAB_NONE) /* what was lost is told as back */
        return PMIXFAB_OK;
    return verify_tell(update, FAB_CHANGE_NAME, before, node, FAB_NONE, words);
}

int update_verify_cut(struct update *update, fab_cut_fn cut, void *cbdata)
{
    static const char *const words[] = {"down", "there",
                                        "the cable is seen, and served as pulled: it is suppressed"};
    const struct fab_inventory *inv = &update->inv;
    if (update->otherwise == NULL)
        return PMIXFAB_OK;
    int rc = fab_inventory_copy(&update->otherwise->uncut, inv);
    for (uint32_t p = 0; p < inv->n_ports && rc == PMIXFAB_OK; p++)
        if (p < inv->ports[p].peer && inv->ports[p].peer != FAB_NONE &&
            (cut(inv, p, cbdata) || cut(inv, inv->ports[p].peer, cbdata)))
            rc = verify_tell(update, FAB_CHANGE_FLAPPING, inv, inv->ports[p].node, p, words);
    return rc;
}

/* Why it is served as missing: no sweep sees it, or none that leaves out what is suppressed. */
static const char *const *words_for(const struct update *update, uint64_t guid, unsigned num)
{
    static const char *const unseen[] = {"missing", "not seen", "no sweep sees it; its place is kept"};
    static const char *const cut[] = {"missing", "there",
                                      "it is seen, and served as missing: what leads to it is suppressed"};
    const struct fab_inventory *uncut = &update->otherwise->uncut;
    const uint32_t node = fab_inventory_find(uncut, guid);
    const uint32_t port = node == FAB_NONE || num == 0 ? FAB_NONE : fab_inventory_port(uncut, node, num);
    if (num == 0)
        return node != FAB_NONE && fab_node_is_cabled(uncut, &uncut->nodes[node]) ? cut : unseen;
    return port != FAB_NONE && uncut->ports[port].peer != FAB_NONE ? cut : unseen;
}

int update_verify_missing(struct update *update)
{
    const struct fab_inventory *inv = &update->inv, *before = &update->publisher->current;
    int rc = PMIXFAB_OK;
    for (uint32_t i = 0; i < inv->n_nodes && rc == PMIXFAB_OK; i++) {
        const struct fab_node *node = &inv->nodes[i];
        const uint32_t was = node->missing ? fab_inventory_find(before, node->guid) : FAB_NONE;
        if (was != FAB_NONE && before->nodes[was].missing)
            rc = verify_tell(update,
                             node->kind == FAB_SWITCH ? FAB_CHANGE_SWITCH_MISSING : FAB_CHANGE_HOST_MISSING,
                             inv, i, FAB_NONE, words_for(update, node->guid, 0));
    }
    for (uint32_t p = 0; p < inv->n_ports && rc == PMIXFAB_OK; p++) {
        const struct fab_port *port = &inv->ports[p];
        const uint64_t guid = inv->nodes[port->node].guid;
        const uint32_t node =
            port->missing && port->peer != FAB_NONE ? fab_inventory_find(before, guid) : FAB_NONE;
        const uint32_t was = node == FAB_NONE ? FAB_NONE : fab_inventory_port(before, node, port->num);
        if (was != FAB_NONE && before->ports[was].missing)
            rc = verify_tell(update, FAB_CHANGE_PORT_MISSING, inv, port->node, p,
                             words_for(update, guid, port->num));
    }
    return rc;
}
