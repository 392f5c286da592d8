/*
 * publish_renumber.c - numbers of the store that are not to be served: they become others before anything is.
 *
 * Generations that readers have seen, but this store does not know.
 * A store that was restored from last week's backup, or begun anew, has lower numbers than the snapshots in
 * the run directory, which whoever reads there has seen. Numbers never go back: what the store holds is
 * published once more, with a number above all of them, before anything is served.
 *
 * Plane 0, which stores of before have. It gets a number that no plane had; the others keep theirs, so that
 * no number means another plane than it did.
 */
#include <stdio.h>
#include <stdlib.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/log.h"
#include "fabricd/engine/update.h"
#include "topo/snapshot/snapshot.h"

/* The plane of number 0, or NULL. */
static struct store_plane *plane_of_zero(struct store_plane *known, uint32_t n)
{
    return n > 0 && known[0].index == 0 ? &known[0] : NULL; /* they come by number */
}

static void plane_leave_zero(struct store_plane *plane, uint32_t n)
{
    plane->index = plane[n - 1].index + 1;
    plane->was_zero = true;
    log_warning(
        "store: plane %s was number 0, which is what a library sends that fills nothing in: it is number %u "
        "from now on",
        plane->name, plane->index);
}

/* Generation and time into the snapshots that are served from the store. A number that is new, too. */
static uint32_t plane_rows_stamp(struct store_plane *known, uint32_t n, uint64_t generation,
                                 int64_t published, struct store_plane *rows)
{
    struct fab_err why;
    uint32_t n_rows = 0;
    for (uint32_t i = 0; i < n; i++) {
        bool whole = fab_snapshot_check(known[i].snapshot, known[i].size, &why) == PMIXFAB_OK;
        if (whole && known[i].was_zero)
            fab_snapshot_number(known[i].snapshot, known[i].index);
        if (whole && !known[i].retired) {
            known[i].generation = generation;
            fab_snapshot_stamp(known[i].snapshot, generation, published);
        } else if (!known[i].was_zero) {
            continue;
        }
        rows[n_rows++] = known[i];
    }
    return n_rows;
}

static int publish_renumbered(struct publisher *publisher, struct store_plane *known, uint32_t n,
                              const struct fab_diff *diff, uint64_t generation, struct fab_err *err)
{
    const int64_t published = clock_now(CLOCK_REALTIME);
    struct store_plane *rows = calloc(n + 1, sizeof(*rows));
    if (rows == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    const struct store_publication again = {.generation = generation,
                                            .published = published,
                                            .before = &publisher->current,
                                            .after = &publisher->current,
                                            .diff = diff,
                                            .planes = rows,
                                            .n_planes =
                                                plane_rows_stamp(known, n, generation, published, rows)};
    int rc = store_publish(publisher->store, &again, err);
    free(rows);
    if (rc != PMIXFAB_OK)
        return rc;
    publisher->generation = generation;
    publisher->published = published;
    for (uint32_t i = 0; i < n; i++)
        known[i].was_zero = false;
    return PMIXFAB_OK;
}

/* The same once more, with what is new of it: the generation, a plane's number, or both. zero: NULL. */
static int renumber(struct publisher *publisher, struct store_plane *known, uint32_t n, bool older,
                    struct store_plane *zero, struct fab_err *err)
{
    char before[40], after[40], number[40], name[80];
    uint64_t generation = 0;
    struct fab_change changes[2] = {{0}};
    struct fab_diff diff = {.changes = changes};
    int rc = store_next_generation(publisher->store, &generation, err);
    if (rc != PMIXFAB_OK)
        return rc;
    if (older) {
        snprintf(before, sizeof(before), "generation %llu", (unsigned long long)publisher->generation);
        snprintf(after, sizeof(after), "generation %llu", (unsigned long long)generation);
        changes[diff.n++] = (struct fab_change){.kind = FAB_CHANGE_OTHER,
                                                .what = (char *)"store",
                                                .before = before,
                                                .after = after,
                                                .why = "an older store took the place of a newer one",
                                                .subjects = ""};
        log_warning("store: readers may have seen generations up to %llu, the store's newest is %llu: it is "
                    "served as generation %llu",
                    (unsigned long long)generation - 1, (unsigned long long)publisher->generation,
                    (unsigned long long)generation);
    }
    if (zero != NULL) {
        plane_leave_zero(zero, n);
        snprintf(name, sizeof(name), "plane %s", zero->name);
        snprintf(number, sizeof(number), "number %u", zero->index);
        changes[diff.n++] = (struct fab_change){.kind = FAB_CHANGE_OTHER,
                                                .what = name,
                                                .before = (char *)"number 0",
                                                .after = number,
                                                .why = "planes are numbered from 1",
                                                .subjects = ""};
    }
    return publish_renumbered(publisher, known, n, &diff, generation, err);
}

int publish_renumber(struct publisher *publisher, struct store_plane *known, uint32_t n, struct fab_err *err)
{
    struct store_bounds bounds = {0};
    struct store_plane *zero = plane_of_zero(known, n);
    int rc = publish_look_older(publisher, err);
    if (rc == PMIXFAB_OK)
        rc = store_bounds(publisher->store, &bounds, err);
    bool older = bounds.above > publisher->generation;
    /* A store that has published nothing serves nothing: its first generation will be above. */
    if (rc != PMIXFAB_OK || publisher->generation == 0 || (!older && zero == NULL) ||
        store_writable(publisher->store, NULL) != PMIXFAB_OK)
        return rc;
    return renumber(publisher, known, n, older, zero, err);
}
