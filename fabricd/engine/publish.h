/*
 * publish.h - publication of a sweep's inventory and the hosts' reports: compare, join, compute, store, put
 * in place.
 *
 * In two steps, with the events around the second: prepare (all that can fail) and finish (rename and swap).
 */
#ifndef FABRICD_ENGINE_PUBLISH_H
#define FABRICD_ENGINE_PUBLISH_H

#include "fabricd/base/counts.h"
#include "fabricd/config/config.h"
#include "fabricd/serving/plane_ref.h"
#include "fabricd/serving/served.h"
#include "fabricd/sources/host_reports.h"
#include "fabricd/store/store_tables.h"
#include "topo/changes/check.h"
#include "topo/model/host_name.h"
#include "topo/model/inventory_text.h"

struct publisher;
struct fab_names;

/*
 * Open the store, write its last published state into the run directory, and serve it. Snapshots of an old
 * format that cannot be read are skipped; the next sweep makes new ones. counts: of published changes.
 */
int publisher_new(const struct config *config, struct counts *counts, struct publisher **out,
                  struct fab_err *err);
void publisher_free(struct publisher *publisher); /* NULL allowed */

/* Apply changed settings of damping. (All other settings are read when they are used.) */
void publisher_reconfigured(struct publisher *publisher);

/* Create the configured names; free with fab_names_free(). */
int publisher_names(const struct config *config, struct fab_names **out, struct fab_err *err);

/* Ports of nodes, by GUID and number. */
struct publish_port {
    uint64_t guid;
    uint32_t num;
};
struct publish_ports {
    struct publish_port *ports;
    uint32_t n, cap;
};
#define PUBLISH_PORTS_MAX 1024                       /* limit of a list of changed ports */
void publish_ports_free(struct publish_ports *list); /* leaves it empty */

/* A change that is stored and ready to be served. */
struct publication {
    uint64_t generation;
    struct publish_ports changed; /* at both ends of changed links, unless there are too many */
    struct event_plane *planes;   /* planes that changed, came or went */
    uint32_t n;
    struct served_set *set; /* to be served */
};

/* A port that is up and leads nowhere: "leaf1[8]", and its former neighbour, or "". Clean; long names are
 * truncated. */
#define PUBLISH_NAMED 8
struct publish_nowhere {
    char port[96], was[96];
};

/* Results of a sweep beside a change. */
struct sweep_findings {
    uint32_t dangling; /* ports that are up and lead nowhere, and did not so before */
    struct publish_nowhere named[PUBLISH_NAMED]; /* the first of them */
    uint32_t nowhere;                            /* all ports that are up and lead nowhere */
    uint32_t unnamed;                            /* HCAs that no pattern names */
    uint32_t inactive;                           /* cabled ports that no subnet manager has activated */
};

/* The input of a publication. */
struct publish_request {
    struct fab_inventory *inv; /* of a sweep: finished, without names; it is emptied */
    bool accept_partial;       /* take the sweep as the whole fabric, and keep no missing device */
    bool retire;    /* inv NULL, and the last sweep succeeded: retire devices that are missing for too long */
    bool unmanaged; /* no subnet manager answers: new links stay inactive */
    int64_t swept;  /* time of the sweep of inv, microseconds since 1970; 0: now */
    int64_t seen;   /* when its first change was noticed; 0: by the sweep */
    const struct node_report *const *reports; /* by host */
    uint32_t n_reports;
};

/*
 * Prepare a publication. inv NULL: the fabric is that of the last sweep, and *report is not set. *out is NULL
 * if the served state does not change. After a sweep, free memory is returned to the system; after reports
 * alone the caller does that when it has time. PMIXFAB_ERR_PARTIAL: a partial sweep that would shrink the
 * served state, without accept_partial. On error nothing has changed.
 */
int publish_prepare(struct publisher *publisher, const struct publish_request *input,
                    struct publication **out, struct sweep_findings *report, struct fab_err *err);

/* Return whether reports can be published without a sweep: there was a sweep to join them with, or none is
 * configured. */
bool publish_can_without_sweep(const struct publisher *publisher);

/* Put the publication in place: rename files, swap the set (publication->set is NULL then). */
void publish_finish(struct publisher *publisher, struct publication *publication);
void publication_free(struct publication *publication); /* NULL allowed */

/* Find the host of the sweep that a name refers to, with or without a domain. */
struct fab_host_choice publisher_choose_host(const struct publisher *publisher, const char *name);

/* Results of the join for a host that reports. False: it was not joined yet. */
struct joined_host {
    char *name;
    uint32_t devices; /* devices in its report */
    uint32_t unseen;  /* those that the sweep does not see */
};
bool publisher_joined(const struct publisher *publisher, const char *host, struct joined_host *out);

/* Return remarks on a host's report, one by one. *from is 0 at first and is advanced. NULL: no more. */
const char *publisher_remark(const struct publisher *publisher, const char *host, uint32_t *from);

/*
 * Compare a sweep with the served state as a publication would, without publishing. Its inv is finished and
 * without names, and is emptied. *diff is initialised here. It gets the changes that would be published. It
 * also gets the objects that are served as missing, suppressed, or under a name that the sweep does not have.
 * Empty: the served state equals the sweep. PMIXFAB_ERR_PARTIAL as above.
 */
