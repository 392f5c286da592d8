/*
 * compute.c - from a joined inventory to the snapshots of its planes: a pure function of it and of what the
 * planes were last. From there are the planes' numbers, the coordinates of what did not change, and the costs
 * that cannot have changed.
 *
 * A plane keeps its number as long as most of it is still there. Every port GUID and switch GUID of the known
 * planes' last snapshots votes for its plane; pairs are then matched by votes, most first. So after a split
 * the larger part keeps the number, and a part that was cut off before finds its old number again, because
 * retired planes vote as well (once the active ones had their choice).
 *
 * That is for InfiniBand. A plane that has its name from the configuration, or is that of the unattached
 * ports, is known again by its name, and its members have no vote: a port that is cabled today and was not
 * yesterday takes no plane with it.
 *
 * Names count from 0, as those of interfaces do, and numbers from 1: number 1 of an InfiniBand fabric is
 * "ib0".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "fabricd/base/log.h"
#include "fabricd/engine/publisher.h"
#include "topo/base/order.h"
#include "topo/base/pattern.h"
#include "topo/base/radix.h"
#include "topo/base/search.h"
#include "topo/plane/compile.h"
#include "topo/snapshot/reader.h"
#include "topo/snapshot/snapshot.h"

#define UNATTACHED_PLANE "unattached" /* the plane of what has no cable */

/* ---- Ethernet planes, as they are configured ------------------------------------------------------- */

void ethernet_planes(const struct config *config, struct ethernet_planes *out)
{
    out->n = 0;
    for (unsigned i = 0; i < config->ethernet.n; i++) {
        const char *item = config->ethernet.items[i], *equals = strchr(item, '=');
        if (equals == NULL || (size_t)(equals - item) >= sizeof(out->names[0]))
            continue; /* config_set() lets none of these in */
        memcpy(out->names[out->n], item, (size_t)(equals - item));
        out->names[out->n][equals - item] = '\0';
        out->planes[out->n] = (struct fab_ethernet_plane){.name = out->names[out->n], .cidr = equals + 1};
        out->n++;
    }
}

static const struct fab_ethernet_plane *ethernet_find(const struct ethernet_planes *planes, uint64_t prefix)
{
    for (uint32_t i = 0; i < planes->n; i++)
        if (fab_ethernet_prefix(planes->planes[i].name) == prefix)
            return &planes->planes[i];
    return NULL;
}

/* ---- vendors --------------------------------------------------------------------------------------- */

/* Vendors by the IEEE number in node records; only those that made InfiniBand switches or HCAs. */
static const struct {
    uint32_t id;
    const char *name;
} vendors[] = {
    {0x0002c9, "Mellanox"}, {0x001175, "QLogic"}, {0x00066a, "QLogic"}, {0x0008f1, "Voltaire"},
    {0x0005ad, "Cisco"},    {0x000677, "IBM"},    {0x005c4c, "Huawei"}, {0x000e80, "Intel"},
};

static const char *vendor_name(uint32_t id)
{
    for (size_t i = 0; i < sizeof(vendors) / sizeof(vendors[0]); i++)
        if (vendors[i].id == id)
            return vendors[i].name;
    return "unknown";
}

/* The vendor of most of a plane's switches; of its first device where it has none. */
static const char *plane_vendor(const struct fab_plane *plane)
{
    const struct fab_inventory *inv = plane->inv;
    uint32_t id = 0, votes = 0; /* majority by cancelling out, then the last candidate stands */
    for (uint32_t i = 0; i < plane->n_switches; i++) {
        uint32_t one = inv->nodes[plane->switches[i].node].vendor_id;
        if (votes == 0)
            id = one;
        votes = one == id ? votes + 1 : votes - 1;
    }
    if (plane->n_switches == 0 && plane->n_devices > 0)
        id = inv->nodes[inv->ports[plane->devices[0].port].node].vendor_id;
    return vendor_name(id);
}

/* ---- what the hosts say of their devices' vendors -------------------------------------------------- */

static int by_offset(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return FAB_ORDER(*x, *y);
}

