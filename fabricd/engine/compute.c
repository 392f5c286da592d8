#include "fabricd/engine/compute.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/base/log.h"
#include "fabricd/engine/ethernet_planes.h"
#include "fabricd/engine/plane_numbers.h"
#include "fabricd/engine/rail_planes.h"
#include "topo/base/pattern.h"
#include "topo/join/join.h"
#include "topo/plane/compile.h"
#include "topo/snapshot/reader.h"
#include "topo/snapshot/snapshot.h"

/* Vendors by the IEEE number in node records; only those that made InfiniBand switches or HCAs. */
static const struct {
    uint32_t id;
    const char *name;
} vendors[] = {
    {0x0002c9, "Mellanox"}, {0x001175, "QLogic"}, {0x00066a, "QLogic"}, {0x0008f1, "Voltaire"},
    {0x0005ad, "Cisco"},    {0x000677, "IBM"},    {0x005c4c, "Huawei"}, {0x000e80, "Intel"},
};

static const char *vendor_name(uint32_t id)
{
    for (size_t i = 0; i < sizeof(vendors) / sizeof(vendors[0]); i++)
        if (vendors[i].id == id)
            return vendors[i].name;
    return "unknown";
}

/* The vendor of most of a plane's switches; of its first device where it has none. */
static const char *plane_vendor(const struct fab_plane *plane)
{
    const struct fab_inventory *inv = plane->inv;
    uint32_t id = 0, votes = 0; /* majority by cancelling out, then the last candidate stands */
    for (uint32_t i = 0; i < plane->n_switches; i++) {
        uint32_t one = inv->nodes[plane->switches[i].node].vendor_id;
        if (votes == 0)
            id = one;
        votes = one == id ? votes + 1 : votes - 1;
    }
    if (plane->n_switches == 0 && plane->n_devices > 0)
        id = inv->nodes[inv->ports[plane->devices[0].port].node].vendor_id;
    return vendor_name(id);
}

/* ---- what the hosts say of their devices' vendors ------------------------------------------------ */

