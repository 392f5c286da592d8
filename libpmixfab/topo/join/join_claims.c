/*
 * join_claims.c - match the devices of reports with ports of the sweep. If several devices have one GUID or
 * MAC, find the device that keeps it as its identity.
 *
 * For a node of the sweep at most one report is valid. A node with a host's name has the report of that host
 * (equal, or equal up to its first dot). A node without a name has the report of the only host that claims
 * it. If several hosts claim it, no report is valid for it, and each of them has a device of its own.
 */
#include <stdlib.h>
#include <string.h>

#include "topo/base/order.h"
#include "topo/join/join_state.h"
#include "topo/model/host_name.h"

/* ---- several devices with one GUID or MAC ---------------------------------------------------------- */

/* Return the former owner of the value; NULL: none, or unknown. node: with a FAB_FACT_SYSTEM_GUID, else 0. */
static const char *join_holder(const struct join *j, enum fab_fact kind, uint64_t value, uint64_t node)
{
    return j->past == NULL ? NULL : j->past->holder(j->past->cbdata, kind, value, node);
}

/*
 * Mark a device whose value another host's device reports, too. bits: JOIN_...; dispute: among the troubles
 * of its report.
 */
static void join_dispute(struct join_dispute *dispute, struct join_dev *dev, enum fab_fact kind,
                         unsigned bits, bool yields, const char *host)
{
    if (dispute->n++ == 0) {
        const char *name = kind == FAB_FACT_MAC && dev->interface != NULL ? dev->interface : dev->node_name;
        dispute->of = name != NULL ? name : dev->interface != NULL ? dev->interface : "a device";
        dispute->host = host;
        dispute->kind = kind;
    }
    dev->disputed |= (uint8_t)bits;
    if (yields)
        dev->yielded |= (uint8_t)bits;
}

/* Refuse a device: it is not joined and counts for its report. */
static void join_foreign(struct join *j, struct join_dev *dev, const char *other)
{
    struct join_trouble *trouble = &j->trouble[dev->report];
    uint32_t n = j->groups.groups[dev->group].n;
    dev->fate = JOIN_REFUSED;
    if (trouble->other == NULL)
        trouble->other = other;
    trouble->refused += n;
    j->n_refused += n;
}

void join_inconsistent(struct join *j, struct join_dev *dev)
{
    dev->fate = JOIN_ODD;
    dev->plane = FAB_NONE;
    j->trouble[dev->report].odd += j->groups.groups[dev->group].n;
}

static uint64_t value_of(const struct join_dev *dev, enum fab_fact kind)
{
    return kind == FAB_FACT_NODE_GUID     ? dev->node_guid
           : kind == FAB_FACT_PORT_GUID   ? dev->port_guid
           : kind == FAB_FACT_SYSTEM_GUID ? dev->system_guid
                                          : dev->mac;
}

/* Return the reported node GUID, whether the device goes by it or not. */
static uint64_t said_node(const struct join_dev *dev)
{
    return dev->node_guid != 0 ? dev->node_guid : dev->said_node;
}

/* Return whether the report's name is the final name of its host. */
static bool is_exact(const struct join *j, uint32_t report)
{
    return strcmp(j->host[report], j->reports[report]->host) == 0;
}

/* Choose one device of each host; stores its number + 1. Return whether there are several hosts. */
static bool claim_choose(const struct join *j, const struct fab_key *keys, uint32_t n, uint32_t *chosen)
{
    bool several = false;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t report = j->devs[keys[i].index].report;
        uint32_t *own = &chosen[j->host_group[report]];
        if (*own == 0 || (!is_exact(j, j->devs[*own - 1].report) && is_exact(j, report)))
            *own = keys[i].index + 1;
        several = several || j->host_group[report] != j->host_group[j->devs[keys[0].index].report];
    }
    return several;
}

/*
 * Find the device that gets the value, among devices of several hosts. If devices have one id, only the
 * device of one host can have the node GUID. This host is decided by now. Other hosts that report the GUID
 * for several of their devices do not get it.
 */
