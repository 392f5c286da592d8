/*
 * check.h - find faults in a fabric, whether or not anything changed.
 *
 * The checks have no plan of the fabric. Most findings compare a thing with its peers: it has less
 * than more than half of them, and there are at least three. If a fault is everywhere, or half of a fabric
 * was built differently, nothing is found. A shortage that a whole kind of hosts or switches shares is one
 * notice.
 */
#ifndef FAB_TOPO_CHANGES_CHECK_H
#define FAB_TOPO_CHANGES_CHECK_H

#include "topo/changes/lost_list.h"
#include "topo/join/join.h"
#include "topo/model/inventory.h"

/*
 * To add a kind, add these:
 * - its line here, graver kinds first
 * - its row in the table of finding_list.c: name, severity, advice
 * - its text in fabricctl(1), FINDINGS
 * - for severity error, its text in docs/operations.md, "What wakes you".
 *
 * Tests compare both documents with the table.
 *
 * Then add the code that finds it:
 * - If it follows from the inventory and its facts, write a check_*.c of this room. It uses check_add() and
 *   is called in fab_check().
 * - If it follows from other data of the daemon, write a function in fabricd/engine/scheduler_findings.c.
 *
 * All other code (since when, how often, acknowledged, metrics, log, hook) needs only the identity of the
 * finding, see fab_about.
 */
enum fab_check_kind {
    FAB_CHECK_STALE = 1,    /* the last sweep failed: all other findings may be outdated (fab_findings_add) */
    FAB_CHECK_NO_CABLE,     /* the sweep sees nodes but no cable (engine/scheduler_findings.c) */
    FAB_CHECK_PARTIAL,      /* a port that made the sweep partial (fab_findings_add) */
    FAB_CHECK_HISTORY_GONE, /* published generations are not in the store (engine/publisher.c) */
    FAB_CHECK_HISTORY_CHANGED, /* the store's history differs from the published one (jobs/history_trim.h) */
    FAB_CHECK_LOST,            /* an HCA, switch or port that was seen once; its place is given up */
    FAB_CHECK_MISSING,         /* an HCA, switch or port that no sweep sees; its place is kept (retain.h) */
    FAB_CHECK_FLAPPING,        /* a cable or switch that came and went too often (fab_findings_add) */
    FAB_CHECK_DUPLICATE_NAME,  /* HCAs of one host with the same name */
    FAB_CHECK_CLAIMED_TWICE,   /* an HCA or interface that two hosts report as theirs */
    FAB_CHECK_NO_MANAGER,      /* most cabled ports are not active */
    FAB_CHECK_MANAGER_GONE,    /* the subnet manager does not answer (engine/noticing.c) */
    FAB_CHECK_INACTIVE_LONG,   /* a cable that is INACTIVE for [check] inactive_seconds (engine) */
    FAB_CHECK_PORT_DOWN,       /* a cable with a port that is down */
    FAB_CHECK_MANAGER_CHANGED, /* another manager answers than usual (likewise) */
    FAB_CHECK_PMIX_REPLACED,   /* the process that hosts the PMIx server was lost (fab_findings_add) */
    FAB_CHECK_COMPONENT,       /* the PMIx library here does not load our component (engine) */
    FAB_CHECK_PORT_DISABLED,   /* a switch port was switched off, and something was behind it */
    FAB_CHECK_COUNTERS,        /* error counters of a port grow (engine/counter_rounds.c) */
    FAB_CHECK_LINK_LOST,       /* a cable that was seen once between two switches that are present */
    FAB_CHECK_INACTIVE,        /* a cable with a port that is INIT or ARMED */
    FAB_CHECK_NAME_MAP,        /* the configured map or pattern cannot be read; the former one stays in use */
    FAB_CHECK_METRICS,         /* [metrics] file or listen does not work (scheduler_findings.c) */
    FAB_CHECK_SLURM,           /* Slurm differs from its exported file (jobs/slurm_rounds.h) */
    FAB_CHECK_OLD_CAPTURE,     /* the file that describes the fabric is older than [check] capture_seconds */
    FAB_CHECK_SLOW_LINK,       /* slower than the links of the same models in its plane */
    FAB_CHECK_WRONG_RAIL,      /* a device on another leaf than those of its name in its unit */
    FAB_CHECK_FEW_UPLINKS,     /* a switch with fewer cables up, or to one switch above, than its peers */
    FAB_CHECK_FEW_PORTS,       /* a host with fewer cabled ports than the hosts with similar names */
    FAB_CHECK_MANY_PORTS,      /* or with more: maybe two hosts of one name */
    /* a host name that is an address, that differs from another one by case only, or that a workload manager
     * rejects */
    FAB_CHECK_CONFUSING_NAME,
    FAB_CHECK_SAME_NAME,    /* a host with the name of a switch or a plane */
    FAB_CHECK_SELF_CABLE,   /* a switch with a cable to itself */
    FAB_CHECK_NOWHERE,      /* a port that is up without a peer */
    FAB_CHECK_NOT_SWEPT,    /* a port that its host reports as up and no sweep sees */
    FAB_CHECK_CONFLICT,     /* sources disagree about a port's state or speed */
    FAB_CHECK_SLOW_SLOT,    /* a PCI slot that is slower than the card's link */
    FAB_CHECK_NOT_REPORTED, /* a device that its host does not report, although the host reports others */
    FAB_CHECK_FIRMWARE,     /* another firmware than most devices of the same part */
    FAB_CHECK_UNNAMED,      /* an HCA named by its GUID or called localhost; switches of one name */
    /* a kind of hosts or switches that all have slower links or other numbers of ports than most */
    FAB_CHECK_OTHER_KIND,
    FAB_CHECK_SLURM_REMARK,   /* Slurm agrees with its file, but for nodes or switches of one of them */
    FAB_CHECK_EXPORTS_HELD,   /* an operator holds the exports (jobs/exports.h) */
    FAB_CHECK_DISABLED_PORTS, /* ports of a switch that are switched off with nothing behind them */
    FAB_CHECK_KINDS           /* number of kinds + 1 */
};

