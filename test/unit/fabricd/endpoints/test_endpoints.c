/* Endpoints: no number is handed out twice, whatever is taken, given back and started anew; who may have how
 * many; and whose end frees them. */
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "fabricd/base/file_io.h"
#include "fabricd/endpoints/endpoints.h"
#include "fabricd/endpoints/pool.h"
#include "test/unit/store_fixture.h"

OWNER(pool_free, struct pool)

static struct pool *open_pool(struct store *store)
{
    struct pool *pool = NULL;
    must_do(pool_new(store, &pool, fresh_err()));
    return pool;
}

static struct store_endpoints who(int pid, const char *job)
{
    return (struct store_endpoints){
        .job = job, .uid = 7, .pid = pid, .started = 5, .boot = boot_id(), .since = 1};
}

/* What is handed out, as one text. */
static void assert_rows(const struct pool *pool, const char *rows)
{
    char text[400] = "";
    uint32_t n;
    const struct store_endpoints *all = pool_all(pool, &n);
    for (uint32_t i = 0; i < n; i++) {
        const size_t len = strlen(text);
        snprintf(text + len, sizeof(text) - len, "%s%s:%u-%u:%s", i == 0 ? "" : " ", all[i].plane,
                 all[i].first, all[i].last, all[i].job);
    }
    assert_string_equal(text, rows);
}

/* What has become free is not handed out again before the rest was. */
TEST_IN(test_around, const struct folder *folder, folder_setup, folder_teardown)
{
    struct fab_err err = {""};
    OWNED(store_close) struct store *store = open_store(folder->db);
    OWNED(pool_free) struct pool *pool = open_pool(store);
    const struct pool_range range = {"ib0", 10, 19}, other = {"roce", 1, 8};
    const struct store_endpoints a = who(100, "a"), b = who(101, "b");
    const char *rows[] = {"ib0:10-13:a", "ib0:14-17:a", "ib0:10-11:a ib0:18-19:a", "ib0:12-15:a"};
    for (size_t i = 0; i < 4; i++) {
        must(pool_take(pool, &a, &range, 1, 4, &err), &err);
        assert_rows(pool, rows[i]);
        must(pool_give_back(pool, &a, &err), &err);
    }
    must(pool_take(pool, &b, &other, 1, 3, &err), &err); /* each plane for itself */
    must(pool_take(pool, &b, &range, 1, 1, &err), &err);
    assert_rows(pool, "ib0:16-16:b roce:1-3:b");
    pool_free(pool); /* behind the highest that is known then */
    open_again(&store, folder->db);
    pool = open_pool(store);
    must(pool_take(pool, &a, &range, 1, 4, &err), &err);
    assert_rows(pool, "ib0:10-10:a ib0:16-16:b ib0:17-19:a roce:1-3:b");
}

