/*
 * report_wire.h - sizes of a report as bytes; shared by the files of report only.
 */
#ifndef FAB_TOPO_MODEL_REPORT_WIRE_H
#define FAB_TOPO_MODEL_REPORT_WIRE_H

#include <string.h>

#include "topo/base/frame.h"
#include "topo/model/report_parts.h"

#define REPORT_WIRE_ITEM 2 /* bytes of an item beside its facts */
#define REPORT_WIRE_FACT 3 /* bytes of a fact beside its text */

/* Bytes before the first item. */
static inline size_t report_wire_head(const char *host)
{
    return FRAME_HEAD + 1 + strlen(host) + 4;
}

/* An item of a finished report: how many bytes, and these; returns what is behind them. */
size_t report_wire_item_size(const struct fab_report *report, uint32_t item);
uint8_t *report_wire_put_item(uint8_t *at, const struct fab_report *report, uint32_t item);

/* The next item, appended to a report. PMIXFAB_ERR_CORRUPT, _NOMEM, _RANGE. */
int report_wire_get_item(struct frame *in, struct fab_report *report, struct fab_err *err);

#endif
