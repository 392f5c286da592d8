/*
 * slurm_difference.c - the difference between a file and slurmctld: nodes to move, and changes that slurmctld
 * gets only from its file.
 *
 * From 25.05 on `scontrol update NodeName=... Topology=...` gives a node all its places at once, and creates
 * a missing switch below an existing one. It creates no root and no block, and moves no switch.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "fabricctl/slurm/slurm.h"
#include "topo/base/array.h"
#include "topo/base/natural.h"
#include "topo/base/search.h"

#define NONE UINT32_MAX

struct comparison {
    const struct slurm_topologies *file, *slurm;
    const struct fab_hostlist *nodes;
    bool updates;
    struct slurm_difference *out;
    int rc;
};

/* Add a line to one of the lists. */
static void add_line(struct comparison *c, char ***lines, uint32_t *n, uint32_t *room, const char *fmt,
                     va_list args)
{
    char *line = NULL;
    if (!FAB_ARRAY_ROOM(lines, room, *n + UINT64_C(1)) || vasprintf(&line, fmt, args) < 0) {
        c->rc = PMIXFAB_ERR_NOMEM;
        return;
    }
    (*lines)[(*n)++] = line;
}

__attribute__((format(printf, 2, 3))) static void add_structure(struct comparison *c, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    add_line(c, &c->out->structure, &c->out->n_structure, &c->out->structure_room, fmt, args);
    va_end(args);
}

__attribute__((format(printf, 2, 3))) static void add_remark(struct comparison *c, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    add_line(c, &c->out->remarks, &c->out->n_remarks, &c->out->remarks_room, fmt, args);
    va_end(args);
}

static bool has_node(const struct fab_hostlist *nodes, const char *name)
{
    const uint32_t i = FAB_LOWER_BOUND(0, nodes->n, at, strcmp(nodes->names[at], name) < 0);
    return i < nodes->n && strcmp(nodes->names[i], name) == 0;
}

/* ---- switches, blocks and their sizes ---- */

static const char *parent_name(const struct slurm_topology *t, uint32_t u)
{
    return t->units[u].parent != NONE ? t->units[t->units[u].parent].name : "no switch";
}

/* Compare the switches of a tree. A missing switch below another one is created by the moves of its nodes. */
static void compare_switches(struct comparison *c, const struct slurm_topology *file,
                             const struct slurm_topology *slurm)
{
    if (slurm->n_units > c->out->n_units)
        c->out->n_units = slurm->n_units;
    for (uint32_t u = 0; u < file->n_units; u++) {
        const struct slurm_unit *unit = &file->units[u];
        const uint32_t there = slurm_unit_named(slurm, unit->name);
        if (there == NONE && unit->parent == NONE)
            add_structure(c, "%s: root %s is not in Slurm", file->name, unit->name);
        else if (there == NONE && !c->updates)
            add_structure(c, "%s: switch %s is not in Slurm", file->name, unit->name);
        else if (there == NONE)
            c->out->new_units++;
        else if (strcmp(parent_name(file, u), parent_name(slurm, there)) != 0)
            add_structure(c, "%s: %s is below %s in Slurm, below %s in the file", file->name, unit->name,
                          parent_name(slurm, there), parent_name(file, u));
        else if (unit->inner != slurm->units[there].inner && slurm->lists[there].n > 0)
            add_structure(c, "%s: %s has %s in Slurm, %s in the file", file->name, unit->name,
                          unit->inner ? "nodes" : "switches", unit->inner ? "switches" : "nodes");
    }
    for (uint32_t u = 0; u < slurm->n_units; u++)
        if (slurm_unit_named(file, slurm->units[u].name) == NONE && !slurm->units[u].inner &&
            slurm->lists[u].n == 0)
            add_remark(c, "%s: switch %s is empty and not in the file: it goes when slurmctld restarts",
                       file->name, slurm->units[u].name);
}

/*
 * Compare the sequence of blocks, which slurmctld joins to larger ones, and their sizes. slurmctld uses the
 * sizes up to the first one that holds all blocks.
 */
static void compare_blocks(struct comparison *c, const struct slurm_topology *file,
                           const struct slurm_topology *slurm)
{
    uint32_t used = 0, at = 0;
    while (at < file->n_units && at < slurm->n_units &&
           strcmp(file->units[at].name, slurm->units[at].name) == 0)
        at++;
    if (at < file->n_units || at < slurm->n_units)
        add_structure(c, "%s: block %u is %s in Slurm, %s in the file", file->name, at + 1,
                      at < slurm->n_units ? slurm->units[at].name : "missing",
                      at < file->n_units ? file->units[at].name : "missing");
    while (used < file->n_sizes && (used == 0 || file->sizes[used - 1] / file->sizes[0] < file->n_units))
        used++;
    if (used != slurm->n_sizes || memcmp(file->sizes, slurm->sizes, used * sizeof file->sizes[0]) != 0)
        add_structure(c, "%s: the sizes of blocks in Slurm are not those of the file", file->name);
}

