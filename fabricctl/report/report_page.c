/*
 * report_page.c - write the page of the report. It is the built page with this fabric's data in it: planes,
 * costs by classes, findings, changes.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabricctl/core/ctl.h"
#include "fabricctl/export/export.h"
#include "fabricctl/report/report_page.h"
#include "fabricctl/show/show.h"

/*
 * ---- the costs of a plane, by classes
 *
 * Devices on one switch, with links of one cost, have the same costs to all devices of other hosts. So ten
 * thousand devices are some hundred classes.
 */

/* Costs of more pairs make a page too large to send. */
#define CLASSES_MAX 2500
/* A cost in a text is one character: its number among the different costs, from here on. */
#define FIRST_CHARACTER 0x5d
#define LAST_CHARACTER  0xd7ff

struct cost_class {
    /* the switch, or a number beyond for a device without one; the cost of the device's link */
    uint32_t place, access;
    uint32_t first, other; /* a device of it; one of another host than the first's, UINT32_MAX: none */
};

struct classes {
    const struct pmixfab *fab;
    const struct pmixfab_plane *plane;
    uint32_t *host, *place, *access, *of; /* for each device */
    uint32_t *last;                       /* for each place: its newest class */
    uint32_t *before;                     /* for each class: the previous one of its place */
    struct cost_class *all;
    uint32_t n;
    uint16_t number[UINT16_MAX + 1]; /* for each cost that occurs, from 1 */
    json_t *values;                  /* those costs */
};

/* Allocate all columns at once. */
static bool classes_room(struct classes *c)
{
    size_t n = c->plane->n_devices, places = c->plane->n_switches + n;
    uint32_t *columns = calloc(5 * n + places + 1, sizeof *columns);
    c->all = calloc(n + 1, sizeof *c->all);
    c->values = json_array();
    if (columns == NULL)
        return false;
    c->host = columns;
    c->place = columns + n;
    c->access = columns + 2 * n;
    c->of = columns + 3 * n;
    c->before = columns + 4 * n;
    c->last = columns + 5 * n;
    return c->all != NULL && c->values != NULL;
}

static void classes_free(struct classes *c)
{
    json_decref(c->values);
    free(c->all);
    free(c->host);
    free(c);
}

/*
 * Find the place of each device, and the cost of its link. Devices without a cable between share one place.
 */
static bool classes_look(struct classes *c)
{
    bool apart = strcmp(c->plane->kind, "unattached") != 0;
    struct pmixfab_device device;
    struct pmixfab_link link;
    for (uint32_t i = 0; i < c->plane->n_devices; i++) {
        if (pmixfab_device(c->fab, i, &device) != 0)
            return false;
        c->host[i] = device.host_index;
        c->place[i] =
            device.switch_index != UINT32_MAX ? device.switch_index : c->plane->n_switches + (apart ? i : 0);
    }
    for (uint32_t i = 0; i < c->plane->n_links; i++) {
        if (pmixfab_link(c->fab, i, &link) != 0)
            return false;
        if (link.a.kind == PMIXFAB_END_DEVICE && link.a.index < c->plane->n_devices)
            c->access[link.a.index] = link.cost;
        if (link.b.kind == PMIXFAB_END_DEVICE && link.b.index < c->plane->n_devices)
            c->access[link.b.index] = link.cost;
    }
    return true;
}

/* Number the classes in order of appearance, so that neighbours in the table are neighbours in the fabric. */
static void classes_find(struct classes *c)
{
    memset(c->last, 0xff, (c->plane->n_switches + (size_t)c->plane->n_devices) * sizeof *c->last);
    for (uint32_t i = 0; i < c->plane->n_devices; i++) {
        uint32_t k = c->last[c->place[i]];
        while (k != UINT32_MAX && c->all[k].access != c->access[i])
            k = c->before[k];
        if (k == UINT32_MAX) {
            k = c->n++;
            c->all[k] = (struct cost_class){c->place[i], c->access[i], i, UINT32_MAX};
            c->before[k] = c->last[c->place[i]];
            c->last[c->place[i]] = k;
        } else if (c->all[k].other == UINT32_MAX && c->host[i] != c->host[c->all[k].first]) {
            c->all[k].other = i;
        }
        c->of[i] = k;
    }
}

