/* report.c - build, finish, copy and compare reports of hosts. */
#include "topo/model/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/base/array.h"
#include "topo/base/frame.h"
#include "topo/base/order.h"
#include "topo/base/text.h"
#include "topo/model/report_parts.h"

/* Maximum size of texts in an unfinished report; far above the limit of finish. */
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
                        "\"%.60s\" is not a host name: letters, digits, dots, dashes, at most %d", host,
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

/* Make room for n facts. They and their owners have one capacity. */
static bool facts_room(struct fab_report *report, uint32_t n)
{
    uint32_t cap = report->cap_facts;
    return FAB_ARRAY_ROOM(&report->facts, &cap, n) && FAB_ARRAY_ROOM(&report->owner, &report->cap_facts, n);
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
    int rc = facts_room(report, report->n_facts + 1) ? report_add_text(report, text, len, &offset)
                                                     : PMIXFAB_ERR_NOMEM;
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

/* Return the equal fact of the item, or FAB_NONE. Facts of an item are mostly added together, at the end. */
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
    char text[4 * FAB_REPORT_MAX_TEXT + 1]; /* a longer text is cut anyway */
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

/* FAB_SOURCES: of every source. On error `into` is unchanged. */
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

static int report_compare_facts(const struct fab_report *a, const struct fab_report_fact *x,
                                const struct fab_report *b, const struct fab_report_fact *y)
{
    return FAB_ORDER(x->kind, y->kind) ?: strcmp(a->pool + x->text, b->pool + y->text)
           ?: FAB_ORDER(x->estimate, y->estimate);
}

int report_items_compare(const struct fab_report *a, uint32_t item_a, const struct fab_report *b,
                         uint32_t item_b)
{
    const struct fab_report_item *x = &a->items[item_a], *y = &b->items[item_b];
    int order = FAB_ORDER(x->source, y->source);

    for (uint32_t i = 0; order == 0 && i < x->n && i < y->n; i++)
        order = report_compare_facts(a, &a->facts[x->first + i], b, &b->facts[y->first + i]);
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

/* ---- finishing ------------------------------------------------------------------------------------- */

/*
 * Sort the facts by item, then the items by their facts; then write the result anew in place of the old
 * content. Until then the report is unchanged, so that a rejected one can be examined.
 */
static int compare_facts(const void *va, const void *vb, void *of)
{
    const struct fab_report *report = of;
    const uint32_t a = *(const uint32_t *)va, b = *(const uint32_t *)vb;
    return FAB_ORDER(report->owner[a], report->owner[b])
               ?: report_compare_facts(report, &report->facts[a], report, &report->facts[b]);
}

static int compare_items(const void *va, const void *vb, void *of)
{
    return report_items_compare(of, *(const uint32_t *)va, of, *(const uint32_t *)vb);
}

/*
 * Sort facts by item, each once: a measured one replaces an equal estimate. Only items with facts remain. The
 * texts stay the report's. order: room for one number for each fact.
 */
static void sort_facts(const struct fab_report *report, uint32_t *order, struct fab_report *out)
{
    uint32_t owner = FAB_NONE;
    for (uint32_t i = 0; i < report->n_facts; i++)
        order[i] = i;
    qsort_r(order, report->n_facts, sizeof(*order), compare_facts, (void *)report);
    for (uint32_t i = 0; i < report->n_facts; i++) {
        const struct fab_report_fact *fact = &report->facts[order[i]];
        if (report->owner[order[i]] != owner) {
            owner = report->owner[order[i]];
            out->items[out->n_items++] =
                (struct fab_report_item){report->items[owner].source, out->n_facts, 0};
        }
        struct fab_report_item *item = &out->items[out->n_items - 1];
        const struct fab_report_fact *last = item->n == 0 ? NULL : &out->facts[out->n_facts - 1];
        if (last != NULL && last->kind == fact->kind &&
            strcmp(report->pool + last->text, report->pool + fact->text) == 0)
            continue;
        out->facts[out->n_facts++] = *fact;
        item->n++;
    }
}

/* Sort items, each once. Return their number. */
static uint32_t sort_items(struct fab_report *sorted, uint32_t *order)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < sorted->n_items; i++)
        order[i] = i;
    qsort_r(order, sorted->n_items, sizeof(*order), compare_items, sorted);
    for (uint32_t i = 0; i < sorted->n_items; i++)
        if (kept == 0 || report_items_compare(sorted, order[kept - 1], sorted, order[i]) != 0)
            order[kept++] = order[i];
    return kept;
}

/* Check an item. Messages name it by its first fact, mostly the device's name. */
static int check_item(const struct fab_report *sorted, const struct fab_report_item *item,
                      struct fab_err *err)
{
    const char *source = fab_source_name(item->source), *host = sorted->host;
    const struct fab_report_fact *facts = &sorted->facts[item->first];
    const char *first = sorted->pool + facts[0].text;
    struct fab_err why;

