/*
 * compute.c - compute the snapshots of all planes from a joined inventory and the last snapshots of the
 * planes. This is a pure function. The last snapshots provide the planes' numbers, the coordinates of
 * unchanged devices, and costs that cannot have changed.
 *
 * A plane keeps its number as long as most of it is still there. Each port GUID and switch GUID in the last
 * snapshots of the known planes votes for its plane. Pairs are matched by votes, most votes first. So after a
 * split the larger part keeps the number. A part that was cut off before gets its old number again, because
 * retired planes vote as well, after the active planes.
 *
 * This holds for InfiniBand. A plane with a configured name, and the plane of the unattached ports, is
 * recognised by its name. Its members have no vote. So a port that was cabled meanwhile does not move a
 * plane.
 *
 * Names count from 0, like those of interfaces, and numbers from 1: number 1 of an InfiniBand fabric is
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

#define UNATTACHED_PLANE "unattached" /* the plane of ports without a cable */

/* ---- configured Ethernet planes -------------------------------------------------------------------- */

void ethernet_planes(const struct config *config, struct ethernet_planes *out)
{
    out->n = 0;
    for (unsigned i = 0; i < config->ethernet.n; i++) {
        const char *item = config->ethernet.items[i], *equals = strchr(item, '=');
        if (equals == NULL || (size_t)(equals - item) >= sizeof(out->names[0]))
            continue; /* config_set() rejects these */
        memcpy(out->names[out->n], item, (size_t)(equals - item));
        out->names[out->n][equals - item] = '\0';
        out->planes[out->n] = (struct fab_ethernet_plane){.name = out->names[out->n], .cidr = equals + 1};
        out->n++;
    }
}

/* ---- vendors --------------------------------------------------------------------------------------- */

/* Vendors by the IEEE number in node records; only vendors of InfiniBand switches or HCAs. */
static const struct {
    uint32_t id;
    const char *name;
} vendors[] = {
    {0x0002c9, "Mellanox"}, {0x001175, "QLogic"}, {0x00066a, "QLogic"}, {0x0008f1, "Voltaire"},
    {0x0005ad, "Cisco"},    {0x000677, "IBM"},    {0x005c4c, "Huawei"}, {0x000e80, "Intel"},
};

/* Return the vendor of most switches of a plane; without switches, of its first device. */
static const char *plane_vendor(const struct fab_plane *plane)
{
    const struct fab_inventory *inv = plane->inv;
    uint32_t id = 0, votes = 0; /* majority vote: other ids cancel out, and the last candidate stays */
    for (uint32_t i = 0; i < plane->n_switches; i++) {
        uint32_t one = inv->nodes[plane->switches[i].node].vendor_id;
        if (votes == 0)
            id = one;
        votes = one == id ? votes + 1 : votes - 1;
    }
    if (plane->n_switches == 0 && plane->n_devices > 0)
        id = inv->nodes[inv->ports[plane->devices[0].port].node].vendor_id;
    for (size_t i = 0; i < sizeof(vendors) / sizeof(vendors[0]); i++)
        if (vendors[i].id == id)
            return vendors[i].name;
    return "unknown";
}

static int by_offset(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return FAB_ORDER(*x, *y);
}

/* Return the accepted fact of a port's host, as its place in the pool; FAB_NONE. */
static uint32_t chosen_fact(const struct fab_details *details, uint32_t port, enum fab_fact kind)
{
    for (uint32_t f = details->n_ports > 0 ? details->first[port] : 0;
         details->n_ports > 0 && f < details->first[port + 1]; f++)
        if (details->facts[f].kind == kind && (details->facts[f].flags & FAB_DETAIL_CHOSEN) != 0)
            return details->facts[f].text;
    return FAB_NONE;
}

/*
 * Find the vendor of most devices of a plane. If several vendors have equally many devices, the first by
 * name is chosen. Without facts the vendor is "unknown". Equal texts have one place in the pool, so places
 * are counted.
 */
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

/* ---- planes, new and known ------------------------------------------------------------------------- */

/* A plane of the store. */
struct known_plane {
    const struct store_plane *row;
    struct pmixfab *fab; /* its last snapshot; NULL: this version cannot read it */
    bool taken;          /* matched with a new plane */
};

