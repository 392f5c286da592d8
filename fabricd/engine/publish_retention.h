/*
 * publish_retention.h - between a sweep and what is published of it: what flaps is taken as down, and what
 * is not seen any more keeps its place for a while.
 */
#ifndef FABRICD_ENGINE_PUBLISH_RETENTION_H
#define FABRICD_ENGINE_PUBLISH_RETENTION_H

#include "fabricd/engine/flap_count.h"
#include "fabricd/engine/retained.h"
#include "topo/changes/changes.h"

struct update;
struct publisher;

/* What the publisher remembers for this. */
struct retention {
    struct damping *damping;
    struct sweep_links seen; /* by the last good sweep */
    struct fab_diff news;    /* what is suppressed and no generation has told of yet */
};
int retention_init(struct publisher *publisher, struct fab_err *err);
void retention_free(struct retention *retention);

/* Compute the difference from what is published, as far as that was seen, to the update's sweep; and fill in
 * the report. */
struct sweep_findings;
int retention_compare_swept(struct update *update, struct sweep_findings *report, struct fab_err *err);

/* The first part of the next: count, and cut. *cut: something was. */
int publish_suppress(struct update *update, bool *cut, struct fab_err *err);

/* Of a sweep that is whole: count what flaps, cut what is suppressed, keep what is not seen. Fills the
 * update's inv anew, and named. */
int retention_sweep(struct update *update, struct fab_err *err);

/* Without a sweep: retire what an operator has forgotten, and where `due` what has been missing for too long.
 * *none: nothing is to be retired. */
int retention_retire(struct update *update, bool due, bool *none, struct fab_err *err);

/* Append the flaps that were not told yet to the update's diff; and when it is stored. */
int retention_announce_flaps(struct update *update, struct fab_err *err);
void retention_announced(struct publisher *publisher);

#endif