static const struct join_dev *find_holder(const struct join *j, enum fab_fact kind,
                                          const struct fab_key *keys, uint32_t n)
{
    const struct join_dev *first = &j->devs[keys[0].index], *held = NULL, *real = NULL;
    const bool id = kind == FAB_FACT_SYSTEM_GUID;
    const char *host = join_holder(j, kind, value_of(first, kind), id ? said_node(first) : 0);
    for (uint32_t i = 0; i < n; i++) {
        const struct join_dev *dev = &j->devs[keys[i].index];
        if (kind == FAB_FACT_PORT_GUID && dev->fate == JOIN_SWEPT)
            return dev;
        if (id && dev->swept_node != FAB_NONE)
            return dev;
        if (id && real == NULL && dev->node_guid != 0)
            real = dev;
        if (held == NULL && host != NULL && strcmp(j->host[dev->report], host) == 0)
            held = dev;
    }
    return held != NULL ? held : real != NULL ? real : first;
}

/* Leave a device out, because another report of the same host has it. */
static void leave_out(struct join *j, struct join_dev *dev, enum fab_fact kind, const struct join_dev *own)
{
    struct join_trouble *trouble = &j->trouble[dev->report];
    if (kind != FAB_FACT_MAC) {
        join_foreign(j, dev, j->reports[own->report]->host);
        return;
    }
    if (dev->plane == FAB_NONE)
        return;
    if (trouble->same_mac++ == 0) {
        trouble->mac_host = j->reports[own->report]->host;
        trouble->mac_plane = j->planes[dev->plane].name;
        trouble->mac_of = dev->interface != NULL ? dev->interface : dev->name;
    }
    dev->plane = FAB_NONE;
}

/* Remove the node GUID that a device does not go by. */
static void join_disown(struct join_dev *dev)
{
    dev->said_node = dev->node_guid;
    dev->node_guid = 0;
}

static void claim_yield(struct join_dev *dev, enum fab_fact kind)
{
    if ((kind == FAB_FACT_NODE_GUID || kind == FAB_FACT_SYSTEM_GUID) && dev->node_guid != 0)
        join_disown(dev);
    else if (kind == FAB_FACT_PORT_GUID)
        dev->port_guid = 0;
}

static void claim_resolve(struct join *j, enum fab_fact kind, const struct fab_key *keys, uint32_t n,
                          bool shared, uint32_t *chosen)
{
    static const uint8_t bits[FAB_FACTS] = {[FAB_FACT_NODE_GUID] = JOIN_NODE_GUID,
                                            [FAB_FACT_SYSTEM_GUID] = JOIN_NODE_GUID,
                                            [FAB_FACT_PORT_GUID] = JOIN_PORT_GUID,
                                            [FAB_FACT_MAC] = JOIN_MAC};
    bool several = claim_choose(j, keys, n, chosen);
    const struct join_dev *holder = several ? find_holder(j, kind, keys, n) : NULL, *other = NULL;
    for (uint32_t i = 0; i < n && several && other == NULL; i++)
        if (j->host_group[j->devs[keys[i].index].report] != j->host_group[holder->report])
            other = &j->devs[keys[i].index];
    several = other != NULL;
    for (uint32_t i = 0; i < n; i++) {
        struct join_dev *dev = &j->devs[keys[i].index];
        const struct join_dev *own = &j->devs[chosen[j->host_group[dev->report]] - 1];
        if (own->report != dev->report) {
            leave_out(j, dev, kind, own);
        } else if (own != dev && !shared) {
            join_inconsistent(j, dev);
        } else if (several) {
            bool yields = j->host_group[dev->report] != j->host_group[holder->report];
            struct join_trouble *trouble = &j->trouble[dev->report];
            join_dispute(yields ? &trouble->yielded : &trouble->kept, dev, kind, bits[kind], yields,
                         j->reports[yields ? holder->report : other->report]->host);
            if (yields)
                claim_yield(dev, kind);
        }
    }
    for (uint32_t i = 0; i < n; i++)
        chosen[j->host_group[j->devs[keys[i].index].report]] = 0;
}

