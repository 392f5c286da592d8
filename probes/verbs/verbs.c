/*
 * verbs.c - the probe `verbs`: this host's RDMA devices and their ports, by libibverbs and sysfs.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <net/if.h>
#include <string.h>
#include <unistd.h>

#include "probes/core/facts.h"
#include "probes/core/record.h"
#include "probes/verbs/verbs_priv.h"
#include "topo/base/natural.h"
#include "topo/model/inventory.h"

/* ---- an RDMA device in /sys/class/infiniband ---- */

static void verbs_sysfs_facts(const char *folder, struct probe_item *item)
{
    char name[NAME_MAX + 1], bus[64];
    if (access(folder, F_OK) != 0)
        return;
    if (!sysfs_link(folder, "device", name, sizeof(name))) { /* rxe and siw: above any network interface */
        fact_add(item, FAB_FACT_BUS, "virtual");
        fact_add(item, FAB_FACT_SOFTWARE, "yes");
        return;
    }
    if (!sysfs_link(folder, "device/subsystem", bus, sizeof(bus)))
        bus[0] = '\0';
    if (strcmp(bus, "pci") == 0) {
        fact_add(item, FAB_FACT_BUS, "PCI");
        char pci[16];
        unsigned vendor = sysfs_number(folder, "device/vendor");
        if (probe_pci_text(name, pci, sizeof(pci)))
            fact_add(item, FAB_FACT_PCI, pci);
        if (vendor != 0)
            fact_printf(item, FAB_FACT_VENDOR_ID, "0x%04x", vendor);
    } else if (bus[0] != '\0') {
        fact_printf(item, FAB_FACT_BUS, "%s", bus);
    }
    if (sysfs_link(folder, "device/driver", name, sizeof(name)))
        fact_printf(item, FAB_FACT_DRIVER, "%s", name);
}

/*
 * Interfaces of a virtual function's other end ("pf0vf3"), and of a partition ("ib0.8001"), are listed with
 * that of the port.
 */
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
    if (n_ports == 1) /* some drivers number the ports of a card whose functions are separate devices */
        return true;
    unsigned number = sysfs_number(folder, "dev_port"), id = sysfs_number(folder, "dev_id");
    return (number > id ? number : id) + 1 == port;
}

/* Take the first one by name, so that it is always the same. */
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
    /* a software device is above an interface, and its GIDs come from there */
    snprintf(file, sizeof(file), "ports/%u/gid_attrs/ndevs/0", port);
    return sysfs_line(folder, file, name, size) || sysfs_line(folder, "parent", name, size);
}

/* Read "800 Gb/sec (4X XDR)". */
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

/* ---- one RDMA device, from libibverbs ---- */

#define MAX_GID_INDEX 4096 /* a longer table is ignored */

enum fab_speed verbs_speed(unsigned speed)
{
    static const enum fab_speed bits[] = {FAB_SDR, FAB_DDR, FAB_QDR, FAB_FDR10,
                                          FAB_FDR, FAB_EDR, FAB_HDR, FAB_NDR};
    for (unsigned i = 0; i < sizeof(bits) / sizeof(bits[0]); i++) {
        if (speed == 1u << i)
            return bits[i];
    }
    return FAB_SPEED_UNKNOWN;
}

static const char *verbs_state_text(enum ibv_port_state state)
{
    if (state == IBV_PORT_ACTIVE)
        return "up";
    return state >= IBV_PORT_DOWN && state <= IBV_PORT_ACTIVE_DEFER ? "down" : "unknown";
}

/* Return "InfiniBand", "Ethernet", or NULL: neither, or unknown. */
static const char *link_text(const struct ibv_device *device, const struct ibv_port_attr *port)
{
    if (port->link_layer == IBV_LINK_LAYER_INFINIBAND)
        return "InfiniBand";
    if (port->link_layer == IBV_LINK_LAYER_ETHERNET)
        return "Ethernet";
    if (device->transport_type == IBV_TRANSPORT_IB && device->node_type == IBV_NODE_CA)
        return "InfiniBand"; /* drivers from the time before RoCE do not report it */
    return device->transport_type == IBV_TRANSPORT_IWARP ? "Ethernet" : NULL;
}

struct asked {
    struct ibv_device *device;
    struct ibv_context *context;
    struct ibv_device_attr attr;
    const struct probe_sink *sink;
    struct fab_report *report;
};