/* What a port's host says of it and is believed, in the pool; FAB_NONE. */
static uint32_t chosen_fact(const struct fab_details *details, uint32_t port, enum fab_fact kind)
{
    for (uint32_t f = details->n_ports > 0 ? details->first[port] : 0;
         details->n_ports > 0 && f < details->first[port + 1]; f++)
        if (details->facts[f].kind == kind && (details->facts[f].flags & FAB_DETAIL_CHOSEN) != 0)
            return details->facts[f].text;
    return FAB_NONE;
}

/* The vendor of most devices of a plane; of two that have as many, the first by name. "unknown" where no host
 * says any. Equal texts stand once in the pool: they are counted by their place. */
static int common_vendor(const struct fab_plane *plane, const struct fab_details *details, const char **out)
{
    uint32_t n = 0, most = 0;
    uint32_t *texts = calloc((size_t)plane->n_devices + 1, sizeof(*texts));
    *out = "unknown";
    if (texts == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t i = 0; i < plane->n_devices; i++) {
        texts[n] = chosen_fact(details, plane->devices[i].port, FAB_FACT_VENDOR);
        n += texts[n] != FAB_NONE;
    }
    qsort(texts, n, sizeof(*texts), by_offset);
    for (uint32_t i = 0, end; i < n; i = end) {
        for (end = i; end < n && texts[end] == texts[i];)
            end++;
        const char *name = details->pool + texts[i];
        if (end - i > most || (end - i == most && strcmp(name, *out) < 0))
            *out = name;
        most = end - i > most ? end - i : most;
    }
    free(texts);
    return PMIXFAB_OK;
}

/* ---- numbers --------------------------------------------------------------------------------------- */

/* A plane of today and one of yesterday that share something. */
struct match {
    uint32_t plane, known, votes;
    bool retired;
};

/* Active planes first, then by votes. */
static int compare_matches(const void *a, const void *b)
{
    const struct match *x = a, *y = b;
    return FAB_ORDER(x->retired, y->retired) ?: FAB_ORDER(y->votes, x->votes)
           ?: FAB_ORDER(x->plane, y->plane) ?: FAB_ORDER(x->known, y->known);
}

static bool is_fixed(const struct built_plane *out)
{
    return out->name[0] != '\0';
}

/* Is this known plane one that goes by its name? Its last snapshot says so where it can be read. */
static bool goes_by_name(const char *identifier)
{
    return strncmp(identifier, "Ethernet-", strlen("Ethernet-")) == 0 ||
           strcmp(identifier, UNATTACHED_PLANE) == 0;
}

/* GUIDs, each with the known plane that it belonged to. */
struct members {
    struct fab_key *keys;
    size_t n;
};

/* Append the GUIDs of one known plane. A snapshot that this version cannot read has no say. */
static int add_members(const struct pmixfab *fab, uint32_t which, struct members *members)
{
    struct pmixfab_plane info;
    if (fab == NULL)
        return PMIXFAB_OK;
    pmixfab_plane(fab, &info);
    if (goes_by_name(info.identifier))
        return PMIXFAB_OK;
    struct fab_key *grown =
        reallocarray(members->keys, 2 * (members->n + info.n_devices + info.n_switches + 1), sizeof(*grown));
    if (grown == NULL)
        return PMIXFAB_ERR_NOMEM;
    members->keys = grown;                        /* the second half is for sorting */
    for (uint32_t i = 0; i < info.n_devices; i++) /* in the order of GUIDs, so that sorting is quick */
        grown[members->n++] = (struct fab_key){fab->devices[fab->by_port[i]].port_guid, which};
    for (uint32_t i = 0; i < info.n_switches; i++)
        grown[members->n++] = (struct fab_key){fab->switches[i].guid, which};
    return PMIXFAB_OK;
}

static void add_votes(const struct members *members, uint64_t guid, uint32_t *votes)
{
    uint32_t at = FAB_LOWER_BOUND(0, (uint32_t)members->n, i, members->keys[i].value < guid);
    for (; at < members->n && members->keys[at].value == guid; at++)
        votes[members->keys[at].index]++;
}

