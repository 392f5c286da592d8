/*
 * units.c - find leaves that serve the same hosts.
 *
 * Two leaves belong together if more than half of the hosts of each have a device on the other, and at least
 * two hosts do. A set of leaves that belong together, directly or through others, is a unit if its hosts have
 * a device on more than half of its leaves. Otherwise (hosts spread over a ring of leaves) there is no unit.
 * So a misplugged cable joins no units. A storage leaf with devices of hosts of all units does not join them
 * either.
 */
#include "topo/plane/units.h"

#include <string.h>
#include <xxhash.h>

#include "topo/base/natural.h"
#include "topo/base/order.h"
#include "topo/base/radix.h"
#include "topo/plane/layout.h"

/* ---- switches in the order of their names ---------------------------------------------------------- */

struct ranked_switch {
    const char *name;
    uint64_t guid;
    uint32_t sw;
    uint8_t ranked;
};

static int geometry_compare_names(const void *x, const void *y)
{
    const struct ranked_switch *a = x, *b = y;
    return FAB_ORDER(a->ranked, b->ranked) ?: fab_natural_cmp(a->name, b->name)
           ?: FAB_ORDER(a->guid, b->guid);
}

int fab_rank_by_name(const struct fab_plane *plane, const uint8_t *ranked, uint32_t *pods, uint32_t *rank)
{
    uint32_t n = 0, n_pods = 0;
    struct ranked_switch *order = fab_array(plane->n_switches, sizeof *order);
    uint32_t *number = fab_array((size_t)2 * plane->n_switches, sizeof *number); /* per pod */
    int rc = PMIXFAB_ERR_NOMEM;

    if (order == NULL || number == NULL)
        goto cleanup;
    uint32_t *count = number + plane->n_switches;
    for (uint32_t s = 0; s < plane->n_switches; s++) {
        const struct fab_node *node = &plane->inv->nodes[plane->switches[s].node];
        number[s] = FAB_NONE;
        if (ranked[s])
            order[n++] = (struct ranked_switch){fab_str(plane->inv, node->name), node->guid, s, ranked[s]};
    }
    qsort(order, n, sizeof *order, geometry_compare_names);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t s = order[i].sw, pod = pods[s];
        if (number[pod] == FAB_NONE)
            number[pod] = n_pods++;
        rank[s] = count[pod]++;
    }
    for (uint32_t s = 0; s < plane->n_switches; s++)
        if (pods[s] != FAB_NONE && number[pods[s]] != FAB_NONE)
            pods[s] = number[pods[s]];
    rc = 0;

cleanup:
    free(order);
    free(number);
    return rc;
}

/* ---- units and their leaves ------------------------------------------------------------------------ */

#define UNITS_MOST_DEVICES 64 /* of a host */

struct rail_leaf {
    uint32_t sw, unit;
    uint64_t places; /* sum of the places of its devices in their hosts */
    uint32_t n;      /* number of those devices */
    uint32_t order;  /* among the leaves of its unit */
    uint32_t best, votes;
};

struct rail_unit {
    uint32_t unit, first, n; /* its leaves */
    uint32_t hosts, full;    /* with home in it; with a device on each leaf */
};

struct units_work {
    const struct fab_plane *plane;
    struct fab_units *out;
    uint32_t *first;   /* n_switches + 1: the devices of switch s are devices[first[s] .. first[s+1]-1] */
    uint32_t *devices; /* ascending, so those of one host are neighbours */
    uint32_t *n_hosts; /* per switch: hosts that count */
    uint32_t *set;     /* disjoint sets of switches */
    uint32_t *rank;    /* per switch of a unit: its rank by name among the leaves of the unit */
    uint32_t *scratch; /* three numbers for each switch */
    /* for rails */
    uint32_t *home;  /* per host: the unit with more than half of its devices that are in units; FAB_NONE */
    uint8_t *full;   /* per host */
    uint32_t *alike; /* per device: a number for its name and port */
    uint32_t n_alike;
    struct rail_leaf *leaves, **chosen; /* chosen: room for the leaves of a unit */
    struct rail_unit *list;             /* of units */
    uint32_t n_leaves;
    uint32_t *said, *votes;  /* per number: the rail of most, by cancelling out */
    uint32_t *taken, *tally; /* per rail, of which there are at most as many as leaves */
};

/*
 * Return whether a host counts as evidence. A host named by its GUID may be a part of any other host. A host
 * with more ports than a host can have is several hosts with one name ("localhost").
 */
