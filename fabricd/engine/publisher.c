/*
 * publisher.c - the start of the publisher: serve the last published state of the store again.
 *
 * Before anything is served, numbers of the store that must not be served are replaced:
 *
 * - Generations that readers have seen, but this store does not have. For SQLite, a lost or truncated log
 *   looks like a log that ended earlier, and an older file in place of a newer one looks valid. So the newest
 *   generation is also recorded beside the store (store_lock.c), and in the snapshots of the run directory.
 *   Numbers never go back. So the store's state is published once more, with a number above all of these
 *   generations. The finding stays until its generations would be trimmed.
 *
 * - Plane 0, from older stores. It gets a number that no plane had. The other planes keep their numbers, so
 *   that no number changes its meaning.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/file_io.h"
#include "fabricd/base/log.h"
#include "fabricd/engine/publisher.h"
#include "fabricd/serving/rundir.h"
#include "fabricd/store/store.h"
#include "fabricd/store/store_tables.h"
#include "topo/snapshot/snapshot.h"

/* ---- names ----------------------------------------------------------------------------------------- */

int publisher_names(const struct config *config, struct fab_names **out, struct fab_err *err)
{
    struct fab_names *names = NULL;
    char *text = NULL;
    size_t len = 0;
    *out = NULL;
    int rc = fab_names_new(config->names_pattern, &names, err)
                 ?: fab_names_switches(names, config->switch_pattern, err);
    if (rc == PMIXFAB_OK && config->names_map != NULL)
        rc = file_text(config->names_map, &text, &len, err);
    if (rc == PMIXFAB_OK && text != NULL)
        rc = fab_names_map(names, config->names_map, text, len, err);
    free(text);
    if (rc == PMIXFAB_OK)
        *out = names;
    else
        fab_names_free(names);
    return rc;
}

int publisher_read_names(struct publisher *publisher, struct fab_err *err)
{
    struct fab_names *names = NULL;
    int rc = publisher_names(publisher->config, &names, err);
    if (rc != PMIXFAB_OK)
        return rc;
    fab_names_free(publisher->names);
    publisher->names = names;
    return PMIXFAB_OK;
}

/* ---- comparison of the store with newer traces of it elsewhere ------------------------------------- */

static uint64_t newest_in_rundir(const struct publisher *publisher)
{
    uint64_t seen = rundir_newest(publisher->config->rundir);
    if (seen < STORE_MAX_GENERATION)
        return seen;
    log_warning("run directory: ignored a snapshot of generation %" PRIu64
                ": no generation can have this number",
                seen);
    return 0;
}

/* Write the evidence, in one line. */
static void explain_gone(const struct publisher *publisher, const struct store_marks *marks, uint64_t seen,
                         struct store_gone *gone)
{
    char snapshots[96] = "", backup[240] = "";
    if (seen > gone->above)
        snprintf(snapshots, sizeof(snapshots), "; the run directory has a snapshot of generation %" PRIu64,
                 seen);
    if (marks->backup > gone->above)
        snprintf(backup, sizeof(backup), "; its backup %.150s has generation %" PRIu64, marks->file,
                 marks->backup);
    snprintf(
        gone->why, sizeof(gone->why), "%s%s%s%s",
        publisher->generation == 0 ? "the store is empty" : "the store is older",
        marks->newest > gone->above
            ? ": it had all of them, so its log (-wal) was lost or truncated, or another file replaced it"
            : "",
        snapshots, backup);
}

