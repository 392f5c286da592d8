/*
 * metrics_http.h - the metrics over HTTP. For this room.
 */
#ifndef FABRICD_BASE_METRICS_HTTP_H
#define FABRICD_BASE_METRICS_HTTP_H

#include "fabricd/base/metrics.h"
#include "topo/base/error.h"

struct metrics_http;

/* Listen at this address and port (util/address.h). *out is NULL on error: PMIXFAB_ERR_NOMEM, _SYNTAX; _IO:
 * it cannot listen there now. */
int metrics_http_new(struct event_base *base, const char *listen, metrics_fn tell, const void *owner,
                     struct metrics_http **out, struct fab_err *err);
void metrics_http_free(struct metrics_http *http); /* NULL allowed */

#endif