int publish_verify(struct publisher *publisher, const struct publish_request *input, struct fab_diff *diff,
                   struct fab_err *err);

/* Return the lost objects (topo/changes/lost_list.h). Valid until the next publication. */
const struct fab_lost *publisher_lost(const struct publisher *publisher);

/* Return the swept inventory, as it is served. Valid until the next publication. */
const struct fab_inventory *publisher_inventory(const struct publisher *publisher);

/* Return whether the served fabric has nodes, but not one cable. */
bool publisher_sees_no_cable(const struct publisher *publisher);

uint64_t publisher_generation(const struct publisher *publisher); /* the newest, 0: none yet */

/* Return whether the swept inventory has this switch or host (hosts: or a report has). A switch also by its
 * GUID, "0x" and 16 digits. */
bool publisher_has_switch(const struct publisher *publisher, const char *name);
/* Return the switches of this name one by one: *at is 0 at first. False: no more. */
bool publisher_next_switch(const struct publisher *publisher, const char *name, uint32_t *at, uint64_t *guid);
bool publisher_has_host(const struct publisher *publisher, const char *name);
/*
 * List the cabled ports of the switch of this name or GUID. For a host, also list the ports at the other
 * ends. Free the list with publish_ports_free(). PMIXFAB_ERR_NOMEM.
 */
int publisher_ports_of(const struct publisher *publisher, const char *name, struct publish_ports *out);
/*
 * List the first n cabled ports after *at, by GUID and number. If fewer are returned, there are no more. Free
 * the list with publish_ports_free(). PMIXFAB_ERR_NOMEM.
 */
int publisher_ports_behind(const struct publisher *publisher, const struct publish_port *at, uint32_t n,
                           struct publish_ports *out);
uint32_t publisher_count_ports(const struct publisher *publisher); /* cabled ones */
/* Return the names of a port and of its neighbour ("": none), as served. False: no such port. */
bool publisher_port_texts(const struct publisher *publisher, uint64_t guid, uint32_t num,
                          char port[FAB_PORT_TEXT], char peer[FAB_PORT_TEXT]);
/* Return the name of the port with this GUID, as served; for a switch's own port, the switch. False: no such
 * port. */
bool publisher_port_text(const struct publisher *publisher, uint64_t guid, char text[FAB_PORT_TEXT]);

/*
 * Swaps that an operator announced: changes of that host or switch meanwhile are marked as planned. They are
 * in the store, so they survive a restart. One thread at a time.
 */
#define PLANNED_SECONDS  (4 * 3600)       /* the default */
#define PLANNED_MAX_TIME (30 * 24 * 3600) /* seconds */
#define PLANNED_MAX      1024             /* at a time */

struct planned;
struct planned *publisher_planned(const struct publisher *publisher);

/* Load the announced swaps. The store outlives the handle. */
int planned_new(struct store *store, struct planned **out, struct fab_err *err);
void planned_free(struct planned *planned); /* NULL allowed */

/* Announce a swap from now on; a second call replaces the first. PMIXFAB_ERR_RANGE: too many, too long. */
int planned_add(struct planned *planned, const char *name, int64_t now, unsigned seconds, unsigned uid,
                struct fab_err *err);
/* Cancel an announced swap. PMIXFAB_ERR_NOTFOUND: it is not announced. */
int planned_cancel(struct planned *planned, const char *name, int64_t now, struct fab_err *err);

/* Return the swaps in force, by name; removes those that are over. Valid until the next call. */
const struct store_planned *planned_all(struct planned *planned, int64_t now, uint32_t *n);

/* Mark the changes of a host (with or without its domain) or switch whose swap is announced. */
void planned_mark(struct planned *planned, struct fab_diff *diff, int64_t now);

/*
 * Retire the missing devices of a host, or the missing devices at a missing switch together with the switch.
 * This happens at the next publish_prepare(), with or without a sweep. name: the whole name. Returns the
 * number of HCAs. *there: the last sweep saw an HCA of a host of this name.
 */
uint32_t publisher_forget(struct publisher *publisher, const char *name, bool *there);

/* Forget lost objects: of a host or switch by name or node GUID ("0x" and 16 digits), or of a finding by its
 * id. *n: number of nodes and cables. */
int publisher_forget_lost(struct publisher *publisher, const char *name, uint32_t *n, struct fab_err *err);

/* Pending changes by time. */
struct publisher_waits {
    int64_t retire;   /* microseconds until the next retirement; -1: none */
    int64_t release;  /* microseconds until the next release; -1: nothing is suppressed */
    uint32_t missing; /* HCAs, wholly or in part */
    uint32_t suppressed, suppressed_switches; /* cables; and switches, with all of theirs */
};
void publisher_waits(const struct publisher *publisher, struct publisher_waits *out);

/* Release the suppressed objects of a host or switch now (a name, or a GUID as above), NULL: all. Returns
 * their number. */
uint32_t publisher_release_now(struct publisher *publisher, const char *name);

/* Generations that were published and are not in the store, by number. */
struct store_gone;
const struct store_gone *publisher_gone(const struct publisher *publisher, uint32_t *n);
struct store *publisher_store(struct publisher *publisher);

/* Return the handle of the served set. */
struct served *publisher_served(const struct publisher *publisher);
/* Repair the files of the run directory that differ from the served set. Returns the number of planes
 * repaired. */
uint32_t publisher_mend(struct publisher *publisher);

#endif