/* Find generations that were published and are not in the store; record them there, and begin above them. */
static int look_for_gone(struct publisher *publisher, struct fab_err *err)
{
    struct store_bounds bounds;
    struct store_marks marks;
    const uint64_t seen = newest_in_rundir(publisher);
    int rc = store_bounds(publisher->store, &bounds, err);
    if (rc != PMIXFAB_OK)
        return rc;
    store_marks(publisher->store, &marks);
    if (marks.newest >= STORE_MAX_GENERATION || marks.backup >= STORE_MAX_GENERATION)
        marks = (struct store_marks){0};
    struct store_gone gone = {.above =
                                  publisher->generation > bounds.above ? publisher->generation : bounds.above,
                              .newest = seen > marks.newest ? seen : marks.newest,
                              .found = clock_now(CLOCK_REALTIME)};
    if (marks.backup > gone.newest)
        gone.newest = marks.backup;
    if (gone.newest > gone.above && store_writable(publisher->store, NULL) == PMIXFAB_OK) {
        explain_gone(publisher, &marks, seen, &gone);
        log_error("store %s: generations %" PRIu64 " to %" PRIu64 " are not in it: %s",
                  publisher->config->store, gone.above + 1, gone.newest, gone.why);
        snprintf(publisher->stale_why, sizeof(publisher->stale_why),
                 "generations %" PRIu64 " to %" PRIu64
                 " are not in the store, and no sweep has succeeded since: %s",
                 gone.above + 1, gone.newest, gone.why);
        rc = store_gone_add(publisher->store, &gone, err);
    }
    return rc ?: store_gone_load(publisher->store, &publisher->gone, &publisher->n_gone, err);
}

/* ---- numbers that must not be served --------------------------------------------------------------- */

/* Set generation and time in the snapshots of the store, and a new plane number. */
static int publish_again(struct publisher *publisher, struct store_plane *known, uint32_t n,
                         const struct fab_diff *diff, uint64_t generation, struct fab_err *err)
{
    struct store_publication again = {.generation = generation,
                                      .published = clock_now(CLOCK_REALTIME),
                                      .before = &publisher->current,
                                      .after = &publisher->current,
                                      .diff = diff};
    struct store_plane *rows = calloc(n + 1, sizeof(*rows));
    if (rows == NULL)
        return no_memory(err);
    for (uint32_t i = 0; i < n; i++) {
        struct store_plane *plane = &known[i];
        const bool whole = fab_snapshot_check(plane->snapshot, plane->size, NULL) == PMIXFAB_OK;
        if (whole && plane->was_zero)
            fab_snapshot_number(plane->snapshot, plane->index);
        if (whole && !plane->retired) {
            plane->generation = generation;
            fab_snapshot_stamp(plane->snapshot, generation, again.published);
        }
        if ((whole && !plane->retired) || plane->was_zero)
            rows[again.n_planes++] = *plane;
    }
    again.planes = rows;
    int rc = store_publish(publisher->store, &again, err);
    free(rows);
    if (rc != PMIXFAB_OK)
        return rc;
    publisher->generation = generation;
    publisher->published = again.published;
    for (uint32_t i = 0; i < n; i++)
        known[i].was_zero = false;
    return PMIXFAB_OK;
}

/*
 * If readers have seen a newer generation than the store's, publish the store's state once more with a
 * higher generation. Do the same, with another number for the plane, if a plane has number 0. known: the
 * planes of the store, by number.
 */
static int renumber(struct publisher *publisher, struct store_plane *known, uint32_t n, struct fab_err *err)
{
    struct store_plane *zero = n > 0 && known[0].index == 0 ? &known[0] : NULL;
    char before[40], after[40], number[40], name[80];
    struct fab_change changes[2] = {{0}};
    struct fab_diff diff = {.changes = changes};
    struct store_bounds bounds;
    uint64_t generation = 0;
    int rc = store_bounds(publisher->store, &bounds, err);
    if (rc != PMIXFAB_OK)
        return rc;
    const bool older = bounds.above > publisher->generation;
    /* A store without publications serves nothing: its first generation will be above. */
    if (publisher->generation == 0 || (!older && zero == NULL) ||
        store_writable(publisher->store, NULL) != PMIXFAB_OK)
        return PMIXFAB_OK;
    rc = store_next_generation(publisher->store, &generation, err);
    if (rc != PMIXFAB_OK)
        return rc;
    if (older) {
        snprintf(before, sizeof(before), "generation %" PRIu64, publisher->generation);
        snprintf(after, sizeof(after), "generation %" PRIu64, generation);
        changes[diff.n++] = (struct fab_change){.kind = FAB_CHANGE_OTHER,
                                                .what = (char *)"store",
                                                .before = before,
                                                .after = after,
                                                .why = "an older store replaced a newer one",
                                                .subjects = ""};
        log_warning("store: readers may have seen generations up to %" PRIu64
                    ", the store's newest is %" PRIu64 ": it is served as generation %" PRIu64,
                    generation - 1, publisher->generation, generation);
    }
    if (zero != NULL) {
        zero->index = zero[n - 1].index + 1;
        zero->was_zero = true;
        log_warning("store: plane %s had number 0, which libraries send for a value that is not set: it has "
                    "number %u from now on",
                    zero->name, zero->index);
        snprintf(name, sizeof(name), "plane %s", zero->name);
        snprintf(number, sizeof(number), "number %u", zero->index);
        changes[diff.n++] = (struct fab_change){.kind = FAB_CHANGE_OTHER,
                                                .what = name,
                                                .before = (char *)"number 0",
                                                .after = number,
                                                .why = "planes are numbered from 1",
                                                .subjects = ""};
    }
    return publish_again(publisher, known, n, &diff, generation, err);
}

