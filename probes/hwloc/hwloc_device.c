/*
 * hwloc_device.c - one network or OpenFabrics device as facts.
 *
 * hwloc keeps what it read in sysfs as pairs of texts: "Address" of an interface, "NodeGUID", "SysImageGUID",
 * "Port1State", "Port1LID", "Port1GID0" of an RDMA device.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "probes/hwloc/hwloc_priv.h"

#define MAX_PORT      254
#define PCI_ETHERNET  0x0200 /* class */
#define PCI_FABRIC    0x0207
#define IPOIB_ADDRESS 20 /* bytes: 4 of a queue pair, and the port's GID */

/* "248a:0703:001e:39fe"; 0: not that. */
static uint64_t guid_parse(const char *text)
{
    uint64_t guid = 0;
    unsigned digits = 0;
    for (; text != NULL && *text != '\0'; text++) {
        char digit[2] = {*text, '\0'};
        if (*text == ':')
            continue;
        if (!isxdigit((unsigned char)*text) || ++digits > 16)
            return 0;
        guid = guid << 4 | strtoul(digit, NULL, 16);
    }
    return digits == 16 ? guid : 0;
}

/* "00:21:5E:c4:86:1a", of any length; 0: not that. Returns the number of bytes. */
static unsigned address_parse(const char *text, uint8_t *bytes, unsigned max)
{
    unsigned n = 0;
    while (text != NULL && n < max && isxdigit((unsigned char)text[0]) && isxdigit((unsigned char)text[1])) {
        char byte[3] = {text[0], text[1], '\0'};
        bytes[n++] = (uint8_t)strtoul(byte, NULL, 16);
        if (text[2] == '\0')
            return n;
        if (text[2] != ':')
            return 0;
        text += 3;
    }
    return 0;
}

/* The PCI device that an OS device is a part of; NULL: none. */
static hwloc_obj_t hwloc_pci_of(hwloc_obj_t device)
{
    hwloc_obj_t at = device->parent;
    while (at != NULL && at->type == HWLOC_OBJ_OS_DEVICE)
        at = at->parent;
    return at != NULL && at->type == HWLOC_OBJ_PCI_DEVICE ? at : NULL;
}

/* What all items of a device share. */
static void common_facts(hwloc_topology_t machine, hwloc_obj_t device, hwloc_obj_t pci,
                         struct probe_item *item)
{
    if (pci != NULL) {
        const struct hwloc_pcidev_attr_s *at = &pci->attr->pcidev;
        const char *vendor = hwloc_obj_get_info_by_name(pci, "PCIVendor");
        const char *part = hwloc_obj_get_info_by_name(pci, "PCIDevice");
        probe_item_fact(item, FAB_FACT_BUS, "PCI");
        probe_item_pci(item, FAB_FACT_PCI, at->domain, at->bus, at->dev, at->func);
        probe_item_fact(item, FAB_FACT_VENDOR_ID, "0x%04x", at->vendor_id);
        probe_item_fact(item, FAB_FACT_PART_ID, "0x%04x", at->device_id);
        if (vendor != NULL)
            probe_item_fact(item, FAB_FACT_VENDOR, "%s", vendor);
        if (part != NULL)
            probe_item_fact(item, FAB_FACT_PART, "%s", part);
    } else if (device->parent->type != HWLOC_OBJ_BRIDGE) {
        probe_item_fact(item, FAB_FACT_BUS, "virtual");
    } /* else it hangs on a PCI device of another kind, as a USB controller, which is not kept */
    hwloc_place_facts(machine, device, pci, item);
}

/* The address of an interface is a MAC, or, with InfiniBand, holds the GUID of its port. */
static void interface_facts(hwloc_obj_t device, hwloc_obj_t pci, struct probe_item *item)
{
    uint8_t address[IPOIB_ADDRESS] = {0};
    unsigned class = pci == NULL ? 0 : pci->attr->pcidev.class_id;
    const char *port = hwloc_obj_get_info_by_name(device, "Port");
    unsigned n = address_parse(hwloc_obj_get_info_by_name(device, "Address"), address, sizeof(address));
    probe_item_fact(item, FAB_FACT_INTERFACE, "%s", device->name);
    if (n == IPOIB_ADDRESS) {
        probe_item_fact(item, FAB_FACT_TYPE, "InfiniBand");
        probe_item_guid(item, FAB_FACT_PORT_GUID, probe_be(address + 12, 8));
        if (port != NULL)
            probe_item_fact(item, FAB_FACT_PORT, "%s", port);
    } else if (n == 6) {
        static const uint8_t zero[6];
        if (class == PCI_ETHERNET || class == PCI_FABRIC)
            probe_item_fact(item, FAB_FACT_TYPE, "Ethernet");
        if (memcmp(address, zero, 6) != 0)
            probe_item_fact(item, FAB_FACT_MAC, "%02x:%02x:%02x:%02x:%02x:%02x", address[0], address[1],
                            address[2], address[3], address[4], address[5]);
    }
}