void join_settle(struct join *j, enum fab_fact kind, const struct fab_key *keys, uint32_t n, bool shared,
                 uint32_t *chosen)
{
    for (uint32_t first = 0, end; first < n; first = end) {
        for (end = first + 1; end < n && keys[end].value == keys[first].value;)
            end++;
        if (end - first > 1)
            claim_resolve(j, kind, keys + first, end - first, shared, chosen);
    }
}

/*
 * As above, for the ids (node and system image GUID) of devices that share their node GUID. If no published
 * device had the id, the device that goes by its node GUID precedes the first one. keys: room for two for
 * each device.
 */
static void join_settle_ids(struct join *j, struct fab_key *keys, uint32_t *chosen)
{
    uint32_t n = 0;
    for (uint32_t d = 0; d < j->n_devs; d++) {
        const struct join_dev *dev = &j->devs[d];
        if (dev->rdma && dev->fate == JOIN_NEW && said_node(dev) != 0 && dev->system_guid != 0)
            keys[n++] = (struct fab_key){dev->system_guid, d};
    }
    fab_radix_sort(keys, keys + n, n);
    for (uint32_t i = 0; i < n; i++) /* sorting is stable: by node, then by system */
        keys[i].value = said_node(&j->devs[keys[i].index]);
    fab_radix_sort(keys, keys + n, n);
    for (uint32_t first = 0, end; first < n; first = end) {
        const uint64_t system = j->devs[keys[first].index].system_guid;
        bool apart = false;
        for (end = first; end < n && keys[end].value == keys[first].value &&
                          j->devs[keys[end].index].system_guid == system;
             end++)
            apart = apart || j->devs[keys[end].index].apart;
        if (apart)
            join_settle(j, FAB_FACT_SYSTEM_GUID, keys + first, end - first, true, chosen);
    }
}

/* ---- one node GUID, several nodes ------------------------------------------------------------------ */

/*
 * Find devices of one report that are several nodes although they have one node GUID.
 *
 * A node GUID belongs to one RDMA device. Some drivers, such as usnic, give all of their devices one GUID,
 * which then belongs to none of them. Devices are distinguished by their name, which is unique on a host. A
 * port without a name belongs to the device at its PCI function, or to the only device. Otherwise the port is
 * a device of its own, identified by its PCI function.
 */

#define FEW 16u /* devices of a report that are compared pairwise instead of being sorted */

int join_cmp_text(const char *a, const char *b)
{
    if (a == NULL || b == NULL)
        return (a == NULL) - (b == NULL);
    return strcmp(a, b);
}

/* By node GUID, then PCI function, then name. */
static int cmp_dev(const void *va, const void *vb)
{
    const struct join_dev *a = *(const struct join_dev *const *)va, *b = *(const struct join_dev *const *)vb;
    return FAB_ORDER(a->node_guid, b->node_guid) ?: join_cmp_text(a->pci, b->pci)
           ?: join_cmp_text(a->name, b->name) ?: FAB_ORDER(a, b);
}

static bool shared_guid_same_node(const struct join_dev *a, const struct join_dev *b)
{
    if (a->node_name != NULL || b->node_name != NULL)
        return join_cmp_text(a->node_name, b->node_name) == 0;
    return a->pci == NULL || b->pci == NULL || strcmp(a->pci, b->pci) == 0;
}

/*
 * Of ports with one node GUID, assign those without a name to devices. Return true if all ports belong to one
 * node.
 */
