/* Which cables are suppressed: by hand, and against a model that keeps every change. */

#include "fabricd/engine/publisher.h"
#include "test/fabrics/fabrics.h"
#include "test/unit/test.h"

OWNER(damping_free, struct damping)

#define S 1000000ll

static const struct damping_limits usual = {.count = 3, .window = 60, .down = 30, .down_max = 600};

/* The cable from this port to one of the same number elsewhere. */
static struct damping_key cable(uint64_t guid, uint32_t port)
{
    return damping_cable((struct damping_end){1000 + guid, port}, (struct damping_end){guid, port});
}

static bool change(struct damping *damping, uint64_t guid, uint32_t port, int64_t now)
{
    const struct damping_key key = cable(guid, port);
    return damping_change(damping, &key, true, now);
}

static bool is_suppressed(const struct damping *damping, uint64_t guid, uint32_t port, int64_t *until)
{
    const struct damping_key key = cable(guid, port);
    const struct damped *damped;
    bool found = false;
    for (uint32_t at = 0; !found && (damped = damping_next(damping, &at)) != NULL;)
        found = damping_compare(&damped->key, &key) == 0;
    assert_int_equal(damping_is_suppressed(damping, &key), found);
    damped = damping_find(damping, &key);
    assert_int_equal(damped != NULL, found);
    assert_int_equal(damping_suppresses_end(damping, guid, port), found);
    assert_int_equal(damping_suppresses_end(damping, 1000 + guid, port), found);
    if (found && until != NULL)
        *until = damped->until;
    return found;
}

static struct damping *make(const struct damping_limits *limits)
{
    struct damping *damping = damping_new(limits);
    assert_non_null(damping);
    return damping;
}

TEST(a_clock_that_goes_back_stands_still)
{
    OWNED(damping_free) struct damping *damping = make(&usual);
    int64_t until = 0;
    change(damping, 7, 1, 5000 * S);
    change(damping, 7, 1, 1400 * S);
    assert_true(change(damping, 7, 1, 1401 * S));
    assert_true(is_suppressed(damping, 7, 1, &until));
    assert_int_equal(until, 5030 * S);
    assert_int_equal(damping_advance(damping, 1500 * S), 0);
    assert_int_equal(damping_advance(damping, 5030 * S), 1);
}

TEST(what_is_held_has_its_names_until_it_is_released)
{
    OWNED(damping_free) struct damping *damping = make(&usual);
    const struct damping_key key = cable(7, 1), other = cable(7, 2), sw = damping_switch(7);
    uint32_t at = 0;
    damping_name(damping, &key, "leaf1[1] - spine1[1]", "leaf1\0spine1\0"); /* not suppressed: nothing */
    assert_false(damping_release(damping, &key));
    for (int64_t t = 1; t <= 3; t++) {
        change(damping, 7, 1, t * S);
        damping_change(damping, &sw, true, t * S);
        change(damping, 7, 2, t * S - 1);
    }
    damping_name(damping, &key, "leaf1[1] - spine1[1]", "leaf1\0spine1\0");
    damping_name(damping, &sw, "spine1", "spine1\0");
    const struct damped *damped = damping_find(damping, &key);
    assert_non_null(damped);
    assert_string_equal(damped_what(damped), "leaf1[1] - spine1[1]");
    assert_memory_equal(damped_subjects(damped), "leaf1\0spine1\0", 14);
    damped = damping_find(damping, &other);
    assert_non_null(damped);
    assert_string_equal(damped_what(damped), "");
    assert_string_equal(damped_subjects(damped), "");
    assert_int_equal(damping_count(damping).cables, 2);
    assert_int_equal(damping_count(damping).switches, 1);
    assert_true(damping_release(damping, &key));
    assert_true(damping_is_suppressed(damping, &key)); /* its switch is */
    assert_true(damping_release(damping, &sw));
    assert_false(damping_is_suppressed(damping, &key));
    damped = damping_next(damping, &at);
    assert_non_null(damped);
    assert_int_equal(damping_compare(&damped->key, &other), 0);
    assert_null(damping_next(damping, &at));
    assert_false(change(damping, 7, 1, 4 * S)); /* it begins anew */
    assert_false(change(damping, 7, 1, 5 * S));
    assert_true(change(damping, 7, 1, 6 * S));
    damped = damping_find(damping, &key);
    assert_non_null(damped);
    assert_int_equal(damped->until, 36 * S);
    assert_string_equal(damped_what(damped), "");
}

