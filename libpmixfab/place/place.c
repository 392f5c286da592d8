/* place.c - choose hosts for a job. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "place/place_private.h"
#include "topo/base/give.h"

/*
 * Steps of some nanoseconds each: a time that a scheduler can wait. With few hosts the search goes on until
 * the best choice is known.
 */
#define PLACE_SEARCH_WORK   UINT64_C(8000000)
#define PLACE_EXACT_WORK    UINT64_C(2000000)
#define PLACE_FEW_HOSTS     20u
#define PLACE_FEW_WORK      UINT64_C(4000000000)
#define PLACE_REFER_CLASSES 1024u

/* For all limits of `max` together; each limit reads all costs this many times. */
#define PLACE_LIMITS_WORK UINT64_C(600000000)
#define PLACE_LOOKS       6u

struct place {
    struct fab_scratch scratch;
    struct fab_classes classes;
    struct fab_choice choice;
    double *shift, *sums;
    uint16_t farthest; /* lower bound for the farthest pair of any n hosts */
    uint64_t value, bound;
};

/*
 * Shift by half of the cost between two hosts of one class. In trees of one depth, the rest of the cost is
 * then equal for all hosts that meet at one level.
 */
static void place_shift_by_half(struct place *place)
{
    const struct fab_classes *classes = &place->classes;
    for (uint32_t c = 0; c < classes->n; c++) {
        const uint16_t cost = classes->costs[(size_t)c * classes->n + c];
        place->shift[c] = cost == FAB_COST_NO_PATH ? 0 : cost / 2.0;
    }
}

/*
 * Shift by the cost to one member, which turns the costs of any tree into those of a tree of one depth
 * (Farris's transform).
 */
static void place_shift_to(struct place *place, uint32_t class)
{
    const struct fab_classes *classes = &place->classes;
    for (uint32_t c = 0; c < classes->n; c++)
        place->shift[c] = classes->costs[(size_t) class * classes->n + c];
}

/* Return whether the smallest number of leaves is known, and only the sum may still be lower. */
static bool place_counted(const struct fab_choice *p)
{
    return p->leaf > 0 && (uint64_t)(p->value / p->leaf) == (uint64_t)(p->bound / p->leaf);
}

/* Find the best choice for one limit and one weight of leaves. */
static void place_solve(struct place *place, uint32_t limit, double far, double leaf)
{
    struct fab_choice *p = &place->choice;
    const uint32_t n = place->classes.n;

    p->classes = &place->classes;
    p->limit = limit;
    p->far = far;
    p->leaf = leaf;
    p->value = INFINITY;
    p->bound = 0;
    place_shift_by_half(place);
    fab_choice_tree(p, place->shift, true);
    if (fab_choice_proven(p))
        return;
    if (leaf > 0) {
        fab_choice_tree(p, place->shift, false);
        fab_choice_cover(p, PLACE_SEARCH_WORK);
    } else
        fab_choice_nearest(p, place->sums, &place->farthest);
    if (!fab_choice_proven(p) && n <= PLACE_REFER_CLASSES) {
        place_shift_to(place, 0);
        fab_choice_tree(p, place->shift, true);
    }
    if (!fab_choice_proven(p) && leaf == 0)
        fab_choice_search(p, place->sums, PLACE_SEARCH_WORK);
    if (!fab_choice_proven(p))
        fab_choice_exact(p, place->classes.n_hosts <= PLACE_FEW_HOSTS && !place_counted(p)
                                ? PLACE_FEW_WORK
                                : PLACE_EXACT_WORK);
}

/* Return a weight above that of all pairs no farther apart than `limit`, and of all leaves. */
static double place_pairs(const struct place *place, uint32_t limit)
{
    const double n = place->choice.n;
    uint32_t most = 0;
    for (size_t i = 0; i < (size_t)place->classes.n * place->classes.n; i++)
        if (place->classes.costs[i] > most && place->classes.costs[i] <= limit)
            most = place->classes.costs[i];
    return 1 + n * (n - 1) / 2 * most;
}

static void place_by_sum(struct place *place)
{
    place_solve(place, FAB_COST_MAX, 2 * place_pairs(place, FAB_COST_MAX), 0);
    place->value = (uint64_t)place->choice.value;
    place->bound = (uint64_t)place->choice.bound;
}

static void place_by_leaves(struct place *place)
{
    const double leaf = place_pairs(place, FAB_COST_MAX);
    place_solve(place, FAB_COST_MAX, 2 * leaf * (place->classes.n_edges + 1.0), leaf);
    place->value = (uint64_t)(place->choice.value / leaf);
    place->bound = (uint64_t)(place->choice.bound / leaf);
}

static uint16_t place_worst(const struct place *place)
{
    const struct fab_classes *classes = &place->classes;
    const uint32_t *counts = place->choice.counts;
    uint16_t worst = 0;

    for (uint32_t c = 0; c < classes->n; c++)
        for (uint32_t d = 0; d <= c && counts[c] > 0; d++) {
            const uint16_t cost = classes->costs[(size_t)c * classes->n + d];
            if (counts[d] > (c == d) && cost > worst)
                worst = cost;
        }
    return worst;
}

