/* libfabric.c - the probe `libfabric`: the providers of libfabric that can use the devices of this host. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/core/facts.h"
#include "probes/core/record.h"
#include "probes/libfabric/libfabric.h"

/* ---- devices and their facts, from libfabric's list of usable combinations ---- */

#define MAX_NAME 63 /* of a device */

/* A device with an item. */
struct device {
    char name[MAX_NAME + 1];
    bool software;
    uint32_t item;
};

struct devices {
    struct device *list; /* room for one for each entry */
    uint32_t n;
};

/* An entry of the list, with its NULL pointers replaced. */
struct entry {
    const struct fi_info *info;
    const char *provider, *domain;
    const struct fi_device_attr *device; /* NULL: unknown */
    const struct fi_link_attr *link;
    const struct fi_bus_attr *bus;
    bool software;
};

/* The name of a core provider comes before the layers around it ("tcp;ofi_rxm"). */
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
    return strncmp(provider, "ofi_", 4) == 0; /* a layer without a provider below it */
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
 * Find the device of an entry. If the provider does not name it, it is the domain, which verbs and efa name
 * after the device and the kind of endpoint. A domain with the provider's name is not a device.
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

/* Add "0x101b" with four digits, for any number of digits from the provider. */
static void add_id(struct probe_item *item, enum fab_fact kind, const char *text)
{
    char *end;
    if (text == NULL || text[0] == '\0')
        return;
    errno = 0;
    unsigned long value = strtoul(text, &end, 0);
    if (errno == 0 && *end == '\0' && value > 0 && value <= 0xffff)
        fact_printf(item, kind, "0x%04lx", value);
}

static void libfabric_add_device(const struct entry *e, struct probe_item *item)
{
    const struct fi_device_attr *device = e->device;
    fact_add(item, FAB_FACT_DRIVER, device->driver);
    fact_add(item, FAB_FACT_FIRMWARE, device->firmware);
    add_id(item, FAB_FACT_PART_ID, device->device_id);
    /* verbs has the vendor's number of IEEE, which is not that of PCI */
    if (!is_provider(e->provider, "verbs"))
        add_id(item, FAB_FACT_VENDOR_ID, device->vendor_id);
}

static void add_bus(const struct fi_bus_attr *bus, struct probe_item *item)
{
    const struct fi_pci_attr *pci = &bus->attr.pci;
    if (bus->bus_type != FI_BUS_PCI)
        return;
    fact_add(item, FAB_FACT_BUS, "PCI");
    fact_printf(item, FAB_FACT_PCI, "%04x:%02x:%02x:%02x", pci->domain_id, pci->bus_id, pci->device_id,
                pci->function_id);
}

/* Add the link's address; its content depends on the provider: "EFA-fe80::1", a LID, a MAC. */
static void add_link_address(const struct fi_link_attr *link, bool infiniband, struct probe_item *item)
{
    unsigned char gid[16];
    const char *text = link->address;
    char *end;
    if (text == NULL)
        return;
    if (strncmp(text, "EFA-", 4) == 0)
        text += 4;
    if (inet_pton(AF_INET6, text, gid) == 1) {
        fact_gid(item, gid, infiniband);
    } else if (link->network_type != NULL && strcasecmp(link->network_type, "OmniPath") == 0) {
        unsigned long lid = strtoul(text, &end, 16);
        if (*end == '\0')
            fact_printf(item, FAB_FACT_LID, "%lu", lid);
    } else {
        fact_add(item, FAB_FACT_MAC, text);
    }
}

static void add_link(const struct fi_link_attr *link, struct probe_item *item)
{
    static const char *const states[] = {
        [FI_LINK_UNKNOWN] = "unknown", [FI_LINK_DOWN] = "down", [FI_LINK_UP] = "up"};
    bool infiniband = link->network_type != NULL && strcasestr(link->network_type, "InfiniBand") != NULL;
    bool ethernet = link->network_type != NULL && strcasestr(link->network_type, "Ethernet") != NULL;
    add_link_address(link, infiniband, item);
    fact_printf(item, FAB_FACT_MTU, "%zu", link->mtu);
    fact_printf(item, FAB_FACT_SPEED, "%zu", link->speed / 1000000);
    if ((unsigned)link->state <= FI_LINK_UP)
        fact_add(item, FAB_FACT_STATE, states[link->state]);
    if (infiniband || ethernet)
        fact_add(item, FAB_FACT_TYPE, infiniband ? "InfiniBand" : "Ethernet");
}