static bool find_names(struct join_dev **run, uint32_t n)
{
    const struct join_dev *named = NULL;
    bool one = true;
    for (uint32_t i = 0; i < n;
         i++) { /* at one PCI function, ports with a name come first; ports without a function come last */
        struct join_dev *dev = run[i];
        if (dev->name == NULL && dev->pci != NULL && i > 0 && join_cmp_text(dev->pci, run[i - 1]->pci) == 0)
            dev->node_name = run[i - 1]->node_name;
        if (dev->name != NULL && named == NULL)
            named = dev;
        one = one && (dev->name == NULL || strcmp(dev->name, named->name) == 0);
    }
    for (uint32_t i = 0; i < n && one && named != NULL; i++)
        if (run[i]->node_name == NULL && (run[i]->pci == NULL || named->pci == NULL))
            run[i]->node_name = named->name;
    for (uint32_t i = 1; i < n; i++)
        one = one && shared_guid_same_node(run[0], run[i]);
    return one;
}

/*
 * Split devices into several nodes. The sweep's node with this GUID is the one with a port GUID of the sweep,
 * else the first one.
 */
static void shared_guid_split(const struct join *j, struct join_dev **run, uint32_t n)
{
    const struct join_dev *real = NULL;
    bool swept = fab_inventory_find(j->swept, run[0]->node_guid) != FAB_NONE;
    for (uint32_t i = 0; i < n && swept; i++) {
        bool better = real == NULL || (run[i]->swept_node == FAB_NONE) < (real->swept_node == FAB_NONE);
        bool alike = real != NULL && (run[i]->swept_node == FAB_NONE) == (real->swept_node == FAB_NONE);
        if (better || (alike && run[i] < real))
            real = run[i];
    }
    for (uint32_t i = 0; i < n; i++) {
        run[i]->disputed |= JOIN_NODE_GUID;
        run[i]->apart =
            real == NULL || (run[i]->swept_node == FAB_NONE && !shared_guid_same_node(run[i], real));
    }
}

/*
 * Return whether there is nothing to distinguish: no two devices share a node GUID except ports of one name.
 */
static bool is_plain(struct join_dev *const *list, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < i; k++)
            if (list[i]->node_guid == list[k]->node_guid &&
                (list[i]->name == NULL || list[k]->name == NULL || strcmp(list[i]->name, list[k]->name) != 0))
                return false;
    return true;
}

/* list: room for all devices. */
static void join_shared_guid(struct join *j, struct join_dev **list)
{
    for (uint32_t r = 0; r < j->n_reports; r++) {
        uint32_t n = 0;
        for (uint32_t d = j->first_dev[r]; d < j->first_dev[r + 1]; d++)
            if (j->devs[d].rdma && j->devs[d].node_guid != 0)
                list[n++] = &j->devs[d];
        if (n <= FEW && is_plain(list, n))
            continue;
        qsort(list, n, sizeof(*list), cmp_dev);
        for (uint32_t from = 0, to; from < n; from = to) {
            for (to = from + 1; to < n && list[to]->node_guid == list[from]->node_guid;)
                to++;
            if (!find_names(list + from, to - from))
                shared_guid_split(j, list + from, to - from);
        }
    }
}

/* ---- ports of the sweep ---------------------------------------------------------------------------- */

unsigned join_take_number(uint64_t used[4], unsigned wanted, unsigned most)
{
    if (wanted == 0 || wanted > most || (used[wanted / 64] >> wanted % 64 & 1) != 0)
        for (wanted = 1; wanted <= most && (used[wanted / 64] >> wanted % 64 & 1) != 0;)
            wanted++;
    if (wanted > most)
        return 0;
    used[wanted / 64] |= UINT64_C(1) << wanted % 64;
    return wanted;
}

/* Collect ports of HCAs by GUID, then those of other nodes, which have no host. */
static uint32_t collect_ports(const struct fab_inventory *inv, struct fab_key *keys)
{
    uint32_t n = 0;
    for (unsigned others = 0; others < 2; others++)
        for (uint32_t p = 0; p < inv->n_ports; p++) {
            const struct fab_port *port = &inv->ports[p];
            unsigned kind = inv->nodes[port->node].kind;
            if (port->guid != 0 && kind != FAB_SWITCH && (kind != FAB_HCA) == others)
                keys[n++] = (struct fab_key){port->guid, p};
        }
    fab_radix_sort(keys, keys + n, n);
    return n;
}