static bool units_host_counts(const struct fab_plane *plane, const struct fab_host *host)
{
    const struct fab_inventory *inv = plane->inv;
    uint32_t cables = 0; /* functions of a card have none */
    for (uint32_t i = host->first; i < host->first + host->n && cables <= UNITS_MOST_DEVICES; i++)
        cables += inv->ports[plane->devices[i].port].peer != FAB_NONE;
    return cables <= UNITS_MOST_DEVICES &&
           !inv->nodes[inv->ports[plane->devices[host->first].port].node].unnamed;
}

/* ---- rails ----------------------------------------------------------------------------------------- */

/*
 * Match the leaves of different units to rails, and find the cables on another rail.
 *
 * Within a unit the rails are its leaves. Leaves of different units are matched by devices: those of one name
 * and port ("mlx5_3") are on one rail. Units with other names, or without names, are matched in order: their
 * leaves are in the order of the devices in their hosts. The unit with most leaves comes first, because no
 * rail is absent there. Only hosts with a device on every leaf of their unit count, because the names of the
 * remaining devices of other hosts may have changed.
 */

#define FEWEST_ALIKE 3 /* with this many devices of one name, the majority decides their place */

static uint32_t rails_unit_of(const struct units_work *work, uint32_t device)
{
    uint32_t sw = work->plane->devices[device].sw;
    return sw == FAB_NONE ? FAB_NONE : work->out->unit[sw];
}

/* ---- home units of hosts -------------------------------------------------------------------------- */

static uint32_t rails_home(const struct units_work *work, const struct fab_host *host)
{
    uint32_t home = FAB_NONE, votes = 0, all = 0, here = 0;
    for (uint32_t d = host->first; d < host->first + host->n; d++) {
        uint32_t unit = rails_unit_of(work, d);
        if (unit == FAB_NONE)
            continue;
        all++;
        if (votes == 0)
            home = unit;
        votes += home == unit ? 1 : -1u;
    }
    for (uint32_t d = host->first; d < host->first + host->n; d++)
        here += home != FAB_NONE && rails_unit_of(work, d) == home;
    return 2 * here > all ? home : FAB_NONE;
}

static void rails_find_homes(struct units_work *work)
{
    const struct fab_plane *plane = work->plane;
    uint32_t *seen = work->scratch;
    memset(seen, 0, plane->n_switches * sizeof *seen);
    for (uint32_t h = 0; h < plane->n_hosts; h++) {
        const struct fab_host *host = &plane->hosts[h];
        uint32_t home = units_host_counts(plane, host) ? rails_home(work, host) : FAB_NONE, leaves = 0;
        work->home[h] = home;
        if (home == FAB_NONE)
            continue;
        for (uint32_t d = host->first; d < host->first + host->n; d++) {
            if (rails_unit_of(work, d) != home || seen[plane->devices[d].sw] == h + 1)
                continue;
            seen[plane->devices[d].sw] = h + 1;
            leaves++;
        }
        work->full[h] = leaves == work->list[home].n;
        work->list[home].hosts++;
        work->list[home].full += work->full[h];
    }
}

/* Return whether a device counts as evidence for its leaf's rail. */
static bool rails_asked(const struct units_work *work, uint32_t device)
{
    uint32_t h = work->plane->devices[device].host, home = work->home[h];
    return home != FAB_NONE && rails_unit_of(work, device) == home &&
           (work->full[h] || work->list[home].full == 0);
}

/* ---- leaves in order ------------------------------------------------------------------------------- */

static int rail_compare_leaves(const void *x, const void *y)
{
    const struct rail_leaf *a = x, *b = y;
    return FAB_ORDER(a->unit, b->unit) ?: FAB_ORDER(a->places * b->n, b->places * a->n)
           ?: FAB_ORDER(a->order, b->order);
}

/* Sort the leaves of each unit by the places of their devices in the hosts, then by name. */
static void rails_sort_leaves(struct units_work *work)
{
    const struct fab_plane *plane = work->plane;
    uint32_t *leaf_of = work->scratch;
    for (uint32_t s = 0, at = 0; s < plane->n_switches; s++) {
        if (work->out->unit[s] == FAB_NONE)
            continue;
        leaf_of[s] = at;
        work->leaves[at++] = (struct rail_leaf){.sw = s, .unit = work->out->unit[s], .order = work->rank[s]};
    }
    for (uint32_t h = 0; h < plane->n_hosts; h++) {
        const struct fab_host *host = &plane->hosts[h];
        uint32_t place = 0;
        for (uint32_t d = host->first; work->full[h] && d < host->first + host->n; d++) {
            if (rails_unit_of(work, d) != work->home[h])
                continue;
            work->leaves[leaf_of[plane->devices[d].sw]].places += place++;
            work->leaves[leaf_of[plane->devices[d].sw]].n++;
        }
    }
    qsort(work->leaves, work->n_leaves, sizeof *work->leaves, rail_compare_leaves);
    for (uint32_t i = 0; i < work->n_leaves; i++)
        work->leaves[i].order = i;
}