/* Fabrics of socket providers are IP networks: "10.91.0.0/16". */
static void add_ip(const struct entry *e, int family, const void *address, struct probe_item *item)
{
    const struct in6_addr *v6 = family == AF_INET6 ? address : NULL;
    const char *fabric = e->info->fabric_attr != NULL ? e->info->fabric_attr->name : NULL;
    const char *slash = fabric != NULL ? strrchr(fabric, '/') : NULL;
    char text[INET6_ADDRSTRLEN];
    if (slash != NULL && !(v6 != NULL && IN6_IS_ADDR_LINKLOCAL(v6)) &&
        inet_ntop(family, address, text, sizeof(text)) != NULL)
        fact_printf(item, FAB_FACT_ADDRESS, "%s%s", text, slash);
}

/* Offset of the GID in a struct sockaddr_ib: after family, partition and flow. */
#define SOCKADDR_IB_GID 8

static void add_source(const struct entry *e, struct probe_item *item)
{
    const unsigned char *source = e->info->src_addr;
    size_t size = source != NULL ? e->info->src_addrlen : 0;
    bool infiniband =
        e->link != NULL && e->link->network_type != NULL && strcmp(e->link->network_type, "InfiniBand") == 0;
    switch (e->info->addr_format) {
    case FI_SOCKADDR_IN:
        if (size >= sizeof(struct sockaddr_in))
            add_ip(e, AF_INET, source + offsetof(struct sockaddr_in, sin_addr), item);
        break;
    case FI_SOCKADDR_IN6:
        if (size >= sizeof(struct sockaddr_in6))
            add_ip(e, AF_INET6, source + offsetof(struct sockaddr_in6, sin6_addr), item);
        break;
    case FI_SOCKADDR_IB:
        if (size >= SOCKADDR_IB_GID + 16)
            fact_gid(item, source + SOCKADDR_IB_GID, infiniband);
        break;
    case FI_ADDR_IB_UD:
    case FI_ADDR_EFA:
        if (size >= 16)
            fact_gid(item, source, infiniband);
        break;
    default:
        break;
    }
}

static void add_protocol(const struct entry *e, struct probe_item *item)
{
    if (e->info->ep_attr == NULL || e->info->ep_attr->protocol == FI_PROTO_UNSPEC)
        return;
    const char *text = fi_tostr(&e->info->ep_attr->protocol, FI_TYPE_PROTOCOL);
    if (strncmp(text, "FI_PROTO_", 9) == 0)
        fact_add(item, FAB_FACT_PROTOCOL, text);
}

/* Open the item of a device, with its name; a new one the first time. */
static void device_item(struct devices *devices, const char *name, const struct entry *e,
                        enum fact_interface kind, struct fab_report *report, struct probe_item *item)
{
    *item = (struct probe_item){.report = report};
    for (uint32_t i = 0; i < devices->n; i++) {
        if (devices->list[i].software == e->software && strcmp(devices->list[i].name, name) == 0) {
            item->index = devices->list[i].item;
            return;
        }
    }
    probe_item_open(item, FAB_FROM_LIBFABRIC, name, NULL, report);
    if (item->rc != PMIXFAB_OK)
        return;
    struct device *new = &devices->list[devices->n++];
    snprintf(new->name, sizeof(new->name), "%s", name);
    new->software = e->software;
    new->item = item->index;
    if (e->software)
        fact_add(item, FAB_FACT_SOFTWARE, "yes");
    if (kind == FACT_INTERFACE)
        fact_add(item, FAB_FACT_INTERFACE, name);
    else if (!e->software && !is_provider(e->provider, name))
        fact_add(item, FAB_FACT_NAME, name);
}

