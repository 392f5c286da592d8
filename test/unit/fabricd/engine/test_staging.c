/* A publication is committed when its files are written and checked, and not before. */
#include "fabricd/engine/publish.h"
#include "test/unit/store_fixture.h"
#include "topo/snapshot/snapshot.h"

static void configure(const struct folder *folder, const char *rundir, struct config *config)
{
    config_init(config);
    assert_int_equal(config_text(&config->store, folder->db), PMIXFAB_OK);
    assert_int_equal(config_text(&config->rundir, rundir), PMIXFAB_OK);
    assert_int_equal(config_append(&config->probes, "file:fabric"), PMIXFAB_OK);
}

static int publish(struct publisher *publisher, const char *fabric, struct publication **out,
                   struct fab_err *err)
{
    SCOPED(fab_inventory) inv;
    struct sweep_findings report = {0};
    const struct publish_request input = {.inv = &inv, .accept_partial = true};
    inv = generated(fabric);
    int rc = publish_prepare(publisher, &input, out, &report, err);
    return rc;
}

static void must_serve(struct publisher *publisher, struct publication *publication, uint64_t generation)
{
    assert_non_null(publication);
    assert_int_equal(publication->generation, generation);
    for (uint32_t i = 0; i < publication->set->n; i++)
        must_do(
            fab_snapshot_check(publication->set->planes[i]->bytes, publication->set->planes[i]->size, NULL));
    publish_finish(publisher, publication);
    publication_free(publication);
    assert_int_equal(publisher_generation(publisher), generation);
}

/* Where the files cannot be written the store is as it was, and the next publication has the number. */
TEST_IN(test_no_files, const struct folder *folder, folder_setup, folder_teardown)
{
    SCOPED(config) config;
    struct publisher *publisher;
    struct publication *publication;
    struct fab_err err = {""};
    uint64_t newest;
    int64_t published;
    const char *rundir = printed("%s/run", folder->dir);
    configure(folder, rundir, &config);
    assert_int_equal(mkdir(rundir, 0755), 0);
    assert_int_equal(publisher_new(&config, NULL, &publisher, &err), PMIXFAB_OK);
    assert_int_equal(publish(publisher, "fattree2:4,2,3", &publication, &err), PMIXFAB_OK);
    must_serve(publisher, publication, 1);

    const char *file = printed("%s/ib0.snap", rundir);
    assert_int_equal(unlink(file), 0);
    assert_int_equal(rmdir(rundir), 0);
    for (unsigned turn = 0; turn < 2; turn++) {
        assert_int_equal(publish(publisher, "fattree2:5,2,3", &publication, &err), PMIXFAB_ERR_IO);
        assert_null(publication);
        check_line(&err, ".ib0.snap.new: cannot be written");
        assert_int_equal(publisher_generation(publisher), 1);
        assert_int_equal(store_generation(publisher_store(publisher), &newest, &published, &err), PMIXFAB_OK);
        assert_int_equal(newest, 1);
    }

    assert_int_equal(mkdir(rundir, 0755), 0);
    assert_int_equal(publish(publisher, "fattree2:5,2,3", &publication, &err), PMIXFAB_OK);
    must_serve(publisher, publication, 2);
    assert_int_equal(access(file, R_OK), 0);
    publisher_free(publisher);
    unlink(file);
}

static int refuse(void *data, struct fab_err *err)
{
    ++*(unsigned *)data;
    return fab_fail(err, PMIXFAB_ERR_CORRUPT, "not ready");
}

/* What is not ready is as if it had never been written. */
TEST_IN(test_store_waits, const struct folder *folder, folder_setup, folder_teardown)
{
    OWNED(store_close) struct store *store = open_store(folder->db);
    struct fab_err err = {""};
    unsigned asked = 0;
    SCOPED(fab_inventory) empty = empty_inventory(), inv = odd_inventory(20, 4, 0);
    const struct store_publication change = {.generation = 1,
                                             .published = 1000,
                                             .before = &empty,
                                             .after = &inv,
                                             .ready = refuse,
                                             .ready_data = &asked};
    assert_int_equal(store_publish(store, &change, &err), PMIXFAB_ERR_CORRUPT);
    assert_string_equal(err.text, "not ready");
    assert_int_equal(asked, 1);
    must_publish(store, 1, &empty, &inv);
    must_hold(store, 1, &inv);
    /* nor is asked where the store itself cannot */
    assert_int_equal(store_publish(store, &change, &err), PMIXFAB_ERR_CONFLICT);
    assert_int_equal(asked, 1);
}
