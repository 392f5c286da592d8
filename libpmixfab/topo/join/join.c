/* join.c - the passes of a join, and what is said of hosts whose reports do not fit. */
#include "topo/join/join.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "topo/base/natural.h"
#include "topo/base/search.h"
#include "topo/join/join_state.h"
#include "topo/model/host_name.h"

/* ---- memory, and what is made up ------------------------------------------------------------------- */

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

/* ---- what the hosts of the reports are called: as the sweep calls them, where it knows them -------- */

bool join_unnamed(const struct fab_inventory *inv, const struct fab_node *node)
{
    const char *host = fab_str(inv, node->host);
    return node->unnamed != 0 || (host[0] == 'l' && fab_same_host(host, "localhost"));
}

static uint64_t short_hash(const char *host)
{
    return XXH3_64bits(host, strcspn(host, "."));
}

/* A host that the sweep knows by name. */
struct known {
    uint64_t hash; /* of its name up to the first dot */
    const char *host;
};

static int cmp_known(const void *va, const void *vb)
{
    const struct known *a = va, *b = vb;
    return fab_natural_cmp(a->host, b->host);
}

/* Hosts of one hash, which are one host mostly: each once, by name. Returns how many. */
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

/* Each once, by hash, then name. `hosts` has room for all nodes, `keys` for twice as many. */
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

/* The sweep's name for a report's host, else its own. */
static const char *join_host_name(const struct known *hosts, uint32_t n, const char *own)
{
    uint64_t hash = short_hash(own);
    struct fab_host_choice choice = {0};
    uint32_t at = FAB_LOWER_BOUND(0, n, i, hosts[i].hash < hash);
    for (; at < n && hosts[at].hash == hash; at++)
        fab_choose_host(&choice, own, hosts[at].host);
    return choice.host == NULL ? own : choice.host;
}

/* Reports of one host in the end are one group: node1's and node1.cluster's. */
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

static int join_hosts(struct join *j)
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

/* ---- what is said of hosts whose reports do not fit ------------------------------------------------ */

/* A line about n things of a host, of which the first is told; 0: none. */
__attribute__((format(printf, 5, 6))) static void say(const struct fab_join_input *to, const char *host,
                                                      uint32_t n, uint32_t told, const char *fmt, ...)
{
    char line[1200];
    va_list args;
    if (n == 0)
        return;
    const size_t at = (size_t)snprintf(line, sizeof(line), "%s: ", host);
    va_start(args, fmt);
    const int len = vsnprintf(line + at, sizeof(line) - at, fmt, args);
    va_end(args);
    const size_t end = at + (size_t)(len < 0 ? 0 : len);
    if (n > told && end < sizeof(line))
        snprintf(line + end, sizeof(line) - end, " (and %" PRIu32 " more)", n - told);
    to->remark(line, to->cbdata);
}

static const char *kind_text(enum fab_fact kind)
{
    return kind == FAB_FACT_MAC ? "MAC" : kind == FAB_FACT_PORT_GUID ? "port GUID" : "node GUID";
}

static void join_report_troubles(const struct join *j, const struct fab_join_input *to)
{
    for (uint32_t r = 0; r < j->n_reports && to->remark != NULL; r++) {
        const struct join_trouble *t = &j->trouble[r];
        const char *host = j->reports[r]->host, *other = t->other == NULL ? "" : t->other;
        say(to, host, t->refused, t->refused, "%" PRIu32 " %s not joined: the devices are those of %.255s",
            t->refused, t->refused == 1 ? "item is" : "items are", other[0] == '\0' ? "no host" : other);
        say(to, host, t->odd, t->odd, "%" PRIu32 " %s left out: against what the fabric or other items say",
            t->odd, t->odd == 1 ? "item is" : "items are");
        say(to, host, t->yielded.n, 1, "the %s of %.64s is that of a device of %.255s, too, which keeps it",
            kind_text(t->yielded.kind), t->yielded.of, t->yielded.host);
        say(to, host, t->kept.n, 1, "the %s of %.64s is claimed by %.255s, too", kind_text(t->kept.kind),
            t->kept.of, t->kept.host);
        say(to, host, t->two_planes, 1, "%.64s has addresses in planes %.64s and %.64s, it stands in %.64s",
            t->two_planes_of, t->first_plane, t->second_plane, t->first_plane);
        say(to, host, t->same_mac, 1, "%.64s is left out of plane %.64s, its MAC is that of a device of %s",
            t->mac_of, t->mac_plane, t->mac_host);
    }
}

/* ---- all passes ------------------------------------------------------------------------------------ */

/* A report with what it is known by. */
struct known_report {
    const struct fab_report *report;
    uint64_t digest;
};

static int cmp_report(const void *va, const void *vb)
{
    const struct known_report *a = va, *b = vb;
    return fab_natural_cmp(a->report->host, b->report->host);
}

/* Reports by host: who comes first decides some things, the caller's order shall not. */
static int sort_reports(struct join *j)
{
    bool sorted = true;
    struct known_report *list = join_temp(j, j->n_reports, sizeof(*list));
    const struct fab_report **reports = join_alloc(j, j->n_reports, sizeof(const struct fab_report *));
    uint64_t *digests = join_alloc(j, j->n_reports, sizeof(*digests));
    if (j->no_memory)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t r = 0; r < j->n_reports; r++) {
        list[r] = (struct known_report){j->reports[r], j->digests == NULL ? 0 : j->digests[r]};
        sorted = sorted && (r == 0 || cmp_report(&list[r - 1], &list[r]) <= 0);
    }
    if (!sorted)
        qsort(list, j->n_reports, sizeof(*list), cmp_report);
    for (uint32_t r = 0; r < j->n_reports; r++) {
        reports[r] = list[r].report;
        digests[r] = list[r].digest;
    }
    j->reports = reports;
    j->digests = digests;
    return PMIXFAB_OK;
}

