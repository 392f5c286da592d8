/* publisher.h - declarations shared by the files of the publisher; for them, the scheduler's files, and
 * tests. */
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

/* A time by both clocks, in microseconds. */
struct moment {
    int64_t wall;
    int64_t running; /* since the boot */
    char boot[RETAINED_BOOT_MAX];
};
void moment_now(struct moment *out);

/* ---- damping.c: flapping cables and switches. `now` and `when` are microseconds of any monotonic clock; a
 * time before the last one counts as that one. All state is lost with the process. ---- */

#define DAMPING_MAX_COUNT 16

struct damping_limits {
    unsigned count;                  /* 1 to DAMPING_MAX_COUNT; 0: nothing is suppressed */
    unsigned window, down, down_max; /* seconds */
};

/*
 * A cable by its two ends, the lower one first. Or a switch with all of its cables; then port and far are
 * 0.
 */
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

/* The state of a cable or switch. */
struct damped {
    struct damping_key key;
    bool suppressed;
    uint32_t changes; /* since times[0] if it is suppressed; else within the window */
    int64_t times[DAMPING_MAX_COUNT];
    int64_t until;   /* end of the suppression; or time of the last release, 0: never suppressed */
    int64_t period;  /* length of the last suppression; 0: none */
    int64_t excused; /* until then its return is not counted; 0: it is counted */
    int64_t went;    /* time of the last counted change, if it went; 0: it came, or was not counted */
    char *names;     /* while suppressed: its name, followed by its subjects; NULL: not known */
};
const char *damped_what(const struct damped *damped);     /* never NULL */
const char *damped_subjects(const struct damped *damped); /* each terminated, the list by an empty one */

struct damping;
struct damping *damping_new(const struct damping_limits *limits); /* NULL: out of memory */
void damping_free(struct damping *damping);                       /* NULL allowed */
/* Apply new limits; suppressed objects stay so until their time is over. */
void damping_limit(struct damping *damping, const struct damping_limits *limits);
/* Count a change: it came or went. True: it is suppressed from now on, and was not. (Without memory the
 * change is not counted.) */
bool damping_change(struct damping *damping, const struct damping_key *key, bool came, int64_t now);
/* Set the display name of a suppressed object, and the names that users search for. Both are copied. */
void damping_name(struct damping *damping, const struct damping_key *key, const char *what,
                  const char *subjects);
/* Advance the time: release those whose time is over. Returns their number. */
uint32_t damping_advance(struct damping *damping, int64_t now);
/* Release an object now, and delete its history. False: it is not suppressed. */
bool damping_release(struct damping *damping, const struct damping_key *key);

/* Return the state at the last call with a time. */
bool damping_is_suppressed(const struct damping *damping,
                           const struct damping_key *cable); /* the cable or its switch */
/* also by its switch */
bool damping_suppresses_end(const struct damping *damping, uint64_t guid, uint32_t port);
/*
 * Return the suppressed objects one by one; *at is 0 at first. The second function returns this object.
 * NULL: none.
 */
const struct damped *damping_next(const struct damping *damping, uint32_t *at);
struct damped *damping_find(const struct damping *damping, const struct damping_key *key);
/* Numbers of suppressed cables and switches, and the time of the next release (0: none). */
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
/* The cables of a sweep, by their keys. */
struct sweep_links {
    struct sweep_cable *cables;
    uint32_t n;
    bool known; /* there was a sweep */
};
void sweep_links_free(struct sweep_links *seen);

struct flap_calls {
    bool (*is_planned)(uint64_t guid, void *cbdata); /* a swap of this node, or of its host, is announced */
    /* called at the beginning of a suppression */
    void (*on_suppressed)(const struct damping_key *key, void *cbdata);
    void *cbdata;
};
/* Count the differences between *now and *before (none, if that is not known). *now then replaces *before,
 * and is emptied. PMIXFAB_ERR_NOMEM: nothing has changed. */
int flaps_count(struct damping *damping, struct sweep_links *before, struct sweep_links *now, int64_t when,
                const struct flap_calls *calls);

/* ---- the publisher ---- */

/* The last published reports, by host (strcmp). */
struct published_report {
    char *host;
    uint64_t digest;
    int64_t received; /* microseconds since 1970; 0: not known */
};
struct published_reports {
    struct published_report *reports;
    uint32_t n, room;
    bool failed; /* no memory while it was read */
};
void published_reports_free(struct published_reports *list);

/* Results of the last join. */
struct join_findings {
    char **remarks;            /* lines, sorted */
    struct joined_host *hosts; /* hosts that report, in natural order */
    uint32_t n_remarks, room, n_hosts;
};
void join_findings_free(struct join_findings *findings);

/* Nodes, ascending. */
struct guids {
    uint64_t *guids;
    uint32_t n, room;
    bool failed; /* no memory */
};

