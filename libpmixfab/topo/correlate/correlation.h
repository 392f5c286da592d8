/*
 * understand_priv.h - shared by the files of understand only.
 *
 * understand.c holds the list of raw changes and which are told already; understand_match.c and
 * understand_switches.c find out which node is which; understand_nodes.c, understand_cables.c,
 * understand_claims.c and understand_rest.c draw the conclusions, in an order that matters: who comes first
 * has the raw changes. understand_lost.c and understand_back.c do both with what was lost in generations
 * before.
 */
#ifndef FAB_TOPO_UNDERSTAND_PRIV_H
#define FAB_TOPO_UNDERSTAND_PRIV_H

#include "topo/base/majority.h"
#include "topo/correlate/correlate.h"
#include "topo/correlate/retired.h"
#include "topo/diff/text_sizes.h"

/* A list of subjects in the making. */
struct subjects {
    char *text; /* as in fab_change; NULL: empty */
    size_t used, cap;
};

/* An end of a cable that was lost. */
struct lost_end {
    uint64_t guid, generation;
    uint32_t num, cable; /* of the list */
    int side;
};

/* What a conclusion says beside its texts. */
struct conclusion {
    uint64_t former;
    int64_t seen; /* last; 0: whoever publishes knows */
    bool renamed;
};

struct correlation {
    const struct fab_inventory *before, *after;
    const struct fab_diff *raw;
    uint32_t *by_key;         /* the raw changes by kind, GUID and port */
    bool *taken;              /* is a raw change told already? */
    uint32_t n_taken;         /* by the conclusion that is being drawn */
    struct subjects subjects; /* of that */
    /* Which node is which: of each node of before its successor in after, and back. FAB_NONE: none. */
    uint32_t *to_after, *to_before;
    /* Of those that have none: of each node that was lost what came, and back. */
    struct fab_retired *lost; /* NULL: nothing is known of it */
    uint32_t *lost_after, *after_lost;
    struct lost_end *ends; /* by GUID and port, the one lost last first */
    uint32_t n_ends;
    struct conclusion past; /* of the conclusion that is being drawn */
    struct diff_walk out;   /* what is understood; its rc is that of everything */
};

/* ---- understand.c: raw changes ---- */

/* Take a change that nobody took; FAB_NONE: there is none. */
uint32_t claim_raw(struct correlation *s, enum fab_change_kind kind, uint64_t guid, uint32_t port);
/* All of this kind that are about a node, whichever port. */
void claim_raw_node(struct correlation *s, enum fab_change_kind kind, uint64_t guid);
/* A host's, by its name. */
uint32_t claim_raw_host(struct correlation *s, enum fab_change_kind kind, const char *name);
/* A cable's, from either of its ports. */
uint32_t claim_raw_link(struct correlation *s, enum fab_change_kind kind, const struct fab_inventory *inv,
                        uint32_t port);
bool correlation_is_taken(const struct correlation *s, uint32_t raw);
/* Take this one, which nobody took. */
const struct fab_change *claim_raw_this(struct correlation *s, uint32_t raw);

/* A subject of the conclusion; of a node the host's name, or the switch's. Once each. */
void correlation_subject(struct correlation *s, const char *name);
void correlation_subject_node(struct correlation *s, const struct fab_inventory *inv, uint32_t node);
/* Of a cable, from one of its ports: the nodes at both ends. */
void correlation_subject_link(struct correlation *s, const struct fab_inventory *inv, uint32_t port);

/* Tell the conclusion, with the raw changes taken and the subjects named since the last one. */
void correlation_conclude(struct correlation *s, enum fab_change_kind kind, uint64_t guid, uint32_t port,
                          const char *what, const char *before, const char *after, const char *why);

/* Where a port of `before` is in `after`; FAB_NONE. And back. */
uint32_t correlation_port_after(const struct correlation *s, uint32_t port);
uint32_t correlation_port_before(const struct correlation *s, uint32_t port);