struct plane_now {
    struct fab_plane *plane;
    struct built_plane *out;
    const struct fab_ethernet_plane *configured; /* the configured plane of network interfaces; NULL: none */
    const struct fab_subnet *view;               /* the topology of a file with several ones; NULL: none */
    uint64_t prefix;
    const struct known_plane *before; /* the matching known plane; NULL: it is new, or not matched yet */
    bool fixed;                       /* its name does not depend on its number */
    bool numbered, is_rail;
};

struct computing {
    const struct config *config;
    const struct fab_details *details;
    struct ethernet_planes ethernet;
    struct fab_planes planes;
    struct plane_now *now; /* largest first */
    struct known_plane *known;
    uint32_t n, n_known;
};

/* Open the last snapshots of the planes. */
static void open_known(struct computing *c, const struct store_plane *rows)
{
    for (uint32_t k = 0; k < c->n_known; k++) {
        c->known[k] = (struct known_plane){.row = &rows[k], .fab = rows[k].fab};
        if (rows[k].fab == NULL && rows[k].snapshot != NULL)
            (void)fab_snapshot_borrow(rows[k].snapshot, rows[k].size, &c->known[k].fab, NULL);
    }
}

static void close_known(struct computing *c)
{
    for (uint32_t k = 0; c->known != NULL && k < c->n_known; k++)
        if (c->known[k].row != NULL && c->known[k].row->fab == NULL)
            pmixfab_close(c->known[k].fab);
    free(c->known);
}

static void describe_plane(const struct computing *c, struct plane_now *now)
{
    const struct fab_plane *plane = now->plane;
    const struct fab_subnet *subnet =
        plane->inv->n_subnets > plane->subnet ? &plane->inv->subnets[plane->subnet] : NULL;
    now->prefix = plane->unattached ? FAB_UNATTACHED : subnet != NULL ? subnet->prefix : FAB_DEFAULT_PREFIX;
    for (uint32_t i = 0; now->configured == NULL && i < c->ethernet.n; i++)
        if (fab_ethernet_prefix(c->ethernet.planes[i].name) == now->prefix)
            now->configured = &c->ethernet.planes[i];
    if (subnet != NULL && !plane->unattached && fab_snapshot_name_ok(subnet->view) &&
        strcmp(subnet->view, UNATTACHED_PLANE) != 0)
        now->view = subnet;
}

static const char *given_name(const struct plane_now *now)
{
    return now->prefix == FAB_UNATTACHED ? UNATTACHED_PLANE
           : now->configured != NULL     ? now->configured->name
           : now->view != NULL           ? now->view->view
                                         : "";
}

/*
 * Set the names that do not depend on numbers. If the switches of a configured plane, or of a topology of a
 * file, do not all reach each other, there are several planes. The largest comes first and has the name. The
 * others have the name with a number.
 */
static void name_planes(struct computing *c)
{
    for (uint32_t i = 0; i < c->n; i++) {
        struct built_plane *out = c->now[i].out;
        const char *name = given_name(&c->now[i]);
        unsigned part = 1;
        c->now[i].fixed = name[0] != '\0';
        for (uint32_t k = 0; k < i && c->now[i].fixed; k++)
            part += strcmp(given_name(&c->now[k]), name) == 0;
        if (part == 1)
            snprintf(out->name, sizeof(out->name), "%s", name);
        else
            snprintf(out->name, sizeof(out->name), "%.50s.%u", name, part);
    }
}

/* ---- numbers --------------------------------------------------------------------------------------- */

static void take_known_number(struct plane_now *now, struct known_plane *known)
{
    now->numbered = known->taken = true;
    now->before = known;
    now->out->index = known->row->index;
    snprintf(now->out->name, sizeof(now->out->name), "%s", known->row->name);
}

/* Match planes by name, active ones before retired ones. */
static void number_by_name(struct computing *c)
{
    for (uint32_t i = 0; i < c->n; i++)
        for (int retired = 0; c->now[i].fixed && retired < 2; retired++)
            for (uint32_t k = 0; !c->now[i].numbered && k < c->n_known; k++)
                if (!c->known[k].taken && c->known[k].row->retired == (retired == 1) &&
                    strcmp(c->known[k].row->name, c->now[i].out->name) == 0)
                    take_known_number(&c->now[i], &c->known[k]);
}

/* Collect the GUIDs of the known planes, each with its plane. Planes that are matched by name, as far as
 * their last snapshots are readable, are skipped. free() the result. */
