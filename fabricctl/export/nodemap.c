/*
 * nodemap.c - node-name-map of OpenSM and the infiniband-diags: a line for each switch and HCA.
 */
#include "fabricctl/export/export.h"

#include <inttypes.h>
#include <string.h>

static void put_mapped(struct ctl_export *x, uint64_t guid, const char *name, const char *more)
{
    if (strchr(name, '"') != NULL || strchr(more, '"') != NULL)
        ctl_export_lost(x, "node 0x%016" PRIx64 ": its name %s has a quote in it, left out", guid, name);
    else
        fprintf(x->out, "0x%016" PRIx64 " \"%s%s%s\"\n", guid, name, more[0] != '\0' ? " " : "", more);
}

enum ctl_exit ctl_export_nodemap(struct ctl_export *x)
{
    for (size_t i = 0; i < x->view->n; i++) {
        const struct pmixfab *fab = x->view->planes[i];
        struct pmixfab_plane plane;
        struct pmixfab_switch sw;
        struct pmixfab_device device;
        uint64_t before = 0;

        if (pmixfab_plane(fab, &plane) != 0)
            return ctl_error("nothing to write: a plane's snapshot contradicts itself");
        for (uint32_t s = 0; s < plane.n_switches; s++)
            if (pmixfab_switch(fab, s, &sw) == 0 && sw.guid != 0)
                put_mapped(x, sw.guid, sw.name, "");
        /* ports of one HCA are neighbours */
        for (uint32_t d = 0; d < plane.n_devices; d++)
            if (pmixfab_device(fab, d, &device) == 0 && device.node_guid != 0 && device.node_guid != before) {
                before = device.node_guid;
                put_mapped(x, device.node_guid, device.host, device.name);
            }
    }
    return CTL_DONE;
}
