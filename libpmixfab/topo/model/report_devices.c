/*
 * report_devices.c - put the items of one report together to devices, by their names.
 *
 * An item with an RDMA device's name has that name and its port as label. An item without such a name takes
 * the label of an item with the same port GUID, interface or PCI address. If there is no such item, the label
 * is made of these values. (The join with the fabric is separate: join.h.)
 */
#include "topo/model/report_devices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/base/order.h"
#include "topo/base/search.h"

/* A text by which other items are found, with the item whose label they share. */
struct alias {
    const char *text;
    uint32_t item;
    uint8_t kind, rank;
};

struct aliases {
    const struct fab_report *report;
    struct alias *list;
    uint32_t n;
};

static int compare_alias(const void *a, const void *b)
{
    const struct alias *x = a, *y = b;
    return FAB_ORDER(x->kind, y->kind) ?: strcmp(x->text, y->text) ?: FAB_ORDER(x->rank, y->rank)
           ?: FAB_ORDER(x->item, y->item);
}

static void add_alias(struct aliases *aliases, unsigned kind, uint32_t item, unsigned rank)
{
    const char *text = fab_report_text(aliases->report, item, kind);
    if (text != NULL)
        aliases->list[aliases->n++] = (struct alias){text, item, (uint8_t)kind, (uint8_t)rank};
}

/* Items with most information rank first: with name and port, with a name, with an interface. */
static int find_aliases(const struct fab_report *report, struct aliases *aliases)
{
    *aliases = (struct aliases){report, malloc(4 * (size_t)report->n_items * sizeof(struct alias) + 1), 0};
    if (aliases->list == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t i = 0; i < report->n_items; i++) {
        bool named = fab_report_text(report, i, FAB_FACT_NAME) != NULL;
        bool port = fab_report_text(report, i, FAB_FACT_PORT) != NULL;
        unsigned rank = named && port ? 0 : named ? 1 : 2;
        if (named && port)
            add_alias(aliases, FAB_FACT_NAME, i, rank);
        if (named) {
            add_alias(aliases, FAB_FACT_PORT_GUID, i, rank);
            add_alias(aliases, FAB_FACT_INTERFACE, i, rank);
        }
        if (named || fab_report_text(report, i, FAB_FACT_INTERFACE) != NULL)
            add_alias(aliases, FAB_FACT_PCI, i, rank);
    }
    qsort(aliases->list, aliases->n, sizeof(*aliases->list), compare_alias);
    return PMIXFAB_OK;
}

/* Return the first item with the same text of a kind, or FAB_NONE. */
static uint32_t alias_same_text(const struct aliases *aliases, uint32_t item, unsigned kind)
{
    const char *text = fab_report_text(aliases->report, item, kind);

    if (text == NULL)
        return FAB_NONE;
    struct alias wanted = {text, 0, (uint8_t)kind, 0};
    uint32_t at = FAB_LOWER_BOUND(0, aliases->n, i, compare_alias(&aliases->list[i], &wanted) < 0);
    const struct alias *found = &aliases->list[at];
    return at < aliases->n && found->kind == kind && strcmp(found->text, text) == 0 ? found->item : FAB_NONE;
}

/*
 * Return the item whose label this one has; itself, if it has its own. Each step leads to an item of a higher
 * rank, so there are at most three.
 */
static uint32_t alias_bearer(const struct aliases *aliases, uint32_t item)
{
    const struct fab_report *report = aliases->report;
    uint32_t other = FAB_NONE;

    if (fab_report_text(report, item, FAB_FACT_NAME) != NULL) {
        if (fab_report_text(report, item, FAB_FACT_PORT) == NULL)
            other = alias_same_text(aliases, item, FAB_FACT_NAME);
    } else {
        other = alias_same_text(aliases, item, FAB_FACT_PORT_GUID);
        if (other == FAB_NONE)
            other = alias_same_text(aliases, item, FAB_FACT_INTERFACE);
        if (other == FAB_NONE && fab_report_text(report, item, FAB_FACT_INTERFACE) == NULL)
            other = alias_same_text(aliases, item, FAB_FACT_PCI);
    }
    return other == FAB_NONE ? item : other;
}

