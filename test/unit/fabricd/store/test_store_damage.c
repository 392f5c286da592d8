/* What is not ours, not whole or not to be had is refused by name, and stays as it is. */
#include "test/unit/store_fixture.h"

#include <errno.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>

static int try_open(const char *path, struct fab_err *err)
{
    struct store *store = (struct store *)&store;
    int rc = store_open(path, &store, err);
    if (rc == PMIXFAB_OK)
        store_close(store);
    else
        assert_null(store);
    return rc;
}

/* ---- who else has it ---- */

TEST_IN(test_second_fabricd_is_refused, struct folder *folder, folder_setup, folder_teardown)
{
    struct fab_err err = {{0}};
    struct store *store = open_store(folder->db);
    const char *pid = printed("fabricd with pid %ld has it open", (long)getpid());
    assert_int_equal(try_open(folder->db, &err), PMIXFAB_ERR_BUSY);
    check_line(&err, pid);
    check_line(&err, folder->db);
    /* Another name of the same file is the same store. */
    const char *link = printed("%s/link.db", folder->dir);
    assert_int_equal(symlink(folder->db, link), 0);
    assert_int_equal(try_open(link, &err), PMIXFAB_ERR_BUSY);
    /* What fabricd starts must not keep the lock. */
    assert_true(fcntl(store->lock_fd, F_GETFD) & FD_CLOEXEC);
    store_close(store);
    assert_int_equal(try_open(link, &err), PMIXFAB_OK);
    assert_int_equal(try_open(folder->db, &err), PMIXFAB_OK);
}

