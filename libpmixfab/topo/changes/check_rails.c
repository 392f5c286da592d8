/* check_rails.c - cables in the wrong rail of a rail-optimised fabric. */
#include "topo/changes/finding.h"
#include "topo/plane/units.h"

static void rails_add_finding(struct check *c, const struct fab_plane *plane, const struct fab_stray *stray)
{
    const struct fab_inventory *inv = c->inv;
    const struct fab_device *device = &plane->devices[stray->device];
    const struct fab_port *port = &inv->ports[device->port];
    if (port->peer == FAB_NONE)
        return;
    struct fab_about about =
        check_about_state(fab_about_port(inv, port), inv->nodes[plane->switches[device->sw].node].guid);
    char where[FAB_LINK_TEXT], leaf[FAB_NODE_TEXT];
    fab_link_text(inv, port, where);
    if (stray->sw == FAB_NONE) {
        check_add(c, FAB_CHECK_WRONG_RAIL, about, where,
                  "a leaf of another unit than those of its host's other devices");
        return;
    }
    fab_node_text(inv, &inv->nodes[plane->switches[stray->sw].node], leaf);
    check_add(c, FAB_CHECK_WRONG_RAIL, about, where, "most %s of its unit's hosts are on %s",
              fab_str(inv, inv->nodes[port->node].name), leaf);
}

void check_rails(struct check *c)
{
    for (uint32_t p = 0; p < c->planes.n && c->rc == PMIXFAB_OK; p++) {
        struct fab_units units;
        c->rc = fab_units_find(&c->planes.planes[p], &units);
        for (uint32_t i = 0; c->rc == PMIXFAB_OK && i < units.n_strays; i++)
            rails_add_finding(c, &c->planes.planes[p], &units.strays[i]);
        fab_units_destroy(&units);
    }
}