/* Match by port GUID. GUIDs that look made up count only if the sweep has seen them. */
static void match_by_port_guid(struct join *j, const struct fab_key *keys, uint32_t n)
{
    for (uint32_t d = 0; d < j->n_devs; d++) {
        struct join_dev *dev = &j->devs[d];
        if (dev->rdma && dev->port_guid != 0)
            dev->swept_port = fab_radix_find(keys, n, dev->port_guid);
        if (dev->swept_port != FAB_NONE) {
            dev->swept_node = j->swept->ports[dev->swept_port].node;
            dev->node_guid = j->swept->nodes[dev->swept_node].guid;
        } else if (FAB_GUID_IS_MADE_UP(dev->port_guid)) {
            dev->port_guid = 0;
        }
        if (FAB_GUID_IS_MADE_UP(dev->node_guid) && fab_inventory_find(j->swept, dev->node_guid) == FAB_NONE)
            dev->node_guid = 0;
    }
}

static int cmp_name(const void *va, const void *vb)
{
    const struct join_dev *a = *(const struct join_dev *const *)va, *b = *(const struct join_dev *const *)vb;
    return strcmp(a->name, b->name) ?: FAB_ORDER(a->node_guid == 0, b->node_guid == 0)
           ?: FAB_ORDER(a->node_guid, b->node_guid) ?: FAB_ORDER(a, b);
}

/* Sort the RDMA ports of one report that have a name, by name. Return their number. */
static uint32_t join_sort_by_name(struct join *j, uint32_t first, uint32_t end, struct join_dev **list)
{
    uint32_t n = 0;
    for (uint32_t d = first; d < end; d++)
        if (j->devs[d].rdma && j->devs[d].name != NULL)
            list[n++] = &j->devs[d];
    qsort(list, n, sizeof(*list), cmp_name);
    return n;
}

/* Ports of one name belong to one node: a port without a node GUID gets the lowest one of them. */
static void fill_node_guids(struct join *j, struct join_dev **list)
{
    for (uint32_t r = 0; r < j->n_reports; r++) {
        bool missing = false;
        for (uint32_t d = j->first_dev[r]; d < j->first_dev[r + 1]; d++)
            missing = missing || (j->devs[d].rdma && j->devs[d].node_guid == 0);
        if (!missing)
            continue;
        uint32_t n = join_sort_by_name(j, j->first_dev[r], j->first_dev[r + 1], list);
        for (uint32_t i = 1; i < n; i++)
            if (list[i]->node_guid == 0 && strcmp(list[i]->name, list[i - 1]->name) == 0)
                list[i]->node_guid = list[i - 1]->node_guid;
    }
}

/*
 * Match by node GUID and port number. A port GUID that differs from the sweep's is a contradiction; a node
 * GUID that several nodes have belongs to none.
 */
static void match_by_node(struct join *j)
{
    const struct fab_inventory *inv = j->swept;
    for (uint32_t d = 0; d < j->n_devs; d++) {
        struct join_dev *dev = &j->devs[d];
        if (!dev->rdma || dev->swept_node != FAB_NONE || dev->node_guid == 0)
            continue;
        if (dev->apart) {
            join_disown(dev);
            continue;
        }
        dev->swept_node = fab_inventory_find(inv, dev->node_guid);
        if (dev->swept_node == FAB_NONE || inv->nodes[dev->swept_node].kind != FAB_HCA || dev->num == 0)
            continue;
        uint32_t p = fab_inventory_port(inv, dev->swept_node, dev->num);
        if (p != FAB_NONE && (dev->port_guid == 0 || inv->ports[p].guid == 0))
            dev->swept_port = p;
    }
}

