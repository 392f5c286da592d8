/*
 * bench_change_store - a store with a year of history, one change a minute: how long a step of trimming keeps
 * the loop; and what a backup of about 1 GiB does to those who publish meanwhile.
 *
 * The store is on the disk that the benches were built on: commits wait for it.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabricd/store/store.h"
#include "fabricd/store/store_priv.h"
#include "test/bench/bench.h"

#define YEAR     (365 * 24 * 60)
#define HOSTS    9826
#define BATCH    20000
#define PUBLISH  200               /* without a backup; with one, as many as there is time for */
#define SNAPSHOT ((size_t)1500000) /* bytes: a plane of a fat tree with 9,826 hosts */
#define LARGE    ((int64_t)900 << 20)
#define TRIMMED  60000
#define MINUTE   ((int64_t)60 * 1000000)
#define MAX      100000

struct bench {
    char dir[4096], path[4200], backup[4200];
    struct store *store;
    struct fab_inventory none;
    uint64_t generation;
    unsigned char *snapshot;
    double values[MAX];
    unsigned n;
};

static void die(const char *what, const struct fab_err *err)
{
    fprintf(stderr, "bench_change_store: %s: %s\n", what, err->text);
    exit(1);
}

static void open_it(struct bench *b, const char *path)
{
    struct fab_err err = {""};
    if (store_open(path, &b->store, &err) != PMIXFAB_OK)
        die("store", &err);
}

/* A folder beside this program: on the disk of the build. */
static void make_folder(struct bench *b)
{
    if (!bench_folder("bench-store", b->dir, sizeof(b->dir)))
        exit(1);
    snprintf(b->path, sizeof(b->path), "%s/fabricd.db", b->dir);
    snprintf(b->backup, sizeof(b->backup), "%s/backup.db", b->dir);
}

static void remove_folder(const struct bench *b)
{
    static const char *const names[] = {"fabricd.db",      "fabricd.db-wal", "fabricd.db-shm",
                                        "fabricd.db.lock", "backup.db",      "empty.db",
                                        "empty.db-wal",    "empty.db-shm",   "empty.db.lock"};
    char path[4400];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", b->dir, names[i]);
        unlink(path);
    }
    rmdir(b->dir);
}

static int64_t size_of(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? st.st_size : 0;
}

/* ---- changes ----------------------------------------------------------------------------------------- */

struct texts {
    char what[80], subjects[40];
};

/* A cable that is pulled, and put back a minute later. */
static struct fab_change make_change(uint64_t generation, struct texts *texts)
{
    unsigned host = (unsigned)(generation / 2 * 2654435761u % HOSTS) + 1, leaf = host / 17 + 1;
    bool lost = generation % 2 == 0;
    snprintf(texts->what, sizeof(texts->what), "leaf%u[%u] - node%05u HCA-1[1]", leaf, host % 17 + 1, host);
    memset(texts->subjects, 0, sizeof(texts->subjects));
    int n = snprintf(texts->subjects, sizeof(texts->subjects), "node%05u", host);
    snprintf(texts->subjects + n + 1, sizeof(texts->subjects) - (size_t)n - 1, "leaf%u", leaf);
    return (struct fab_change){.kind = lost ? FAB_CHANGE_LINK_LOST : FAB_CHANGE_LINK_ADDED,
                               .what = texts->what,
                               .before = (char *)(lost ? "4xHDR" : ""),
                               .after = (char *)(lost ? "" : "4xHDR"),
                               .why = "the port is no longer seen, its host is",
                               .subjects = texts->subjects,
                               .first_seen = (int64_t)generation * MINUTE,
                               .last_seen = (int64_t)generation * MINUTE};
}

/* As store_publish() would, many in one transaction. */
static void fill(struct bench *b, unsigned n)
{
    struct fab_err err = {""};
    while (n > 0) {
        int rc = store_begin(b->store, &err);
        for (unsigned i = 0; rc == PMIXFAB_OK && n > 0 && i < BATCH; i++, n--) {
            struct texts texts;
            struct fab_change change = make_change(++b->generation, &texts);
            const struct fab_diff diff = {.changes = &change, .n = 1};
            const struct store_publication one = {
                .generation = b->generation, .published = (int64_t)b->generation * MINUTE, .diff = &diff};
            rc = store_write_generation(b->store, &one, &err);
            if (rc == PMIXFAB_OK)
                rc = store_count_changes(b->store, 1, &err);
        }
        if (store_end(b->store, rc, &err) != PMIXFAB_OK)
            die("filling", &err);
    }
}

/* A whole publication of one cable: its change, and the plane's snapshot, a little of which differs. */
static double publish(struct bench *b)
{
    struct texts texts;
    struct fab_err err = {""};
    struct fab_change change = make_change(++b->generation, &texts);
    const struct fab_diff diff = {.changes = &change, .n = 1};
    memcpy(b->snapshot, &b->generation, sizeof(b->generation));
    memcpy(b->snapshot + b->generation * 7919 % (SNAPSHOT - 8), &b->generation, sizeof(b->generation));
    const struct store_plane plane = {
        .generation = b->generation, .name = "ib0", .snapshot = b->snapshot, .size = SNAPSHOT};
    const struct store_publication one = {.generation = b->generation,
                                          .published = (int64_t)b->generation * MINUTE,
                                          .before = &b->none,
                                          .after = &b->none,
                                          .diff = &diff,
                                          .planes = &plane,
                                          .n_planes = 1};
    double start = bench_now();
    if (store_publish(b->store, &one, &err) != PMIXFAB_OK)
        die("publishing", &err);
    return bench_now() - start;
}

