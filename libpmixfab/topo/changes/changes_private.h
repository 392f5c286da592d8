/*
 * changes_private.h - shared by the files of this room only: texts of changes, and the correlation.
 *
 * correlate_match.c finds out which node is which. The others draw conclusions, in an order that matters
 * (correlate.c): who comes first has the raw changes.
 */
#ifndef FAB_TOPO_CHANGES_CHANGES_PRIVATE_H
#define FAB_TOPO_CHANGES_CHANGES_PRIVATE_H

#include "topo/changes/changes.h"
#include "topo/model/inventory_text.h"
#include "topo/model/pairing.h"

/* Texts that fit any change. */
#define DIFF_VALUE_TEXT 272
#define DIFF_WHY_TEXT   400

/* A list in the making. */
struct diff_out {
    struct fab_diff *diff;
    int rc; /* the first failure; nothing is added after it */
};

/* Append a change like this one. Its `before`, `after` and `why` are cleaned here, the other texts have been;
 * all but `what` may be NULL. All are copied into one piece of memory, which `what` owns. */
void diff_put(struct diff_out *out, const struct fab_change *like);
/* In order; the failure, or PMIXFAB_OK. */
int diff_finish(struct diff_out *out);

/* ---- a correlation ---------------------------------------------------------------------------------- */

/* An end of a cable that was lost. */
struct lost_end {
    uint64_t guid, generation;
    uint32_t num;
    int side;
    struct fab_lost_item *cable;
};

/* A node of the past: of the inventory before, or behind these of the list of what is lost. */
struct past_node {
    uint64_t guid;
    const char *host, *name;
    enum fab_node_kind kind;
    const struct fab_lost_item *lost; /* NULL: of the inventory */
};

/* What is being concluded; the texts are cleaned later. */
struct conclusion {
    char what[FAB_LINK_TEXT], before[FAB_LINK_TEXT], after[FAB_LINK_TEXT];
    uint64_t former;
    int64_t seen; /* last; 0: whoever publishes knows */
    bool renamed, was_lost;
    uint32_t n_taken; /* raw changes */
    char *subjects;   /* as in fab_change; NULL: none yet */
    size_t n_subjects;
    uint32_t cap_subjects;
};

struct correlation {
    const struct fab_inventory *before, *after;
    const struct fab_diff *raw;
    uint32_t *by_key; /* the raw changes by kind, GUID and port */
    bool *taken;      /* is a raw change told already? */
    /* Which node is which: of each node of the past what it is in after; back of those of before, and of the
     * lost ones their number in the past. FAB_NONE: none. */
    uint32_t *to_after, *to_before, *to_lost;
    struct fab_lost *lost; /* NULL: nothing is known of it */
    uint32_t n_past;
    struct lost_end *ends; /* by GUID and port, the one lost last first */
    uint32_t n_ends;
    struct conclusion now;
    struct diff_out out; /* what is understood; its rc is that of everything */
};

static inline struct fab_told_end node_end(const struct fab_inventory *inv, uint32_t node)
{
    return (struct fab_told_end){inv->nodes[node].guid, 0};
}

static inline struct fab_told_end port_end(const struct fab_inventory *inv, uint32_t port)
{
    return (struct fab_told_end){inv->nodes[inv->ports[port].node].guid, inv->ports[port].num};
}

static inline bool is_kind(const struct fab_inventory *inv, uint32_t node, enum fab_node_kind kind)
{
    return inv->nodes[node].kind == kind;
}

/* The node at the other end of a port's cable; FAB_NONE. */
static inline uint32_t peer_node(const struct fab_inventory *inv, uint32_t port)
{
    const uint32_t peer = inv->ports[port].peer;
    return peer == FAB_NONE ? FAB_NONE : inv->ports[peer].node;
}

/* Does this kind say that something came? */
static inline bool came(enum fab_change_kind kind)
{
    return kind == FAB_CHANGE_HOST_ADDED || kind == FAB_CHANGE_DEVICE_ADDED ||
           kind == FAB_CHANGE_SWITCH_ADDED || kind == FAB_CHANGE_LINK_ADDED;
}