static struct fab_key *collect_members(const struct computing *c, uint32_t *n)
{
    struct pmixfab_plane info;
    size_t most = 0;
    for (uint32_t k = 0; k < c->n_known; k++)
        if (c->known[k].fab != NULL)
            most += c->known[k].fab->meta->n_devices + (size_t)c->known[k].fab->meta->n_switches;
    struct fab_key *keys = malloc((2 * most + 1) * sizeof(*keys)); /* the second half is for sorting */
    *n = 0;
    for (uint32_t k = 0; keys != NULL && k < c->n_known; k++) {
        const struct pmixfab *fab = c->known[k].fab;
        if (fab == NULL)
            continue;
        pmixfab_plane(fab, &info);
        if (strncmp(info.identifier, "Ethernet-", strlen("Ethernet-")) == 0 ||
            strcmp(info.identifier, UNATTACHED_PLANE) == 0)
            continue;
        for (uint32_t i = 0; i < info.n_devices; i++) /* in the order of GUIDs, so that sorting is quick */
            keys[(*n)++] = (struct fab_key){fab->devices[fab->by_port[i]].port_guid, k};
        for (uint32_t i = 0; i < info.n_switches; i++)
            keys[(*n)++] = (struct fab_key){fab->switches[i].guid, k};
    }
    if (keys != NULL)
        fab_radix_sort(keys, keys + *n, *n);
    return keys;
}

static void add_votes(const struct fab_key *members, uint32_t n, uint64_t guid, uint32_t *votes)
{
    uint32_t at = FAB_LOWER_BOUND(0, n, i, members[i].value < guid);
    for (; at < n && members[at].value == guid; at++)
        votes[members[at].index]++;
}

/* A new plane and a known one with common members. */
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

/* Give each plane that is matched by members the number of the known plane with most common members. */
static int number_by_votes(struct computing *c)
{
    uint32_t n_members;
    size_t n = 0;
    int rc = PMIXFAB_ERR_NOMEM;
    struct fab_key *members = collect_members(c, &n_members);
    struct match *matches = calloc((size_t)c->n * c->n_known + 1, sizeof(*matches));
    uint32_t *votes = calloc(c->n_known + 1, sizeof(*votes));
    if (members == NULL || matches == NULL || votes == NULL)
        goto cleanup;
    for (uint32_t i = 0; i < c->n; i++) {
        const struct fab_plane *plane = c->now[i].plane;
        if (c->now[i].fixed)
            continue;
        memset(votes, 0, c->n_known * sizeof(*votes));
        for (uint32_t d = 0; d < plane->n_devices; d++)
            add_votes(members, n_members, plane->inv->ports[plane->devices[d].port].guid, votes);
        for (uint32_t s = 0; s < plane->n_switches; s++)
            add_votes(members, n_members, plane->inv->nodes[plane->switches[s].node].guid, votes);
        for (uint32_t k = 0; k < c->n_known; k++)
            if (votes[k] > 0)
                matches[n++] = (struct match){i, k, votes[k], c->known[k].row->retired};
    }
    qsort(matches, n, sizeof(*matches), compare_matches);
    for (const struct match *m = matches; m < matches + n; m++)
        if (!c->now[m->plane].numbered && !c->known[m->known].taken)
            take_known_number(&c->now[m->plane], &c->known[m->known]);
    rc = PMIXFAB_OK;
cleanup:
    free(members);
    free(matches);
    free(votes);
    return rc;
}

/* Name the plane by its number; add a suffix if a file has another plane of this name. */
static void name_by_number(const struct computing *c, struct built_plane *out)
{
    const uint32_t number = out->index - STORE_FIRST_PLANE;
    char name[sizeof(out->name)];
    snprintf(name, sizeof(name), "ib%u", number);
    for (uint32_t k = 0; k < c->n; k++)
        if (c->now[k].out != out && strcmp(c->now[k].out->name, name) == 0)
            snprintf(name, sizeof(name), "ib%u.%u", number, out->index);
    snprintf(out->name, sizeof(out->name), "%s", name);
}

/*
 * Number the planes without a match. A served plane whose snapshot cannot be read (from another version of
 * fabricd) could not vote. Planes come largest first, and its numbers were assigned so, too: assign these in
 * that order. Then assign numbers that no plane had before.
 */