/* Give devices of one name and port the same number. */
static int rails_number_alike(struct units_work *work)
{
    const struct fab_plane *plane = work->plane;
    const struct fab_inventory *inv = plane->inv;
    struct fab_key *keys = fab_array((size_t)2 * plane->n_devices, sizeof *keys);
    if (keys == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t i = 0; i < plane->n_devices; i++) {
        const struct fab_port *port = &inv->ports[plane->devices[i].port];
        const char *name = fab_str(inv, inv->nodes[port->node].name);
        keys[i] = (struct fab_key){XXH3_64bits_withSeed(name, strlen(name), port->num), i};
    }
    fab_radix_sort(keys, keys + plane->n_devices, plane->n_devices);
    for (uint32_t i = 0; i < plane->n_devices; i++) {
        work->n_alike += i == 0 || keys[i].value != keys[i - 1].value;
        work->alike[keys[i].index] = work->n_alike - 1;
    }
    free(keys);
    return 0;
}

/* ---- matching units -------------------------------------------------------------------------------- */

static int rail_compare_units(const void *x, const void *y)
{
    const struct rail_unit *a = x, *b = y;
    return FAB_ORDER(b->n, a->n) ?: FAB_ORDER(b->full, a->full) ?: FAB_ORDER(a->unit, b->unit);
}

static int rail_compare_votes(const void *x, const void *y)
{
    const struct rail_leaf *a = *(struct rail_leaf *const *)x, *b = *(struct rail_leaf *const *)y;
    return FAB_ORDER(b->votes, a->votes) ?: FAB_ORDER(a->order, b->order);
}

/* Find the rail that most devices on a leaf are known to be on. */
static void rails_ask_leaf(struct units_work *work, struct rail_leaf *leaf)
{
    const uint32_t *first = work->first + leaf->sw, *devices = work->devices;
    leaf->votes = 0;
    for (int round = 0; round < 2; round++) { /* count, then clear the counts */
        for (uint32_t i = first[0]; i < first[1]; i++) {
            uint32_t number = work->alike[devices[i]], rail = work->said[number];
            if (work->votes[number] == 0 || !rails_asked(work, devices[i]))
                continue;
            uint32_t n = round == 0 ? ++work->tally[rail] : (work->tally[rail] = 0);
            if (n > leaf->votes || (n > 0 && n == leaf->votes && rail < leaf->best)) {
                leaf->best = rail;
                leaf->votes = n;
            }
        }
    }
}

/* Record the names of a leaf's devices for its rail. */
static void rails_learn(struct units_work *work, const struct rail_leaf *leaf, uint32_t rail)
{
    const uint32_t *first = work->first + leaf->sw, *devices = work->devices;
    for (uint32_t i = first[0]; i < first[1]; i++) {
        uint32_t number = work->alike[devices[i]];
        if (!rails_asked(work, devices[i]))
            continue;
        if (work->votes[number] == 0)
            work->said[number] = rail;
        work->votes[number] += work->said[number] == rail ? 1 : -1u;
    }
}

/* First assign the leaves with evidence, most votes first; the others, in order, get the free rails. */
static void rails_lay_unit(struct units_work *work, const struct rail_unit *unit)
{
    uint32_t *rail = work->out->rail, next = 0, tick = unit->unit + 1;
    for (uint32_t i = 0; i < unit->n; i++) {
        work->chosen[i] = &work->leaves[unit->first + i];
        rails_ask_leaf(work, work->chosen[i]);
    }
    qsort(work->chosen, unit->n, sizeof(struct rail_leaf *), rail_compare_votes);
    for (uint32_t i = 0; i < unit->n; i++) {
        const struct rail_leaf *leaf = work->chosen[i];
        if (leaf->votes == 0 || work->taken[leaf->best] == tick)
            continue;
        work->taken[leaf->best] = tick;
        rail[leaf->sw] = leaf->best;
    }
    for (uint32_t i = unit->first; i < unit->first + unit->n; i++) {
        uint32_t sw = work->leaves[i].sw;
        if (rail[sw] != FAB_NONE)
            continue;
        while (work->taken[next] == tick)
            next++;
        rail[sw] = next++;
    }
    for (uint32_t i = unit->first; i < unit->first + unit->n; i++)
        rails_learn(work, &work->leaves[i], rail[work->leaves[i].sw]);
}

