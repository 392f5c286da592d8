/* libfabric_facts.c - devices and their facts from libfabric's list of what could be used how. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/libfabric/libfabric.h"

#define MAX_NAME 63 /* of a device */

/* A device that has an item. */
struct device {
    char name[MAX_NAME + 1];
    bool software;
    uint32_t item;
};

struct devices {
    struct device *list;
    uint32_t n, room;
};

/* An entry of the list, its NULL pointers filled in. */
struct entry {
    const struct fi_info *info;
    const char *provider, *domain;
    const struct fi_device_attr *device; /* NULL: not told */
    const struct fi_link_attr *link;
    const struct fi_bus_attr *bus;
    bool software;
};

/* The name of a core provider, in front of the layers that it is wrapped in ("tcp;ofi_rxm"). */
static bool is_provider(const char *provider, const char *name)
{
    size_t len = strcspn(provider, ";");
    return strlen(name) == len && strncasecmp(provider, name, len) == 0;
}

bool libfabric_is_software(const char *provider)
{
    static const char *const software[] = {"tcp", "net", "xnet", "sockets",  "udp", "shm",
                                           "sm2", "lnx", "coll", "off_coll", "self"};
    while (strncmp(provider, "ofi_", 4) == 0 && strchr(provider, ';') != NULL)
        provider = strchr(provider, ';') + 1;
    for (size_t i = 0; i < sizeof(software) / sizeof(software[0]); i++)
        if (is_provider(provider, software[i]))
            return true;
    return strncmp(provider, "ofi_", 4) == 0; /* a layer, and nothing below it */
}

static struct entry read_entry(const struct fi_info *info)
{
    struct entry e = {.info = info, .provider = "", .domain = ""};
    if (info->fabric_attr != NULL && info->fabric_attr->prov_name != NULL)
        e.provider = info->fabric_attr->prov_name;
    if (info->domain_attr != NULL && info->domain_attr->name != NULL)
        e.domain = info->domain_attr->name;
    if (info->nic != NULL) {
        e.device = info->nic->device_attr;
        e.link = info->nic->link_attr;
        e.bus = info->nic->bus_attr;
    }
    e.software = libfabric_is_software(e.provider);
    return e;
}

/*
 * The device that an entry is about. Without a word of the provider it is the domain, which verbs and efa
 * name after the device and the kind of endpoint. A domain that is called as its provider is no device.
 */
static void device_name(const struct entry *e, char out[MAX_NAME + 1])
{
    static const char *const ends[] = {"-xrc", "-dgram", "-dgrm", "-rdm"};
    if (e->device != NULL && e->device->name != NULL && e->device->name[0] != '\0') {
        snprintf(out, MAX_NAME + 1, "%s", e->device->name);
        return;
    }
    snprintf(out, MAX_NAME + 1, "%s", e->domain);
    size_t len = strlen(out);
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]) && !e->software; i++) {
        size_t end = strlen(ends[i]);
        if (len > end && strcmp(out + len - end, ends[i]) == 0) {
            out[len - end] = '\0';
            break;
        }
    }
}

/* "0x101b" of four digits, however many the provider writes. */
static int add_id(struct fab_report *report, uint32_t item, enum fab_fact kind, const char *text)
{
    char *end;
    if (text == NULL || text[0] == '\0')
        return PMIXFAB_OK;
    errno = 0;
    unsigned long value = strtoul(text, &end, 0);
    if (errno != 0 || *end != '\0' || value == 0 || value > 0xffff)
        return PMIXFAB_OK;
    return fact_printf(report, item, kind, "0x%04lx", value);
}

static int libfabric_add_device(const struct entry *e, struct fab_report *report, uint32_t item)
{
    const struct fi_device_attr *device = e->device;
    int rc = fact_add(report, item, FAB_FACT_DRIVER, device->driver);
    if (rc == PMIXFAB_OK)
        rc = fact_add(report, item, FAB_FACT_FIRMWARE, device->firmware);
    if (rc == PMIXFAB_OK)
        rc = add_id(report, item, FAB_FACT_PART_ID, device->device_id);
    /* verbs gives the vendor's number from IEEE, which is not the one of PCI. */
    if (rc == PMIXFAB_OK && !is_provider(e->provider, "verbs"))
        rc = add_id(report, item, FAB_FACT_VENDOR_ID, device->vendor_id);
    return rc;
}

