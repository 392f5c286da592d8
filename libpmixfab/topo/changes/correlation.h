/*
 * correlation.h - shared by the files of correlate only.
 *
 * raw_changes.c holds the list of raw changes and which are told already; match.c finds out which node is
 * which, match_retired.c which of them were lost in generations before. The others draw the conclusions, in
 * an order that matters (correlate.c): who comes first has the raw changes.
 */
#ifndef FAB_TOPO_CHANGES_CORRELATION_H
#define FAB_TOPO_CHANGES_CORRELATION_H

#include "topo/base/search.h"
#include "topo/changes/correlate.h"
#include "topo/changes/retired.h"
#include "topo/changes/text_sizes.h"
#include "topo/model/pairing.h"

/* A list of subjects in the making. */
struct subjects {
    char *text; /* as in fab_change; NULL: empty */
    size_t used;
    uint32_t cap;
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
    bool renamed, was_lost;
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

/* ---- raw_changes.c ---- */

/* by_key and taken; false: there is no memory. */
bool raw_changes_index(struct correlation *s);

/* Take a change of this port, or with FAB_NONE of any, that nobody took; FAB_NONE: there is none. */
uint32_t claim_raw(struct correlation *s, enum fab_change_kind kind, uint64_t guid, uint32_t port);
/* All of this kind that are about a node, whichever port. */
void claim_raw_node(struct correlation *s, enum fab_change_kind kind, uint64_t guid);
/* A host's, by its name. */
uint32_t claim_raw_host(struct correlation *s, enum fab_change_kind kind, const char *name);
/* A cable's, from either of its ports. */
uint32_t claim_raw_link(struct correlation *s, enum fab_change_kind kind, const struct fab_inventory *inv,
                        uint32_t port);
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
static inline struct pairing correlation_pairs(const struct correlation *s)
{
    return (struct pairing){s->before, s->after, s->to_after, s->to_before};
}

static inline uint32_t correlation_port_after(const struct correlation *s, uint32_t port)
{
    const struct pairing pairs = correlation_pairs(s);
    return pairing_port_after(&pairs, port);
}

static inline uint32_t correlation_port_before(const struct correlation *s, uint32_t port)
{
    const struct pairing pairs = correlation_pairs(s);
    return pairing_port_before(&pairs, port);
}

/* The cable of which this is an end. */
static inline struct fab_lost_item *correlation_cable(const struct correlation *s, const struct lost_end *end)
{
    return &s->lost->cables.items[end->cable];
}

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

int correlation_match(struct correlation *s); /* match.c */

/* HCAs by the names of their hosts, then their own. */
struct correlation_named {
    const char *host, *name;
    uint32_t node;
};
static inline struct correlation_named correlation_name_of(const struct fab_inventory *inv, uint32_t node)
{
    return (struct correlation_named){fab_str(inv, inv->nodes[node].host),
                                      fab_str(inv, inv->nodes[node].name), node};
}
/* Those of an inventory that neither of two lists has a match for (NULL: it has for none), in order;
 * NULL: no memory. */
struct correlation_named *correlation_list_named(const struct fab_inventory *inv, const uint32_t *matches,
                                                 const uint32_t *others, uint32_t *n);
int correlation_compare_named(const void *a, const void *b);
/* pair() what has the same name in both lists, which are in order. A name that two have recognises neither.
 */
void correlation_pair_names(struct correlation *s, const struct correlation_named *before, uint32_t n_before,
                            const struct correlation_named *after, uint32_t n_after,
                            void (*pair)(struct correlation *s, uint32_t before, uint32_t after));

/* ---- match_retired.c: what came and was lost before. All but the first need a list. ---- */

/* Its cables can be looked for from here on; false: there is no list, or no memory. More than once is fine.
 */
bool correlation_prepare_lost(struct correlation *s);
/* Which lost node is which of after. False: there is nothing to tell of any. */
bool correlation_match_lost(struct correlation *s);
bool correlation_is_new(const struct correlation *s, uint32_t after); /* neither seen before nor lost */
/* The node of after that is what had this GUID, or in its place; FAB_NONE. And back. */
uint32_t correlation_now(const struct correlation *s, uint64_t guid);
uint64_t correlation_then(const struct correlation *s, uint32_t after);
uint32_t correlation_end_now(const struct correlation *s, const struct fab_lost_item *cable, int side);
/* The first end of the list that is not before this one; the cable lost last at a port, or NULL. */
uint32_t correlation_lost_ends(const struct correlation *s, uint64_t guid, uint32_t num);
const struct lost_end *correlation_lost_at(const struct correlation *s, uint64_t guid, uint32_t num);

/* "lost in generation 7, last seen 2026-11-21T18:36:52Z" */
void correlation_lost_text(uint64_t generation, int64_t seen, char text[DIFF_LOST_TEXT]);
/* Is this cable where it was? The port at that side of it, or FAB_NONE. */
uint32_t correlation_back_at(const struct correlation *s, const struct fab_lost_item *cable, int side);
static inline bool correlation_same_rate(const struct fab_lost_item *cable, const struct fab_port *port)
{
    return cable->width == port->width && cable->speed == port->speed;
}
/* Of a switch in the place of another one: "3 of its 4 cables lead to another switch now" */
void correlation_cables_text(uint32_t back, uint32_t n, char text[DIFF_WHY_TEXT]);
void correlation_append_rate(char text[DIFF_VALUE_TEXT], unsigned width, unsigned speed);
/* "leaf1[8]", or with the cable's rate. */
void correlation_end_text(const struct fab_inventory *inv, uint32_t port, bool with_rate,
                          char text[DIFF_VALUE_TEXT]);
/* An end of a cable that was lost, and one that is there: with the rates, where they differ. */
void correlation_end_texts(const struct correlation *s, const struct fab_lost_item *cable, int side,
                           uint32_t port, char before[DIFF_VALUE_TEXT], char after[DIFF_VALUE_TEXT]);

/* ---- conclusions ---- */

/* GUIDs before and after, with the names where they differ. */
void story_identities(uint64_t guid_b, const char *name_b, uint64_t guid_a, const char *name_a,
                      char before[DIFF_VALUE_TEXT], char after[DIFF_VALUE_TEXT]);
void correlation_switches_replaced(struct correlation *s); /* replaced.c */
void correlation_hcas_replaced(struct correlation *s);
void correlation_hosts_moved(struct correlation *s); /* moved.c */
void correlation_cables_moved(struct correlation *s);
void correlation_ports(struct correlation *s);
void correlation_claims(struct correlation *s);   /* duplicates.c */
void correlation_renamed(struct correlation *s);  /* renamed.c */
void correlation_returned(struct correlation *s); /* returned.c: what was lost */
void correlation_links_returned(struct correlation *s);
void correlation_gone(struct correlation *s); /* remaining.c */
void correlation_rest(struct correlation *s);

#endif