static int add_entry(const struct entry *e, struct devices *devices,
                     enum fact_interface (*interface)(const char *name), struct fab_report *report)
{
    char name[MAX_NAME + 1];
    struct probe_item item;
    device_name(e, name);
    enum fact_interface kind = interface(name);
    if (kind == FACT_LOOPBACK)
        return PMIXFAB_OK;
    device_item(devices, name, e, kind, report, &item);
    fact_add(&item, FAB_FACT_PROVIDER, e->provider);
    add_protocol(e, &item);
    if (e->device != NULL)
        libfabric_add_device(e, &item);
    if (e->bus != NULL)
        add_bus(e->bus, &item);
    if (e->link != NULL)
        add_link(e->link, &item);
    add_source(e, &item);
    return item.rc;
}

int libfabric_report(const struct fi_info *list, enum fact_interface (*interface)(const char *name),
                     struct fab_report *report)
{
    struct devices devices = {0};
    size_t n_entries = 0;
    for (const struct fi_info *info = list; info != NULL; info = info->next)
        n_entries++;
    devices.list = calloc(n_entries + 1, sizeof(*devices.list));
    int rc = devices.list == NULL ? PMIXFAB_ERR_NOMEM : PMIXFAB_OK;
    for (const struct fi_info *info = list; info != NULL && rc == PMIXFAB_OK; info = info->next) {
        const struct entry e = read_entry(info);
        rc = add_entry(&e, &devices, interface, report);
    }
    free(devices.list);
    return rc;
}

/*
 * ---- the probe `libfabric`: the providers of libfabric that can use the devices of this host.
 *
 * All is requested at once and without hints, which would filter the list. Most of the time is spent before
 * that, while the libraries of the providers are loaded.
 */

/* Old enough for every library with data about network cards. */
#define API_VERSION FI_VERSION(1, 9)

static int get_list(struct fi_info **list, struct fab_err *err)
{
    setenv("FI_LOG_LEVEL", "none", 0);
    int rc = fi_getinfo(API_VERSION, NULL, NULL, 0, NULL, list);
    if (rc == -FI_ENODATA || (rc == 0 && *list == NULL))
        return fab_fail(err, PMIXFAB_ERR_UNSUPPORTED, "libfabric: no provider can use anything on this host");
    if (rc == -FI_ENOMEM)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "libfabric: out of memory");
    return rc == 0 ? PMIXFAB_OK : fab_fail(err, PMIXFAB_ERR_IO, "libfabric: %s", fi_strerror(-rc));
}

static int libfabric_scan(const struct probe_config *config, const struct probe_sink *sink,
                          struct fab_report *report, struct fab_err *err)
{
    struct fi_info *list = NULL;
    (void)sink;
    if (config->arg != NULL)
        return record_scan(config->arg, FAB_FROM_LIBFABRIC, report, err);
    int rc = get_list(&list, err);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = libfabric_report(list, fact_interface, report);
    fi_freeinfo(list);
    return rc == PMIXFAB_OK ? rc : fab_fail(err, rc, "libfabric: %s", pmixfab_strerror(rc));
}

static int libfabric_available(char *text, size_t size)
{
    struct fi_info *list = NULL;
    struct fab_err err = {{0}};
    const char *hardware = NULL;
    int rc = get_list(&list, &err);
    if (rc != PMIXFAB_OK) {
        snprintf(text, size, "%s", err.text);
        return rc;
    }
    for (const struct fi_info *info = list; info != NULL && hardware == NULL; info = info->next) {
        const char *name = info->fabric_attr != NULL ? info->fabric_attr->prov_name : NULL;
        if (name != NULL && !libfabric_is_software(name))
            hardware = name;
    }
    uint32_t version = fi_version();
    snprintf(text, size, "libfabric %u.%u, %s%s", FI_MAJOR(version), FI_MINOR(version),
             hardware == NULL ? "software providers only" : "hardware by its provider ",
             hardware == NULL ? "" : hardware);
    fi_freeinfo(list);
    return PMIXFAB_OK;
}

__attribute__((visibility("default"))) const struct probe fabricd_probe = {
    .name = "libfabric",
    .scan = libfabric_scan,
    .available = libfabric_available,
};