/* A ring or torus is equal if it has the same units with the same nodes; the order of a ring counts. */
static void compare_positions(struct comparison *c, const struct slurm_topology *file,
                              const struct slurm_topology *slurm)
{
    for (uint32_t u = 0; u < file->n_units || u < slurm->n_units; u++) {
        const char *name = u < file->n_units ? file->units[u].name : slurm->units[u].name;
        const uint32_t a = slurm_unit_named(file, name), b = slurm_unit_named(slurm, name);
        bool equal = a != NONE && b != NONE && file->lists[a].n == slurm->lists[b].n;
        for (uint32_t i = 0; equal && i < file->lists[a].n; i++)
            equal = file->kind == SLURM_RING ? strcmp(file->lists[a].names[i], slurm->lists[b].names[i]) == 0
                                             : slurm_unit_of(slurm, file->lists[a].names[i]) == b;
        if (!equal)
            add_structure(c, "%s: %s %s has other nodes in Slurm than in the file", file->name,
                          slurm_kind_name(file->kind), name);
    }
}

static void compare_structure(struct comparison *c)
{
    for (uint32_t i = 0; i < c->file->n; i++) {
        const struct slurm_topology *file = &c->file->items[i];
        const struct slurm_topology *slurm = slurm_topology_named(c->slurm, file->name);
        if (slurm == NULL) {
            add_structure(c, "topology %s is not in Slurm", file->name);
            c->out->plugin |= !c->file->yaml;
        } else if (slurm->kind != file->kind) {
            add_structure(c, "topology %s is topology/%s in Slurm, topology/%s in the file", file->name,
                          slurm_kind_name(slurm->kind), slurm_kind_name(file->kind));
            c->out->plugin |= !c->file->yaml;
        } else if (file->kind == SLURM_TREE)
            compare_switches(c, file, slurm);
        else if (file->kind == SLURM_BLOCK)
            compare_blocks(c, file, slurm);
        else if (file->kind != SLURM_FLAT)
            compare_positions(c, file, slurm);
    }
}

/* ---- nodes ---- */

/* Write ":root:pod:leaf". */
static void put_path(FILE *out, const struct slurm_topology *t, uint32_t unit)
{
    if (t->units[unit].parent != NONE)
        put_path(out, t, t->units[unit].parent);
    fprintf(out, ":%s", t->units[unit].name);
}

static bool moves_by_update(const struct slurm_topology *t)
{
    return t->kind == SLURM_TREE || t->kind == SLURM_BLOCK;
}

/* Return all places of a node in the file, as Topology= needs them; NULL without memory. */
static char *node_target(const struct comparison *c, const char *node)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    bool first = true;
    for (uint32_t i = 0; out != NULL && i < c->file->n; i++) {
        const struct slurm_topology *t = &c->file->items[i];
        const uint32_t unit = slurm_unit_of(t, node);
        if (unit == NONE || !moves_by_update(t))
            continue;
        fprintf(out, "%s%s", first ? "" : ",", t->name);
        put_path(out, t, unit);
        first = false;
    }
    if (out == NULL || fclose(out) != 0) {
        free(text);
        text = NULL;
    }
    return text;
}

/* Return whether the node is listed by a second unit of the topology. */
static bool is_listed_twice(const struct slurm_topology *t, const char *node)
{
    uint32_t n;
    slurm_places_of(t, node, &n);
    return n > 1;
}

static void compare_node(struct comparison *c, const char *node)
{
    struct slurm_move move = {.node = node, .leaves = true};
    for (uint32_t i = 0; i < c->file->n; i++) {
        const struct slurm_topology *file = &c->file->items[i];
        const struct slurm_topology *slurm = slurm_topology_named(c->slurm, file->name);
        const uint32_t to = slurm_unit_of(file, node);
        uint32_t from;
        if (slurm == NULL || slurm->kind != file->kind || !moves_by_update(file))
            continue;
        from = slurm_unit_of(slurm, node);
        move.leaves &= to == NONE;
        const char *is = from != NONE ? slurm->units[from].name : "in no switch";
        const char *wanted = to != NONE ? file->units[to].name : "in no switch";
        if (move.change == NULL && (strcmp(is, wanted) != 0 || is_listed_twice(slurm, node)) &&
            asprintf(&move.change, "%s%s%s in Slurm, %s in the file%s", c->file->yaml ? file->name : "",
                     c->file->yaml ? ": " : "", is, wanted,
                     strcmp(is, wanted) == 0 ? ", and in Slurm at a second switch" : "") < 0)
            c->rc = PMIXFAB_ERR_NOMEM;
    }
    if (move.change == NULL)
        return;
    move.target = node_target(c, node);
    if (move.target == NULL || c->rc != 0 ||
        !FAB_ARRAY_ROOM(&c->out->moves, &c->out->room, c->out->n_moves + UINT64_C(1))) {
        free(move.target);
        free(move.change);
        c->rc = PMIXFAB_ERR_NOMEM;
        return;
    }
    c->out->moves[c->out->n_moves++] = move;
}