struct publisher {
    const struct config *config;
    struct store *store;
    struct served *served;
    struct counts *counts;
    struct fab_names *names;
    struct fab_err names_fault;   /* why they differ from the configuration; "": they do not */
    struct fab_inventory current; /* the last published inventory of the sweep, finished and named */
    struct absent absent;         /* missing objects in it, and lost ones that have not returned */
    struct damping *damping;
    struct damping *claims;   /* claims of several hosts to HCAs, by node GUIDs */
    struct guids contested;   /* HCAs with several claims in the published state */
    bool claims_released;     /* claims were quiet for long enough since then */
    struct sweep_links links; /* of the last good sweep */
    struct fab_diff flaps;    /* suppressions that no generation has reported yet */
    struct published_reports reports;
    struct fab_join_cache *joins; /* of the last join, for the next one */
    struct join_findings found;
    struct planned *planned;
    struct fab_findings findings; /* of the served state, if it was checked since its last change */
    bool checked;
    /* Known planes that are not served; their numbers stay in use. Those not marked retired should be served
     * but cannot be read. */
    struct store_plane *retired;
    uint32_t n_retired;
    uint64_t generation;
    int64_t published;
    struct store_gone *gone; /* generations that the store should have */
    uint32_t n_gone;
    bool inherited; /* the served set is the run directory's: the store has none */
    char
        stale_why[480]; /* why the served state may be old, until a sweep succeeds; "": not known to be old */
    int64_t swept;      /* time of the last good sweep, microseconds since 1970; 0: none since the start */
    /* false until one sweep was computed with this configuration: before that, equality proves nothing */
    bool compare;
};

/* Set when the new state was first seen, and the old one last. If a clock went back in between, both times
 * are equal. 0: not known. */
static inline void publish_stamp(struct fab_diff *diff, int64_t first_seen, int64_t last_seen)
{
    for (uint32_t i = 0; i < diff->n; i++) {
        struct fab_change *change = &diff->changes[i];
        int64_t last = change->last_seen != 0 ? change->last_seen : last_seen;
        change->first_seen = first_seen;
        change->last_seen = last > first_seen && first_seen != 0 ? first_seen : last;
    }
}

/* Return when the published state was seen last; before the first sweep since the start, when it was
 * published. */
static inline int64_t publisher_seen_last(const struct publisher *publisher)
{
    return publisher->swept != 0 ? publisher->swept : publisher->published;
}

/* Read pattern and map again; the old ones stay on error. */
int publisher_read_names(struct publisher *publisher, struct fab_err *err);
/* Check the served state, into publisher->findings. Valid until the next publication. */
int publisher_check(struct publisher *publisher, const struct node_report *const *reports, uint32_t n,
                    struct fab_err *err);
void publisher_unchecked(struct publisher *publisher);
/* List the ports at both ends of changed links; none if there are more than PUBLISH_PORTS_MAX. */
void publisher_changed_ports(const struct publisher *publisher, const struct fab_diff *diff,
                             struct publish_ports *out);

/* ---- sweep_judgement.c: processing of a sweep ---- */

struct swept_fabric {
    struct publisher *publisher;
    struct fab_inventory inv;
    struct guids elsewhere;        /* its nodes that had a name at another place, and do not report it */
    int64_t seen;                  /* time of the sweep */
    struct comparison *comparison; /* a comparison without publication; else NULL */
};
void swept_fabric_destroy(struct swept_fabric *sweep);

/*
 * Name the sweep's inventory and reject a partial one. Handle flapping cables as down, and keep the places of
 * missing devices. If the operator accepts the sweep as it is, a partial sweep is not rejected, suppressed
 * objects are released, and no place is kept. *diff: the changes against the published state, with
 * conclusions.
 */
int sweep_take(struct swept_fabric *sweep, const struct publish_request *input, struct sweep_findings *report,
               struct fab_diff *diff, struct fab_err *err);
int sweep_diff(const struct swept_fabric *sweep, bool unmanaged, struct fab_diff *diff, struct fab_err *err);
/* Keep the description of a node that gave none this time (the answer was lost): it is not renamed. */
int sweep_fill_gaps(const struct publisher *publisher, struct fab_inventory *inv);
/*
 * Find out whether an inventory (named) may replace the published one, and its further results. A partial
 * inventory may not replace it. An inventory without any cable may not either. In that case the cable of the
 * sweeping host is out, and the host sees only itself, without a sign that anything is missing.
 */
int sweep_judge(const struct publisher *publisher, const struct fab_inventory *inv, bool accept_partial,
                struct sweep_findings *report, struct fab_err *err);
/* ---- flapping.c ---- */

int flapping_init(struct publisher *publisher, struct fab_err *err);
/* Count the differences from the last sweep. PMIXFAB_ERR_NOMEM. */
int flapping_count(const struct swept_fabric *sweep);
/* Return whether the cable in this port is suppressed. As fab_cut_fn. */
bool flapping_is_cut(const struct fab_inventory *inv, uint32_t port, void *damping);
/*
 * Note the HCAs that several hosts claim in the published state: takes the list. No host gets an HCA with
 * flapping claims until they have been quiet.
 */