TEST(it_can_be_switched_off)
{
    const struct damping_limits off = {.count = 0, .window = 60, .down = 30, .down_max = 600};
    OWNED(damping_free) struct damping *damping = make(&off);
    for (int i = 0; i < 100; i++)
        assert_false(change(damping, 7, 1, i));
    assert_int_equal(damping_remembered(damping), 0);
}

/* ---- the model: one end, all its changes ---- */

struct model {
    int64_t changes[4000];
    unsigned n;
};

/* Everything from the beginning again: is it suppressed at `now`, and until when? */
static bool model_held(const struct model *m, const struct damping_limits *l, int64_t now, int64_t *until)
{
    unsigned begin = 0; /* changes before it do not count any more */
    int64_t period = 0, end = 0;
    for (unsigned i = 0; i < m->n; i++) {
        int64_t t = m->changes[i];
        if (period != 0 && t < end) { /* while it is suppressed */
            period = period * 2 > l->down_max * S ? l->down_max * S : period * 2;
            end = t + period;
            begin = i + 1;
            continue;
        }
        unsigned within = 0;
        for (unsigned k = begin; k <= i; k++)
            within += t - m->changes[k] <= l->window * S;
        if (within < l->count)
            continue;
        if (period == 0) {
            period = l->down * S;
        } else {
            int64_t windows = (t - end) / (l->window * S);
            period = windows > 40 ? 0 : (2 * period) >> windows;
            period = period < l->down * S ? l->down * S : period > l->down_max * S ? l->down_max * S : period;
        }
        end = t + period;
        begin = i + 1;
    }
    *until = end;
    return period != 0 && now < end;
}

TEST(random_changes_are_as_the_model_says)
{
    enum { ENDS = 5 };
    for (uint64_t seed = 1; seed <= 60; seed++) {
        uint64_t dice = seed;
        struct damping_limits limits = {.count = 2 + (unsigned)(fabric_random_next(&dice) % 4),
                                        .window = 64, /* halves evenly */
                                        .down = 32,
                                        .down_max = 32u << fabric_random_next(&dice) % 6};
        struct damping *damping = make(&limits);
        OWNED(free) struct model *models = must_have(ENDS * sizeof(*models));
        int64_t now = 1 * S;
        for (unsigned step = 0; step < 600; step++) {
            static const int64_t pace[] = {1, 1, 5, 20, 50, 400, 3000};
            uint64_t which = fabric_random_next(&dice) % ENDS;
            int64_t until = 0, wanted = 0;
            now += (int64_t)(fabric_random_next(&dice) % (uint64_t)(pace[fabric_random_next(&dice) % 7] * S));
            damping_advance(damping, now);
            struct model *m = &models[which];
            bool was = model_held(m, &limits, now, &wanted);
            assert_int_equal(is_suppressed(damping, which / 2, (uint32_t)(which % 2), &until), was);
            m->changes[m->n++] = now;
            bool is = model_held(m, &limits, now, &wanted);
            assert_int_equal(change(damping, which / 2, (uint32_t)(which % 2), now), !was && is);
            uint32_t suppressed = 0;
            for (uint64_t e = 0; e < ENDS; e++) {
                bool now_held = model_held(&models[e], &limits, now, &wanted);
                assert_int_equal(is_suppressed(damping, e / 2, (uint32_t)(e % 2), &until), now_held);
                if (now_held)
                    assert_int_equal(until, wanted);
                suppressed += now_held;
            }
            assert_int_equal(damping_count(damping).cables, suppressed);
        }
        damping_advance(damping, now + 1000000 * S);
        assert_int_equal(damping_remembered(damping), 0);
        damping_free(damping);
    }
}
