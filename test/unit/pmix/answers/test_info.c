/* A snapshot as PMIx values: devices, coordinates, both views, all planes; what answers are given. */

#include <pmix.h>

#include "fabricd/server/server_answers.h"
#include "pmix/answers/device.h"
#include "pmix/answers/keys.h"
#include "test/unit/served_small.h"
#include "test/unit/test.h"

static struct served *served;
static struct served_set *set;

FIXTURE(serve)
{
    served = served_new();
    assert_non_null(served);
    assert_true(small_serve(served));
    answers_init(served, false);
    set = served_get(served);
    return 0;
}

FIXTURE(stop)
{
    served_set_put(set);
    served_free(served);
    return 0;
}

static const struct pmixfab *tree(void)
{
    return served_find(set, 1)->fab;
}

static const struct pmixfab *torus(void)
{
    return served_find(set, 2)->fab;
}

static const pmix_value_t *find(const pmix_value_t *device, const char *key)
{
    const pmix_info_t *info = device->data.darray->array;
    for (size_t i = 0; i < device->data.darray->size; i++)
        if (PMIX_CHECK_KEY(&info[i], key))
            return &info[i].value;
    return NULL;
}

/* ---- devices ----------------------------------------------------------------------------------------- */

static void check_view(const struct pmixfab *fab, uint32_t index, const pmix_coord_t *got,
                       enum pmixfab_view view)
{
    const uint32_t *coords;
    uint32_t dims;
    assert_int_equal(pmixfab_coords(fab, index, view, &coords, &dims), 0);
    assert_int_equal(got->view, view);
    assert_int_equal(got->dims, dims);
    assert_memory_equal(got->coord, coords, dims * sizeof(*coords));
}

TEST(each_device_says_what_the_handle_says)
{
    const struct pmixfab *all[] = {tree(), torus()};
    for (size_t p = 0; p < 2; p++) {
        struct pmixfab_device device;
        for (uint32_t i = 0; pmixfab_device(all[p], i, &device) == 0; i++) {
            pmix_value_t value = {0};
            assert_int_equal(fab_device_value(all[p], i, &value), PMIX_SUCCESS);
            const pmix_info_t *first = value.data.darray->array;
            assert_string_equal(first->key, PMIX_DEVICE_ID); /* the standard wants it first */
            assert_string_equal(first->value.data.string, device.id);
            assert_string_equal(find(&value, PMIX_HOSTNAME)->data.string, device.host);
            assert_string_equal(find(&value, PMIX_FABRIC_DEVICE_NAME)->data.string, device.name);
            assert_int_equal(find(&value, PMIX_FABRIC_DEVICE_INDEX)->data.uint32, i);
            assert_int_equal(find(&value, PMIX_FABRIC_DEVICE_SPEED)->data.size, device.mbps * 1000000);
            assert_int_equal(find(&value, PMIX_FABRIC_DEVICE_STATE)->type, PMIX_LINK_STATE);
            assert_int_equal(find(&value, PMIX_FABRIC_DEVICE_STATE)->data.linkstate, device.state);
            const pmix_geometry_t *geometry = find(&value, PMIX_FABRIC_DEVICE_COORDINATES)->data.geometry;
            assert_int_equal(geometry->fabric, p + 1);
            assert_int_equal(geometry->ncoords, 2);
            check_view(all[p], i, &geometry->coordinates[0], PMIXFAB_LOGICAL);
            check_view(all[p], i, &geometry->coordinates[1], PMIXFAB_PHYSICAL);
            fab_value_free(&value);
        }
        assert_true(device.index > 0);
    }
}

TEST(conditions_are_all_of_them)
{
    struct pmixfab_device device;
    struct pmixfab_switch one;
    struct fab_request request = {0};
    assert_int_equal(fab_device_count(tree(), &request), 4);
    assert_int_equal(pmixfab_device(tree(), 2, &device), 0);
    assert_int_equal(pmixfab_switch(tree(), device.switch_index, &one), 0);
    request.hostname = device.host;
    assert_int_equal(fab_device_count(tree(), &request), 1);
    request.device_id = device.id;
    request.device_name = device.name;
    request.switch_id = one.id;
    request.has_nodeid = true;
    request.nodeid = device.host_index;
    request.has_device_index = true;
    request.device_index = 2;
    assert_int_equal(fab_device_count(tree(), &request), 1);
    request.device_index = 1;
    assert_int_equal(fab_device_count(tree(), &request), 0);
    request.device_index = UINT32_MAX;
    assert_int_equal(fab_device_count(tree(), &request), 0);
    request = (struct fab_request){.switch_id = one.id};
    assert_int_equal(fab_device_count(tree(), &request), 2);
    assert_int_equal(fab_device_count(torus(), &(struct fab_request){.switch_id = "0x1"}), 0);
    request = (struct fab_request){.has_nodeid = true, .nodeid = 4};
    assert_int_equal(fab_device_count(tree(), &request), 0);
    request = (struct fab_request){.hostname = device.host, .device_id = "fab://1::1"};
    assert_int_equal(fab_device_count(tree(), &request), 0);
    request = (struct fab_request){.device_id = device.host}; /* what pmixfab_find() takes is no id yet */
    assert_int_equal(fab_device_count(tree(), &request), 0);
}

