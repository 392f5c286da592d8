/*
 * Kill -9 at any moment leaves a store that opens with its newest generation whole.
 *
 * A child publishes one generation after the other and says so through a pipe; the parent kills it somewhere
 * in between and looks.
 */
#include "test/unit/store_fixture.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#define KILLS       60
#define INVENTORIES 3

static struct fab_inventory inventories[INVENTORIES], nothing;

static const struct fab_inventory *inventory_of(uint64_t generation)
{
    return generation == 0 ? &nothing : &inventories[generation % INVENTORIES];
}

/* The snapshot that belongs to a generation; sizes alternate between the same and others. */
static size_t snapshot_of(uint64_t generation, uint8_t *bytes)
{
    size_t size = generation % 4 < 2 ? 60000 : 20000 + generation % 7 * 9000;
    uint64_t random = generation * 77 + 1;
    for (size_t i = 0; i < size; i++)
        bytes[i] = i % 3000 == 0 ? (uint8_t)(fabric_random_next(&random) >> 24) : (uint8_t)i;
    return size;
}

static int publish_generation(struct store *store, uint64_t generation)
{
    static uint8_t bytes[80000];
    char what[32];
    snprintf(what, sizeof what, "change %llu", (unsigned long long)generation);
    char none[] = "";
    struct fab_change changes[] = {
        {.kind = FAB_CHANGE_LINK_ADDED, .what = what, .before = none, .after = none},
        {.kind = FAB_CHANGE_LINK_LOST, .what = what, .before = none, .after = none},
    };
    struct fab_diff diff = {.changes = changes, .n = 2};
    struct store_plane plane = {.generation = generation, .name = "plane0", .snapshot = bytes};
    plane.size = snapshot_of(generation, bytes);
    const struct store_publication publication = {.generation = generation,
                                                  .published = (int64_t)generation * 1000,
                                                  .before = inventory_of(generation - 1),
                                                  .after = inventory_of(generation),
                                                  .diff = &diff,
                                                  .planes = &plane,
                                                  .n_planes = 1};
    return store_publish(store, &publication, NULL);
}

/* Publish until killed. Each generation that is done goes up the pipe. */
__attribute__((noreturn)) static void publish_for_ever(const char *path, int progress)
{
    struct store *store;
    uint64_t generation;
    int64_t published;
    if (store_open(path, &store, NULL) != PMIXFAB_OK ||
        store_generation(store, &generation, &published, NULL) != PMIXFAB_OK)
        _exit(2);
    if (getpid() % 2 == 0)
        sqlite3_wal_autocheckpoint(store->db, 30); /* die while the log is folded in, too */
    for (;;) {
        if (publish_generation(store, ++generation) != PMIXFAB_OK)
            _exit(3);
        if (write(progress, &generation, sizeof generation) != sizeof generation)
            _exit(4);
    }
}

/* Wait for n generations, then a moment more, then kill. The newest generation that was reported. */
static uint64_t kill_one(const char *path, unsigned n, long nanoseconds)
{
    int ends[2];
    uint64_t newest = 0, generation;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(ends[0]);
        publish_for_ever(path, ends[1]);
    }
    close(ends[1]);
    for (unsigned i = 0; i < n && read(ends[0], &generation, sizeof generation) == sizeof generation; i++)
        newest = generation;
    nanosleep(&(struct timespec){.tv_nsec = nanoseconds}, NULL);
    assert_int_equal(kill(child, SIGKILL), 0);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    while (read(ends[0], &generation, sizeof generation) == sizeof generation)
        newest = generation;
    close(ends[0]);
    return newest;
}

static int count_changes(const struct store_change *change, void *cbdata)
{
    uint64_t *n = cbdata;
    char what[32];
    uint64_t generation = *n / 2 + 1;
    snprintf(what, sizeof what, "change %llu", (unsigned long long)generation);
    assert_int_equal(change->generation, generation);
    assert_int_equal(change->time, (int64_t)generation * 1000);
    assert_string_equal(change->what, what);
    assert_string_equal(change->kind, *n % 2 == 0 ? "link-added" : "link-lost");
    ++*n;
    return 0;
}

/* Everything in the store belongs to its newest generation, and all before it are told. */
static uint64_t must_be_whole(const char *path)
{
    static uint8_t bytes[80000];
    struct store_plane *planes;
    uint32_t n_planes;
    uint64_t generation, changes = 0;
    int64_t published;
    OWNED(store_close) struct store *store = open_store(path);
    assert_int_equal(store_generation(store, &generation, &published, NULL), PMIXFAB_OK);
    must_hold(store, generation, inventory_of(generation));
    assert_int_equal(store_load_planes(store, &planes, &n_planes, NULL), PMIXFAB_OK);
    assert_int_equal(n_planes, generation > 0);
    if (generation > 0) {
        assert_int_equal(planes[0].generation, generation);
        assert_int_equal(planes[0].size, snapshot_of(generation, bytes));
        assert_memory_equal(planes[0].snapshot, bytes, planes[0].size);
    }
    store_planes_free(planes, n_planes);
    assert_int_equal(store_history(store, 0, UINT64_MAX, NULL, 0, count_changes, &changes, NULL), PMIXFAB_OK);
    assert_int_equal(changes, 2 * generation);
    return generation;
}

TEST_IN(test_kill_while_publishing, struct folder *folder, folder_setup, folder_teardown)
{
    uint64_t random = (uint64_t)time(NULL) * 2654435761u + 1, newest = 0;
    print_message("seed %llu\n", (unsigned long long)random);
    unsigned unreported = 0;
    for (int i = 0; i < KILLS; i++) {
        unsigned n = (unsigned)((fabric_random_next(&random) >> 16) % 5);
        long moment = (long)((fabric_random_next(&random) >> 16) % 6000000);
        uint64_t reported = kill_one(folder->db, n, moment), found = must_be_whole(folder->db);
        /* What was reported is there; at most one more was committed and could not be reported. */
        assert_true(reported == 0 || found == reported || found == reported + 1);
        assert_true(found >= newest);
        unreported += reported != 0 && found == reported + 1;
        newest = found;
    }
    print_message("%llu generations, %u killed between commit and report\n", (unsigned long long)newest,
                  unreported);
    assert_true(newest >= KILLS);
}

TEST_IN(test_kill_while_creating, struct folder *folder, folder_setup, folder_teardown)
{
    uint64_t random = (uint64_t)time(NULL) * 2654435761u + 3;
    print_message("seed %llu\n", (unsigned long long)random);
    unsigned created = 0;
    for (int i = 0; i < KILLS / 2; i++) {
        char path[PATH_SIZE];
        snprintf(path, sizeof path, "%s/new%d.db", folder->dir, i);
        kill_one(path, 0, (long)((fabric_random_next(&random) >> 16) % 8000000));
        struct stat st;
        created += stat(path, &st) == 0;
        must_be_whole(path);
    }
    print_message("%u of %d had begun\n", created, KILLS / 2);
}

FIXTURE(make_inventories)
{
    nothing = empty_inventory();
    for (unsigned i = 0; i < INVENTORIES; i++)
        inventories[i] = odd_inventory(60, 5, i);
    return 0;
}

FIXTURE(free_inventories)
{
    for (unsigned i = 0; i < INVENTORIES; i++)
        fab_inventory_destroy(&inventories[i]);
    return 0;
}

TEST_GROUP(make_inventories, free_inventories)
