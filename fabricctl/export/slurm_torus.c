/*
 * slurm_torus.c - topology/torus3d of Slurm 26.05, and topology.yaml with it or with topology/ring.
 *
 * Slurm has one node in each cell of a torus. The hosts of a switch are neighbours along x: with k hosts at
 * the fullest switch, a row of n switches is n * k cells. A box is aligned if it consists of whole switches,
 * or of an equal part of each switch, and copies of it fill the torus. Slurm allocates only boxes of the
 * file.
 */
#include <stdlib.h>
#include <string.h>

#include "fabricctl/export/export.h"
#include "topo/base/order.h"

#define NONE UINT32_MAX
/* slurmctld stores each place of each box as a bit map of all nodes: a limit of these maps, in bytes. */
#define PLACES_MOST (UINT64_C(256) << 20)

/* ---- the cells of a torus ---- */

struct torus {
    struct ctl_geometry *g;
    uint32_t size[CTL_AXES];
    uint32_t n; /* cells */
    const char **cells;
    bool *written; /* for each cell */
    struct box *boxes;
    uint32_t n_boxes;
};

static uint32_t torus_cell(const struct torus *t, const uint32_t at[static CTL_AXES])
{
    return at[0] % t->size[0] + t->size[0] * (at[1] % t->size[1] + t->size[1] * (at[2] % t->size[2]));
}

static enum ctl_exit torus_fill(struct torus *t)
{
    const struct ctl_geometry *g = t->g;
    uint64_t n = (uint64_t)g->most_at_once * g->dims[0];
    t->size[0] = (uint32_t)n;
    for (unsigned i = 1; i < CTL_AXES; i++) {
        t->size[i] = g->dims[i];
        n *= g->dims[i];
        if (t->size[i] > UINT16_MAX || t->size[0] > UINT16_MAX || n > UINT32_MAX)
            return ctl_error("too large for topology/torus3d: plane %s: a dimension has at most %u cells",
                             g->plane.name, UINT16_MAX);
    }
    if (n / 2 > g->n_hosts)
        return ctl_error(
            "no torus of Slurm: plane %s: its switches have up to %u hosts, so %u hosts fill less than half "
            "of %u x %u x %u cells",
            g->plane.name, g->most_at_once, g->n_hosts, t->size[0], t->size[1], t->size[2]);
    t->n = (uint32_t)n;
    t->cells = calloc(t->n, sizeof *t->cells);
    t->written = calloc(t->n, sizeof *t->written);
    if (t->cells == NULL || t->written == NULL)
        return ctl_nomem();
    for (uint32_t h = 0; h < g->plane.n_hosts; h++) {
        if (g->at[h] == NONE)
            continue;
        const uint32_t *place = g->place[g->at[h]];
        const uint32_t corner[CTL_AXES] = {place[0] * g->most_at_once, place[1], place[2]};
        uint32_t cell = torus_cell(t, corner);
        while (t->cells[cell] != NULL) /* the cells of a switch follow each other */
            cell++;
        t->cells[cell] = ctl_geometry_host(g, h);
    }
    if (g->n_hosts < t->n)
        ctl_export_lost(
            g->x, "plane %s: %u of %u cells of topology/torus3d have no host: Slurm places no job there",
            g->plane.name, t->n - g->n_hosts, t->n);
    return CTL_DONE;
}

/* Return whether each cell of a box has a host, and with `unwritten` is not written yet. */
static bool cells_are_full(const struct torus *t, const uint32_t from[static CTL_AXES],
                           const uint32_t dims[static CTL_AXES], bool unwritten)
{
    for (uint32_t z = 0; z < dims[2]; z++)
        for (uint32_t y = 0; y < dims[1]; y++)
            for (uint32_t x = 0; x < dims[0]; x++) {
                const uint32_t at[CTL_AXES] = {from[0] + x, from[1] + y, from[2] + z};
                const uint32_t cell = torus_cell(t, at);
                if (t->cells[cell] == NULL || (unwritten && t->written[cell]))
                    return false;
            }
    return true;
}

static void put_xyz(FILE *out, const char *before, const char *name, const uint32_t v[static CTL_AXES])
{
    fprintf(out, "%s%s:\n              x: %u\n              y: %u\n              z: %u\n", before, name, v[0],
            v[1], v[2]);
}

/* Write a region that begins at a cell, as large as hosts fill it. */
static enum ctl_exit put_region(struct torus *t, const uint32_t from[static CTL_AXES], const char **names)
{
    uint32_t dims[CTL_AXES] = {1, 1, 1}, n = 0;
    for (unsigned i = 0; i < CTL_AXES; i++) {
        uint32_t next[CTL_AXES] = {from[0], from[1], from[2]}, slice[CTL_AXES] = {dims[0], dims[1], dims[2]};
        slice[i] = 1;
        for (next[i]++; next[i] < t->size[i] && cells_are_full(t, next, slice, true); next[i]++)
            dims[i]++;
    }
    for (uint32_t i = 0; i < dims[0] * dims[1] * dims[2]; i++) {
        const uint32_t at[CTL_AXES] = {from[0] + i % dims[0], from[1] + i / dims[0] % dims[1],
                                       from[2] + i / dims[0] / dims[1]};
        t->written[torus_cell(t, at)] = true;
        names[n++] = t->cells[torus_cell(t, at)];
    }
    put_xyz(t->g->x->out, "          - ", "anchor", from);
    put_xyz(t->g->x->out, "            ", "dims", dims);
    return ctl_geometry_put(t->g, "            ", names, n);
}

