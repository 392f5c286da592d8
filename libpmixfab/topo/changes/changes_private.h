/*
 * changes_private.h - private to this room: texts of changes, the correlation, and checks.
 *
 * correlate_match.c matches the nodes. The other files draw conclusions in an order that matters
 * (correlate.c): the first one takes the raw changes.
 */
#ifndef FAB_TOPO_CHANGES_CHANGES_PRIVATE_H
#define FAB_TOPO_CHANGES_CHANGES_PRIVATE_H

#include "topo/base/scratch.h"
#include "topo/changes/changes.h"
#include "topo/changes/check.h"
#include "topo/model/inventory_text.h"
#include "topo/model/pairing.h"
#include "topo/plane/graph.h"

/* Sizes of texts that fit any change. */
#define DIFF_VALUE_TEXT 272
#define DIFF_WHY_TEXT   400

/* A list under construction. */
struct diff_out {
    struct fab_diff *diff;
    int rc; /* the first failure; nothing is added after it */
};

/*
 * Append a change like this one. `before`, `after` and `why` are cleaned here, the other texts must be clean.
 * All but `what` may be NULL. The texts are copied into one piece of memory, which `what` owns.
 */
void diff_put(struct diff_out *out, const struct fab_change *like);
/* Sort the list and return the failure, or PMIXFAB_OK. */
int diff_finish(struct diff_out *out);

/* ---- nodes present or lost ---------------------------------------------------------------------------- */

/* A node of an inventory or, after these, of the list of lost things. */
struct past_node {
    uint64_t guid;
    const char *host, *name;
    enum fab_node_kind kind;
    const struct fab_lost_item *lost; /* NULL: a node of the inventory */
};
struct past_node past_node(const struct fab_inventory *inv, const struct fab_lost *lost, uint32_t index);
/* Find a node by its GUID; FAB_NONE if there is none. Forgotten nodes are not found. */
uint32_t past_node_at(const struct fab_inventory *inv, const struct fab_lost *lost, uint64_t guid);

/* ---- a correlation ---------------------------------------------------------------------------------- */

/* One end of a lost cable. */
struct lost_end {
    uint64_t guid, generation;
    uint32_t num;
    int side;
    struct fab_lost_item *cable;
};