/* Votes of one plane of today for each known one. */
static void count_votes(const struct fab_plane *plane, const struct members *members, uint32_t *votes)
{
    const struct fab_inventory *inv = plane->inv;
    for (uint32_t i = 0; i < plane->n_devices; i++)
        add_votes(members, inv->ports[plane->devices[i].port].guid, votes);
    for (uint32_t i = 0; i < plane->n_switches; i++)
        add_votes(members, inv->nodes[plane->switches[i].node].guid, votes);
}

static void assign_number(struct built_plane *out, const struct store_plane *known)
{
    out->index = known->index;
    out->is_new = false;
    snprintf(out->name, sizeof(out->name), "%s", known->name);
}

/* Planes that go by their names, an active one before a retired one. */
static void number_by_name(struct built_plane *out, uint32_t n, bool *done, const struct store_plane *known,
                           uint32_t n_known, bool *taken)
{
    for (uint32_t i = 0; i < n; i++) {
        for (unsigned retired = 0; is_fixed(&out[i]) && retired < 2; retired++) {
            for (uint32_t k = 0; !done[i] && k < n_known; k++) {
                if (taken[k] || known[k].retired != (retired == 1) || strcmp(known[k].name, out[i].name) != 0)
                    continue;
                done[i] = taken[k] = true;
                assign_number(&out[i], &known[k]);
            }
        }
    }
}

/* By its number; where a file calls another plane so, with more behind it. */
static void plane_name(struct built_plane *out, uint32_t n, uint32_t i)
{
    const uint32_t number = out[i].index - STORE_FIRST_PLANE;
    char name[sizeof(out[i].name)];
    snprintf(name, sizeof(name), "ib%u", number);
    for (uint32_t k = 0; k < n; k++)
        if (k != i && strcmp(out[k].name, name) == 0)
            snprintf(name, sizeof(name), "ib%u.%u", number, out[i].index);
    snprintf(out[i].name, sizeof(out[i].name), "%s", name);
}

/*
 * Those that matched nothing. A plane that was served until now but whose snapshot cannot be read (it is of
 * another version of fabricd) could not vote: planes come largest first, and so did its numbers, so they are
 * given in that order. After that come numbers that nobody had before.
 */
static void number_remaining(struct built_plane *out, uint32_t n, bool *done, const struct store_plane *known,
                             uint32_t n_known, const bool *taken)
{
    uint32_t next = STORE_FIRST_PLANE;
    for (uint32_t k = 0, i = 0; k < n_known; k++) {
        if (known[k].retired || known[k].snapshot != NULL || taken[k])
            continue;
        while (i < n && (done[i] || is_fixed(&out[i])))
            i++;
        if (i == n)
            break;
        done[i] = true;
        assign_number(&out[i], &known[k]);
    }
    for (uint32_t k = 0; k < n_known; k++)
        if (known[k].index >= next)
            next = known[k].index + 1;
    for (unsigned fixed = 0; fixed < 2; fixed++) { /* so that "ib0" is there beside larger ones with names */
        for (uint32_t i = 0; i < n; i++) {
            if (done[i] || is_fixed(&out[i]) != (fixed == 1))
                continue;
            done[i] = true;
            out[i].index = next++;
            out[i].is_new = true;
            if (fixed == 0)
                plane_name(out, n, i);
        }
    }
}

/* Of the planes that go by their members, each takes the number of the known one that it shares most with. */
static void number_by_votes(const struct fab_planes *planes, const struct members *members,
                            struct match *matches, uint32_t *votes, bool *done,
                            const struct store_plane *known, uint32_t n_known, bool *taken,
                            struct built_plane *out)
{
    size_t n = 0;
    for (uint32_t i = 0; i < planes->n; i++) {
        if (is_fixed(&out[i]))
            continue;
        memset(votes, 0, n_known * sizeof(*votes));
        count_votes(&planes->planes[i], members, votes);
        for (uint32_t k = 0; k < n_known; k++)
            if (votes[k] > 0)
                matches[n++] = (struct match){i, k, votes[k], known[k].retired};
    }
    qsort(matches, n, sizeof(*matches), compare_matches);
    for (const struct match *m = matches; m < matches + n; m++) {
        if (done[m->plane] || taken[m->known])
            continue;
        done[m->plane] = taken[m->known] = true;
        assign_number(&out[m->plane], &known[m->known]);
    }
}

