/* What is told to be missing is told to be back, replaced, moved or lost later: random changes, with what
 * keeps its place and what loses it again, and after each step what the history left open is what is missing.
 */
#include "test/unit/hands.h"
#include "topo/changes/lost_list.h"
#include "topo/model/inventory_text.h"
#include "topo/model/retain.h"

/* Told to be missing, and nothing else since. */
struct open_story {
    uint64_t guid;
    uint32_t port; /* 0: all of it */
    char what[FAB_LINK_TEXT];
};

struct telling {
    struct fab_inventory seen, published; /* by a sweep; with what keeps its place */
    struct fab_lost lost;
    struct open_story open[512];
    uint32_t n_open;
    uint64_t generation, dice, give_up; /* give_up: of so many places one */
};

static void telling_destroy(struct telling *t)
{
    fab_inventory_destroy(&t->seen);
    fab_inventory_destroy(&t->published);
    fab_lost_destroy(&t->lost);
}

/* A place that is kept already may be given up at any time. */
static bool may_be_kept(const struct fab_inventory *before, uint32_t port, void *cbdata)
{
    struct telling *t = cbdata;
    return !fab_port_is_missing(before, &before->ports[port]) || t->give_up == 0 ||
           fabric_random_next(&t->dice) % t->give_up != 0;
}

/* ---- the book of a reader of the history ----------------------------------------------------------- */

/* Is it missing in this inventory? */
static bool goes_on(const struct fab_inventory *inv, const struct open_story *story)
{
    const uint32_t node = fab_inventory_find(inv, story->guid);
    const uint32_t port =
        node == FAB_NONE || story->port == 0 ? FAB_NONE : fab_inventory_port(inv, node, story->port);
    return story->port == 0 ? node != FAB_NONE && inv->nodes[node].missing
                            : port != FAB_NONE && inv->ports[port].missing;
}

static bool ends_story(const struct telling *t, const struct fab_inventory *next,
                       const struct open_story *story, const struct fab_change *c)
{
    const uint32_t node = fab_inventory_find(&t->published, story->guid); /* as it was before this step */
    const struct fab_node *was = node == FAB_NONE ? NULL : &t->published.nodes[node];
    switch (c->kind) {
    case FAB_CHANGE_HOST_BACK:
    case FAB_CHANGE_SWITCH_BACK:
    case FAB_CHANGE_SWITCH_LOST:
    case FAB_CHANGE_HOST_MISSING: /* of a port: now it is the whole */
        return c->guid == story->guid;
    case FAB_CHANGE_PORT_BACK:
    case FAB_CHANGE_HOST_MOVED:
        return c->guid == story->guid && (story->port == 0 || c->port == story->port);
    case FAB_CHANGE_DEVICE_LOST: /* one of several ports may be given up, and the others not */
        return c->guid == story->guid && (story->port == 0 ? !goes_on(next, story) : c->port == story->port);
    case FAB_CHANGE_HCA_REPLACED:
    case FAB_CHANGE_SWITCH_REPLACED:
        return c->former == story->guid;
    case FAB_CHANGE_HOST_LOST:
        return was != NULL && strcmp(c->what, fab_str(&t->published, was->host)) == 0 &&
               !goes_on(next, story); /* else it has another name */
    default:
        return false;
    }
}

/* The HCA's end of a cable that is told as lost, since another one is in its port at the switch, while the
 * HCA's own port is missing and keeps its numbers; FAB_NONE. */
static uint32_t displaced_port(const struct telling *t, const struct fab_change *c)
{
    const struct fab_inventory *inv = &t->published;
    const uint32_t node = c->kind == FAB_CHANGE_LINK_LOST ? fab_inventory_find(inv, c->guid) : FAB_NONE;
    const uint32_t port = node == FAB_NONE ? FAB_NONE : fab_inventory_port(inv, node, c->port);
    if (port == FAB_NONE || strstr(c->why, "its numbers are kept") == NULL)
        return FAB_NONE;
    return inv->nodes[node].kind == FAB_HCA ? port : inv->ports[port].peer;
}

/* Of a port of `from`: is it missing in inv, while its HCA is seen? */
static bool port_is_missing_in(const struct fab_inventory *inv, const struct fab_inventory *from, uint32_t at)
{
    const uint32_t node = fab_inventory_find(inv, from->nodes[from->ports[at].node].guid);
    const uint32_t port = node == FAB_NONE ? FAB_NONE : fab_inventory_port(inv, node, from->ports[at].num);
    return port != FAB_NONE && inv->ports[port].missing;
}

static void open_story_of(struct telling *t, uint64_t guid, uint32_t port, const char *what)
{
    assert_true(t->n_open < 512);
    struct open_story *story = &t->open[t->n_open++];
    *story = (struct open_story){.guid = guid, .port = port};
    snprintf(story->what, sizeof(story->what), "%s", what);
}

