/*
 * understand_priv.h - shared by the files of understand only.
 *
 * understand.c holds the list of raw changes and which are told already; understand_match.c and
 * understand_switches.c find out which node is which; understand_nodes.c, understand_cables.c,
 * understand_claims.c and understand_rest.c draw the conclusions, in an order that matters: who comes first
 * has the raw changes.
 */
#ifndef FAB_TOPO_UNDERSTAND_PRIV_H
#define FAB_TOPO_UNDERSTAND_PRIV_H

#include "topo/diff_internal.h"
#include "topo/understand.h"

/* A list of subjects in the making. */
struct subjects {
    char *text; /* as in fab_change; NULL: empty */
    size_t used, cap;
};

struct story {
    const struct fab_inventory *before, *after;
    const struct fab_diff *raw;
    uint32_t *by_key;         /* the raw changes by kind, GUID and port */
    bool *taken;              /* is a raw change told already? */
    uint32_t n_taken;         /* by the conclusion that is being drawn */
    struct subjects subjects; /* of that */
    /* Which node is which: of each node of before its successor in after, and back. FAB_NONE: none. */
    uint32_t *to_after, *to_before;
    struct diff_walk out; /* what is understood; its rc is that of everything */
};

/* ---- understand.c: raw changes ---- */

/* Take a change that nobody took; FAB_NONE: there is none. */
uint32_t story_take(struct story *s, enum fab_change_kind kind, uint64_t guid, uint32_t port);
/* All of this kind that are about a node, whichever port. */
void story_take_node(struct story *s, enum fab_change_kind kind, uint64_t guid);
/* A host's, by its name. */
uint32_t story_take_host(struct story *s, enum fab_change_kind kind, const char *name);
/* A cable's, from either of its ports. */
uint32_t story_take_link(struct story *s, enum fab_change_kind kind, const struct fab_inventory *inv,
                         uint32_t port);
bool story_is_taken(const struct story *s, uint32_t raw);
/* Take this one, which nobody took. */
const struct fab_change *story_take_this(struct story *s, uint32_t raw);

/* A subject of the conclusion; of a node the host's name, or the switch's. Once each. */
void story_subject(struct story *s, const char *name);
void story_subject_node(struct story *s, const struct fab_inventory *inv, uint32_t node);
/* Of a cable, from one of its ports: the nodes at both ends. */
void story_subject_link(struct story *s, const struct fab_inventory *inv, uint32_t port);

/* Tell the conclusion, with the raw changes taken and the subjects named since the last one. */
void story_tell(struct story *s, enum fab_change_kind kind, uint64_t guid, uint32_t port, const char *what,
                const char *before, const char *after, const char *why);

/* Where a port of `before` is in `after`; FAB_NONE. And back. */
uint32_t story_port_after(const struct story *s, uint32_t port);
uint32_t story_port_before(const struct story *s, uint32_t port);

static inline bool is_kind(const struct fab_inventory *inv, uint32_t node, enum fab_node_kind kind)
{
    return inv->nodes[node].kind == kind;
}

/* A node's port by its index among the node's own, and what is at the other end of its cable. */
static inline uint32_t peer_of(const struct fab_inventory *inv, uint32_t node, uint32_t i)
{
    return inv->ports[inv->nodes[node].first_port + i].peer;
}

/* ---- which node is which ---- */

int story_match(struct story *s);           /* understand_match.c: all of it */
void story_match_switches(struct story *s); /* understand_switches.c: those that are not matched */

/* ---- conclusions ---- */

void story_switches_replaced(struct story *s); /* understand_nodes.c */
void story_hcas_replaced(struct story *s);
void story_hosts_moved(struct story *s); /* understand_cables.c */
void story_cables_moved(struct story *s);
void story_ports(struct story *s);
void story_claims(struct story *s);  /* understand_claims.c */
void story_renamed(struct story *s); /* understand_rest.c */
void story_gone(struct story *s);
void story_rest(struct story *s);

#endif