/* Take a raw change that nobody took, of this port, or with port FAB_NONE of any; FAB_NONE: there is none. */
uint32_t claim(struct correlation *s, enum fab_change_kind kind, struct fab_told_end of);
void claim_all_of_node(struct correlation *s, enum fab_change_kind kind, uint64_t guid);
uint32_t claim_host(struct correlation *s, enum fab_change_kind kind, const char *name);
/* That this cable came (of after) or went (of before), from either of its ports. */
uint32_t claim_link(struct correlation *s, const struct fab_inventory *inv, uint32_t port);
const struct fab_change *claim_this(struct correlation *s, uint32_t raw);
void unclaim(struct correlation *s, uint32_t raw); /* FAB_NONE is allowed */

/* A subject of the conclusion; of a node the host's name, or the switch's; of a cable, from one of its ports,
 * the nodes at both ends. Once each. */
void subject(struct correlation *s, const char *name);
void subject_node(struct correlation *s, const struct fab_inventory *inv, uint32_t node);
void subject_link(struct correlation *s, const struct fab_inventory *inv, uint32_t port);

/* Put these words into s->now, where they are not NULL. */
void say(struct correlation *s, const char *what, const char *before, const char *after);
/* Tell what s->now holds, with the raw changes taken and the subjects named since the last conclusion; why:
 * as for printf(). */
void conclude(struct correlation *s, enum fab_change_kind kind, struct fab_told_end at, const char *why, ...)
    __attribute__((format(printf, 4, 5)));

/* ---- correlate_match.c ---- */

int correlation_match(struct correlation *s);
struct past_node past_node(const struct correlation *s, uint32_t past);
/* Where a port of before is in after, and back; FAB_NONE. */
uint32_t port_after(const struct correlation *s, uint32_t port);
uint32_t port_before(const struct correlation *s, uint32_t port);
bool is_new(const struct correlation *s, uint32_t after); /* neither seen before nor lost */
/* The node of after that is what had this GUID, or in its place; FAB_NONE. And back. */
uint32_t node_now(const struct correlation *s, uint64_t guid);
uint64_t guid_then(const struct correlation *s, uint32_t after);
/* The first end of the list that is not before this one; the cable lost last at a port, or NULL. */
uint32_t lost_ends_from(const struct correlation *s, uint64_t guid, uint32_t num);
const struct lost_end *lost_at(const struct correlation *s, uint64_t guid, uint32_t num);
/* Is this cable where it was? The port at that side of it, or FAB_NONE. */
uint32_t back_at(const struct correlation *s, const struct fab_lost_item *cable, int side);

/* HCAs by the names of their hosts, then their own. */
struct named {
    const char *host, *name;
    uint32_t node;
};
struct named named_node(const struct fab_inventory *inv, uint32_t node);
int compare_named(const void *a, const void *b);
/* All of an inventory, in order; NULL: no memory. */
struct named *list_named(const struct fab_inventory *inv, uint32_t *n);

/* ---- conclusions, and words that several of them need ---- */

void conclude_replaced(struct correlation *s); /* correlate_nodes.c */
void conclude_returned(struct correlation *s);
/* Has this node of after another name than `was`, and does nobody have that, or had this? */
bool is_renamed(const struct correlation *s, const char *was, uint32_t after);

void conclude_moved(struct correlation *s); /* correlate_cables.c */
void conclude_links_returned(struct correlation *s);
void conclude_ports(struct correlation *s);
/* A port of an HCA that has a cable at another place than the one that was lost. */
void conclude_port_moved(struct correlation *s, uint32_t port, const struct lost_end *end);
/* "lost in generation 7, last seen 2026-11-21T18:36:52Z" */
#define LOST_TEXT 96
const char *lost_text(const struct fab_lost_item *item, char text[LOST_TEXT]);
void append_rate(char text[DIFF_VALUE_TEXT], unsigned width, unsigned speed);

void conclude_names(struct correlation *s); /* correlate_names.c */
void conclude_rest(struct correlation *s);  /* correlate_rest.c */

#endif
