/*
 * history_trim.h - keeps the history within its configured bounds, a short step at a time when nothing is
 * published.
 */
#ifndef FABRICD_JOBS_HISTORY_TRIM_H
#define FABRICD_JOBS_HISTORY_TRIM_H

#include <event2/event.h>

#include "fabricd/base/counts.h"
#include "fabricd/config/config.h"
#include "fabricd/store/store_tables.h"

struct trim;

/* busy: is something on its way that must not wait? It is asked before each step. */
int trim_new(struct event_base *base, const struct config *config, struct counts *counts, struct store *store,
             bool (*busy)(void *cbdata), void *cbdata, struct trim **out, struct fab_err *err);
void trim_free(struct trim *trim); /* NULL allowed */

/* The history may be too long now: look in a moment. Nothing is looked at but after this. */
void trim_soon(struct trim *trim);

#endif
