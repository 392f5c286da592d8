/* compute_devices.c - which devices jobs use. */
#include "fabricd/publish/planes/compute_devices.h"

#include <stdio.h>

#include "topo/base/pattern.h"
#include "topo/join/join.h"

/* What the host calls the port; NULL: it has not said. */
static const char *interface_of(const struct fab_details *details, uint32_t port)
{
    for (uint32_t f = details->n_ports > 0 ? details->first[port] : 0;
         details->n_ports > 0 && f < details->first[port + 1]; f++)
        if (details->facts[f].kind == FAB_FACT_INTERFACE &&
            (details->facts[f].flags & FAB_DETAIL_CHOSEN) != 0)
            return details->pool + details->facts[f].text;
    return NULL;
}

uint32_t compute_devices_mark(struct fab_plane *plane, const struct fab_details *details,
                              const char *patterns)
{
    const struct fab_inventory *inv = plane->inv;
    uint32_t n = 0;
    for (uint32_t i = 0; i < plane->n_devices && patterns != NULL; i++) {
        struct fab_device *device = &plane->devices[i];
        const struct fab_port *port = &inv->ports[device->port];
        const char *name = fab_str(inv, inv->nodes[port->node].name);
        char with_port[320];
        snprintf(with_port, sizeof(with_port), "%s:%u", name, (unsigned)port->num);
        const char *const names[] = {
            name, with_port, interface_of(details, device->port),
            device->sw == FAB_NONE ? NULL : fab_str(inv, inv->nodes[plane->switches[device->sw].node].name)};
        device->compute = fab_pattern_has(patterns, names, sizeof(names) / sizeof(names[0]));
        n += device->compute;
    }
    return n;
}
