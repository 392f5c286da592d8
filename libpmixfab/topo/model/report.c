/* report.c - building, copying and comparing what a host says of its devices. */
#include "topo/model/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/base/array.h"
#include "topo/base/order.h"
#include "topo/base/text.h"
#include "topo/model/report_parts.h"

/* Texts while a report is being built; far beyond what finish lets through. */
#define MAX_POOL (1u << 24)

void fab_report_init(struct fab_report *report)
{
    memset(report, 0, sizeof(*report));
}

void fab_report_destroy(struct fab_report *report)
{
    if (report == NULL)
        return;
    free(report->items);
    free(report->facts);
    free(report->owner);
    free(report->pool);
    fab_report_init(report);
}

int report_check_host(const char *host, struct fab_err *err)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
    size_t len = strlen(host);
    if (len == 0 || len > FAB_HOST_MAX || strspn(host, allowed) != len || host[0] == '.' || host[0] == '-')
        return fab_fail(err, PMIXFAB_ERR_SYNTAX,
                        "\"%.60s\" is no name of a host: letters, digits, dots, dashes, at most %d", host,
                        FAB_HOST_MAX);
    return PMIXFAB_OK;
}

int fab_report_host(struct fab_report *report, const char *host, struct fab_err *err)
{
    int rc = report_check_host(host, err);
    if (rc == PMIXFAB_OK) {
        memcpy(report->host, host, strlen(host) + 1);
        report->finished = false;
    }
    return rc;
}

/* Facts and their owners have one capacity. */
static bool grow_facts(struct fab_report *report)
{
    uint32_t cap = report->cap_facts;
    return FAB_ARRAY_ROOM(&report->facts, &cap, report->n_facts + 1) &&
           FAB_ARRAY_ROOM(&report->owner, &report->cap_facts, report->n_facts + 1);
}

static int report_add_text(struct fab_report *report, const char *text, size_t len, uint32_t *offset)
{
    if (len + 1 > MAX_POOL - report->pool_size)
        return PMIXFAB_ERR_RANGE;
    if (!FAB_ARRAY_ROOM(&report->pool, &report->pool_cap, report->pool_size + len + 1))
        return PMIXFAB_ERR_NOMEM;
    *offset = report->pool_size;
    memcpy(report->pool + *offset, text, len);
    report->pool[*offset + len] = '\0';
    report->pool_size += (uint32_t)len + 1;
    return PMIXFAB_OK;
}

int report_append_item(struct fab_report *report, unsigned source)
{
    if (report->n_items >= FAB_REPORT_MAX_ITEMS)
        return PMIXFAB_ERR_RANGE;
    if (!FAB_ARRAY_ROOM(&report->items, &report->cap_items, report->n_items + 1))
        return PMIXFAB_ERR_NOMEM;
    report->items[report->n_items++] = (struct fab_report_item){.source = (uint8_t)source};
    return PMIXFAB_OK;
}

int report_append_fact(struct fab_report *report, uint32_t item, unsigned kind, bool estimate,
                       const char *text, size_t len)
{
    uint32_t offset;

    if (report->items[item].n >= FAB_REPORT_MAX_FACTS)
        return PMIXFAB_ERR_RANGE;
    int rc = grow_facts(report) ? report_add_text(report, text, len, &offset) : PMIXFAB_ERR_NOMEM;
    if (rc != PMIXFAB_OK)
        return rc;
    report->owner[report->n_facts] = item;
    report->facts[report->n_facts++] =
        (struct fab_report_fact){.text = offset, .kind = (uint8_t)kind, .estimate = estimate};
    report->items[item].n++;
    return PMIXFAB_OK;
}

int fab_report_item(struct fab_report *report, enum fab_source source, uint32_t *item)
{
    if (report->finished || source <= FAB_FROM_SUBNET || source >= FAB_SOURCES)
        return PMIXFAB_ERR_INVAL;
    int rc = report_append_item(report, source);
    if (rc == PMIXFAB_OK)
        *item = report->n_items - 1;
    return rc;
}

/* The item's fact that says the same, FAB_NONE. Facts of an item are mostly added together, at the end. */
static uint32_t find_fact(const struct fab_report *report, uint32_t item, unsigned kind, const char *text)
{
    uint32_t left = report->items[item].n;

    for (uint32_t i = report->n_facts; i > 0 && left > 0; i--) {
        if (report->owner[i - 1] != item)
            continue;
        left--;
        if (report->facts[i - 1].kind == kind && strcmp(report->pool + report->facts[i - 1].text, text) == 0)
            return i - 1;
    }
    return FAB_NONE;
}