static int by_offset(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* The believed name of a port's vendor, in the pool; FAB_NONE. */
static uint32_t port_vendor(const struct fab_details *details, uint32_t port)
{
    for (uint32_t f = details->first[port]; f < details->first[port + 1]; f++)
        if (details->facts[f].kind == FAB_FACT_VENDOR && (details->facts[f].flags & FAB_DETAIL_CHOSEN) != 0)
            return details->facts[f].text;
    return FAB_NONE;
}

/* The vendor of most devices of a plane; of two that have as many, the first by name. "unknown" where no host
 * says any. Equal texts stand once in the pool: they are counted by their place. */
static int common_vendor(const struct fab_plane *plane, const struct fab_details *details, const char **out)
{
    uint32_t n = 0, most = 0;
    uint32_t *texts = calloc((size_t)plane->n_devices + 1, sizeof(*texts));
    *out = "unknown";
    if (texts == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t i = 0; details->n_ports > 0 && i < plane->n_devices; i++) {
        texts[n] = port_vendor(details, plane->devices[i].port);
        n += texts[n] != FAB_NONE;
    }
    qsort(texts, n, sizeof(*texts), by_offset);
    for (uint32_t i = 0, end; i < n; i = end) {
        for (end = i; end < n && texts[end] == texts[i];)
            end++;
        const char *name = details->pool + texts[i];
        if (end - i > most || (end - i == most && strcmp(name, *out) < 0))
            *out = name;
        most = end - i > most ? end - i : most;
    }
    free(texts);
    return PMIXFAB_OK;
}

/* ---- one plane ----------------------------------------------------------------------------------- */

static uint64_t plane_prefix(const struct fab_plane *plane)
{
    if (plane->unattached)
        return FAB_UNATTACHED;
    return plane->inv->n_subnets > plane->subnet ? plane->inv->subnets[plane->subnet].prefix
                                                 : FAB_DEFAULT_PREFIX;
}

/* What is told of a plane beside its numbers. */
static int snapshot_meta_fill(const struct fab_plane *plane, const struct fab_details *details,
                              const struct ethernet_planes *ethernet, const struct config *config,
                              struct fab_snapshot_meta *meta, char *identifier, size_t size)
{
    uint64_t prefix = plane_prefix(plane);
    const struct fab_ethernet_plane *configured = ethernet_find(ethernet, prefix);
    int rc = PMIXFAB_OK;
    if (prefix == FAB_UNATTACHED)
        snprintf(identifier, size, "%s", UNATTACHED_PLANE);
    else if (configured != NULL)
        snprintf(identifier, size, "Ethernet-%s", configured->cidr);
    else
        snprintf(identifier, size, "InfiniBand-%016llx", (unsigned long long)prefix);
    meta->identifier = identifier;
    if (config->vendor != NULL)
        meta->vendor = config->vendor;
    else if (prefix == FAB_UNATTACHED || configured != NULL)
        rc = common_vendor(plane, details, &meta->vendor);
    else
        meta->vendor = plane_vendor(plane);
    return rc;
}

/* before: the last snapshot of the plane; NULL: it has none. */
static int build_one(const struct fab_plane *plane, bool is_rail, const struct pmixfab *before,
                     const struct fab_details *details, const struct ethernet_planes *ethernet,
                     const struct config *config, bool is_default, struct built_plane *out)
{
    struct fab_costs costs = {0};
    struct fab_geometry geometry = {0};
    struct fab_groups groups = {0};
    char identifier[80];
    struct fab_snapshot_meta meta = {
        .index = out->index, .is_default = is_default, .name = out->name, .before = before};
    int rc = snapshot_meta_fill(plane, details, ethernet, config, &meta, identifier, sizeof(identifier));
    if (rc == PMIXFAB_OK)
        rc = fab_costs_compute(plane, 0, &costs);
    if (rc == PMIXFAB_OK)
        rc = fab_geometry_settle(plane, before, &geometry);
    if (rc == PMIXFAB_OK && is_rail)
        rail_planes_mark(plane, out->index, &geometry);
    if (rc == PMIXFAB_OK)
        rc = fab_groups_compute(plane, &geometry, config->groups, &groups);
    if (rc == PMIXFAB_OK)
        rc = fab_snapshot_build(plane, &costs, &geometry, &groups, details->n_ports > 0 ? details : NULL,
                                &meta, &out->bytes, &out->size);
    fab_groups_destroy(&groups);
    fab_geometry_destroy(&geometry);
    fab_costs_destroy(&costs);
    return rc;
}

/* What the file that it was read of calls it, and whether it says that it is the default. NULL: it is of none
 * that has several topologies. */
static const struct fab_subnet *plane_view(const struct fab_plane *plane)
{
    const struct fab_subnet *subnet =
        plane->inv->n_subnets > plane->subnet ? &plane->inv->subnets[plane->subnet] : NULL;
    return subnet != NULL && !plane->unattached && fab_snapshot_name_ok(subnet->view) &&
                   strcmp(subnet->view, UNATTACHED_PLANE) != 0
               ? subnet
               : NULL;
}

static const char *given_name(const struct fab_plane *plane, const struct ethernet_planes *ethernet)
{
    const struct fab_ethernet_plane *configured = ethernet_find(ethernet, plane_prefix(plane));
    const struct fab_subnet *view = plane_view(plane);
    return plane_prefix(plane) == FAB_UNATTACHED ? UNATTACHED_PLANE
           : configured != NULL                  ? configured->name
           : view != NULL                        ? view->view
                                                 : "";
}

/*
 * Names that do not come of numbers. A configured plane, or a topology of a file, whose switches do not all
 * reach each other is several planes: the largest, which comes first, has the name, the others have it with a
 * number.
 */
static void name_planes(const struct fab_planes *planes, const struct ethernet_planes *ethernet,
                        struct built_plane *out)
{
    for (uint32_t i = 0; i < planes->n; i++) {
        const char *name = given_name(&planes->planes[i], ethernet);
        unsigned part = 1;
        for (uint32_t k = 0; k < i && name[0] != '\0'; k++)
            part += strcmp(given_name(&planes->planes[k], ethernet), name) == 0;
        if (part == 1 || name[0] == '\0')
            snprintf(out[i].name, sizeof(out[i].name), "%s", name);
        else
            snprintf(out[i].name, sizeof(out[i].name), "%.50s.%u", name, part);
    }
}

/* Which of the planes is the default: the configured one, else that of the file, else the one that is it
 * already, else the first (planes come largest first) with a network. One without a switch stays the default
 * only where no other plane has any. */
static uint32_t default_of(const struct built *built, const struct fab_planes *planes,
                           const struct config *config, const struct store_plane *known,
                           struct pmixfab *const *fabs, uint32_t n_known)
{
    for (uint32_t i = 0; config->default_plane != NULL && i < built->n; i++)
        if (strcmp(built->planes[i].name, config->default_plane) == 0)
            return i;
    for (uint32_t i = 0; i < built->n; i++)
        if (plane_view(&planes->planes[i]) != NULL && plane_view(&planes->planes[i])->is_default)
            return i;
    for (uint32_t i = 0; i < built->n; i++)
        for (uint32_t k = 0; k < n_known && planes->planes[i].n_switches > 0; k++)
            if (!built->planes[i].is_new && !known[k].retired && known[k].index == built->planes[i].index &&
                fabs[k] != NULL && fabs[k]->meta->is_default != 0)
                return i;
    for (uint32_t i = 0; i < built->n; i++)
        if (strcmp(built->planes[i].name, UNATTACHED_PLANE) != 0)
            return i;
    return 0;
}

/* Open what the planes were last; a snapshot that this version cannot read is NULL. */
static struct pmixfab **open_known(const struct store_plane *known, uint32_t n_known)
{
    struct pmixfab **fabs = calloc((size_t)n_known + 1, sizeof(*fabs));
    for (uint32_t k = 0; fabs != NULL && k < n_known; k++)
        if (known[k].fab != NULL)
            fabs[k] = known[k].fab;
        else if (known[k].snapshot != NULL)
            (void)fab_snapshot_borrow(known[k].snapshot, known[k].size, &fabs[k], NULL);
    return fabs;
}

static void close_known(const struct store_plane *known, struct pmixfab **fabs, uint32_t n_known)
{
    for (uint32_t k = 0; fabs != NULL && k < n_known; k++)
        if (known[k].fab == NULL)
            pmixfab_close(fabs[k]);
    free(fabs);
}

static const struct pmixfab *find_known(const struct store_plane *known, struct pmixfab *const *fabs,
                                        uint32_t n_known, const struct built_plane *plane)
{
    for (uint32_t k = 0; !plane->is_new && k < n_known; k++)
        if (known[k].index == plane->index)
            return fabs[k];
    return NULL;
}

/* What the host calls the port; NULL: it has not said. */
static const char *interface_of(const struct fab_details *details, uint32_t port)
{
    for (uint32_t f = details->n_ports > 0 ? details->first[port] : 0;
         details->n_ports > 0 && f < details->first[port + 1]; f++)
        if (details->facts[f].kind == FAB_FACT_INTERFACE &&
            (details->facts[f].flags & FAB_DETAIL_CHOSEN) != 0)
            return details->pool + details->facts[f].text;
    return NULL;
}

/* Mark the devices that the patterns (NULL: none are marked) have by their name, with or without a port, by
 * their network interface, or by their leaf. Returns how many. */
static uint32_t compute_devices_mark(struct fab_plane *plane, const struct fab_details *details,
                                     const char *patterns)
{
    const struct fab_inventory *inv = plane->inv;
    uint32_t n = 0;
    for (uint32_t i = 0; i < plane->n_devices && patterns != NULL; i++) {
        struct fab_device *device = &plane->devices[i];
        const struct fab_port *port = &inv->ports[device->port];
        const char *name = fab_str(inv, inv->nodes[port->node].name);
        char with_port[320];
        snprintf(with_port, sizeof(with_port), "%s:%u", name, (unsigned)port->num);
        const char *const names[] = {
            name, with_port, interface_of(details, device->port),
            device->sw == FAB_NONE ? NULL : fab_str(inv, inv->nodes[plane->switches[device->sw].node].name)};
        device->compute = fab_pattern_has(patterns, names, sizeof(names) / sizeof(names[0]));
        n += device->compute;
    }
    return n;
}

int compute_planes(const struct fab_joined *joined, const struct config *config,
                   const struct store_plane *known, uint32_t n_known, struct built *out, struct fab_err *err)
{
    struct fab_planes planes = {0};
    struct ethernet_planes ethernet;
    *out = (struct built){0};
    ethernet_planes(config, &ethernet);
    int rc = fab_planes_build(&joined->inv, config->cost_model, &planes, err);
    if (rc != PMIXFAB_OK)
        return rc;
    struct pmixfab **fabs = open_known(known, n_known);
    bool *is_rail = calloc((size_t)planes.n + 1, sizeof(*is_rail));
    out->planes = calloc(planes.n > 0 ? planes.n : 1, sizeof(*out->planes));
    if (out->planes == NULL || fabs == NULL || is_rail == NULL ||
        rail_planes_find(&planes, is_rail) != PMIXFAB_OK) {
        rc = fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
        goto cleanup;
    }
    out->n = planes.n;
    name_planes(&planes, &ethernet, out->planes);
    rc = number_planes(&planes, known, fabs, n_known, out->planes, err);
    uint32_t first = rc == PMIXFAB_OK ? default_of(out, &planes, config, known, fabs, n_known) : 0,
             n_compute = 0;
    for (uint32_t i = 0; i < planes.n; i++)
        n_compute += compute_devices_mark(&planes.planes[i], &joined->details, config->compute);
    if (config->compute != NULL && n_compute == 0)
        log_warning("[fabric] compute = %s: no device, port, interface or leaf is called so; jobs use all "
                    "devices (fabricctl devices lists their names)",
                    config->compute);
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < planes.n; i++) {
        const struct pmixfab *before = find_known(known, fabs, n_known, &out->planes[i]);
        rc = build_one(&planes.planes[i], is_rail[i], before, &joined->details, &ethernet, config, i == first,
                       &out->planes[i]);
        if (rc != PMIXFAB_OK)
            fab_fail(err, rc, "plane %s cannot be computed: %s", out->planes[i].name, pmixfab_strerror(rc));
    }
cleanup:
    free(is_rail);
    close_known(known, fabs, n_known);
    fab_planes_destroy(&planes);
    if (rc != PMIXFAB_OK)
        built_destroy(out);
    return rc;
}

void built_destroy(struct built *built)
{
    for (uint32_t i = 0; built->planes != NULL && i < built->n; i++)
        free(built->planes[i].bytes);
    free(built->planes);
    *built = (struct built){0};
}
