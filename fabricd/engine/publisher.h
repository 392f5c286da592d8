/* publisher.h - what the files of the publisher share; for them, the scheduler beside them, and tests. */
#ifndef FABRICD_ENGINE_PUBLISHER_H
#define FABRICD_ENGINE_PUBLISHER_H

#include "fabricd/engine/publish.h"
#include "fabricd/store/store_tables.h"
#include "topo/changes/changes.h"
#include "topo/join/join.h"
#include "topo/model/names.h"
#include "topo/model/retain.h"

static inline int no_memory(struct fab_err *err)
{
    return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
}

/* A moment by both clocks, in microseconds. */
struct moment {
    int64_t wall;
    int64_t running; /* since the boot */
    char boot[RETAINED_BOOT_MAX];
};
void moment_now(struct moment *out);

/* ---- damping.c: what comes and goes too often. `now` and `when` are in microseconds of any clock that does
 * not go back; one that does stands still instead. What is known is lost with the process. ---- */

#define DAMPING_MAX_COUNT 16

struct damping_limits {
    unsigned count;                  /* 1 to DAMPING_MAX_COUNT; 0: nothing is suppressed */
    unsigned window, down, down_max; /* seconds */
};

/* A cable by its two ends, the lower one first; or a switch with all of its cables: port and far are 0. */
struct damping_end {
    uint64_t guid;
    uint32_t port;
};
struct damping_key {
    struct damping_end end, far;
};
struct damping_key damping_cable(struct damping_end a, struct damping_end b);
struct damping_key damping_switch(uint64_t guid);
bool damping_is_switch(const struct damping_key *key);
int damping_compare(const struct damping_key *a, const struct damping_key *b); /* as memcmp() */

/* What is known of one. */
struct damped {
    struct damping_key key;
    bool suppressed;
    uint32_t changes; /* since times[0], when it is suppressed; else within the window */
    int64_t times[DAMPING_MAX_COUNT];
    int64_t until;   /* it is suppressed; or it was released last, 0: it never was suppressed */
    int64_t period;  /* for so long it was suppressed last; 0: it never was */
    int64_t excused; /* its coming back is not counted up to then; 0: it is */
    int64_t went;    /* the last that was counted: it went, then; 0: it came, or that was not counted */
    char *names;     /* suppressed: what people call it, and behind that the subjects; NULL: not known */
};
const char *damped_what(const struct damped *damped); /* never NULL */
const char *
damped_subjects(const struct damped *damped); /* each with its end, an empty one behind the last */

struct damping;
struct damping *damping_new(const struct damping_limits *limits); /* NULL: out of memory */
void damping_free(struct damping *damping);                       /* NULL allowed */
/* From now on these; what is suppressed stays so until its time is over. */
void damping_limit(struct damping *damping, const struct damping_limits *limits);
/* It came or went. True: from now on it is suppressed, and was not. (Where there is no memory to remember it,
 * the change is not counted.) */
bool damping_change(struct damping *damping, const struct damping_key *key, bool came, int64_t now);
/* What people call one that is suppressed, and the names that they would look for. Both are copied. */
void damping_name(struct damping *damping, const struct damping_key *key, const char *what,
                  const char *subjects);
/* Let time pass: release those whose time is over. Returns how many. */
uint32_t damping_advance(struct damping *damping, int64_t now);
/* Release it now, and forget what it did. False: it is not suppressed. */
bool damping_release(struct damping *damping, const struct damping_key *key);

/* Questions, as of the last call with a time. */
bool damping_is_suppressed(const struct damping *damping,
                           const struct damping_key *cable);                              /* or its switch */
bool damping_suppresses_end(const struct damping *damping, uint64_t guid, uint32_t port); /* likewise */
/* Those that are suppressed, one after the other: *at begins with 0. And this one. NULL: none. */
const struct damped *damping_next(const struct damping *damping, uint32_t *at);
struct damped *damping_find(const struct damping *damping, const struct damping_key *key);
/* How many cables and switches are suppressed, and when the next of them is released (0: none is). */
struct damping_counts {
    uint32_t cables, switches;
    int64_t next;
};
struct damping_counts damping_count(const struct damping *damping);
uint32_t damping_remembered(const struct damping *damping); /* cables and switches */

/* A cable that is up, and which of its ends are at switches. */
struct sweep_cable {
    struct damping_key key;
    bool end_is_switch, far_is_switch;
};
/* Those of a sweep, by their keys. */
struct sweep_links {
    struct sweep_cable *cables;
    uint32_t n;
    bool known; /* there was a sweep */
};
void sweep_links_free(struct sweep_links *seen);

struct flap_calls {
    bool (*is_planned)(uint64_t guid, void *cbdata); /* a swap of this node, or of its host */
    void (*on_suppressed)(const struct damping_key *key, void *cbdata); /* from now on it is */
    void *cbdata;
};
/* Count what is different in *now from *before (nothing, where that is not known), which takes its place, and
 * *now is emptied. PMIXFAB_ERR_NOMEM: as it was. */
