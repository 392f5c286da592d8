/* publish_priv.h - what the parts of the publisher share. */
#ifndef FABRICD_PUBLISH_PRIV_H
#define FABRICD_PUBLISH_PRIV_H

#include "fabricd/build.h"
#include "fabricd/publish.h"
#include "fabricd/rundir.h"
#include "topo/names.h"

struct publisher {
    const struct config *config;
    struct store *store;
    struct fab_names *names;
    struct fab_inventory current; /* as published last, finished and named */
    /* Known planes that are not served; their numbers stay taken. Those not marked retired are to be served
     * but could not be read. */
    struct store_plane *retired;
    uint32_t n_retired;
    uint64_t generation;
    int64_t published;
    bool compare; /* false until one sweep was computed with this configuration: equality proves nothing
                     before */
};

/* A node that gave no description this time (the answer was lost) keeps the one it had: it is not renamed. */
int publish_fill_gaps(const struct publisher *publisher, struct fab_inventory *inv);

/* What a sweep's inventory (named) says beside the change itself. */
void publish_fill_report(const struct publisher *publisher, const struct fab_inventory *inv,
                         const struct fab_diff *diff, struct publish_report *report);

/*
 * May this inventory replace what is published? A part of a fabric may not, nor what is seen when the
 * sweeping host's own cable is out: nothing but itself, without a sign that anything is missing.
 */
int publish_check_whole(const struct publisher *publisher, const struct fab_inventory *inv,
                        const struct publish_report *report, struct fab_err *err);

/* Read pattern and map again; the old ones stay on error. */
int publisher_read_names(struct publisher *publisher, struct fab_err *err);

#endif
