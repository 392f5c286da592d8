/* A watch of a run directory: a program that opens what it tells knows what stands there. */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "test/unit/snapshot_world.h"

/* A folder with a run directory, and a fabric to publish there. */
struct lab {
    char dir[64], rundir[80];
    struct world world;
    int listener;
};

FIXTURE(setup)
{
    struct lab *lab = must_have(sizeof(*lab));
    strcpy(lab->dir, "/tmp/pmixfab-watch-XXXXXX");
    assert_non_null(mkdtemp(lab->dir));
    snprintf(lab->rundir, sizeof(lab->rundir), "%s/run", lab->dir);
    assert_int_equal(mkdir(lab->rundir, 0755), 0);
    world_open(&lab->world, "fattree2:2,1,2");
    lab->listener = -1;
    *state = lab;
    return 0;
}

FIXTURE(teardown)
{
    OWNED(free) struct lab *lab = *state;
    if (lab->listener >= 0)
        close(lab->listener);
    world_destroy(&lab->world);
    return remove_folder(lab->dir);
}

/* As a publisher does it. */
static void lab_publish(struct lab *lab, const char *plane, uint64_t generation)
{
    struct fab_snapshot_meta meta = lab->world.layers[0].meta;
    size_t size;
    meta.name = plane;
    meta.generation = generation;
    OWNED(free) void *bytes = layer_bytes(&lab->world.layers[0], &meta, NULL, &size);
    const char *path = printed("%s/%s.snap", lab->rundir, plane), *beside = printed("%s/.new", lab->rundir);
    write_file(beside, bytes, size);
    assert_int_equal(rename(beside, path), 0);
}

static void lab_unlink(struct lab *lab, const char *name)
{
    assert_int_equal(unlink(printed("%s/%s", lab->rundir, name)), 0);
}

/* As a fabricd that starts; a reader may look in between. */
static void lab_bind(struct lab *lab)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/control.sock", lab->rundir);
    lab->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(lab->listener, (struct sockaddr *)&address, sizeof(address)), 0);
}

static void lab_listen(struct lab *lab)
{
    assert_int_equal(listen(lab->listener, 8), 0);
    assert_int_equal(chmod(printed("%s/control.sock", lab->rundir), 0666), 0);
}

static bool readable(const struct pmixfab_watch *watch)
{
    struct pollfd fd = {.fd = pmixfab_watch_fd(watch), .events = POLLIN};
    return poll(&fd, 1, 0) == 1;
}

/* "published ib0 7; stale;": everything that is told now. */
static const char *news(struct pmixfab_watch *watch)
{
    static const char *const kinds[] = {
        [PMIXFAB_CHANGE_PUBLISHED] = "published",
        [PMIXFAB_CHANGE_GONE] = "gone",
        [PMIXFAB_CHANGE_STALE] = "stale",
        [PMIXFAB_CHANGE_CURRENT] = "current",
    };
    struct pmixfab_change change;
    const char *all = "";
    int rc;
    while ((rc = pmixfab_watch_next(watch, &change)) == PMIXFAB_OK) {
        assert_in_range(change.kind, PMIXFAB_CHANGE_PUBLISHED, PMIXFAB_CHANGE_CURRENT);
        if (change.plane[0] == '\0')
            all = printed("%s%s;", all, kinds[change.kind]);
        else
            all = printed("%s%s %s %u;", all, kinds[change.kind], change.plane, (unsigned)change.generation);
    }
    assert_int_equal(rc, PMIXFAB_ERR_NOTFOUND);
    assert_false(readable(watch)); /* all of it was taken */
    return all;
}

#define TOLD(watch, what)                                                                                    \
    do {                                                                                                     \
        assert_true(readable(watch));                                                                        \
        assert_string_equal(news(watch), what);                                                              \
    } while (0)

TEST_IN(test_planes, struct lab *lab, setup, teardown)
{
    struct pmixfab_watch *watch;
    lab_publish(lab, "ib0", 7);
    assert_int_equal(pmixfab_watch_open(lab->rundir, &watch), 0);
    assert_string_equal(news(watch), ""); /* what is there is no news */
    lab_publish(lab, "ib0", 8);
    lab_publish(lab, "ib0", 9);
    TOLD(watch, "published ib0 9;");
    lab_publish(lab, "ib1", 10);
    lab_publish(lab, "ib0", 11);
    assert_true(readable(watch));
    const char *both = news(watch);
    assert_non_null(strstr(both, "published ib0 11;"));
    assert_non_null(strstr(both, "published ib1 10;"));
    lab_publish(lab, "ib1", 10); /* a daemon that starts writes its files anew */
    TOLD(watch, "");
    lab_unlink(lab, "ib1.snap");
    TOLD(watch, "gone ib1 0;");
    lab_publish(lab, "ib1", 12);
    TOLD(watch, "published ib1 12;");
    write_file(printed("%s/ib1.snap", lab->rundir), "no snapshot",
               11); /* what was told is all that is known */
    TOLD(watch, "");
    write_file(printed("%s/notes", lab->rundir), "", 0);
    TOLD(watch, "");
    pmixfab_watch_close(watch);
}