/*
 * Return the cost between devices of two hosts. Return 0 if all devices of both classes are on one host,
 * because the cost is unused then.
 */
static uint16_t costs_between(const struct classes *c, uint32_t a, uint32_t b)
{
    const uint32_t from[] = {c->all[a].first, c->all[a].other}, to[] = {c->all[b].first, c->all[b].other};
    uint16_t cost = 0;
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < 2; k++)
            if (from[i] != UINT32_MAX && to[k] != UINT32_MAX && c->host[from[i]] != c->host[to[k]])
                return pmixfab_cost(c->fab, from[i], to[k], &cost) == 0 ? cost : 0;
    return 0;
}

static void put_character(FILE *out, unsigned code)
{
    if (code < 0x80) {
        putc((int)code, out);
    } else if (code < 0x800) {
        putc((int)(0xc0 | code >> 6), out);
        putc((int)(0x80 | (code & 0x3f)), out);
    } else {
        putc((int)(0xe0 | code >> 12), out);
        putc((int)(0x80 | (code >> 6 & 0x3f)), out);
        putc((int)(0x80 | (code & 0x3f)), out);
    }
}

/* Write a cost, followed by its count if it is more than one. */
static void put_run(struct classes *c, FILE *out, uint16_t cost, uint32_t times)
{
    if (c->number[cost] == 0) {
        json_array_append_new(c->values, cost == PMIXFAB_NO_PATH ? json_null() : json_integer(cost));
        c->number[cost] = (uint16_t)json_array_size(c->values);
    }
    put_character(out, FIRST_CHARACTER + c->number[cost] - 1u);
    if (times > 1)
        fprintf(out, "%u", times);
}

/* Return the costs from class `a` to itself and to the following classes; the other half is symmetric. */
static json_t *costs_row(struct classes *c, uint32_t a)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    uint32_t times = 1;
    uint16_t cost = costs_between(c, a, a);
    json_t *row;
    if (out == NULL)
        return NULL;
    for (uint32_t b = a + 1; b < c->n; b++) {
        uint16_t next = costs_between(c, a, b);
        if (next == cost) {
            times++;
            continue;
        }
        put_run(c, out, cost, times);
        cost = next;
        times = 1;
    }
    put_run(c, out, cost, times);
    row = fclose(out) == 0 ? json_stringn_nocheck(text, size) : NULL;
    free(text);
    return row;
}

static json_t *costs_rows(struct classes *c)
{
    json_t *rows = json_array();
    for (uint32_t a = 0; a < c->n; a++) {
        json_t *row = costs_row(c, a);
        if (row == NULL || json_array_size(c->values) > LAST_CHARACTER - FIRST_CHARACTER) {
            json_decref(row);
            json_decref(rows);
            return NULL;
        }
        json_array_append_new(rows, row);
    }
    return rows;
}

static json_t *classes_of_devices(const struct classes *c)
{
    json_t *array = json_array();
    for (uint32_t i = 0; i < c->plane->n_devices; i++)
        json_array_append_new(array, json_integer(c->of[i]));
    return array;
}

/* Return the costs within a host: a digit for each pair of its devices, (0,1), (0,2), ... (1,2), ... */
static char *inside_text(const struct pmixfab *fab, uint32_t first, uint32_t n)
{
    char *text = malloc((size_t)n * (n - 1) / 2 + 1);
    size_t used = 0;
    for (uint32_t a = first; text != NULL && a < first + n; a++)
        for (uint32_t b = a + 1; b < first + n; b++) {
            uint16_t cost;
            text[used++] = pmixfab_cost(fab, a, b, &cost) == 0 && cost < 10 ? (char)('0' + cost) : '-';
        }
    if (text != NULL)
        text[used] = '\0';
    return text;
}

/* Find for each host the number of its text among the different ones: most hosts are equal. */
static bool costs_inside(const struct pmixfab *fab, const struct pmixfab_plane *plane, json_t *inside,
                         json_t *texts)
{
    json_t *numbers = json_object();
    bool good = true;
    for (uint32_t i = 0; good && i < plane->n_hosts; i++) {
        const char *name;
        uint32_t first, n;
        char *text;
        good = pmixfab_host(fab, i, &name, &first, &n) == 0 && n > 0;
        text = good ? inside_text(fab, first, n) : NULL;
        good = text != NULL;
        if (good && json_object_get(numbers, text) == NULL) {
            json_object_set_new(numbers, text, json_integer((json_int_t)json_array_size(texts)));
            json_array_append_new(texts, json_string(text));
        }
        if (good)
            json_array_append(inside, json_object_get(numbers, text));
        free(text);
    }
    json_decref(numbers);
    return good;
}

