/* update.h - what the parts of the publisher share. */
#ifndef FABRICD_ENGINE_UPDATE_H
#define FABRICD_ENGINE_UPDATE_H

#include "fabricd/engine/compute.h"
#include "fabricd/engine/planned.h"
#include "fabricd/engine/publish.h"
#include "fabricd/engine/publish_retention.h"
#include "fabricd/serving/rundir.h"
#include "topo/changes/changes.h"
#include "topo/changes/check.h"
#include "topo/model/names.h"
#include "topo/model/retain.h"

/* The reports that were published last, by host (strcmp). */
struct published_report {
    char *host;
    uint64_t digest;
    int64_t received; /* microseconds since 1970; 0: not known */
};
struct published_reports {
    struct published_report *reports;
    uint32_t n, room;
    bool failed; /* out of memory while it was read */
};
void published_reports_free(struct published_reports *list);

/* What the last joining found out. */
struct join_findings {
    char **remarks;            /* lines */
    struct joined_host *hosts; /* that report, by their names */
    uint32_t n_remarks, n_hosts;
};
void join_findings_free(struct join_findings *findings);

struct publisher {
    const struct config *config;
    struct store *store;
    struct served *served;
    struct counts *counts;
    struct fab_names *names;
    struct fab_err names_fault;   /* why they are not as configured; "": they are */
    struct fab_inventory current; /* what the sweep saw, as published last, finished and named */
    struct absent absent;         /* what is missing in it, and what was lost before and is not back */
    struct retention retention;   /* what flaps */
    struct published_reports reports;
    struct fab_join_cache *joins; /* the last joining, for the next */
    struct join_findings found;
    struct planned *planned;
    struct fab_findings findings; /* of what is served, where it was checked since it changed last */
    bool checked;
    /* Known planes that are not served; their numbers stay taken. Those not marked retired are to be served
     * but could not be read. */
    struct store_plane *retired;
    uint32_t n_retired;
    uint64_t generation;
    int64_t published;
    struct store_gone *gone; /* generations that the store should have */
    uint32_t n_gone;
    bool inherited; /* what is served is the run directory's: the store has none of it */
    char
        stale_why[480]; /* why what is served may be old, until a sweep was good; "": it is not known to be */
    int64_t swept; /* when the last good sweep was taken, microseconds since 1970; 0: none since the start */
    bool compare;  /* false until one sweep was computed with this configuration: equality proves nothing
                     before */
};

/* Reports that are about to be published: those that are new, and what the list of all will be. */
struct announced {
    struct store_report *rows; /* for the store; they borrow their names */
    uint32_t n;
    struct published_reports next;
};

/* Nodes, ascending. */
struct guids {
    uint64_t *guids;
    uint32_t n, room;
    bool failed; /* out of memory */
};

/* What is served otherwise than a sweep sees it, and is no change. */
struct otherwise {
    struct fab_diff diff;
    struct fab_inventory uncut; /* the sweep, where cables of it are suppressed */
};

/* A change in the making. What it holds is given back at the end, whether it came to something or not. */
struct update {
    struct publisher *publisher;
    const struct publish_request *input;
    struct sweep_findings *report;
    bool done;                   /* there is nothing more to do */
    struct served_set *served;   /* what is served now */
    struct fab_inventory inv;    /* of a sweep: named */
    struct guids elsewhere;      /* of it: what had a name at another place, and does not say it */
    struct fab_inventory *after; /* that, or the publisher's current one */
    struct fab_diff diff;        /* understood */
    int64_t seen;                /* when its sweep was taken */
    struct announced announced;
    struct absent absent; /* where its inventory is a new one: as it will be */
    bool remembers;       /* that is so */
    struct built built;
    struct store_plane *known; /* borrowed snapshots: served planes, then retired ones */
    uint32_t n_known;
    struct store_plane *rows; /* for the store: planes that changed, came or went (snapshots borrowed) */
    uint32_t n_rows;
    struct store_plane *retired; /* that will be: what goes, and behind it room for the others */
    uint32_t n_retired;
    uint64_t generation; /* that it becomes */
    int64_t published;
    struct publication *publication; /* what came of it */
    struct otherwise *otherwise;     /* of a comparison; else NULL */
    /* Its files are written and checked beside the store's work. */
    struct work *staging; /* NULL: none is under way */
    int written;          /* how that went */
    struct fab_err write_err;
};

/* Fill in known. */
int update_collect_known(struct update *update);
/* The rows: built planes whose content is not what is served, and served planes that were not built. */
int update_find_changed(struct update *update);
/* Generation and time into the rows' snapshots. */
void update_stamp_rows(struct update *update);
/* They are written beside those that are served, checked and opened. */
int update_write_rows(struct update *update, struct fab_err *err);
/* Takes the built snapshots; the rows still point at them, and they live as long as the publication's set. */
int update_make_publication(struct update *update, struct fab_err *err);

/* The list of retired planes as it will be, and putting it in force. */
int update_plan_retired(struct update *update, struct fab_err *err);
void update_accept_retired(struct update *update);