TEST_IN(test_staleness, struct lab *lab, setup, teardown)
{
    struct pmixfab_watch *watch;
    int stale = 77;
    assert_int_equal(pmixfab_stale_rundir(lab->rundir, &stale), 0);
    assert_int_equal(stale, 1); /* nobody listens */
    assert_int_equal(pmixfab_watch_open(lab->rundir, &watch), 0);
    lab_bind(lab);
    TOLD(watch, "");
    lab_listen(lab);
    TOLD(watch, "current;");
    assert_int_equal(pmixfab_stale_rundir(lab->rundir, &stale), 0);
    assert_int_equal(stale, 0);
    write_file(printed("%s/stale", lab->rundir), "", 0);
    TOLD(watch, "stale;");
    assert_int_equal(pmixfab_stale_rundir(lab->rundir, &stale), 0);
    assert_int_equal(stale, 1);
    lab_unlink(lab, "stale");
    TOLD(watch, "current;");
    close(lab->listener); /* killed: nothing can be read, and who asks is told */
    lab->listener = -1;
    assert_false(readable(watch));
    assert_string_equal(news(watch), "stale;");
    pmixfab_watch_close(watch);
}

TEST_IN(test_the_directory_comes_and_goes, struct lab *lab, setup, teardown)
{
    struct pmixfab_watch *watch;
    assert_int_equal(rmdir(lab->rundir), 0);
    assert_int_equal(pmixfab_watch_open(lab->rundir, &watch), 0);
    for (uint64_t generation = 1; generation < 4; generation++) {
        OWNED(pmixfab_close) struct pmixfab *fab = NULL;
        assert_int_equal(mkdir(lab->rundir, 0755), 0);
        TOLD(watch, "");
        lab_publish(lab, "ib0", generation);
        TOLD(watch, printed("published ib0 %u;", (unsigned)generation));
        /* a snapshot that is mapped keeps its folder in being */
        assert_int_equal(pmixfab_open_rundir(lab->rundir, "ib0", &fab), 0);
        lab_unlink(lab, "ib0.snap");
        assert_int_equal(rmdir(lab->rundir), 0);
        TOLD(watch, "gone ib0 0;");
    }
    assert_int_equal(mkdir(lab->rundir, 0755), 0);
    pmixfab_watch_close(watch);
}

/* Nobody watches the folder above that one: that it is there again is seen by who asks, and watched from
 * then. */
TEST_IN(test_the_parent_comes_and_goes, struct lab *lab, setup, teardown)
{
    struct pmixfab_watch *watch;
    const char *inner = printed("%s/inner", lab->rundir);
    assert_int_equal(mkdir(inner, 0755), 0);
    assert_int_equal(pmixfab_watch_open(inner, &watch), 0);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(rmdir(inner), 0);
        assert_int_equal(rmdir(lab->rundir), 0);
        TOLD(watch, "");
        assert_int_equal(mkdir(lab->rundir, 0755), 0);
        assert_string_equal(news(watch), "");
        assert_int_equal(mkdir(inner, 0755), 0);
        TOLD(watch, "");
        write_file(printed("%s/ib0.snap", inner), "no snapshot", 11);
        TOLD(watch, "");
        assert_int_equal(unlink(printed("%s/ib0.snap", inner)), 0);
        TOLD(watch, "");
    }
    pmixfab_watch_close(watch);
}

/* What a plain reader finds before and after, and what the watch tells in between, agree. */
TEST_IN(test_random_changes, struct lab *lab, setup, teardown)
{
    uint64_t dice = 42, now[4] = {0}, known[4] = {0}, generation = 0;
    struct pmixfab_watch *watch;
    struct pmixfab_change change;
    assert_int_equal(pmixfab_watch_open(lab->rundir, &watch), 0);
    for (unsigned step = 0; step < 400; step++) {
        const unsigned plane = (unsigned)(fabric_random_next(&dice) % 4);
        if (fabric_random_next(&dice) % 4 != 0)
            lab_publish(lab, printed("ib%u", plane), now[plane] = ++generation);
        else if (now[plane] != 0) {
            lab_unlink(lab, printed("ib%u.snap", plane));
            now[plane] = 0;
        }
        if (fabric_random_next(&dice) % 3 != 0)
            continue;
        while (pmixfab_watch_next(watch, &change) == PMIXFAB_OK)
            known[change.plane[2] - '0'] = change.generation;
        assert_memory_equal(known, now, sizeof(now));
    }
    pmixfab_watch_close(watch);
}

TEST_IN(test_refused, struct lab *lab, setup, teardown)
{
    struct pmixfab_watch *watch = (void *)lab;
    struct pmixfab_change change;
    int stale = 77;
    assert_int_equal(pmixfab_watch_open(lab->rundir, NULL), PMIXFAB_ERR_INVAL);
    assert_int_equal(pmixfab_watch_open("", &watch), PMIXFAB_ERR_INVAL);
    assert_null(watch);
    assert_int_equal(pmixfab_watch_open(printed("%s/no/such", lab->dir), &watch), PMIXFAB_ERR_NOTFOUND);
    assert_null(watch);
    assert_int_equal(pmixfab_watch_open(lab->rundir, &watch), 0);
    assert_int_equal(pmixfab_watch_next(NULL, &change), PMIXFAB_ERR_INVAL);
    assert_int_equal(pmixfab_watch_next(watch, NULL), PMIXFAB_ERR_INVAL);
    assert_int_equal(pmixfab_watch_next_sized(watch, &change, 0), PMIXFAB_ERR_INVAL);
    pmixfab_watch_close(watch);
    pmixfab_watch_close(NULL);
    assert_int_equal(pmixfab_watch_fd(NULL), -1);
    assert_int_equal(pmixfab_stale_rundir(lab->rundir, NULL), PMIXFAB_ERR_INVAL);
    assert_int_equal(pmixfab_stale_rundir("", &stale), PMIXFAB_ERR_INVAL);
    assert_int_equal(pmixfab_stale_rundir(printed("%s/no", lab->dir), &stale), PMIXFAB_ERR_NOTFOUND);
    assert_int_equal(stale, 77);
}