static bool is_outdated(const struct join *j, const struct fab_node *swept, uint32_t report)
{
    const struct fab_prior_owners *past = j->past;
    return past != NULL && past->outdated != NULL &&
           past->outdated(past->cbdata, j->reports[report]->host, swept->guid);
}

/* Return the rank of a report's claim to a swept node: 0 best, 3 none. */
static unsigned join_claim_rank(const struct join *j, uint32_t node, uint32_t report)
{
    const struct fab_node *swept = &j->swept->nodes[node];
    const char *host = fab_str(j->swept, swept->host), *own = j->reports[report]->host;
    if (swept->kind != FAB_HCA)
        return 3;
    if (join_unnamed(j->swept, swept))
        return is_outdated(j, swept, report) ? 3 : 2;
    return strcmp(host, own) == 0 ? 0 : fab_same_host(host, own) ? 1 : 3;
}

/* The claims to a node of the sweep. */
struct swept_claims {
    uint32_t first, other; /* the first report, and the first of another host; FAB_NONE: none */
    uint32_t rival;        /* a report whose claim fails; FAB_NONE: none */
    bool open;             /* it belongs to no host: several hosts claim it, or did so again and again */
};

static bool is_unsettled(const struct join *j, uint32_t node)
{
    const struct fab_prior_owners *past = j->past;
    return past != NULL && past->unsettled != NULL &&
           past->unsettled(past->cbdata, j->swept->nodes[node].guid);
}

/*
 * Return whether two reports are of one host, also by a long and a short name that only these claims connect.
 */
static bool is_one_host(const struct join *j, uint32_t a, uint32_t b)
{
    return j->host_group[a] == j->host_group[b] || fab_same_host(j->reports[a]->host, j->reports[b]->host);
}

/*
 * Find the report for each node of the sweep. It is the report of the host by which the sweep names the node.
 * For a node without a name, it is the report of the only host that claims the node.
 */
static void find_owners(struct join *j, struct swept_claims *claims)
{
    for (uint32_t i = 0; i < j->swept->n_nodes; i++) {
        j->owner[i] = FAB_NONE;
        claims[i] = (struct swept_claims){FAB_NONE, FAB_NONE, FAB_NONE, false};
    }
    for (uint32_t d = 0; d < j->n_devs; d++) {
        const struct join_dev *dev = &j->devs[d];
        if (dev->swept_node == FAB_NONE)
            continue;
        uint32_t *owner = &j->owner[dev->swept_node];
        struct swept_claims *claim = &claims[dev->swept_node];
        unsigned mine = join_claim_rank(j, dev->swept_node, dev->report);
        if (mine < 3 && (*owner == FAB_NONE || mine < join_claim_rank(j, dev->swept_node, *owner)))
            *owner = dev->report;
        if (mine == 2 && claim->first == FAB_NONE)
            claim->first = dev->report;
        else if (mine == 2 && claim->other == FAB_NONE && !is_one_host(j, claim->first, dev->report))
            claim->other = dev->report;
    }
    for (uint32_t i = 0; i < j->swept->n_nodes; i++) {
        claims[i].open = claims[i].first != FAB_NONE && (claims[i].other != FAB_NONE || is_unsettled(j, i));
        if (claims[i].open)
            j->owner[i] = FAB_NONE;
        j->n_contested += claims[i].other != FAB_NONE;
    }
}

/* List the nodes that several hosts claim, by GUID, the order of the sweep's nodes. */
static bool list_contested(struct join *j, const struct swept_claims *claims)
{
    struct fab_joined *out = j->out;
    if (j->n_contested == 0)
        return true;
    out->contested = malloc(j->n_contested * sizeof(*out->contested));
    for (uint32_t i = 0; i < j->swept->n_nodes && out->contested != NULL; i++)
        if (claims[i].other != FAB_NONE)
            out->contested[out->n_contested++] = j->swept->nodes[i].guid;
    return out->contested != NULL;
}