static void write_old(const char *path, const char *sql)
{
    sqlite3 *db;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

/* A restore keeps what is handed out now; where that cannot be read it does not go unsaid. */
TEST_IN(test_take_over, const struct folder *folder, folder_setup, folder_teardown)
{
    struct fab_err err = {""};
    OWNED(store_close) struct store *store = open_store(folder->db);
    struct store_endpoints row = who(1, "a");
    row.plane = "ib0", row.first = row.last = 5;
    must(store_endpoints_add(store, &row, 1, &err), &err);
    char old[sizeof(folder->db) + 8];
    snprintf(old, sizeof(old), "%s-old", folder->db);
    write_old(old, "CREATE TABLE other (x)"); /* of before there were endpoints */
    must(store_endpoints_take_over(store, old, &err), &err);
    write_old(old, "PRAGMA writable_schema = ON; INSERT INTO sqlite_schema VALUES"
                   " ('table', 'endpoint', 'endpoint', 0, 'CREATE VIRTUAL TABLE endpoint USING no_module')");
    must_fail(store_endpoints_take_over(store, old, &err), PMIXFAB_ERR_CORRUPT, &err,
              "taking endpoints over");
    OWNED(pool_free) struct pool *pool = open_pool(store);
    assert_rows(pool, "ib0:5-5:a");
}

/* What was handed out before the host booted is free; what may be of this boot is not. */
TEST_IN(test_boot, const struct folder *folder, folder_setup, folder_teardown)
{
    struct fab_err err = {""};
    OWNED(store_close) struct store *store = open_store(folder->db);
    struct store_endpoints rows[] = {who(1, "a"), who(1, "b"), who(1, "c")};
    for (uint32_t i = 0; i < 3; i++)
        rows[i].plane = "ib0", rows[i].first = rows[i].last = i + 1;
    rows[1].boot = "another";
    rows[2].boot = BOOT_UNKNOWN;
    must(store_endpoints_add(store, rows, 3, &err), &err);
    must(store_endpoints_forget(store, BOOT_UNKNOWN, &err), &err);
    OWNED(pool_free) struct pool *pool = open_pool(store);
    assert_rows(pool, strcmp(boot_id(), BOOT_UNKNOWN) == 0 ? "ib0:1-1:a ib0:2-2:b ib0:3-3:c"
                                                           : "ib0:1-1:a ib0:3-3:c");
}

/* Against a plain table of who has which number. */
TEST_IN(test_random, const struct folder *folder, folder_setup, folder_teardown)
{
    struct fab_err err = {""};
    OWNED(store_close) struct store *store = open_store(folder->db);
    OWNED(pool_free) struct pool *pool = open_pool(store);
    const struct pool_range range = {"ib0", 1, 40};
    int has[41] = {0}, last = -1;
    uint64_t random = 17;
    for (unsigned round = 0; round < 400; round++) {
        const int pid = 1 + (int)((fabric_random_next(&random) >> 20) % 8);
        const uint32_t count = 1 + (uint32_t)((fabric_random_next(&random) >> 20) % 9);
        const struct store_endpoints one = who(pid, "j");
        uint32_t left = 0, n, given = 0;
        int highest = 0;
        for (int i = 1; i <= 40; i++)
            left += has[i] == 0;
        if (count % 3 == 0) {
            const struct store_endpoints all = {.pid = pid, .started = 5};
            must(pool_give_back(pool, &all, &err), &err);
            for (int i = 1; i <= 40; i++)
                has[i] = has[i] == pid ? 0 : has[i];
        } else if (count > left) {
            must_fail(pool_take(pool, &one, &range, 1, count, &err), PMIXFAB_ERR_RANGE, &err, "ib0");
        } else {
            must(pool_take(pool, &one, &range, 1, count, &err), &err);
            for (int i = 1; last < 0 && i <= 40; i++) /* that it knows from the store: the highest */
                highest = has[i] != 0 ? i : highest;
            const int from = last < 0 ? highest : last;
            for (int k = 0; k < 40 && given < count; k++) {
                const int i = (from + k) % 40 + 1;
                if (has[i] == 0)
                    has[i] = pid, given++, last = i;
            }
        }
        if (round % 50 == 0) {
            pool_free(pool);
            open_again(&store, folder->db);
            pool = open_pool(store);
            last = -1;
        }
        const struct store_endpoints *all = pool_all(pool, &n);
        uint32_t used = 0, told = 0;
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t k = all[i].first; k <= all[i].last; k++, told++)
                assert_int_equal(has[k], all[i].pid);
        for (int i = 1; i <= 40; i++)
            used += has[i] != 0;
        assert_int_equal(used, told);
    }
}

/* ---- users ---- */

/* A daemon's part: numbers 100 to 109 in plane ib0, a loop, a store. */
struct site {
    struct config config;
    struct event_base *base;
    struct store *store;
    struct endpoints *endpoints;
};

static void site_open(struct site *site, const struct folder *folder)
{
    config_init(&site->config);
    assert_int_equal(config_append(&site->config.pools, "ib0=100-109"), PMIXFAB_OK);
    site->base = event_base_new();
    site->store = open_store(folder->db);
    site->endpoints = NULL;
}

/* Who has numbers by the store keeps them if he lives. */
static void site_start(struct site *site)
{
    must_do(endpoints_new(site->base, &site->config, site->store, &site->endpoints, fresh_err()));
}

