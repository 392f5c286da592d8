/*
 * report_finish.c - one canonical order for a report, whatever order it was built in.
 *
 * The facts are sorted by item, then the items by their facts; what is left is written anew and takes the
 * place of the old. Until then the report is as it was, so that a refused one can be looked at.
 */
#include <stdlib.h>
#include <string.h>

#include "topo/base/order.h"
#include "topo/model/report_parts.h"
#include "topo/model/report_wire.h"

/* A fact or an item on its way. */
struct loose_fact {
    const char *text;
    uint32_t owner;
    uint8_t kind, estimate;
};

struct loose_item {
    const struct loose_fact *facts;
    uint32_t n;
    uint8_t source;
};

static int report_compare_what(const struct loose_fact *x, const struct loose_fact *y)
{
    return FAB_ORDER(x->kind, y->kind) ?: strcmp(x->text, y->text) ?: FAB_ORDER(x->estimate, y->estimate);
}

static int report_compare_facts(const void *a, const void *b)
{
    const struct loose_fact *x = a, *y = b;
    return FAB_ORDER(x->owner, y->owner) ?: report_compare_what(x, y);
}

static int compare_items(const void *a, const void *b)
{
    const struct loose_item *x = a, *y = b;
    int order = FAB_ORDER(x->source, y->source);
    for (uint32_t i = 0; order == 0 && i < x->n && i < y->n; i++)
        order = report_compare_what(&x->facts[i], &y->facts[i]);
    return order ?: FAB_ORDER(x->n, y->n);
}

/* Sorted, and each said once: a measured fact stands before an estimate of the same text. Returns how many.
 */
static uint32_t sort_facts(const struct fab_report *report, struct loose_fact *facts)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < report->n_facts; i++) {
        const struct fab_report_fact *fact = &report->facts[i];
        facts[i] =
            (struct loose_fact){report->pool + fact->text, report->owner[i], fact->kind, fact->estimate != 0};
    }
    qsort(facts, report->n_facts, sizeof(*facts), report_compare_facts);
    for (uint32_t i = 0; i < report->n_facts; i++) {
        const struct loose_fact *last = kept == 0 ? NULL : &facts[kept - 1];
        if (last == NULL || last->owner != facts[i].owner || last->kind != facts[i].kind ||
            strcmp(last->text, facts[i].text) != 0)
            facts[kept++] = facts[i];
    }
    return kept;
}

/* Items that have facts, in order, each once. Returns how many. */
static uint32_t sort_items(const struct fab_report *report, const struct loose_fact *facts, uint32_t n_facts,
                           struct loose_item *items)
{
    uint32_t n = 0, kept = 0;

    for (uint32_t i = 0; i < n_facts; i++) {
        if (i == 0 || facts[i].owner != facts[i - 1].owner)
            items[n++] = (struct loose_item){&facts[i], 0, report->items[facts[i].owner].source};
        items[n - 1].n++;
    }
    qsort(items, n, sizeof(*items), compare_items);
    for (uint32_t i = 0; i < n; i++) {
        if (kept == 0 || compare_items(&items[kept - 1], &items[i]) != 0)
            items[kept++] = items[i];
    }
    return kept;
}

/* An item is named in messages by what comes first of it: the device's name, mostly. */
static int check_item(const char *host, const struct loose_item *item, struct fab_err *err)
{
    const char *source = fab_source_name(item->source);
    struct fab_err why;

    if (item->n > FAB_REPORT_MAX_FACTS)
        return fab_fail(err, PMIXFAB_ERR_RANGE, "%s: %s says %u facts of \"%.60s\", at most %d are kept",
                        host, source, item->n, item->facts[0].text, FAB_REPORT_MAX_FACTS);
    for (uint32_t i = 0; i < item->n; i++) {
        const struct loose_fact *fact = &item->facts[i];
        int rc = fab_fact_check(fact->kind, fact->text, &why);
        if (rc != PMIXFAB_OK)
            return fab_fail(err, rc, "%s: %s of \"%.60s\": %s", host, source, item->facts[0].text, why.text);
        if (i > 0 && fact->kind == fact[-1].kind && !fab_fact_many(fact->kind))
            return fab_fail(err, PMIXFAB_ERR_CONFLICT,
                            "%s: %s of \"%.60s\": two of %s, \"%.60s\" and \"%.60s\"", host, source,
                            item->facts[0].text, fab_fact_name(fact->kind), fact[-1].text, fact->text);
    }
    return PMIXFAB_OK;
}

