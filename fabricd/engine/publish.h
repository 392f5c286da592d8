/*
 * publish.h - from a sweep's inventory and the hosts' reports to what is served: compare, join, compute,
 * store, put in place.
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
 * Open the store and bring what it published last into the run directory and into service. Snapshots of a
 * format that is no longer read are left out; the next sweep makes new ones. counts: of published changes.
 */
int publisher_new(const struct config *config, struct counts *counts, struct publisher **out,
                  struct fab_err *err);
void publisher_free(struct publisher *publisher); /* NULL allowed */

/* Settings have changed: those of damping hold from now on. (All others are looked at when they are needed.)
 */
void publisher_reconfigured(struct publisher *publisher);

/* Pattern and map as configured; free with fab_names_free(). */
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
#define PUBLISH_PORTS_MAX 1024                       /* in a list of those that changed */
void publish_ports_free(struct publish_ports *list); /* leaves it empty */

/* A change that is stored and ready to be served. */
struct publication {
    uint64_t generation;
    struct publish_ports changed; /* at both ends of links that are not what they were; not of too many */
    struct event_plane *planes;   /* that changed, came or went */
    uint32_t n;
    struct served_set *set; /* to be served */
};

/* A port that is up and leads nowhere: "leaf1[8]", and what was at its other end, or "". Clean; long names
 * are cut. */
#define PUBLISH_NAMED 8
struct publish_nowhere {
    char port[96], was[96];
};

/* What a sweep found out beside a change. */
struct sweep_findings {
    uint32_t dangling; /* ports that are up and lead nowhere, and did not so before */
    struct publish_nowhere named[PUBLISH_NAMED]; /* the first of them */
    uint32_t nowhere;                            /* all ports that are up and lead nowhere */
    uint32_t unnamed;                            /* HCAs that no pattern names */
    uint32_t inactive;                           /* cabled ports that no subnet manager has made active */
};

/* What is to be published. */
struct publish_request {
    struct fab_inventory *inv; /* of a sweep: finished, not yet named; it is emptied */
    bool accept_partial;       /* take the sweep as it is: nothing that is missing in it is kept */
    bool retire;    /* inv NULL, and the last sweep was good: retire what has been missing for too long */
    bool unmanaged; /* no subnet manager answers: what comes up stays inactive */
    int64_t swept;  /* when inv was, microseconds since 1970; 0: just now */
    int64_t seen;   /* when the first of what is new in it was noticed; 0: by the sweep */
    const struct node_report *const *reports; /* by host */
    uint32_t n_reports;
};

/*
 * Where inv is NULL the fabric is what was swept last; *report is not touched then. *out is NULL where
 * nothing that is served changes. Memory is given back to the system after a sweep; after reports alone the
 * caller does that, when it has time. PMIXFAB_ERR_PARTIAL: a partial answer that would shrink what is served,
 * and accept_partial was not given. On error nothing has changed.
 */
int publish_prepare(struct publisher *publisher, const struct publish_request *input,
                    struct publication **out, struct sweep_findings *report, struct fab_err *err);

/* Can reports be published without a sweep: is there one whose fabric they can be joined with, or is none
 * wanted? */
bool publish_can_without_sweep(const struct publisher *publisher);

/* Put it in place: files renamed, set swapped (publication->set is NULL then). */
void publish_finish(struct publisher *publisher, struct publication *publication);
void publication_free(struct publication *publication); /* NULL allowed */

/* Which of the hosts that were swept is meant by a name that may have a domain or not. */
struct fab_host_choice publisher_choose_host(const struct publisher *publisher, const char *name);

/* What joining found out of a host that reports. False: it was not joined yet. */
struct joined_host {
    char *name;
    uint32_t devices; /* that its report tells of */
    uint32_t unseen;  /* of them, that the sweep does not see */
};
bool publisher_joined(const struct publisher *publisher, const char *host, struct joined_host *out);

/* Remarks on what a host reports, from the one of number *from (begin with 0), which moves on. NULL: no more.
 */
const char *publisher_remark(const struct publisher *publisher, const char *host, uint32_t *from);

/*
 * Compare a sweep (its inv finished and not yet named; it is emptied) with what is served, as publishing it
 * would, and publish nothing. *diff is initialised here: what would be told of it, and what is served
 * otherwise than the sweep sees it without being told again: what is missing, suppressed, or called as it
 * does not say. Empty: what is served is what the sweep sees. PMIXFAB_ERR_PARTIAL as above.
 */
int publish_verify(struct publisher *publisher, const struct publish_request *input, struct fab_diff *diff,
                   struct fab_err *err);

/* What is lost (topo/changes/lost_list.h). Valid until something is published. */
const struct fab_lost *publisher_lost(const struct publisher *publisher);

/* What was swept, as it is served. Valid until something is published. */
const struct fab_inventory *publisher_inventory(const struct publisher *publisher);