/* ---- the figures --------------------------------------------------------------------------------------- */

static void year(struct bench *b)
{
    open_it(b, b->path);
    fill(b, YEAR);
    publish(b);
    store_close(b->store);
}

/* To about 1 GiB, in less time than ten years of history take. */
static void enlarge(struct bench *b)
{
    static const char more[] =
        "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 32)"
        " INSERT INTO filler SELECT randomblob(1048576) FROM n";
    bool good = sqlite3_exec(b->store->db, "CREATE TABLE filler (bytes BLOB)", NULL, NULL, NULL) == SQLITE_OK;
    while (good && size_of(b->path) < LARGE)
        good = sqlite3_exec(b->store->db, more, NULL, NULL, NULL) == SQLITE_OK;
    if (!good)
        exit(1);
}

struct copier {
    const struct bench *bench;
    atomic_bool ended;
    double ms;
    int rc;
    struct fab_err err;
};

static void *copy(void *arg)
{
    struct copier *copier = arg;
    const struct store_copy order = {.from = copier->bench->path, .to = copier->bench->backup};
    uint64_t bytes;
    double start = bench_now();
    copier->rc = store_copy(&order, &bytes, &copier->err);
    copier->ms = bench_now() - start;
    atomic_store(&copier->ended, true);
    return NULL;
}

/* One each 10 ms: no fabric changes faster. */
static double publish_some(struct bench *b, struct copier *copier)
{
    for (b->n = 0; b->n < MAX && (copier == NULL ? b->n < PUBLISH : !atomic_load(&copier->ended)); b->n++) {
        b->values[b->n] = publish(b);
        usleep(10000);
    }
    return bench_median(b->values, b->n);
}

static void backup(struct bench *b)
{
    struct copier copier = {.bench = b};
    pthread_t thread;
    open_it(b, b->path);
    enlarge(b);
    publish_some(b, NULL); /* the snapshot is there, and the log has its size */
    double alone = publish_some(b, NULL);
    if (pthread_create(&thread, NULL, copy, &copier) != 0)
        exit(1);
    double beside = publish_some(b, &copier);
    double slowest = b->values[b->n - 1]; /* sorted */
    pthread_join(thread, NULL);
    if (copier.rc != PMIXFAB_OK)
        die("backup", &copier.err);
    const struct bench_figure took = {.bench = "change",
                                      .figure = "backup of 0.9 GiB, checked, while publishing",
                                      .value = copier.ms / 1e3,
                                      .unit = "s"};
    bench_report(&took);
    const struct bench_figure median = {.bench = "change",
                                        .figure = "publishing (store) while a backup is made",
                                        .value = beside,
                                        .unit = "ms",
                                        .baseline = "without a backup",
                                        .baseline_value = alone,
                                        .to_reach = 2};
    bench_report(&median);
    const struct bench_figure worst = {
        .bench = "change", .figure = "the slowest of them", .value = slowest, .unit = "ms"};
    bench_report(&worst);
    store_close(b->store);
}

static void trimming(struct bench *b)
{
    const struct store_limits limits = {.changes = b->generation - TRIMMED};
    struct store_trimmed step = {.more = true};
    struct fab_err err = {""};
    uint64_t rows = 0;
    double start = bench_now();
    open_it(b, b->path);
    for (b->n = 0; step.more && b->n < MAX; b->n++) {
        double begun = bench_now();
        if (store_trim(b->store, &limits, &step, &err) != PMIXFAB_OK)
            die("trimming", &err);
        b->values[b->n] = bench_now() - begun;
        rows += step.rows;
    }
    double all = bench_now() - start, median = bench_median(b->values, b->n);
    const struct bench_figure longest = {.bench = "change",
                                         .figure = "trimming: the longest step",
                                         .value = b->values[b->n - 1],
                                         .unit = "ms",
                                         .to_reach = 20};
    bench_report(&longest);
    const struct bench_figure middle = {
        .bench = "change", .figure = "trimming: a step", .value = median, .unit = "ms"};
    bench_report(&middle);
    const struct bench_figure rate = {.bench = "change",
                                      .figure = "trimming: changes a second of work",
                                      .value = (double)rows / all * 1e3,
                                      .unit = "1/s"};
    bench_report(&rate);
    store_close(b->store);
}

int main(int argc, char **argv)
{
    static struct bench b;
    bench_init(&argc, argv);
    fab_inventory_init(&b.none);
    b.snapshot = calloc(1, SNAPSHOT);
    if (b.snapshot == NULL || fab_inventory_finish(&b.none, NULL) != PMIXFAB_OK)
        return 1;
    make_folder(&b);
    year(&b);
    backup(&b);
    trimming(&b);
    remove_folder(&b);
    free(b.snapshot);
    fab_inventory_destroy(&b.none);
    return 0;
}
