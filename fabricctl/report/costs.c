/*
 * costs.c - the costs of a plane, by classes: devices on one switch, by links of one cost, have the same
 * costs to all devices of other hosts. So ten thousand devices are some hundred classes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabricctl/report/report_page.h"

/* Costs of more pairs make a page too large to send to anybody. */
#define CLASSES_MAX 2500
/* A cost in a text is one character: its number among the different ones, from here on. */
#define FIRST_CHARACTER 0x5d
#define LAST_CHARACTER  0xd7ff

struct cost_class {
    uint32_t place, access; /* the switch, or beyond them what has none; the cost of the device's link */
    uint32_t first,
        other; /* a device of it; one of another host than the first's, UINT32_MAX: there is none */
};

struct classes {
    const struct pmixfab *fab;
    const struct pmixfab_plane *plane;
    uint32_t *host, *place, *access, *of; /* of each device */
    uint32_t *last;                       /* of each place: the newest class there */
    uint32_t *before;                     /* of each class: the one of its place before it */
    struct cost_class *all;
    uint32_t n;
    uint16_t number[UINT16_MAX + 1]; /* of each cost that occurs, from 1 */
    json_t *values;                  /* those costs */
};

/* One run of memory for all columns. */
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

/* Where each device stands, and what its link costs. What no cable joins stands at one place. */
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

/* In order of appearance, so that neighbours in the table are neighbours in the fabric. */
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

/* Between devices of two hosts; 0 where all devices of both classes are of one host, so that nobody asks. */
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

/* A cost, and behind it how often, where it is more than once. */
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

/* Costs from class `a` to itself and those behind it: nobody needs the other half. */
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

/* Within a host: a digit for each pair of its devices, (0,1), (0,2), ... (1,2), ... */
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

/* For each host the number of its text among the different ones: most hosts are built alike. */
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

json_t *report_costs_json(const struct pmixfab *fab, const struct pmixfab_plane *plane)
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
