/* spread.c - order hosts so that neighbours are near, and compute the cost of a job on given hosts. */
#include <stdlib.h>
#include <string.h>

#include "place/place_private.h"
#include "topo/base/give.h"
#include "topo/base/order.h"

/* ---- order -----------------------------------------------------------------------------------------------
 */

struct order {
    struct fab_scratch scratch;
    const struct pmixfab *fab;
    struct fab_classes classes;
    uint32_t *walk, *rows; /* orders of the classes */
};

/*
 * Always go on to the nearest host left: in a tree this completes each part before the next. Of equally near
 * ones take one of the same unit, then the first.
 */
static int order_walk(struct order *o)
{
    const struct fab_classes *classes = &o->classes;
    uint32_t *near;
    uint16_t *row;
    bool *done;

    FAB_SCRATCH(&o->scratch, &near, o->fab->costs.n_edges);
    FAB_SCRATCH(&o->scratch, &row, classes->n);
    FAB_SCRATCH(&o->scratch, &done, classes->n);
    if (o->scratch.failed)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t i = 1, at = 0; i < classes->n; i++) {
        uint32_t best = FAB_NONE;
        done[at] = true;
        fab_class_row(o->fab, classes, at, near, row);
        for (uint32_t c = 0; c < classes->n; c++) {
            if (done[c] || (best != FAB_NONE && row[c] > row[best]))
                continue;
            if (best == FAB_NONE || row[c] < row[best] ||
                (classes->units[best] != classes->units[at] && classes->units[c] == classes->units[at]))
                best = c;
        }
        o->walk[i] = at = best;
    }
    return PMIXFAB_OK;
}

static const uint32_t *order_coords(const struct order *o, uint32_t c)
{
    const uint32_t host = o->classes.hosts[o->classes.classes[c].first_host];
    return o->fab->logical + (size_t)fab_reader_first_used(o->fab, host) * o->fab->meta->dims;
}

/* Compare row by row; each second row is backwards. */
static int order_row_cmp(const void *a, const void *b, void *arg)
{
    const struct order *o = arg;
    const uint32_t *x = order_coords(o, *(const uint32_t *)a), *y = order_coords(o, *(const uint32_t *)b);
    uint32_t before = 0;

    for (uint32_t i = 0; i < o->fab->meta->dims; before += x[i++])
        if (x[i] != y[i])
            return before % 2 == 0 ? FAB_ORDER(x[i], y[i]) : FAB_ORDER(y[i], x[i]);
    return FAB_ORDER(*(const uint32_t *)a, *(const uint32_t *)b);
}

/* Return the cost of one round through all classes. */
static uint64_t order_cost(const struct order *o, const uint32_t *list)
{
    uint64_t cost = 0;
    for (uint32_t i = 0; i < o->classes.n; i++)
        cost += fab_class_cost(o->fab, &o->classes, list[i], list[(i + 1) % o->classes.n]);
    return cost;
}

static int order_classes(struct order *o, const uint32_t **list)
{
    const char *kind = fab_reader_string(o->fab, o->fab->meta->kind);

    FAB_SCRATCH(&o->scratch, &o->walk, o->classes.n);
    FAB_SCRATCH(&o->scratch, &o->rows, o->classes.n);
    if (o->scratch.failed)
        return PMIXFAB_ERR_NOMEM;
    *list = o->walk;
    const int rc = order_walk(o);
    if (rc != PMIXFAB_OK || (strncmp(kind, "torus", 5) != 0 && strncmp(kind, "mesh", 4) != 0))
        return rc;
    for (uint32_t c = 0; c < o->classes.n; c++)
        o->rows[c] = c;
    qsort_r(o->rows, o->classes.n, sizeof(*o->rows), order_row_cmp, o);
    if (order_cost(o, o->rows) < order_cost(o, o->walk))
        *list = o->rows;
    return PMIXFAB_OK;
}

