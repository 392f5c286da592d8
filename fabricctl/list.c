/*
 * list.c - planes, devices and where these stand.
 */
#include "list.h"

#include <string.h>

static enum ctl_exit fill(struct ctl_table *table, const struct ctl *ctl, const struct ctl_view *view,
                          ctl_list_fn list)
{
    struct pmixfab_plane plane = {.name = "(unreadable)"};
    enum ctl_exit status;
    bool complete = true;

    for (size_t i = 0; table != NULL && complete && i < view->n; i++)
        complete = pmixfab_plane(view->planes[i], &plane) == 0 && list(table, ctl, view->planes[i], &plane);
    status = ctl_table_close(table);
    if (status == CTL_DONE && !complete && !ferror(stdout))
        status = ctl_error(
            "the answer is incomplete: plane %s: its snapshot contradicts itself, or memory ran out",
            plane.name);
    return status;
}

enum ctl_exit ctl_list_all(const struct ctl *ctl, const struct ctl_column *columns, size_t n_columns,
                           ctl_list_fn list)
{
    struct ctl_view view;
    enum ctl_exit status = ctl_view_all(ctl, &view);

    if (status != CTL_DONE)
        return status;
    status =
        fill(ctl_table_open(stdout, ctl->format, CTL_JSON_ARRAY, NULL, columns, n_columns), ctl, &view, list);
    ctl_view_close(&view);
    return status;
}

void ctl_device_label(const struct pmixfab_device *device, bool with_port, char *buf, size_t size)
{
    if (with_port)
        snprintf(buf, size, "%s:%s:%u", device->host, device->name, device->port);
    else
        snprintf(buf, size, "%s:%s", device->host, device->name);
}

static const char *state_name(uint32_t state)
{
    return state == PMIXFAB_STATE_UP ? "up" : state == PMIXFAB_STATE_DOWN ? "down" : "unknown";
}

/* ---- planes ---- */

static const struct ctl_column plane_columns[] = {
    {"index", "INDEX", true},     {"name", "PLANE", false},           {"default", "DEFAULT", false},
    {"vendor", "VENDOR", false},  {"identifier", NULL, false},        {"kind", "KIND", false},
    {"devices", "DEVICES", true}, {"hosts", "HOSTS", true},           {"switches", "SWITCHES", true},
    {"links", "LINKS", true},     {"groups", "GROUPS", true},         {"dims", NULL, true},
    {"shape", "SHAPE", false},    {"physical_shape", NULL, false},    {"fastest_gbps", "GBIT/S", true},
    {"unnamed", NULL, true},      {"generation", "GENERATION", true}, {"published", NULL, false},
};

static bool list_plane(struct ctl_table *table, const struct ctl *ctl, const struct pmixfab *fab,
                       const struct pmixfab_plane *plane)
{
    (void)ctl;
    (void)fab;
    ctl_put_number(table, plane->index);
    ctl_put_text(table, plane->name);
    ctl_put_bool(table, plane->is_default != 0);
    ctl_put_text(table, plane->vendor);
    ctl_put_text(table, plane->identifier);
    ctl_put_text(table, plane->kind);
    ctl_put_number(table, plane->n_devices);
    ctl_put_number(table, plane->n_hosts);
    ctl_put_number(table, plane->n_switches);
    ctl_put_number(table, plane->n_links);
    ctl_put_number(table, plane->n_groups);
    ctl_put_number(table, plane->dims);
    ctl_put_numbers(table, plane->shape, plane->dims);
    ctl_put_numbers(table, plane->physical_shape, plane->physical_dims);
    ctl_put_rate(table, plane->fastest_mbps);
    ctl_put_number(table, plane->n_unnamed);
    ctl_put_number(table, (int64_t)plane->generation);
    ctl_put_time(table, plane->published);
    return ctl_table_row(table);
}

enum ctl_exit ctl_planes_table(const struct ctl *ctl, const struct ctl_view *view, json_t *into)
{
    return fill(
        ctl_table_open(stdout, ctl->format, CTL_JSON_ARRAY, into, plane_columns, CTL_COUNT(plane_columns)),
        ctl, view, list_plane);
}

enum ctl_exit ctl_planes(const struct ctl *ctl)
{
    return ctl_list_all(ctl, plane_columns, CTL_COUNT(plane_columns), list_plane);
}