/* Return the owner of a swept node, for a message. */
static const char *owner_name(const struct join *j, uint32_t node)
{
    const struct fab_node *swept = &j->swept->nodes[node];
    if (swept->kind != FAB_HCA)
        return fab_str(j->swept, swept->name);
    if (join_unnamed(j->swept, swept) && j->owner[node] != FAB_NONE)
        return j->reports[j->owner[node]]->host;
    return fab_str(j->swept, swept->host);
}

/* Separate a device from a swept node without a name that belongs to another host or to none. */
static void part_from_swept(struct join *j, struct join_dev *dev, struct swept_claims *claim)
{
    const uint32_t report = dev->report;
    const bool port = dev->swept_port != FAB_NONE && dev->port_guid == j->swept->ports[dev->swept_port].guid;
    const bool mine = is_one_host(j, claim->first, report) && claim->open;
    const uint32_t other = mine ? claim->other : claim->first;
    claim->rival = report;
    join_dispute(claim->open ? &j->trouble[report].open : &j->trouble[report].yielded, dev,
                 FAB_FACT_NODE_GUID, JOIN_NODE_GUID | (port ? JOIN_PORT_GUID : 0), true,
                 other == FAB_NONE ? NULL : j->reports[other]->host);
    join_disown(dev);
    if (port)
        dev->port_guid = 0;
    dev->parted = true;
    dev->swept_node = dev->swept_port = FAB_NONE;
}

/* Return whether the node has no name in the sweep and belongs to another report. */
static bool is_anybodys(const struct join *j, const struct join_dev *dev, const struct swept_claims *claim)
{
    uint32_t owner = j->owner[dev->swept_node];
    return claim->open || (owner != FAB_NONE && j->host_group[owner] != j->host_group[dev->report] &&
                           join_unnamed(j->swept, &j->swept->nodes[dev->swept_node]));
}

/* Return another report of the same host that claims a node without an owner; FAB_NONE. */
static uint32_t same_host_claims(const struct join *j, const struct swept_claims *claim, uint32_t report)
{
    const uint32_t claimed[] = {claim->first, claim->other};
    for (size_t i = 0; i < 2; i++)
        if (claimed[i] != FAB_NONE && claimed[i] != report && is_one_host(j, claimed[i], report))
            return claimed[i];
    return FAB_NONE;
}

/* Mark the owner of a node of the sweep that others claim, too. */
static void mark_contenders(struct join *j, const struct swept_claims *claims)
{
    for (uint32_t d = 0; d < j->n_devs; d++) {
        struct join_dev *dev = &j->devs[d];
        const uint32_t rival = dev->swept_node == FAB_NONE ? FAB_NONE : claims[dev->swept_node].rival;
        if (rival != FAB_NONE && (dev->fate == JOIN_SWEPT || dev->fate == JOIN_NEW))
            join_dispute(&j->trouble[dev->report].kept, dev, FAB_FACT_NODE_GUID,
                         JOIN_NODE_GUID | JOIN_PORT_GUID, false, j->reports[rival]->host);
    }
}

/*
 * Decide about the devices that claim a swept node: joined, refused, or a port that the sweep does not list.
 */