/* ---- values ------------------------------------------------------------------------------------------ */

TEST(views)
{
    struct fab_info_source source = {.fab = torus()};
    struct pmixfab_plane plane;
    pmix_value_t value;
    assert_int_equal(pmixfab_plane(torus(), &plane), 0);
    assert_int_equal(fab_info_value(&source, PMIX_FABRIC_DIMS, &value), PMIX_SUCCESS);
    assert_int_equal(value.data.uint32, plane.dims);
    source.view = PMIXFAB_PHYSICAL;
    assert_int_equal(fab_info_value(&source, PMIX_FABRIC_DIMS, &value), PMIX_SUCCESS);
    assert_int_equal(value.data.uint32, plane.physical_dims);
    assert_int_equal(fab_info_value(&source, PMIX_FABRIC_SHAPE, &value), PMIX_SUCCESS);
    assert_int_equal(value.data.darray->size, plane.physical_dims);
    assert_memory_equal(value.data.darray->array, plane.physical_shape,
                        plane.physical_dims * sizeof(uint32_t));
    fab_value_free(&value);
    assert_int_equal(value.type, PMIX_UNDEF);
    assert_int_equal(fab_info_value(&source, "no.such.key", &value), PMIX_ERR_NOT_FOUND);
}

TEST(array_types)
{
    pmix_value_t value = {0};
    assert_int_equal(fab_value_array(&value, PMIX_STRING, 0), PMIX_SUCCESS);
    assert_int_equal(value.data.darray->size, 0);
    fab_value_free(&value);
    assert_int_equal(fab_value_array(&value, PMIX_POINTER, 3), PMIX_ERR_BAD_PARAM);
    fab_infos_free(NULL, 3);
}

/* ---- answers ----------------------------------------------------------------------------------------- */

struct announced {
    unsigned answers;
    pmix_status_t status;
    size_t n;
    size_t index; /* PMIX_FABRIC_INDEX, where it is told */
    size_t devices;
};

static void on_answer(pmix_status_t status, pmix_info_t *info, size_t n, void *cbdata,
                      pmix_release_cbfunc_t release, void *release_data)
{
    struct announced *told = cbdata;
    told->answers++;
    told->status = status;
    told->n = n;
    for (size_t i = 0; i < n; i++) {
        if (PMIX_CHECK_KEY(&info[i], PMIX_FABRIC_INDEX))
            told->index = info[i].value.data.size;
        if (PMIX_CHECK_KEY(&info[i], PMIX_FABRIC_DEVICES))
            told->devices = info[i].value.data.darray->size;
    }
    if (release != NULL)
        release(release_data);
}

static const pmix_proc_t *asker; /* NULL: nobody knows */

static struct announced ask(pmix_fabric_operation_t op, pmix_info_t *directives, size_t n)
{
    struct announced told = {0};
    assert_int_equal(answer_fabric(asker, op, directives, n, on_answer, &told), PMIX_SUCCESS);
    assert_int_equal(told.answers, 1);
    return told;
}

static struct announced update(size_t index)
{
    pmix_info_t info;
    PMIX_INFO_LOAD(&info, PMIX_FABRIC_INDEX, &index, PMIX_SIZE);
    return ask(PMIX_FABRIC_UPDATE_INFO, &info, 1);
}

static struct announced register_index(size_t index)
{
    pmix_info_t info;
    PMIX_INFO_LOAD(&info, PMIX_FABRIC_INDEX, &index, PMIX_SIZE);
    return ask(PMIX_FABRIC_REQUEST_INFO, &info, 1);
}