/* What each report's devices are. Those of one report are neighbours. */
static int join_count_devices(struct join *j)
{
    struct fab_joined *out = j->out;
    uint32_t *counted = join_temp(j, out->inv.n_ports, sizeof(*counted)); /* for which report, from 1 */
    out->hosts = calloc(j->n_reports + 1u, sizeof(*out->hosts));
    if (counted == NULL || out->hosts == NULL)
        return PMIXFAB_ERR_NOMEM;
    out->n_hosts = j->n_reports;
    for (uint32_t d = 0; d < j->n_devs; d++) {
        const struct join_dev *dev = &j->devs[d];
        struct fab_joined_host *host = &out->hosts[dev->report];
        if (dev->port == FAB_NONE || counted[dev->port] == dev->report + 1 ||
            (out->details.seen[dev->port] & FAB_SEEN_NODE) == 0)
            continue;
        counted[dev->port] = dev->report + 1;
        host->devices++;
        host->unseen +=
            out->inv.ports[dev->port].sibling == 0 &&
            (out->details.seen[dev->port] & (FAB_SEEN_SUBNET | FAB_SEEN_MISSING)) != FAB_SEEN_SUBNET;
    }
    return PMIXFAB_OK;
}

static int join_run(struct join *j, const struct fab_ethernet_plane *planes, uint32_t n_planes)
{
    j->trouble = join_alloc(j, j->n_reports, sizeof(*j->trouble));
    int rc = j->no_memory ? PMIXFAB_ERR_NOMEM : join_planes_read(j, planes, n_planes);
    int (*const passes[])(struct join *) = {
        sort_reports,  join_cache_pair,   join_read,  join_hosts, join_match,   join_ethernet,     join_nodes,
        join_switches, join_number_guids, join_build, join_names, join_details, join_count_devices};
    for (size_t i = 0; i < sizeof(passes) / sizeof(passes[0]) && rc == PMIXFAB_OK; i++) {
        rc = passes[i](j);
        join_free_blocks(&j->temporary);
    }
    return rc;
}

static void join_release(struct join *j)
{
    join_groups_free(&j->groups);
    free(j->words);
    free(j->switches);
    free(j->sources);
    join_free_blocks(&j->kept);
    join_free_blocks(&j->temporary);
}

static int join_all(struct fab_join_cache *cache, const struct fab_join_input *input, struct fab_joined *out,
                    struct fab_err *err)
{
    const struct fab_inventory *swept = input->swept;
    if (out == NULL)
        return PMIXFAB_ERR_INVAL;
    memset(out, 0, sizeof(*out));
    if (err != NULL)
        err->text[0] = '\0';
    if (swept == NULL || !swept->finished)
        return fab_fail(err, PMIXFAB_ERR_INVAL, "joining: the sweep's inventory is not finished");
    for (uint32_t r = 0; r < input->n_reports; r++)
        if (input->reports[r] == NULL || !input->reports[r]->finished)
            return fab_fail(err, PMIXFAB_ERR_INVAL, "joining: a host's report is not finished");
    struct join j = {.swept = swept,
                     .reports = input->reports,
                     .n_reports = input->n_reports,
                     .past = input->past,
                     .cache = cache,
                     .digests = cache == NULL ? NULL : input->digests,
                     .err = err,
                     .unattached = FAB_NONE,
                     .out = out};
    int rc = join_run(&j, input->planes, input->n_planes);
    out->n_refused = j.n_refused;
    if (rc == PMIXFAB_OK)
        join_report_troubles(&j, input);
    else
        fab_joined_destroy(out);
    if (rc == PMIXFAB_OK && cache != NULL)
        join_cache_keep(&j);
    join_release(&j);
    if (rc != PMIXFAB_OK && (err == NULL || err->text[0] == '\0'))
        fab_fail(err, rc, "joining %" PRIu32 " reports to a fabric of %" PRIu32 " nodes: %s",
                 input->n_reports, swept->n_nodes, pmixfab_strerror(rc));
    return rc;
}

int fab_join(struct fab_join_cache *cache, const struct fab_join_input *input, struct fab_joined *out,
             struct fab_err *err)
{
    if (input->digests == NULL)
        cache = NULL;
    int rc = join_all(cache, input, out, err);
    if (cache == NULL || (rc != PMIXFAB_ERR_NOMEM && rc != PMIXFAB_ERR_RANGE))
        return rc;
    join_cache_clear(cache); /* there may be room without it */
    return join_all(NULL, input, out, err);
}

void fab_joined_destroy(struct fab_joined *joined)
{
    if (joined == NULL)
        return;
    fab_inventory_destroy(&joined->inv);
    free(joined->details.first);
    free(joined->details.facts);
    free(joined->details.places);
    free(joined->details.seen);
    free(joined->details.pool);
    free(joined->hosts);
    memset(joined, 0, sizeof(*joined));
}