static void number_remaining(struct computing *c)
{
    uint32_t next = STORE_FIRST_PLANE, i = 0;
    for (uint32_t k = 0; k < c->n_known; k++) {
        const struct store_plane *row = c->known[k].row;
        next = row->index >= next ? row->index + 1 : next;
        if (row->retired || row->snapshot != NULL || c->known[k].taken)
            continue;
        while (i < c->n && (c->now[i].numbered || c->now[i].fixed))
            i++;
        if (i < c->n)
            take_known_number(&c->now[i], &c->known[k]);
    }
    /* so that there is an "ib0" beside larger planes with fixed names */
    for (int fixed = 0; fixed < 2; fixed++)
        for (i = 0; i < c->n; i++) {
            struct plane_now *now = &c->now[i];
            if (now->numbered || now->fixed != (fixed == 1))
                continue;
            now->numbered = now->out->is_new = true;
            now->out->index = next++;
            if (!now->fixed)
                name_by_number(c, now->out);
        }
}

/* ---- planes that are rails ------------------------------------------------------------------------- */

/*
 * Find planes that are rails: with separate rails, each is a plane of its own, and these planes serve the
 * same hosts. Two planes do so if more than half of the hosts of each, and at least two, are in the other
 * one.
 */
#define MOST_PLANES 64 /* a fabric in more parts is broken, not wired by rails */

/* Collect the named hosts, sorted by name, with the index of their plane. hosts[p]: number of hosts of the
 * plane. */
static uint32_t rail_sort_hosts(const struct fab_planes *planes, struct fab_key *keys, uint32_t room,
                                uint32_t *hosts)
{
    uint32_t n = 0;
    for (uint32_t p = 0; p < planes->n; p++) {
        const struct fab_plane *plane = &planes->planes[p];
        for (uint32_t h = 0; h < plane->n_hosts; h++) {
            const struct fab_host *host = &plane->hosts[h];
            const struct fab_port *port = &plane->inv->ports[plane->devices[host->first].port];
            if (plane->unattached || plane->inv->nodes[port->node].unnamed)
                continue;
            keys[n++] = (struct fab_key){XXH3_64bits(host->name, strlen(host->name)), p};
            hosts[p]++;
        }
    }
    fab_radix_sort(keys, keys + room, n);
    return n;
}

/* Two topologies of one file have the same hosts' cables twice. */
static bool rail_are_views(const struct fab_plane *p, const struct fab_plane *q)
{
    const uint64_t a = p->n_switches > 0 ? p->inv->nodes[p->switches[0].node].guid : 0;
    const uint64_t b = q->n_switches > 0 ? q->inv->nodes[q->switches[0].node].guid : 0;
    return FAB_GUID_IS_OF_NAME(a) && FAB_GUID_IS_OF_NAME(b) && FAB_GUID_VIEW(a) != FAB_GUID_VIEW(b);
}

static int find_rails(struct computing *c)
{
    const struct fab_planes *planes = &c->planes;
    uint32_t room = 0, hosts[MOST_PLANES] = {0};
    int rc = PMIXFAB_ERR_NOMEM;
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
                c->now[p].is_rail = c->now[q].is_rail = true;
    rc = PMIXFAB_OK;
cleanup:
    free(keys);
    free(shared);
    return rc;
}

/* ---- one plane ------------------------------------------------------------------------------------- */

static int build_plane(const struct computing *c, struct plane_now *now, bool is_default)
{
    const struct fab_plane *plane = now->plane;
    const struct pmixfab *before = now->before == NULL ? NULL : now->before->fab;
    struct fab_costs costs = {0};
    struct fab_geometry geometry = {0};
    struct fab_groups groups = {0};
    char identifier[80];
    struct fab_snapshot_meta meta = {.index = now->out->index,
                                     .is_default = is_default,
                                     .name = now->out->name,
                                     .identifier = identifier,
                                     .vendor = c->config->vendor,
                                     .before = before};
    const bool of_hosts = now->prefix == FAB_UNATTACHED || now->configured != NULL;
    int rc = PMIXFAB_OK;
    if (now->prefix == FAB_UNATTACHED)
        snprintf(identifier, sizeof(identifier), "%s", UNATTACHED_PLANE);
    else if (now->configured != NULL)
        snprintf(identifier, sizeof(identifier), "Ethernet-%s", now->configured->cidr);
    else
        snprintf(identifier, sizeof(identifier), "InfiniBand-%016llx", (unsigned long long)now->prefix);
    if (meta.vendor == NULL && of_hosts)
        rc = common_vendor(plane, c->details, &meta.vendor);
    else if (meta.vendor == NULL)
        meta.vendor = plane_vendor(plane);
    rc = rc ?: fab_costs_compute(plane, 0, &costs) ?: fab_geometry_settle(plane, before, &geometry);
    /* A plane that is a rail, and has no rails inside, is the rail of its number. */
    if (rc == PMIXFAB_OK && now->is_rail && geometry.units.n == 0 && now->out->index > 0)
        for (uint32_t s = 0; s < plane->n_switches; s++)
            if (plane->switches[s].n_devices > 0)
                geometry.units.rail[s] = now->out->index - 1;
    if (rc == PMIXFAB_OK)
        rc = fab_groups_compute(plane, &geometry, c->config->groups, &groups)
                 ?: fab_snapshot_build(plane, &costs, &geometry, &groups,
                                       c->details->n_ports > 0 ? c->details : NULL, &meta, &now->out->bytes,
                                       &now->out->size);
    fab_groups_destroy(&groups);
    fab_geometry_destroy(&geometry);
    fab_costs_destroy(&costs);
    return rc;
}

