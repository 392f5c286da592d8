/* ucx_facts.c - devices and their facts from UCX's list of transports. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/ucx/ucx.h"

/* Does the transport do without hardware of its own? */
static bool ucx_is_software(const struct ucx_resource *r)
{
    return r->type == UCT_DEVICE_TYPE_SHM || r->type == UCT_DEVICE_TYPE_SELF ||
           (r->type == UCT_DEVICE_TYPE_NET && strcmp(r->transport, "tcp") == 0);
}

static bool same_device(const struct ucx_resource *a, const struct ucx_resource *b)
{
    return a->type == b->type && strcmp(a->device, b->device) == 0;
}

/* "mlx5_0:1" is a port of an RDMA device, "eth0" an interface; other names are no device's of the system. */
static void add_name(const struct ucx_resource *r, enum fact_interface kind, struct probe_item *item)
{
    const char *colon = strrchr(r->device, ':');
    if (r->type != UCT_DEVICE_TYPE_NET)
        return;
    if (kind == FACT_INTERFACE) {
        fact_add(item, FAB_FACT_INTERFACE, r->device);
    } else if (colon == NULL || strspn(colon + 1, "0123456789") != strlen(colon + 1)) {
        fact_add(item, FAB_FACT_NAME, r->device);
    } else {
        fact_printf(item, FAB_FACT_NAME, "%.*s", (int)(colon - r->device), r->device);
        fact_add(item, FAB_FACT_PORT, colon + 1);
    }
}

/* A number that a transport is said to reach; what no device reaches is none. */
static void add_number(struct probe_item *item, enum fab_fact kind, double value)
{
    char text[32];
    if (!isfinite(value) || value < 0 || value >= (double)UINT32_MAX)
        return;
    snprintf(text, sizeof(text), "%.0f", value);
    fact_estimate(item, kind, text);
}

/* The device of list[first], of which that is the first transport. */
static int ucx_add_device(const struct ucx_resource *list, size_t n, size_t first, enum fact_interface kind,
                          struct fab_report *report)
{
    const struct ucx_resource *device = &list[first];
    double bandwidth = 0, latency = HUGE_VAL;
    bool software = true;
    struct probe_item item;
    probe_item_open(&item, FAB_FROM_UCX, device->device, NULL, report);
    add_name(device, kind, &item);
    for (size_t i = first; i < n; i++) {
        const struct ucx_resource *r = &list[i];
        if (!same_device(r, device))
            continue;
        software = software && ucx_is_software(r);
        if (isfinite(r->bandwidth) && r->bandwidth > bandwidth)
            bandwidth = r->bandwidth;
        if (r->latency >= 0 && r->latency < latency)
            latency = r->latency;
        fact_add(&item, FAB_FACT_TRANSPORT, r->transport);
        fact_add(&item, FAB_FACT_PCI, r->pci);
    }
    if (bandwidth > 0)
        add_number(&item, FAB_FACT_BANDWIDTH, bandwidth * 8 / 1e6);
    add_number(&item, FAB_FACT_LATENCY, latency * 1e9);
    if (software)
        fact_add(&item, FAB_FACT_SOFTWARE, "yes");
    return item.rc;
}

int ucx_report(const struct ucx_resource *list, size_t n, enum fact_interface (*interface)(const char *name),
               struct fab_report *report)
{
    int rc = PMIXFAB_OK;
    for (size_t i = 0; i < n && rc == PMIXFAB_OK; i++) {
        size_t before = 0;
        while (before < i && !same_device(&list[before], &list[i]))
            before++;
        enum fact_interface kind =
            list[i].type == UCT_DEVICE_TYPE_NET ? interface(list[i].device) : FACT_NO_INTERFACE;
        if (before == i && kind != FACT_LOOPBACK)
            rc = ucx_add_device(list, n, i, kind, report);
    }
    return rc;
}