int flaps_count(struct damping *damping, struct sweep_links *before, struct sweep_links *now, int64_t when,
                const struct flap_calls *calls);

/* ---- the publisher ---- */

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
    char **remarks;            /* lines, sorted */
    struct joined_host *hosts; /* that report, in natural order */
    uint32_t n_remarks, room, n_hosts;
};
void join_findings_free(struct join_findings *findings);

/* Nodes, ascending. */
struct guids {
    uint64_t *guids;
    uint32_t n, room;
    bool failed; /* out of memory */
};

struct publisher {
    const struct config *config;
    struct store *store;
    struct served *served;
    struct counts *counts;
    struct fab_names *names;
    struct fab_err names_fault;   /* why they are not as configured; "": they are */
    struct fab_inventory current; /* what the sweep saw, as published last, finished and named */
    struct absent absent;         /* what is missing in it, and what was lost before and is not back */
    struct damping *damping;
    struct damping *claims;   /* HCAs that several hosts claim, by their node GUIDs */
    struct guids contested;   /* of them, those that several hosts claimed in what was published last */
    bool claims_released;     /* since then claims were quiet for long enough */
    struct sweep_links links; /* that the last good sweep saw */
    struct fab_diff flaps;    /* what is suppressed and no generation has told of yet */
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
    bool compare;  /* false until one sweep was computed with this configuration: equality proves nothing */
};

/* When what is now was first seen, and what was before last seen. A clock that went back in between has both
 * at the same time. 0: not known. */
static inline void publish_stamp(struct fab_diff *diff, int64_t first_seen, int64_t last_seen)
{
    for (uint32_t i = 0; i < diff->n; i++) {
        struct fab_change *change = &diff->changes[i];
        int64_t last = change->last_seen != 0 ? change->last_seen : last_seen;
        change->first_seen = first_seen;
        change->last_seen = last > first_seen && first_seen != 0 ? first_seen : last;
    }
}

/* When what is published was seen last; before the first sweep since the start, when it was published. */
static inline int64_t publisher_seen_last(const struct publisher *publisher)
{
    return publisher->swept != 0 ? publisher->swept : publisher->published;
}

/* Read pattern and map again; the old ones stay on error. */
int publisher_read_names(struct publisher *publisher, struct fab_err *err);
/* What looks wrong in what is served, for publisher->findings. Valid until something is published. */
int publisher_check(struct publisher *publisher, const struct node_report *const *reports, uint32_t n,
                    struct fab_err *err);
void publisher_unchecked(struct publisher *publisher);
/* Ports at both ends of links that are not what they were; none of more than PUBLISH_PORTS_MAX. */
void publisher_changed_ports(const struct publisher *publisher, const struct fab_diff *diff,
                             struct publish_ports *out);

/* ---- sweep_judgement.c: what is made of a sweep ---- */

struct swept_fabric {
    struct publisher *publisher;
    struct fab_inventory inv;
    struct guids elsewhere;        /* of it: what had a name at another place, and does not say it */
    int64_t seen;                  /* when it was taken */
    struct comparison *comparison; /* nothing is published of it; else NULL */
};
void swept_fabric_destroy(struct swept_fabric *sweep);

/* Name its inventory; refuse a part of the fabric; take what flaps as down; what is missing keeps its place,
 * unless an operator takes the sweep as it is. *diff: from what is published to that, understood. */
int sweep_take(struct swept_fabric *sweep, const struct publish_request *input, struct sweep_findings *report,
               struct fab_diff *diff, struct fab_err *err);
int sweep_diff(const struct swept_fabric *sweep, bool unmanaged, struct fab_diff *diff, struct fab_err *err);
/* A node that gave no description this time (the answer was lost) keeps the one it had: it is not renamed. */
int sweep_fill_gaps(const struct publisher *publisher, struct fab_inventory *inv);
/*
 * What an inventory (named) shows beside the change itself, and may it replace what is published? A part of a
 * fabric may not, nor what is seen when the sweeping host's own cable is out: nothing but itself, without a
 * sign that anything is missing.
 */
int sweep_judge(const struct publisher *publisher, const struct fab_inventory *inv, bool accept_partial,
                struct sweep_findings *report, struct fab_err *err);
/* ---- flapping.c ---- */

int flapping_init(struct publisher *publisher, struct fab_err *err);
/* Count what is different from the last sweep. PMIXFAB_ERR_NOMEM. */
int flapping_count(const struct swept_fabric *sweep);
/* Is the cable in this port suppressed? As fab_cut_fn. */
bool flapping_is_cut(const struct fab_inventory *inv, uint32_t port, void *damping);
/*
 * Several hosts claim these HCAs in what is published now: takes the list. An HCA whose claims come and go is
 * nobody's until they have been quiet.
 */
int claims_init(struct publisher *publisher, struct fab_err *err);
void claims_accept(struct publisher *publisher, struct guids *contested);
/* Release what is due. True: something was, so a sweep should see it. */
bool publisher_release(struct publisher *publisher);

