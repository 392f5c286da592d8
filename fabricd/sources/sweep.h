/*
 * sweep.h - run the probes in a child process, with a deadline, and read their result from a pipe. Between
 * sweeps monitor.h checks the fabric cheaply; host_scan.h scans this host.
 *
 * libibnetdisc can abort or hang its process; so can a driver below it. The child is this program, started
 * with --sweep-child; its failure costs one sweep and nothing else.
 */
#ifndef FABRICD_SOURCES_SWEEP_H
#define FABRICD_SOURCES_SWEEP_H

#include <event2/event.h>

#include "fabricd/config/config.h"
#include "probes/core/probe.h"
#include "topo/model/inventory.h"

struct sweep_result {
    int code; /* 0, or the reason why there is no inventory */
    struct fab_err err;
    struct fab_inventory inv; /* finished, without names; `done` may take it (and init it again) */
    /* the base of a later sweep of a part (struct switch_sweep); `done` may take it, too (and set NULL) */
    void *bytes;
    size_t size;
    bool whole;         /* everything was swept, not only the ordered part */
    struct fab_err why; /* the reason for that, if it was not ordered */
    double milliseconds;
};

struct sweep;

/* Called once, on the event loop. */
typedef void (*sweep_done_fn)(struct sweep_result *result, void *cbdata);

/*
 * A sweep of the dirty switches only, each probe in its own part of the last sweep. If that is not
 * sufficient, the child lets the probe sweep everything.
 */
struct switch_sweep {
    const struct dirty_switches *dirty;
    const void *parts; /* of the last sweep: the bytes of struct sweep_result */
    size_t size;
};

/*
 * Start the child. part: NULL for a full sweep. It may be freed after the call. On error `done` is not
 * called.
 */
int sweep_start(struct event_base *base, const struct config *config, const struct switch_sweep *part,
                sweep_done_fn done, void *cbdata, struct sweep **out, struct fab_err *err);

/* Kill the child and free it; `done` is not called any more. NULL allowed. */
void sweep_cancel(struct sweep *sweep);

/* Let the child end by itself, after the loop has stopped; sweep_cancel() will wait for it, a second at most.
 * NULL allowed. */
void sweep_leave(struct sweep *sweep);

/* Append the configured probes of the fabric to an argument list; returns their number. */
unsigned sweep_probes(const struct config *config, char **argv);

/* The child: run the probes named by argv, write to descriptor 3, return the exit status. Its standard input
 * may have a switch_sweep, encoded by sweep_order_encode(). */
int sweep_child(int argc, char **argv);

/* The argv[1] that selects the sweeping child. */
#define SWEEP_CHILD_OPTION "--sweep-child"

/* ---- sweep_codec.c: the protocol between daemon and child ------------------------------------------ */

/* The results of the probes of the fabric, in the order of the configuration: finished inventories. */
struct sweep_parts {
    struct fab_inventory inv[CONFIG_MAX_LIST];
    unsigned n;
};
void sweep_parts_destroy(struct sweep_parts *parts);

#define SWEEP_NODES_MAX 250000u /* HCAs and switches of a fabric; a larger number is an error in a file */
/* Check the size of the fabric. PMIXFAB_ERR_RANGE. */
int sweep_parts_check(const struct sweep_parts *parts, struct fab_err *err);

/* Decode the bytes of struct sweep_result. *parts is initialised here, and empty on error:
 * PMIXFAB_ERR_CORRUPT, or an error of fab_wire_decode(). */
int sweep_parts_decode(const void *bytes, size_t size, struct sweep_parts *parts, struct fab_err *err);

/*
 * Encode a switch_sweep. Free *bytes with free(). PMIXFAB_ERR_NOMEM. The second function decodes it. *dirty
 * and *parts are initialised here; free *dirty with free(). Its errors are as above.
 */
int sweep_order_encode(const struct switch_sweep *part, void **bytes, size_t *size);
int sweep_order_decode(const void *bytes, size_t size, struct dirty_switches *dirty,
                       struct sweep_parts *parts, struct fab_err *err);

/* The child's answer beside the parts. */
struct sweep_answer {
    /* merged; with one part only it is left out, since that part is the inventory */
    struct fab_inventory inv;
    bool whole;
    struct fab_err why;
};
#define SWEEP_ANSWER_MAX (1u << 30) /* bytes */

/* Encode the answer; free(*bytes). PMIXFAB_ERR_NOMEM. */
int sweep_answer_encode(const struct sweep_answer *answer, const struct sweep_parts *parts, void **bytes,
                        size_t *size);
/*
 * Return the total size, from the first bytes. 0: the size is not known yet. SIZE_MAX: the bytes are
 * invalid.
 */
size_t sweep_answer_total(const void *bytes, size_t n);
/* Decode the answer: the bytes become those of the parts, which are not checked. Errors as above. */
int sweep_answer_decode(void *bytes, size_t *size, struct sweep_answer *answer, struct fab_err *err);

#endif