int claims_init(struct publisher *publisher, struct fab_err *err);
void claims_accept(struct publisher *publisher, struct guids *contested);
/* Release the objects that are due. True: at least one was released, so a sweep is needed. */
bool publisher_release(struct publisher *publisher);

/* ---- retention.c ---- */

/*
 * Make the list of missing objects of an inventory. Entries of `before` continue; if they are of another
 * boot, they begin now. New entries begin now, and were last seen at `seen`. *out is initialised here.
 * PMIXFAB_ERR_NOMEM.
 */
int retained_follow(const struct retained *before, const struct fab_inventory *inv, const struct moment *now,
                    int64_t seen, struct retained *out);
/* Return the microseconds until the first port is due, at least 0; -1: no port is missing. */
int64_t retained_next(const struct retained *missing, unsigned retire, const struct moment *now);

/* Load from the store, after the inventory. */
int retention_load(struct publisher *publisher, struct fab_err *err);
/* Keep the places of missing devices: makes the inventory again, with names. */
int sweep_retain(struct swept_fabric *sweep, struct fab_err *err);
/* Without a sweep, make the published inventory without devices that an operator has forgotten and, if `due`,
 * without those missing for too long. *any: something has to be retired. */
int retention_retire(struct swept_fabric *sweep, bool due, bool *any, struct fab_err *err);
/* Set when missing objects were last seen. */
void retention_correct_seen(const struct publisher *publisher, struct fab_diff *diff);
/*
 * Compute the absent objects after this generation (0: no generation, and lost objects stay). Call the
 * second function when they are in the store, with the lost objects.
 */
int retention_plan(const struct publisher *publisher, const struct fab_inventory *after,
                   const struct fab_diff *diff, uint64_t generation, struct absent *out, struct fab_err *err);
void retention_accept(struct publisher *publisher, struct absent *planned, bool lost);

/* ---- reports_join.c ---- */

/* Reports that are about to be published: the new ones, and the next list of all. */
struct announced {
    struct store_report *rows; /* for the store; they borrow their names */
    uint32_t n;
    struct published_reports next;
};
void announced_free(struct announced *announced);

int reports_load(struct publisher *publisher, struct fab_err *err); /* loads the list from the store */
/* Find the new reports, and append their changes to the diff. *announced is initialised here, also on error.
 */
int reports_announce(struct publisher *publisher, const struct publish_request *input, struct fab_diff *diff,
                     struct announced *announced, struct fab_err *err);
void reports_accept(struct publisher *publisher, struct announced *announced); /* they are in the store */
/*
 * Join the swept inventory (finished and named) with the reports. Remarks that the last join did not make are
 * logged. A node in `elsewhere` (NULL: none), now or when the report was already published, is not assigned
 * to a host by that report.
 */
int reports_join(struct publisher *publisher, const struct fab_inventory *swept,
                 const struct guids *elsewhere, const struct node_report *const *reports, uint32_t n,
                 struct fab_joined *out, struct fab_err *err);

/*
 * Devices by facts that are weak alone: a MAC, or a system image GUID with a node GUID. They are collected
 * at the first query, since a report may claim thousands.
 */
struct prior_owner_table {
    struct prior_owner_entry {
        uint64_t value, node; /* node: 0 for a MAC */
        const char *host;
        uint32_t place; /* the first of equals counts */
    } * entries;
    uint32_t n;
    bool collected;
};
/* The owners of GUIDs and MACs in the served state, for a join with several claims. References the served set
 * until it is closed. One thread. */
struct prior_owner {
    struct served_set *served;
    struct prior_owner_table macs, ids;
};
void prior_owner_open(struct prior_owner *prior, struct served *served);
void prior_owner_close(struct prior_owner *prior);
/* A function of struct fab_prior_owners; cbdata: the prior. NULL also without memory. */
const char *prior_owner_of(void *cbdata, enum fab_fact kind, uint64_t value, uint64_t node);

/* ---- compute.c ---- */

/* The configured planes of network interfaces, for the join. */
struct ethernet_planes {
    struct fab_ethernet_plane planes[CONFIG_MAX_LIST]; /* point into names and into the configuration */
    char names[CONFIG_MAX_LIST][64];
    uint32_t n;
};
void ethernet_planes(const struct config *config, struct ethernet_planes *out);

/* A built snapshot; its generation and time are still zero. */
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
 * Compute all planes and their numbers. An InfiniBand plane gets the number of the known plane with most
 * common ports and switches. Active planes go before retired ones. Without a common member, the plane gets a
 * new number. Ethernet planes and the unattached plane have configured names, and the number of the known
 * plane of that name. The same holds for the topologies of a file. The default plane is the configured plane,
 * else the default of the file, else the present default. Otherwise it is the plane with most devices, but
 * not the unattached plane.
 */
int compute_planes(const struct fab_joined *joined, const struct config *config,
                   const struct store_plane *known, uint32_t n_known, struct built *out, struct fab_err *err);

#endif