static void write_label(const struct aliases *aliases, uint32_t item, char out[DEVICE_LABEL])
{
    static const enum fab_fact kinds[] = {FAB_FACT_INTERFACE, FAB_FACT_PCI, FAB_FACT_PORT_GUID};
    const struct fab_report *report = aliases->report;

    for (uint32_t next = alias_bearer(aliases, item); next != item; next = alias_bearer(aliases, item))
        item = next;
    const char *text = fab_report_text(report, item, FAB_FACT_NAME);
    const char *port = text == NULL ? NULL : fab_report_text(report, item, FAB_FACT_PORT);
    for (unsigned i = 0; text == NULL && i < sizeof(kinds) / sizeof(kinds[0]); i++)
        text = fab_report_text(report, item, kinds[i]);
    if (text == NULL)
        text = fab_source_name(report->items[item].source);
    if (port != NULL)
        snprintf(out, DEVICE_LABEL, "%s[%s]", text, port);
    else
        snprintf(out, DEVICE_LABEL, "%s", text);
}

/* An item with its label. */
struct labelled {
    const char *label;
    uint32_t item;
};

static int compare_labelled(const void *a, const void *b)
{
    const struct labelled *x = a, *y = b;
    return strcmp(x->label, y->label) ?: FAB_ORDER(x->item, y->item);
}

static int compare_said(const void *a, const void *b)
{
    const struct device_said *x = a, *y = b;
    return FAB_ORDER(x->device, y->device) ?: FAB_ORDER(x->kind, y->kind) ?: strcmp(x->text, y->text);
}

/* Sort the texts, each once, and set the first text of each device. */
static void order_said(struct devices *out, uint32_t n)
{
    uint32_t kept = 0;

    qsort(out->said, n, sizeof(*out->said), compare_said);
    for (uint32_t i = 0; i < n; i++) {
        if (kept > 0 && compare_said(&out->said[kept - 1], &out->said[i]) == 0)
            continue;
        struct device *device = &out->list[out->said[i].device];
        if (device->n++ == 0)
            device->first = kept;
        out->said[kept++] = out->said[i];
    }
    for (uint32_t i = 0; i < out->n; i++) {
        const char *guid = device_text(out, &out->list[i], FAB_FACT_PORT_GUID);
        out->list[i].id = guid != NULL ? guid : device_text(out, &out->list[i], FAB_FACT_MAC);
    }
}

static void report_collect_devices(const struct fab_report *report, const struct labelled *items,
                                   struct devices *out)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < report->n_items; i++) {
        const struct fab_report_item *item = &report->items[items[i].item];
        if (i == 0 || strcmp(items[i].label, items[i - 1].label) != 0)
            out->list[out->n++] = (struct device){.label = items[i].label, .match = FAB_NONE};
        for (uint32_t k = item->first; k < item->first + item->n; k++) {
            const struct fab_report_fact *fact = &report->facts[k];
            if (fact->estimate == 0 && fact->kind != FAB_FACT_BANDWIDTH && fact->kind != FAB_FACT_LATENCY)
                out->said[n++] = (struct device_said){report->pool + fact->text, out->n - 1, fact->kind};
        }
    }
    order_said(out, n);
}

int report_devices(const struct fab_report *report, struct devices *out)
{
    struct aliases aliases;
    struct labelled *items = malloc(report->n_items * sizeof(*items) + 1);
    int rc = find_aliases(report, &aliases);

    *out = (struct devices){.labels = malloc(report->n_items * sizeof(*out->labels) + 1),
                            .said = malloc(report->n_facts * sizeof(*out->said) + 1),
                            .list = malloc(report->n_items * sizeof(*out->list) + 1)};
    if (rc == PMIXFAB_OK && (items == NULL || out->labels == NULL || out->said == NULL || out->list == NULL))
        rc = PMIXFAB_ERR_NOMEM;
    if (rc == PMIXFAB_OK) {
        for (uint32_t i = 0; i < report->n_items; i++) {
            write_label(&aliases, i, out->labels[i]);
            items[i] = (struct labelled){out->labels[i], i};
        }
        qsort(items, report->n_items, sizeof(*items), compare_labelled);
        report_collect_devices(report, items, out);
    } else {
        report_devices_free(out);
    }
    free(aliases.list);
    free(items);
    return rc;
}

void report_devices_free(struct devices *devices)
{
    free(devices->labels);
    free(devices->said);
    free(devices->list);
    *devices = (struct devices){0};
}

const char *device_text(const struct devices *devices, const struct device *device, unsigned kind)
{
    for (uint32_t i = device->first; i < device->first + device->n; i++) {
        if (devices->said[i].kind == kind)
            return devices->said[i].text;
    }
    return NULL;
}
