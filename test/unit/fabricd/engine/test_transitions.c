/* What counts as coming and going: by hand, and against a model that keeps every sweep. */

#include "fabricd/engine/publisher.h"
#include "test/fabrics/fabrics.h"
#include "test/unit/test.h"

#define S 1000000ll

/* Two leaves (1, 2) and two spines (3, 4), all cabled to each other; a host on each leaf twice (11 to 14). */
enum { SWITCHES = 4, HOSTS = 4, CABLES = 8, STEPS = 200 };
static const uint64_t ends[CABLES][2] = {{1, 3}, {1, 4}, {2, 3}, {2, 4}, {1, 11}, {1, 12}, {2, 13}, {2, 14}};

static bool is_switch(uint64_t guid)
{
    return guid <= SWITCHES;
}

static struct damping_key key_of(unsigned cable)
{
    return damping_cable((struct damping_end){ends[cable][0], cable + 1},
                         (struct damping_end){ends[cable][1], cable + 1});
}

/* ---- what is tested ---- */

struct bed {
    struct damping *damping;
    struct sweep_links seen;
    uint8_t up[CABLES];
    bool planned[HOSTS + 11];
    struct damping_key told[64];
    unsigned n_announced;
};

static bool is_planned(uint64_t guid, void *cbdata)
{
    return ((struct bed *)cbdata)->planned[guid];
}

static void on_suppressed(const struct damping_key *key, void *cbdata)
{
    struct bed *bed = cbdata;
    assert_true(bed->n_announced < 64);
    bed->told[bed->n_announced++] = *key;
}

static int by_key(const void *a, const void *b)
{
    return damping_compare(&((const struct sweep_cable *)a)->key, &((const struct sweep_cable *)b)->key);
}

/* A sweep that sees the cables that are up. */
static void sweep(struct bed *bed, int64_t now)
{
    const struct flap_calls calls = {is_planned, on_suppressed, bed};
    struct sweep_links seen = {.known = true, .cables = calloc(CABLES, sizeof(*seen.cables))};
    assert_non_null(seen.cables);
    for (unsigned i = 0; i < CABLES; i++)
        if (bed->up[i])
            seen.cables[seen.n++] =
                (struct sweep_cable){key_of(i), is_switch(ends[i][0]), is_switch(ends[i][1])};
    qsort(seen.cables, seen.n, sizeof(*seen.cables), by_key);
    bed->n_announced = 0;
    damping_advance(bed->damping, now);
    assert_int_equal(flaps_count(bed->damping, &bed->seen, &seen, now, &calls), PMIXFAB_OK);
    assert_null(seen.cables);
}

static void set_switch(struct bed *bed, uint64_t guid, bool up)
{
    for (unsigned i = 0; i < CABLES; i++)
        if (ends[i][0] == guid || ends[i][1] == guid)
            bed->up[i] = up;
}

static void begin(struct bed *bed, const struct damping_limits *limits)
{
    *bed = (struct bed){.damping = damping_new(limits)};
    assert_non_null(bed->damping);
    memset(bed->up, 1, sizeof(bed->up));
}

static void end(struct bed *bed)
{
    sweep_links_free(&bed->seen);
    damping_free(bed->damping);
}

/* ---- the model: all sweeps, from the beginning ---- */

struct past {
    int64_t when[STEPS];
    uint8_t up[STEPS][CABLES];
    bool planned[STEPS][HOSTS + 11];
    unsigned n;
};

static unsigned cables_of(const struct past *past, unsigned step, uint64_t guid)
{
    unsigned n = 0;
    for (unsigned i = 0; i < CABLES; i++)
        n += past->up[step][i] && (ends[i][0] == guid || ends[i][1] == guid);
    return n;
}

/* 1: it came altogether, -1: it went, 0: neither. */
static int switch_change(const struct past *past, unsigned step, uint64_t guid)
{
    unsigned before = cables_of(past, step - 1, guid), after = cables_of(past, step, guid);
    if (!is_switch(guid))
        return 0;
    return before == 0 && after >= 2 ? 1 : before >= 2 && after == 0 ? -1 : 0;
}

/* Was it cabled to anything that is there all the same? */
static bool is_itself(const struct past *past, unsigned step, uint64_t guid)
{
    const bool came = switch_change(past, step, guid) > 0;
    for (unsigned i = 0; i < CABLES; i++) {
        uint64_t other = ends[i][0] == guid ? ends[i][1] : ends[i][1] == guid ? ends[i][0] : 0;
        if (other != 0 && past->up[came ? step : step - 1][i] &&
            cables_of(past, came ? step - 1 : step, other) > 0)
            return true;
    }
    return false;
}

/* Something that changes: when is it suppressed? */
struct life {
    int64_t times[STEPS];
    unsigned n;
    int64_t period, until;
};

static void live(struct life *life, const struct damping_limits *l, int64_t t)
{
    unsigned within = 0;
    if (life->period != 0 && t < life->until) {
        life->period = life->period * 2 > l->down_max * S ? l->down_max * S : life->period * 2;
        life->until = t + life->period;
        return;
    }
    life->times[life->n++] = t;
    for (unsigned i = 0; i < life->n; i++)
        within += t - life->times[i] <= l->window * S;
    if (within < l->count)
        return;
    if (life->period == 0) {
        life->period = l->down * S;
    } else {
        int64_t windows = (t - life->until) / (l->window * S);
        life->period = windows > 40 ? 0 : (2 * life->period) >> windows;
        life->period = life->period < l->down * S ? l->down * S : life->period;
        life->period = life->period > l->down_max * S ? l->down_max * S : life->period;
    }
    life->until = t + life->period;
    life->n = 0;
}

