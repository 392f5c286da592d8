/* verbs_device.c - one RDMA device as libibverbs tells it. */
#include <errno.h>
#include <string.h>

#include "probes/verbs/verbs_priv.h"

#define MAX_GID_INDEX 4096 /* a table that is longer is not believed */

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

/* "InfiniBand", "Ethernet", or NULL: neither, or not known. */
static const char *link_text(const struct ibv_device *device, const struct ibv_port_attr *port)
{
    if (port->link_layer == IBV_LINK_LAYER_INFINIBAND)
        return "InfiniBand";
    if (port->link_layer == IBV_LINK_LAYER_ETHERNET)
        return "Ethernet";
    if (device->transport_type == IBV_TRANSPORT_IB && device->node_type == IBV_NODE_CA)
        return "InfiniBand"; /* drivers of the time before RoCE do not say */
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
    probe_item_fact(item, FAB_FACT_NAME, "%s", ibv_get_device_name(a->device));
    memcpy(&guid, &a->attr.node_guid, sizeof(guid)); /* both in network order */
    probe_item_guid(item, FAB_FACT_NODE_GUID, be64toh(guid));
    memcpy(&guid, &a->attr.sys_image_guid, sizeof(guid));
    probe_item_guid(item, FAB_FACT_SYSTEM_GUID, be64toh(guid));
    probe_item_fact(item, FAB_FACT_FIRMWARE, "%s", firmware);
    if (a->attr.vendor_part_id > 0 && a->attr.vendor_part_id <= 0xffff)
        probe_item_fact(item, FAB_FACT_PART_ID, "0x%04x", a->attr.vendor_part_id);
    /* vendor_id is an IEEE number of the vendor and not that of PCI, which sysfs has. */
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
    if (ethernet && speed == FAB_SDR) /* what drivers say of 1 Gbit/s and less, for want of a number */
        return;
    uint32_t mbps = fab_rate_mbps(probe_lanes(port->active_width), speed);
    if (mbps != 0 && port->state == IBV_PORT_ACTIVE)
        probe_item_fact(item, FAB_FACT_SPEED, "%u", mbps);
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
                probe_note(a->sink, PMIXFAB_LOG_INFO, "verbs: %s: port %u: its GIDs cannot be read",
                           item->what, number);
            return;
        }
        if (i == 0 && infiniband)
            probe_item_guid(item, FAB_FACT_PORT_GUID, probe_be(gid.raw + 8, 8));
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
    probe_item_fact(item, FAB_FACT_PORT, "%u", number);
    probe_item_fact(item, FAB_FACT_STATE, "%s", verbs_state_text(port->state));
    if (type != NULL)
        probe_item_fact(item, FAB_FACT_TYPE, "%s", type);
    if (infiniband && port->lid != 0)
        probe_item_fact(item, FAB_FACT_LID, "%u", port->lid);
    if (port->state == IBV_PORT_ACTIVE && port->active_mtu >= IBV_MTU_256 && port->active_mtu <= IBV_MTU_4096)
        probe_item_fact(item, FAB_FACT_MTU, "%u", 128u << port->active_mtu);
    speed_fact(a, port, number, type != NULL && !infiniband, item);
    gid_facts(a, port, number, infiniband, item);
    if (verbs_sysfs_interface(a->device->ibdev_path, number, a->attr.phys_port_cnt, interface,
                              sizeof(interface)))
        probe_item_fact(item, FAB_FACT_INTERFACE, "%s", interface);
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
            probe_note(a->sink, PMIXFAB_LOG_WARNING, "verbs: %s: port %u cannot be asked: %s", name, i,
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

int verbs_device_report(struct ibv_device *device, const struct probe_sink *sink, struct fab_report *report,
                        struct fab_err *err)
{
    struct asked a = {.device = device, .sink = sink, .report = report};
    const char *name = ibv_get_device_name(device);
    a.context = ibv_open_device(device);
    if (a.context == NULL)
        return fab_fail(err, PMIXFAB_ERR_IO, "verbs: %s cannot be opened: %s", name, strerror(errno));
    int failed = ibv_query_device(a.context, &a.attr);
    int rc = failed != 0 ? fab_fail(err, PMIXFAB_ERR_IO, "verbs: %s cannot be asked: %s", name,
                                    strerror(failed > 0 ? failed : errno))
                         : ports_report(&a);
    ibv_close_device(a.context);
    return rc;
}
