/*
 * slurm_geometry.c - topologies of Slurm 26.05 that follow the geometry of a plane: its places of hosts, and
 * topology/ring. slurm_torus.c has topology/torus3d.
 */
#include <stdlib.h>
#include <string.h>

#include "fabricctl/export/export.h"
#include "topo/base/hostlist.h"
#include "topo/base/order.h"

#define NONE      UINT32_MAX
#define RING_MOST 16 /* hosts in a ring */

/* ---- the geometry of a plane ---- */

/* Find the places of switches, which are the first coordinates of their devices. */
static enum ctl_exit geometry_places(struct ctl_geometry *g)
{
    struct pmixfab_device device;
    const uint32_t *coords;
    uint32_t dims;
    for (uint32_t d = 0; d < g->plane.n_devices; d++) {
        if (pmixfab_device(g->fab, d, &device) != 0 || device.switch_index >= g->plane.n_switches)
            continue;
        if (pmixfab_coords(g->fab, d, PMIXFAB_LOGICAL, &coords, &dims) != 0 || dims < g->n_dims)
            return ctl_export_contradicts();
        for (unsigned i = 0; i < g->n_dims; i++) {
            if (coords[i] >= g->dims[i])
                return ctl_export_contradicts();
            g->place[device.switch_index][i] = coords[i];
        }
    }
    return CTL_DONE;
}

static enum ctl_exit geometry_hosts(struct ctl_geometry *g)
{
    uint32_t *n_at = calloc(g->plane.n_switches + (size_t)1, sizeof *n_at);
    if (n_at == NULL)
        return ctl_nomem();
    for (uint32_t h = 0; h < g->plane.n_hosts; h++)
        if (g->at[h] != NONE) {
            g->n_hosts++;
            if (++n_at[g->at[h]] > g->most_at_once)
                g->most_at_once = n_at[g->at[h]];
        }
    free(n_at);
    if (g->n_hosts == 0)
        return ctl_error("nothing to write: plane %s: no host with a name is connected to a switch: see "
                         "fabricctl devices",
                         g->plane.name);
    return CTL_DONE;
}

void ctl_geometry_free(struct ctl_geometry *g)
{
    free(g->at);
    free(g->place);
}

enum ctl_exit ctl_geometry_open(struct ctl_export *x, size_t plane, struct ctl_geometry *g)
{
    *g = (struct ctl_geometry){.x = x, .fab = x->view->planes[plane], .dims = {1, 1, 1}};
    if (pmixfab_plane(g->fab, &g->plane) != 0)
        return ctl_export_contradicts();
    const char *kind = g->plane.kind;
    g->name = ctl_plane_name(&g->plane, g->name_buf);
    g->wraps = strncmp(kind, "torus-", 6) == 0;
    if (g->wraps || strncmp(kind, "mesh-", 5) == 0)
        g->n_dims = strstr(kind, "-3d") != NULL ? 3 : 2;
    for (unsigned i = 0; i < g->n_dims; i++)
        g->dims[i] = g->plane.shape[i];
    g->at = malloc((g->plane.n_hosts + (size_t)1) * sizeof *g->at);
    g->place = calloc(g->plane.n_switches + (size_t)1, sizeof *g->place);
    if (g->at == NULL || g->place == NULL)
        return ctl_nomem();
    return ctl_hosts_at_switches(x, plane, g->at) ?: geometry_hosts(g) ?: geometry_places(g);
}

const char *ctl_geometry_host(const struct ctl_geometry *g, uint32_t h)
{
    const char *name;
    uint32_t first, n;
    return pmixfab_host(g->fab, h, &name, &first, &n) == 0 ? name : "";
}

enum ctl_exit ctl_geometry_put(struct ctl_geometry *g, const char *before, const char *const *names, size_t n)
{
    char *list = fab_hostlist_fold(names, n);
    if (list == NULL)
        return ctl_nomem();
    fprintf(g->x->out, "%snodes: \"%s\"\n", before, list);
    free(list);
    return CTL_DONE;
}

/* ---- rings ---- */

struct ring_host {
    uint32_t ring, place, host;
};

static int compare_ring_hosts(const void *a, const void *b)
{
    const struct ring_host *x = a, *y = b;
    return FAB_ORDER(x->ring, y->ring) ?: FAB_ORDER(x->place, y->place) ?: FAB_ORDER(x->host, y->host);
}

/* Find two neighbours of each switch. Return false if a switch has more, or fewer. */
static bool ring_neighbours(const struct ctl_geometry *g, uint32_t (*next)[2])
{
    struct pmixfab_link link;
    memset(next, 0xff, g->plane.n_switches * sizeof *next);
    for (uint32_t i = 0; i < g->plane.n_links; i++) {
        if (pmixfab_link(g->fab, i, &link) != 0 || link.a.is_switch == 0 || link.b.is_switch == 0 ||
            link.a.index == link.b.index)
            continue;
        const uint32_t ends[2] = {link.a.index, link.b.index};
        for (unsigned end = 0; end < 2; end++) {
            uint32_t *mine = next[ends[end]];
            const uint32_t peer = ends[1 - end];
            if (mine[0] == peer || mine[1] == peer)
                continue;
            if (mine[1] != NONE)
                return false;
            mine[mine[0] != NONE] = peer;
        }
    }
    for (uint32_t s = 0; s < g->plane.n_switches; s++)
        if (next[s][1] == NONE)
            return false;
    return true;
}

