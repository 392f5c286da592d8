/*
 * port_counters.h - counters of ports, read in a child process with a deadline; and their growth.
 */
#ifndef FABRICD_SOURCES_PORT_COUNTERS_H
#define FABRICD_SOURCES_PORT_COUNTERS_H

#include <event2/event.h>

#include "fabricd/config/config.h"
#include "probes/core/probe.h"

/* ---- reading: port_counters.c, counters_child.c ---------------------------------------------------- */

#define COUNTERS_MAX      4096u /* ports that are read at once */
#define COUNTERS_DEADLINE 10u   /* seconds */

struct counters;

/* Return whether a configured probe of the fabric can read counters. */
bool counters_can(const struct config *config);

/* Called once, on the loop. code 0: all ports of the list were queried; else err has the reason. */
typedef void (*counters_done_fn)(int code, const struct fab_err *err, const struct probe_reading *list,
                                 uint32_t n, void *cbdata);

/* Read the ports of this list, found by the last sweep (the bytes of struct sweep_result). Both may be freed
 * after the call. On error `done` is not called. */
int counters_start(struct event_base *base, const struct config *config, const struct probe_reading *list,
                   uint32_t n, const void *parts, size_t size, counters_done_fn done, void *cbdata,
                   struct counters **out, struct fab_err *err);
void counters_cancel(struct counters *counters); /* NULL allowed; `done` is not called any more */

/* The child: the argv[1] that selects it, and its function. */
#define COUNTERS_CHILD_OPTION "--counters-child"
int counters_child(int argc, char **argv);

/* Encode and decode the order for the child. Free both with free(). PMIXFAB_ERR_NOMEM, _CORRUPT. */
int counters_order_encode(const struct probe_reading *list, uint32_t n, const void *parts, size_t size,
                          void **bytes, size_t *total);
int counters_order_decode(const void *bytes, size_t size, struct probe_reading **list, uint32_t *n,
                          const void **parts, size_t *parts_size, struct fab_err *err);

/* ---- growth: counter_watch.c, decisions only -------------------------------------------------------- */

#define COUNTER_WATCH_TIME (3600 * INT64_C(1000000)) /* after a change, or after the last growth */

/* A watched port. Times are microseconds since 1970. */
struct watched_port {
    struct probe_reading last;
    int64_t read_at;                /* 0: never */
    uint64_t grown[PROBE_COUNTERS]; /* of errors, since grows_since */
    int64_t grows_since;            /* 0: no growth */
    int64_t grown_at;               /* time of the last growth */
    int64_t until;
};
struct counter_watch {
    struct watched_port *ports; /* sorted by GUID and number */
    uint32_t n, cap;
    uint32_t most;                  /* 0: COUNTERS_MAX */
    uint64_t grown[PROBE_COUNTERS]; /* over all ports that were ever watched */
};

/* Watch this port from now on. changed: earlier values do not count. PMIXFAB_ERR_NOMEM, _RANGE: the number of
 * watched ports is at its limit. */
int counter_watch_add(struct counter_watch *watch, uint64_t guid, uint32_t num, bool changed, int64_t now);
/*
 * Process the reading of a port. A value below the previous one was reset, and a saturated counter does not
 * grow: both are ignored.
 */
void counter_watch_read(struct counter_watch *watch, const struct probe_reading *reading, int64_t now);
/* Note that the link of this port has changed, if the port is watched. */
void counter_watch_changed(struct counter_watch *watch, uint64_t guid, uint32_t num);
/*
 * The same for a port that is watched permanently. Growth that ended COUNTERS_DAY ago is dropped, and so is
 * growth over that time that stays within the usual. Beyond the limit of ports, nothing is watched.
 */
#define COUNTERS_DAY     (86400 * INT64_C(1000000))
#define COUNTERS_ALL_MAX 131072u
void counter_watch_keep(struct counter_watch *watch, const struct probe_reading *reading, int64_t now);
/* Return the largest multiple of the usual value (probe_counter_kinds): above 1 is too much. */
double counter_level(const uint64_t value[PROBE_COUNTERS]);
/* Remove the ports whose time is over. */
void counter_watch_expire(struct counter_watch *watch, int64_t now);
struct watched_port *counter_watch_find(const struct counter_watch *watch, uint64_t guid, uint32_t num);
void counter_watch_free(struct counter_watch *watch); /* leaves it empty */

/* Write the growth: "symbol errors +50, link downed +1"; "" without growth. */
#define COUNTERS_TEXT 256
void counter_growth_text(const struct watched_port *port, char text[COUNTERS_TEXT]);

#endif