int pmixfab_order(const struct pmixfab *fab, uint32_t *hosts, size_t n)
{
    struct order o = {.fab = fab};
    const uint32_t *list = NULL;

    if (fab == NULL || hosts == NULL || n == 0)
        return PMIXFAB_ERR_INVAL;
    int rc = fab_classes_find(fab, hosts, n, FAB_CLASSES_UNITS, &o.classes);
    if (rc == PMIXFAB_OK && o.classes.n_hosts != n)
        rc = PMIXFAB_ERR_INVAL; /* a host is listed twice */
    if (rc == PMIXFAB_OK)
        rc = order_classes(&o, &list);
    for (uint32_t i = 0, at = 0; rc == PMIXFAB_OK && i < o.classes.n; i++) {
        const struct fab_class *class = &o.classes.classes[list[i]];
        memcpy(hosts + at, o.classes.hosts + class->first_host, class->n_hosts * sizeof(*hosts));
        at += class->n_hosts;
    }
    fab_scratch_free(&o.scratch);
    fab_classes_destroy(&o.classes);
    return rc;
}

/* ---- spread ----------------------------------------------------------------------------------------------
 */

struct spread {
    struct fab_scratch scratch;
    const struct pmixfab *fab;
    struct fab_classes classes;
    uint32_t *class_of; /* per rank */
    uint32_t n;
    struct pmixfab_spread made;
};

static bool spread_past_unit(const struct fab_classes *classes, uint32_t c, uint32_t d)
{
    return classes->units[c] == FAB_NONE || classes->units[c] != classes->units[d];
}

/* Sum over all pairs, as pairs of classes. */
static void spread_pairs(struct spread *s, uint32_t *near, uint16_t *row)
{
    const struct fab_classes *classes = &s->classes;
    double past_leaf = 0, past_unit = 0, pairs = s->n * (s->n - 1.0) / 2;

    for (uint32_t c = 0; c < classes->n; c++) {
        fab_class_row(s->fab, classes, c, near, row);
        for (uint32_t d = c; d < classes->n; d++) {
            const struct fab_class *a = &classes->classes[c], *b = &classes->classes[d];
            const uint64_t n =
                c == d ? (uint64_t)a->n_hosts * (a->n_hosts - 1) / 2 : (uint64_t)a->n_hosts * b->n_hosts;
            s->made.cost += n * row[d];
            if (n > 0 && (s->made.worst_a == UINT32_MAX || row[d] > s->made.worst)) {
                s->made.worst = row[d];
                s->made.worst_a = classes->hosts[a->first_host];
                s->made.worst_b = classes->hosts[b->first_host + (c == d)];
            }
            past_leaf += fab_classes_meet(classes, c, d) ? 0 : (double)n;
            past_unit += spread_past_unit(classes, c, d) ? (double)n : 0;
        }
    }
    s->made.past_leaf[PMIXFAB_ALL_TO_ALL] = pairs > 0 ? past_leaf / pairs : 0;
    s->made.past_unit[PMIXFAB_ALL_TO_ALL] = pairs > 0 ? past_unit / pairs : 0;
}

/* Count the switches between the two devices that the worst pair uses. */
static void spread_worst_path(struct spread *s, uint32_t *switches)
{
    const struct pmixfab *fab = s->fab;
    const uint32_t g = s->made.worst_a, h = s->made.worst_b, g_end = fab_reader_host_end(fab, g),
                   h_end = fab_reader_host_end(fab, h);
    uint32_t n;

    for (uint32_t a = fab_reader_first_used(fab, g); a < g_end; a = fab_reader_next_used(fab, g, a))
        for (uint32_t b = fab_reader_first_used(fab, h); b < h_end; b = fab_reader_next_used(fab, h, b))
            if (fab_cost_of(&fab->costs, a, b) == s->made.worst &&
                pmixfab_path(fab, a, b, switches, fab->meta->n_switches, &n) == PMIXFAB_OK) {
                s->made.worst_switches = n;
                return;
            }
}

/* Messages of a pattern: their number, and those that leave their leaf or unit. */
struct spread_messages {
    double n, past_leaf, past_unit;
};

static void spread_message(const struct spread *s, uint32_t from, uint32_t to, struct spread_messages *m)
{
    const uint32_t c = s->class_of[from], d = s->class_of[to];
    m->n++;
    m->past_leaf += !fab_classes_meet(&s->classes, c, d);
    m->past_unit += spread_past_unit(&s->classes, c, d);
}

static void spread_tell(struct spread *s, enum pmixfab_pattern pattern, const struct spread_messages *m)
{
    s->made.past_leaf[pattern] = m->n > 0 ? m->past_leaf / m->n : 0;
    s->made.past_unit[pattern] = m->n > 0 ? m->past_unit / m->n : 0;
}

