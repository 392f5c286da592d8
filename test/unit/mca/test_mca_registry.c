/* Registered fabric objects: what they share, what they show, what stays readable for how long. */
#include "mca/pnet/plane_registry.h"
#include "pmix/rundir/snapshots.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "test/unit/snapshot_world.h"
#include "topo/plane/compile.h"

/* A run directory of the test's own, two fabrics to publish, and what is registered from it. */
struct fixture {
    char dir[64];
    struct world worlds[2];
    struct pnet_registry *registry;
};

static int setup(void **state)
{
    struct fixture *f = must_have(sizeof(*f));
    strcpy(f->dir, "/tmp/pmixfab-pnet-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    world_open(&f->worlds[0], "fattree2:2,1,2");
    world_open(&f->worlds[1], "fattree2:3,2,2");
    assert_int_equal(pnet_registry_new(f->dir, &f->registry), 0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    OWNED(free) struct fixture *f = *state;
    pnet_registry_free(f->registry);
    assert_int_equal(pnet_registry_new(f->dir, &f->registry), 0);
    assert_int_equal(rundir_content_matrices(), 0); /* whatever a test left behind */
    pnet_registry_free(f->registry);
    world_destroy(&f->worlds[0]);
    world_destroy(&f->worlds[1]);
    return remove_folder(f->dir);
}

static const char *path_of(const struct fixture *f, const char *plane)
{
    return printed("%s/%s.snap", f->dir, plane);
}

static void put_bytes(const struct fixture *f, const char *plane, const void *bytes, size_t size)
{
    const char *beside = printed("%s/.%s.snap.new", f->dir, plane);
    write_file(beside, bytes, size);
    assert_int_equal(rename(beside, path_of(f, plane)), 0);
}

/* As a daemon does it: beside, then renamed. The generation chooses the fabric: odd and even ones differ. */
static void publish(const struct fixture *f, const char *plane, uint32_t index, uint64_t generation)
{
    const struct layer *layer = &f->worlds[generation % 2].layers[0];
    struct fab_snapshot_meta meta = layer->meta;
    size_t size;
    meta.name = plane;
    meta.index = index;
    meta.is_default = index == 0;
    meta.generation = generation;
    OWNED(free) void *bytes = layer_bytes(layer, &meta, NULL, &size);
    put_bytes(f, plane, bytes, size);
}

static void withdraw(const struct fixture *f, const char *plane)
{
    assert_int_equal(unlink(path_of(f, plane)), 0);
}

/* ---- what an object shows --------------------------------------------------------------------------- */

static const pmix_value_t *value_of(const pmix_fabric_t *fabric, const char *key)
{
    for (size_t i = 0; i < fabric->ninfo; i++)
        if (PMIX_CHECK_KEY(&fabric->info[i], key))
            return &fabric->info[i].value;
    fail_msg("%s is missing", key);
    return NULL;
}

static uint16_t *matrix_of(const pmix_fabric_t *fabric)
{
    return value_of(fabric, PMIX_FABRIC_COST_MATRIX)->data.ptr;
}

/* Every cell against the cost of its pair. */
static void matrix_is(const struct fixture *f, const uint16_t *cells, uint64_t generation)
{
    const struct layer *layer = &f->worlds[generation % 2].layers[0];
    OWNED(pmixfab_close) struct pmixfab *fab;
    assert_int_equal(fab_snapshot_borrow(layer->bytes, layer->size, &fab, NULL), 0);
    const struct pmixfab_plane plane = plane_at(fab);
    for (uint32_t a = 0; a < plane.n_devices; a++)
        for (uint32_t b = 0; b < plane.n_devices; b++) {
            uint16_t cost;
            assert_int_equal(pmixfab_cost(fab, a, b, &cost), 0);
            assert_int_equal(cells[(size_t)a * plane.n_devices + b], cost);
        }
}

static void shows(const struct fixture *f, const pmix_fabric_t *fabric, const char *plane, uint32_t index,
                  uint64_t generation)
{
    assert_int_equal(fabric->index, index);
    assert_int_equal(value_of(fabric, PMIX_FABRIC_INDEX)->data.size, index);
    assert_string_equal(value_of(fabric, PMIX_FABRIC_PLANE)->data.string, plane);
    assert_int_equal(value_of(fabric, PMIXFAB_KEY_GENERATION)->data.uint64, generation);
    matrix_is(f, matrix_of(fabric), generation);
}

static pmix_status_t do_register(const struct fixture *f, const char *plane, pmix_fabric_t *fabric)
{
    struct fab_err err = {""};
    pmix_info_t info;
    if (plane == NULL)
        return pnet_register(f->registry, NULL, 0, fabric, NULL, &err);
    PMIX_INFO_LOAD(&info, PMIX_FABRIC_PLANE, plane, PMIX_STRING);
    pmix_status_t rc = pnet_register(f->registry, &info, 1, fabric, NULL, &err);
    PMIX_INFO_DESTRUCT(&info);
    assert_true(rc == PMIX_SUCCESS || err.text[0] != '\0');
    return rc;
}

/* One step of what is new; how many planes it is of. */
static size_t step(const struct fixture *f, bool *pending, struct order_change *first)
{
    struct pnet_news news;
    assert_int_equal(pnet_next(f->registry, &news), 0);
    assert_false(news.again);
    assert_int_equal(news.changes == NULL, news.n == 0);
    if (news.n > 0 && first != NULL)
        *first = news.changes[0];
    *pending = news.pending;
    free(news.changes);
    return news.n;
}

/* Of how many planes PENDING is due. */
static size_t news(const struct fixture *f, struct order_change *first)
{
    bool pending;
    size_t n = step(f, &pending, first);
    assert_true(n == 0 || pending);
    return n;
}

/* UPDATED of one plane. */
static void switches(const struct fixture *f)
{
    bool pending;
    assert_int_equal(step(f, &pending, NULL), 1);
    assert_false(pending);
}

static void must_register(const struct fixture *f, const char *plane, pmix_fabric_t *fabric)
{
    assert_int_equal(do_register(f, plane, fabric), PMIX_SUCCESS);
}

/* Generation 4 of the default plane. */
static void publish_and_register(const struct fixture *f, pmix_fabric_t *fabric)
{
    publish(f, "ib0", 0, 4);
    must_register(f, NULL, fabric);
}

static void must_update(const struct fixture *f, pmix_fabric_t *fabric)
{
    assert_int_equal(pnet_update(f->registry, fabric, NULL), PMIX_SUCCESS);
}

static void updates_to(const struct fixture *f, pmix_fabric_t *fabric, uint64_t generation)
{
    must_update(f, fabric);
    shows(f, fabric, "ib0", 0, generation);
}

static void switch_to_news(const struct fixture *f)
{
    assert_int_equal(news(f, NULL), 1);
    switches(f);
}

/* ---- tests ------------------------------------------------------------------------------------------ */

TEST_IN(test_refused, struct fixture *f, setup, teardown)
{
    struct pnet_registry *none;
    struct fab_err err;
    pmix_fabric_t a = {0};
    pmix_info_t info;
    size_t wrong = 1;
    assert_int_equal(do_register(f, NULL, &a), PMIX_ERR_UNREACH); /* an empty directory */
    put_bytes(f, "ib0", "not at all", 10);
    assert_int_equal(do_register(f, NULL, &a), PMIX_ERR_UNREACH);
    publish(f, "ib1", 1, 3); /* a plane is there, but none is the default */
    assert_int_equal(do_register(f, NULL, &a), PMIX_ERR_NOT_FOUND);
    assert_int_equal(do_register(f, "ib0", &a), PMIX_ERR_NOT_FOUND);
    must_register(f, "ib1", &a);
    assert_int_equal(pnet_deregister(f->registry, &a), PMIX_SUCCESS);
    PMIX_INFO_LOAD(&info, PMIX_FABRIC_PLANE, &wrong, PMIX_SIZE);
    assert_int_equal(pnet_register(f->registry, &info, 1, &a, NULL, &err), PMIX_ERR_BAD_PARAM);
    assert_int_equal(pnet_register(f->registry, NULL, 1, &a, NULL, &err), PMIX_ERR_BAD_PARAM);
    assert_int_equal(pnet_register(f->registry, NULL, 0, NULL, NULL, &err), PMIX_ERR_BAD_PARAM);
    assert_int_equal(pnet_update(f->registry, &a, &err), PMIX_ERR_BAD_PARAM);
    assert_int_equal(pnet_update(f->registry, NULL, &err), PMIX_ERR_BAD_PARAM);
    assert_null(a.info);
    assert_int_equal(pnet_registry_new(NULL, &none), PMIXFAB_ERR_INVAL);
    assert_int_equal(pnet_registry_new("", &none), PMIXFAB_ERR_INVAL);
    assert_int_equal(pnet_registry_new("/nonexistent/run", &none), PMIXFAB_OK);
    assert_int_equal(pnet_register(none, NULL, 0, &a, NULL, &err), PMIX_ERR_UNREACH);
    assert_non_null(strstr(err.text, "/nonexistent/run"));
    pnet_registry_free(none);
    pnet_registry_free(NULL);
}

TEST_IN(test_news, struct fixture *f, setup, teardown)
{
    pmix_fabric_t a = {0}, b = {0};
    struct order_change change;
    publish(f, "ib0", 0, 4);
    publish(f, "ib1", 1, 4);
    assert_int_equal(news(f, NULL), 0); /* nobody to tell */
    must_register(f, "ib0", &a);
    must_register(f, "ib0", &b);
    const uint16_t *held = matrix_of(&a);
    assert_int_equal(news(f, NULL), 0);
    publish(f, "ib1", 1, 5);
    assert_int_equal(news(f, NULL), 0); /* not theirs */
    publish(f, "ib0", 0, 5);
    assert_int_equal(news(f, &change), 1);
    assert_string_equal(change.name, "ib0");
    assert_int_equal(change.generation, 5);
    shows(f, &a, "ib0", 0, 4); /* until UPDATED is due */
    switches(f);
    assert_int_equal(news(f, NULL), 0); /* once */
    shows(f, &a, "ib0", 0, 5);
    shows(f, &b, "ib0", 0, 5);
    matrix_is(f, held, 4);
    for (uint64_t generation = 6; generation < 12; generation++) {
        const uint16_t *last = matrix_of(&a);
        publish(f, "ib0", 0, generation);
        switch_to_news(f);
        shows(f, &b, "ib0", 0, generation);
        matrix_is(f, held, 4);
        matrix_is(f, last, generation - 1);
        assert_int_equal(rundir_content_matrices(), 3); /* and no more */
    }
    must_update(f, &a);
    must_update(f, &b);
    assert_int_equal(rundir_content_matrices(), 1);
}

/* An update of who has a matrix alone changes it in its place; where others see it, or the size is another,
 * it is a new one. */
TEST_IN(test_update_in_place, struct fixture *f, setup, teardown)
{
    pmix_fabric_t a = {0}, b = {0};
    world_destroy(&f->worlds[1]);
    world_open(&f->worlds[1], "torus:2,2:1"); /* as many devices, at other costs */
    publish_and_register(f, &a);
    const uint16_t *cells = matrix_of(&a);
    for (uint64_t generation = 5; generation < 9; generation++) {
        publish(f, "ib0", 0, generation);
        must_update(f, &a);
        shows(f, &a, "ib0", 0, generation);
        assert_ptr_equal(matrix_of(&a), cells);
        assert_int_equal(rundir_content_matrices(), 1);
    }
    must_register(f, NULL, &b);
    publish(f, "ib0", 0, 9);
    updates_to(f, &a, 9);
    shows(f, &b, "ib0", 0, 8);
    assert_ptr_equal(matrix_of(&b), cells);
    publish(f, "ib0", 0, 10); /* PENDING, and an update before UPDATED */
    assert_int_equal(news(f, NULL), 1);
    must_update(f, &b);
    shows(f, &a, "ib0", 0, 9);
    shows(f, &b, "ib0", 0, 10);
    switches(f);
    shows(f, &a, "ib0", 0, 10);
    assert_ptr_equal(matrix_of(&a), matrix_of(&b));
    must_update(f, &a);
    assert_int_equal(rundir_content_matrices(), 1);
}

TEST_IN(test_gone_and_back, struct fixture *f, setup, teardown)
{
    pmix_fabric_t a = {0};
    struct order_change change;
    publish(f, "ib0", 0, 4);
    publish(f, "ib1", 1, 4);
    must_register(f, "ib1", &a);
    withdraw(f, "ib1");
    assert_int_equal(news(f, NULL), 0); /* no newer one beside it: nothing is known */
    assert_int_equal(pnet_update(f->registry, &a, NULL), PMIX_ERR_UNREACH);
    publish(f, "ib0", 0, 5);
    assert_int_equal(news(f, &change), 1);
    assert_string_equal(change.name, "ib1");
    assert_int_equal(change.generation, 5); /* the one that is without it */
    switches(f);
    shows(f, &a, "ib1", 1, 4);
    assert_int_equal(pnet_update(f->registry, &a, NULL), PMIX_ERR_NOT_FOUND);
    assert_int_equal(news(f, NULL), 0);
    publish(f, "ib1", 1, 6);
    switch_to_news(f);
    shows(f, &a, "ib1", 1, 6);
}

TEST_IN(test_the_same_again, struct fixture *f, setup, teardown)
{
    pmix_fabric_t a = {0};
    publish_and_register(f, &a);
    const uint16_t *cells = matrix_of(&a);
    publish(f, "ib0", 0, 4);
    assert_int_equal(news(f, NULL), 0);
    must_update(f, &a);
    assert_ptr_equal(matrix_of(&a), cells);
    put_bytes(f, "ib0", "not at all", 10);
    assert_int_equal(news(f, NULL), 0);
    assert_int_equal(pnet_update(f->registry, &a, NULL), PMIX_ERR_UNREACH);
    shows(f, &a, "ib0", 0, 4);
}

TEST_IN(test_places, struct fixture *f, setup, teardown)
{
    pmix_fabric_t a = {0}, moved;
    void *tag = malloc(1);
    publish_and_register(f, &a);
    memset(&a, 0, sizeof(a)); /* its owner has forgotten it */
    assert_int_equal(pnet_register(f->registry, NULL, 0, &a, &(struct pnet_tag){tag, free}, NULL),
                     PMIX_SUCCESS);
    a.module = tag;
    moved = a;
    memset(&a, 0xa5, sizeof(a));
    publish(f, "ib0", 0, 5);
    must_update(f, &moved);
    shows(f, &moved, "ib0", 0, 5);
    publish(f, "ib0", 0, 6);
    switch_to_news(f);
    shows(f, &moved, "ib0", 0, 6);
    assert_int_equal(pnet_deregister(f->registry, &moved), PMIX_SUCCESS);
    assert_int_equal(pnet_deregister(f->registry, &moved), PMIX_ERR_BAD_PARAM); /* it was the only one */
    assert_int_equal(rundir_content_matrices(), 0);
}

/* Random calls on some objects, against what each must show by the book. */
#define OBJECTS 6
TEST_IN(test_at_random, struct fixture *f, setup, teardown)
{
    static const char *const names[] = {"ib0", "ib1"};
    pmix_fabric_t objects[OBJECTS] = {{0}};
    int plane_of[OBJECTS];
    uint64_t published[2] = {1, 1}, shown[OBJECTS] = {0};
    uint64_t generation = 1;
    unsigned seed = 12345;
    publish(f, "ib0", 0, 1);
    publish(f, "ib1", 1, 1);
    for (unsigned round = 0; round < 3000; round++) {
        int i = rand_r(&seed) % OBJECTS, p = rand_r(&seed) % 2;
        switch (rand_r(&seed) % 6) {
        case 0:
            if (shown[i] == 0) {
                assert_int_equal(do_register(f, names[p], &objects[i]), PMIX_SUCCESS);
                plane_of[i] = p;
                shown[i] = published[p];
            }
            break;
        case 1:
            if (shown[i] != 0) {
                assert_int_equal(pnet_deregister(f->registry, &objects[i]), PMIX_SUCCESS);
                shown[i] = 0;
            }
            break;
        case 2:
            if (shown[i] != 0) {
                assert_int_equal(pnet_update(f->registry, &objects[i], NULL), PMIX_SUCCESS);
                shown[i] = published[plane_of[i]];
            }
            break;
        case 3:
            published[p] = ++generation;
            publish(f, names[p], (uint32_t)p, generation);
            break;
        default:
            for (bool pending; step(f, &pending, NULL) > 0;)
                continue;
            for (int k = 0; k < OBJECTS; k++)
                if (shown[k] != 0)
                    shown[k] = published[plane_of[k]];
            break;
        }
        for (int k = 0; k < OBJECTS; k++)
            if (shown[k] != 0)
                shows(f, &objects[k], names[plane_of[k]], (uint32_t)plane_of[k], shown[k]);
        assert_true(rundir_content_matrices() <= 3 * OBJECTS);
    }
}

/* ---- the watching thread ---------------------------------------------------------------------------- */

struct heard {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    const pmix_fabric_t *object;
    char text[1024];
};

static void hear(bool pending, const struct order_change *change, void *cbdata)
{
    struct heard *heard = cbdata;
    pthread_mutex_lock(&heard->lock);
    size_t used = strlen(heard->text);
    snprintf(heard->text + used, sizeof(heard->text) - used, "%s %s %lu shows %lu\n",
             pending ? "pending" : "updated", change->name, (unsigned long)change->generation,
             (unsigned long)value_of(heard->object, PMIXFAB_KEY_GENERATION)->data.uint64);
    pthread_cond_broadcast(&heard->changed);
    pthread_mutex_unlock(&heard->lock);
}

static void wait_to_hear(struct heard *heard, const char *text)
{
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 30;
    pthread_mutex_lock(&heard->lock);
    while (strstr(heard->text, text) == NULL)
        assert_int_equal(pthread_cond_timedwait(&heard->changed, &heard->lock, &end), 0);
    pthread_mutex_unlock(&heard->lock);
}

TEST_IN(test_watch, struct fixture *f, setup, teardown)
{
    pmix_fabric_t a = {0};
    struct heard heard = {.object = &a};
    char away[128], fresh[] = "/tmp/pmixfab-fresh-XXXXXX";
    pthread_mutex_init(&heard.lock, NULL);
    pthread_cond_init(&heard.changed, NULL);
    publish_and_register(f, &a);
    assert_int_equal(pnet_watch(f->registry, hear, &heard), 0);
    assert_int_equal(pnet_watch(f->registry, hear, NULL), 0); /* it is watched already */
    publish(f, "ib0", 0, 5);
    wait_to_hear(&heard, "updated ib0 5");
    publish(f, "ib0", 0, 6);
    wait_to_hear(&heard, "updated ib0 6");
    snprintf(away, sizeof(away), "%s.away", f->dir); /* another directory takes its name */
    assert_int_equal(rename(f->dir, away), 0);
    assert_non_null(mkdtemp(fresh));
    assert_int_equal(rename(fresh, f->dir), 0);
    publish(f, "ib0", 0, 7);
    wait_to_hear(&heard, "updated ib0 7");
    publish(f, "ib0", 0, 8);
    wait_to_hear(&heard, "updated ib0 8");
    pnet_registry_free(f->registry); /* and the thread ends */
    f->registry = NULL;
    publish(f, "ib0", 0, 9);
    assert_string_equal(heard.text, "pending ib0 5 shows 4\nupdated ib0 5 shows 5\n"
                                    "pending ib0 6 shows 5\nupdated ib0 6 shows 6\n"
                                    "pending ib0 7 shows 6\nupdated ib0 7 shows 7\n"
                                    "pending ib0 8 shows 7\nupdated ib0 8 shows 8\n");
    assert_int_equal(remove_folder(away), 0);
}
