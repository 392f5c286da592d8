/* spread.c - what a job would feel of where it is. */
#include <stdlib.h>
#include <string.h>

#include "place/classes.h"
#include "topo/base/give.h"
#include "topo/base/order.h"

struct spread {
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

/* All pairs, as pairs of classes. */
static int spread_pairs(struct spread *s, uint32_t *near, uint16_t *row)
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
    return PMIXFAB_OK;
}

/* The switches between the two devices that the worst pair uses. */
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

/* Messages by rank: how many there were, and which of them went far. */
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

/* How many different numbers there are; FAB_NONE is none. They are sorted. */
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

static int spread_ranks(struct spread *s, const uint32_t *hosts)
{
    uint32_t *of_host = malloc((s->fab->meta->n_hosts + (size_t)1) * sizeof(*of_host));

    s->class_of = malloc(s->n * sizeof(*s->class_of));
    if (of_host != NULL && s->class_of != NULL) {
        for (uint32_t c = 0; c < s->classes.n; c++)
            for (uint32_t i = 0; i < s->classes.classes[c].n_hosts; i++)
                of_host[s->classes.hosts[s->classes.classes[c].first_host + i]] = c;
        for (uint32_t r = 0; r < s->n; r++)
            s->class_of[r] = of_host[hosts[r]];
    }
    const int rc = of_host != NULL && s->class_of != NULL ? PMIXFAB_OK : PMIXFAB_ERR_NOMEM;
    free(of_host);
    return rc;
}

static int spread_all(struct spread *s, const uint32_t *hosts)
{
    uint32_t *near = malloc((s->fab->costs.n_edges + (size_t)1) * sizeof(*near));
    uint16_t *row = malloc((s->classes.n + (size_t)1) * sizeof(*row));
    uint32_t *switches =
        malloc(((size_t)s->fab->meta->n_devices + s->fab->meta->n_switches + 1) * sizeof(*switches));
    int rc = PMIXFAB_ERR_NOMEM;

    if (near != NULL && row != NULL && switches != NULL)
        rc = spread_ranks(s, hosts) ?: spread_pairs(s, near, row);
    if (rc == PMIXFAB_OK) {
        spread_patterns(s);
        if (s->made.worst_a != UINT32_MAX)
            spread_worst_path(s, switches);
        spread_count(s, switches);
    }
    free(near);
    free(row);
    free(switches);
    free(s->class_of);
    return rc;
}

int pmixfab_spread_sized(const struct pmixfab *fab, const uint32_t *hosts, size_t n,
                         struct pmixfab_spread *out, size_t size)
{
    struct spread s = {.fab = fab, .n = (uint32_t)n, .made = {.worst_a = UINT32_MAX, .worst_b = UINT32_MAX}};

    if (fab == NULL || hosts == NULL || n == 0 || out == NULL || size == 0)
        return PMIXFAB_ERR_INVAL;
    int rc = fab_classes_find(fab, hosts, n, FAB_CLASSES_UNITS, &s.classes);
    if (rc == PMIXFAB_OK && s.classes.n_hosts != n)
        rc = PMIXFAB_ERR_INVAL; /* one is there twice */
    if (rc == PMIXFAB_OK)
        rc = spread_all(&s, hosts);
    if (rc == PMIXFAB_OK)
        fab_give(out, size, &s.made, sizeof(s.made));
    fab_classes_destroy(&s.classes);
    return rc;
}
