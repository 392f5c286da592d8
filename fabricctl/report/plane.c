/*
 * plane.c - a plane as the page takes it: an array a column, since ten thousand objects would repeat their
 * keys.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "fabricctl/core/ctl.h"
#include "fabricctl/report/report_page.h"
#include "fabricctl/show/show.h"

static void report_add(json_t *object, const char *column, json_t *value)
{
    json_array_append_new(json_object_get(object, column), value);
}

static void report_add_number(json_t *object, const char *column, uint64_t number)
{
    report_add(object, column, number == UINT32_MAX ? json_null() : json_integer((json_int_t)number));
}

static void report_add_guid(json_t *object, const char *column, uint64_t guid)
{
    char text[17];
    snprintf(text, sizeof text, "%" PRIx64, guid);
    report_add(object, column, json_string(text));
}

/* An object of empty columns. */
static json_t *report_columns(const char *const *names, size_t n)
{
    json_t *object = json_object();
    for (size_t i = 0; i < n; i++)
        json_object_set_new(object, names[i], json_array());
    return object;
}

static json_t *report_numbers(const uint32_t *numbers, size_t n)
{
    json_t *array = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(array, json_integer(numbers[i]));
    return array;
}

/* ---- switches ---- */

/* Where each switch stands: the coordinates of its first device. */
static bool report_places(const struct pmixfab *fab, const struct pmixfab_plane *plane, json_t *at)
{
    struct pmixfab_device device;
    const uint32_t *coords;
    uint32_t dims;
    for (uint32_t i = 0; i < plane->n_switches; i++)
        json_array_append_new(at, json_null());
    for (uint32_t i = 0; i < plane->n_devices; i++) {
        if (pmixfab_device(fab, i, &device) != 0 ||
            pmixfab_coords(fab, i, PMIXFAB_LOGICAL, &coords, &dims) != 0)
            return false;
        if (json_is_null(json_array_get(at, device.switch_index)))
            json_array_set_new(at, device.switch_index, report_numbers(coords, dims));
    }
    return true;
}

static json_t *report_switches(const struct pmixfab *fab, const struct pmixfab_plane *plane,
                               const json_t *shared)
{
    static const char *const columns[] = {"name", "guid", "level", "ports", "missing", "unit", "rail", "at"};
    json_t *object = report_columns(columns, CTL_COUNT(columns));
    bool good = report_places(fab, plane, json_object_get(object, "at"));
    for (uint32_t i = 0; good && i < plane->n_switches; i++) {
        struct pmixfab_switch sw;
        char shown[CTL_SHOWN_SIZE];
        good = pmixfab_switch(fab, i, &sw) == 0;
        if (!good)
            break;
        report_add(object, "name", ctl_json_text(ctl_name_shown(shared, sw.name, sw.guid, shown)));
        report_add_guid(object, "guid", sw.guid);
        report_add_number(object, "level", sw.level);
        report_add_number(object, "ports", sw.n_ports);
        report_add_number(object, "missing", sw.missing);
        report_add_number(object, "unit", sw.unit);
        report_add_number(object, "rail", sw.rail);
    }
    if (good)
        return object;
    json_decref(object);
    return NULL;
}

/* ---- hosts and devices ---- */

static json_t *report_hosts(const struct pmixfab *fab, const struct pmixfab_plane *plane)
{
    static const char *const columns[] = {"name", "devices"};
    json_t *object = report_columns(columns, CTL_COUNT(columns));
    for (uint32_t i = 0; i < plane->n_hosts; i++) {
        const char *name;
        uint32_t first, n;
        if (pmixfab_host(fab, i, &name, &first, &n) != 0) {
            json_decref(object);
            return NULL;
        }
        report_add(object, "name", ctl_json_text(name));
        report_add_number(object, "devices", n);
    }
    return object;
}

/* Devices of a fabric have few different names: the number of this one in the list of all. */
static size_t report_name_number(json_t *numbers, json_t *names, const char *name)
{
    json_t *known = json_object_get(numbers, name);
    if (known == NULL) {
        json_object_set_new_nocheck(numbers, name, json_integer((json_int_t)json_array_size(names)));
        json_array_append_new(names, ctl_json_text(name));
        return json_array_size(names) - 1;
    }
    return (size_t)json_integer_value(known);
}

