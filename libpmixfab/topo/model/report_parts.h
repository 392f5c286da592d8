/* report_parts.h - private to report.c and report_wire.c. */
#ifndef FAB_TOPO_MODEL_REPORT_PARTS_H
#define FAB_TOPO_MODEL_REPORT_PARTS_H

#include "topo/model/report.h"

/*
 * Append without a check of form or duplicates; the report counts as unfinished. The item is the last one,
 * n_items - 1. PMIXFAB_ERR_NOMEM, _RANGE.
 */
int report_append_item(struct fab_report *report, unsigned source);
int report_append_fact(struct fab_report *report, uint32_t item, unsigned kind, bool estimate,
                       const char *text, size_t len);

/* Append an item of another, finished report. */
int report_append_copy(struct fab_report *into, const struct fab_report *from, uint32_t item);

/*
 * Compare items of finished reports: by source, then by kind, text and measured before estimated of each
 * fact.
 */
int report_items_compare(const struct fab_report *a, uint32_t item_a, const struct fab_report *b,
                         uint32_t item_b);

/* Check a name. PMIXFAB_ERR_SYNTAX: not a valid host name. */
int report_check_host(const char *host, struct fab_err *err);

#endif