static struct life life_of_switch(const struct past *past, const struct damping_limits *l, uint64_t guid)
{
    struct life life = {.n = 0};
    for (unsigned step = 1; step < past->n; step++)
        if (switch_change(past, step, guid) != 0 && is_itself(past, step, guid) && !past->planned[step][guid])
            live(&life, l, past->when[step]);
    return life;
}

static bool goes_along(const struct past *past, unsigned step, unsigned cable)
{
    for (int e = 0; e < 2; e++)
        if (past->planned[step][ends[cable][e]] || switch_change(past, step, ends[cable][e]) != 0)
            return true;
    return false;
}

static struct life life_of_cable(const struct past *past, const struct damping_limits *l, unsigned cable)
{
    struct life life = {.n = 0};
    const int64_t never = -1000000 * S;
    int64_t excused = never, went = never; /* since when; when it went, if that was counted */
    for (unsigned step = 1; step < past->n; step++) {
        const int64_t t = past->when[step];
        const bool was = past->up[step - 1][cable], is = past->up[step][cable];
        const bool along = goes_along(past, step, cable);
        if (was && !is) {
            excused = along ? t : never;
            went = along ? never : t;
            if (!along)
                live(&life, l, t);
        } else if (!was && is) {
            if (!along && t - excused > l->window * S)
                live(&life, l, t);
            excused = went = never;
        } else if (!is && t - went <= l->window * S &&
                   (switch_change(past, step, ends[cable][0]) < 0 ||
                    switch_change(past, step, ends[cable][1]) < 0)) {
            life.n -= life.n > 0 && life.times[life.n - 1] == went;
            excused = t;
            went = never;
        }
    }
    return life;
}

static void compare(const struct bed *bed, const struct past *past, const struct damping_limits *l,
                    unsigned seed)
{
    const int64_t now = past->when[past->n - 1];
    uint32_t cables = 0, switches = 0, at = 0, found = 0;
    const struct damped *damped;
    for (uint64_t guid = 1; guid <= SWITCHES; guid++) {
        struct life life = life_of_switch(past, l, guid);
        switches += life.period != 0 && now < life.until;
    }
    for (unsigned i = 0; i < CABLES; i++) {
        struct life life = life_of_cable(past, l, i);
        cables += life.period != 0 && now < life.until;
    }
    const struct damping_counts counts = damping_count(bed->damping);
    if (counts.cables != cables || counts.switches != switches)
        fail_msg("seed %u, step %u: %u cables and %u switches are held, and %u and %u should be", seed,
                 past->n, counts.cables, counts.switches, cables, switches);
    while ((damped = damping_next(bed->damping, &at)) != NULL) {
        const struct life life = damping_is_switch(&damped->key)
                                     ? life_of_switch(past, l, damped->key.end.guid)
                                     : life_of_cable(past, l, damped->key.end.port - 1);
        assert_int_equal(damped->until, life.until);
        found++;
    }
    assert_int_equal(found, cables + switches);
}

static void change_something(struct bed *bed, uint64_t *dice)
{
    const uint64_t guid = 1 + fabric_random_next(dice) % SWITCHES;
    switch (fabric_random_next(dice) % 9) {
    case 0:
    case 1:
    case 2:
        bed->up[fabric_random_next(dice) % CABLES] ^= 1;
        break;
    case 3:
    case 4:
        set_switch(bed, guid, false);
        break;
    case 5:
    case 6:
        set_switch(bed, guid, true);
        break;
    case 7: /* a spine, and a leaf behind it */
        set_switch(bed, 1 + guid % 2, bed->up[guid % 4]);
        set_switch(bed, 3 + guid / 2 % 2, bed->up[guid % 4]);
        break;
    default:
        if (fabric_random_next(dice) % 4 == 0)
            bed->planned[fabric_random_next(dice) % 2 == 0 ? guid : 10 + guid] ^= 1;
        break;
    }
}

TEST(random_changes_are_as_the_model_says)
{
    OWNED(free) struct past *past = calloc(1, sizeof(*past));
    uint64_t told = 0;
    assert_non_null(past);
    for (unsigned seed = 1; seed <= 40; seed++) {
        uint64_t dice = seed;
        const struct damping_limits limits = {.count = 1 + (unsigned)(fabric_random_next(&dice) % 4),
                                              .window = 64, /* halves evenly */
                                              .down = 32,
                                              .down_max = 32u << fabric_random_next(&dice) % 6};
        static const int64_t pace[] = {1, 3, 10, 30, 100, 1000};
        struct bed bed;
        int64_t now = 1 * S;
        begin(&bed, &limits);
        past->n = 0;
        while (past->n < STEPS) {
            for (uint64_t n = fabric_random_next(&dice) % 4; past->n > 0 && n > 0; n--)
                change_something(&bed, &dice);
            sweep(&bed, now);
            told += bed.n_announced;
            past->when[past->n] = now;
            memcpy(past->up[past->n], bed.up, sizeof(bed.up));
            memcpy(past->planned[past->n++], bed.planned, sizeof(bed.planned));
            compare(&bed, past, &limits, seed);
            now += 1 +
                   (int64_t)(fabric_random_next(&dice) % (uint64_t)(pace[fabric_random_next(&dice) % 6] * S));
        }
        damping_advance(bed.damping, now + 1000000 * S);
        assert_int_equal(damping_remembered(bed.damping), 0);
        end(&bed);
    }
    assert_true(told > 100);
}