/* ---- devices and coordinates ---- */

static const struct ctl_column device_columns[] = {
    {"index", "INDEX", true},        {"id", NULL, false},          {"plane", "PLANE", false},
    {"host", "HOST", false},         {"name", "DEVICE", false},    {"port", "PORT", true},
    {"guid", NULL, false},           {"node_guid", NULL, false},   {"system_guid", NULL, false},
    {"switch", "SWITCH", false},     {"switch_guid", NULL, false}, {"switch_port", "SWITCH-PORT", true},
    {"rate_gbps", "GBIT/S", true},   {"state", "STATE", false},    {"logical", "LOGICAL", false},
    {"physical", "PHYSICAL", false},
};

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

static bool device_row(struct ctl_table *table, const struct pmixfab *fab, const char *plane, uint32_t index)
{
    struct pmixfab_device device;
    struct pmixfab_switch sw;
    bool switched;

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
    ctl_put_text(table, switched ? sw.name : NULL);
    ctl_put_guid(table, switched ? sw.guid : 0);
    if (switched)
        ctl_put_number(table, device.switch_port);
    else
        ctl_put_null(table);
    ctl_put_rate(table, device.mbps);
    ctl_put_text(table, state_name(device.state));
    put_coords(table, fab, index, PMIXFAB_LOGICAL);
    put_coords(table, fab, index, PMIXFAB_PHYSICAL);
    return ctl_table_row(table);
}

/* The devices of the host that was asked for; those of all hosts else. */
static void device_range(const struct ctl *ctl, const struct pmixfab *fab, const struct pmixfab_plane *plane,
                         uint32_t *first, uint32_t *n)
{
    *first = 0;
    *n = plane->n_devices;
    if (ctl->n_args == 0)
        return;
    for (uint32_t i = 0; i < plane->n_hosts; i++) {
        const char *name;

        if (pmixfab_host(fab, i, &name, first, n) == 0 && strcmp(name, ctl->args[0]) == 0)
            return;
    }
    *n = 0;
}

static bool list_device(struct ctl_table *table, const struct ctl *ctl, const struct pmixfab *fab,
                        const struct pmixfab_plane *plane)
{
    uint32_t first, n;

    device_range(ctl, fab, plane, &first, &n);
    for (uint32_t i = first; i < first + n; i++)
        if (!device_row(table, fab, plane->name, i))
            return false;
    return true;
}

enum ctl_exit ctl_devices(const struct ctl *ctl)
{
    struct ctl_view view;
    enum ctl_exit status = ctl_view_all(ctl, &view);
    bool found = ctl->n_args == 0;

    if (status != CTL_DONE)
        return status;
    for (size_t i = 0; i < view.n && !found; i++) {
        struct pmixfab_plane plane;
        uint32_t first, n = 0;

        if (pmixfab_plane(view.planes[i], &plane) == 0)
            device_range(ctl, view.planes[i], &plane, &first, &n);
        found = n > 0;
    }
    if (found)
        status = fill(ctl_table_open(stdout, ctl->format, CTL_JSON_ARRAY, NULL, device_columns,
                                     CTL_COUNT(device_columns)),
                      ctl, &view, list_device);
    else
        status = ctl_error("no host %s: %s: `fabricctl groups` shows the hosts that there are", ctl->args[0],
                           ctl->uri != NULL ? ctl->uri : ctl->rundir);
    ctl_view_close(&view);
    return status;
}

static const struct ctl_column coord_columns[] = {
    {"index", "INDEX", true},        {"plane", "PLANE", false}, {"host", "HOST", false},
    {"name", "DEVICE", false},       {"port", "PORT", true},    {"logical", "LOGICAL", false},
    {"physical", "PHYSICAL", false},
};

static bool list_coord(struct ctl_table *table, const struct ctl *ctl, const struct pmixfab *fab,
                       const struct pmixfab_plane *plane)
{
    (void)ctl;
    for (uint32_t i = 0; i < plane->n_devices; i++) {
        struct pmixfab_device device;

        if (pmixfab_device(fab, i, &device) != 0)
            return false;
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
    return ctl_list_all(ctl, coord_columns, CTL_COUNT(coord_columns), list_coord);
}