/*
 * Number the switches around the plane if its switches are one ring: from the first one on, towards its lower
 * neighbour. Return false if they are none. Two leaves with two spines are a tree. `next` is room for all
 * switches.
 */
static bool ring_of_plane(const struct ctl_geometry *g, uint32_t (*next)[2], uint32_t *place)
{
    uint32_t from = NONE, at = 0, n = 0;
    if (g->plane.n_switches < 3 || strncmp(g->plane.kind, "fat-tree-", 9) == 0 || !ring_neighbours(g, next))
        return false;
    do {
        const bool first = from == NONE ? next[at][0] < next[at][1] : next[at][0] != from;
        place[at] = n++;
        from = at;
        at = next[at][first ? 0 : 1];
    } while (at != 0 && n < g->plane.n_switches);
    return at == 0 && n == g->plane.n_switches;
}

/* Choose the dimension whose rings are longest and not too long. Return false after an error message. */
static bool ring_axis(const struct ctl_geometry *g, unsigned *axis)
{
    uint32_t best = 0, shortest = NONE;
    for (unsigned i = 0; g->wraps && i < g->n_dims; i++) {
        const uint32_t hosts = g->dims[i] > RING_MOST ? NONE : g->dims[i] * g->most_at_once;
        if (g->dims[i] < 3)
            continue;
        if (hosts <= RING_MOST && hosts > best) {
            best = hosts;
            *axis = i;
        }
        shortest = g->dims[i] < shortest ? g->dims[i] : shortest;
    }
    if (shortest == NONE)
        ctl_error(
            "no ring: plane %s: its kind is %s: topology/ring needs a ring of switches, or a torus with "
            "three switches in a dimension",
            g->plane.name, g->plane.kind);
    else if (best == 0)
        ctl_error("no ring of Slurm: plane %s: a ring of %u switches with up to %u hosts has more than %u "
                  "hosts, the most that topology/ring permits",
                  g->plane.name, shortest, g->most_at_once, RING_MOST);
    return best > 0;
}

/* Find the ring of each switch, and its place there. */
static enum ctl_exit rings_find(const struct ctl_geometry *g, uint32_t *ring, uint32_t *place)
{
    uint32_t(*next)[2] = malloc((g->plane.n_switches + (size_t)1) * sizeof *next);
    unsigned axis = 0;
    enum ctl_exit status = CTL_DONE;
    if (next == NULL)
        return ctl_nomem();
    if (ring_of_plane(g, next, place)) {
        if (g->n_hosts > RING_MOST)
            status = ctl_error("no ring of Slurm: plane %s: its ring has %u hosts, and topology/ring permits "
                               "at most %u",
                               g->plane.name, g->n_hosts, RING_MOST);
    } else if (!ring_axis(g, &axis)) {
        status = CTL_FAILED;
    } else {
        for (uint32_t s = 0; s < g->plane.n_switches; s++) {
            for (unsigned i = 0; i < g->n_dims; i++)
                ring[s] = i == axis ? ring[s] : ring[s] * g->dims[i] + g->place[s][i];
            place[s] = g->place[s][axis];
        }
    }
    free(next);
    return status;
}

static enum ctl_exit put_rings(struct ctl_geometry *g, const struct ring_host *hosts)
{
    enum ctl_exit status = CTL_DONE;
    const char *names[RING_MOST];
    uint32_t longest = 0;
    fputs("  ring:\n    rings:\n", g->x->out);
    for (uint32_t i = 0, n; status == CTL_DONE && i < g->n_hosts; i += n) {
        for (n = 0; i + n < g->n_hosts && n < RING_MOST && hosts[i + n].ring == hosts[i].ring; n++)
            names[n] = ctl_geometry_host(g, hosts[i + n].host);
        fprintf(g->x->out, "      - ring: \"%s-ring%u\"\n", g->name, hosts[i].ring);
        status = ctl_geometry_put(g, "        ", names, n);
        longest = n > longest ? n : longest;
    }
    if (longest < g->n_hosts)
        ctl_export_lost(
            g->x,
            "plane %s: topology/ring has no cables between rings: Slurm rejects jobs of more than "
            "%u hosts without --segment",
            g->plane.name, longest);
    return status;
}

enum ctl_exit ctl_slurm_ring(struct ctl_export *x, size_t plane)
{
    struct ctl_geometry g;
    struct ring_host *hosts = NULL;
    uint32_t *ring = NULL, *place = NULL, n = 0;
    enum ctl_exit status = ctl_geometry_open(x, plane, &g);
    if (status != CTL_DONE)
        goto cleanup;
    hosts = malloc((g.n_hosts + (size_t)1) * sizeof *hosts);
    ring = calloc(g.plane.n_switches + (size_t)1, sizeof *ring);
    place = calloc(g.plane.n_switches + (size_t)1, sizeof *place);
    status = hosts != NULL && ring != NULL && place != NULL ? rings_find(&g, ring, place) : ctl_nomem();
    if (status != CTL_DONE)
        goto cleanup;
    for (uint32_t h = 0; h < g.plane.n_hosts; h++)
        if (g.at[h] != NONE)
            hosts[n++] = (struct ring_host){ring[g.at[h]], place[g.at[h]], h};
    qsort(hosts, n, sizeof *hosts, compare_ring_hosts);
    status = put_rings(&g, hosts);
cleanup:
    free(hosts);
    free(ring);
    free(place);
    ctl_geometry_free(&g);
    return status;
}