    if (item->n > FAB_REPORT_MAX_FACTS)
        return fab_fail(err, PMIXFAB_ERR_RANGE, "%s: %s has %u facts of \"%.60s\"; at most %d are kept", host,
                        source, item->n, first, FAB_REPORT_MAX_FACTS);
    for (uint32_t i = 0; i < item->n; i++) {
        const char *text = sorted->pool + facts[i].text;
        int rc = fab_fact_check(facts[i].kind, text, &why);
        if (rc != PMIXFAB_OK)
            return fab_fail(err, rc, "%s: %s of \"%.60s\": %s", host, source, first, why.text);
        if (i > 0 && facts[i].kind == facts[i - 1].kind && !fab_fact_many(facts[i].kind))
            return fab_fail(err, PMIXFAB_ERR_CONFLICT,
                            "%s: %s of \"%.60s\": two of %s, \"%.60s\" and \"%.60s\"", host, source, first,
                            fab_fact_name(facts[i].kind), sorted->pool + facts[i - 1].text, text);
    }
    return PMIXFAB_OK;
}

/* Return an error for everything that makes a report invalid. */
static int report_check(const struct fab_report *sorted, const uint32_t *order, uint32_t n,
                        struct fab_err *err)
{
    size_t encoded = FRAME_HEAD + 1 + strlen(sorted->host) + 4; /* as in report_wire.c */

    if (sorted->host[0] == '\0')
        return fab_fail(err, PMIXFAB_ERR_SYNTAX, "the report does not name its host");
    for (uint32_t i = 0; i < n; i++) {
        const struct fab_report_item *item = &sorted->items[order[i]];
        int rc = check_item(sorted, item, err);
        if (rc != PMIXFAB_OK)
            return rc;
        encoded += 2;
        for (uint32_t f = item->first; f < item->first + item->n; f++)
            encoded += 3 + strlen(sorted->pool + sorted->facts[f].text);
    }
    if (encoded > FAB_REPORT_MAX_SIZE)
        return fab_fail(err, PMIXFAB_ERR_RANGE, "%s: the report has %zu bytes; at most %d are accepted",
                        sorted->host, encoded, FAB_REPORT_MAX_SIZE);
    return PMIXFAB_OK;
}

/* Write the sorted content into new memory, in place of the old. */
static int report_rewrite(struct fab_report *report, const struct fab_report *sorted, const uint32_t *order,
                          uint32_t n)
{
    struct fab_report made = {0};
    uint32_t n_facts = 0, size = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t f = 0; f < sorted->items[order[i]].n; f++, n_facts++)
            size +=
                (uint32_t)strlen(sorted->pool + sorted->facts[sorted->items[order[i]].first + f].text) + 1;
    /* exactly as much as needed: reports stay in memory */
    int rc = FAB_ARRAY_ROOM(&made.items, &made.cap_items, n) && facts_room(&made, n_facts) &&
                     FAB_ARRAY_ROOM(&made.pool, &made.pool_cap, size)
                 ? PMIXFAB_OK
                 : PMIXFAB_ERR_NOMEM;
    for (uint32_t i = 0; i < n && rc == PMIXFAB_OK; i++) {
        rc = report_append_copy(&made, sorted, order[i]);
        if (rc == PMIXFAB_OK)
            made.items[i].first = made.n_facts - made.items[i].n;
    }
    if (rc != PMIXFAB_OK) {
        fab_report_destroy(&made);
        return rc;
    }
    memcpy(made.host, report->host, sizeof(made.host));
    made.finished = true;
    fab_report_destroy(report);
    *report = made;
    return PMIXFAB_OK;
}

int fab_report_finish(struct fab_report *report, struct fab_err *err)
{
    if (report->finished)
        return PMIXFAB_OK;
    struct fab_report sorted = {.pool = report->pool};
    uint32_t *order = malloc(report->n_facts * sizeof(*order) + 1); /* of facts, then of items */
    int rc = PMIXFAB_ERR_NOMEM;

    memcpy(sorted.host, report->host, sizeof(sorted.host));
    sorted.items = malloc(report->n_items * sizeof(*sorted.items) + 1);
    sorted.facts = malloc(report->n_facts * sizeof(*sorted.facts) + 1);
    if (order == NULL || sorted.items == NULL || sorted.facts == NULL)
        goto cleanup;
    sort_facts(report, order, &sorted);
    const uint32_t n = sort_items(&sorted, order);
    rc = report_check(&sorted, order, n, err) ?: report_rewrite(report, &sorted, order, n);
cleanup:
    if (rc == PMIXFAB_ERR_NOMEM)
        fab_fail(err, rc, "out of memory for the report of %s", report->host);
    free(order);
    free(sorted.items);
    free(sorted.facts);
    return rc;
}

int fab_report_copy(struct fab_report *to, const struct fab_report *from)
{
    fab_report_init(to);
    int rc = fab_report_merge(to, from);
    memcpy(to->host, from->host, sizeof(to->host));
    if (rc == PMIXFAB_OK)
        rc = fab_report_finish(to, NULL);
    if (rc != PMIXFAB_OK)
        fab_report_destroy(to);
    return rc;
}