static int add_bus(const struct fi_bus_attr *bus, struct fab_report *report, uint32_t item)
{
    const struct fi_pci_attr *pci = &bus->attr.pci;
    if (bus->bus_type != FI_BUS_PCI)
        return PMIXFAB_OK;
    int rc = fact_add(report, item, FAB_FACT_BUS, "PCI");
    if (rc != PMIXFAB_OK)
        return rc;
    return fact_printf(report, item, FAB_FACT_PCI, "%04x:%02x:%02x:%02x", pci->domain_id, pci->bus_id,
                       pci->device_id, pci->function_id);
}

/* What stands in the link's address depends on the provider: "EFA-fe80::1", a LID, a MAC. */
static int add_link_address(const struct fi_link_attr *link, bool infiniband, struct fab_report *report,
                            uint32_t item)
{
    unsigned char gid[16];
    const char *text = link->address;
    char *end;
    if (text == NULL)
        return PMIXFAB_OK;
    if (strncmp(text, "EFA-", 4) == 0)
        text += 4;
    if (inet_pton(AF_INET6, text, gid) == 1)
        return fact_gid(report, item, gid, infiniband);
    if (link->network_type != NULL && strcasecmp(link->network_type, "OmniPath") == 0) {
        unsigned long lid = strtoul(text, &end, 16);
        return *end != '\0' ? PMIXFAB_OK : fact_printf(report, item, FAB_FACT_LID, "%lu", lid);
    }
    return fact_add(report, item, FAB_FACT_MAC, text);
}

static int add_link(const struct fi_link_attr *link, struct fab_report *report, uint32_t item)
{
    static const char *const states[] = {
        [FI_LINK_UNKNOWN] = "unknown", [FI_LINK_DOWN] = "down", [FI_LINK_UP] = "up"};
    bool infiniband = link->network_type != NULL && strcasestr(link->network_type, "InfiniBand") != NULL;
    bool ethernet = link->network_type != NULL && strcasestr(link->network_type, "Ethernet") != NULL;
    int rc = add_link_address(link, infiniband, report, item);
    if (rc == PMIXFAB_OK)
        rc = fact_printf(report, item, FAB_FACT_MTU, "%zu", link->mtu);
    if (rc == PMIXFAB_OK)
        rc = fact_printf(report, item, FAB_FACT_SPEED, "%zu", link->speed / 1000000);
    if (rc == PMIXFAB_OK && (unsigned)link->state <= FI_LINK_UP)
        rc = fact_add(report, item, FAB_FACT_STATE, states[link->state]);
    if (rc == PMIXFAB_OK && (infiniband || ethernet))
        rc = fact_add(report, item, FAB_FACT_TYPE, infiniband ? "InfiniBand" : "Ethernet");
    return rc;
}

/* The fabrics of socket providers are IP networks: "10.91.0.0/16". */
static int add_ip(const struct entry *e, int family, const void *address, struct fab_report *report,
                  uint32_t item)
{
    const struct in6_addr *v6 = family == AF_INET6 ? address : NULL;
    const char *fabric = e->info->fabric_attr != NULL ? e->info->fabric_attr->name : NULL;
    const char *slash = fabric != NULL ? strrchr(fabric, '/') : NULL;
    char text[INET6_ADDRSTRLEN];
    if (slash == NULL || (v6 != NULL && IN6_IS_ADDR_LINKLOCAL(v6)) ||
        inet_ntop(family, address, text, sizeof(text)) == NULL)
        return PMIXFAB_OK;
    return fact_printf(report, item, FAB_FACT_ADDRESS, "%s%s", text, slash);
}

/* Where a GID begins in a struct sockaddr_ib: behind family, partition and flow. */
#define SOCKADDR_IB_GID 8