/* out: from planes->n planes, the name set where it does not come of the number. fabs: the known ones, open.
 */
static int number_planes(const struct fab_planes *planes, const struct store_plane *known,
                         struct pmixfab *const *fabs, uint32_t n_known, struct built_plane *out,
                         struct fab_err *err)
{
    struct members members = {NULL, 0};
    struct match *matches = calloc((size_t)planes->n * n_known + 1, sizeof(*matches));
    uint32_t *votes = calloc(n_known + 1, sizeof(*votes));
    bool *done = calloc(planes->n + 1, sizeof(*done)), *taken = calloc(n_known + 1, sizeof(*taken));
    int rc =
        matches == NULL || votes == NULL || done == NULL || taken == NULL ? PMIXFAB_ERR_NOMEM : PMIXFAB_OK;
    for (uint32_t k = 0; rc == PMIXFAB_OK && k < n_known; k++)
        rc = add_members(fabs[k], k, &members);
    if (rc != PMIXFAB_OK) {
        no_memory(err);
        goto cleanup;
    }
    if (members.n > 0)
        fab_radix_sort(members.keys, members.keys + members.n, (uint32_t)members.n);
    number_by_name(out, planes->n, done, known, n_known, taken);
    number_by_votes(planes, &members, matches, votes, done, known, n_known, taken, out);
    number_remaining(out, planes->n, done, known, n_known, taken);
cleanup:
    free(members.keys);
    free(matches);
    free(votes);
    free(done);
    free(taken);
    return rc;
}

/* ---- planes that are one rail each ----------------------------------------------------------------- */

/*
 * Where rails are wired apart, each is a plane: planes that serve the same hosts. Two do where more than half
 * of the hosts of each, and at least two, are in the other one.
 */
#define MOST_PLANES 64 /* a fabric in more parts than that is not wired by rails, it is broken */

static bool rail_host_counts(const struct fab_plane *plane, const struct fab_host *host)
{
    const struct fab_inventory *inv = plane->inv;
    return !plane->unattached && !inv->nodes[inv->ports[plane->devices[host->first].port].node].unnamed;
}

/* The hosts that count, by name; the index is that of their plane. hosts[p]: how many. */
static uint32_t rail_sort_hosts(const struct fab_planes *planes, struct fab_key *keys, uint32_t room,
                                uint32_t *hosts)
{
    uint32_t n = 0;
    for (uint32_t p = 0; p < planes->n; p++) {
        const struct fab_plane *plane = &planes->planes[p];
        for (uint32_t h = 0; h < plane->n_hosts; h++) {
            const char *name = plane->hosts[h].name;
            if (!rail_host_counts(plane, &plane->hosts[h]))
                continue;
            keys[n++] = (struct fab_key){XXH3_64bits(name, strlen(name)), p};
            hosts[p]++;
        }
    }
    fab_radix_sort(keys, keys + room, n);
    return n;
}

/* Two topologies of one file show the same hosts' cables twice. */
static bool rail_are_views(const struct fab_plane *p, const struct fab_plane *q)
{
    const uint64_t a = p->n_switches > 0 ? p->inv->nodes[p->switches[0].node].guid : 0;
    const uint64_t b = q->n_switches > 0 ? q->inv->nodes[q->switches[0].node].guid : 0;
    return FAB_GUID_IS_OF_NAME(a) && FAB_GUID_IS_OF_NAME(b) && FAB_GUID_VIEW(a) != FAB_GUID_VIEW(b);
}

