/*
 * report_parts.h - between report.c and report_wire.c.
 */
#ifndef FAB_TOPO_MODEL_REPORT_PARTS_H
#define FAB_TOPO_MODEL_REPORT_PARTS_H

#include "topo/model/report.h"

/* Append without a look at the form or at what is there already; the report counts as unfinished or is about
 * to. The item is the last one, n_items - 1. PMIXFAB_ERR_NOMEM, _RANGE. */
int report_append_item(struct fab_report *report, unsigned source);
int report_append_fact(struct fab_report *report, uint32_t item, unsigned kind, bool estimate,
                       const char *text, size_t len);

/* Append an item of another, finished report. */
int report_append_copy(struct fab_report *into, const struct fab_report *from, uint32_t item);

/* Order of items of finished reports: by source, then fact for fact by kind, text, measured before estimated.
 */
int report_items_compare(const struct fab_report *a, uint32_t item_a, const struct fab_report *b,
                         uint32_t item_b);

/* PMIXFAB_ERR_SYNTAX: not a name that a host can have. */
int report_check_host(const char *host, struct fab_err *err);

#endif