/* Has the fabric that is served nodes, and not one cable? */
bool publisher_sees_no_cable(const struct publisher *publisher);

uint64_t publisher_generation(const struct publisher *publisher); /* the newest, 0: none yet */

/* Is there such a one in what was swept (of hosts: or among those that report)? A switch also by its GUID,
 * "0x" and 16 digits. */
bool publisher_has_switch(const struct publisher *publisher, const char *name);
/* Those of this name, one after the other: *at begins with 0. False: there is no more. */
bool publisher_next_switch(const struct publisher *publisher, const char *name, uint32_t *at, uint64_t *guid);
bool publisher_has_host(const struct publisher *publisher, const char *name);
/* Cabled ports: of the switch of this name or GUID; of a host, with those at the other ends. Free them.
 * PMIXFAB_ERR_NOMEM. */
int publisher_ports_of(const struct publisher *publisher, const char *name, struct publish_ports *out);
/* The first n cabled ports behind *at, by GUID and number; fewer: there are no more. Free them.
 * PMIXFAB_ERR_NOMEM. */
int publisher_ports_behind(const struct publisher *publisher, const struct publish_port *at, uint32_t n,
                           struct publish_ports *out);
uint32_t publisher_count_ports(const struct publisher *publisher); /* that are cabled */
/* A port and what its cable leads to ("": nothing), as they are served. False: there is no such port. */
bool publisher_port_texts(const struct publisher *publisher, uint64_t guid, uint32_t num,
                          char port[FAB_PORT_TEXT], char peer[FAB_PORT_TEXT]);
/* The port with this GUID, as it is served; of a switch's own port, the switch. False: there is none. */
bool publisher_port_text(const struct publisher *publisher, uint64_t guid, char text[FAB_PORT_TEXT]);

/*
 * Swaps that an operator announced: what changes of that host or switch meanwhile was planned. They stand in
 * the store, and are known again after a restart. One thread at a time.
 */
#define PLANNED_SECONDS  (4 * 3600)       /* unless it is said otherwise */
#define PLANNED_MAX_TIME (30 * 24 * 3600) /* seconds */
#define PLANNED_MAX      1024             /* at a time */

struct planned;
struct planned *publisher_planned(const struct publisher *publisher);

/* The store outlives it. */
int planned_new(struct store *store, struct planned **out, struct fab_err *err);
void planned_free(struct planned *planned); /* NULL allowed */

/* Announce, from now on; a second time replaces the first. PMIXFAB_ERR_RANGE: too many, too long. */
int planned_add(struct planned *planned, const char *name, int64_t now, unsigned seconds, unsigned uid,
                struct fab_err *err);
/* PMIXFAB_ERR_NOTFOUND: it is not planned. */
int planned_cancel(struct planned *planned, const char *name, int64_t now, struct fab_err *err);

/* Those that are in force now, by name; what is over goes. Valid until the next call. */
const struct store_planned *planned_all(struct planned *planned, int64_t now, uint32_t *n);

/* Mark the changes that are about a planned host (with or without its domain) or switch. */
void planned_mark(struct planned *planned, struct fab_diff *diff, int64_t now);

/*
 * Retire what is missing of a host, or at a missing switch (and the switch with it), at the next
 * publish_prepare() (without a sweep will do). name: its whole name. Returns of how many HCAs that is;
 * *there: the last sweep saw one of a host of this name.
 */
uint32_t publisher_forget(struct publisher *publisher, const char *name, bool *there);

/* No more wait for what is lost and called so: a host or switch by name, either by its node GUID ("0x" and 16
 * digits), or a finding of theirs by its id. *n: of how many nodes and cables that is. */
int publisher_forget_lost(struct publisher *publisher, const char *name, uint32_t *n, struct fab_err *err);

/* What time will bring. */
struct publisher_waits {
    int64_t retire;   /* in so many microseconds something is to be retired; -1: nothing is */
    int64_t release;  /* in so many something that is suppressed is released; -1: nothing is suppressed */
    uint32_t missing; /* HCAs, wholly or in part */
    uint32_t suppressed, suppressed_switches; /* cables; and switches, with all of theirs */
};
void publisher_waits(const struct publisher *publisher, struct publisher_waits *out);

/* Release now what is suppressed of a host or switch (a name, or a GUID as above), NULL: all. Returns how
 * many. */
uint32_t publisher_release_now(struct publisher *publisher, const char *name);

/* Generations that were given out and are not in the store, by number. */
struct store_gone;
const struct store_gone *publisher_gone(const struct publisher *publisher, uint32_t *n);
struct store *publisher_store(struct publisher *publisher);

/* What it serves. */
struct served *publisher_served(const struct publisher *publisher);
/* Put right what is not in the run directory as it is served. Returns of how many planes that was so. */
uint32_t publisher_mend(struct publisher *publisher);

#endif