static int find_rails(const struct fab_planes *planes, bool *is_rail)
{
    uint32_t room = 0, hosts[MOST_PLANES] = {0};
    int rc = PMIXFAB_ERR_NOMEM;
    memset(is_rail, 0, planes->n * sizeof(*is_rail));
    for (uint32_t p = 0; p < planes->n; p++)
        room += planes->planes[p].n_hosts;
    if (planes->n < 2 || planes->n > MOST_PLANES)
        return PMIXFAB_OK;
    struct fab_key *keys = malloc((2 * (size_t)room + 1) * sizeof(*keys));
    uint32_t(*shared)[MOST_PLANES] = calloc(MOST_PLANES, sizeof(*shared));
    if (keys == NULL || shared == NULL)
        goto cleanup;
    uint32_t n = rail_sort_hosts(planes, keys, room, hosts);
    for (uint32_t i = 0, end; i < n; i = end)
        for (end = i + 1; end < n && keys[end].value == keys[i].value; end++)
            for (uint32_t k = i; k < end; k++) /* planes ascend: the sort is stable */
                shared[keys[k].index][keys[end].index]++;
    for (uint32_t p = 0; p < planes->n; p++)
        for (uint32_t q = p + 1; q < planes->n; q++)
            if (shared[p][q] >= 2 && 2 * shared[p][q] > hosts[p] && 2 * shared[p][q] > hosts[q] &&
                !rail_are_views(&planes->planes[p], &planes->planes[q]))
                is_rail[p] = is_rail[q] = true;
    rc = PMIXFAB_OK;
cleanup:
    free(keys);
    free(shared);
    return rc;
}

static void mark_rail(const struct fab_plane *plane, uint32_t number, struct fab_geometry *geometry)
{
    if (geometry->units.n > 0 || number == 0)
        return;
    for (uint32_t s = 0; s < plane->n_switches; s++)
        if (plane->switches[s].n_devices > 0)
            geometry->units.rail[s] = number - 1;
}

/* ---- one plane ------------------------------------------------------------------------------------- */

static uint64_t plane_prefix(const struct fab_plane *plane)
{
    if (plane->unattached)
        return FAB_UNATTACHED;
    return plane->inv->n_subnets > plane->subnet ? plane->inv->subnets[plane->subnet].prefix
                                                 : FAB_DEFAULT_PREFIX;
}

/* What is told of a plane beside its numbers. */
static int snapshot_meta_fill(const struct fab_plane *plane, const struct fab_details *details,
                              const struct ethernet_planes *ethernet, const struct config *config,
                              struct fab_snapshot_meta *meta, char *identifier, size_t size)
{
    uint64_t prefix = plane_prefix(plane);
    const struct fab_ethernet_plane *configured = ethernet_find(ethernet, prefix);
    int rc = PMIXFAB_OK;
    if (prefix == FAB_UNATTACHED)
        snprintf(identifier, size, "%s", UNATTACHED_PLANE);
    else if (configured != NULL)
        snprintf(identifier, size, "Ethernet-%s", configured->cidr);
    else
        snprintf(identifier, size, "InfiniBand-%016llx", (unsigned long long)prefix);
    meta->identifier = identifier;
    if (config->vendor != NULL)
        meta->vendor = config->vendor;
    else if (prefix == FAB_UNATTACHED || configured != NULL)
        rc = common_vendor(plane, details, &meta->vendor);
    else
        meta->vendor = plane_vendor(plane);
    return rc;
}

/* before: the last snapshot of the plane; NULL: it has none. */
static int build_one(const struct fab_plane *plane, bool is_rail, const struct pmixfab *before,
                     const struct fab_details *details, const struct ethernet_planes *ethernet,
                     const struct config *config, bool is_default, struct built_plane *out)
{
    struct fab_costs costs = {0};
    struct fab_geometry geometry = {0};
    struct fab_groups groups = {0};
    char identifier[80];
    struct fab_snapshot_meta meta = {
        .index = out->index, .is_default = is_default, .name = out->name, .before = before};
    int rc = snapshot_meta_fill(plane, details, ethernet, config, &meta, identifier, sizeof(identifier))
                 ?: fab_costs_compute(plane, 0, &costs)
                 ?: fab_geometry_settle(plane, before, &geometry);
    if (rc == PMIXFAB_OK && is_rail)
        mark_rail(plane, out->index, &geometry);
    if (rc == PMIXFAB_OK)
        rc = fab_groups_compute(plane, &geometry, config->groups, &groups)
                 ?: fab_snapshot_build(plane, &costs, &geometry, &groups,
                                       details->n_ports > 0 ? details : NULL, &meta, &out->bytes, &out->size);
    fab_groups_destroy(&groups);
    fab_geometry_destroy(&geometry);
    fab_costs_destroy(&costs);
    return rc;
}