/* List the different costs of pairs between two values, ascending. Return their number. */
static uint32_t place_costs(struct place *place, uint16_t least, uint16_t most, uint16_t *costs)
{
    const size_t cells = (size_t)place->classes.n * place->classes.n;
    bool *seen;
    uint32_t n = 0;

    if (FAB_SCRATCH(&place->scratch, &seen, UINT16_MAX) == NULL)
        return 0;
    for (size_t i = 0; i < cells; i++)
        seen[place->classes.costs[i]] = true;
    for (uint32_t cost = least; cost <= most; cost++)
        if (seen[cost] || cost == most)
            costs[n++] = (uint16_t)cost;
    return n;
}

/*
 * Bisect between the lower bound and the farthest pair of the best choice, as often as about a second allows.
 * Each choice that is found replaces the best one.
 */
static void place_bisect(struct place *place, const uint16_t *costs, uint32_t n, uint32_t *spare)
{
    struct fab_choice *p = &place->choice;
    const size_t cells = (size_t)place->classes.n * place->classes.n;
    uint64_t work = 0;

    for (uint32_t low = 0, high = n - 1; low < high && work < PLACE_LIMITS_WORK;) {
        const uint32_t middle = (low + high) / 2;
        const double far = 2 * place_pairs(place, costs[middle]);
        const struct fab_choice kept = *p;
        p->counts = spare;
        place_solve(place, costs[middle], far, 0);
        work += cells * PLACE_LOOKS + PLACE_SEARCH_WORK;
        if (p->value < far) {
            spare = kept.counts;
            place->value = place_worst(place);
            while (high > low && costs[high] > place->value)
                high--;
            continue;
        }
        if (p->bound >= far / 2)
            place->bound = costs[middle + 1];
        low = middle + 1;
        *p = kept;
    }
}

/*
 * Choose by the sum, then with lower limits. If no host reaches n - 1 others, there is no choice, and its
 * weight stays too high.
 */
static void place_by_farthest(struct place *place)
{
    struct fab_choice *p = &place->choice;
    uint16_t *costs;
    uint32_t *spare;

    FAB_SCRATCH(&place->scratch, &costs, UINT16_MAX);
    FAB_SCRATCH(&place->scratch, &spare, place->classes.n);

    *p = (struct fab_choice){&place->classes, p->n, FAB_COST_MAX, 0, 0, p->counts, 0, 0};
    fab_choice_nearest(p, place->sums, &place->farthest);
    place->bound = place->farthest;
    place_solve(place, FAB_COST_MAX, 2 * place_pairs(place, FAB_COST_MAX), 0);
    place->value = place_worst(place);
    const bool reach = p->value < p->far && place->value > place->bound && !place->scratch.failed;
    const uint32_t n = reach ? place_costs(place, (uint16_t)place->bound, (uint16_t)place->value, costs) : 0;
    if (n > 0)
        place_bisect(place, costs, n, spare);
}

/* List the first hosts of each used class. */
static void place_hosts(const struct place *place, uint32_t *hosts)
{
    uint32_t n = 0;
    for (uint32_t c = 0; c < place->classes.n; c++)
        for (uint32_t i = 0; i < place->choice.counts[c]; i++)
            hosts[n++] = place->classes.hosts[place->classes.classes[c].first_host + i];
}

static int place_choose(struct place *place, enum pmixfab_objective objective)
{
    const uint32_t n = place->classes.n;

    place->choice.value = INFINITY;
    FAB_SCRATCH(&place->scratch, &place->shift, n);
    FAB_SCRATCH(&place->scratch, &place->sums, n);
    FAB_SCRATCH(&place->scratch, &place->choice.counts, n);
    if (place->scratch.failed)
        return PMIXFAB_ERR_NOMEM;
    if (objective == PMIXFAB_PLACE_MAX)
        place_by_farthest(place);
    else if (objective == PMIXFAB_PLACE_SWITCHES)
        place_by_leaves(place);
    else
        place_by_sum(place);
    if (isinf(place->choice.value))
        return PMIXFAB_ERR_NOMEM;
    return place->choice.value < place->choice.far ? PMIXFAB_OK : PMIXFAB_ERR_NOTFOUND;
}

int pmixfab_place_sized(const struct pmixfab *fab, const uint32_t *from, size_t n_from, uint32_t n,
                        enum pmixfab_objective objective, uint32_t *hosts, struct pmixfab_placement *out,
                        size_t size)
{
    struct place place = {.choice = {.n = n}};
    unsigned how = FAB_CLASSES_UP | FAB_CLASSES_COSTS;

    if (fab == NULL || n == 0 || hosts == NULL || out == NULL || size == 0 || (from == NULL && n_from > 0) ||
        (unsigned)objective > PMIXFAB_PLACE_SWITCHES)
        return PMIXFAB_ERR_INVAL;
    how |= objective == PMIXFAB_PLACE_SWITCHES ? FAB_CLASSES_LEAVES : 0;
    int rc = fab_classes_find(fab, from, n_from, how, &place.classes);
    if (rc != PMIXFAB_OK)
        return rc;
    struct pmixfab_placement made = {.n_usable = place.classes.n_hosts, .n_down = place.classes.n_down};
    rc = place.classes.n_hosts < n ? PMIXFAB_ERR_NOTFOUND : place_choose(&place, objective);
    if (rc == PMIXFAB_OK) {
        place_hosts(&place, hosts);
        made.value = place.value;
        made.bound = place.bound < place.value ? place.bound : place.value;
        rc = pmixfab_order(fab, hosts, n);
    }
    if (rc == PMIXFAB_OK || rc == PMIXFAB_ERR_NOTFOUND)
        fab_give(out, size, &made, sizeof(made));
    fab_scratch_free(&place.scratch);
    fab_classes_destroy(&place.classes);
    return rc;
}