enum fab_severity {
    FAB_SEVERITY_NOTICE = 1, /* information */
    FAB_SEVERITY_WARNING,    /* reduced speed or capacity */
    FAB_SEVERITY_ERROR       /* something does not work, or is mistaken for something else */
};

/*
 * The subject of a finding, independent of its present name. Two findings of one kind about the same subject
 * are one finding; a kind that can occur twice at one subject distinguishes them by `text`.
 */
struct fab_about_end {
    uint64_t guid; /* of a node; 0: none */
    uint32_t port; /* of that node; 0: the whole node */
};
struct fab_about {
    struct fab_about_end end[2]; /* both ends of a cable, in any order */
    const char *text; /* the name of a subject without GUID; with a GUID, the part of it. NULL: none */
    uint64_t state;   /* how bad it is. Not part of the identity; another number cancels an acknowledgement */
};
struct fab_about fab_about_node(const struct fab_node *node);
struct fab_about fab_about_port(const struct fab_inventory *inv, const struct fab_port *port);
/* Return the subject for a cable, given by either of its ports. */
struct fab_about fab_about_cable(const struct fab_inventory *inv, const struct fab_port *port);
struct fab_about fab_about_text(const char *text);

/* Texts are clean: UTF-8, no control characters, one line. */
struct fab_finding {
    enum fab_check_kind kind;
    uint64_t id; /* its identity, the same in every process and at any time; never 0 */
    uint64_t state;
    struct fab_about_end end[2]; /* as in its struct fab_about */
    double share;   /* of a lost thing: the part of its plane's bisection that is gone with it, 0 to 1 */
    double all;     /* the part that is gone with all lost things */
    uint64_t cause; /* the id of the finding that causes this one (fab_check_causes); 0: none */
    /*
     * Counts of the findings that this one causes: switches, whole hosts, and HCAs of hosts that have other
     * HCAs. If an HCA is gone with its whole host, the other HCAs of that host are counted.
     */
    uint32_t switches, hosts, hcas, hcas_of_host;
    char *where; /* "leaf1[8] - node001 HCA-1[1]", "node001", "leaf1": as in a change (diff.h) */
    char *what;  /* in the same piece of memory as `where` */
};

