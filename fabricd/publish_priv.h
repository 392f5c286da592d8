/* publish_priv.h - what the parts of the publisher share. */
#ifndef FABRICD_PUBLISH_PRIV_H
#define FABRICD_PUBLISH_PRIV_H

#include "fabricd/build.h"
#include "fabricd/publish.h"
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

/* Files of the run directory: written beside, put in place by renaming. */
int rundir_write(const char *rundir, const char *plane, const void *bytes, size_t size, struct fab_err *err);
int rundir_commit(const char *rundir, const char *plane, struct fab_err *err);
void rundir_discard(const char *rundir, const char *plane); /* what rundir_write() wrote */
void rundir_remove(const char *rundir, const char *plane);  /* a plane that is served no more */
/* Write again what is served and whose file somebody removed. */
int rundir_mend(const char *rundir, const struct served_set *set, struct fab_err *err);
/* Remove every snapshot that is not in the set, and what an interrupted writer left. */
void rundir_clean(const char *rundir, const struct served_set *set);

#endif