static int compare_remarked(const void *a, const void *b)
{
    return fab_natural_cmp(*(char *const *)a, *(char *const *)b);
}

/* Add a remark with a list of nodes, if it is not empty. The list is sorted. */
static void remark_nodes(struct comparison *c, const char *topology, const char *what, char **names,
                         uint32_t n)
{
    char *list;
    if (n == 0)
        return;
    qsort(names, n, sizeof *names, compare_remarked);
    list = fab_hostlist_fold((const char *const *)names, n);
    add_remark(c, "%s: %s: %.200s%s", topology, what, list != NULL ? list : "",
               list != NULL && strlen(list) > 200 ? "..." : "");
    free(list);
}

/* Report nodes of the file that slurmctld does not have, and nodes of slurmctld without a place. */
static void compare_lists(struct comparison *c)
{
    const struct slurm_topologies *all = c->file;
    struct fab_hostlist unknown = {0}, bare = {0};
    for (uint32_t i = 0; i < all->n; i++) {
        const struct slurm_topology *t = &all->items[i];
        unknown.n = 0;
        bare.n = 0;
        for (uint32_t p = 0; p < t->n_places; p++)
            if (!has_node(c->nodes, t->places[p].node) &&
                FAB_ARRAY_ROOM(&unknown.names, &unknown.room, unknown.n + UINT64_C(1)))
                unknown.names[unknown.n++] = (char *)t->places[p].node;
        for (uint32_t n = 0; n < c->nodes->n && t->kind != SLURM_FLAT; n++)
            if (slurm_unit_of(t, c->nodes->names[n]) == NONE &&
                FAB_ARRAY_ROOM(&bare.names, &bare.room, bare.n + UINT64_C(1)))
                bare.names[bare.n++] = c->nodes->names[n];
        c->out->n_unknown += unknown.n;
        remark_nodes(c, t->name, "not shown by Slurm", unknown.names, unknown.n);
        remark_nodes(c, t->name, "without a place in the file", bare.names, bare.n);
    }
    free(unknown.names);
    free(bare.names);
}

/* Moves to a place come first, so that no node waits in no switch for the removal of another one. */
static int compare_moves(const void *a, const void *b)
{
    const struct slurm_move *x = a, *y = b;
    int order = x->leaves - y->leaves;
    if (order == 0)
        order = strcmp(x->target, y->target);
    if (order == 0)
        order = strcmp(x->change, y->change);
    return order != 0 ? order : fab_natural_cmp(x->node, y->node);
}

int slurm_compare(const struct slurm_topologies *file, const struct slurm_topologies *slurm,
                  const struct fab_hostlist *nodes, bool updates, struct slurm_difference *out)
{
    struct comparison c = {file, slurm, nodes, updates, out, 0};
    *out = (struct slurm_difference){.moves = NULL};
    compare_structure(&c);
    for (uint32_t i = 0; i < nodes->n && c.rc == 0; i++)
        compare_node(&c, nodes->names[i]);
    compare_lists(&c);
    if (out->n_moves > 0)
        qsort(out->moves, out->n_moves, sizeof *out->moves, compare_moves);
    if (c.rc != 0)
        slurm_difference_free(out);
    return c.rc;
}

uint32_t slurm_moves_together(const struct slurm_difference *difference, uint32_t first)
{
    const struct slurm_move *move = &difference->moves[first];
    uint32_t n = 1;
    while (first + n < difference->n_moves && move[n].leaves == move->leaves &&
           strcmp(move[n].target, move->target) == 0)
        n++;
    return n;
}

void slurm_print_moves(const struct slurm_difference *d)
{
    for (uint32_t at = 0, n; at < d->n_moves; at += n) {
        const char **names = malloc((d->n_moves + (size_t)1) * sizeof *names);
        char *list = NULL;
        for (n = 0; names != NULL && at + n < d->n_moves &&
                    strcmp(d->moves[at + n].change, d->moves[at].change) == 0;
             n++)
            names[n] = d->moves[at + n].node;
        n = n > 0 ? n : 1;
        list = names != NULL ? fab_hostlist_fold(names, n) : NULL;
        printf("%s: %s\n", list != NULL ? list : d->moves[at].node, d->moves[at].change);
        free(list);
        free(names);
    }
}

static void free_lines(char **lines, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        free(lines[i]);
    free(lines);
}

void slurm_difference_free(struct slurm_difference *difference)
{
    for (uint32_t i = 0; i < difference->n_moves; i++) {
        free(difference->moves[i].target);
        free(difference->moves[i].change);
    }
    free(difference->moves);
    free_lines(difference->structure, difference->n_structure);
    free_lines(difference->remarks, difference->n_remarks);
    *difference = (struct slurm_difference){.moves = NULL};
}