static void device_facts(const struct asked *a, struct probe_item *item)
{
    char firmware[sizeof(a->attr.fw_ver) + 1];
    uint64_t guid;
    memcpy(firmware, a->attr.fw_ver, sizeof(a->attr.fw_ver));
    firmware[sizeof(firmware) - 1] = '\0';
    fact_printf(item, FAB_FACT_NAME, "%s", ibv_get_device_name(a->device));
    memcpy(&guid, &a->attr.node_guid, sizeof(guid)); /* both in network order */
    fact_guid(item, FAB_FACT_NODE_GUID, be64toh(guid));
    memcpy(&guid, &a->attr.sys_image_guid, sizeof(guid));
    fact_guid(item, FAB_FACT_SYSTEM_GUID, be64toh(guid));
    fact_printf(item, FAB_FACT_FIRMWARE, "%s", firmware);
    if (a->attr.vendor_part_id > 0 && a->attr.vendor_part_id <= 0xffff)
        fact_printf(item, FAB_FACT_PART_ID, "0x%04x", a->attr.vendor_part_id);
    /* vendor_id is an IEEE number of the vendor and not that of PCI, which sysfs has */
    verbs_sysfs_facts(a->device->ibdev_path, item);
}

static void speed_fact(const struct asked *a, const struct ibv_port_attr *port, unsigned number,
                       bool ethernet, struct probe_item *item)
{
    enum fab_speed speed = verbs_speed(port->active_speed);
    if (speed == FAB_SPEED_UNKNOWN || speed == FAB_NDR) {
        enum fab_speed kernel = verbs_sysfs_speed(a->device->ibdev_path, number);
        speed = kernel != FAB_SPEED_UNKNOWN ? kernel : speed;
    }
    if (ethernet && speed == FAB_SDR) /* drivers report this for 1 Gbit/s and less, for want of a number */
        return;
    uint32_t mbps = fab_rate_mbps(probe_lanes(port->active_width), speed);
    if (mbps != 0 && port->state == IBV_PORT_ACTIVE)
        fact_printf(item, FAB_FACT_SPEED, "%u", mbps);
}

/* The first GID of an InfiniBand port ends with its GUID. */
static void gid_facts(const struct asked *a, const struct ibv_port_attr *port, unsigned number,
                      bool infiniband, struct probe_item *item)
{
    int n = port->gid_tbl_len < MAX_GID_INDEX ? port->gid_tbl_len : MAX_GID_INDEX;
    for (int i = 0; i < n; i++) {
        union ibv_gid gid = {{0}};
        if (ibv_query_gid(a->context, (uint8_t)number, i, &gid) != 0) {
            if (i == 0)
                probe_note(a->sink, PMIXFAB_LOG_INFO, "verbs: %s: port %u: cannot read its GIDs", item->what,
                           number);
            return;
        }
        if (i == 0 && infiniband)
            fact_guid(item, FAB_FACT_PORT_GUID, probe_be(gid.raw + 8, 8));
        if (!probe_item_gid(item, gid.raw))
            return;
    }
}

static void verbs_port_facts(const struct asked *a, const struct ibv_port_attr *port, unsigned number,
                             struct probe_item *item)
{
    char interface[64];
    const char *type = link_text(a->device, port);
    bool infiniband = type != NULL && strcmp(type, "InfiniBand") == 0;
    fact_printf(item, FAB_FACT_PORT, "%u", number);
    fact_add(item, FAB_FACT_STATE, verbs_state_text(port->state));
    fact_add(item, FAB_FACT_TYPE, type);
    if (infiniband && port->lid != 0)
        fact_printf(item, FAB_FACT_LID, "%u", port->lid);
    if (port->state == IBV_PORT_ACTIVE && port->active_mtu >= IBV_MTU_256 && port->active_mtu <= IBV_MTU_4096)
        fact_printf(item, FAB_FACT_MTU, "%u", 128u << port->active_mtu);
    speed_fact(a, port, number, type != NULL && !infiniband, item);
    gid_facts(a, port, number, infiniband, item);
    if (verbs_sysfs_interface(a->device->ibdev_path, number, a->attr.phys_port_cnt, interface,
                              sizeof(interface)))
        fact_printf(item, FAB_FACT_INTERFACE, "%s", interface);
}

