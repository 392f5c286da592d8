/*
 * changes_private.h - shared by the files of this room only: texts of changes, the correlation, and checks.
 *
 * correlate_match.c finds out which node is which. The others draw conclusions, in an order that matters
 * (correlate.c): who comes first has the raw changes.
 */
#ifndef FAB_TOPO_CHANGES_CHANGES_PRIVATE_H
#define FAB_TOPO_CHANGES_CHANGES_PRIVATE_H

#include "topo/base/scratch.h"
#include "topo/changes/changes.h"
#include "topo/changes/check.h"
#include "topo/model/inventory_text.h"
#include "topo/model/pairing.h"
#include "topo/plane/graph.h"

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

/* ---- nodes that are there or were lost ----------------------------------------------------------------- */

/* A node of an inventory, or behind these one of the list of what is lost. */
struct past_node {
    uint64_t guid;
    const char *host, *name;
    enum fab_node_kind kind;
    const struct fab_lost_item *lost; /* NULL: of the inventory */
};
struct past_node past_node(const struct fab_inventory *inv, const struct fab_lost *lost, uint32_t index);
/* By its GUID; FAB_NONE. What is forgotten is nowhere. */
uint32_t past_node_at(const struct fab_inventory *inv, const struct fab_lost *lost, uint64_t guid);

/* ---- a correlation ---------------------------------------------------------------------------------- */

/* An end of a cable that was lost. */
struct lost_end {
    uint64_t guid, generation;
    uint32_t num;
    int side;
    struct fab_lost_item *cable;
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

/* Before all others; false: there is no memory. */
bool index_raw_changes(struct correlation *s);
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
/* No words and no subjects; what is taken stays so. */
void unsay(struct correlation *s);
/* Tell what s->now holds, with the raw changes taken and the subjects named since the last conclusion; why:
 * as for printf(). */
void conclude(struct correlation *s, enum fab_change_kind kind, struct fab_told_end at, const char *why, ...)
    __attribute__((format(printf, 4, 5)));

/* ---- correlate_match.c ---- */

int correlation_match(struct correlation *s);
static inline struct past_node past_of(const struct correlation *s, uint32_t past)
{
    return past_node(s->before, s->lost, past);
}
/* Where a port of before is in after; FAB_NONE. */
uint32_t port_after(const struct correlation *s, uint32_t port);
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
/* The cable of a port, as it would be in the list of what is lost, of generation 0; its texts are in `texts`.
 */
struct fab_lost_item cable_item(const struct fab_inventory *inv, uint32_t port, char texts[2][FAB_PORT_TEXT]);
/* "lost in generation 7, last seen 2026-11-21T18:36:52Z" */
#define LOST_TEXT 96
const char *lost_text(const struct fab_lost_item *item, char text[LOST_TEXT]);
void append_rate(char text[DIFF_VALUE_TEXT], unsigned width, unsigned speed);

void conclude_names(struct correlation *s); /* correlate_names.c */

/* ---- checks ------------------------------------------------------------------------------------------ */

#define CHECK_WHAT_TEXT 1200

/* A check on its way. */
struct check {
    const struct fab_inventory *inv;
    const struct fab_details *details; /* or NULL */
    const struct fab_inventory *whole; /* inv, or with what was lost in its place (check_put_back) */
    struct fab_planes planes;
    struct fab_findings *out;
    struct fab_scratch scratch; /* freed behind each kind of check */
    int rc;                     /* the first failure; nothing is found after it */
};

/* What a finding is about, with its name. */
struct check_at {
    struct fab_about about;
    char where[FAB_LINK_TEXT];
};
struct check_at check_at_node(const struct fab_inventory *inv, uint32_t node, uint64_t state);
struct check_at check_at_port(const struct fab_inventory *inv, uint32_t port);
struct check_at check_at_cable(const struct fab_inventory *inv, uint32_t port, uint64_t state);
/* identity: as text in struct fab_about, valid until check_add(). */
struct check_at check_at_name(const char *identity, const char *where, uint64_t state);

void check_add(struct check *c, enum fab_check_kind kind, struct check_at at, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Memory for n things, zeroed; NULL: the check has failed. */
void *check_array(struct check *c, size_t n, size_t size);
uint64_t check_hash(const void *bytes, size_t len, uint64_t seed);

/* Hosts are alike whose names are, numbers aside: node001 and node17, but not login1. The same for those. */
uint64_t check_stem(const char *host);

/* Does a sweep see this subnet, or is it made up from what hosts say? */
static inline bool check_is_swept(const struct check *c, const struct fab_port *port)
{
    uint64_t prefix = c->inv->subnets[port->subnet].prefix;
    return prefix != FAB_UNATTACHED && !fab_prefix_is_ethernet(prefix);
}

/* What is believed of a port, of facts of this kind; NULL: nothing is known. */
const struct fab_detail *check_fact(const struct check *c, uint32_t port, enum fab_fact kind);
const char *check_fact_text(const struct check *c, uint32_t port, enum fab_fact kind);
/* "200 Gb/s" */
#define CHECK_RATE_TEXT 32
const char *check_rate_text(uint64_t mbps, char text[CHECK_RATE_TEXT]);
/* Which topology of a file a switch is of. */
static inline unsigned check_switch_view(const struct fab_node *node)
{
    return node->kind == FAB_SWITCH && FAB_GUID_IS_OF_NAME(node->guid) ? FAB_GUID_VIEW(node->guid) : 0;
}

struct fab_about check_about_lost_cable(const struct fab_lost_item *cable);
/* The fabric with the lost cables that are waited for, and with the lost nodes at them, of which not all is
 * known. *out is initialised here, and empty where no cable is lost, or on error. PMIXFAB_ERR_NOMEM. */
int check_put_back(const struct fab_inventory *inv, const struct fab_lost *lost, struct fab_inventory *out);

void check_names(struct check *c); /* check_names.c */
void check_rates(struct check *c); /* check_usual.c */
void check_firmware(struct check *c);
void check_host_ports(struct check *c);
void check_uplinks(struct check *c); /* check_uplinks.c */
void check_rails(struct check *c);

/* What one of many has. Those of one group are peers; `usual` is what more than half of them have. */
struct check_vote {
    uint64_t group, value;
    uint32_t index; /* of what it is about */
    struct check_usual {
        uint64_t value;
        uint32_t n, of; /* so many of so many have it */
    } usual;
};
/* Sort the votes by group, value and index, and count what each group has. */
void check_count(struct check_vote *votes, uint32_t n);
/* Has it something else than is usual? */
bool check_is_odd(const struct check_vote *vote);

#endif