/* ---- the served set -------------------------------------------------------------------------------- */

/* With an empty store, serve the valid snapshots of the run directory until a sweep succeeds. *out NULL:
 * there are none, or the store has its own. */
static int inherit(struct publisher *publisher, struct served_set **out, struct fab_err *err)
{
    struct served_set *set;
    struct fab_err why;
    *out = NULL;
    const bool reads = store_writable(publisher->store, &why) != PMIXFAB_OK;
    if (reads)
        snprintf(publisher->stale_why, sizeof(publisher->stale_why), "%s", why.text);
    if (publisher->generation > 0 && (!reads || newest_in_rundir(publisher) <= publisher->generation))
        return PMIXFAB_OK;
    int rc = rundir_load(publisher->config->rundir, &set, err);
    if (rc != PMIXFAB_OK)
        return rc == PMIXFAB_ERR_NOTFOUND ? PMIXFAB_OK : rc;
    if (set->n == 0) {
        served_set_put(set);
        return PMIXFAB_OK;
    }
    publisher->inherited = true;
    if (publisher->stale_why[0] == '\0')
        snprintf(
            publisher->stale_why, sizeof(publisher->stale_why),
            "the store is empty, and no sweep has succeeded since: the run directory's snapshots are served");
    if (!reads)
        log_warning("store %s: it is empty: the run directory's snapshots are served until a sweep succeeds",
                    publisher->config->store);
    *out = set;
    return PMIXFAB_OK;
}

/* Make a set of the store's planes. A plane that cannot be read any more is no error: the next sweep makes it
 * again. */
static int restore_set(struct publisher *publisher, struct store_plane *known, uint32_t n_known,
                       struct served_set **out, struct fab_err *err)
{
    uint32_t n = 0;
    int rc = PMIXFAB_OK;
    struct served_plane **planes = calloc(n_known + 1, sizeof(*planes));
    *out = NULL;
    publisher->retired = calloc(n_known + 1, sizeof(*publisher->retired));
    if (planes == NULL || publisher->retired == NULL)
        rc = no_memory(err);
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < n_known; i++) {
        struct fab_err why = {""};
        void *bytes = known[i].snapshot;
        known[i].snapshot = NULL;
        if (known[i].retired) { /* its number stays in use, and its last members vote for it */
            publisher->retired[publisher->n_retired] = known[i];
            publisher->retired[publisher->n_retired++].snapshot = bytes;
            continue;
        }
        rc = served_plane_new(bytes, known[i].size, publisher->config->rundir, &planes[n], &why);
        if (rc == PMIXFAB_ERR_NOMEM) {
            fab_fail(err, rc, "%s", why.text);
        } else if (rc != PMIXFAB_OK || planes[n] == NULL) {
            log_error("store: the snapshot of plane %s is not served: %s", known[i].name, why.text);
            known[i].size = 0;
            publisher->retired[publisher->n_retired++] = known[i];
            rc = PMIXFAB_OK;
        } else {
            n++;
        }
    }
    if (rc == PMIXFAB_OK) {
        *out = served_set_new(planes, n, publisher->generation, publisher->published);
        rc = *out == NULL ? no_memory(err) : PMIXFAB_OK;
    }
    for (uint32_t i = 0; rc != PMIXFAB_OK && i < n; i++)
        served_plane_put(planes[i]);
    free(planes);
    return rc;
}

