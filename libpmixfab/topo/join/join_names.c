/*
 * join_names.c - give devices the names of their hosts where these are unique.
 *
 * Two devices of a host that would have one name keep their old ones: the sweep's name, or the GUID if no
 * sweep saw them. After some rounds of that (a kept name may be the one that another device wants), all that
 * still want another name go without.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "topo/base/order.h"
#include "topo/join/join_state.h"

#define ROUNDS 4

/* An HCA of a host. */
struct entry {
    const char *name; /* the present choice */
    uint32_t node;
    bool wants; /* the name is the one from its host */
};

struct naming {
    struct join *j;
    const char **wanted; /* of each node; NULL: no other than its present name */
    uint32_t *from;      /* of each node: the port with that name */
    struct fab_key *keys;
    struct entry *entries; /* of one host */
    char (*guids)[20];     /* of each node without a name */
};

static int cmp_entry(const void *va, const void *vb)
{
    const struct entry *a = va, *b = vb;
    return strcmp(a->name, b->name) ?: FAB_ORDER(a->node, b->node);
}

static void fall_back(struct naming *naming, struct entry *entry)
{
    const struct fab_inventory *inv = &naming->j->out->inv;
    const struct fab_node *node = &inv->nodes[entry->node];
    char *guid = naming->guids[entry->node];
    entry->wants = false;
    entry->name = fab_str(inv, node->name);
    if (node->name != 0 || fab_inventory_find(naming->j->swept, node->guid) != FAB_NONE)
        return;
    snprintf(guid, sizeof(naming->guids[0]), "0x%016" PRIx64, node->guid);
    entry->name = guid;
}

/* Run one round over the names of a host; return true if a device gave its name up. */
static bool settle_round(struct naming *naming, uint32_t n, bool all)
{
    struct entry *entries = naming->entries;
    bool changed = false;
    qsort(entries, n, sizeof(*entries), cmp_entry);
    for (uint32_t first = 0, end; first < n; first = end) {
        const char *name = entries[first].name; /* a device that gives up gets another one */
        for (end = first + 1; end < n && strcmp(entries[end].name, name) == 0;)
            end++;
        for (uint32_t i = first; i < end && (end - first > 1 || all); i++) {
            if (!entries[i].wants)
                continue;
            fall_back(naming, &entries[i]);
            naming->wanted[entries[i].node] = NULL;
            changed = true;
        }
    }
    return changed;
}

static void naming_resolve(struct naming *naming, uint32_t n)
{
    for (unsigned round = 0; round < ROUNDS; round++)
        if (!settle_round(naming, n, false))
            return;
    settle_round(naming, n, true);
}

/* Collect the name that the host has for each node: that of its port with the lowest number. */
static void collect_wishes(struct naming *naming)
{
    const struct join *j = naming->j;
    for (uint32_t d = 0; d < j->n_devs; d++) {
        const struct join_dev *dev = &j->devs[d];
        const char *name = dev->rdma ? dev->name : dev->interface;
        if (dev->port == FAB_NONE || name == NULL)
            continue;
        uint32_t node = j->out->inv.ports[dev->port].node;
        if (naming->wanted[node] == NULL || dev->port < naming->from[node]) {
            naming->wanted[node] = name;
            naming->from[node] = dev->port;
        }
    }
}

/* Sort HCAs by a hash of their host: those of one host are neighbours. */
static uint32_t naming_sort_by_host(struct naming *naming)
{
    const struct fab_inventory *inv = &naming->j->out->inv;
    uint32_t n = 0;
    for (uint32_t i = 0; i < inv->n_nodes; i++) {
        const char *host = fab_str(inv, inv->nodes[i].host);
        if (inv->nodes[i].kind == FAB_HCA)
            naming->keys[n++] = (struct fab_key){XXH3_64bits(host, strlen(host)), i};
    }
    fab_radix_sort(naming->keys, naming->keys + n, n);
    return n;
}

static void settle_all(struct naming *naming)
{
    const struct fab_inventory *inv = &naming->j->out->inv;
    const uint32_t n = naming_sort_by_host(naming);
    for (uint32_t first = 0, end; first < n; first = end) {
        bool any = false;
        for (end = first; end < n && naming->keys[end].value == naming->keys[first].value; end++) {
            uint32_t node = naming->keys[end].index;
            struct entry *entry = &naming->entries[end - first];
            *entry = (struct entry){naming->wanted[node], node, naming->wanted[node] != NULL};
            if (!entry->wants)
                fall_back(naming, entry);
            any = any || entry->wants || inv->nodes[node].name == 0;
        }
        if (any)
            naming_resolve(naming, end - first);
    }
}

static int naming_apply(struct naming *naming)
{
    struct fab_inventory *inv = &naming->j->out->inv;
    for (uint32_t i = 0; i < inv->n_nodes; i++) {
        struct fab_node *node = &inv->nodes[i];
        const char *name = naming->wanted[i] != NULL ? naming->wanted[i] : naming->guids[i];
        if (name[0] == '\0' || (naming->wanted[i] != NULL && strcmp(fab_str(inv, node->name), name) == 0))
            continue;
        node->name = fab_inventory_string(inv, name, strlen(name));
        if (node->name == FAB_NONE)
            return PMIXFAB_ERR_NOMEM;
    }
    return PMIXFAB_OK;
}

int join_names(struct join *j)
{
    const uint32_t n = j->out->inv.n_nodes;
    struct naming naming = {.j = j};
    if (j->n_devs == 0)
        return PMIXFAB_OK;
    naming.wanted = join_temp(j, n, sizeof(*naming.wanted));
    naming.from = join_temp(j, n, sizeof(*naming.from));
    naming.keys = join_temp(j, 2 * (size_t)n, sizeof(*naming.keys));
    naming.entries = join_temp(j, n, sizeof(*naming.entries));
    naming.guids = join_temp(j, n, sizeof(*naming.guids));
    if (j->no_memory)
        return PMIXFAB_ERR_NOMEM;
    collect_wishes(&naming);
    settle_all(&naming);
    return naming_apply(&naming) ?: fab_inventory_mark_names(&j->out->inv);
}
