/*
 * list_devices.c - devices, what is known of them, and where these stand.
 */
#include <stdlib.h>
#include <string.h>

#include "fabricctl/show/fabric.h"
#include "fabricctl/show/labels.h"
#include "fabricctl/show/list.h"
#include "fabricctl/show/ports.h"
#include "fabricctl/show/show_facts.h"
#include "fabricctl/show/wanted.h"

/* ---- devices ---- */

static const char *device_state_name(uint32_t state)
{
    return state == PMIXFAB_STATE_UP ? "up" : state == PMIXFAB_STATE_DOWN ? "down" : "unknown";
}

static const char *seen_by(uint32_t seen)
{
    static const char *const words[] = {NULL, "subnet",  "node", "subnet,node",
                                        NULL, "missing", NULL,   "missing,node"};

    return words[seen & 7];
}

/* As it is told over PMIx: a sweep sees InfiniBand only, and what has a MAC for its id is Ethernet. */
static const char *type_name(const struct pmixfab *fab, const struct pmixfab_device *device)
{
    const char *said = pmixfab_fact_text(fab, device->index, "type");

    if (said != NULL)
        return said;
    if (strncmp(device->id, "ipv4://", strlen("ipv4://")) == 0)
        return "Ethernet";
    return (device->seen & PMIXFAB_SEEN_SUBNET) != 0 ? "InfiniBand" : NULL;
}

static const struct ctl_column device_columns[] = {
    {"index", "INDEX", true},      {"id", NULL, false},
    {"plane", "PLANE", false},     {"host", "HOST", false},
    {"name", "DEVICE", false},     {"port", "PORT", true},
    {"guid", NULL, false},         {"node_guid", NULL, false},
    {"system_guid", NULL, false},  {"switch", "SWITCH", false},
    {"switch_guid", NULL, false},  {"switch_port", "SWITCH-PORT", true},
    {"rate_gbps", "GBIT/S", true}, {"state", "STATE", false},
    {"logical", "LOGICAL", false}, {"physical", "PHYSICAL", false},
    {"type", NULL, false},         {"seen", "SEEN", false},
    {"vendor", NULL, false},       {"firmware", NULL, false},
    {"driver", NULL, false},       {"pci", NULL, false},
    {"mtu", NULL, true},           {"numa", NULL, true},
    {"missing", NULL, false},      {"rail", "RAIL", true},
    {"lid", "LID", true},          {"width", NULL, false},
    {"facts", NULL, false}, /* the last: of the devices of one host, in JSON */
};

static bool with_facts(const struct ctl *ctl)
{
    return ctl->n_args > 0 && ctl->format == CTL_JSON;
}

static void put_coords(struct ctl_table *table, const struct pmixfab *fab, uint32_t device,
                       enum pmixfab_view which)
{
    const uint32_t *coords;
    uint32_t dims;

    if (pmixfab_coords(fab, device, which, &coords, &dims) == 0)
        ctl_put_numbers(table, coords, dims);
    else
        ctl_put_null(table);
}

static void put_fact_number(struct ctl_table *table, const struct pmixfab *fab, uint32_t device,
                            const char *kind)
{
    const char *text = pmixfab_fact_text(fab, device, kind);

    if (text == NULL)
        ctl_put_null(table);
    else
        ctl_put_number(table, strtoll(text, NULL, 10));
}

static void put_known(struct ctl_table *table, const struct pmixfab *fab, const struct pmixfab_device *device)
{
    ctl_put_text(table, type_name(fab, device));
    ctl_put_text(table, seen_by(device->seen));
    ctl_put_text(table, pmixfab_fact_text(fab, device->index, "vendor"));
    ctl_put_text(table, pmixfab_fact_text(fab, device->index, "firmware"));
    ctl_put_text(table, pmixfab_fact_text(fab, device->index, "driver"));
    ctl_put_text(table, pmixfab_fact_text(fab, device->index, "pci"));
    put_fact_number(table, fab, device->index, "mtu");
    put_fact_number(table, fab, device->index, "numa");
}

static bool device_row(struct ctl_table *table, const struct ctl *ctl, const struct pmixfab *fab,
                       const char *plane, uint32_t index)
{
    struct pmixfab_device device;
    struct pmixfab_switch sw;
    bool switched;
    char shown[CTL_SHOWN_SIZE];

    if (pmixfab_device(fab, index, &device) != 0)
        return false;
    switched = device.switch_index != UINT32_MAX && pmixfab_switch(fab, device.switch_index, &sw) == 0;
    ctl_put_number(table, index);
    ctl_put_text(table, device.id);
    ctl_put_text(table, plane);
    ctl_put_text(table, device.host);
    ctl_put_text(table, device.name);
    ctl_put_number(table, device.port);
    ctl_put_guid(table, device.port_guid);
    ctl_put_guid(table, device.node_guid);
    ctl_put_guid(table, device.system_guid);
    ctl_put_text(table, switched ? ctl_name_shown(ctl->ports->shared, sw.name, sw.guid, shown) : NULL);
    ctl_put_guid(table, switched ? sw.guid : 0);
    if (switched)
        ctl_put_number(table, device.switch_port);
    else
        ctl_put_null(table);
    ctl_put_rate(table, device.mbps);
    ctl_put_text(table, device_state_name(device.state));
    put_coords(table, fab, index, PMIXFAB_LOGICAL);
    put_coords(table, fab, index, PMIXFAB_PHYSICAL);
    put_known(table, fab, &device);
    ctl_put_bool(table, (device.seen & PMIXFAB_SEEN_MISSING) != 0);
    ctl_list_number(table, device.rail);
    ctl_put_lid(table, ctl, device.node_guid, device.port);
    ctl_put_width(table, ctl, device.node_guid, device.port);
    if (with_facts(ctl))
        ctl_put_json(table, ctl_facts_json(fab, index));
    return ctl_table_row(table);
}

