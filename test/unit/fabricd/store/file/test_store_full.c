/* A disk that is full costs the publication and nothing else. */
#include "test/unit/store_fixture.h"

#include <errno.h>
#include <sched.h>
#include <sys/mount.h>

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
    struct fab_inventory empty = empty_inventory();
    SCOPED(fab_inventory) a = odd_inventory(60, 6, 0), b = odd_inventory(60, 6, 1);
    fill(folder->dir, ballast);
    must_fail(store_open(folder->db, &store, &err), PMIXFAB_ERR_IO, &err, folder->db);
    assert_int_equal(unlink(ballast), 0);

    store = open_store(folder->db);
    must_publish(store, 1, &empty, &a);
    fill(folder->dir, ballast);
    for (int i = 0; i < 3; i++) {
        must_fail(publish_inventory(store, 2, &a, &b, &err), PMIXFAB_ERR_IO, &err, "free some space");
        must_hold(store, 1, &a);
    }
    assert_int_equal(unlink(ballast), 0);
    must_publish(store, 2, &a, &b);
    must_hold(store, 2, &b);
    open_again(&store, folder->db);
    must_hold(store, 2, &b);
    store_close(store);
    assert_int_equal(umount2(folder->dir, MNT_DETACH), 0);
}
