/*
 * publish_keep.h - between a sweep and what is published of it: what flaps is taken as down, and what
 * is not seen any more keeps its place for a while.
 */
#ifndef FABRICD_PUBLISH_KEEP_H
#define FABRICD_PUBLISH_KEEP_H

#include "fabricd/flaps.h"
#include "fabricd/missing.h"
#include "topo/diff.h"

struct draft;
struct publisher;

/* What the publisher remembers for this. */
struct keeper {
    struct missing missing; /* of the current inventory */
    struct hold *hold;
    struct flaps_seen seen; /* by the last good sweep */
    struct fab_diff news;   /* what is held and no generation has told of yet */
};
int keeper_init(struct publisher *publisher, struct fab_err *err); /* when the inventory is loaded */
void keeper_free(struct keeper *keeper);

/* Compute the difference from what is published, as far as that was seen, to the draft's sweep; and fill in
 * the report. */
struct publish_report;
int keep_compare_seen(struct draft *draft, struct publish_report *report, struct fab_err *err);

/* The first part of the next: count, and cut. *cut: something was. */
int keep_hold_down(struct draft *draft, bool *cut, struct fab_err *err);

/* Of a sweep that is whole: count what flaps, cut what is held, keep what is not seen. Fills the draft's inv
 * anew, and named. */
int keep_sweep(struct draft *draft, struct fab_err *err);

/* Without a sweep: retire what an operator has forgotten, and where `due` what has been missing for too long.
 * *none: nothing is to be retired. */
int keep_retire(struct draft *draft, bool due, bool *none, struct fab_err *err);

/* Append the flaps that were not told yet to the draft's diff; and when it is stored. */
int keep_tell_flaps(struct draft *draft, struct fab_err *err);
void keep_was_told(struct publisher *publisher);

/* The draft's inventory is in the store, and so is its list of what is missing. */
int keep_plan(struct draft *draft, struct fab_err *err); /* fill in draft->missing and its rows */
void keep_take(struct draft *draft);

#endif