static int add_source(const struct entry *e, struct fab_report *report, uint32_t item)
{
    const unsigned char *source = e->info->src_addr;
    size_t size = e->info->src_addrlen;
    bool infiniband =
        e->link != NULL && e->link->network_type != NULL && strcmp(e->link->network_type, "InfiniBand") == 0;
    if (source == NULL)
        return PMIXFAB_OK;
    switch (e->info->addr_format) {
    case FI_SOCKADDR_IN:
        return size < sizeof(struct sockaddr_in)
                   ? PMIXFAB_OK
                   : add_ip(e, AF_INET, source + offsetof(struct sockaddr_in, sin_addr), report, item);
    case FI_SOCKADDR_IN6:
        return size < sizeof(struct sockaddr_in6)
                   ? PMIXFAB_OK
                   : add_ip(e, AF_INET6, source + offsetof(struct sockaddr_in6, sin6_addr), report, item);
    case FI_SOCKADDR_IB:
        return size < SOCKADDR_IB_GID + 16 ? PMIXFAB_OK
                                           : fact_gid(report, item, source + SOCKADDR_IB_GID, infiniband);
    case FI_ADDR_IB_UD:
    case FI_ADDR_EFA:
        return size < 16 ? PMIXFAB_OK : fact_gid(report, item, source, infiniband);
    default:
        return PMIXFAB_OK;
    }
}

static int add_protocol(const struct entry *e, struct fab_report *report, uint32_t item)
{
    if (e->info->ep_attr == NULL || e->info->ep_attr->protocol == FI_PROTO_UNSPEC)
        return PMIXFAB_OK;
    const char *text = fi_tostr(&e->info->ep_attr->protocol, FI_TYPE_PROTOCOL);
    return strncmp(text, "FI_PROTO_", 9) != 0 ? PMIXFAB_OK : fact_add(report, item, FAB_FACT_PROTOCOL, text);
}

/* The item of a device, with its name in it; a new one at the first time. */
static int device_item(struct devices *devices, const char *name, const struct entry *e,
                       enum fact_interface kind, struct fab_report *report, uint32_t *item)
{
    for (uint32_t i = 0; i < devices->n; i++) {
        if (devices->list[i].software == e->software && strcmp(devices->list[i].name, name) == 0) {
            *item = devices->list[i].item;
            return PMIXFAB_OK;
        }
    }
    if (devices->n == devices->room) {
        uint32_t room = devices->room == 0 ? 16 : 2 * devices->room;
        struct device *list = realloc(devices->list, room * sizeof(*list));
        if (list == NULL)
            return PMIXFAB_ERR_NOMEM;
        devices->list = list;
        devices->room = room;
    }
    int rc = fab_report_item(report, FAB_FROM_LIBFABRIC, item);
    if (rc != PMIXFAB_OK)
        return rc;
    struct device *new = &devices->list[devices->n++];
    snprintf(new->name, sizeof(new->name), "%s", name);
    new->software = e->software;
    new->item = *item;
    if (e->software)
        rc = fact_add(report, *item, FAB_FACT_SOFTWARE, "yes");
    if (rc == PMIXFAB_OK && kind == FACT_INTERFACE)
        rc = fact_add(report, *item, FAB_FACT_INTERFACE, name);
    else if (rc == PMIXFAB_OK && !e->software && !is_provider(e->provider, name))
        rc = fact_add(report, *item, FAB_FACT_NAME, name);
    return rc;
}

static int add_entry(const struct entry *e, struct devices *devices,
                     enum fact_interface (*interface)(const char *name), struct fab_report *report)
{
    char name[MAX_NAME + 1];
    uint32_t item;
    device_name(e, name);
    enum fact_interface kind = interface(name);
    if (kind == FACT_LOOPBACK)
        return PMIXFAB_OK;
    int rc = device_item(devices, name, e, kind, report, &item);
    if (rc == PMIXFAB_OK)
        rc = fact_add(report, item, FAB_FACT_PROVIDER, e->provider);
    if (rc == PMIXFAB_OK)
        rc = add_protocol(e, report, item);
    if (rc == PMIXFAB_OK && e->device != NULL)
        rc = libfabric_add_device(e, report, item);
    if (rc == PMIXFAB_OK && e->bus != NULL)
        rc = add_bus(e->bus, report, item);
    if (rc == PMIXFAB_OK && e->link != NULL)
        rc = add_link(e->link, report, item);
    if (rc == PMIXFAB_OK)
        rc = add_source(e, report, item);
    return rc;
}

int libfabric_report(const struct fi_info *list, enum fact_interface (*interface)(const char *name),
                     struct fab_report *report)
{
    struct devices devices = {0};
    int rc = PMIXFAB_OK;
    for (const struct fi_info *info = list; info != NULL && rc == PMIXFAB_OK; info = info->next) {
        const struct entry e = read_entry(info);
        rc = add_entry(&e, &devices, interface, report);
    }
    free(devices.list);
    return rc;
}