static enum ctl_exit put_cells(struct torus *t)
{
    enum ctl_exit status = CTL_DONE;
    const char **names;
    if (t->g->n_hosts == t->n)
        return ctl_geometry_put(t->g, "        ", t->cells, t->n);
    names = malloc(t->n * sizeof *names);
    if (names == NULL)
        return ctl_nomem();
    fputs("        regions:\n", t->g->x->out);
    for (uint32_t cell = 0; status == CTL_DONE && cell < t->n; cell++) {
        const uint32_t at[CTL_AXES] = {cell % t->size[0], cell / t->size[0] % t->size[1],
                                       cell / t->size[0] / t->size[1]};
        if (t->cells[cell] != NULL && !t->written[cell])
            status = put_region(t, at, names);
    }
    free(names);
    return status;
}

/* ---- the boxes that jobs get ---- */

struct box {
    uint32_t dims[CTL_AXES];
    uint32_t size;   /* cells */
    uint32_t around; /* switches along its edges: few in a compact box */
    bool aligned, chosen;
};

/* Return whether boxes of this length fill the dimension, without a part of a switch at their ends. */
static bool length_is_aligned(const struct torus *t, unsigned axis, uint32_t length)
{
    const uint32_t k = axis == 0 ? t->g->most_at_once : 1;
    return length <= k ? k % length == 0 : length % k == 0 && t->size[axis] % length == 0;
}

/* Return the distance of the places of a box: the next aligned length, so that few places overlap. */
static uint32_t box_spacing(const struct torus *t, unsigned axis, uint32_t length)
{
    while (!length_is_aligned(t, axis, length))
        length--;
    return length;
}

/* Return the number of places of a box. */
static uint64_t box_places(const struct torus *t, const struct box *box)
{
    uint64_t n = 1;
    for (unsigned i = 0; i < CTL_AXES; i++)
        n *= t->size[i] / box_spacing(t, i, box->dims[i]);
    return n;
}

/* Return whether a box has a place where each cell has a host. */
static bool box_fits(const struct torus *t, const struct box *box)
{
    uint32_t from[CTL_AXES], step[CTL_AXES];
    if (t->g->n_hosts == t->n)
        return true;
    for (unsigned i = 0; i < CTL_AXES; i++)
        step[i] = box_spacing(t, i, box->dims[i]);
    for (from[2] = 0; from[2] < t->size[2]; from[2] += step[2])
        for (from[1] = 0; from[1] < t->size[1]; from[1] += step[1])
            for (from[0] = 0; from[0] < t->size[0]; from[0] += step[0])
                if (cells_are_full(t, from, box->dims, false))
                    return true;
    return false;
}

static int compare_boxes(const void *a, const void *b)
{
    const struct box *x = a, *y = b;
    return FAB_ORDER(x->size, y->size)      ?: FAB_ORDER(y->aligned, x->aligned)
           ?: FAB_ORDER(x->around, y->around) ?: memcmp(x->dims, y->dims, sizeof x->dims);
}

/*
 * List all boxes: for each number of hosts aligned ones first, and compact ones first. A box that is not
 * aligned can reach over the end of a dimension, which only a torus permits.
 */
static bool boxes_list(struct torus *t)
{
    const uint32_t k = t->g->most_at_once;
    t->boxes = calloc(t->n, sizeof *t->boxes);
    for (uint32_t i = 0; t->boxes != NULL && i < t->n; i++) {
        struct box box = {
            .dims = {1 + i % t->size[0], 1 + i / t->size[0] % t->size[1], 1 + i / t->size[0] / t->size[1]},
            .aligned = true};
        box.size = box.dims[0] * box.dims[1] * box.dims[2];
        box.around = (box.dims[0] + k - 1) / k + box.dims[1] + box.dims[2];
        for (unsigned axis = 0; axis < CTL_AXES; axis++)
            box.aligned &= length_is_aligned(t, axis, box.dims[axis]);
        if (box.aligned || t->g->wraps)
            t->boxes[t->n_boxes++] = box;
    }
    if (t->boxes != NULL)
        qsort(t->boxes, t->n_boxes, sizeof *t->boxes, compare_boxes);
    return t->boxes != NULL;
}

/*
 * Choose boxes of one size, if they fit. In pass 0 choose the first aligned box. In pass 1, if there is none,
 * choose the first box. In pass 2 choose all other aligned boxes.
 */