/* The node's GUID: of most cards the port's is the same, or a little more, and a small number is short. */
static void report_add_node(json_t *object, const struct pmixfab_device *device)
{
    const uint64_t beyond = device->port_guid - device->node_guid;
    if (beyond < 256)
        report_add_number(object, "node", beyond);
    else
        report_add_guid(object, "node", device->node_guid);
}

/* Where they are cabled to is in the links. */
static json_t *report_devices(const struct pmixfab *fab, const struct pmixfab_plane *plane)
{
    static const char *const columns[] = {"names", "name", "port", "guid", "node", "state", "seen"};
    json_t *object = report_columns(columns, CTL_COUNT(columns)), *numbers = json_object();
    for (uint32_t i = 0; i < plane->n_devices; i++) {
        struct pmixfab_device device;
        if (pmixfab_device(fab, i, &device) != 0) {
            json_decref(object);
            object = NULL;
            break;
        }
        report_add_number(object, "name",
                          report_name_number(numbers, json_object_get(object, "names"), device.name));
        report_add_number(object, "port", device.port);
        report_add_guid(object, "guid", device.port_guid);
        report_add_node(object, &device);
        report_add_number(object, "state", device.state);
        report_add_number(object, "seen", device.seen);
    }
    json_decref(numbers);
    return object;
}

/* ---- links and groups ---- */

/* A switch by its index, a device by -1 less its own; null: a router or an aggregation node. */
static void report_add_end(json_t *object, const char *column, const struct pmixfab_end *end)
{
    json_int_t index = end->index;
    report_add(object, column,
               end->index == UINT32_MAX ? json_null()
                                        : json_integer(end->is_switch != 0 ? index : -1 - index));
}

static json_t *report_links(const struct pmixfab *fab, const struct pmixfab_plane *plane)
{
    static const char *const columns[] = {"a", "a_port", "b", "b_port", "mbps", "missing"};
    json_t *object = report_columns(columns, CTL_COUNT(columns));
    for (uint32_t i = 0; i < plane->n_links; i++) {
        struct pmixfab_link link;
        if (pmixfab_link(fab, i, &link) != 0) {
            json_decref(object);
            return NULL;
        }
        report_add_end(object, "a", &link.a);
        report_add_number(object, "a_port", link.a.port);
        report_add_end(object, "b", &link.b);
        report_add_number(object, "b_port", link.b.port);
        report_add_number(object, "mbps", link.mbps);
        report_add_number(object, "missing", link.missing);
    }
    return object;
}

static json_t *report_groups(const struct pmixfab *fab, const struct pmixfab_plane *plane,
                             const json_t *shared)
{
    static const char *const columns[] = {"name", "hosts"};
    json_t *object = report_columns(columns, CTL_COUNT(columns));
    for (uint32_t g = 0; g < plane->n_groups; g++) {
        char shown[CTL_SHOWN_SIZE];
        const uint32_t *hosts;
        uint32_t n;
        if (pmixfab_group(fab, g, &hosts, &n) != 0) {
            json_decref(object);
            return NULL;
        }
        report_add(object, "name", ctl_json_text(ctl_group_shown(shared, fab, g, shown)));
        report_add(object, "hosts", report_numbers(hosts, n));
    }
    return object;
}

/* ---- */

json_t *report_plane_json(const struct pmixfab *fab, const struct pmixfab_plane *plane, const json_t *shared)
{
    char time[CTL_TIME_SIZE];
    return json_pack("{s:I, s:s, s:I, s:o, s:o, s:o, s:o, s:I, s:o, s:o, s:o, s:o, s:o}", "generation",
                     (json_int_t)plane->generation, "published", ctl_time(plane->published, time), "index",
                     (json_int_t)plane->index, "name", ctl_json_text(plane->name), "vendor",
                     ctl_json_text(plane->vendor), "identifier", ctl_json_text(plane->identifier), "kind",
                     ctl_json_text(plane->kind), "fastest_mbps", (json_int_t)plane->fastest_mbps, "switches",
                     report_switches(fab, plane, shared), "hosts", report_hosts(fab, plane), "devices",
                     report_devices(fab, plane), "links", report_links(fab, plane), "groups",
                     report_groups(fab, plane, shared));
}