static int ports_report(const struct asked *a)
{
    struct probe_item item = {0};
    const char *name = ibv_get_device_name(a->device);
    unsigned reported = 0;
    for (unsigned i = 1; i <= a->attr.phys_port_cnt && item.rc == PMIXFAB_OK; i++) {
        struct ibv_port_attr port;
        int rc = ibv_query_port(a->context, (uint8_t)i, &port);
        if (rc != 0) {
            probe_note(a->sink, PMIXFAB_LOG_WARNING, "verbs: %s: cannot query port %u: %s", name, i,
                       strerror(rc > 0 ? rc : errno));
            continue;
        }
        probe_item_open(&item, FAB_FROM_VERBS, name, a->sink, a->report);
        device_facts(a, &item);
        verbs_port_facts(a, &port, i, &item);
        reported++;
    }
    if (reported == 0) {
        probe_item_open(&item, FAB_FROM_VERBS, name, a->sink, a->report);
        device_facts(a, &item);
    }
    return item.rc;
}

static int verbs_device_report(struct ibv_device *device, const struct probe_sink *sink,
                               struct fab_report *report, struct fab_err *err)
{
    struct asked a = {.device = device, .sink = sink, .report = report};
    const char *name = ibv_get_device_name(device);
    a.context = ibv_open_device(device);
    if (a.context == NULL)
        return fab_fail(err, PMIXFAB_ERR_IO, "verbs: %s: cannot open the device: %s", name, strerror(errno));
    int failed = ibv_query_device(a.context, &a.attr);
    int rc = failed != 0 ? fab_fail(err, PMIXFAB_ERR_IO, "verbs: %s: cannot query the device: %s", name,
                                    strerror(failed > 0 ? failed : errno))
                         : ports_report(&a);
    ibv_close_device(a.context);
    return rc;
}

/* ---- the probe `verbs`: this host's RDMA devices and their ports, from libibverbs ---- */

#define CLASS_DIR "/sys/class/infiniband"

/* List the devices of this host; n > 0. Free with ibv_free_device_list(). */
static int verbs_list_devices(struct ibv_device ***list, int *n, struct fab_err *err)
{
    *n = 0;
    errno = 0;
    *list = ibv_get_device_list(n);
    if (*list != NULL && *n > 0)
        return PMIXFAB_OK;
    int why = *list == NULL ? errno : 0;
    if (*list != NULL)
        ibv_free_device_list(*list);
    if (why != 0 && why != ENOSYS && why != ENOENT && why != ENODEV)
        return fab_fail(err, why == ENOMEM ? PMIXFAB_ERR_NOMEM : PMIXFAB_ERR_IO,
                        "verbs: cannot list the RDMA devices: %s", strerror(why));
    return fab_fail(err, PMIXFAB_ERR_UNSUPPORTED, "verbs: this host has no usable RDMA device: %s",
                    access(CLASS_DIR, F_OK) != 0 ? CLASS_DIR
                        " is absent (no device, or its driver is not loaded)"
                    : why == ENOSYS ? "the module ib_uverbs is not loaded"
                                    : "libibverbs lists none");
}

static int verbs_scan(const struct probe_config *config, const struct probe_sink *sink,
                      struct fab_report *report, struct fab_err *err)
{
    struct ibv_device **list;
    struct fab_err why = {{0}};
    int n, failed = 0;
    if (config->arg != NULL)
        return record_scan(config->arg, FAB_FROM_VERBS, report, err);
    int rc = verbs_list_devices(&list, &n, err);
    if (rc != PMIXFAB_OK)
        return rc;
    for (int i = 0; i < n && rc == PMIXFAB_OK; i++) {
        rc = verbs_device_report(list[i], sink, report, &why);
        if (rc == PMIXFAB_ERR_IO) {
            probe_note(sink, PMIXFAB_LOG_WARNING, "%s; it is left out", why.text);
            failed++;
            rc = PMIXFAB_OK;
        }
    }
    ibv_free_device_list(list);
    if (rc != PMIXFAB_OK)
        return fab_fail(err, rc, "verbs: %s", pmixfab_strerror(rc));
    if (failed == n) /* then the earlier data stay */
        return fab_fail(err, PMIXFAB_ERR_IO, "%s", why.text);
    return PMIXFAB_OK;
}

static int verbs_available(char *text, size_t size)
{
    struct ibv_device **list;
    struct fab_err err = {{0}};
    int n;
    int rc = verbs_list_devices(&list, &n, &err);
    if (rc != PMIXFAB_OK) {
        snprintf(text, size, "%s", err.text);
        return rc;
    }
    snprintf(text, size, "%d RDMA device%s, the first is %s", n, n == 1 ? "" : "s",
             ibv_get_device_name(list[0]));
    ibv_free_device_list(list);
    return PMIXFAB_OK;
}

__attribute__((visibility("default"))) const struct probe fabricd_probe = {
    .name = "verbs",
    .scan = verbs_scan,
    .available = verbs_available,
};