/* ---- staging.c: files and checks, beside the store's work ---- */

void staging_begin(struct update *update);
/* Before the store's commit: wait for that, and make the publication of it. */
int staging_wait(void *update, struct fab_err *err);
/* Always: nothing is left behind. */
void staging_end(struct update *update);

/* A sweep's inventory: named, compared, and refused where it is a part of the fabric only. What is missing in
 * it keeps its place, unless an operator takes it as it is. */
int update_judge_sweep(struct update *update, struct fab_err *err);

/* ---- publish_names.c ---- */

/* Name the update's inventory: by what the nodes say, and where they do not say it yet by what they said. */
int update_name(struct update *update, struct fab_err *err);

/* ---- publish_otherwise.c: nothing where nobody compares. PMIXFAB_ERR_NOMEM ---- */

/* Called as it does not say: the node of this GUID. */
int update_verify_name(struct update *update, uint64_t guid, const char *why);
/* Cables of the update's inventory that are about to be cut. */
int update_verify_cut(struct update *update, fab_cut_fn cut, void *cbdata);
/* What is missing in what is served, and is in what this sweep would publish. */
int update_verify_missing(struct update *update);

/* A node that gave no description this time (the answer was lost) keeps the one it had: it is not renamed. */
int publish_fill_gaps(const struct publisher *publisher, struct fab_inventory *inv);

/* What a sweep's inventory (named) says beside the change itself. */
void publish_fill_report(const struct publisher *publisher, const struct fab_inventory *inv,
                         const struct fab_diff *diff, struct sweep_findings *report);

/*
 * May this inventory replace what is published? A part of a fabric may not, nor what is seen when the
 * sweeping host's own cable is out: nothing but itself, without a sign that anything is missing.
 */
int check_complete(const struct publisher *publisher, const struct fab_inventory *inv,
                   const struct sweep_findings *report, struct fab_err *err);

/* Find the reports that are new, and append what changes in them to the diff. *announced is initialised here,
 * also on error. */
int publish_tell(struct publisher *publisher, const struct node_report *const *reports, uint32_t n,
                 struct fab_diff *diff, struct announced *announced, struct fab_err *err);

/* ---- publish_history.c: the update's changes as they go into the history ---- */

/* Understand the difference from the publisher's inventory to the update's. */
int update_correlate(struct update *update, struct fab_err *err);
void update_list_changed_ports(struct update *update); /* after the commit */
void update_log(const struct update *update);          /* that it is published, and what has changed */
/* Add what changes about planes as a whole: kind, shape, device indices; and which is the default. */
int update_announce_planes(struct update *update, struct fab_err *err);
/* When what is now was first seen, and what was before last seen. A clock that went back in between has both
 * at the same time. 0: not known. */
void publish_stamp(struct fab_diff *diff, int64_t first_seen, int64_t last_seen);
/* When what is published was seen last; before the first sweep since the start, when it was published. */
int64_t publish_history_since(const struct publisher *publisher);

/* ---- publish_retired.c: what is absent ---- */

/* From the store, when the inventory is loaded. */
int publisher_read_absent(struct publisher *publisher, struct fab_err *err);
/* What was missing was last seen before it was. */
void update_correct_seen(struct update *update);
/* As it will be after this generation (0: none is told of, and what was lost stays). The update's changes are
 * as they will be told. */
int update_remember(struct update *update, uint64_t generation, struct fab_err *err);
void publish_remembered(struct update *update, bool lost); /* it is in the store, also what was lost */

/* Is this the report of that host that was published last? */
bool publish_was_announced(const struct publisher *publisher, const char *host, uint64_t digest);
void publish_announced(struct publisher *publisher, struct announced *announced); /* they are in the store */
void announced_free(struct announced *announced);

/* The list from the store. */
int publisher_read_reports(struct publisher *publisher, struct fab_err *err);

/*
 * Join what was swept (finished and named) with the reports. Remarks that were not made last time are logged.
 * What is `elsewhere` (NULL: nothing), or was when the report was published already, is not that host's for
 * its report.
 */
int publish_join(struct publisher *publisher, const struct fab_inventory *swept,
                 const struct guids *elsewhere, const struct node_report *const *reports, uint32_t n,
                 struct fab_joined *out, struct fab_err *err);

/* ---- publish_older.c ---- */

/* Is the store older than is known of it? Then it is told, and later numbers are above. Before the next. */
int publish_look_older(struct publisher *publisher, struct fab_err *err);
/* The run directory's snapshots, where the store is empty; else, or where there are none, *out is NULL. */
int publish_inherit(struct publisher *publisher, struct served_set **out, struct fab_err *err);

/* Before anything is served: where readers have seen a newer generation than the store's, or a plane has
 * number 0, publish what it holds (known: its planes) once more, above, with another number of that plane. */
int publish_renumber(struct publisher *publisher, struct store_plane *known, uint32_t n, struct fab_err *err);

/* Read pattern and map again; the old ones stay on error. */
int publisher_read_names(struct publisher *publisher, struct fab_err *err);

#endif