static void settle_swept(struct join *j, uint32_t *joined, struct swept_claims *claims)
{
    for (uint32_t p = 0; p < j->swept->n_ports; p++)
        joined[p] = FAB_NONE;
    for (uint32_t d = 0; d < j->n_devs; d++) {
        struct join_dev *dev = &j->devs[d];
        if (dev->swept_node == FAB_NONE)
            continue;
        const struct fab_node *node = &j->swept->nodes[dev->swept_node];
        struct swept_claims *claim = &claims[dev->swept_node];
        const uint32_t same = claim->open ? same_host_claims(j, claim, dev->report) : FAB_NONE;
        if (same != FAB_NONE) {
            join_foreign(j, dev, j->reports[same]->host);
        } else if (j->owner[dev->swept_node] != dev->report && is_anybodys(j, dev, claim)) {
            part_from_swept(j, dev, claim);
        } else if (j->owner[dev->swept_node] != dev->report) {
            join_foreign(j, dev, owner_name(j, dev->swept_node));
        } else if (dev->swept_port != FAB_NONE && joined[dev->swept_port] == FAB_NONE) {
            const struct fab_port *port = &j->swept->ports[dev->swept_port];
            joined[dev->swept_port] = d;
            dev->fate = JOIN_SWEPT;
            dev->silent = port->peer == FAB_NONE && !fab_state_is_up(port->state);
            dev->num = port->num;
        } else if (dev->swept_port == FAB_NONE && dev->num != 0 && dev->num <= node->num_ports &&
                   fab_inventory_port(j->swept, dev->swept_node, dev->num) == FAB_NONE) {
            dev->fate = JOIN_NEW;
        } else {
            join_inconsistent(j, dev);
        }
    }
}

/* Decide about the rest: each node belongs to one host, each port number and each port GUID to one device. */
static void join_assign_new(struct join *j, struct fab_key *keys, uint32_t *chosen)
{
    uint32_t n = 0;
    for (uint32_t d = 0; d < j->n_devs; d++) {
        const struct join_dev *dev = &j->devs[d];
        if (dev->fate == JOIN_NEW)
            keys[n++] = (struct fab_key){(uint64_t)dev->swept_node << 8 | dev->num, d};
    }
    fab_radix_sort(keys, keys + n, n);
    join_settle(j, FAB_FACT_PORT, keys, n, false, chosen); /* of one report: the node's owner */
    n = 0;
    for (uint32_t d = 0; d < j->n_devs; d++) {
        struct join_dev *dev = &j->devs[d];
        if (!dev->rdma || dev->fate != JOIN_OPEN)
            continue;
        dev->fate = JOIN_NEW;
        if (dev->node_guid != 0)
            keys[n++] = (struct fab_key){dev->node_guid, d};
    }
    fab_radix_sort(keys, keys + n, n);
    join_settle(j, FAB_FACT_NODE_GUID, keys, n, true, chosen);
    join_settle_ids(j, keys, chosen);
    n = 0;
    for (uint32_t d = 0; d < j->n_devs; d++) {
        const struct join_dev *dev = &j->devs[d];
        bool fills = dev->fate == JOIN_SWEPT && j->swept->ports[dev->swept_port].guid == 0;
        if ((dev->fate == JOIN_NEW || fills) && dev->port_guid != 0)
            keys[n++] = (struct fab_key){dev->port_guid, d};
    }
    fab_radix_sort(keys, keys + n, n);
    join_settle(j, FAB_FACT_PORT_GUID, keys, n, false, chosen);
}

int join_match(struct join *j)
{
    const struct fab_inventory *inv = j->swept;
    size_t most = j->n_devs > inv->n_ports ? j->n_devs : inv->n_ports;
    struct fab_key *keys = join_temp(j, 2 * most, sizeof(*keys));
    struct join_dev **list = join_temp(j, j->n_devs, sizeof(*list));
    uint32_t *joined = join_temp(j, inv->n_ports, sizeof(*joined));
    struct swept_claims *claims = join_temp(j, inv->n_nodes, sizeof(*claims));
    uint32_t *chosen = join_temp(j, j->n_reports, sizeof(*chosen));
    j->owner = join_alloc(j, inv->n_nodes, sizeof(*j->owner));
    if (j->no_memory)
        return PMIXFAB_ERR_NOMEM;
    match_by_port_guid(j, keys, collect_ports(inv, keys));
    fill_node_guids(j, list);
    join_shared_guid(j, list);
    match_by_node(j);
    find_owners(j, claims);
    if (!list_contested(j, claims))
        return PMIXFAB_ERR_NOMEM;
    settle_swept(j, joined, claims);
    mark_contenders(j, claims);
    join_assign_new(j, keys, chosen);
    return PMIXFAB_OK;
}
