/* classes.c - sort the hosts of a plane into classes by their attachments. */
#include "place/place_private.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "topo/base/array.h"

/* The search for classes, in progress. */
struct class_finder {
    struct fab_scratch scratch;
    const struct pmixfab *fab;
    unsigned how;
    struct fab_classes *out;
    struct fab_attachment *own; /* of the current host */
    uint32_t n_own, own_room, class_room, at_room;
    uint32_t *slots; /* a hash table of classes; FAB_NONE: empty */
    uint32_t mask;
    uint32_t *class_of; /* per host of the plane; FAB_NONE: none */
};

static bool class_host_is_up(const struct pmixfab *fab, uint32_t host)
{
    const uint32_t end = fab_reader_host_end(fab, host);

    for (uint32_t d = fab_reader_first_used(fab, host); d < end; d = fab_reader_next_used(fab, host, d))
        if (fab->devices[d].state != PMIXFAB_STATE_DOWN)
            return true;
    return false;
}

/* Add an attachment of the host, in order of edges; of two to one leaf the cheaper one counts. */
static bool class_attach(struct class_finder *f, uint32_t edge, uint32_t access)
{
    uint32_t at = f->n_own;

    while (at > 0 && f->own[at - 1].edge >= edge)
        at--;
    if (at < f->n_own && f->own[at].edge == edge) {
        if (access < f->own[at].access)
            f->own[at].access = access;
        return true;
    }
    if (!FAB_ARRAY_ROOM(&f->own, &f->own_room, (uint64_t)f->n_own + 1))
        return false;
    memmove(f->own + at + 1, f->own + at, (f->n_own - at) * sizeof(*f->own));
    f->own[at] = (struct fab_attachment){edge, access};
    f->n_own++;
    return true;
}

static bool class_attachments(struct class_finder *f, uint32_t host, bool up)
{
    const struct pmixfab *fab = f->fab;
    uint32_t least = UINT32_MAX;
    const uint32_t end = fab_reader_host_end(fab, host);

    f->n_own = 0;
    for (uint32_t d = fab_reader_first_used(fab, host); d < end; d = fab_reader_next_used(fab, host, d))
        if ((!up || fab->devices[d].state != PMIXFAB_STATE_DOWN) &&
            !class_attach(f, fab->costs.edge[d], fab->costs.access[d]))
            return false;
    for (uint32_t i = 0; i < f->n_own; i++)
        least = f->own[i].access < least ? f->own[i].access : least;
    for (uint32_t i = 0; i < f->n_own && (f->how & FAB_CLASSES_LEAVES) != 0; i++)
        f->own[i].access -= least;
    return true;
}

/* Return the class of the current host, a new one if there is none; FAB_NONE without memory. */
static uint32_t class_of_own(struct class_finder *f)
{
    struct fab_classes *out = f->out;
    const size_t size = f->n_own * sizeof(*f->own);
    uint32_t slot = (uint32_t)XXH3_64bits(f->own, size) & f->mask;

    for (; f->slots[slot] != FAB_NONE; slot = (slot + 1) & f->mask) {
        const struct fab_class *known = &out->classes[f->slots[slot]];
        if (known->n_at == f->n_own && memcmp(out->at + known->first_at, f->own, size) == 0)
            return f->slots[slot];
    }
    if (!FAB_ARRAY_ROOM(&out->classes, &f->class_room, (uint64_t)out->n + 1) ||
        !FAB_ARRAY_ROOM(&out->at, &f->at_room, (uint64_t)out->n_at + f->n_own))
        return FAB_NONE;
    memcpy(out->at + out->n_at, f->own, size);
    out->classes[out->n] = (struct fab_class){.first_at = out->n_at, .n_at = f->n_own};
    out->n_at += f->n_own;
    f->slots[slot] = out->n;
    return out->n++;
}

/* Mark the wanted hosts. */
static int class_mark(struct class_finder *f, const uint32_t *hosts, size_t n)
{
    const uint32_t all = f->fab->meta->n_hosts;

    for (uint32_t h = 0; h < all; h++)
        f->class_of[h] = hosts == NULL ? 0 : FAB_NONE;
    for (size_t i = 0; hosts != NULL && i < n; i++) {
        if (hosts[i] >= all)
            return PMIXFAB_ERR_INVAL;
        f->class_of[hosts[i]] = 0;
    }
    return PMIXFAB_OK;
}