static void boxes_choose_size(const struct torus *t, struct box *boxes, uint32_t n, unsigned pass,
                              uint64_t *room)
{
    bool has_one = false;
    for (uint32_t i = 0; i < n; i++)
        has_one |= boxes[i].chosen;
    for (uint32_t i = 0; i < n && (pass == 2 || !has_one); i++) {
        const uint64_t bytes = box_places(t, &boxes[i]) * (t->g->n_hosts / 8 + 1);
        if (boxes[i].chosen || bytes > *room || (pass != 1 && !boxes[i].aligned) || !box_fits(t, &boxes[i]))
            continue;
        boxes[i].chosen = has_one = true;
        *room -= bytes;
    }
}

/* Choose boxes. A box without a place is left out: Slurm would let jobs of its size wait forever. */
static void boxes_choose(struct torus *t)
{
    uint64_t room = PLACES_MOST;
    for (unsigned pass = 0; pass < 3; pass++)
        for (uint32_t i = 0, n; i < t->n_boxes; i += n) {
            for (n = 1; i + n < t->n_boxes && t->boxes[i + n].size == t->boxes[i].size;)
                n++;
            boxes_choose_size(t, t->boxes + i, n, pass, &room);
        }
}

/* Report the numbers of hosts for which there is no box. */
static enum ctl_exit lost_box_sizes(struct torus *t)
{
    char *list = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&list, &size);
    uint32_t n_lost = 0, first = 1;
    if (out == NULL)
        return ctl_nomem();
    for (uint32_t i = 0; i <= t->n_boxes; i++) {
        const uint32_t end = i < t->n_boxes ? t->boxes[i].size : t->g->n_hosts + 1;
        if (i < t->n_boxes && !t->boxes[i].chosen)
            continue;
        if (end > first)
            fprintf(out, end - first > 1 ? "%s%u-%u" : "%s%u", n_lost > 0 ? "," : "", first, end - 1);
        n_lost += end > first ? end - first : 0;
        first = end + 1;
    }
    if (fclose(out) != 0) {
        free(list);
        return ctl_nomem();
    }
    if (n_lost > 0)
        ctl_export_lost(
            t->g->x,
            "plane %s: Slurm rejects jobs of these numbers of hosts, which fill no box of the file: %.60s%s",
            t->g->plane.name, list, strlen(list) > 60 ? "..." : "");
    free(list);
    return CTL_DONE;
}

static void put_boxes(struct torus *t)
{
    FILE *out = t->g->x->out;
    fputs("        placements:\n", out);
    for (uint32_t i = 0; i < t->n_boxes; i++) {
        uint32_t spacing[CTL_AXES];
        if (!t->boxes[i].chosen)
            continue;
        put_xyz(out, "          - ", "dims", t->boxes[i].dims);
        for (unsigned axis = 0; axis < CTL_AXES; axis++)
            spacing[axis] = box_spacing(t, axis, t->boxes[i].dims[axis]);
        if (!t->boxes[i].aligned)
            put_xyz(out, "            ", "anchor_spacing", spacing);
    }
}

enum ctl_exit ctl_slurm_torus3d(struct ctl_export *x, size_t plane)
{
    struct ctl_geometry g;
    struct torus t = {.g = &g};
    enum ctl_exit status = ctl_geometry_open(x, plane, &g);
    if (status == CTL_DONE && g.n_dims == 0)
        status = ctl_error("no torus: plane %s: its kind is %s: topology/torus3d needs a mesh or a torus",
                           g.plane.name, g.plane.kind);
    if (status == CTL_DONE)
        status = torus_fill(&t);
    if (status == CTL_DONE && !boxes_list(&t))
        status = ctl_nomem();
    if (status == CTL_DONE) {
        boxes_choose(&t);
        fprintf(x->out, "  torus3d:\n    toruses:\n      - name: \"%s\"\n        dims:\n", g.name);
        fprintf(x->out, "          x: %u\n          y: %u\n          z: %u\n", t.size[0], t.size[1],
                t.size[2]);
        status = put_cells(&t);
    }
    if (status == CTL_DONE) {
        put_boxes(&t);
        status = lost_box_sizes(&t);
    }
    free(t.cells);
    free(t.written);
    free(t.boxes);
    ctl_geometry_free(&g);
    return status;
}

/* ---- topology.yaml with one topology, a torus or rings ---- */

static enum ctl_exit one_topology(struct ctl_export *x, enum ctl_exit (*put)(struct ctl_export *, size_t))
{
    struct pmixfab_plane plane;
    char buf[CTL_VERTEX_NAME];
    if (pmixfab_plane(x->view->planes[0], &plane) != 0)
        return ctl_export_contradicts();
    fprintf(x->out, "- topology: \"%s\"\n  cluster_default: true\n", ctl_plane_name(&plane, buf));
    return put(x, 0);
}

enum ctl_exit ctl_export_slurm_torus3d(struct ctl_export *x)
{
    return one_topology(x, ctl_slurm_torus3d);
}

enum ctl_exit ctl_export_slurm_ring(struct ctl_export *x)
{
    return one_topology(x, ctl_slurm_ring);
}
