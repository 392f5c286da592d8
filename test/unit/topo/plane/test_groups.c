/* Groups against sets that are put together plainly, host by host. */
#include "test/unit/rewire.h"

/* A set of hosts as one flag a host. */
struct sets {
    uint8_t *flags; /* n x n_hosts */
    uint32_t n, n_hosts;
};

static bool belongs(const struct scene *scene, const struct fab_device *device, enum fab_group_by by,
                    uint32_t which)
{
    if (device->sw == FAB_NONE)
        return which == UINT32_MAX;
    return which == (by == FAB_GROUP_LEAF ? device->sw : scene->geo.pod[device->sw]);
}

/* For every switch or pod number that there can be: the hosts that have a device there. */
static struct sets plain_sets(const struct scene *scene, enum fab_group_by by)
{
    const struct fab_plane *plane = scene->plane;
    struct sets sets = {must_have((size_t)(plane->n_switches + 1) * plane->n_hosts), 0, plane->n_hosts};
    for (uint32_t i = 0; i <= plane->n_switches; i++) {
        uint32_t which = i < plane->n_switches ? i : UINT32_MAX;
        uint8_t *set = sets.flags + (size_t)sets.n * plane->n_hosts;
        bool any = false;
        for (uint32_t h = 0; h < plane->n_hosts; h++)
            for (uint32_t d = plane->hosts[h].first; d < plane->hosts[h].first + plane->hosts[h].n; d++)
                set[h] |= belongs(scene, &plane->devices[d], by, which);
        for (uint32_t h = 0; h < plane->n_hosts; h++)
            any = any || set[h];
        sets.n += any;
    }
    return sets;
}

/* Is group g one of the sets? That set is used up. */
static bool take_set(struct sets *sets, const struct fab_groups *groups, uint32_t g)
{
    for (uint32_t s = 0; s < sets->n; s++) {
        uint8_t *set = sets->flags + (size_t)s * sets->n_hosts;
        uint32_t size = 0, both = 0;
        for (uint32_t h = 0; h < sets->n_hosts; h++)
            size += set[h];
        for (uint32_t m = groups->start[g]; m < groups->start[g + 1]; m++)
            both += set[groups->members[m]];
        if (size > 0 && size == both && size == groups->start[g + 1] - groups->start[g]) {
            memset(set, 0, sets->n_hosts);
            return true;
        }
    }
    return false;
}

static int compare_groups(const struct fab_groups *groups, uint32_t a, uint32_t b)
{
    for (uint32_t i = 0;; i++) {
        bool a_ends = groups->start[a] + i == groups->start[a + 1];
        bool b_ends = groups->start[b] + i == groups->start[b + 1];
        if (a_ends || b_ends)
            return (int)b_ends - (int)a_ends;
        uint32_t x = groups->members[groups->start[a] + i], y = groups->members[groups->start[b] + i];
        if (x != y)
            return x < y ? -1 : 1;
    }
}

static void check_by(const struct scene *scene, enum fab_group_by by)
{
    SCOPED(fab_groups) groups;
    struct sets sets = plain_sets(scene, by);
    assert_int_equal(fab_groups_compute(scene->plane, &scene->geo, by, &groups), 0);
    assert_int_equal(groups.n, sets.n);
    assert_int_equal(groups.start[0], 0);
    assert_int_equal(groups.start[groups.n], groups.n_members);
    for (uint32_t g = 0; g < groups.n; g++) {
        assert_true(groups.start[g] < groups.start[g + 1]);
        for (uint32_t m = groups.start[g] + 1; m < groups.start[g + 1]; m++)
            assert_true(groups.members[m - 1] < groups.members[m]);
        assert_true(take_set(&sets, &groups, g));
        assert_true(g == 0 || compare_groups(&groups, g - 1, g) <= 0);
    }
    free(sets.flags);
}

static void check(const struct scene *scene)
{
    check_by(scene, FAB_GROUP_LEAF);
    check_by(scene, FAB_GROUP_POD);
}

/* Of every kind; and with hosts on two switches. */
TEST(groups_as_plainly_put_together)
{
    static const char *const texts[] = {"fattree2:16,8,4", "fattree3:6",     "dragonfly:2,4,2",
                                        "torus:4,3:3",     "mesh:3,3,3:1",   "fattree2:1,0,5",
                                        "fattree2:3,2,0",  "dragonfly:3,5,0"};
    for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++) {
        SCOPED(scene) scene = scene_make(texts[t], t);
        check(&scene);
    }
    for (unsigned seed = 1; seed <= 150; seed++) {
        uint64_t dice = seed;
        const char *text = printed("random:%u,%u,%u:%u", 1 + (unsigned)(fabric_random_next(&dice) % 12),
                                   (unsigned)(fabric_random_next(&dice) % 50),
                                   (unsigned)(fabric_random_next(&dice) % 12), seed);
        SCOPED(scene) scene = scene_make(text, seed);
        check(&scene);
    }
}

/* HCAs without a switch: a pair on one cable, or one alone. */
TEST(without_a_switch)
{
    for (uint32_t n = 1; n <= 2; n++) {
        struct fab_inventory inv = {0};
        struct fab_groups groups;
        uint32_t ports[2];
        inv.n_subnets = 1;
        for (uint32_t i = 0; i < n; i++) {
            uint32_t hca = hand_node(&inv, FAB_HCA, 0x10 + 16 * i, i == 0 ? "node1" : "node2", 1, 0);
            inv.nodes[hca].host = inv.nodes[hca].desc;
            ports[i] = hand_port(&inv, hca, 1, 0x11 + 16 * i, 0);
            inv.ports[ports[i]].state = FAB_PORT_DOWN;
        }
        if (n == 2)
            assert_int_equal(fab_inventory_link(&inv, ports[0], ports[1]), 0);
        hand_finish(&inv);
        SCOPED(scene) scene = scene_take(&inv);
        for (int by = FAB_GROUP_LEAF; by <= FAB_GROUP_POD; by++) {
            assert_int_equal(fab_groups_compute(scene.plane, &scene.geo, (enum fab_group_by)by, &groups), 0);
            assert_int_equal(groups.n, 1);
            assert_int_equal(groups.start[1] - groups.start[0], n);
            for (uint32_t i = 0; i < n; i++)
                assert_int_equal(groups.members[i], i);
            fab_groups_destroy(&groups);
        }
    }
    fab_groups_destroy(NULL);
}
