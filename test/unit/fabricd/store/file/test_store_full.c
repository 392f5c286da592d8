/* A disk that is full costs the publication and nothing else. */
#include "test/unit/store_fixture.h"

#include <errno.h>
#include <sched.h>
#include <sys/mount.h>

/* Two inventories and a snapshot that takes room. */
struct content {
    struct fab_inventory empty, a, b;
    uint8_t snapshot[300000];
};

static struct content *make_content(void)
{
    struct content *content = must_have(sizeof *content);
    content->empty = empty_inventory();
    content->a = odd_inventory(60, 6, 0);
    content->b = odd_inventory(60, 6, 1);
    return content;
}

static void free_content(struct content *content)
{
    fab_inventory_destroy(&content->a);
    fab_inventory_destroy(&content->b);
    free(content);
}

/* Generation 1 holds a, 2 holds b. */
static int publish_content(struct store *store, uint64_t generation, struct content *content,
                           struct fab_err *err)
{
    memset(content->snapshot, (int)generation, sizeof content->snapshot);
    struct store_plane plane = {.generation = generation,
                                .name = "plane0",
                                .snapshot = content->snapshot,
                                .size = sizeof content->snapshot};
    const struct store_publication publication = {
        .generation = generation,
        .published = (int64_t)generation * 1000,
        .before = generation == 1 ? &content->empty : &content->a,
        .after = generation == 1 ? &content->a : &content->b,
        .planes = &plane,
        .n_planes = 1,
    };
    return store_publish(store, &publication, err);
}

static void must_hold_content(struct store *store, uint64_t generation, const struct content *content)
{
    struct store_plane *planes;
    uint32_t n;
    must_hold(store, generation, generation == 1 ? &content->a : &content->b);
    assert_int_equal(store_load_planes(store, &planes, &n, NULL), PMIXFAB_OK);
    assert_int_equal(n, 1);
    assert_int_equal(planes[0].generation, generation);
    for (size_t i = 0; i < planes[0].size; i++)
        assert_int_equal(((uint8_t *)planes[0].snapshot)[i], generation);
    store_planes_free(planes, n);
}

/* SQLite's own limit: the code that a full disk has. */
TEST_IN(test_database_full, struct folder *folder, folder_setup, folder_teardown)
{
    struct content *content = make_content();
    struct fab_err err = {{0}};
    struct store *store = open_store(folder->db);
    assert_int_equal(publish_content(store, 1, content, &err), PMIXFAB_OK);
    content->snapshot[0] = 0;
    assert_int_equal(sqlite3_exec(store->db, "PRAGMA max_page_count = 1", NULL, NULL, NULL), SQLITE_OK);
    struct store_plane plane = {.index = 1,
                                .generation = 2,
                                .name = "plane1",
                                .snapshot = content->snapshot,
                                .size = sizeof content->snapshot};
    const struct store_publication more = {.generation = 2,
                                           .published = 2000,
                                           .before = &content->a,
                                           .after = &content->b,
                                           .planes = &plane,
                                           .n_planes = 1};
    assert_int_equal(store_publish(store, &more, &err), PMIXFAB_ERR_IO);
    check_line(&err, "full");
    check_line(&err, "free some space");
    must_hold_content(store, 1, content);
    assert_int_equal(sqlite3_exec(store->db, "PRAGMA max_page_count = 1000000", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(publish_content(store, 2, content, &err), PMIXFAB_OK);
    must_hold_content(store, 2, content);
    store_close(store);
    free_content(content);
}

/* Fill what is left of a file system; the file's path is given back in `path`. */
static void fill(const char *dir, char *path)
{
    static const uint8_t zeros[4096];
    snprintf(path, PATH_SIZE, "%s/ballast", dir);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    while (write(fd, zeros, sizeof zeros) > 0)
        continue;
    assert_int_equal(errno, ENOSPC);
    close(fd);
}

TEST_IN(test_small_disk, struct folder *folder, folder_setup, folder_teardown)
{
    char ballast[PATH_SIZE];
    struct fab_err err = {{0}};
    struct store *store;
    /* A mount namespace of its own: what is mounted is gone with this process, however it ends. */
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", folder->dir, "tmpfs", 0, "size=4m") != 0) {
        print_message("skipped: this user may not mount a small tmpfs (%s)\n", strerror(errno));
        skip();
    }
    struct content *content = make_content();
    fill(folder->dir, ballast);
    must_fail(store_open(folder->db, &store, &err), PMIXFAB_ERR_IO, &err, folder->db);
    assert_int_equal(unlink(ballast), 0);

    store = open_store(folder->db);
    assert_int_equal(publish_content(store, 1, content, &err), PMIXFAB_OK);
    fill(folder->dir, ballast);
    for (int i = 0; i < 3; i++) {
        must_fail(publish_content(store, 2, content, &err), PMIXFAB_ERR_IO, &err, "free some space");
        must_hold_content(store, 1, content);
    }
    assert_int_equal(unlink(ballast), 0);
    assert_int_equal(publish_content(store, 2, content, &err), PMIXFAB_OK);
    must_hold_content(store, 2, content);
    open_again(&store, folder->db);
    must_hold_content(store, 2, content);
    store_close(store);
    free_content(content);
    assert_int_equal(umount2(folder->dir, MNT_DETACH), 0);
}