static int add_fact(struct fab_report *report, uint32_t item, enum fab_fact kind, bool estimate,
                    const char *text)
{
    char clean[FAB_REPORT_MAX_TEXT + 1];

    if (report->finished || item >= report->n_items || fab_fact_name(kind) == NULL)
        return PMIXFAB_ERR_INVAL;
    size_t len = text == NULL ? 0 : fab_text_clean(clean, sizeof(clean), text, strlen(text), NULL);
    if (len == 0)
        return PMIXFAB_OK;
    uint32_t same = find_fact(report, item, kind, clean);
    if (same == FAB_NONE)
        return report_append_fact(report, item, kind, estimate, clean, len);
    if (!estimate)
        report->facts[same].estimate = 0;
    return PMIXFAB_OK;
}

int fab_report_fact(struct fab_report *report, uint32_t item, enum fab_fact kind, const char *text)
{
    return add_fact(report, item, kind, false, text);
}

int fab_report_estimate(struct fab_report *report, uint32_t item, enum fab_fact kind, const char *text)
{
    return add_fact(report, item, kind, true, text);
}

int fab_report_printf(struct fab_report *report, uint32_t item, enum fab_fact kind, const char *fmt, ...)
{
    char text[4 * FAB_REPORT_MAX_TEXT + 1]; /* what is longer is cut in any case */
    va_list args;

    va_start(args, fmt);
    int n = vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    return n < 0 ? PMIXFAB_ERR_INVAL : add_fact(report, item, kind, false, text);
}

int report_append_copy(struct fab_report *into, const struct fab_report *from, uint32_t item)
{
    const struct fab_report_item *source = &from->items[item];
    int rc = report_append_item(into, source->source);

    for (uint32_t i = source->first; rc == PMIXFAB_OK && i < source->first + source->n; i++) {
        const char *text = from->pool + from->facts[i].text;
        rc = report_append_fact(into, into->n_items - 1, from->facts[i].kind, from->facts[i].estimate, text,
                                strlen(text));
    }
    return rc;
}

/* Of every source: FAB_SOURCES. On error `into` is as it was. */
static int report_merge_sources(struct fab_report *into, const struct fab_report *from, unsigned source)
{
    uint32_t n_items = into->n_items, n_facts = into->n_facts, pool_size = into->pool_size;
    int rc = PMIXFAB_OK;

    if (!from->finished || into == from)
        return PMIXFAB_ERR_INVAL;
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < from->n_items; i++) {
        if (source == FAB_SOURCES || from->items[i].source == source)
            rc = report_append_copy(into, from, i);
    }
    if (rc == PMIXFAB_OK) {
        into->finished = false;
    } else {
        into->n_items = n_items;
        into->n_facts = n_facts;
        into->pool_size = pool_size;
    }
    return rc;
}

int fab_report_merge(struct fab_report *into, const struct fab_report *from)
{
    return report_merge_sources(into, from, FAB_SOURCES);
}

int fab_report_merge_source(struct fab_report *into, const struct fab_report *from, enum fab_source source)
{
    if (source <= FAB_FROM_SUBNET || source >= FAB_SOURCES)
        return PMIXFAB_ERR_INVAL;
    return report_merge_sources(into, from, source);
}

const char *fab_report_text(const struct fab_report *report, uint32_t item, enum fab_fact kind)
{
    if (!report->finished || item >= report->n_items)
        return NULL;
    const struct fab_report_item *of = &report->items[item];
    for (uint32_t i = of->first; i < of->first + of->n; i++) {
        if (report->facts[i].kind == kind)
            return report->pool + report->facts[i].text;
    }
    return NULL;
}

int report_items_compare(const struct fab_report *a, uint32_t item_a, const struct fab_report *b,
                         uint32_t item_b)
{
    const struct fab_report_item *x = &a->items[item_a], *y = &b->items[item_b];
    int order = FAB_ORDER(x->source, y->source);

    for (uint32_t i = 0; order == 0 && i < x->n && i < y->n; i++) {
        const struct fab_report_fact *f = &a->facts[x->first + i], *g = &b->facts[y->first + i];
        order = FAB_ORDER(f->kind, g->kind) ?: strcmp(a->pool + f->text, b->pool + g->text)
                ?: FAB_ORDER(f->estimate, g->estimate);
    }
    return order ?: FAB_ORDER(x->n, y->n);
}

bool fab_report_equal(const struct fab_report *a, const struct fab_report *b)
{
    if (!a->finished || !b->finished || a->n_items != b->n_items || a->n_facts != b->n_facts ||
        strcmp(a->host, b->host) != 0)
        return false;
    for (uint32_t i = 0; i < a->n_items; i++) {
        if (report_items_compare(a, i, b, i) != 0)
            return false;
    }
    return true;
}
