/* Meshes and tori: every size is recognised under any labels, and nothing that only looks like one. */
#include "test/unit/rewire.h"

/* Hops between all pairs of switches, one search for each, n x n. */
static uint32_t *all_hops(const struct fab_plane *plane)
{
    uint32_t n = plane->n_switches, *queue = must_have(n * sizeof *queue);
    uint32_t *hops = must_have((size_t)n * n * sizeof *hops);
    memset(hops, 0xff, (size_t)n * n * sizeof *hops);
    for (uint32_t s = 0; s < n; s++) {
        uint32_t *row = hops + (size_t)s * n, head = 0, tail = 0;
        row[s] = 0;
        queue[tail++] = s;
        while (head < tail) {
            const struct fab_vertex *v = &plane->switches[queue[head]];
            uint32_t next = row[queue[head++]] + 1;
            for (uint32_t e = v->adj_first; e < v->adj_first + v->n_adj; e++) {
                if (row[plane->adj[e].to] == UINT32_MAX) {
                    row[plane->adj[e].to] = next;
                    queue[tail++] = plane->adj[e].to;
                }
            }
        }
    }
    free(queue);
    return hops;
}

static bool is_torus(enum fab_kind kind)
{
    return kind == FAB_KIND_TORUS_2D || kind == FAB_KIND_TORUS_3D;
}

static unsigned grid_dims(enum fab_kind kind)
{
    return kind == FAB_KIND_MESH_2D || kind == FAB_KIND_TORUS_2D ? 2 : 3;
}

/* Distance between two coordinates: steps along each dimension, around where that is shorter. */
static uint32_t distance(const struct scene *scene, uint32_t a, uint32_t b)
{
    const uint32_t *x = scene_logical(scene, a), *y = scene_logical(scene, b);
    uint32_t sum = 0;
    for (unsigned d = 0; d < grid_dims(scene->geo.kind); d++) {
        uint32_t gap = x[d] > y[d] ? x[d] - y[d] : y[d] - x[d], size = scene->geo.shape[d];
        sum += is_torus(scene->geo.kind) && size - gap < gap ? size - gap : gap;
    }
    return sum;
}

static void assert_distances(const struct scene *scene)
{
    const struct fab_plane *plane = scene->plane;
    OWNED(free) uint32_t *hops = all_hops(plane);
    for (uint32_t a = 0; a < plane->n_devices; a++)
        for (uint32_t b = 0; b < plane->n_devices; b++)
            assert_int_equal(distance(scene, a, b),
                             hops[(size_t)plane->devices[a].sw * plane->n_switches + plane->devices[b].sw]);
}

static int descending(const void *a, const void *b)
{
    unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;
    return (x < y) - (x > y);
}

/* What geometry.h says of a grid of these sizes. A ring of four counts as two dimensions of two; where that
 * makes no mesh, twos are put together to fours again. */
static enum fab_kind expected(const unsigned *size, unsigned n, bool wrap, unsigned *shape)
{
    unsigned twos = 0, dims = 0;
    for (unsigned d = 0; d < n; d++) {
        if (size[d] == 2)
            twos++;
        else if (wrap && size[d] == 4)
            twos += 2;
        else
            shape[dims++] = size[d];
    }
    bool mesh = !wrap || (dims == 0 && twos <= 3);
    for (; twos > 0; twos -= mesh || twos == 1 ? 1 : 2)
        shape[dims++] = mesh || twos == 1 ? 2 : 4;
    qsort(shape, dims, sizeof *shape, descending);
    if (dims == 2)
        return mesh ? FAB_KIND_MESH_2D : FAB_KIND_TORUS_2D;
    return mesh ? FAB_KIND_MESH_3D : FAB_KIND_TORUS_3D;
}

static void check_size(const unsigned *size, unsigned n, bool wrap, unsigned hosts, uint64_t seed)
{
    unsigned shape[6] = {0};
    enum fab_kind kind = expected(size, n, wrap, shape);
    const char *third = n == 3 ? printed(",%u", size[2]) : "";
    const char *text = printed("%s:%u,%u%s:%u", wrap ? "torus" : "mesh", size[0], size[1], third, hosts);
    SCOPED(scene) scene = scene_make(text, seed);
    scene_assert_kind(&scene, kind, text);
    unsigned dims = grid_dims(kind);
    assert_int_equal(scene.geo.dims, dims + (hosts > 1));
    for (unsigned d = 0; d < dims && hosts > 0; d++)
        assert_int_equal(scene.geo.shape[d], shape[d]);
    scene_assert_sound(&scene);
    assert_distances(&scene);
}

TEST(all_sizes)
{
    for (unsigned x = 2; x <= 7; x++)
        for (unsigned y = 2; y <= 7; y++)
            for (unsigned wrap = 0; wrap < 2; wrap++) {
                check_size((unsigned[]){x, y}, 2, wrap, 1 + (x + y) % 2, x * 7 % 3 * (x + 8 * y));
                for (unsigned z = 2; z <= 5 && x <= 5 && y <= 5; z++)
                    check_size((unsigned[]){x, y, z}, 3, wrap, 1, x * 100 + y * 10 + z);
            }
    check_size((unsigned[]){4, 3}, 2, true, 0, 1); /* nobody on it */
    check_size((unsigned[]){2, 40}, 2, true, 1, 2);
    check_size((unsigned[]){4, 17, 4}, 3, true, 1, 5);
    check_size((unsigned[]){9, 7, 6}, 3, false, 1, 7);
}