/* ---- strays ---------------------------------------------------------------------------------------- */

/* Return the leaf with more than half of these devices if there are enough; FAB_NONE. */
static uint32_t rails_usual(const struct fab_plane *plane, const struct fab_key *keys, uint32_t n)
{
    uint32_t usual = FAB_NONE, votes = 0, there = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t sw = plane->devices[keys[i].index].sw;
        if (votes == 0)
            usual = sw;
        votes += usual == sw ? 1 : -1u;
    }
    for (uint32_t i = 0; i < n; i++)
        there += plane->devices[keys[i].index].sw == usual;
    return n >= FEWEST_ALIKE && 2 * (uint64_t)there > n ? usual : FAB_NONE;
}

/* Mark the devices of one name and unit that are elsewhere than most. */
static void rails_mark_strays(const struct units_work *work, const struct fab_key *keys, uint32_t n,
                              struct fab_stray *marks)
{
    const struct fab_plane *plane = work->plane;
    uint32_t usual = rails_usual(plane, keys, n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t device = keys[i].index, home = work->home[plane->devices[device].host];
        uint32_t unit = rails_unit_of(work, device);
        bool elsewhere =
            usual != FAB_NONE ? plane->devices[device].sw != usual : unit != FAB_NONE && unit != home;
        if (elsewhere && !fab_port_is_missing(plane->inv, &plane->inv->ports[plane->devices[device].port]))
            marks[device] = (struct fab_stray){device, usual, home};
    }
}

/*
 * Find strays among hosts that have as many devices as their unit has leaves; the remaining devices of other
 * hosts may have new names.
 */
static int rails_find_strays(struct units_work *work)
{
    const struct fab_plane *plane = work->plane;
    uint32_t n = 0;
    struct fab_key *keys = fab_array((size_t)2 * plane->n_devices, sizeof *keys);
    struct fab_stray *marks = fab_array(plane->n_devices, sizeof *marks);
    if (keys == NULL || marks == NULL) {
        free(keys);
        free(marks);
        return PMIXFAB_ERR_NOMEM;
    }
    memset(marks, 0xff, plane->n_devices * sizeof *marks);
    for (uint32_t i = 0; i < plane->n_devices; i++) {
        uint32_t h = plane->devices[i].host, home = work->home[h];
        const bool cabled = plane->inv->ports[plane->devices[i].port].peer != FAB_NONE;
        if (home != FAB_NONE && plane->devices[i].sw != FAB_NONE && cabled && /* a function has no cable */
            plane->hosts[h].n >= work->list[home].n)
            keys[n++] = (struct fab_key){(uint64_t)home * work->n_alike + work->alike[i], i};
    }
    fab_radix_sort(keys, keys + plane->n_devices, n);
    for (uint32_t i = 0, end; i < n; i = end) {
        for (end = i; end < n && keys[end].value == keys[i].value;)
            end++;
        rails_mark_strays(work, keys + i, end - i, marks);
    }
    for (uint32_t i = 0; i < plane->n_devices; i++)
        if (marks[i].device != FAB_NONE)
            marks[work->out->n_strays++] = marks[i];
    free(keys);
    work->out->strays = marks;
    return 0;
}

/* ---- the whole computation ----------------------------------------------------------------------------- */

static int rails_lay_all(struct units_work *work)
{
    struct rail_unit *order = fab_array(work->out->n, sizeof *order);
    if (order == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t i = 0; i < work->n_leaves; i++)
        if (i == 0 || work->leaves[i].unit != work->leaves[i - 1].unit)
            work->list[work->leaves[i].unit].first = i;
    memcpy(order, work->list, work->out->n * sizeof *order);
    qsort(order, work->out->n, sizeof *order, rail_compare_units);
    for (uint32_t u = 0; u < work->out->n; u++)
        rails_lay_unit(work, &order[u]);
    free(order);
    return 0;
}