/* Everything that makes a report refused; *size is that of its texts, each with its end. */
static int report_check(const struct fab_report *report, const struct loose_item *items, uint32_t n,
                        size_t *size, struct fab_err *err)
{
    size_t encoded = report_wire_head(report->host);

    *size = 0;
    if (report->host[0] == '\0')
        return fab_fail(err, PMIXFAB_ERR_SYNTAX, "a report does not say of which host it is");
    for (uint32_t i = 0; i < n; i++) {
        int rc = check_item(report->host, &items[i], err);
        if (rc != PMIXFAB_OK)
            return rc;
        encoded += REPORT_WIRE_ITEM;
        for (uint32_t k = 0; k < items[i].n; k++) {
            size_t len = strlen(items[i].facts[k].text);
            encoded += REPORT_WIRE_FACT + len;
            *size += len + 1;
        }
    }
    if (encoded > FAB_REPORT_MAX_SIZE)
        return fab_fail(err, PMIXFAB_ERR_RANGE, "%s: the report has %zu bytes, at most %d are taken",
                        report->host, encoded, FAB_REPORT_MAX_SIZE);
    return PMIXFAB_OK;
}

/* The sorted content in memory of its own, in place of the old. */
static int report_rewrite(struct fab_report *report, const struct loose_item *items, uint32_t n,
                          uint32_t n_facts, size_t size)
{
    struct fab_report made = {.finished = true};

    made.items = malloc(n * sizeof(*made.items) + 1);
    made.facts = malloc(n_facts * sizeof(*made.facts) + 1);
    made.owner = malloc(n_facts * sizeof(*made.owner) + 1);
    made.pool = malloc(size + 1);
    if (made.items == NULL || made.facts == NULL || made.owner == NULL || made.pool == NULL) {
        fab_report_destroy(&made);
        return PMIXFAB_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < n; i++) {
        made.items[made.n_items++] = (struct fab_report_item){items[i].source, made.n_facts, items[i].n};
        for (uint32_t k = 0; k < items[i].n; k++) {
            const struct loose_fact *fact = &items[i].facts[k];
            size_t len = strlen(fact->text) + 1;
            memcpy(made.pool + made.pool_size, fact->text, len);
            made.owner[made.n_facts] = i;
            made.facts[made.n_facts++] =
                (struct fab_report_fact){made.pool_size, fact->kind, fact->estimate, 0};
            made.pool_size += (uint32_t)len;
        }
    }
    made.cap_items = n;
    made.cap_facts = n_facts;
    made.pool_cap = made.pool_size;
    memcpy(made.host, report->host, sizeof(made.host));
    fab_report_destroy(report);
    *report = made;
    return PMIXFAB_OK;
}

int fab_report_finish(struct fab_report *report, struct fab_err *err)
{
    if (report->finished)
        return PMIXFAB_OK;
    struct loose_fact *facts = malloc(report->n_facts * sizeof(*facts) + 1);
    struct loose_item *items = malloc(report->n_items * sizeof(*items) + 1);
    int rc = PMIXFAB_ERR_NOMEM;

    if (facts != NULL && items != NULL) {
        uint32_t kept_facts = sort_facts(report, facts), n_facts = 0;
        uint32_t n_items = sort_items(report, facts, kept_facts, items);
        size_t size;
        rc = report_check(report, items, n_items, &size, err);
        for (uint32_t i = 0; i < n_items; i++)
            n_facts += items[i].n;
        if (rc == PMIXFAB_OK)
            rc = report_rewrite(report, items, n_items, n_facts, size);
    }
    if (rc == PMIXFAB_ERR_NOMEM)
        fab_fail(err, rc, "out of memory for the report of %s", report->host);
    free(facts);
    free(items);
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