static void follow_stories(struct telling *t, const struct fab_inventory *next, const struct fab_diff *told)
{
    for (uint32_t i = 0; i < told->n; i++) {
        uint32_t n = 0;
        for (uint32_t k = 0; k < t->n_open; k++)
            if (!ends_story(t, next, &t->open[k], &told->changes[i]))
                t->open[n++] = t->open[k];
        t->n_open = n;
    }
    for (uint32_t i = 0; i < told->n; i++) {
        const struct fab_change *c = &told->changes[i];
        const uint32_t displaced = displaced_port(t, c);
        if (c->kind == FAB_CHANGE_HOST_MISSING || c->kind == FAB_CHANGE_SWITCH_MISSING)
            open_story_of(t, c->guid, 0, c->what);
        else if (c->kind == FAB_CHANGE_PORT_MISSING)
            open_story_of(t, c->guid, c->port, c->what);
        else if (displaced != FAB_NONE && port_is_missing_in(next, &t->published, displaced))
            open_story_of(t, t->published.nodes[t->published.ports[displaced].node].guid,
                          t->published.ports[displaced].num, c->what);
    }
}

static bool is_open(const struct telling *t, uint64_t guid, uint32_t port)
{
    for (uint32_t i = 0; i < t->n_open; i++)
        if (t->open[i].guid == guid && t->open[i].port == port)
            return true;
    return false;
}

static void fail_story(const char *complaint, const char *what, const struct fab_diff *told)
{
    char line[4000];
    for (uint32_t i = 0; i < told->n; i++) {
        line_of(&told->changes[i], true, line, sizeof(line));
        print_message("told: %s; %s\n", line, told->changes[i].why);
    }
    fail_msg("%s: %s", complaint, what);
}

/* `next`: what is published now. */
static void check_stories(const struct telling *t, const struct fab_inventory *next,
                          const struct fab_diff *told)
{
    char what[FAB_LINK_TEXT];
    for (uint32_t i = 0; i < t->n_open; i++) {
        const struct open_story *story = &t->open[i];
        if (!goes_on(next, story))
            fail_story("told to be missing, and never what became of it", story->what, told);
    }
    for (uint32_t i = 0; i < next->n_nodes; i++) {
        const struct fab_node *node = &next->nodes[i];
        fab_node_text(next, node, what);
        if (node->missing && !is_open(t, node->guid, 0))
            fail_story("missing, and not told", what, told);
        for (uint32_t p = node->first_port; p < node->first_port + node->n_ports; p++) {
            fab_port_text(next, &next->ports[p], what);
            if (next->ports[p].missing && !is_open(t, node->guid, next->ports[p].num))
                fail_story("a port is missing, and not told", what, told);
        }
    }
}

/* t->seen is swept, and published with what keeps its place. */
static void tell_step(struct telling *t)
{
    struct fab_inventory next;
    struct fab_lost lost;
    SCOPED(fab_diff) told;
    must_do(fab_retain(&t->published, &t->seen, may_be_kept, t, &next, fresh_err()));
    hand_names(&next, NULL);
    must_do(fab_diff_compute(&t->published, &next, &told));
    must_do(fab_diff_correlate_with(&t->published, &next, &t->lost, &told));
    follow_stories(t, &next, &told);
    check_stories(t, &next, &told);
    t->generation++;
    must_do(fab_lost_update(&t->lost, &t->published, &next, &told, t->generation, 0, &lost));
    fab_lost_destroy(&t->lost);
    t->lost = lost;
    fab_inventory_destroy(&t->published);
    t->published = next;
}

/* Forth from one state to the next, and often back to what was at first. */
static void random_story(const char *fabric, uint64_t seed)
{
    SCOPED_BY(telling_destroy)
    struct telling t = {.generation = 1, .dice = seed * 77 + 1, .give_up = seed % 4 == 0 ? 0 : 1 + seed % 7};
    t.seen = generated(fabric);
    hands_prepare(&t.seen, 254);
    t.published = inventory_copy(&t.seen);
    SCOPED(fab_inventory) first = inventory_copy(&t.seen);
    for (unsigned step = 0; step < 16; step++) {
        if (fabric_random_next(&t.dice) % 3 == 0) {
            fab_inventory_destroy(&t.seen);
            t.seen = inventory_copy(&first);
        }
        for (unsigned i = 0; i < fabric_random_next(&t.dice) % 5 && has_switch_and_hca(&t.seen); i++)
            random_hand(&t.seen, &t.dice);
        tell_step(&t);
    }
}

TEST(test_every_story_has_an_end)
{
    static const char *const fabrics[] = {"fattree2:4,2,4,1", "dragonfly:2,3,1",  "torus:3,3:1",
                                          "random:6,25,8:3",  "fattree2:4,3,4,2", "fattree3:4"};
    for (uint64_t seed = 1; seed <= 400; seed++)
        random_story(fabrics[seed % 6], seed);
}