/* What the file that it was read of calls it, and whether it says that it is the default. NULL: it is of none
 * that has several topologies. */
static const struct fab_subnet *plane_view(const struct fab_plane *plane)
{
    const struct fab_subnet *subnet =
        plane->inv->n_subnets > plane->subnet ? &plane->inv->subnets[plane->subnet] : NULL;
    return subnet != NULL && !plane->unattached && fab_snapshot_name_ok(subnet->view) &&
                   strcmp(subnet->view, UNATTACHED_PLANE) != 0
               ? subnet
               : NULL;
}

static const char *given_name(const struct fab_plane *plane, const struct ethernet_planes *ethernet)
{
    const struct fab_ethernet_plane *configured = ethernet_find(ethernet, plane_prefix(plane));
    const struct fab_subnet *view = plane_view(plane);
    return plane_prefix(plane) == FAB_UNATTACHED ? UNATTACHED_PLANE
           : configured != NULL                  ? configured->name
           : view != NULL                        ? view->view
                                                 : "";
}

/*
 * Names that do not come of numbers. A configured plane, or a topology of a file, whose switches do not all
 * reach each other is several planes: the largest, which comes first, has the name, the others have it with a
 * number.
 */
static void name_planes(const struct fab_planes *planes, const struct ethernet_planes *ethernet,
                        struct built_plane *out)
{
    for (uint32_t i = 0; i < planes->n; i++) {
        const char *name = given_name(&planes->planes[i], ethernet);
        unsigned part = 1;
        for (uint32_t k = 0; k < i && name[0] != '\0'; k++)
            part += strcmp(given_name(&planes->planes[k], ethernet), name) == 0;
        if (part == 1 || name[0] == '\0')
            snprintf(out[i].name, sizeof(out[i].name), "%s", name);
        else
            snprintf(out[i].name, sizeof(out[i].name), "%.50s.%u", name, part);
    }
}

/* Which of the planes is the default: the configured one, else that of the file, else the one that is it
 * already, else the first (planes come largest first) with a network. One without a switch stays the default
 * only where no other plane has any. */
static uint32_t default_of(const struct built *built, const struct fab_planes *planes,
                           const struct config *config, const struct store_plane *known,
                           struct pmixfab *const *fabs, uint32_t n_known)
{
    for (uint32_t i = 0; config->default_plane != NULL && i < built->n; i++)
        if (strcmp(built->planes[i].name, config->default_plane) == 0)
            return i;
    for (uint32_t i = 0; i < built->n; i++)
        if (plane_view(&planes->planes[i]) != NULL && plane_view(&planes->planes[i])->is_default)
            return i;
    for (uint32_t i = 0; i < built->n; i++)
        for (uint32_t k = 0; k < n_known && planes->planes[i].n_switches > 0; k++)
            if (!built->planes[i].is_new && !known[k].retired && known[k].index == built->planes[i].index &&
                fabs[k] != NULL && fabs[k]->meta->is_default != 0)
                return i;
    for (uint32_t i = 0; i < built->n; i++)
        if (strcmp(built->planes[i].name, UNATTACHED_PLANE) != 0)
            return i;
    return 0;
}

/* Open what the planes were last; a snapshot that this version cannot read is NULL. */
static struct pmixfab **open_known(const struct store_plane *known, uint32_t n_known)
{
    struct pmixfab **fabs = calloc((size_t)n_known + 1, sizeof(*fabs));
    for (uint32_t k = 0; fabs != NULL && k < n_known; k++)
        if (known[k].fab != NULL)
            fabs[k] = known[k].fab;
        else if (known[k].snapshot != NULL)
            (void)fab_snapshot_borrow(known[k].snapshot, known[k].size, &fabs[k], NULL);
    return fabs;
}

static void close_known(const struct store_plane *known, struct pmixfab **fabs, uint32_t n_known)
{
    for (uint32_t k = 0; fabs != NULL && k < n_known; k++)
        if (known[k].fab == NULL)
            pmixfab_close(fabs[k]);
    free(fabs);
}

