/* join_hosts.c - used by all passes: memory, generated GUIDs, and the names of the hosts of reports. */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "topo/base/natural.h"
#include "topo/base/search.h"
#include "topo/join/join_state.h"
#include "topo/model/host_name.h"

/* ---- memory and generated GUIDs --------------------------------------------------------------------- */

static void *join_block(struct join *j, struct join_block **list, size_t n, size_t size)
{
    struct join_block *block = calloc(1, sizeof(*block) + (n + 1) * size);
    if (block == NULL) {
        j->no_memory = true;
        return NULL;
    }
    block->next = *list;
    *list = block;
    return block->memory;
}

void *join_alloc(struct join *j, size_t n, size_t size)
{
    return join_block(j, &j->kept, n, size);
}

void *join_temp(struct join *j, size_t n, size_t size)
{
    return join_block(j, &j->temporary, n, size);
}

void join_free_blocks(struct join_block **list)
{
    while (*list != NULL) {
        struct join_block *block = *list;
        *list = block->next;
        free(block);
    }
}

uint64_t join_made_up(const char *kind, const char *a, const char *b, uint64_t number)
{
    uint64_t hash = XXH3_64bits_withSeed(kind, strlen(kind), number);
    if (a != NULL)
        hash = XXH3_64bits_withSeed(a, strlen(a), hash);
    if (b != NULL)
        hash = XXH3_64bits_withSeed(b, strlen(b), hash + 1);
    return FAB_ETHERNET_GUID | hash >> 16;
}

/* ---- names of the hosts of reports: those of the sweep, where it has them --------------------------- */

bool join_unnamed(const struct fab_inventory *inv, const struct fab_node *node)
{
    const char *host = fab_str(inv, node->host);
    return node->unnamed != 0 || (host[0] == 'l' && fab_same_host(host, "localhost"));
}

static uint64_t short_hash(const char *host)
{
    return XXH3_64bits(host, strcspn(host, "."));
}

/* A host with a name in the sweep. */
struct known {
    uint64_t hash; /* of its name up to the first dot */
    const char *host;
};

static int cmp_known(const void *va, const void *vb)
{
    const struct known *a = va, *b = vb;
    return fab_natural_cmp(a->host, b->host);
}

/* Sort the hosts of one hash, mostly one host, by name, each once. Return their number. */
static uint32_t sort_run(struct known *run, uint32_t n)
{
    uint32_t kept = 1;
    bool one = true;
    for (uint32_t i = 1; i < n && one; i++)
        one = strcmp(run[0].host, run[i].host) == 0;
    if (one)
        return 1;
    qsort(run, n, sizeof(*run), cmp_known);
    for (uint32_t i = 1; i < n; i++)
        if (strcmp(run[kept - 1].host, run[i].host) != 0)
            run[kept++] = run[i];
    return kept;
}

/* List each host once, by hash, then name. `hosts` has room for all nodes, `keys` for twice as many. */
static uint32_t join_collect_hosts(const struct fab_inventory *inv, struct known *hosts, struct fab_key *keys)
{
    uint32_t n = 0, kept = 0;
    for (uint32_t i = 0; i < inv->n_nodes; i++) {
        const struct fab_node *node = &inv->nodes[i];
        if (node->kind == FAB_HCA && !join_unnamed(inv, node))
            keys[n++] = (struct fab_key){short_hash(fab_str(inv, node->host)), i};
    }
    fab_radix_sort(keys, keys + n, n);
    for (uint32_t first = 0, end; first < n; first = end) {
        for (end = first; end < n && keys[end].value == keys[first].value; end++)
            hosts[kept + end - first] =
                (struct known){keys[end].value, fab_str(inv, inv->nodes[keys[end].index].host)};
        kept += sort_run(hosts + kept, end - first);
    }
    return kept;
}

/* Return the sweep's name for a report's host, else the report's. */
static const char *join_host_name(const struct known *hosts, uint32_t n, const char *own)
{
    uint64_t hash = short_hash(own);
    struct fab_host_choice choice = {0};
    uint32_t at = FAB_LOWER_BOUND(0, n, i, hosts[i].hash < hash);
    for (; at < n && hosts[at].hash == hash; at++)
        fab_choose_host(&choice, own, hosts[at].host);
    return choice.host == NULL ? own : choice.host;
}

/* Put reports of one host into one group: node1's and node1.cluster's. */
static void group_reports(struct join *j, struct fab_key *keys)
{
    for (uint32_t r = 0; r < j->n_reports; r++)
        keys[r] = (struct fab_key){XXH3_64bits(j->host[r], strlen(j->host[r])), r};
    fab_radix_sort(keys, keys + j->n_reports, j->n_reports);
    for (uint32_t i = 0; i < j->n_reports; i++) {
        bool same = i > 0 && keys[i].value == keys[i - 1].value;
        j->host_group[keys[i].index] = same ? j->host_group[keys[i - 1].index] : keys[i].index;
        j->alone[keys[i].index] = !same;
        if (same)
            j->alone[keys[i - 1].index] = false;
    }
}

int join_hosts(struct join *j)
{
    struct known *hosts = join_temp(j, j->swept->n_nodes, sizeof(*hosts));
    const size_t most = j->n_reports > j->swept->n_nodes ? j->n_reports : j->swept->n_nodes;
    struct fab_key *keys = join_temp(j, 2 * most, sizeof(*keys));
    j->host = join_alloc(j, j->n_reports, sizeof(*j->host));
    j->host_group = join_alloc(j, j->n_reports, sizeof(*j->host_group));
    j->alone = join_alloc(j, j->n_reports, sizeof(*j->alone));
    if (j->no_memory)
        return PMIXFAB_ERR_NOMEM;
    uint32_t n = join_collect_hosts(j->swept, hosts, keys);
    for (uint32_t r = 0; r < j->n_reports; r++)
        j->host[r] = join_host_name(hosts, n, j->reports[r]->host);
    group_reports(j, keys);
    return PMIXFAB_OK;
}