/* Return the costs of a plane, by classes of devices. NULL as below. */
static json_t *report_costs_json(const struct pmixfab *fab, const struct pmixfab_plane *plane)
{
    struct classes *c = calloc(1, sizeof *c);
    json_t *inside = json_array(), *texts = json_array(), *costs = NULL, *rows;
    if (c == NULL)
        goto cleanup;
    c->fab = fab;
    c->plane = plane;
    if (!classes_room(c) || !classes_look(c) || !costs_inside(fab, plane, inside, texts))
        goto cleanup;
    classes_find(c);
    if (c->n > CLASSES_MAX) {
        costs = json_pack("{s:i}", "classes", (int)c->n);
        goto cleanup;
    }
    rows = costs_rows(c);
    costs = json_pack("{s:i, s:o, s:o, s:O, s:O, s:O}", "classes", (int)c->n, "class", classes_of_devices(c),
                      "rows", rows, "values", c->values, "inside", inside, "inside_texts", texts);
cleanup:
    json_decref(inside);
    json_decref(texts);
    if (c != NULL)
        classes_free(c);
    return costs;
}

/*
 * ---- a plane in the form of the page: an array a column, because ten thousand objects would repeat their
 * keys.
 */

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

/* Return an object of empty columns. */
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

/* Find the position of each switch: the coordinates of its first device. */
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

/*
 * Return the number of this device's name in the list of all; devices of a fabric have few different names.
 */
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

/* Return the devices; their cables are in the links. */
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
        /* store the node's GUID: most cards have the same GUID as the port, or a slightly smaller one, and
         * a small number is short */
        const uint64_t beyond = device.port_guid - device.node_guid;
        if (beyond < 256)
            report_add_number(object, "node", beyond);
        else
            report_add_guid(object, "node", device.node_guid);
        report_add_number(object, "state", device.state);
        report_add_number(object, "seen", device.seen);
    }
    json_decref(numbers);
    return object;
}

/* ---- links and groups ---- */

/*
 * Add an end. A switch is its index, a device is -1 less its index, and a router or an aggregation node is
 * null.
 */
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

/*
 * Return a whole plane without its costs. `shared`: the names that several objects have. NULL: there is no
 * memory, or the snapshot contradicts itself.
 */
static json_t *report_plane_json(const struct pmixfab *fab, const struct pmixfab_plane *plane,
                                 const json_t *shared)
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

/* ---- the page: the built page with this fabric's data in it ---- */

#define REPORT_CHANGES  50  /* the latest ones */
#define REPORT_FINDINGS 500 /* the gravest findings first, then findings that follow from them */
#define REPORT_SECONDS  30

/* Ask the daemon; if it does not answer, the page and a line on standard error report the failure. */
static json_t *report_ask(const struct ctl *ctl, json_t *request, const char *what, json_t *missing)
{
    char why[CTL_WHY_SIZE] = "over PMIx only the planes can be read";
    json_t *answer = NULL;
    if (ctl->uri != NULL)
        json_decref(request);
    else
        ctl_control_ask(ctl->rundir, request, REPORT_SECONDS, &answer, why);
    if (answer == NULL) {
        ctl_error("the page is without %s: %s", what, why);
        json_object_set_new(missing, what, ctl_json_text(why));
    }
    return answer;
}

static void report_findings(json_t *findings, json_t *page)
{
    size_t n = json_array_size(findings);
    json_t *chosen = json_array();
    json_object_set_new(page, "n_findings", json_integer((json_int_t)n));
    for (int hangs = 0; hangs < 2; hangs++)
        for (size_t i = 0; i < n && json_array_size(chosen) < REPORT_FINDINGS; i++)
            if (json_is_string(json_object_get(json_array_get(findings, i), "cause")) == (hangs == 1))
                json_array_append(chosen, json_array_get(findings, i));
    json_object_set_new(page, "findings", chosen);
}