/* Give the leaves of the units rails, and find the strays. Return 0 or PMIXFAB_ERR_NOMEM. */
static int units_find_rails(struct units_work *work)
{
    const struct fab_plane *plane = work->plane;
    const struct fab_units *out = work->out;
    const size_t n = plane->n_switches, devices = plane->n_devices;
    uint32_t *block = fab_array(plane->n_hosts + 3 * devices + 2 * n, sizeof *block);
    work->full = fab_array(plane->n_hosts, sizeof *work->full);
    work->leaves = fab_array(n, sizeof *work->leaves);
    work->chosen = fab_array(n, sizeof(struct rail_leaf *));
    work->list = fab_array(out->n, sizeof *work->list);
    int rc = PMIXFAB_ERR_NOMEM;
    if (block == NULL || work->full == NULL || work->leaves == NULL || work->chosen == NULL ||
        work->list == NULL)
        goto cleanup;
    work->home = block;
    work->alike = work->home + plane->n_hosts;
    work->said = work->alike + devices;
    work->votes = work->said + devices;
    work->taken = work->votes + devices;
    work->tally = work->taken + n;
    for (uint32_t u = 0; u < out->n; u++)
        work->list[u].unit = u;
    for (uint32_t s = 0; s < n; s++) {
        if (out->unit[s] == FAB_NONE)
            continue;
        work->list[out->unit[s]].n++;
        work->n_leaves++;
    }
    rails_find_homes(work);
    rails_sort_leaves(work);
    rc = rails_number_alike(work) ?: rails_lay_all(work) ?: rails_find_strays(work);

cleanup:
    free(block);
    free(work->full);
    free(work->leaves);
    free(work->chosen);
    free(work->list);
    return rc;
}

/* ---- units ----------------------------------------------------------------------------------------- */

/* Return whether units are possible; a plain tree ends here. */
static bool units_possible(const struct fab_plane *plane)
{
    for (uint32_t h = 0; plane->n_switches > 1 && h < plane->n_hosts; h++) {
        const struct fab_host *host = &plane->hosts[h];
        for (uint32_t d = host->first + 1; d < host->first + host->n; d++)
            if (plane->devices[d].sw != plane->devices[host->first].sw && units_host_counts(plane, host))
                return true;
    }
    return false;
}

/* List the devices of each switch, and count their hosts. */
static void units_sort_devices(struct units_work *work)
{
    const struct fab_plane *plane = work->plane;
    uint32_t *next = work->scratch, *last_host = work->scratch + plane->n_switches;
    for (uint32_t s = 0, at = 0; s <= plane->n_switches; s++) {
        work->first[s] = at;
        if (s < plane->n_switches) {
            next[s] = at;
            last_host[s] = FAB_NONE;
            at += plane->switches[s].n_devices;
        }
    }
    for (uint32_t i = 0; i < plane->n_devices; i++) {
        uint32_t s = plane->devices[i].sw, h = plane->devices[i].host;
        if (s == FAB_NONE)
            continue;
        work->devices[next[s]++] = i;
        work->n_hosts[s] += last_host[s] != h && units_host_counts(plane, &plane->hosts[h]);
        last_host[s] = h;
    }
}

/*
 * Count the common hosts of leaf a with each leaf above it, which are added to list. Return the number of
 * those leaves.
 */
static uint32_t units_count_shared(const struct units_work *work, uint32_t a, uint32_t *shared,
                                   uint32_t *tick, uint32_t *list)
{
    const struct fab_plane *plane = work->plane;
    uint32_t n = 0, last = FAB_NONE, *seen = shared + plane->n_switches;
    for (uint32_t i = work->first[a]; i < work->first[a + 1]; i++) {
        uint32_t h = plane->devices[work->devices[i]].host;
        const struct fab_host *host = &plane->hosts[h];
        if (h == last || !units_host_counts(plane, host))
            continue;
        last = h;
        ++*tick;
        for (uint32_t d = host->first; d < host->first + host->n; d++) {
            uint32_t b = plane->devices[d].sw;
            if (b == FAB_NONE || b <= a || seen[b] == *tick)
                continue;
            seen[b] = *tick;
            if (shared[b]++ == 0)
                list[n++] = b;
        }
    }
    return n;
}

static void units_join_leaves(struct units_work *work)
{
    uint32_t n = work->plane->n_switches, tick = 0;
    uint32_t *shared = work->scratch, *list = work->scratch + 2 * (size_t)n;
    memset(work->scratch, 0, 2 * (size_t)n * sizeof *shared);
    for (uint32_t s = 0; s < n; s++)
        work->set[s] = s;
    for (uint32_t a = 0; a < n; a++) {
        uint32_t n_list = units_count_shared(work, a, shared, &tick, list);
        for (uint32_t i = 0; i < n_list; i++) {
            uint32_t b = list[i], both = shared[b];
            if (both >= 2 && 2 * (uint64_t)both > work->n_hosts[a] && 2 * (uint64_t)both > work->n_hosts[b])
                fab_set_join(work->set, a, b);
            shared[b] = 0;
        }
    }
}