/* The lowest corner is the origin, and its lowest neighbours are one step away. */
TEST(orientation)
{
    static const char *const texts[] = {"mesh:4,4:1", "torus:5,5:1", "mesh:5,3,3:1", "torus:4,4:1",
                                        "torus:6,4,3:1"};
    for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++) {
        for (uint64_t seed = 1; seed <= 8; seed++) {
            SCOPED(scene) scene = scene_make(texts[t], seed);
            const struct fab_plane *plane = scene.plane;
            uint32_t origin = 0;
            for (uint32_t s = 1; s < plane->n_switches; s++)
                if (plane->switches[s].n_adj < plane->switches[origin].n_adj)
                    origin = s;
            for (uint32_t i = 0; i < plane->n_devices; i++) {
                const uint32_t *at = scene_logical(&scene, i);
                uint32_t sum = at[0] + at[1] + (scene.geo.dims == 3 ? at[2] : 0);
                assert_int_equal(sum == 0, plane->devices[i].sw == origin);
                /* The origin's lowest neighbour lies forwards, not around. */
                if (plane->devices[i].sw == plane->adj[plane->switches[origin].adj_first].to)
                    assert_int_equal(sum, 1);
            }
        }
    }
}

TEST(one_cable_more_or_less)
{
    static const char *const texts[] = {"mesh:3,3:1",   "mesh:5,2:1",    "torus:3,3:1", "torus:3,4:1",
                                        "torus:5,3:1",  "torus:4,4:1",   "torus:3,2:1", "mesh:2,2,2:1",
                                        "mesh:3,3,2:1", "torus:4,3,2:1", "mesh:2,2:1"};
    for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++) {
        SCOPED(scene) whole = scene_make(texts[t], t + 1);
        assert_true(scene_is_grid(&whole));
        for (uint32_t i = 0; i < whole.inv->n_ports; i++) {
            uint32_t peer = whole.inv->ports[i].peer;
            if (whole.inv->nodes[whole.inv->ports[i].node].kind != FAB_SWITCH || peer < i ||
                whole.inv->nodes[whole.inv->ports[peer].node].kind != FAB_SWITCH)
                continue;
            SCOPED(scene) changed = scene_change(whole.inv, without_cable(i));
            scene_assert_kind(&changed, FAB_KIND_OTHER, texts[t]);
            scene_assert_sound(&changed);
        }
        uint32_t n = whole.plane->n_switches;
        for (uint32_t a = 0; a < n; a++) {
            for (uint32_t b = a + 1; b < n; b++) {
                const struct fab_vertex *v = &whole.plane->switches[a];
                bool parallel = false;
                for (uint32_t e = v->adj_first; e < v->adj_first + v->n_adj; e++)
                    parallel = parallel || whole.plane->adj[e].to == b;
                SCOPED(scene)
                changed = scene_change(whole.inv, with_cable(v->node, whole.plane->switches[b].node));
                enum fab_kind kind = changed.geo.kind;
                /* A second cable in parallel changes nothing. */
                if (parallel)
                    assert_true(kind == whole.geo.kind && scene_stable(&whole, &changed));
                else if (kind != FAB_KIND_OTHER)
                    fail_msg("%s and a cable is %s", texts[t], fab_kind_name(kind));
            }
        }
    }
}

/* Any graph that is called a grid has the grid's distances, so it is one: few switches and few cables, so
 * that grids come about by chance. */
TEST(by_chance)
{
    unsigned claimed = 0;
    for (unsigned seed = 1; seed <= 1200; seed++) {
        uint64_t dice = seed;
        unsigned switches = 4 + 2 * (unsigned)(fabric_random_next(&dice) % 3);
        const char *text = printed("random:%u,%u,%u:%u", switches, 20u,
                                   1 + (unsigned)(fabric_random_next(&dice) % switches), seed);
        SCOPED(scene) scene = scene_make(text, 0);
        if (scene_is_grid(&scene)) {
            claimed++;
            assert_distances(&scene);
        }
    }
    assert_true(claimed > 0);
}

/* Rings in one dimension, ends in the other. */
TEST(cylinder)
{
    SCOPED(scene) scene = scene_make("mesh:5,3:1", 0);
    assert_int_equal(scene.geo.kind, FAB_KIND_MESH_2D);
    for (unsigned row = 0; row < 3; row++) {
        char ends[2][16];
        snprintf(ends[0], sizeof ends[0], "s0-%u", row);
        snprintf(ends[1], sizeof ends[1], "s4-%u", row);
        scene_replace(&scene, with_cable(scene_node(&scene, ends[0]), scene_node(&scene, ends[1])));
        assert_int_equal(scene.geo.kind, FAB_KIND_OTHER);
    }
}
