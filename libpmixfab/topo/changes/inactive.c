/* inactive.c - what is seen again and cannot be used yet. */
#include "topo/changes/correlate.h"

static bool is_waiting(const struct fab_port *port)
{
    return port->state == FAB_PORT_INIT || port->state == FAB_PORT_ARMED;
}

/* Does it wait for a subnet manager: this port's cable, or where there is no port, all cables of the node? */
static bool waits_for_manager(const struct fab_inventory *inv, uint64_t guid, uint32_t num)
{
    const uint32_t n = fab_inventory_find(inv, guid);
    uint32_t waiting = 0;
    if (n == FAB_NONE)
        return false;
    const struct fab_node *node = &inv->nodes[n];
    for (uint32_t p = node->first_port; p < node->first_port + node->n_ports; p++) {
        const struct fab_port *port = &inv->ports[p];
        if (port->peer == FAB_NONE || (num != 0 && port->num != num))
            continue;
        if (!is_waiting(port) && !is_waiting(&inv->ports[port->peer]))
            return false;
        waiting++;
    }
    return waiting > 0;
}

void fab_diff_mark_inactive(const struct fab_inventory *after, struct fab_diff *diff)
{
    for (uint32_t i = 0; i < diff->n; i++) {
        struct fab_change *change = &diff->changes[i];
        const bool node = change->kind == FAB_CHANGE_HOST_BACK || change->kind == FAB_CHANGE_SWITCH_BACK;
        const bool port = change->kind == FAB_CHANGE_PORT_BACK || change->kind == FAB_CHANGE_LINK_BACK;
        if ((!node && !port) || !waits_for_manager(after, change->guid, node ? 0 : change->port))
            continue;
        change->kind = FAB_CHANGE_INACTIVE;
        change->why = "it is seen again, and no subnet manager answers that would make it active";
    }
    fab_diff_sort(diff);
}