/* The devices of the host that was asked for; those of all hosts else. */
static void device_range(const struct ctl *ctl, const struct pmixfab *fab, const struct pmixfab_plane *plane,
                         uint32_t *first, uint32_t *n)
{
    const char *name;
    uint32_t host;

    *first = 0;
    *n = plane->n_devices;
    if (ctl->n_args == 0)
        return;
    if (pmixfab_find_host(fab, ctl->args[0], &host) != 0 || pmixfab_host(fab, host, &name, first, n) != 0)
        *n = 0;
}

static bool device_shown(const struct ctl *ctl, const struct pmixfab *fab, uint32_t index)
{
    struct pmixfab_device device;

    return !ctl->down || pmixfab_device(fab, index, &device) != 0 || device.state != PMIXFAB_STATE_UP;
}

static bool list_device(struct ctl_table *table, const struct ctl *ctl, const struct pmixfab *fab,
                        const struct pmixfab_plane *plane)
{
    uint32_t first, n;

    device_range(ctl, fab, plane, &first, &n);
    for (uint32_t i = first; i < first + n; i++)
        if (device_shown(ctl, fab, i) && !device_row(table, ctl, fab, plane->name, i))
            return false;
    return true;
}

static enum ctl_exit show_devices(const struct ctl *ctl, const struct ctl_view *view)
{
    size_t n = CTL_COUNT(device_columns) - !with_facts(ctl);
    enum ctl_exit status = ctl_list_view(
        ctl_table_open(stdout, ctl->format, CTL_JSON_ARRAY, NULL, device_columns, n), ctl, view, list_device);

    for (size_t i = 0; status == CTL_DONE && ctl->n_args > 0 && ctl->format == CTL_TEXT && i < view->n; i++) {
        struct pmixfab_plane plane;
        uint32_t first = 0, count = 0;

        if (pmixfab_plane(view->planes[i], &plane) == 0)
            device_range(ctl, view->planes[i], &plane, &first, &count);
        for (uint32_t d = first; d < first + count; d++)
            ctl_facts_print(view->planes[i], plane.name, d);
    }
    return status;
}

enum ctl_exit ctl_devices(const struct ctl *ctl)
{
    struct ctl_view view;
    struct ctl of_host = *ctl;
    enum ctl_exit status = ctl_view_all(ctl, &view);
    char *host = NULL;

    if (status != CTL_DONE)
        return status;
    if (ctl->n_args > 0) {
        host = (char *)ctl_find_host(ctl, &view, ctl->args[0]);
        of_host.args = &host;
    }
    status = ctl->n_args == 0 || host != NULL ? show_devices(&of_host, &view) : CTL_FAILED;
    ctl_view_close(&view);
    return status;
}

static bool list_wanted_device(struct ctl_table *table, const struct ctl *ctl, const struct pmixfab *fab,
                               const struct pmixfab_plane *plane)
{
    for (uint32_t i = 0; i < plane->n_devices; i++) {
        struct pmixfab_device device;

        if (pmixfab_device(fab, i, &device) != 0)
            return false;
        if (ctl_wants_device(ctl, &device) && !device_row(table, ctl, fab, plane->name, i))
            return false;
    }
    return true;
}

enum ctl_exit ctl_devices_table(const struct ctl *ctl, const struct ctl_view *view, json_t *into)
{
    return ctl_list_view(ctl_table_open(stdout, ctl->format, CTL_JSON_ARRAY, into, device_columns,
                                        CTL_COUNT(device_columns) - 1),
                         ctl, view, list_wanted_device);
}

enum ctl_exit ctl_one_device(const struct ctl *ctl)
{
    return ctl_list_wanted(ctl, "device", "devices", device_columns,
                           CTL_COUNT(device_columns) - !with_facts(ctl), list_wanted_device);
}

/* ---- coordinates ---- */

static const struct ctl_column coord_columns[] = {
    {"index", "INDEX", true},        {"plane", "PLANE", false}, {"host", "HOST", false},
    {"name", "DEVICE", false},       {"port", "PORT", true},    {"logical", "LOGICAL", false},
    {"physical", "PHYSICAL", false},
};

static bool list_coord(struct ctl_table *table, const struct ctl *ctl, const struct pmixfab *fab,
                       const struct pmixfab_plane *plane)
{
    for (uint32_t i = 0; i < plane->n_devices; i++) {
        struct pmixfab_device device;

        if (pmixfab_device(fab, i, &device) != 0)
            return false;
        if (!ctl_wants_device(ctl, &device) || (ctl->down && device.state == PMIXFAB_STATE_UP))
            continue;
        ctl_put_number(table, i);
        ctl_put_text(table, plane->name);
        ctl_put_text(table, device.host);
        ctl_put_text(table, device.name);
        ctl_put_number(table, device.port);
        put_coords(table, fab, i, PMIXFAB_LOGICAL);
        put_coords(table, fab, i, PMIXFAB_PHYSICAL);
        if (!ctl_table_row(table))
            return false;
    }
    return true;
}

enum ctl_exit ctl_coords(const struct ctl *ctl)
{
    return ctl_list_wanted(ctl, "host or device", "coords", coord_columns, CTL_COUNT(coord_columns),
                           list_coord);
}