/* Return the default plane: the configured one, else that of the file, else the present default, else the
 * first plane (the largest) with a network. A plane without a switch stays the default only if no other plane
 * has one. */
static uint32_t default_of(const struct computing *c)
{
    const char *configured = c->config->default_plane;
    for (uint32_t i = 0; configured != NULL && i < c->n; i++)
        if (strcmp(c->now[i].out->name, configured) == 0)
            return i;
    for (uint32_t i = 0; i < c->n; i++)
        if (c->now[i].view != NULL && c->now[i].view->is_default)
            return i;
    for (uint32_t i = 0; i < c->n; i++) {
        const struct known_plane *before = c->now[i].before;
        if (c->now[i].plane->n_switches > 0 && before != NULL && !before->row->retired &&
            before->fab != NULL && before->fab->meta->is_default != 0)
            return i;
    }
    for (uint32_t i = 0; i < c->n; i++)
        if (strcmp(c->now[i].out->name, UNATTACHED_PLANE) != 0)
            return i;
    return 0;
}

/* Mark the devices that match the patterns by their name, with or without a port, by their network interface,
 * or by their leaf. patterns NULL: mark none. Returns the number of marked devices. */
static uint32_t mark_compute_devices(struct fab_plane *plane, const struct fab_details *details,
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
    struct computing c = {.config = config, .details = &joined->details, .n_known = n_known};
    uint32_t n_compute = 0;
    *out = (struct built){0};
    ethernet_planes(config, &c.ethernet);
    int rc = fab_planes_build(&joined->inv, config->cost_model, &c.planes, err);
    if (rc != PMIXFAB_OK)
        return rc;
    c.n = c.planes.n;
    c.known = calloc((size_t)n_known + 1, sizeof(*c.known));
    c.now = calloc((size_t)c.n + 1, sizeof(*c.now));
    out->planes = calloc((size_t)c.n + 1, sizeof(*out->planes));
    if (c.known == NULL || c.now == NULL || out->planes == NULL) {
        rc = no_memory(err);
        goto cleanup;
    }
    out->n = c.n;
    open_known(&c, known);
    for (uint32_t i = 0; i < c.n; i++) {
        c.now[i] = (struct plane_now){.plane = &c.planes.planes[i], .out = &out->planes[i]};
        describe_plane(&c, &c.now[i]);
        n_compute += mark_compute_devices(c.now[i].plane, c.details, config->compute);
    }
    if (config->compute != NULL && n_compute == 0)
        log_warning("[fabric] compute = %s: no device, port, interface or leaf has such a name; jobs use all "
                    "devices (fabricctl devices lists their names)",
                    config->compute);
    name_planes(&c);
    number_by_name(&c);
    if (number_by_votes(&c) != PMIXFAB_OK || find_rails(&c) != PMIXFAB_OK) {
        rc = no_memory(err);
        goto cleanup;
    }
    number_remaining(&c);
    const uint32_t first = default_of(&c);
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < c.n; i++) {
        rc = build_plane(&c, &c.now[i], i == first);
        if (rc != PMIXFAB_OK)
            fab_fail(err, rc, "cannot compute plane %s: %s", out->planes[i].name, pmixfab_strerror(rc));
    }
cleanup:
    close_known(&c);
    free(c.now);
    fab_planes_destroy(&c.planes);
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