static int class_sort_hosts(struct class_finder *f)
{
    struct fab_classes *out = f->out;

    for (uint32_t h = 0; h < f->fab->meta->n_hosts; h++) {
        if (f->class_of[h] == FAB_NONE)
            continue;
        const bool up = class_host_is_up(f->fab, h);
        if (!up && (f->how & FAB_CLASSES_UP) != 0) {
            out->n_down++;
            f->class_of[h] = FAB_NONE;
            continue;
        }
        const uint32_t c = class_attachments(f, h, up) ? class_of_own(f) : FAB_NONE;
        if (c == FAB_NONE)
            return PMIXFAB_ERR_NOMEM;
        f->class_of[h] = c;
        out->classes[c].n_hosts++;
        out->n_hosts++;
    }
    out->hosts = calloc(out->n_hosts + (size_t)1, sizeof(*out->hosts));
    if (out->hosts == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t c = 0, at = 0; c < out->n; c++) {
        out->classes[c].first_host = at;
        at += out->classes[c].n_hosts;
        out->classes[c].n_hosts = 0;
    }
    for (uint32_t h = 0; h < f->fab->meta->n_hosts; h++)
        if (f->class_of[h] != FAB_NONE) {
            struct fab_class *c = &out->classes[f->class_of[h]];
            out->hosts[c->first_host + c->n_hosts++] = h;
        }
    return PMIXFAB_OK;
}

static uint16_t class_cost(uint32_t cost)
{
    if (cost == UINT32_MAX)
        return FAB_COST_NO_PATH;
    return (uint16_t)(cost > FAB_COST_MAX ? FAB_COST_MAX : cost);
}

void fab_class_row(const struct pmixfab *fab, const struct fab_classes *classes, uint32_t c, uint32_t *near,
                   uint16_t *row)
{
    const uint32_t n_edges = fab->costs.n_edges;
    const struct fab_class *from = &classes->classes[c];

    memset(near, 0xff, n_edges * sizeof(*near));
    for (uint32_t i = 0; i < from->n_at; i++) {
        const struct fab_attachment *at = &classes->at[from->first_at + i];
        const uint16_t *dist = fab->costs.dist + (size_t)at->edge * n_edges;
        for (uint32_t e = 0; e < n_edges; e++) {
            const uint32_t cost = dist[e] == FAB_COST_NO_PATH ? UINT32_MAX : dist[e] + at->access;
            near[e] = cost < near[e] ? cost : near[e];
        }
    }
    for (uint32_t d = 0; d < classes->n; d++) {
        const struct fab_class *to = &classes->classes[d];
        uint32_t least = UINT32_MAX;
        for (const struct fab_attachment *at = classes->at + to->first_at, *end = at + to->n_at; at < end;
             at++)
            if (near[at->edge] != UINT32_MAX && near[at->edge] + at->access < least)
                least = near[at->edge] + at->access;
        row[d] = class_cost(least);
    }
}

uint16_t fab_class_cost(const struct pmixfab *fab, const struct fab_classes *classes, uint32_t c, uint32_t d)
{
    const struct fab_class *from = &classes->classes[c], *to = &classes->classes[d];
    uint32_t least = UINT32_MAX;

    for (uint32_t i = 0; i < from->n_at; i++)
        for (uint32_t j = 0; j < to->n_at; j++) {
            const struct fab_attachment *a = &classes->at[from->first_at + i],
                                        *b = &classes->at[to->first_at + j];
            const uint16_t dist = fab->costs.dist[(size_t)a->edge * fab->costs.n_edges + b->edge];
            const uint32_t cost = a->access + dist + b->access;
            least = dist != FAB_COST_NO_PATH && cost < least ? cost : least;
        }
    return class_cost(least);
}

static bool class_plane_has_units(const struct pmixfab *fab)
{
    for (uint32_t s = 0; s < fab->meta->n_switches && fab->rails != NULL; s++)
        if (fab->rails[s].unit != FAB_NONE)
            return true;
    return false;
}