static void site_free(struct site *site)
{
    endpoints_free(site->endpoints);
    store_close(site->store);
    event_base_free(site->base);
    config_destroy(&site->config);
}

#define SITE(site, folder)                                                                                   \
    __attribute__((cleanup(site_free))) struct site site;                                                    \
    site_open(&(site), folder)

/* One who asks too often keeps nobody else from it. */
TEST_IN(test_burst, const struct folder *folder, folder_setup, folder_teardown)
{
    struct fab_err err = {""};
    SITE(site, folder);
    site_start(&site);
    int rc = PMIXFAB_OK;
    unsigned n = 0;
    while (rc == PMIXFAB_OK && n < 100000)
        n += (rc = endpoints_admit(site.endpoints, 12345, &err)) == PMIXFAB_OK;
    must_fail(rc, PMIXFAB_ERR_BUSY, &err, "too many requests of uid 12345");
    assert_in_range(n, ENDPOINTS_BURST, 99999);
    must(endpoints_admit(site.endpoints, 12346, &err), &err);
    for (n = 0; n < 2 * ENDPOINTS_BURST; n++) {
        must(endpoints_admit(site.endpoints, 0, &err), &err);
        must(endpoints_admit(site.endpoints, geteuid(), &err), &err);
    }
}

/* ---- starters ---- */

