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
static int add_name(const struct ucx_resource *r, enum fact_interface kind, struct fab_report *report,
                    uint32_t item)
{
    const char *colon = strrchr(r->device, ':');
    if (r->type != UCT_DEVICE_TYPE_NET)
        return PMIXFAB_OK;
    if (kind == FACT_INTERFACE)
        return fact_add(report, item, FAB_FACT_INTERFACE, r->device);
    if (colon == NULL || strspn(colon + 1, "0123456789") != strlen(colon + 1))
        return fact_add(report, item, FAB_FACT_NAME, r->device);
    int rc = fact_printf(report, item, FAB_FACT_NAME, "%.*s", (int)(colon - r->device), r->device);
    return rc == PMIXFAB_OK ? fact_add(report, item, FAB_FACT_PORT, colon + 1) : rc;
}

/* A number that a transport is said to reach; what no device reaches is none. */
static int add_number(struct fab_report *report, uint32_t item, enum fab_fact kind, double value)
{
    char text[32];
    if (!isfinite(value) || value < 0 || value >= (double)UINT32_MAX)
        return PMIXFAB_OK;
    snprintf(text, sizeof(text), "%.0f", value);
    return fact_estimate(report, item, kind, text);
}

/* The device of list[first], of which that is the first transport. */
static int ucx_add_device(const struct ucx_resource *list, size_t n, size_t first, enum fact_interface kind,
                          struct fab_report *report)
{
    const struct ucx_resource *device = &list[first];
    double bandwidth = 0, latency = HUGE_VAL;
    bool software = true;
    uint32_t item;
    int rc = fab_report_item(report, FAB_FROM_UCX, &item);
    if (rc == PMIXFAB_OK)
        rc = add_name(device, kind, report, item);
    for (size_t i = first; i < n && rc == PMIXFAB_OK; i++) {
        const struct ucx_resource *r = &list[i];
        if (!same_device(r, device))
            continue;
        software = software && ucx_is_software(r);
        if (isfinite(r->bandwidth) && r->bandwidth > bandwidth)
            bandwidth = r->bandwidth;
        if (r->latency >= 0 && r->latency < latency)
            latency = r->latency;
        rc = fact_add(report, item, FAB_FACT_TRANSPORT, r->transport);
        if (rc == PMIXFAB_OK)
            rc = fact_add(report, item, FAB_FACT_PCI, r->pci);
    }
    if (rc == PMIXFAB_OK && bandwidth > 0)
        rc = add_number(report, item, FAB_FACT_BANDWIDTH, bandwidth * 8 / 1e6);
    if (rc == PMIXFAB_OK)
        rc = add_number(report, item, FAB_FACT_LATENCY, latency * 1e9);
    if (rc == PMIXFAB_OK && software)
        rc = fact_add(report, item, FAB_FACT_SOFTWARE, "yes");
    return rc;
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