/* "Port12State" and "State" is 12; 0: the name is none of these. */
static unsigned hwloc_port_number(const char *name, const char *what)
{
    unsigned port = 0;
    if (strncmp(name, "Port", 4) != 0)
        return 0;
    for (name += 4; isdigit((unsigned char)*name) && port <= MAX_PORT; name++)
        port = 10 * port + (unsigned)(*name - '0');
    return port <= MAX_PORT && strncmp(name, what, strlen(what)) == 0 ? port : 0;
}

/*
 * The first GID of an InfiniBand port ends with the port's GUID. With RoCE and other networks it is made of a
 * MAC (ff:fe in the middle) or an IP address; a LID tells that it is InfiniBand.
 */
static uint64_t port_guid(const uint8_t gid[16], unsigned long lid)
{
    bool of_mac = gid[11] == 0xff && gid[12] == 0xfe;
    bool of_address = gid[0] != 0xfe && lid == 0;
    return lid != 0 || !(of_mac || of_address) ? probe_be(gid + 8, 8) : 0;
}

static void state_fact(struct probe_item *item, const char *text)
{
    unsigned long state = strtoul(text, NULL, 10);
    probe_item_fact(item, FAB_FACT_STATE, "%s",
                    state == 0 || state > 5 ? "unknown"
                    : state == 4            ? "up"
                                            : "down");
}

static void hwloc_port_facts(hwloc_obj_t device, unsigned port, struct probe_item *item)
{
    unsigned long lid = 0;
    uint8_t gid[16], first[16];
    bool has_first = false;
    for (unsigned i = 0; i < device->infos_count; i++) {
        const char *name = device->infos[i].name, *value = device->infos[i].value;
        if (hwloc_port_number(name, "State") == port) {
            state_fact(item, value);
        } else if (hwloc_port_number(name, "LID") == port) {
            lid = strtoul(value, NULL, 0);
        } else if (hwloc_port_number(name, "GID") == port && inet_pton(AF_INET6, value, gid) == 1) {
            probe_item_gid(item, gid);
            if (strcmp(strstr(name, "GID"), "GID0") == 0) {
                memcpy(first, gid, sizeof(first));
                has_first = true;
            }
        }
    }
    probe_item_fact(item, FAB_FACT_PORT, "%u", port);
    if (lid != 0) {
        probe_item_fact(item, FAB_FACT_LID, "%lu", lid);
        probe_item_fact(item, FAB_FACT_TYPE, "InfiniBand");
    }
    if (has_first)
        probe_item_guid(item, FAB_FACT_PORT_GUID, port_guid(first, lid));
}

static void rdma_facts(hwloc_obj_t device, struct probe_item *item)
{
    probe_item_fact(item, FAB_FACT_NAME, "%s", device->name);
    probe_item_guid(item, FAB_FACT_NODE_GUID, guid_parse(hwloc_obj_get_info_by_name(device, "NodeGUID")));
    probe_item_guid(item, FAB_FACT_SYSTEM_GUID,
                    guid_parse(hwloc_obj_get_info_by_name(device, "SysImageGUID")));
}

/* The next port behind `after` that is spoken of; 0: none. */
static unsigned next_port(hwloc_obj_t device, unsigned after)
{
    unsigned next = 0;
    for (unsigned i = 0; i < device->infos_count; i++) {
        unsigned port = hwloc_port_number(device->infos[i].name, "");
        if (port > after && (next == 0 || port < next))
            next = port;
    }
    return next;
}

int hwloc_device_report(hwloc_topology_t machine, hwloc_obj_t device, const struct probe_sink *sink,
                        struct fab_report *report)
{
    struct probe_item item;
    hwloc_obj_t pci = hwloc_pci_of(device);
    bool rdma = device->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS;
    unsigned port = rdma ? next_port(device, 0) : 0;
    do {
        probe_item_open(&item, FAB_FROM_HWLOC, device->name, sink, report);
        if (rdma)
            rdma_facts(device, &item);
        else
            interface_facts(device, pci, &item);
        if (port != 0)
            hwloc_port_facts(device, port, &item);
        common_facts(machine, device, pci, &item);
        port = port == 0 ? 0 : next_port(device, port);
    } while (port != 0 && item.rc == PMIXFAB_OK);
    return item.rc;
}
