/*
 * sweep.h - probes run in a child process, with a deadline, and hand over through a pipe. Between
 * sweeps monitor.h asks the fabric cheaply; host_scan.h asks this host.
 *
 * libibnetdisc can abort or hang its process; so can a driver below it. The child is this program again,
 * started with --sweep-child; whatever becomes of it costs one sweep and nothing else.
 */
#ifndef FABRICD_SOURCES_SWEEP_H
#define FABRICD_SOURCES_SWEEP_H

#include <event2/event.h>

#include "fabricd/config/config.h"
#include "probes/core/probe.h"
#include "topo/model/inventory.h"

struct sweep_result {
    int code; /* 0, or why there is no inventory */
    struct fab_err err;
    struct fab_inventory inv; /* finished, not named; whose owner may take it (and init it again) */
    void *bytes; /* what a sweep of a part begins from (struct switch_sweep); likewise (and NULL) */
    size_t size;
    bool whole;         /* everything was asked, and not only what was ordered */
    struct fab_err why; /* why, where that was not the order */
    double milliseconds;
};

struct sweep;

/* Called once, on the event loop. */
typedef void (*sweep_done_fn)(struct sweep_result *result, void *cbdata);

/*
 * A sweep of what changed only, each probe in its own part of what was seen last. Where that does not tell
 * enough, the child has a probe sweep everything that it sees.
 */
struct switch_sweep {
    const struct dirty_switches *dirty;
    const void *parts; /* of the last sweep: the bytes of struct sweep_result */
    size_t size;
};

/* Start the child. part: NULL for a full sweep; not needed after the call. On error `done` is not called.
 */
int sweep_start(struct event_base *base, const struct config *config, const struct switch_sweep *part,
                sweep_done_fn done, void *cbdata, struct sweep **out, struct fab_err *err);

/* Kill the child and forget it; `done` is not called any more. NULL is allowed. */
void sweep_cancel(struct sweep *sweep);

/* The loop does not run any more: let the child come to its end, for which sweep_cancel() is going to wait, a
 * second at most. NULL is allowed. */
void sweep_leave(struct sweep *sweep);

/* Append the configured probes of the fabric to an argument list; returns how many. */
unsigned sweep_probes(const struct config *config, char **argv);

/* The child: runs the probes named by argv, writes to descriptor 3, returns its exit status. What it finds on
 * its standard input, if anything, is a switch_sweep as sweep_order_encode() writes it. */
int sweep_child(int argc, char **argv);

/* argv[1] that makes the program a sweeping child. */
#define SWEEP_CHILD_OPTION "--sweep-child"

/* ---- sweep_codec.c: what the two tell each other --------------------------------------------------- */

/* What each probe of the fabric saw, in the order of the configuration: finished inventories. */
struct sweep_parts {
    struct fab_inventory inv[CONFIG_MAX_LIST];
    unsigned n;
};
void sweep_parts_destroy(struct sweep_parts *parts);

#define SWEEP_NODES_MAX 250000u /* HCAs and switches of a fabric; more would be a mistake in a file */
/* Are they as many as a fabric may have? PMIXFAB_ERR_RANGE. */
int sweep_parts_check(const struct sweep_parts *parts, struct fab_err *err);

/* Of the bytes in struct sweep_result. *parts is initialised here, and empty on error: PMIXFAB_ERR_CORRUPT,
 * or what fab_wire_decode() says. */
int sweep_parts_decode(const void *bytes, size_t size, struct sweep_parts *parts, struct fab_err *err);

/* A switch_sweep as bytes; free(*bytes). PMIXFAB_ERR_NOMEM. And back: *dirty (free it) and *parts are
 * initialised here; errors as above. */
int sweep_order_encode(const struct switch_sweep *part, void **bytes, size_t *size);
int sweep_order_decode(const void *bytes, size_t size, struct dirty_switches *dirty,
                       struct sweep_parts *parts, struct fab_err *err);

/* What the child answers beside the parts. */
struct sweep_answer {
    struct fab_inventory inv; /* of all; where there is one part only, that is it, and this is left out */
    bool whole;
    struct fab_err why;
};
#define SWEEP_ANSWER_MAX (1u << 30) /* bytes */

/* As bytes; free(*bytes). PMIXFAB_ERR_NOMEM. */
int sweep_answer_encode(const struct sweep_answer *answer, const struct sweep_parts *parts, void **bytes,
                        size_t *size);
/* Its size by its first bytes; 0: not known yet, SIZE_MAX: it is none. */
size_t sweep_answer_total(const void *bytes, size_t n);
/* And back: the bytes become those of the parts, which are not looked at. Errors as above. */
int sweep_answer_decode(void *bytes, size_t *size, struct sweep_answer *answer, struct fab_err *err);

#endif
