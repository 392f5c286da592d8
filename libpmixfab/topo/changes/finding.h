/*
 * finding.h - shared by the files of check only.
 */
#ifndef FAB_TOPO_CHANGES_FINDING_H
#define FAB_TOPO_CHANGES_FINDING_H

#include "topo/changes/check.h"
#include "topo/model/inventory_text.h"
#include "topo/plane/graph.h"

#define CHECK_WHAT_TEXT 1200

/* A check on its way. */
struct check {
    const struct fab_inventory *inv;
    const struct fab_details *details; /* or NULL */
    const struct fab_inventory *whole; /* inv, or with what was lost in its place (check_put_back) */
    struct fab_planes planes;
    struct fab_findings *out;
    int rc; /* the first failure; nothing is found after it */
};

void check_add(struct check *c, enum fab_check_kind kind, struct fab_about about, const char *where,
               const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* The kind by which a finding of this one is the same as before: as a rule itself. */
enum fab_check_kind check_family(enum fab_check_kind kind);

/* What is there changes the number. */
struct fab_about check_about_state(struct fab_about about, uint64_t state);

/* Memory for n things, zeroed; NULL: the check has failed. Free with free(). */
void *check_array(struct check *c, size_t n, size_t size);

/* What one of many has. Those of one group are peers. */
struct check_vote {
    uint64_t group, value;
    uint32_t index; /* of what it is about */
};

/* What is usual in a group: what more than half have, where they are at least three. */
struct check_usual {
    uint64_t value;
    uint32_t n, of; /* so many of so many have it */
};
typedef void (*check_odd_fn)(struct check *c, const struct check_vote *odd, const struct check_usual *usual,
                             void *cbdata);

/* Count (the votes are sorted) and call fn for each one that has something else than is usual. */
void check_count(struct check *c, struct check_vote *votes, uint32_t n, check_odd_fn fn, void *cbdata);

/* The same for each vote, whatever it has; `usual` may be none. */
void check_count_all(struct check *c, struct check_vote *votes, uint32_t n, check_odd_fn fn, void *cbdata);
void check_sort_votes(struct check_vote *votes, uint32_t n); /* by group, value, index */
/* Do more than half have it, of three at least? */
bool check_is_usual(const struct check_usual *usual);

/* Hosts are alike whose names are, numbers aside: node001 and node17, but not login1. The same for those. */
uint64_t check_stem(const char *host);

/* Add the one notice of what a whole kind of hosts has in common. identity: the same after a year. names: of
 * n hosts or switches; they are sorted. */
void check_kind(struct check *c, uint64_t identity, const char **names, uint32_t n, uint64_t state,
                const char *what);

uint64_t check_hash(const char *text, size_t len, uint64_t seed);

/* "200 Gb/s" */
void check_rate_text(uint64_t mbps, char text[32]);

static inline bool check_is_cabled_hca(const struct check *c, const struct fab_port *port)
{
    return port->peer != FAB_NONE && c->inv->nodes[port->node].kind == FAB_HCA;
}

/* Does a sweep see this subnet, or is it made up from what hosts say? */
static inline bool check_is_swept(const struct check *c, const struct fab_port *port)
{
    uint64_t prefix = c->inv->subnets[port->subnet].prefix;
    return prefix != FAB_UNATTACHED && !fab_prefix_is_ethernet(prefix);
}

/* A node of the inventory by its GUID, or behind these of the lost ones; FAB_NONE. What is forgotten is
 * nowhere. */
uint32_t check_lost_node_at(const struct fab_inventory *inv, const struct fab_lost *lost, uint64_t guid);

/* The fabric with the lost cables that are waited for, and with the lost nodes at them, of which not all is
 * known. *out is initialised here, and empty where no cable is lost, or on error. PMIXFAB_ERR_NOMEM. */
int check_put_back(const struct fab_inventory *inv, const struct fab_lost *lost,
                   struct fab_inventory *out);

/* Which topology of a file a switch is of. */
unsigned check_switch_view(const struct fab_node *node);

/* check_links.c, check_rates.c, check_uplinks.c, check_rails.c, check_hosts.c, check_host_ports.c,
 * check_names.c, check_facts.c, check_claims.c */
void check_links(struct check *c);
void check_rates(struct check *c);
void check_uplinks(struct check *c);
void check_rails(struct check *c);
void check_hosts(struct check *c);
void check_names(struct check *c);
void check_host_ports(struct check *c);
void check_facts(struct check *c);
void check_claims(struct check *c);

#endif