static inline bool is_kind(const struct fab_inventory *inv, uint32_t node, enum fab_node_kind kind)
{
    return inv->nodes[node].kind == kind;
}

/* A node's port by its index among the node's own, and what is at the other end of its cable. */
static inline uint32_t peer_of(const struct fab_inventory *inv, uint32_t node, uint32_t i)
{
    return inv->ports[inv->nodes[node].first_port + i].peer;
}

/* Does this kind say that something came? */
static inline bool came(enum fab_change_kind kind)
{
    return kind == FAB_CHANGE_HOST_ADDED || kind == FAB_CHANGE_DEVICE_ADDED ||
           kind == FAB_CHANGE_SWITCH_ADDED || kind == FAB_CHANGE_LINK_ADDED;
}

/* The lower end of the cable that a change is about, if no HCA is at it; FAB_NONE. */
uint32_t correlation_switch_link(const struct fab_inventory *inv, const struct fab_change *change);

/* Is this node of after what had that name, which nobody has any more, under a name that nobody had? */
bool correlation_renamed_node(const struct correlation *s, const char *was, uint32_t after);
bool correlation_switch_renamed(const struct correlation *s, uint64_t guid); /* a switch that both have */

/* ---- which node is which ---- */

int correlation_match(struct correlation *s); /* understand_match.c: all of it */
void correlation_match_switches(
    struct correlation *s); /* understand_switches.c: those that are not matched */

/* ---- understand_lost.c: what came and was lost before. All but the first need a list. ---- */

/* Its cables can be looked for from here on; false: there is no list, or no memory. More than once is fine.
 */
bool correlation_prepare_lost(struct correlation *s);
/* Which lost node is which of after. False: there is nothing to tell of any. */
bool correlation_match_lost(struct correlation *s);
bool correlation_is_new(const struct correlation *s, uint32_t after); /* neither seen before nor lost */
/* The node of after that is what had this GUID, or in its place; FAB_NONE. And back. */
uint32_t correlation_now(const struct correlation *s, uint64_t guid);
uint64_t correlation_then(const struct correlation *s, uint32_t after);
uint32_t correlation_end_now(const struct correlation *s, const struct fab_retired_cable *cable, int side);
/* The first end of the list that is not before this one; the cable lost last at a port, or NULL. */
uint32_t correlation_lost_ends(const struct correlation *s, uint64_t guid, uint32_t num);
const struct lost_end *correlation_lost_at(const struct correlation *s, uint64_t guid, uint32_t num);

/* ---- understand_back.c: shared with understand_back_links.c ---- */

/* "lost in generation 7, last seen 2026-11-21T18:36:52Z" */
void correlation_lost_text(uint64_t generation, int64_t seen, char text[DIFF_LOST_TEXT]);
/* Is this cable where it was? The port at that side of it, or FAB_NONE. */
uint32_t correlation_back_at(const struct correlation *s, const struct fab_retired_cable *cable, int side);
void correlation_append_rate(char text[DIFF_VALUE_TEXT], unsigned width, unsigned speed);
/* An end of a cable that was lost, and one that is there: with the rates, where they differ. */
void correlation_end_texts(const struct correlation *s, const struct fab_retired_cable *cable, int side,
                           uint32_t port, char before[DIFF_VALUE_TEXT], char after[DIFF_VALUE_TEXT]);

/* ---- conclusions ---- */

void correlation_switches_replaced(struct correlation *s); /* understand_nodes.c */
void correlation_hcas_replaced(struct correlation *s);
void correlation_hosts_moved(struct correlation *s); /* understand_cables.c */
void correlation_cables_moved(struct correlation *s);
void correlation_ports(struct correlation *s);
void correlation_claims(struct correlation *s);   /* understand_claims.c */
void correlation_renamed(struct correlation *s);  /* understand_names.c */
void correlation_returned(struct correlation *s); /* understand_back.c: what was lost */
void correlation_links_returned(struct correlation *s);
void correlation_gone(struct correlation *s); /* understand_rest.c */
void correlation_rest(struct correlation *s);

#endif