/* ---- retention.c ---- */

/* The list for an inventory: those that are in `before` (of another boot: anew) go on, the others begin now,
 * and were last seen at `seen`. *out is initialised here. PMIXFAB_ERR_NOMEM. */
int retained_follow(const struct retained *before, const struct fab_inventory *inv, const struct moment *now,
                    int64_t seen, struct retained *out);
/* In how many microseconds the first port is due, not below 0; -1: none is missing. */
int64_t retained_next(const struct retained *missing, unsigned retire, const struct moment *now);

/* From the store, when the inventory is loaded. */
int retention_load(struct publisher *publisher, struct fab_err *err);
/* Keep what is not seen: fills the inventory anew, and named. */
int sweep_retain(struct swept_fabric *sweep, struct fab_err *err);
/* Without a sweep: what is published, without what an operator has forgotten, and where `due` without what
 * has been missing for too long. *any: something is to be retired. */
int retention_retire(struct swept_fabric *sweep, bool due, bool *any, struct fab_err *err);
/* What was missing was last seen before it was. */
void retention_correct_seen(const struct publisher *publisher, struct fab_diff *diff);
/* What will be absent after this generation (0: none, and what was lost stays); and it is in the store, also
 * what was lost. */
int retention_plan(const struct publisher *publisher, const struct fab_inventory *after,
                   const struct fab_diff *diff, uint64_t generation, struct absent *out, struct fab_err *err);
void retention_accept(struct publisher *publisher, struct absent *planned, bool lost);

/* ---- reports_join.c ---- */

/* Reports that are about to be published: those that are new, and what the list of all will be. */
struct announced {
    struct store_report *rows; /* for the store; they borrow their names */
    uint32_t n;
    struct published_reports next;
};
void announced_free(struct announced *announced);

int reports_load(struct publisher *publisher, struct fab_err *err); /* the list from the store */
/* Find the reports that are new, and append what changes in them to the diff. *announced is initialised here,
 * also on error. */
int reports_announce(struct publisher *publisher, const struct publish_request *input, struct fab_diff *diff,
                     struct announced *announced, struct fab_err *err);
void reports_accept(struct publisher *publisher, struct announced *announced); /* they are in the store */
/*
 * Join what was swept (finished and named) with the reports. Remarks that were not made last time are logged.
 * What is `elsewhere` (NULL: nothing), or was when the report was published already, is not that host's for
 * its report.
 */
int reports_join(struct publisher *publisher, const struct fab_inventory *swept,
                 const struct guids *elsewhere, const struct node_report *const *reports, uint32_t n,
                 struct fab_joined *out, struct fab_err *err);

/* Devices by what facts alone tell, a MAC or a system image GUID with a node GUID, collected when it is first
 * asked for: a report may claim thousands. */
struct prior_owner_table {
    struct prior_owner_entry {
        uint64_t value, node; /* node: 0 of a MAC */
        const char *host;
        uint32_t place; /* of those alike the first counts */
    } * entries;
    uint32_t n;
    bool collected;
};
/* Whose a GUID or a MAC is in what is served, for a join that finds several who claim it. Holds what is
 * served until it is closed. One thread. */
struct prior_owner {
    struct served_set *served;
    struct prior_owner_table macs, ids;
};
void prior_owner_open(struct prior_owner *prior, struct served *served);
void prior_owner_close(struct prior_owner *prior);
/* As struct fab_prior_owners wants it; cbdata: the prior. NULL also without memory. */
const char *prior_owner_of(void *cbdata, enum fab_fact kind, uint64_t value, uint64_t node);

/* ---- compute.c ---- */

/* The configured planes of network interfaces, as joining wants them. */
struct ethernet_planes {
    struct fab_ethernet_plane planes[CONFIG_MAX_LIST]; /* point into names and into the configuration */
    char names[CONFIG_MAX_LIST][64];
    uint32_t n;
};
void ethernet_planes(const struct config *config, struct ethernet_planes *out);

/* One built snapshot, its generation and time still zero. */
struct built_plane {
    uint32_t index;
    bool is_new; /* has no predecessor among the known planes */
    char name[64];
    void *bytes;
    size_t size;
};
struct built {
    struct built_plane *planes;
    uint32_t n;
};
void built_destroy(struct built *built);

/*
 * Compute every plane and give each its number. Of InfiniBand planes that of the known one with which it
 * shares the most ports and switches, the active ones before the retired ones; a new number where it shares
 * none. Ethernet planes and that of unattached ports have their names from the configuration, and the number
 * of the known one of that name; so have topologies of a file, from there. The default plane is the
 * configured one, else the file's, else the known one that is it, else the one with most devices that is not
 * the unattached one.
 */
int compute_planes(const struct fab_joined *joined, const struct config *config,
                   const struct store_plane *known, uint32_t n_known, struct built *out, struct fab_err *err);

#endif
