/* verbs_sysfs.c - what stands of an RDMA device below /sys/class/infiniband. */
#include <dirent.h>
#include <limits.h>
#include <net/if.h>
#include <string.h>
#include <unistd.h>

#include "probes/core/sysfs.h"
#include "probes/verbs/verbs_priv.h"
#include "topo/base/natural.h"
#include "topo/model/inventory.h"

static void pci_facts(const char *folder, const char *address, struct probe_item *item)
{
    unsigned domain, bus, device, function;
    int end = -1;
    if (sscanf(address, "%8x:%2x:%2x.%1x%n", &domain, &bus, &device, &function, &end) == 4 && end > 0 &&
        address[end] == '\0')
        probe_item_pci(item, FAB_FACT_PCI, domain, bus, device, function);
    unsigned vendor = sysfs_number(folder, "device/vendor");
    if (vendor != 0)
        probe_item_fact(item, FAB_FACT_VENDOR_ID, "0x%04x", vendor);
}

void verbs_sysfs_facts(const char *folder, struct probe_item *item)
{
    char name[NAME_MAX + 1], bus[64];
    if (access(folder, F_OK) != 0)
        return;
    if (!sysfs_link(folder, "device", name, sizeof(name))) { /* rxe and siw: over any network interface */
        probe_item_fact(item, FAB_FACT_BUS, "virtual");
        probe_item_fact(item, FAB_FACT_SOFTWARE, "yes");
        return;
    }
    if (!sysfs_link(folder, "device/subsystem", bus, sizeof(bus)))
        bus[0] = '\0';
    if (strcmp(bus, "pci") == 0) {
        probe_item_fact(item, FAB_FACT_BUS, "PCI");
        pci_facts(folder, name, item);
    } else if (bus[0] != '\0') {
        probe_item_fact(item, FAB_FACT_BUS, "%s", bus);
    }
    if (sysfs_link(folder, "device/driver", name, sizeof(name)))
        probe_item_fact(item, FAB_FACT_DRIVER, "%s", name);
}

/* Interfaces of a virtual function's other end ("pf0vf3"), and of a partition ("ib0.8001"), stand beside that
 * of the port. */
static bool is_of_port(const char *net, const char *name, unsigned port, unsigned n_ports)
{
    char folder[PATH_MAX], text[64];
    if ((size_t)snprintf(folder, sizeof(folder), "%s/%s", net, name) >= sizeof(folder))
        return false;
    if (sysfs_line(folder, "parent", text, sizeof(text)))
        return false;
    if (sysfs_line(folder, "phys_port_name", text, sizeof(text)) &&
        (strstr(text, "vf") != NULL || strstr(text, "sf") != NULL))
        return false;
    if (n_ports == 1) /* some drivers number the ports of a card, whose functions are devices of their own */
        return true;
    unsigned number = sysfs_number(folder, "dev_port"), id = sysfs_number(folder, "dev_id");
    return (number > id ? number : id) + 1 == port;
}

/* The first of them by name, so that it is always the same one. */
static bool interface_of_device(const char *folder, unsigned port, unsigned n_ports, char *name, size_t size)
{
    char net[PATH_MAX];
    bool found = false;
    if ((size_t)snprintf(net, sizeof(net), "%s/device/net", folder) >= sizeof(net))
        return false;
    DIR *dir = opendir(net);
    if (dir == NULL)
        return false;
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (entry->d_name[0] == '.' || strlen(entry->d_name) >= size ||
            !is_of_port(net, entry->d_name, port, n_ports))
            continue;
        if (!found || fab_natural_cmp(entry->d_name, name) < 0)
            snprintf(name, size, "%s", entry->d_name);
        found = true;
    }
    closedir(dir);
    return found;
}

bool verbs_sysfs_interface(const char *folder, unsigned port, unsigned n_ports, char *name, size_t size)
{
    char file[64];
    if (interface_of_device(folder, port, n_ports, name, size))
        return true;
    /* A device of software hangs on an interface, and its GIDs come from there. */
    snprintf(file, sizeof(file), "ports/%u/gid_attrs/ndevs/0", port);
    return sysfs_line(folder, file, name, size) || sysfs_line(folder, "parent", name, size);
}

/* "800 Gb/sec (4X XDR)" */
enum fab_speed verbs_sysfs_speed(const char *folder, unsigned port)
{
    char file[64], text[64];
    snprintf(file, sizeof(file), "ports/%u/rate", port);
    if (!sysfs_line(folder, file, text, sizeof(text)))
        return FAB_SPEED_UNKNOWN;
    char *open = strchr(text, '('), *close = strchr(text, ')');
    char *word = open == NULL ? NULL : strchr(open, ' ');
    return word == NULL || close == NULL || close < word
               ? FAB_SPEED_UNKNOWN
               : fab_speed_parse(word + 1, (size_t)(close - word - 1));
}
