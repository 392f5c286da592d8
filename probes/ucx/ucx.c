/* ucx.c - the probe `ucx`: UCX's transports on the devices of this host, with UCX's estimates. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucs/async/async_fwd.h>
#include <ucs/config/global_opts.h>
#include <ucs/sys/topo/base/topo.h>

#include "probes/core/facts.h"
#include "probes/core/record.h"
#include "probes/ucx/ucx.h"
#include "topo/base/array.h"

/* ---- devices and their facts from UCX's list of transports ---- */

/* Return whether the transport has no hardware of its own. */
static bool ucx_is_software(const struct ucx_resource *r)
{
    return r->type == UCT_DEVICE_TYPE_SHM || r->type == UCT_DEVICE_TYPE_SELF ||
           (r->type == UCT_DEVICE_TYPE_NET && strcmp(r->transport, "tcp") == 0);
}

static bool same_device(const struct ucx_resource *a, const struct ucx_resource *b)
{
    return a->type == b->type && strcmp(a->device, b->device) == 0;
}

/*
 * Add "mlx5_0:1" as a port of an RDMA device, "eth0" as an interface; other names are not devices of the
 * system.
 */
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

/* Add a number of a transport; values that no device reaches are skipped. */
static void add_number(struct probe_item *item, enum fab_fact kind, double value)
{
    char text[32];
    if (!isfinite(value) || value < 0 || value >= (double)UINT32_MAX)
        return;
    snprintf(text, sizeof(text), "%.0f", value);
    fact_estimate(item, kind, text);
}

/* Add the device of list[first], which is its first transport. */
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

/*
 * ---- the probe `ucx`: UCX's transports on the devices of this host, with UCX's estimates.
 *
 * UCT is used, the layer in which a transport on a device is one object. Only opened interfaces have
 * estimates, so each transport is opened, queried and closed.
 */

struct survey {
    ucs_async_context_t *async;
    uct_worker_h worker;
    const struct probe_sink *sink;
    struct ucx_resource *list;
    uint32_t n, room;
};

static void find_pci(ucs_sys_device_t device, char *out, size_t size)
{
    ucs_sys_bus_id_t id;
    out[0] = '\0';
    if (device != UCS_SYS_DEVICE_ID_UNKNOWN && ucs_topo_get_device_bus_id(device, &id) == UCS_OK)
        snprintf(out, size, "%04x:%02x:%02x:%02x", id.domain, id.bus, id.slot, id.function);
}

static void ask_interface(const struct survey *s, uct_md_h md, uct_tl_resource_desc_t *resource,
                          struct ucx_resource *out)
{
    uct_iface_config_t *config = NULL;
    uct_iface_h iface = NULL;
    uct_iface_attr_t attr;
    uct_iface_params_t params = {
        .field_mask = UCT_IFACE_PARAM_FIELD_OPEN_MODE | UCT_IFACE_PARAM_FIELD_DEVICE |
                      UCT_IFACE_PARAM_FIELD_STATS_ROOT | UCT_IFACE_PARAM_FIELD_RX_HEADROOM |
                      UCT_IFACE_PARAM_FIELD_CPU_MASK,
        .open_mode = UCT_IFACE_OPEN_MODE_DEVICE,
        .mode.device = {resource->tl_name, resource->dev_name},
    };
    if (uct_md_iface_config_read(md, resource->tl_name, NULL, NULL, &config) != UCS_OK)
        return;
    ucs_status_t status = uct_iface_open(md, s->worker, &params, config, &iface);
    uct_config_release(config);
    if (status == UCS_OK) {
        status = uct_iface_query(iface, &attr);
        uct_iface_close(iface);
    }
    if (status != UCS_OK) {
        probe_note(s->sink, PMIXFAB_LOG_DEBUG, "ucx: %s on %s has no estimates: %s", resource->tl_name,
                   resource->dev_name, ucs_status_string(status));
        return;
    }
    out->bandwidth = attr.bandwidth.dedicated + attr.bandwidth.shared;
    out->latency = attr.latency.c + attr.latency.m;
}

static int add_resource(struct survey *s, uct_md_h md, uct_tl_resource_desc_t *resource)
{
    if (!FAB_ARRAY_ROOM(&s->list, &s->room, (uint64_t)s->n + 1))
        return PMIXFAB_ERR_NOMEM;
    struct ucx_resource *out = &s->list[s->n++];
    *out = (struct ucx_resource){.type = resource->dev_type, .latency = -1};
    snprintf(out->transport, sizeof(out->transport), "%s", resource->tl_name);
    snprintf(out->device, sizeof(out->device), "%s", resource->dev_name);
    find_pci(resource->sys_device, out->pci, sizeof(out->pci));
    ask_interface(s, md, resource, out);
    return PMIXFAB_OK;
}