static void spread_patterns(struct spread *s)
{
    struct spread_messages ring = {0, 0, 0}, doubling = {0, 0, 0};

    for (uint32_t r = 0; r < s->n && s->n > 1; r++) {
        const uint32_t next = (r + 1) % s->n;
        spread_message(s, r, next, &ring);
        s->made.ring_cost += fab_class_cost(s->fab, &s->classes, s->class_of[r], s->class_of[next]);
        for (uint32_t bit = 1; bit != 0 && bit < s->n; bit <<= 1)
            if ((r ^ bit) < s->n)
                spread_message(s, r, r ^ bit, &doubling);
    }
    spread_tell(s, PMIXFAB_RING, &ring);
    spread_tell(s, PMIXFAB_DOUBLING, &doubling);
}

static int spread_number_cmp(const void *a, const void *b)
{
    return FAB_ORDER(*(const uint32_t *)a, *(const uint32_t *)b);
}

/* Return the number of different values; FAB_NONE is none. The values are sorted here. */
static uint32_t spread_different(uint32_t *numbers, uint32_t n)
{
    uint32_t different = 0;
    qsort(numbers, n, sizeof(*numbers), spread_number_cmp);
    for (uint32_t i = 0; i < n && numbers[i] != FAB_NONE; i++)
        different += i == 0 || numbers[i] != numbers[i - 1];
    return different;
}

static void spread_count(struct spread *s, uint32_t *switches)
{
    const struct fab_classes *classes = &s->classes;
    uint32_t n = 0;

    for (uint32_t c = 0; c < classes->n; c++) {
        const uint32_t host = classes->hosts[classes->classes[c].first_host],
                       end = fab_reader_host_end(s->fab, host);
        for (uint32_t d = fab_reader_first_used(s->fab, host); d < end;
             d = fab_reader_next_used(s->fab, host, d))
            if (s->fab->devices[d].state != PMIXFAB_STATE_DOWN)
                switches[n++] = s->fab->devices[d].sw;
    }
    s->made.n_switches = spread_different(switches, n);
    if (classes->has_units) {
        memcpy(switches, classes->units, classes->n * sizeof(*switches));
        s->made.n_units = spread_different(switches, classes->n);
    }
}

static int spread_all(struct spread *s, const uint32_t *hosts)
{
    const struct fab_classes *classes = &s->classes;
    const struct snap_meta *meta = s->fab->meta;
    uint32_t *near, *switches, *of_host;
    uint16_t *row;

    FAB_SCRATCH(&s->scratch, &near, s->fab->costs.n_edges);
    FAB_SCRATCH(&s->scratch, &row, classes->n);
    FAB_SCRATCH(&s->scratch, &switches, (size_t)meta->n_devices + meta->n_switches);
    FAB_SCRATCH(&s->scratch, &of_host, meta->n_hosts);
    FAB_SCRATCH(&s->scratch, &s->class_of, s->n);
    if (s->scratch.failed)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t c = 0; c < classes->n; c++)
        for (uint32_t i = 0; i < classes->classes[c].n_hosts; i++)
            of_host[classes->hosts[classes->classes[c].first_host + i]] = c;
    for (uint32_t r = 0; r < s->n; r++)
        s->class_of[r] = of_host[hosts[r]];
    spread_pairs(s, near, row);
    spread_patterns(s);
    if (s->made.worst_a != UINT32_MAX)
        spread_worst_path(s, switches);
    spread_count(s, switches);
    return PMIXFAB_OK;
}

int pmixfab_spread_sized(const struct pmixfab *fab, const uint32_t *hosts, size_t n,
                         struct pmixfab_spread *out, size_t size)
{
    struct spread s = {.fab = fab, .n = (uint32_t)n, .made = {.worst_a = UINT32_MAX, .worst_b = UINT32_MAX}};

    if (fab == NULL || hosts == NULL || n == 0 || out == NULL || size == 0)
        return PMIXFAB_ERR_INVAL;
    int rc = fab_classes_find(fab, hosts, n, FAB_CLASSES_UNITS, &s.classes);
    if (rc == PMIXFAB_OK && s.classes.n_hosts != n)
        rc = PMIXFAB_ERR_INVAL; /* a host is listed twice */
    if (rc == PMIXFAB_OK)
        rc = spread_all(&s, hosts);
    if (rc == PMIXFAB_OK)
        fab_give(out, size, &s.made, sizeof(s.made));
    fab_scratch_free(&s.scratch);
    fab_classes_destroy(&s.classes);
    return rc;
}
