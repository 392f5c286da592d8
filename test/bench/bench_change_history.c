/*
 * bench_change_history - a store with a year of history, one change a minute: its size, how long the story of
 * one of 9,826 hosts takes, and how long it takes to open, against a store without that history.
 *
 * --fill STORE writes the year into a store behind what it has, and prints how many generations there are
 * then.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabricd/store/store_priv.h"
#include "test/bench/bench.h"

#define MINUTES 525600u
#define HOSTS   9826u
#define BATCH   20000u
#define ROUNDS  11

struct bench {
    char dir[4096], full[4200], empty[4200];
};

static int make_folder(struct bench *b)
{
    if (!bench_folder("bench-history", b->dir, sizeof(b->dir)))
        return PMIXFAB_ERR_IO;
    snprintf(b->full, sizeof(b->full), "%s/full.db", b->dir);
    snprintf(b->empty, sizeof(b->empty), "%s/empty.db", b->dir);
    return PMIXFAB_OK;
}

static void remove_folder(const struct bench *b)
{
    static const char *const ends[] = {"", "-wal", "-shm", ".lock"};
    char path[4300];
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof(path), "%s%s", b->full, ends[i]);
        unlink(path);
        snprintf(path, sizeof(path), "%s%s", b->empty, ends[i]);
        unlink(path);
    }
    rmdir(b->dir);
}

/* One generation with one change, as fabricd writes it. */
static int write_minute(struct store *store, uint64_t generation, uint32_t minute, struct fab_err *err)
{
    char what[64], before[64], after[64], subjects[96];
    unsigned host = minute * 7919u % HOSTS + 1, leaf = (host - 1) / 17 + 1;
    snprintf(what, sizeof(what), "node%04u HCA-1[1]", host);
    snprintf(before, sizeof(before), "leaf%u[%u]", leaf, minute % 17 + 1);
    snprintf(after, sizeof(after), "leaf%u[%u]", leaf % 578 + 1, minute % 17 + 1);
    snprintf(subjects, sizeof(subjects), "node%04u%cleaf%u%cleaf%u%c", host, 0, leaf, 0, leaf % 578 + 1, 0);
    int64_t time = INT64_C(1700000000000000) + (int64_t)minute * 60000000;
    struct fab_change change = {.kind = FAB_CHANGE_HOST_MOVED,
                                .what = what,
                                .before = before,
                                .after = after,
                                .why = "the same GUID at another port",
                                .subjects = subjects,
                                .first_seen = time - 5000,
                                .last_seen = time - 60000000};
    struct fab_diff diff = {.changes = &change, .n = 1};
    const struct store_publication publication = {.generation = generation, .published = time, .diff = &diff};
    int rc = store_write_generation(store, &publication, err);
    return rc == PMIXFAB_OK ? store_count_changes(store, 1, err) : rc;
}

static int write_year(struct store *store, struct fab_err *err)
{
    uint64_t next;
    int rc = store_next_generation(store, &next, err);
    for (uint32_t minute = 0; rc == PMIXFAB_OK && minute < MINUTES;) {
        rc = store_begin(store, err);
        if (rc != PMIXFAB_OK)
            return rc;
        for (uint32_t i = 0; rc == PMIXFAB_OK && i < BATCH && minute < MINUTES; i++)
            rc = write_minute(store, next++, minute++, err);
        rc = store_end(store, rc, err);
    }
    return rc;
}

static int count(const struct store_change *change, void *cbdata)
{
    ++*(unsigned *)cbdata;
    return change->generation == 0;
}

/* The story of a host, in milliseconds. */
static int ask(struct store *store, const char *what, double *ms, unsigned *n, struct fab_err *err)
{
    double spent[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        *n = 0;
        double start = bench_now();
        int rc = store_history(store, 0, UINT64_MAX, what, 1000, count, n, err);
        spent[i] = bench_now() - start;
        if (rc != PMIXFAB_OK)
            return rc;
    }
    *ms = bench_median(spent, ROUNDS);
    return PMIXFAB_OK;
}

static int open_times(const char *path, double *ms, struct fab_err *err)
{
    double spent[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        struct store *store = NULL;
        double start = bench_now();
        int rc = store_open(path, &store, err);
        spent[i] = bench_now() - start;
        if (rc != PMIXFAB_OK)
            return rc;
        store_close(store);
    }
    *ms = bench_median(spent, ROUNDS);
    return PMIXFAB_OK;
}

static int measure(struct bench *b, struct fab_err *err)
{
    struct store *store = NULL;
    struct stat st = {0};
    double host = 0, text = 0, full = 0, empty = 0;
    unsigned n = 0, found = 0;
    int rc = store_open(b->full, &store, err);
    if (rc == PMIXFAB_OK)
        rc = write_year(store, err);
    store_close(store);
    store = NULL;
    if (rc == PMIXFAB_OK)
        rc = open_times(b->full, &full, err);
    if (rc == PMIXFAB_OK)
        rc = open_times(b->empty, &empty, err);
    if (rc == PMIXFAB_OK)
        rc = store_open(b->full, &store, err);
    if (rc == PMIXFAB_OK)
        rc = ask(store, "node0017", &host, &n, err);
    if (rc == PMIXFAB_OK)
        rc = ask(store, "node0017 HCA-1[", &text, &found, err);
    store_close(store);
    if (rc != PMIXFAB_OK)
        return rc;
    if (stat(b->full, &st) != 0 || n < 50 || found != n)
        return fab_fail(err, PMIXFAB_ERR_IO, "the story of node0017 has %u and %u changes", n, found);
    const struct bench_figure figures[] = {
        {"change", "a year of history: size of the store", (double)st.st_size / (1 << 20), "MiB", NULL, 0,
         1024, 0},
        {"change", "a year of history: history HOST", host, "ms", NULL, 0, 50, 0},
        {"change", "a year of history: history of a part of a text", text, "ms", NULL, 0, 0, 0},
        {"change", "a year of history: opening the store, more than without", full - empty, "ms", NULL, 0, 50,
         0},
    };
    for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++)
        bench_report(&figures[i]);
    return PMIXFAB_OK;
}

static int fill(const char *path, struct fab_err *err)
{
    struct store *store = NULL;
    uint64_t next = 0;
    int rc = store_open(path, &store, err);
    if (rc == PMIXFAB_OK)
        rc = write_year(store, err);
    if (rc == PMIXFAB_OK)
        rc = store_next_generation(store, &next, err);
    store_close(store);
    if (rc == PMIXFAB_OK)
        printf("%llu\n", (unsigned long long)next - 1);
    return rc;
}

int main(int argc, char **argv)
{
    struct bench b;
    struct fab_err err = {""};
    bench_init(&argc, argv);
    bool filling = argc == 3 && strcmp(argv[1], "--fill") == 0;
    int rc = filling ? fill(argv[2], &err) : make_folder(&b);
    if (rc == PMIXFAB_OK && !filling) {
        rc = measure(&b, &err);
        remove_folder(&b);
    }
    if (rc != PMIXFAB_OK)
        fprintf(stderr, "bench_change_history: %s\n", err.text[0] != '\0' ? err.text : pmixfab_strerror(rc));
    return rc == PMIXFAB_OK ? 0 : 1;
}