struct fab_findings {
    struct fab_finding *findings; /* by severity, gravest first, then kind, then natural order of `where` */
    uint32_t n, cap;
};

/*
 * Return the name of a kind ("missing", "slow-link", ..., "unknown"), its advice, and its severity ("error",
 * "warning", "notice").
 */
const char *fab_check_name(enum fab_check_kind kind);
const char *fab_check_hint(enum fab_check_kind kind);
enum fab_severity fab_check_severity(enum fab_check_kind kind);
const char *fab_severity_name(enum fab_severity severity);

/*
 * Check an inventory. This is a pure function for any thread. The order of findings is total.
 * - inv: the published inventory, finished and named
 * - details: the details of the same inventory (fab_join). With NULL, facts of hosts are not checked.
 * - lost: the findings of fab_check_lost(), or NULL. They are not reported again as too few uplinks or as
 *   disabled ports of their neighbours.
 *
 * *out is initialised here, and empty on error: PMIXFAB_ERR_NOMEM, _INVAL (not finished, details of another
 * inventory).
 */
int fab_check(const struct fab_inventory *inv, const struct fab_details *details, const struct fab_lost *lost,
              struct fab_findings *out);

/*
 * Append findings for all lost things that the operator has not forgotten to *out, which is then out of
 * order. The share of a plane's bisection is computed from levels. The level of a switch is its distance from
 * a host. Take all cables between the same two levels of a plane, or within one level as in a torus, present
 * and lost. The share is the part of their Gb/s that went with the lost thing. If the cables of the lost
 * thing are between several pairs of levels, the share is the largest of these parts. A cable of unknown rate
 * counts as the fastest. A cable is not lost if another cable has taken its place. PMIXFAB_ERR_NOMEM.
 */
int fab_check_lost(const struct fab_inventory *inv, const struct fab_lost *lost, struct fab_findings *out);
/* Append a finding if a host has the name of this plane; *out is then out of order. PMIXFAB_ERR_NOMEM. */
int fab_check_plane_name(const struct fab_inventory *inv, const char *plane, struct fab_findings *out);
/* Return the kind of finding for a lost thing; 0: none. */
enum fab_check_kind fab_lost_is_about(const struct fab_inventory *inv, const struct fab_lost *lost,
                                      const struct fab_lost_item *item, struct fab_about *about);

/*
 * Return whether a lost cable is waited for: it is not forgotten, its place is free, and each of its ends is
 * present or lost.
 */
bool fab_lost_is_waited_for(const struct fab_inventory *inv, const struct fab_lost *lost,
                            const struct fab_lost_item *cable);

/*
 * Set the cause of each finding. A missing or lost switch, a flapping cable or switch, or a disabled port
 * causes all missing or lost things behind it. If a whole host is gone, one of its HCAs causes the findings
 * of its other HCAs. A cause has no cause itself. served: the result of fab_check() and fab_check_lost() with
 * the same inv and lost; flapping: the findings of FAB_CHECK_FLAPPING. PMIXFAB_ERR_NOMEM: no finding has a
 * cause.
 */
int fab_check_causes(const struct fab_inventory *inv, const struct fab_lost *lost,
                     struct fab_findings *served, struct fab_findings *flapping);

uint64_t fab_finding_id(enum fab_check_kind kind, const struct fab_about *about);
/* The id as text: 16 digits, or as many leading ones as make it unique, at least FAB_FINDING_DIGITS. */
#define FAB_FINDING_ID_TEXT 17
#define FAB_FINDING_DIGITS  4
void fab_finding_id_text(uint64_t id, char text[FAB_FINDING_ID_TEXT]);
bool fab_finding_id_matches(const char text[FAB_FINDING_ID_TEXT], const char *digits);

/*
 * Append a finding from elsewhere. Append all of them, which may be thousands, then sort once. The texts are
 * cleaned and copied. PMIXFAB_ERR_NOMEM: the list is unchanged.
 */
int fab_findings_add(struct fab_findings *findings, enum fab_check_kind kind, struct fab_about about,
                     const char *where, const char *what);
void fab_findings_sort(struct fab_findings *findings);
void fab_findings_destroy(struct fab_findings *findings);

#endif
