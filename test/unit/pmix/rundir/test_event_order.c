/* The order of PENDING and UPDATED, against what a plain list of what has happened says. */
#include "pmix/rundir/event_order.h"

#include "test/unit/test.h"

#define PLANES 3

static const char *const names[PLANES] = {"ib0", "ib1", "eth"};

/* A publisher and its run directory; and a reader of it. */
struct world {
    struct order_plane files[PLANES];
    struct fab_pending pending;
    uint64_t generation; /* that was published last, or is under way */
    bool under_way[PLANES];
    bool died; /* in the midst of it, and `pending` stays */
    int64_t now;
    struct event_order *order;
    /* what callers heard */
    bool open[PLANES];
    uint64_t announced[PLANES], updated[PLANES];
    char text[4096];
};

static void open_world(struct world *w)
{
    *w = (struct world){.generation = 4, .order = event_order_new()};
    assert_non_null(w->order);
    w->pending.planes = must_have(PLANES * sizeof(*w->pending.planes));
    for (uint32_t i = 0; i < PLANES; i++) {
        w->files[i] = (struct order_plane){.name = names[i], .index = i, .generation = 4, .published = 40};
        w->updated[i] = 4;
        event_order_know(w->order, &w->files[i]);
    }
}

static void close_world(struct world *w)
{
    event_order_free(w->order);
    free(w->pending.planes);
}

static void begin(struct world *w, unsigned planes)
{
    w->pending.generation = ++w->generation;
    w->pending.n = 0;
    for (uint32_t i = 0; i < PLANES; i++)
        if ((w->under_way[i] = (planes >> i) & 1)) {
            struct fab_pending_plane *plane = &w->pending.planes[w->pending.n++];
            plane->index = i;
            strcpy(plane->name, names[i]);
        }
}

static void put(struct world *w, uint32_t i)
{
    w->under_way[i] = false;
    w->files[i].generation = w->generation;
    w->files[i].published = (int64_t)w->generation * 10;
    w->files[i].gone = false;
}

static void end(struct world *w)
{
    w->pending = (struct fab_pending){.planes = w->pending.planes};
}

static void publish(struct world *w, unsigned planes)
{
    begin(w, planes);
    for (uint32_t i = 0; i < PLANES; i++)
        if (w->under_way[i])
            put(w, i);
    end(w);
}

/* Look, and take all steps. What holds of any step holds of these. */
static const char *look(struct world *w)
{
    struct order_step step;
    size_t used = 0;
    w->text[0] = '\0';
    assert_int_equal(event_order_look(w->order, w->files, PLANES, &w->pending, w->now), 0);
    while (event_order_next(w->order, &step)) {
        assert_true(step.n > 0);
        for (uint32_t k = 0; k < step.n; k++) {
            const size_t i = step.changes[k].index;
            const uint64_t generation = step.changes[k].generation;
            assert_string_equal(step.changes[k].name, names[i]);
            assert_int_equal(w->open[i], !step.pending); /* in pairs */
            if (step.pending)
                w->announced[i] = generation;
            else
                w->updated[i] = generation;
            w->open[i] = step.pending;
            used +=
                (size_t)snprintf(w->text + used, sizeof(w->text) - used, "%s%s %s %lu", used == 0 ? "" : ", ",
                                 step.pending ? "pending" : "updated", names[i], (unsigned long)generation);
        }
    }
    return w->text;
}

TEST(test_each_step_is_seen)
{
    struct world w;
    open_world(&w);
    assert_string_equal(look(&w), "");
    begin(&w, 3);
    assert_string_equal(look(&w), "pending ib0 5, pending ib1 5");
    assert_true(event_order_waits(w.order));
    put(&w, 0);
    assert_string_equal(look(&w), "");
    put(&w, 1);
    assert_string_equal(look(&w), "");
    end(&w);
    assert_string_equal(look(&w), "updated ib0 5, updated ib1 5");
    assert_false(event_order_waits(w.order));
    assert_string_equal(look(&w), "");
    close_world(&w);
}

TEST(test_seen_late)
{
    struct world w;
    open_world(&w);
    publish(&w, 1); /* the watch overflowed, or the reader was busy */
    publish(&w, 5);
    assert_string_equal(look(&w), "pending ib0 6, pending eth 6, updated ib0 6, updated eth 6");
    begin(&w, 1);
    assert_string_equal(look(&w), "pending ib0 7");
    put(&w, 0);
    publish(&w, 1); /* the next one within a millisecond */
    assert_string_equal(look(&w), "updated ib0 7, pending ib0 8, updated ib0 8");
    begin(&w, 1);
    assert_string_equal(look(&w), "pending ib0 9");
    put(&w, 0);
    begin(&w, 3); /* the next one is under way */
    put(&w, 0);
    assert_string_equal(look(&w), "updated ib0 9, pending ib0 10, pending ib1 10");
    publish(&w, 4); /* a third one, of another plane, and the second is over */
    w.files[1].generation = 10;
    assert_string_equal(look(&w), "pending eth 11, updated ib0 10, updated ib1 10, updated eth 11");
    publish(&w, 1);
    begin(&w, 1); /* of 12 nothing was seen before 13 began */
    assert_string_equal(look(&w), "pending ib0 12, updated ib0 12, pending ib0 13");
    close_world(&w);
}