/* Add the data of `history` and `check`, in the form for programs. */
static void report_daemon(const struct ctl *ctl, json_t *page)
{
    struct ctl rows = *ctl;
    json_t *missing = json_object(), *answer;
    rows.format = CTL_JSON;
    rows.columns = NULL;
    answer = report_ask(ctl, json_pack("{s:s, s:i}", "op", "history", "limit", REPORT_CHANGES), "changes",
                        missing);
    if (answer != NULL)
        json_object_set_new(page, "changes", ctl_changes_json(&rows, json_object_get(answer, "changes")));
    json_decref(answer);
    answer = report_ask(ctl, json_pack("{s:s, s:b}", "op", "check", "lost", 1), "findings", missing);
    if (answer != NULL) {
        report_findings(json_object_get(answer, "findings"), page);
        json_object_set(page, "lost", json_object_get(answer, "lost"));
    }
    json_decref(answer);
    json_object_set_new(page, "missing", missing);
}

static bool report_planes(const struct ctl_view *view, json_t *page)
{
    json_t *planes = json_array(), *shared = ctl_shared_names(view);
    bool good = true;
    json_object_set_new(page, "planes", planes);
    for (size_t i = 0; good && i < view->n; i++) {
        struct pmixfab_plane plane;
        json_t *one = NULL;
        if (pmixfab_plane(view->planes[i], &plane) == 0)
            one = report_plane_json(view->planes[i], &plane, shared);
        good =
            one != NULL && json_object_set_new(one, "costs", report_costs_json(view->planes[i], &plane)) == 0;
        json_array_append(planes, one);
        json_decref(one);
    }
    json_decref(shared);
    return good;
}

/* Write a text so that every < in it is escaped: a script in a page ends at the first "</script". */
static int put_escaped(const char *text, size_t size, void *cbdata)
{
    FILE *out = cbdata;
    while (size > 0) {
        const char *special = memchr(text, '<', size);
        size_t plain = special != NULL ? (size_t)(special - text) : size;
        if (fwrite(text, 1, plain, out) != plain || (special != NULL && fputs("\\u003c", out) < 0))
            return -1;
        plain += special != NULL;
        text += plain;
        size -= plain;
    }
    return 0;
}

/* Return the data as text; the caller frees it. NULL without memory. */
static char *report_text(const json_t *page, size_t *size)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, size);
    int rc;
    if (out == NULL)
        return NULL;
    rc = json_dump_callback(page, put_escaped, out, CTL_JSON_FLAGS);
    if (fclose(out) == 0 && rc == 0)
        return text;
    free(text);
    return NULL;
}

static enum ctl_exit report_write(const struct ctl *ctl, const json_t *page)
{
    struct ctl_target target;
    size_t size = 0;
    char *text = report_text(page, &size);
    enum ctl_exit status;
    if (text == NULL)
        return ctl_nomem();
    ctl_catch_interrupts();
    status = ctl_target_open(ctl->output, &target)
             ?: ctl_target_write(&target, report_page_head, report_page_head_size)
             ?: ctl_target_write(&target, text, size)
             ?: ctl_target_write(&target, report_page_tail, report_page_tail_size);
    free(text);
    return ctl_target_close(&target, false, status);
}

enum ctl_exit ctl_report(const struct ctl *ctl)
{
    char made[CTL_TIME_SIZE];
    struct ctl_view view;
    enum ctl_exit status;
    json_t *page;
    if (ctl->output == NULL)
        return ctl_usage("nowhere to write: report: give -o FILE.html");
    status = ctl_view_all(ctl, &view);
    if (status != CTL_DONE)
        return status;
    page = json_pack("{s:s, s:s, s:o}", "version", PMIXFAB_VERSION, "made",
                     ctl_time(ctl_now() * 1000000, made), "source", ctl_json_text(ctl_source_location(ctl)));
    if (page == NULL)
        status = ctl_nomem();
    else if (!report_planes(&view, page))
        status = ctl_error("no report: %s: memory ran out, or a snapshot contradicts itself",
                           ctl_source_location(ctl));
    ctl_view_close(&view);
    if (status == CTL_DONE) {
        report_daemon(ctl, page);
        status = report_write(ctl, page);
    }
    json_decref(page);
    return status;
}
