/* hwloc_place.c - where in the machine a device is. */
#include <math.h>

#include "probes/hwloc/hwloc_priv.h"
#include "topo/base/cpus.h"

#define MAX_BRIDGES 32 /* one above the other */

static bool is_pci_bridge(hwloc_obj_t obj)
{
    return obj != NULL && obj->type == HWLOC_OBJ_BRIDGE &&
           obj->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI;
}

/*
 * A link of PCI Express has one device at its end, number 0. So only the bus inside a switch has bridges with
 * other numbers.
 */
static bool is_inside_switch(hwloc_obj_t above)
{
    for (hwloc_obj_t child = above->io_first_child; child != NULL; child = child->next_sibling) {
        if (is_pci_bridge(child) && child->attr->bridge.upstream.pci.dev != 0)
            return true;
    }
    return false;
}

hwloc_obj_t hwloc_switch_above(hwloc_obj_t pci)
{
    hwloc_obj_t chain[MAX_BRIDGES]; /* from the device upwards */
    unsigned n = 0;
    for (hwloc_obj_t at = pci->parent; is_pci_bridge(at) && n < MAX_BRIDGES; at = at->parent)
        chain[n++] = at;
    /* Where the root port is hidden, as in virtual machines, the topmost bridge is the switch itself. */
    if (n >= 2 && is_inside_switch(chain[n - 1]))
        return chain[n - 1];
    /* Root port, upstream port, downstream port. A card with one bridge of its own has no third. */
    return n >= 3 ? chain[n - 2] : NULL;
}

/* A list that is too long for a fact is left out: no machine numbers its processors so. A damaged recording
 * may have an infinite set. */
static void cpus_fact(hwloc_const_bitmap_t set, enum fab_fact kind, struct probe_item *item)
{
    struct fab_cpus cpus = {{0}};
    char text[FAB_REPORT_MAX_TEXT + 1];
    for (int cpu = hwloc_bitmap_first(set); cpu >= 0 && cpu < FAB_CPUS_MAX; cpu = hwloc_bitmap_next(set, cpu))
        fab_cpus_add(&cpus, (unsigned)cpu);
    if (fab_cpus_text(&cpus, text, sizeof(text)))
        probe_item_fact(item, kind, "%s", text);
}

/*
 * The NUMA node of what the device hangs on. Several: none, unless they are different memories of the same
 * processors (a socket's DRAM and its HBM): then the first. False: none.
 */
static bool numa_fact(hwloc_topology_t machine, hwloc_obj_t near, struct probe_item *item)
{
    unsigned number;
    hwloc_obj_t first = NULL;
    hwloc_bitmap_foreach_begin(number, near->nodeset)
    {
        hwloc_obj_t node = hwloc_get_numanode_obj_by_os_index(machine, number);
        if (node == NULL)
            continue;
        if (first == NULL)
            first = node;
        else if (!hwloc_bitmap_isequal(node->cpuset, first->cpuset))
            return false;
    }
    hwloc_bitmap_foreach_end();
    if (first != NULL)
        probe_item_fact(item, FAB_FACT_NUMA, "%u", first->os_index);
    return first != NULL;
}

static bool package_fact(hwloc_topology_t machine, hwloc_obj_t near, struct probe_item *item)
{
    for (hwloc_obj_t package = hwloc_get_next_obj_by_type(machine, HWLOC_OBJ_PACKAGE, NULL); package != NULL;
         package = hwloc_get_next_obj_by_type(machine, HWLOC_OBJ_PACKAGE, package)) {
        if (package->os_index != HWLOC_UNKNOWN_INDEX &&
            hwloc_bitmap_isincluded(near->cpuset, package->cpuset)) {
            probe_item_fact(item, FAB_FACT_PACKAGE, "%u", package->os_index);
            cpus_fact(package->cpuset, FAB_FACT_PACKAGE_CPUS, item);
            return true;
        }
    }
    return false;
}

void hwloc_place_facts(hwloc_topology_t machine, hwloc_obj_t device, hwloc_obj_t pci, struct probe_item *item)
{
    hwloc_obj_t near = hwloc_get_non_io_ancestor_obj(machine, device);
    bool placed = near != NULL && near->nodeset != NULL && hwloc_bitmap_weight(near->nodeset) > 0 &&
                  numa_fact(machine, near, item);
    if (near != NULL && near->cpuset != NULL && hwloc_bitmap_weight(near->cpuset) > 0) {
        placed |= package_fact(machine, near, item);
        if (placed) /* what hangs on the machine as a whole is near to no processor more than to others */
            cpus_fact(near->cpuset, FAB_FACT_CPUS, item);
    }
    if (pci == NULL)
        return;
    hwloc_obj_t above = hwloc_switch_above(pci);
    if (above != NULL) {
        const struct hwloc_pcidev_attr_s *at = &above->attr->bridge.upstream.pci;
        probe_item_pci(item, FAB_FACT_SWITCH, at->domain, at->bus, at->dev, at->func);
    }
    double gbytes = pci->attr->pcidev.linkspeed; /* per second, 0: not known */
    if (gbytes > 0 && gbytes < 100000)
        probe_item_fact(item, FAB_FACT_SLOT_SPEED, "%ld", lround(gbytes * 8000));
}
