/*
 * check.h - what looks wrong in a fabric as it stands, whether or not anything changed.
 *
 * Nothing here knows how the fabric was meant to be. Most findings are about one of many: what has less than
 * more than half of its peers have, where there are at least three of them. So where a fault is everywhere,
 * or half of a fabric was built otherwise, nothing is found. What a whole kind of hosts or switches has less
 * of than the others is one notice.
 */
#ifndef FAB_TOPO_CHANGES_CHECK_H
#define FAB_TOPO_CHANGES_CHECK_H

#include "topo/changes/lost_list.h"
#include "topo/join/join.h"
#include "topo/model/inventory.h"

/*
 * To add a kind: its line here (graver ones first), its row in the table of finding_list.c (name, severity,
 * what to do) and in fabricctl(1), FINDINGS; one of severity error also in docs/operations.md, "What wakes
 * you" (a test compares them). Then whoever knows of it finds it:
 * - what the inventory and its facts say, a check_*.c of this room, by check_add(), called in fab_check();
 * - what the daemon knows otherwise, a function of fabricd/engine/scheduler_findings.c.
 * All else (since when, how often, acknowledged, metrics, log, hook) follows by its identity, see fab_about.
 */
enum fab_check_kind {
    FAB_CHECK_STALE = 1,    /* the last sweep was not good: all that follows may be past (fab_findings_add) */
    FAB_CHECK_NO_CABLE,     /* the sweep sees nodes and not one cable (engine/scheduler_findings.c) */
    FAB_CHECK_PARTIAL,      /* a port because of which it was not (fab_findings_add) */
    FAB_CHECK_HISTORY_GONE, /* generations that were published are not in the store (engine/publisher.c)
                             */
    FAB_CHECK_HISTORY_CHANGED, /* the store's history is not as it was published (jobs/history_trim.h)
                                */
    FAB_CHECK_LOST,            /* an HCA, switch or port that was seen once, and its place is given up */
    FAB_CHECK_MISSING,         /* an HCA, switch or port that no sweep sees; its place is kept (retain.h) */
    FAB_CHECK_FLAPPING,        /* a cable or switch that came and went too often (fab_findings_add) */
    FAB_CHECK_DUPLICATE_NAME,  /* HCAs of one host that are called the same */
    FAB_CHECK_CLAIMED_TWICE,   /* an HCA or interface that two hosts report as theirs */
    FAB_CHECK_NO_MANAGER,      /* most cabled ports are not active */
    FAB_CHECK_MANAGER_GONE,    /* the subnet manager does not answer (engine/noticing.c) */
    FAB_CHECK_INACTIVE_LONG,   /* a cable that is INACTIVE for [check] inactive_seconds (engine) */
    FAB_CHECK_PORT_DOWN,       /* a cable with a port that is down */
    FAB_CHECK_MANAGER_CHANGED, /* another one answers than usually (likewise) */
    FAB_CHECK_PMIX_REPLACED,   /* the process that hosts the PMIx server was lost (fab_findings_add) */
    FAB_CHECK_PORT_DISABLED,   /* a switch's port that somebody switched off, and something was behind it */
    FAB_CHECK_COUNTERS,        /* error counters of a port grow (engine/counter_rounds.c) */
    FAB_CHECK_LINK_LOST,       /* a cable between switches that are there was seen once */
    FAB_CHECK_INACTIVE,        /* a cable with a port that is INIT or ARMED */
    FAB_CHECK_NAME_MAP,        /* the configured map or pattern cannot be read; the former one goes on */
    FAB_CHECK_METRICS,         /* [metrics] file or listen does not work (scheduler_findings.c) */
    FAB_CHECK_OLD_CAPTURE,     /* the file that is the fabric is older than [check] capture_seconds */
    FAB_CHECK_SLOW_LINK,       /* below what its like have: links of the same models in its plane */
    FAB_CHECK_WRONG_RAIL,      /* a device on another leaf than those of its name in its unit */
    FAB_CHECK_FEW_UPLINKS,     /* a switch with fewer cables up, or to one switch above, than its peers */
    FAB_CHECK_FEW_PORTS,       /* a host with fewer cabled ports than those whose names are alike */
    FAB_CHECK_MANY_PORTS,      /* or more: two hosts of one name? */
    FAB_CHECK_CONFUSING_NAME,  /* a host that is called by an address, or as another one but for case, or so
                                  that no workload manager can */
    FAB_CHECK_SAME_NAME,       /* a host that is called as a switch or a plane */
    FAB_CHECK_SELF_CABLE,      /* a switch with a cable to itself */
    FAB_CHECK_NOWHERE,         /* a port that is up and leads nowhere */
    FAB_CHECK_NOT_SWEPT,       /* a port that is up by its host's word, and no sweep sees */
    FAB_CHECK_CONFLICT,        /* sources contradict each other about a port's state or speed */
    FAB_CHECK_SLOW_SLOT,       /* a PCI slot that is slower than the card's link */
    FAB_CHECK_NOT_REPORTED,    /* a device of a host that reports, but not about it */
    FAB_CHECK_FIRMWARE,        /* another than most devices of the same part have */
    FAB_CHECK_UNNAMED,         /* an HCA that goes by its GUID or is called localhost; switches of one name */
    FAB_CHECK_OTHER_KIND, /* a kind of hosts or switches, all of which have slower links or other numbers of
                             ports than most */
    FAB_CHECK_DISABLED_PORTS, /* of a switch: ports that are switched off, and nothing is known behind them */
    FAB_CHECK_KINDS           /* one more than the last */
};