/* A kernel before 5.3, or valgrind. */
static bool has_pidfd(void)
{
    const int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static pid_t sleeper(void)
{
    const pid_t pid = fork();
    if (pid == 0) {
        execlp("sleep", "sleep", "60", NULL); /* it has nothing of this process open */
        _exit(1);
    }
    assert_true(pid > 0);
    return pid;
}

static void end_sleeper(pid_t pid)
{
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static uint32_t rows_of(const struct site *site)
{
    uint32_t n;
    endpoints_all(site->endpoints, &n);
    return n;
}

TEST_IN(test_starters, const struct folder *folder, folder_setup, folder_teardown)
{
    struct fab_err err = {""};
    if (!has_pidfd())
        skip(); /* no starter can be watched */
    SITE(site, folder);
    site.config.endpoints_quota = 5;
    site_start(&site);
    const pid_t first = sleeper(), second = sleeper();
    struct endpoints_request ask = {
        .pid = first, .uid = 12345, .job = "a", .planes = {"none", "ib0", "ib0"}, .n_planes = 3, .count = 3};
    must(endpoints_take(site.endpoints, &ask, &err), &err);
    must(endpoints_take(site.endpoints, &ask, &err), &err); /* it has them */
    assert_int_equal(rows_of(&site), 1);
    ask.count = 2;
    must_fail(endpoints_take(site.endpoints, &ask, &err), PMIXFAB_ERR_CONFLICT, &err, "has other endpoints");
    ask.pid = second, ask.count = 3;
    must_fail(endpoints_take(site.endpoints, &ask, &err), PMIXFAB_ERR_RANGE, &err,
              "uid 12345 has 3 and requests 3");
    ask.uid = 0; /* may have any */
    must(endpoints_take(site.endpoints, &ask, &err), &err);
    ask.job = "b", ask.count = 5;
    must_fail(endpoints_take(site.endpoints, &ask, &err), PMIXFAB_ERR_RANGE, &err, "4 of 5");
    ask.n_planes = 1;
    must_fail(endpoints_take(site.endpoints, &ask, &err), PMIXFAB_ERR_NOTFOUND, &err, "no pool of none");
    must_fail(endpoints_give_back(site.endpoints, second, 0, "b", &err), PMIXFAB_ERR_NOTFOUND, &err, "job b");
    must(endpoints_give_back(site.endpoints, second, 0, "a", &err), &err);
    assert_int_equal(rows_of(&site), 1);
    /* its end frees what it had, at once */
    end_sleeper(first);
    event_base_loop(site.base, EVLOOP_ONCE);
    assert_int_equal(rows_of(&site), 0);
    ask = (struct endpoints_request){
        .pid = 0, .uid = 1, .job = "a", .planes = {"ib0"}, .n_planes = 1, .count = 1};
    must_fail(endpoints_take(site.endpoints, &ask, &err), PMIXFAB_ERR_UNSUPPORTED, &err,
              "another PID namespace");
    ask.pid = first;
    must_fail(endpoints_take(site.endpoints, &ask, &err), PMIXFAB_ERR_NOTFOUND, &err, "cannot be watched");
    struct rlimit was, none;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    none = was, none.rlim_cur = 0;
    ask.pid = second;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    int rc = endpoints_take(site.endpoints, &ask, &err);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
    must_fail(rc, PMIXFAB_ERR_BUSY, &err, "cannot be watched");
    /* starters leave descriptors to others, of a low limit the half */
    const int lowest = dup(STDERR_FILENO);
    close(lowest);
    none.rlim_cur = 2 * (rlim_t)lowest;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    rc = endpoints_take(site.endpoints, &ask, &err);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
    must_fail(rc, PMIXFAB_ERR_BUSY, &err, "cannot be watched");
    none.rlim_cur += 8;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    rc = endpoints_take(site.endpoints, &ask, &err);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
    must(rc, &err);
    end_sleeper(second);
}

/* Another user who speaks by a starter's number frees nothing of it, and has his own under the same name. */
TEST_IN(test_users, const struct folder *folder, folder_setup, folder_teardown)
{
    struct fab_err err = {""};
    if (!has_pidfd())
        skip(); /* no starter can be watched */
    SITE(site, folder);
    site_start(&site);
    const pid_t pid = sleeper();
    struct endpoints_request ask = {
        .pid = pid, .uid = 8, .job = "a", .planes = {"ib0"}, .n_planes = 1, .count = 3};
    must(endpoints_take(site.endpoints, &ask, &err), &err);
    must_fail(endpoints_give_back(site.endpoints, pid, 9, "a", &err), PMIXFAB_ERR_NOTFOUND, &err, "job a");
    ask.uid = 9, ask.count = 2;
    for (uid_t uid = 9; uid >= 8; uid--) {
        must(endpoints_take(site.endpoints, &ask, &err), &err);
        assert_int_equal(rows_of(&site), 2);
        must(endpoints_give_back(site.endpoints, pid, uid, "a", &err), &err);
        uint32_t n;
        assert_int_equal(endpoints_all(site.endpoints, &n)->uid, 17 - uid);
        assert_int_equal(n, 1);
    }
    must(endpoints_give_back(site.endpoints, pid, ENDPOINTS_ANY_USER, "a", &err), &err);
    assert_int_equal(rows_of(&site), 0);
    end_sleeper(pid);
}

/* A restart keeps what living processes have; one that ended meanwhile, or another of its number, has none.
 */
TEST_IN(test_restart, const struct folder *folder, folder_setup, folder_teardown)
{
    struct fab_err err = {""};
    if (!has_pidfd())
        skip();                                      /* no starter can be watched */
    const pid_t lives = sleeper(), ends = sleeper(); /* before the store is open, and has a lock */
    SITE(site, folder);
    site_start(&site);
    struct endpoints_request ask = {.pid = ends, .job = "a", .planes = {"ib0"}, .n_planes = 1, .count = 4};
    must(endpoints_take(site.endpoints, &ask, &err), &err);
    ask.pid = lives;
    must(endpoints_take(site.endpoints, &ask, &err), &err);
    endpoints_free(site.endpoints);
    end_sleeper(ends);
    struct store_endpoints other = who(lives, "o"); /* it began at another time */
    other.plane = "ib0", other.first = other.last = 109;
    must(store_endpoints_add(site.store, &other, 1, &err), &err);
    open_again(&site.store, folder->db);
    site_start(&site);
    uint32_t n;
    const struct store_endpoints *rows = endpoints_all(site.endpoints, &n);
    assert_int_equal(n, 1);
    assert_int_equal(rows[0].pid, lives);
    assert_int_equal(rows[0].first, 104);
    end_sleeper(lives);
    event_base_loop(site.base, EVLOOP_ONCE);
    assert_int_equal(rows_of(&site), 0);
}