/* A conclusion under construction; its texts are cleaned later. */
struct conclusion {
    char what[FAB_LINK_TEXT], before[FAB_LINK_TEXT], after[FAB_LINK_TEXT];
    uint64_t former;
    int64_t seen; /* last sight; 0: the publisher sets it */
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
    bool *taken;      /* raw changes that a conclusion has */
    /*
     * The matching. Each past node has its number in after. Each node of after has its number in before, or
     * its number in the past if it was lost. FAB_NONE: none.
     */
    uint32_t *to_after, *to_before, *to_lost;
    struct fab_lost *lost; /* NULL: nothing was lost */
    uint32_t n_past;
    struct lost_end *ends; /* by GUID and port, the one lost last first */
    uint32_t n_ends;
    struct conclusion now;
    struct diff_out out; /* the conclusions; its rc is that of the whole correlation */
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

/* Return the node at the other end of a port's cable, or FAB_NONE. */
static inline uint32_t peer_node(const struct fab_inventory *inv, uint32_t port)
{
    const uint32_t peer = inv->ports[port].peer;
    return peer == FAB_NONE ? FAB_NONE : inv->ports[peer].node;
}

/* Return whether this kind means that something was added. */
static inline bool came(enum fab_change_kind kind)
{
    return kind == FAB_CHANGE_HOST_ADDED || kind == FAB_CHANGE_DEVICE_ADDED ||
           kind == FAB_CHANGE_SWITCH_ADDED || kind == FAB_CHANGE_LINK_ADDED;
}

/* Call this before all others. Return false without memory. */
bool index_raw_changes(struct correlation *s);
/*
 * Take a raw change of this port that is not taken yet, or of any port if port is FAB_NONE. Return its
 * number, or FAB_NONE.
 */
uint32_t claim(struct correlation *s, enum fab_change_kind kind, struct fab_told_end of);
void claim_all_of_node(struct correlation *s, enum fab_change_kind kind, uint64_t guid);
uint32_t claim_host(struct correlation *s, enum fab_change_kind kind, const char *name);
/* Take the change that this cable was added (of after) or lost (of before), from either of its ports. */
uint32_t claim_link(struct correlation *s, const struct fab_inventory *inv, uint32_t port);
const struct fab_change *claim_this(struct correlation *s, uint32_t raw);
void unclaim(struct correlation *s, uint32_t raw); /* FAB_NONE is allowed */

/*
 * Add a subject to the conclusion, each name once. The subject of a node is the name of its host, or of the
 * switch. The subjects of a cable, given by one of its ports, are the nodes at both ends.
 */
void subject(struct correlation *s, const char *name);
void subject_node(struct correlation *s, const struct fab_inventory *inv, uint32_t node);
void subject_link(struct correlation *s, const struct fab_inventory *inv, uint32_t port);

/* Store these texts in s->now; a NULL leaves the old one. */
void say(struct correlation *s, const char *what, const char *before, const char *after);
/* Drop texts and subjects; taken changes stay taken. */
void unsay(struct correlation *s);
/*
 * Add the conclusion in s->now, with the raw changes and subjects collected since the last one. why: as for
 * printf().
 */
void conclude(struct correlation *s, enum fab_change_kind kind, struct fab_told_end at, const char *why, ...)
    __attribute__((format(printf, 4, 5)));

/* ---- correlate_match.c ---- */

int correlation_match(struct correlation *s);
static inline struct past_node past_of(const struct correlation *s, uint32_t past)
{
    return past_node(s->before, s->lost, past);
}
/* Return the number in after of a port of before, or FAB_NONE. */
uint32_t port_after(const struct correlation *s, uint32_t port);
bool is_new(const struct correlation *s, uint32_t after); /* neither seen before nor lost */
/* Return the node of after that had this GUID or is in its place, or FAB_NONE; and the reverse. */
uint32_t node_now(const struct correlation *s, uint64_t guid);
uint64_t guid_then(const struct correlation *s, uint32_t after);
/*
 * Return the first end of the list that is not before this one; and the cable lost last at a port, or NULL.
 */
uint32_t lost_ends_from(const struct correlation *s, uint64_t guid, uint32_t num);
const struct lost_end *lost_at(const struct correlation *s, uint64_t guid, uint32_t num);
/* If this lost cable is in its place again, return the port at that side of it, else FAB_NONE. */
uint32_t back_at(const struct correlation *s, const struct fab_lost_item *cable, int side);

/* HCAs by host name, then device name. */
struct named {
    const char *host, *name;
    uint32_t node;
};
struct named named_node(const struct fab_inventory *inv, uint32_t node);
int compare_named(const void *a, const void *b);
/* List all HCAs of an inventory in order; NULL without memory. */
struct named *list_named(const struct fab_inventory *inv, uint32_t *n);

/* ---- conclusions, and their common texts ---- */

void conclude_replaced(struct correlation *s); /* correlate_nodes.c */
void conclude_returned(struct correlation *s);
/*
 * Return whether this node of after has another name than `was`, the old name is unused now, and the new name
 * was unused then.
 */
bool is_renamed(const struct correlation *s, const char *was, uint32_t after);

void conclude_moved(struct correlation *s); /* correlate_cables.c */
void conclude_links_returned(struct correlation *s);
void conclude_ports(struct correlation *s);
/* Conclude that a port of an HCA has a cable at another place than the lost one. */
void conclude_port_moved(struct correlation *s, uint32_t port, const struct lost_end *end);
/*
 * Return the cable of a port as an item of the list of lost things, of generation 0; its texts are in
 * `texts`.
 */
struct fab_lost_item cable_item(const struct fab_inventory *inv, uint32_t port, char texts[2][FAB_PORT_TEXT]);
/* "lost in generation 7, last seen 2026-11-21T18:36:52Z" */
#define LOST_TEXT 96
const char *lost_text(const struct fab_lost_item *item, char text[LOST_TEXT]);
void append_rate(char text[DIFF_VALUE_TEXT], unsigned width, unsigned speed);

void conclude_names(struct correlation *s); /* correlate_names.c */

/* ---- checks ------------------------------------------------------------------------------------------ */

#define CHECK_WHAT_TEXT 1200

/* A running check. */
struct check {
    const struct fab_inventory *inv;
    const struct fab_details *details; /* or NULL */
    const struct fab_inventory *whole; /* inv, or with the lost things in their places (check_put_back) */
    struct fab_planes planes;
    struct fab_findings *out;
    struct fab_scratch scratch; /* freed after each kind of check */
    int rc;                     /* the first failure; no finding is added after it */
};

/* The subject of a finding, with its name. */
struct check_at {
    struct fab_about about;
    char where[FAB_LINK_TEXT];
};
struct check_at check_at_node(const struct fab_inventory *inv, uint32_t node, uint64_t state);
struct check_at check_at_port(const struct fab_inventory *inv, uint32_t port);
struct check_at check_at_cable(const struct fab_inventory *inv, uint32_t port, uint64_t state);
/* identity: the text of struct fab_about, valid until check_add(). */
struct check_at check_at_name(const char *identity, const char *where, uint64_t state);

void check_add(struct check *c, enum fab_check_kind kind, struct check_at at, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Return zeroed memory for n elements; NULL: the check has failed. */
void *check_array(struct check *c, size_t n, size_t size);
uint64_t check_hash(const void *bytes, size_t len, uint64_t seed);

/*
 * Return a hash of a host's name without its numbers: hosts with equal values are alike. node001 and node17
 * are alike, login1 is not.
 */
uint64_t check_stem(const char *host);

/* Return whether a sweep sees this subnet; else it was made from host reports. */
static inline bool check_is_swept(const struct check *c, const struct fab_port *port)
{
    uint64_t prefix = c->inv->subnets[port->subnet].prefix;
    return prefix != FAB_UNATTACHED && !fab_prefix_is_ethernet(prefix);
}

/* Return the chosen fact of this kind of a port, or NULL. */
const struct fab_detail *check_fact(const struct check *c, uint32_t port, enum fab_fact kind);
const char *check_fact_text(const struct check *c, uint32_t port, enum fab_fact kind);
/* "200 Gb/s" */
#define CHECK_RATE_TEXT 32
const char *check_rate_text(uint64_t mbps, char text[CHECK_RATE_TEXT]);
/* Return the number of the topology in a file that the switch belongs to. */
static inline unsigned check_switch_view(const struct fab_node *node)
{
    return node->kind == FAB_SWITCH && FAB_GUID_IS_OF_NAME(node->guid) ? FAB_GUID_VIEW(node->guid) : 0;
}

struct fab_about check_about_lost_cable(const struct fab_lost_item *cable);
/*
 * Make an inventory with the lost cables that are waited for, and with the lost nodes at their ends, of which
 * not everything is known. *out is initialised here; it is empty if no cable is lost, and on error.
 * PMIXFAB_ERR_NOMEM.
 */
int check_put_back(const struct fab_inventory *inv, const struct fab_lost *lost, struct fab_inventory *out);

void check_names(struct check *c); /* check_names.c */
void check_rates(struct check *c); /* check_usual.c */
void check_firmware(struct check *c);
void check_host_ports(struct check *c);
void check_uplinks(struct check *c); /* check_uplinks.c */
void check_rails(struct check *c);

/* The value of one member of a group of peers; `usual` is the value of more than half of the group. */
struct check_vote {
    uint64_t group, value;
    uint32_t index; /* of its subject */
    struct check_usual {
        uint64_t value;
        uint32_t n, of; /* number of members with that value, and of all members */
    } usual;
};
/* Sort the votes by group, value and index, and count the values of each group. */
void check_count(struct check_vote *votes, uint32_t n);
/* Return whether it differs from the usual value. */
bool check_is_odd(const struct check_vote *vote);

#endif