/* A memory domain is a device or a way of sharing memory; its transports are those that use it. */
static int ask_domain(struct survey *s, uct_component_h component, const char *name)
{
    uct_tl_resource_desc_t *resources = NULL;
    unsigned n = 0;
    uct_md_config_t *config = NULL;
    uct_md_h md;
    int rc = PMIXFAB_OK;
    if (uct_md_config_read(component, NULL, NULL, &config) != UCS_OK)
        return rc;
    ucs_status_t status = uct_md_open(component, name, config, &md);
    uct_config_release(config);
    if (status != UCS_OK) {
        probe_note(s->sink, PMIXFAB_LOG_DEBUG, "ucx: memory domain %s is left out: %s", name,
                   ucs_status_string(status));
        return rc;
    }
    if (uct_md_query_tl_resources(md, &resources, &n) == UCS_OK) {
        for (unsigned i = 0; i < n && rc == PMIXFAB_OK; i++)
            rc = add_resource(s, md, &resources[i]);
        uct_release_tl_resource_list(resources);
    }
    uct_md_close(md);
    return rc;
}

static int ask_component(struct survey *s, uct_component_h component)
{
    uct_component_attr_t attr = {.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT};
    if (uct_component_query(component, &attr) != UCS_OK || attr.md_resource_count == 0)
        return PMIXFAB_OK;
    unsigned n = attr.md_resource_count;
    attr.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
    attr.md_resources = calloc(n, sizeof(*attr.md_resources));
    if (attr.md_resources == NULL)
        return PMIXFAB_ERR_NOMEM;
    int rc = PMIXFAB_OK;
    if (uct_component_query(component, &attr) == UCS_OK)
        for (unsigned i = 0; i < n && rc == PMIXFAB_OK; i++)
            rc = ask_domain(s, component, attr.md_resources[i].md_name);
    free(attr.md_resources);
    return rc;
}

static int ask_all(struct survey *s, struct fab_err *err)
{
    uct_component_h *components = NULL;
    unsigned n = 0;
    int rc = PMIXFAB_OK;
    if (getenv("UCX_LOG_LEVEL") == NULL)
        ucs_global_opts_set_value("LOG_LEVEL", "fatal");
    ucs_status_t status = ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK, &s->async);
    if (status != UCS_OK)
        goto fail;
    status = uct_worker_create(s->async, UCS_THREAD_MODE_SINGLE, &s->worker);
    if (status != UCS_OK)
        goto destroy_async;
    status = uct_query_components(&components, &n);
    if (status != UCS_OK)
        goto destroy_worker;
    for (unsigned i = 0; i < n && rc == PMIXFAB_OK; i++)
        rc = ask_component(s, components[i]);
    uct_release_component_list(components);
destroy_worker:
    uct_worker_destroy(s->worker);
destroy_async:
    ucs_async_context_destroy(s->async);
fail:
    if (status != UCS_OK)
        return fab_fail(err, PMIXFAB_ERR_IO, "ucx: %s", ucs_status_string(status));
    return rc == PMIXFAB_OK ? rc : fab_fail(err, rc, "ucx: %s", pmixfab_strerror(rc));
}

static int ucx_scan(const struct probe_config *config, const struct probe_sink *sink,
                    struct fab_report *report, struct fab_err *err)
{
    struct survey s = {.sink = sink};
    if (config->arg != NULL)
        return record_scan(config->arg, FAB_FROM_UCX, report, err);
    int rc = ask_all(&s, err);
    if (rc == PMIXFAB_OK && s.n == 0)
        rc = fab_fail(err, PMIXFAB_ERR_UNSUPPORTED, "ucx: no transport can be used on this host");
    if (rc == PMIXFAB_OK) {
        rc = ucx_report(s.list, s.n, fact_interface, report);
        if (rc != PMIXFAB_OK)
            fab_fail(err, rc, "ucx: %s", pmixfab_strerror(rc));
    }
    free(s.list);
    return rc;
}

static int ucx_available(char *text, size_t size)
{
    return fact_available(ucx_scan, "UCX has transports on ", "device", text, size);
}

__attribute__((visibility("default"))) const struct probe fabricd_probe = {
    .name = "ucx",
    .scan = ucx_scan,
    .available = ucx_available,
};
