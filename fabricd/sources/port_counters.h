/*
 * port_counters.h - what ports count, read in a child process with a deadline; and whether that grows.
 */
#ifndef FABRICD_SOURCES_PORT_COUNTERS_H
#define FABRICD_SOURCES_PORT_COUNTERS_H

#include <event2/event.h>

#include "fabricd/config/config.h"
#include "probes/core/probe.h"

/* ---- reading: counters.c, counters_child.c --------------------------------------------------------- */

#define COUNTERS_MAX      4096u /* ports that are read at once */
#define COUNTERS_DEADLINE 10u   /* seconds */

struct counters;

/* Is there a probe of the fabric that can? */
bool counters_can(const struct config *config);

/* Called once, on the loop. code 0: all of the list were asked for; else err says why not. */
typedef void (*counters_done_fn)(int code, const struct fab_err *err, const struct probe_reading *list,
                                 uint32_t n, void *cbdata);

/* Read the ports of this list, by what the last sweep saw (the bytes of struct sweep_result). Neither is
 * needed after the call. On error `done` is not called. */
int counters_start(struct event_base *base, const struct config *config, const struct probe_reading *list,
                   uint32_t n, const void *parts, size_t size, counters_done_fn done, void *cbdata,
                   struct counters **out, struct fab_err *err);
void counters_cancel(struct counters *counters); /* NULL allowed; `done` is not called any more */

/* The child: argv[1] that makes the program one, and what it does. */
#define COUNTERS_CHILD_OPTION "--counters-child"
int counters_child(int argc, char **argv);

/* What the child is told, as bytes and back; free both. PMIXFAB_ERR_NOMEM, _CORRUPT. */
int counters_order_encode(const struct probe_reading *list, uint32_t n, const void *parts, size_t size,
                          void **bytes, size_t *total);
int counters_order_decode(const void *bytes, size_t size, struct probe_reading **list, uint32_t *n,
                          const void **parts, size_t *parts_size, struct fab_err *err);

/* ---- growth: counter_watch.c, decisions only -------------------------------------------------------- */

#define COUNTER_WATCH_TIME (3600 * INT64_C(1000000)) /* after a change, or since it grew last */

/* A port that is looked at. Times are microseconds since 1970. */
struct watched_port {
    struct probe_reading last;
    int64_t read_at;                /* 0: never */
    uint64_t grown[PROBE_COUNTERS]; /* of errors, since grows_since */
    int64_t grows_since;            /* 0: nothing did */
    int64_t grown_at;               /* when it did last */
    int64_t until;
};
struct counter_watch {
    struct watched_port *ports; /* sorted by GUID and number */
    uint32_t n, cap;
    uint32_t most;                  /* 0: COUNTERS_MAX */
    uint64_t grown[PROBE_COUNTERS]; /* of all that were ever looked at */
};

/* Look at this port from now on. changed: what it counted before says nothing. PMIXFAB_ERR_NOMEM, _RANGE:
 * there are as many as there can be. */
int counter_watch_add(struct counter_watch *watch, uint64_t guid, uint32_t num, bool changed, int64_t now);
/*
 * A port was read. What is less than before was set to zero, and what has come to its end does not grow:
 * neither counts.
 */
void counter_watch_read(struct counter_watch *watch, const struct probe_reading *reading, int64_t now);
/* The link of this port changed, where it is looked at. */
void counter_watch_changed(struct counter_watch *watch, uint64_t guid, uint32_t num);
/*
 * The same of a port that is looked at for ever. What has not grown for COUNTERS_DAY is forgotten, and so is
 * what has grown for so long and is not above the usual. What there is no room for is not looked at.
 */
#define COUNTERS_DAY     (86400 * INT64_C(1000000))
#define COUNTERS_ALL_MAX 131072u
void counter_watch_keep(struct counter_watch *watch, const struct probe_reading *reading, int64_t now);
/* The largest multiple of what is usual (probe_counter_kinds): above 1 it is too much. */
double counter_level(const uint64_t value[PROBE_COUNTERS]);
/* Those whose time is over go. */
void counter_watch_expire(struct counter_watch *watch, int64_t now);
struct watched_port *counter_watch_find(const struct counter_watch *watch, uint64_t guid, uint32_t num);
void counter_watch_free(struct counter_watch *watch); /* leaves it empty */

/* "symbol errors +50, link downed +1"; "" where nothing grew. */
#define COUNTERS_TEXT 256
void counter_growth_text(const struct watched_port *port, char text[COUNTERS_TEXT]);

#endif