enum fab_severity {
    FAB_SEVERITY_NOTICE = 1, /* worth knowing */
    FAB_SEVERITY_WARNING,    /* slower or less than it could be */
    FAB_SEVERITY_ERROR       /* something does not work, or is taken for something else */
};

/*
 * What a finding is about, however that is called today. Two findings of one kind that are about the same are
 * one finding; so a kind that can be found twice about one thing says in `text` which of them it is.
 */
struct fab_about_end {
    uint64_t guid; /* of a node; 0: none */
    uint32_t port; /* of it; 0: the node as a whole */
};
struct fab_about {
    struct fab_about_end end[2]; /* of a cable both, in any order */
    const char *text;            /* the name of what has no GUID; beside a GUID, what of it. NULL: nothing */
    uint64_t state; /* how bad it is. No part of the identity; another number undoes an acknowledgement */
};
struct fab_about fab_about_node(const struct fab_node *node);
struct fab_about fab_about_port(const struct fab_inventory *inv, const struct fab_port *port);
/* By either of its ports. */
struct fab_about fab_about_cable(const struct fab_inventory *inv, const struct fab_port *port);
struct fab_about fab_about_text(const char *text);

/* Texts are clean: UTF-8, no control characters, one line. */
struct fab_finding {
    enum fab_check_kind kind;
    uint64_t id; /* its identity, the same in another process and after a year; never 0 */
    uint64_t state;
    struct fab_about_end end[2]; /* as in its struct fab_about */
    double share;                /* of what is lost: how much of its plane's bisection went with it, 0 to 1 */
    double all;                  /* and how much is gone there with all that is lost */
    uint64_t cause; /* the id of the finding that this one hangs on (fab_check_causes); 0: none */
    /* What hangs on this one: switches, whole hosts, HCAs of hosts that have others; and of an HCA that is
     * gone with its whole host, the other HCAs of that host. */
    uint32_t switches, hosts, hcas, hcas_of_host;
    char *where; /* "leaf1[8] - node001 HCA-1[1]", "node001", "leaf1": as in a change (diff.h) */
    char *what;  /* in the same piece of memory */
};

struct fab_findings {
    struct fab_finding *findings; /* by severity, gravest first, then kind, then natural order of where */
    uint32_t n, cap;
};