static const struct pmixfab *find_known(const struct store_plane *known, struct pmixfab *const *fabs,
                                        uint32_t n_known, const struct built_plane *plane)
{
    for (uint32_t k = 0; !plane->is_new && k < n_known; k++)
        if (known[k].index == plane->index)
            return fabs[k];
    return NULL;
}

/* Mark the devices that the patterns (NULL: none are marked) have by their name, with or without a port, by
 * their network interface, or by their leaf. Returns how many. */
static uint32_t compute_devices_mark(struct fab_plane *plane, const struct fab_details *details,
                                     const char *patterns)
{
    const struct fab_inventory *inv = plane->inv;
    uint32_t n = 0;
    for (uint32_t i = 0; i < plane->n_devices && patterns != NULL; i++) {
        struct fab_device *device = &plane->devices[i];
        const struct fab_port *port = &inv->ports[device->port];
        const char *name = fab_str(inv, inv->nodes[port->node].name);
        const uint32_t interface = chosen_fact(details, device->port, FAB_FACT_INTERFACE);
        char with_port[320];
        snprintf(with_port, sizeof(with_port), "%s:%u", name, (unsigned)port->num);
        const char *const names[] = {
            name, with_port, interface == FAB_NONE ? NULL : details->pool + interface,
            device->sw == FAB_NONE ? NULL : fab_str(inv, inv->nodes[plane->switches[device->sw].node].name)};
        device->compute = fab_pattern_has(patterns, names, sizeof(names) / sizeof(names[0]));
        n += device->compute;
    }
    return n;
}

int compute_planes(const struct fab_joined *joined, const struct config *config,
                   const struct store_plane *known, uint32_t n_known, struct built *out, struct fab_err *err)
{
    struct fab_planes planes = {0};
    struct ethernet_planes ethernet;
    *out = (struct built){0};
    ethernet_planes(config, &ethernet);
    int rc = fab_planes_build(&joined->inv, config->cost_model, &planes, err);
    if (rc != PMIXFAB_OK)
        return rc;
    struct pmixfab **fabs = open_known(known, n_known);
    bool *is_rail = calloc((size_t)planes.n + 1, sizeof(*is_rail));
    out->planes = calloc(planes.n > 0 ? planes.n : 1, sizeof(*out->planes));
    if (out->planes == NULL || fabs == NULL || is_rail == NULL ||
        find_rails(&planes, is_rail) != PMIXFAB_OK) {
        rc = no_memory(err);
        goto cleanup;
    }
    out->n = planes.n;
    name_planes(&planes, &ethernet, out->planes);
    rc = number_planes(&planes, known, fabs, n_known, out->planes, err);
    uint32_t first = rc == PMIXFAB_OK ? default_of(out, &planes, config, known, fabs, n_known) : 0,
             n_compute = 0;
    for (uint32_t i = 0; i < planes.n; i++)
        n_compute += compute_devices_mark(&planes.planes[i], &joined->details, config->compute);
    if (config->compute != NULL && n_compute == 0)
        log_warning("[fabric] compute = %s: no device, port, interface or leaf is called so; jobs use all "
                    "devices (fabricctl devices lists their names)",
                    config->compute);
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < planes.n; i++) {
        const struct pmixfab *before = find_known(known, fabs, n_known, &out->planes[i]);
        rc = build_one(&planes.planes[i], is_rail[i], before, &joined->details, &ethernet, config, i == first,
                       &out->planes[i]);
        if (rc != PMIXFAB_OK)
            fab_fail(err, rc, "plane %s cannot be computed: %s", out->planes[i].name, pmixfab_strerror(rc));
    }
cleanup:
    free(is_rail);
    close_known(known, fabs, n_known);
    fab_planes_destroy(&planes);
    if (rc != PMIXFAB_OK)
        built_destroy(out);
    return rc;
}

void built_destroy(struct built *built)
{
    for (uint32_t i = 0; built->planes != NULL && i < built->n; i++)
        free(built->planes[i].bytes);
    free(built->planes);
    *built = (struct built){0};
}