TEST(test_starts_in_the_middle)
{
    struct world w;
    open_world(&w);
    begin(&w, 3);
    put(&w, 0);
    for (uint32_t i = 0; i < PLANES; i++)
        event_order_know(w.order, &w.files[i]);
    assert_string_equal(look(&w), "pending ib1 5");
    put(&w, 1);
    end(&w);
    assert_string_equal(look(&w), "updated ib1 5");
    close_world(&w);
}

TEST(test_the_publisher_dies)
{
    struct world w;
    open_world(&w);
    begin(&w, 3);
    assert_string_equal(look(&w), "pending ib0 5, pending ib1 5");
    put(&w, 0);
    w.now += ORDER_PATIENCE_MS - 1;
    assert_string_equal(look(&w), "");
    w.now += 1;
    assert_string_equal(look(&w), "updated ib0 5, updated ib1 4"); /* ib1 is announced as it is */
    assert_false(event_order_waits(w.order));
    put(&w, 1); /* the next daemon completes it, and has not removed `pending` yet */
    assert_string_equal(look(&w), "pending ib1 5, updated ib1 5");
    end(&w);
    assert_string_equal(look(&w), "");
    begin(&w, 1);
    assert_string_equal(look(&w), "pending ib0 6");
    close_world(&w);
}

TEST(test_planes_that_go)
{
    struct world w;
    open_world(&w);
    begin(&w, 6);
    assert_string_equal(look(&w), "pending ib1 5, pending eth 5");
    put(&w, 1);
    w.files[2].gone = true;
    end(&w);
    assert_string_equal(look(&w), "updated ib1 5, updated eth 5");
    assert_string_equal(look(&w), "");
    publish(&w, 4);
    assert_string_equal(look(&w), "pending eth 6, updated eth 6");
    w.files[0].gone = true; /* unannounced */
    assert_string_equal(look(&w), "pending ib0 4, updated ib0 4");
    close_world(&w);
}

/* The same generation of another history; an older one, of a store that was restored. */
TEST(test_histories)
{
    struct world w;
    open_world(&w);
    w.files[0].published = 41;
    assert_string_equal(look(&w), "pending ib0 4, updated ib0 4");
    w.files[0].generation = 2;
    assert_string_equal(look(&w), "pending ib0 2, updated ib0 2");
    assert_string_equal(look(&w), "");
    close_world(&w);
}

/* A plane is known that had a pair open, when its first object is registered. */
TEST(test_known_meanwhile)
{
    struct world w;
    open_world(&w);
    begin(&w, 1);
    assert_string_equal(look(&w), "pending ib0 5");
    put(&w, 0);
    event_order_know(w.order, &w.files[0]);
    w.open[0] = false;
    assert_string_equal(look(&w), "");
    end(&w);
    assert_string_equal(look(&w), "");
    close_world(&w);
}

/* What callers have heard when all is over is what is there, and of a publication that each look could see
 * no generation is left out. */
static void walk(unsigned seed, bool sees_all)
{
    struct world w;
    open_world(&w);
    for (unsigned k = 0; k < 400; k++) {
        const uint32_t i = (uint32_t)rand_r(&seed) % PLANES;
        const bool busy = w.pending.generation != 0;
        switch (rand_r(&seed) % 8) {
        case 0:
        case 1:
            if (!busy || w.died) /* the next daemon begins with the next publication */
                begin(&w, 1 + (unsigned)rand_r(&seed) % 7);
            w.died = false;
            break;
        case 2:
        case 3:
        case 4:
            if (busy && w.under_way[i] && !w.died)
                put(&w, i);
            break;
        case 5:
            for (uint32_t p = 0; busy && !w.died && p < PLANES; p++)
                if (w.under_way[p])
                    put(&w, p);
            if (busy && !w.died)
                end(&w);
            break;
        case 6:
            w.died |= busy && !sees_all && rand_r(&seed) % 4 == 0;
            break;
        default:
            w.now += rand_r(&seed) % (sees_all ? 2 : ORDER_PATIENCE_MS);
            break;
        }
        if (sees_all || rand_r(&seed) % 3 == 0)
            look(&w);
        for (uint32_t p = 0; sees_all && p < PLANES; p++) {
            const bool named = w.pending.generation != 0 && w.announced[p] == w.generation;
            assert_int_equal(w.open[p], named);
            if (named)
                assert_int_equal(w.announced[p], w.generation);
            else
                assert_int_equal(w.updated[p], w.files[p].generation);
        }
    }
    w.now += ORDER_PATIENCE_MS;
    look(&w);
    w.now += ORDER_PATIENCE_MS;
    look(&w);
    for (uint32_t p = 0; p < PLANES; p++) {
        assert_false(w.open[p]);
        assert_int_equal(w.updated[p], w.files[p].generation);
    }
    close_world(&w);
}

TEST(test_walks)
{
    for (unsigned seed = 1; seed <= 2000; seed++)
        walk(seed, seed % 2 == 0);
}