/* "missing", "slow-link", ..., "unknown"; what to do about it; how grave it is ("error", "warning",
 * "notice").
 */
const char *fab_check_name(enum fab_check_kind kind);
const char *fab_check_hint(enum fab_check_kind kind);
enum fab_severity fab_check_severity(enum fab_check_kind kind);
const char *fab_severity_name(enum fab_severity severity);

/*
 * inv: finished and named, what is served. details: of the same inventory (fab_join), or NULL: then what only
 * hosts know is not looked at. lost: what fab_check_lost() tells, so that it is not told once more of its
 * neighbours, as too few uplinks or as disabled ports; NULL: nothing. Pure, any thread; the order is total.
 * *out is initialised here, and empty on error: PMIXFAB_ERR_NOMEM, _INVAL (not finished, details of another
 * inventory).
 */
int fab_check(const struct fab_inventory *inv, const struct fab_details *details, const struct fab_lost *lost,
              struct fab_findings *out);

/*
 * What is lost, and not forgotten by the operator, is appended to *out, out of order. Its share of the
 * plane's bisection: a switch's level is how far it is from a host. Of the Gb/s of all cables between the
 * same two levels of a plane (or within one level, as in a torus), those that are there and those that are
 * lost, it is the part that went with the lost thing; where its cables are between several levels, the
 * largest of these parts. A cable of unknown rate counts as the fastest. A cable in whose place there is
 * another one is not lost. PMIXFAB_ERR_NOMEM.
 */
int fab_check_lost(const struct fab_inventory *inv, const struct fab_lost *lost, struct fab_findings *out);
/* Append what is to be told where a host is called as this plane, out of order. PMIXFAB_ERR_NOMEM. */
int fab_check_plane_name(const struct fab_inventory *inv, const char *plane, struct fab_findings *out);
/* What is told of one of them; 0: nothing. */
enum fab_check_kind fab_lost_is_about(const struct fab_inventory *inv, const struct fab_lost *lost,
                                      const struct fab_lost_item *item, struct fab_about *about);

/* A lost cable that nobody has forgotten, whose place is free, and whose ends are there or lost, too. */
bool fab_lost_is_waited_for(const struct fab_inventory *inv, const struct fab_lost *lost,
                            const struct fab_lost_item *cable);

/*
 * Set what each finding hangs on: what is missing or lost behind a missing or lost switch, behind a flapping
 * cable or switch or a port that is switched off, and all HCAs but one of a host that is gone. A cause never
 * hangs on another one. served: of fab_check() and fab_check_lost(), with the same inv and lost; flapping:
 * the findings of FAB_CHECK_FLAPPING. PMIXFAB_ERR_NOMEM: nothing hangs on anything.
 */
int fab_check_causes(const struct fab_inventory *inv, const struct fab_lost *lost,
                     struct fab_findings *served, struct fab_findings *flapping);

uint64_t fab_finding_id(enum fab_check_kind kind, const struct fab_about *about);
/* As people write it: 16 digits, or so many of the first of them that it is clear, at least
 * FAB_FINDING_DIGITS. */
#define FAB_FINDING_ID_TEXT 17
#define FAB_FINDING_DIGITS  4
void fab_finding_id_text(uint64_t id, char text[FAB_FINDING_ID_TEXT]);
bool fab_finding_id_matches(const char text[FAB_FINDING_ID_TEXT], const char *digits);

/* What is known elsewhere: add each behind the others, then sort once, since there may be thousands. The
 * texts are cleaned and copied. PMIXFAB_ERR_NOMEM: the list is as it was. */
int fab_findings_add(struct fab_findings *findings, enum fab_check_kind kind, struct fab_about about,
                     const char *where, const char *what);
void fab_findings_sort(struct fab_findings *findings);
void fab_findings_destroy(struct fab_findings *findings);

#endif