static int class_units(const struct pmixfab *fab, struct fab_classes *out)
{
    const char *kind = fab_reader_string(fab, fab->meta->kind);
    const bool by_leaves = class_plane_has_units(fab);
    const bool by_group = strcmp(kind, "fat-tree-3") == 0 || strcmp(kind, "dragonfly") == 0;

    out->has_units = by_leaves || by_group;
    out->units = malloc((out->n + (size_t)1) * sizeof(*out->units));
    for (uint32_t c = 0; c < out->n && out->units != NULL; c++) {
        const uint32_t host = out->hosts[out->classes[c].first_host],
                       first = fab_reader_first_used(fab, host);
        out->units[c] = by_leaves || !by_group ? FAB_NONE : fab->logical[(size_t)first * fab->meta->dims];
        for (uint32_t d = first; d < fab_reader_host_end(fab, host) && by_leaves;
             d = fab_reader_next_used(fab, host, d))
            if (fab->devices[d].sw != FAB_NONE && out->units[c] == FAB_NONE)
                out->units[c] = fab->rails[fab->devices[d].sw].unit;
    }
    return out->units != NULL ? PMIXFAB_OK : PMIXFAB_ERR_NOMEM;
}

static int class_all_costs(const struct pmixfab *fab, struct fab_classes *out)
{
    if (out->n > FAB_CLASSES_MAX)
        return PMIXFAB_ERR_RANGE;
    uint32_t *near = malloc((fab->costs.n_edges + (size_t)1) * sizeof(*near));
    out->costs = malloc(((size_t)out->n * out->n + 1) * sizeof(*out->costs));
    for (uint32_t c = 0; c < out->n && near != NULL && out->costs != NULL; c++)
        fab_class_row(fab, out, c, near, out->costs + (size_t)c * out->n);
    free(near);
    return near != NULL && out->costs != NULL ? PMIXFAB_OK : PMIXFAB_ERR_NOMEM;
}

int fab_classes_find(const struct pmixfab *fab, const uint32_t *hosts, size_t n, unsigned how,
                     struct fab_classes *out)
{
    struct class_finder f = {.fab = fab, .how = how, .out = out, .mask = 15};
    int rc = PMIXFAB_ERR_NOMEM;

    *out = (struct fab_classes){.n_edges = fab->costs.n_edges};
    while (f.mask < 2 * (uint64_t)fab->meta->n_hosts)
        f.mask = 2 * f.mask + 1;
    FAB_SCRATCH(&f.scratch, &f.slots, f.mask);
    FAB_SCRATCH(&f.scratch, &f.class_of, fab->meta->n_hosts);
    if (f.scratch.failed)
        goto cleanup;
    memset(f.slots, 0xff, (f.mask + (size_t)1) * sizeof(*f.slots));
    rc = class_mark(&f, hosts, n) ?: class_sort_hosts(&f);
    if (rc == PMIXFAB_OK && (how & FAB_CLASSES_COSTS) != 0)
        rc = class_all_costs(fab, out);
    if (rc == PMIXFAB_OK && (how & FAB_CLASSES_UNITS) != 0)
        rc = class_units(fab, out);
cleanup:
    fab_scratch_free(&f.scratch);
    free(f.own);
    if (rc != PMIXFAB_OK)
        fab_classes_destroy(out);
    return rc;
}

void fab_classes_destroy(struct fab_classes *classes)
{
    free(classes->classes);
    free(classes->hosts);
    free(classes->at);
    free(classes->costs);
    free(classes->units);
    *classes = (struct fab_classes){0};
}

bool fab_classes_meet(const struct fab_classes *classes, uint32_t c, uint32_t d)
{
    const struct fab_attachment *a = classes->at + classes->classes[c].first_at;
    const struct fab_attachment *b = classes->at + classes->classes[d].first_at;
    const struct fab_attachment *a_end = a + classes->classes[c].n_at, *b_end = b + classes->classes[d].n_at;

    while (a < a_end && b < b_end && a->edge != b->edge)
        a->edge < b->edge ? a++ : b++;
    return a < a_end && b < b_end;
}