/* Keep the sets of leaves that are units: unit[s] is a number below n_switches. */
static void units_keep_dense(struct units_work *work)
{
    const struct fab_plane *plane = work->plane;
    uint32_t n = plane->n_switches, tick = 0;
    uint32_t *leaves = work->scratch, *hosts = leaves + n, *seen = hosts + n, *unit = work->out->unit;
    memset(work->scratch, 0, 3 * (size_t)n * sizeof *leaves);
    for (uint32_t h = 0; h < plane->n_hosts; h++) {
        const struct fab_host *host = &plane->hosts[h];
        if (!units_host_counts(plane, host))
            continue;
        tick++;
        for (uint32_t d = host->first; d < host->first + host->n; d++) {
            if (plane->devices[d].sw == FAB_NONE)
                continue;
            uint32_t root = fab_set_root(work->set, plane->devices[d].sw);
            hosts[root] += seen[root] != tick;
            seen[root] = tick;
        }
    }
    memset(seen, 0, n * sizeof *seen);
    for (uint32_t s = 0; s < n; s++) {
        uint32_t root = fab_set_root(work->set, s);
        leaves[root]++;
        seen[root] += work->n_hosts[s]; /* pairs of a host and a leaf with a device of it */
    }
    for (uint32_t s = 0; s < n; s++) {
        uint32_t root = fab_set_root(work->set, s);
        if (leaves[root] > 1 && 2 * (uint64_t)seen[root] > (uint64_t)leaves[root] * hosts[root])
            unit[s] = root;
    }
}

/* Number the units by the names of their leaves. */
static int units_number(struct units_work *work)
{
    uint32_t n = work->plane->n_switches;
    struct fab_units *out = work->out;
    uint8_t *ranked = fab_array(n, sizeof *ranked);
    if (ranked == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t s = 0; s < n; s++)
        ranked[s] = out->unit[s] != FAB_NONE;
    int rc = fab_rank_by_name(work->plane, ranked, out->unit, work->rank);
    free(ranked);
    if (rc != 0)
        return rc;
    for (uint32_t s = 0; s < n; s++)
        if (out->unit[s] != FAB_NONE && out->unit[s] >= out->n)
            out->n = out->unit[s] + 1;
    out->label = fab_array(out->n, sizeof *out->label);
    if (out->label == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t u = 0; u < out->n; u++)
        out->label[u] = u;
    return 0;
}

static int units_search(const struct fab_plane *plane, struct fab_units *out)
{
    size_t n = plane->n_switches;
    struct units_work work = {.plane = plane, .out = out};
    /* One block: seven numbers for each switch, one more, and one for each device. */
    uint32_t *block = fab_array(7 * n + 1 + plane->n_devices, sizeof *block);
    if (block == NULL)
        return PMIXFAB_ERR_NOMEM;
    work.first = block;
    work.n_hosts = work.first + n + 1;
    work.set = work.n_hosts + n;
    work.rank = work.set + n;
    work.scratch = work.rank + n;
    work.devices = work.scratch + 3 * n;

    units_sort_devices(&work);
    units_join_leaves(&work);
    units_keep_dense(&work);
    int rc = units_number(&work);
    if (rc == 0 && out->n > 0)
        rc = units_find_rails(&work);
    free(block);
    return rc;
}

int fab_units_find(const struct fab_plane *plane, struct fab_units *out)
{
    size_t n = plane->n_switches;
    *out =
        (struct fab_units){.unit = fab_array(n, sizeof *out->unit), .rail = fab_array(n, sizeof *out->rail)};
    int rc = out->unit == NULL || out->rail == NULL ? PMIXFAB_ERR_NOMEM : 0;
    if (rc == 0) {
        memset(out->unit, 0xff, n * sizeof *out->unit);
        memset(out->rail, 0xff, n * sizeof *out->rail);
        if (units_possible(plane))
            rc = units_search(plane, out);
    }
    if (rc != 0)
        fab_units_destroy(out);
    return rc;
}

void fab_units_destroy(struct fab_units *units)
{
    if (units == NULL)
        return;
    free(units->unit);
    free(units->rail);
    free(units->label);
    free(units->strays);
    *units = (struct fab_units){0};
}