/* Somebody works on the database with another program. */
TEST_IN(test_locked_database, struct folder *folder, folder_setup, folder_teardown)
{
    sqlite3 *other = NULL;
    struct fab_inventory empty = empty_inventory();
    SCOPED(fab_inventory) inv = odd_inventory(10, 1, 0);
    OWNED(store_close) struct store *store = open_store(folder->db);
    sqlite3_busy_timeout(store->db, 20);
    assert_int_equal(sqlite3_open(folder->db, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN EXCLUSIVE", NULL, NULL, NULL), SQLITE_OK);
    must_refuse(publish_inventory(store, 1, &empty, &inv, fresh_err()), PMIXFAB_ERR_BUSY,
                "another process has the database locked");
    must_hold(store, 0, &empty); /* readers go on */
    assert_int_equal(sqlite3_exec(other, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    must_publish(store, 1, &empty, &inv);
    sqlite3_close(other);
}

/* ---- what it is ---- */

TEST_IN(test_garbage, struct folder *folder, folder_setup, folder_teardown)
{
    struct fab_err err = {{0}};
    static uint8_t bytes[20000];
    uint64_t random = 99;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(fabric_random_next(&random) >> 30);
    static const size_t sizes[] = {1, 15, 99, 100, 511, 512, 4096, 20000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        write_file(folder->db, bytes, sizes[i]);
        must_fail(try_open(folder->db, &err), PMIXFAB_ERR_CORRUPT, &err, "restore it from a backup");
    }
    /* Nothing in it: nothing to lose. */
    write_file(folder->db, bytes, 0);
    assert_int_equal(try_open(folder->db, &err), PMIXFAB_OK);
}

/* ---- bits that changed ---- */

struct original {
    struct fab_inventory inv;
    uint8_t snapshot[30000];
    struct store_report reports[2]; /* the first was published; bytes are the snapshot's */
    uint8_t *bytes;
    size_t size;
};

/* A store with one generation, a plane and reports, closed: one file. */
static void write_original(struct original *original, const char *path)
{
    struct fab_inventory empty = empty_inventory();
    original->inv = odd_inventory(20, 4, 0);
    for (size_t i = 0; i < sizeof original->snapshot; i++)
        original->snapshot[i] = (uint8_t)(i * 7);
    struct store_plane plane = {
        .generation = 1, .name = "plane0", .snapshot = original->snapshot, .size = sizeof original->snapshot};
    for (unsigned i = 0; i < 2; i++)
        original->reports[i] = (struct store_report){.host = i == 0 ? "node001" : "node002",
                                                     .digest = 0x8000000000000001u + i,
                                                     .received = 1000 + i,
                                                     .uid = i,
                                                     .bytes = original->snapshot,
                                                     .size = i == 0 ? 9000 : 700};
    const struct store_publication publication = {.generation = 1,
                                                  .published = 1000,
                                                  .before = &empty,
                                                  .after = &original->inv,
                                                  .planes = &plane,
                                                  .n_planes = 1,
                                                  .announced = original->reports,
                                                  .n_announced = 1};
    struct store *store = open_store(path);
    must_do(store_reports_put(store, original->reports, 2, fresh_err()));
    must_do(store_publish(store, &publication, fresh_err()));
    store_close(store);
    original->bytes = (uint8_t *)read_file(path, &original->size);
}

static void free_original(struct original *original)
{
    fab_inventory_destroy(&original->inv);
    free(original->bytes);
}

static void must_be_plane(const struct original *original, const struct store_plane *plane)
{
    assert_int_equal(plane->generation, 1);
    assert_false(plane->retired);
    assert_string_equal(plane->name, "plane0");
    assert_int_equal(plane->size, sizeof original->snapshot);
    assert_memory_equal(plane->snapshot, original->snapshot, plane->size);
}

struct reports_seen {
    const struct original *original;
    unsigned n;
};

static int must_be_report(const struct store_report *report, void *cbdata)
{
    struct reports_seen *seen = cbdata;
    assert_true(seen->n < 2);
    const struct store_report *original = &seen->original->reports[seen->n++];
    assert_string_equal(report->host, original->host);
    assert_true(report->digest == original->digest && report->received == original->received);
    assert_int_equal(report->uid, original->uid);
    assert_int_equal(report->size, original->size);
    assert_memory_equal(report->bytes, original->bytes, report->size);
    return 0;
}

static int must_be_told(const struct store_report *told, void *cbdata)
{
    struct reports_seen *seen = cbdata;
    assert_int_equal(seen->n++, 0);
    assert_string_equal(told->host, seen->original->reports[0].host);
    assert_true(told->digest == seen->original->reports[0].digest);
    return 0;
}

/* The bytes are refused by name, or say exactly what the original says. True: refused. */
static bool refused_or_equal(const struct original *original, const char *path, const uint8_t *bytes,
                             size_t size)
{
    OWNED(store_close) struct store *store = NULL;
    struct store_plane *planes = NULL;
    SCOPED(fab_inventory) inv = {0};
    struct fab_err err = {{0}};
    uint32_t n = 0;
    write_file(path, bytes, size);
    int rc = store_open(path, &store, &err);
    if (rc == PMIXFAB_OK)
        rc = store_load_inventory(store, &inv, &err);
    if (rc == PMIXFAB_OK)
        rc = store_load_planes(store, &planes, &n, &err);
    struct reports_seen reports = {.original = original}, told = reports;
    if (rc == PMIXFAB_OK)
        rc = store_reports_load(store, must_be_report, &reports, &err);
    if (rc == PMIXFAB_OK)
        rc = store_reports_published(store, must_be_told, &told, &err);
    if (rc == PMIXFAB_OK) {
        assert_int_equal(reports.n, 2);
        assert_int_equal(told.n, 1);
        assert_true(fab_inventory_equal(&inv, &original->inv));
        assert_int_equal(n, 1);
        must_be_plane(original, &planes[0]);
    } else {
        if (rc != PMIXFAB_ERR_CORRUPT && rc != PMIXFAB_ERR_FOREIGN && rc != PMIXFAB_ERR_NEWER &&
            rc != PMIXFAB_ERR_IO)
            print_error("%d: %s\n", rc, err.text);
        assert_true(rc == PMIXFAB_ERR_CORRUPT || rc == PMIXFAB_ERR_FOREIGN || rc == PMIXFAB_ERR_NEWER ||
                    rc == PMIXFAB_ERR_IO);
        check_line(&err, path);
    }
    store_planes_free(planes, n);
    return rc != PMIXFAB_OK;
}

TEST_IN(test_flipped_bits, struct folder *folder, folder_setup, folder_teardown)
{
    OWNED(free) struct original *original = must_have(sizeof *original);
    write_original(original, folder->db);
    uint64_t random = 4711;
    unsigned refused = 0;
    for (int i = 0; i < 300; i++) {
        uint64_t pick = fabric_random_next(&random) >> 10;
        /* every third in the head and the schema, which are a small part of it all */
        size_t at = pick / 8 % (i % 3 == 0 ? 4096 : original->size);
        original->bytes[at] ^= (uint8_t)(1u << pick % 8);
        refused += refused_or_equal(original, folder->db, original->bytes, original->size);
        original->bytes[at] ^= (uint8_t)(1u << pick % 8);
    }
    print_message("%u of 300 refused, the others make no difference\n", refused);
    assert_true(refused > 50);
    assert_false(refused_or_equal(original, folder->db, original->bytes, original->size));
    free_original(original);
}

TEST_WITH(test_flipped_pages, folder_setup, folder_teardown)
{
    enum { PAGE = 4096 };
    struct folder *folder = *state;
    OWNED(free) struct original *original = must_have(sizeof *original);
    write_original(original, folder->db);
    assert_int_equal(original->size % PAGE, 0);
    unsigned pages = (unsigned)(original->size / PAGE), refused = 0;
    uint8_t kept[PAGE];
    for (unsigned i = 0; i < 2 * pages; i++) {
        uint8_t *page = original->bytes + (size_t)(i / 2) * PAGE;
        memcpy(kept, page, PAGE);
        for (size_t b = 0; b < PAGE; b++)
            page[b] = i % 2 == 0 ? 0 : (uint8_t)~kept[b];
        bool no = refused_or_equal(original, folder->db, original->bytes, original->size);
        refused += no;
        memcpy(page, kept, PAGE);
    }
    /* But for the pages of tables that hold nothing (the history) all of them count. */
    print_message("%u of %u refused\n", refused, 2 * pages);
    assert_true(refused >= 2 * pages - 4);
    free_original(original);
}

TEST_IN(test_truncated, struct folder *folder, folder_setup, folder_teardown)
{
    OWNED(free) struct original *original = must_have(sizeof *original);
    write_original(original, folder->db);
    for (size_t size = 1; size < original->size; size += size < 600 ? 37 : 1931) {
        /* But for the last page, which is of a table that holds nothing. */
        if (!refused_or_equal(original, folder->db, original->bytes, size) && size < original->size - 4096)
            fail_msg("%zu of %zu bytes are taken for a whole store", size, original->size);
    }
    free_original(original);
}

/* A broken log costs what was not yet folded into the database, from the break on, and nothing before it. */
TEST_WITH(test_broken_log, folder_setup, folder_teardown)
{
    enum { GENERATIONS = 5 };
    struct folder *folder = *state;
    struct fab_inventory inv[GENERATIONS + 1];
    size_t db_size, wal_size;
    uint64_t random = 42;
    const char *wal = printed("%s-wal", folder->db), *copy = printed("%s/copy.db", folder->dir);
    const char *copy_wal = printed("%s/copy.db-wal", folder->dir);
    inv[0] = empty_inventory();
    store_close(open_store(folder->db));
    struct store *store = open_store(folder->db);
    for (unsigned i = 1; i <= GENERATIONS; i++) {
        inv[i] = odd_inventory(15, 2, i);
        must_publish(store, i, &inv[i - 1], &inv[i]);
    }
    OWNED(free) char *db = read_file(folder->db, &db_size), *log = read_file(wal, &wal_size);
    store_close(store);
    for (int i = 0; i < 50; i++) {
        size_t at = (size_t)(fabric_random_next(&random) >> 10) % wal_size;
        log[at] ^= (char)(1 + i);
        write_file(copy, db, db_size);
        write_file(copy_wal, log, wal_size);
        log[at] ^= (char)(1 + i);
        uint64_t generation;
        int64_t published;
        store = open_store(copy);
        assert_int_equal(store_generation(store, &generation, &published, NULL), PMIXFAB_OK);
        assert_true(generation < GENERATIONS);
        must_hold(store, generation, &inv[generation]);
        store_close(store);
    }
    for (unsigned i = 0; i <= GENERATIONS; i++)
        fab_inventory_destroy(&inv[i]);
}

/* ---- a store that has become too large to be walked wholly ---- */

/* Zero the first page of a table. */
static void wipe_table(const char *path, const char *table)
{
    static const uint8_t zeros[4096];
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    const char *sql = printed("SELECT rootpage FROM sqlite_schema WHERE name = '%s'", table);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    off_t page = sqlite3_column_int(stmt, 0);
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, zeros, sizeof zeros, (page - 1) * (off_t)sizeof zeros), sizeof zeros);
    close(fd);
}

static int ignore_change(const struct store_change *change, void *cbdata)
{
    (void)change;
    (void)cbdata;
    return 0;
}

TEST_IN(test_large_store, struct folder *folder, folder_setup, folder_teardown)
{
    struct fab_err err = {{0}};
    struct fab_inventory empty = empty_inventory();
    SCOPED(fab_inventory) inv = odd_inventory(20, 4, 0);
    char text[] = "something";
    struct fab_change changes[] = {{.kind = FAB_CHANGE_NAME, .what = text, .before = text, .after = text}};
    struct fab_diff diff = {.changes = changes, .n = 1};
    struct store_plane plane = {.generation = 1, .name = "plane0", .size = STORE_CHECK_MAX + 1};
    plane.snapshot = calloc(1, plane.size);
    assert_non_null(plane.snapshot);
    struct store_publication publication = {.generation = 1,
                                            .published = 1000,
                                            .before = &empty,
                                            .after = &inv,
                                            .diff = &diff,
                                            .planes = &plane,
                                            .n_planes = 1};
    struct store *store = open_store(folder->db);
    assert_int_equal(store_publish(store, &publication, &err), PMIXFAB_OK);
    store_close(store);
    free(plane.snapshot);

    /* A broken history is not in the way of what is served, and says so where it is read or written. */
    wipe_table(folder->db, "change");
    store = open_store(folder->db);
    must_hold(store, 1, &inv);
    must_fail(store_history(store, 0, 9, NULL, 0, ignore_change, NULL, &err), PMIXFAB_ERR_CORRUPT, &err,
              "reading the history");
    publication.before = &inv;
    publication.after = &empty;
    publication.generation = 2;
    publication.n_planes = 0;
    must_fail(store_publish(store, &publication, &err), PMIXFAB_ERR_CORRUPT, &err, "writing the history");
    must_hold(store, 1, &inv);
    store_close(store);

    wipe_table(folder->db, "link");
    must_fail(try_open(folder->db, &err), PMIXFAB_ERR_CORRUPT, &err, "its integrity is broken");
}

/* ---- places where nothing can be written ---- */

TEST_IN(test_bad_places, struct folder *folder, folder_setup, folder_teardown)
{
    struct fab_err err = {{0}};
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "%s/absent/fabric.db", folder->dir);
    assert_int_equal(try_open(path, &err), PMIXFAB_ERR_IO);
    check_line(&err, "absent");
    check_line(&err, "No such file or directory");
    write_file(folder->db, "", 0);
    snprintf(path, sizeof path, "%s/fabric.db", folder->db);
    must_fail(try_open(path, &err), PMIXFAB_ERR_IO, &err, "Not a directory");
    snprintf(path, sizeof path, "%s/folder.db", folder->dir);
    assert_int_equal(mkdir(path, 0700), 0);
    must_fail(try_open(path, &err), PMIXFAB_ERR_IO, &err, "Is a directory");
    snprintf(path, sizeof path, "%s/fifo.db", folder->dir);
    assert_int_equal(mkfifo(path, 0600), 0);
    must_fail(try_open(path, &err), PMIXFAB_ERR_IO, &err, "not a regular file");
    OWNED(free) char *longest = must_have(6000);
    memset(longest, 'x', 5999);
    longest[0] = '/';
    longest[5999] = '\0';
    assert_int_equal(try_open(longest, &err), PMIXFAB_ERR_RANGE);
}

/* The code of store_open() as a user who is not root, in a process of its own. */
static int open_unprivileged(const char *path)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct store *store;
        struct fab_err err = {{0}};
        if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0)
            _exit(100);
        int rc = store_open(path, &store, &err);
        if (rc != PMIXFAB_OK && (strstr(err.text, path) == NULL || strchr(err.text, '\n') != NULL))
            _exit(101);
        _exit(-rc);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return -WEXITSTATUS(status);
}

TEST_IN(test_no_permission, struct folder *folder, folder_setup, folder_teardown)
{
    const char *lock = printed("%s.lock", folder->db);
    assert_int_equal(chmod(folder->dir, 0555), 0);
    assert_int_equal(open_unprivileged(folder->db), PMIXFAB_ERR_IO);
    assert_int_equal(chmod(folder->dir, 0777), 0);
    store_close(open_store(folder->db));
    assert_int_equal(chmod(lock, 0444), 0);
    assert_int_equal(open_unprivileged(folder->db), PMIXFAB_ERR_IO);
    assert_int_equal(chmod(lock, 0666), 0);
    assert_int_equal(chmod(folder->db, 0444), 0);
    assert_int_equal(open_unprivileged(folder->db), PMIXFAB_ERR_IO);
    assert_int_equal(chmod(folder->db, 0666), 0);
    assert_int_equal(open_unprivileged(folder->db), PMIXFAB_OK);
}

/* ---- a disk that is full ---- */

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

/* A disk that is full costs the publication and nothing else. */
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
