/*
 * publish_renumber.c - generations that readers have seen, but this store does not know.
 *
 * A store that was restored from last week's backup, or begun anew, has lower numbers than the snapshots in
 * the run directory, which whoever reads there has seen. Numbers never go back: what the store holds is
 * published once more, with a number above all of them, before anything is served.
 */
#include <stdio.h>
#include <stdlib.h>

#include "fabricd/publish/update.h"
#include "fabricd/util/log.h"
#include "fabricd/util/now.h"
#include "topo/snapshot/snapshot.h"

/* Generation and time into the snapshots that are served from the store. */
static uint32_t plane_rows_stamp(struct store_plane *known, uint32_t n, uint64_t generation,
                                 int64_t published, struct store_plane *rows)
{
    struct fab_err why;
    uint32_t n_rows = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (known[i].retired || fab_snapshot_check(known[i].snapshot, known[i].size, &why) != PMIXFAB_OK)
            continue;
        known[i].generation = generation;
        fab_snapshot_stamp(known[i].snapshot, generation, published);
        rows[n_rows++] = known[i];
    }
    return n_rows;
}

static int publish_renumbered(struct publisher *publisher, struct store_plane *known, uint32_t n,
                              struct store_plane *rows, struct fab_err *err)
{
    char before[40], after[40];
    uint64_t generation = 0;
    int rc = store_next_generation(publisher->store, &generation, err);
    if (rc != PMIXFAB_OK)
        return rc;
    int64_t published = microseconds_now(CLOCK_REALTIME);
    snprintf(before, sizeof(before), "generation %llu", (unsigned long long)publisher->generation);
    snprintf(after, sizeof(after), "generation %llu", (unsigned long long)generation);
    struct fab_change change = {.kind = FAB_CHANGE_OTHER,
                                .what = (char *)"store",
                                .before = before,
                                .after = after,
                                .why = "an older store took the place of a newer one",
                                .subjects = ""};
    const struct fab_diff diff = {.changes = &change, .n = 1};
    const struct store_publication again = {.generation = generation,
                                            .published = published,
                                            .before = &publisher->current,
                                            .after = &publisher->current,
                                            .diff = &diff,
                                            .planes = rows,
                                            .n_planes =
                                                plane_rows_stamp(known, n, generation, published, rows)};
    rc = store_publish(publisher->store, &again, err);
    if (rc != PMIXFAB_OK)
        return rc;
    log_warning(
        "store: readers may have seen generations up to %llu, the store's newest is %llu: it is served as "
        "generation %llu",
        (unsigned long long)generation - 1, (unsigned long long)publisher->generation,
        (unsigned long long)generation);
    publisher->generation = generation;
    publisher->published = published;
    return PMIXFAB_OK;
}

int publish_renumber(struct publisher *publisher, struct store_plane *known, uint32_t n, struct fab_err *err)
{
    struct store_bounds bounds = {0};
    uint64_t seen = rundir_newest(publisher->config->rundir);
    int rc = PMIXFAB_OK;
    if (seen >= STORE_MAX_GENERATION) {
        log_warning("run directory: there is a snapshot of generation %llu, which cannot be",
                    (unsigned long long)seen);
        seen = 0;
    }
    if (seen > publisher->generation)
        rc = store_raise(publisher->store, seen, err);
    if (rc == PMIXFAB_OK)
        rc = store_bounds(publisher->store, &bounds, err);
    /* A store that has published nothing serves nothing: its first generation will be above. */
    if (rc != PMIXFAB_OK || bounds.above <= publisher->generation || publisher->generation == 0)
        return rc;
    struct store_plane *rows = calloc(n + 1, sizeof(*rows));
    rc = rows == NULL ? fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory")
                      : publish_renumbered(publisher, known, n, rows, err);
    free(rows);
    return rc;
}