static int load_served(struct publisher *publisher, struct fab_err *err)
{
    struct store_plane *known = NULL;
    struct served_set *set = NULL;
    struct fab_err why = {""};
    uint32_t n = 0;
    int rc = store_load_planes(publisher->store, &known, &n, err)
                 ?: look_for_gone(publisher, err)
                 ?: renumber(publisher, known, n, err)
                 ?: inherit(publisher, &set, err);
    if (rc != PMIXFAB_OK)
        goto cleanup;
    if (set == NULL) {
        rc = restore_set(publisher, known, n, &set, err);
        if (rc != PMIXFAB_OK)
            goto cleanup;
        rundir_clean(publisher->config->rundir, set);
        rundir_end(publisher->config->rundir);
        if (rundir_put(publisher->config->rundir, set, &why) != PMIXFAB_OK)
            log_error("run directory: %s: fabricd tries again at each sweep; readers of the directory and "
                      "PMIx tools lack the missing snapshots",
                      why.text);
    }
    served_swap(publisher->served, set);
cleanup:
    store_planes_free(known, n);
    return rc;
}

/* no_room: as store_no_room() returns; 0: open the store as usual. */
static int open_publisher(const struct config *config, struct counts *counts, int no_room,
                          struct publisher **out, struct fab_err *err)
{
    *out = NULL;
    struct publisher *publisher = calloc(1, sizeof(*publisher));
    if (publisher == NULL)
        return no_memory(err);
    publisher->config = config;
    publisher->counts = counts;
    fab_inventory_init(&publisher->current);
    publisher->served = served_new();
    publisher->joins = fab_join_cache_new(); /* without memory for it joins take longer */
    int rc = publisher->served == NULL ? no_memory(err) : publisher_read_names(publisher, err);
    if (rc == PMIXFAB_OK)
        rc = no_room == 0 ? store_open(config->store, &publisher->store, err)
                          : store_open_reading(config->store, no_room, &publisher->store, err);
    if (rc == PMIXFAB_OK)
        rc = store_generation(publisher->store, &publisher->generation, &publisher->published, err)
                 ?: planned_new(publisher->store, &publisher->planned, err)
                 ?: store_load_inventory(publisher->store, &publisher->current, err)
                 ?: flapping_init(publisher, err)
                 ?: claims_init(publisher, err)
                 ?: retention_load(publisher, err)
                 ?: reports_load(publisher, err)
                 ?: load_served(publisher, err);
    if (rc == PMIXFAB_OK)
        *out = publisher;
    else
        publisher_free(publisher);
    return rc;
}

int publisher_new(const struct config *config, struct counts *counts, struct publisher **out,
                  struct fab_err *err)
{
    int rc = open_publisher(config, counts, 0, out, err);
    if (config->once || (rc != PMIXFAB_OK && rc != PMIXFAB_ERR_IO))
        return rc;
    const int no_room = store_no_room(config->store, rc == PMIXFAB_OK);
    if (no_room == 0)
        return rc;
    if (rc != PMIXFAB_OK)
        log_error("%s", err->text);
    publisher_free(*out);
    rc = open_publisher(config, counts, no_room, out, err);
    if (rc == PMIXFAB_OK)
        log_error("%s", (*out)->stale_why);
    return rc;
}

void publisher_free(struct publisher *publisher)
{
    if (publisher == NULL)
        return;
    served_free(publisher->served);
    for (uint32_t i = 0; i < publisher->n_retired; i++)
        free(publisher->retired[i].snapshot);
    free(publisher->retired);
    fab_names_free(publisher->names);
    damping_free(publisher->damping);
    damping_free(publisher->claims);
    free(publisher->contested.guids);
    sweep_links_free(&publisher->links);
    fab_diff_destroy(&publisher->flaps);
    fab_inventory_destroy(&publisher->current);
    absent_free(&publisher->absent);
    published_reports_free(&publisher->reports);
    join_findings_free(&publisher->found);
    fab_join_cache_free(publisher->joins);
    fab_findings_destroy(&publisher->findings);
    planned_free(publisher->planned);
    free(publisher->gone);
    store_close(publisher->store);
    free(publisher);
}