TEST(an_update_names_its_plane)
{
    assert_int_equal(ask(PMIX_FABRIC_REQUEST_INFO, NULL, 0).index, 1);
    assert_int_equal(update(1).index, 1);
    assert_int_equal(update(2).index, 2);
    assert_int_equal(update(3).status, PMIX_ERR_NOT_FOUND);
    assert_int_equal(ask(PMIX_FABRIC_UPDATE_INFO, NULL, 0).status, PMIX_ERR_BAD_PARAM);
    assert_int_equal(register_index(0).status, PMIX_ERR_NOT_FOUND); /* no plane has it */
}

/* The library leaves 0 in every object. It is the caller's plane, or nobody's. */
TEST(an_update_of_index_0)
{
    const pmix_proc_t one = {.nspace = "one", .rank = 7}, several = {.nspace = "several", .rank = 7},
                      nothing = {.nspace = "nothing", .rank = 7};
    const pmix_proc_t *const unknown[] = {NULL, &nothing};
    for (size_t i = 0; i < 2; i++) {
        asker = unknown[i];
        assert_int_equal(update(0).status, PMIX_ERR_BAD_PARAM); /* two are served */
    }
    asker = &one;
    for (unsigned again = 0; again < 2; again++) {
        assert_int_equal(register_index(2).index, 2);
        assert_int_equal(update(0).index, 2);
    }
    asker = &several;
    assert_int_equal(register_index(2).index, 2);
    assert_int_equal(update(0).index, 2);
    assert_int_equal(register_index(1).index, 1);
    assert_int_equal(update(0).status, PMIX_ERR_BAD_PARAM);
    for (size_t i = 1; i <= 2; i++) /* as its answer said */
        assert_int_equal(update(i).index, i);
    assert_int_equal(update(0).status, PMIX_ERR_BAD_PARAM);
    asker = &one;
    assert_int_equal(update(0).index, 2);
    asker = NULL;
}

TEST(devices_with_a_register)
{
    bool yes = true;
    size_t index = 2;
    pmix_info_t info[2];
    PMIX_INFO_LOAD(&info[0], PMIX_FABRIC_DEVICES, &yes, PMIX_BOOL);
    PMIX_INFO_LOAD(&info[1], PMIX_FABRIC_INDEX, &index, PMIX_SIZE);
    assert_int_equal(ask(PMIX_FABRIC_REQUEST_INFO, info, 1).devices, 4);
    assert_int_equal(ask(PMIX_FABRIC_REQUEST_INFO, info, 2).devices, 9);
}

static struct announced query(char *key, size_t times)
{
    char **all = calloc(times + 1, sizeof(*all));
    pmix_query_t one = {.keys = all};
    struct announced told = {0};
    assert_non_null(all);
    for (size_t i = 0; i < times; i++)
        all[i] = key;
    assert_int_equal(answer_query(NULL, &one, 1, on_answer, &told), PMIX_SUCCESS);
    assert_int_equal(told.answers, 1);
    free(all);
    return told;
}

TEST(no_more_than_so_many)
{
    char dims[] = PMIX_FABRIC_DIMS, switches[] = PMIX_FABRIC_SWITCH, unknown[] = "test.mine";
    assert_int_equal(query(dims, ANSWERS_MAX_KEYS).n, ANSWERS_MAX_KEYS);
    assert_int_equal(query(dims, ANSWERS_MAX_KEYS + 1).status, PMIX_ERR_OUT_OF_RESOURCE);
    assert_int_equal(query(switches, ANSWERS_MAX_LARGE).n, ANSWERS_MAX_LARGE);
    assert_int_equal(query(switches, ANSWERS_MAX_LARGE + 1).status, PMIX_ERR_OUT_OF_RESOURCE);
    assert_int_equal(query(dims, 0).status, PMIX_ERR_BAD_PARAM);
    assert_int_equal(query(unknown, 1).status, PMIX_ERR_NOT_FOUND);
}

TEST(nothing_is_served)
{
    char dims[] = PMIX_FABRIC_DIMS;
    struct served_set *empty = served_set_new(NULL, 0, 0, 0), *kept = served_get(served);
    served_swap(served, empty);
    assert_int_equal(ask(PMIX_FABRIC_REQUEST_INFO, NULL, 0).status, PMIX_ERR_NOT_FOUND);
    assert_int_equal(update(0).status, PMIX_ERR_NOT_FOUND);
    assert_int_equal(query(dims, 1).status, PMIX_ERR_NOT_FOUND);
    served_swap(served, kept);
}

TEST_GROUP(serve, stop)
