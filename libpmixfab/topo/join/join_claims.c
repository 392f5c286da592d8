/* join_claims.c - several devices with one GUID or MAC: which of them goes by it. */
#include <stdlib.h>
#include <string.h>

#include "topo/join/join_state.h"

const char *join_holder(const struct join *j, enum fab_fact kind, uint64_t value, uint64_t node)
{
    return j->past == NULL ? NULL : j->past->holder(j->past->cbdata, kind, value, node);
}

void join_dispute(struct join *j, struct join_dev *dev, enum fab_fact kind, unsigned bits, bool yields,
                  const char *host)
{
    struct join_trouble *trouble = &j->trouble[dev->report];
    struct join_dispute *dispute = yields ? &trouble->yielded : &trouble->kept;
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

void join_foreign(struct join *j, struct join_dev *dev, const char *other)
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
    j->trouble[dev->report].odd += j->groups.groups[dev->group].n;
}

static uint64_t value_of(const struct join_dev *dev, enum fab_fact kind)
{
    return kind == FAB_FACT_NODE_GUID     ? dev->node_guid
           : kind == FAB_FACT_PORT_GUID   ? dev->port_guid
           : kind == FAB_FACT_SYSTEM_GUID ? dev->system_guid
                                          : dev->mac;
}

/* The node GUID that it says, whether it goes by it or not. */
static uint64_t said_node(const struct join_dev *dev)
{
    return dev->node_guid != 0 ? dev->node_guid : dev->said_node;
}

/* Has this report the name that its host has in the end? */
static bool is_exact(const struct join *j, uint32_t report)
{
    return strcmp(j->host[report], j->reports[report]->host) == 0;
}

/* Of each host the device that is meant, plus 1. Returns whether there are several hosts. */
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

/* Of several hosts' devices the one that goes by it. Of those with one id, only one host's can go by the node
 * GUID, which is settled by now: others that give it to several of theirs do not take it away. */
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

/* Another report of the same host speaks of it. */
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
            join_dispute(j, dev, kind, bits[kind], yields,
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

void join_settle_ids(struct join *j, struct fab_key *keys, uint32_t *chosen)
{
    uint32_t n = 0;
    for (uint32_t d = 0; d < j->n_devs; d++) {
        const struct join_dev *dev = &j->devs[d];
        if (dev->rdma && dev->fate == JOIN_NEW && said_node(dev) != 0 && dev->system_guid != 0)
            keys[n++] = (struct fab_key){dev->system_guid, d};
    }
    fab_radix_sort(keys, keys + n, n);
    for (uint32_t i = 0; i < n; i++) /* sorting keeps the order of those alike: by node, then by system */
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
