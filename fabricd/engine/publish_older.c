/*
 * publish_older.c - is the store older than what is known of it elsewhere?
 *
 * A log that was lost or cut looks to SQLite like one that ended earlier, and an older file in the place of a
 * newer one like any other. So the newest generation stands beside the store, too (store_lock.c), and in the
 * snapshots of the run directory. What is found is told until its generations would be trimmed.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/log.h"
#include "fabricd/engine/update.h"
#include "fabricd/store/store_tables.h"

static uint64_t older_rundir_newest(const struct publisher *publisher)
{
    uint64_t seen = rundir_newest(publisher->config->rundir);
    if (seen < STORE_MAX_GENERATION)
        return seen;
    log_warning("run directory: there is a snapshot of generation %" PRIu64 ", which cannot be", seen);
    return 0;
}

/* How it is known, in one line. */
static void older_explain(const struct publisher *publisher, const struct store_marks *marks, uint64_t seen,
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
            ? ": it had all of them, so its log (-wal) was lost or cut, or another file was put in its place"
            : "",
        snapshots, backup);
}

/* From now on it is known, and numbers go on above. */
static int older_remember(struct publisher *publisher, const struct store_gone *gone, struct fab_err *err)
{
    log_error("store %s: generations %" PRIu64 " to %" PRIu64 " are not in it: %s", publisher->config->store,
              gone->above + 1, gone->newest, gone->why);
    snprintf(publisher->stale_why, sizeof(publisher->stale_why),
             "generations %" PRIu64 " to %" PRIu64 " are not in the store, and no sweep was good since: %s",
             gone->above + 1, gone->newest, gone->why);
    return store_gone_add(publisher->store, gone, err);
}

int publish_look_older(struct publisher *publisher, struct fab_err *err)
{
    struct store_bounds bounds;
    struct store_marks marks;
    const uint64_t seen = older_rundir_newest(publisher);
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
        older_explain(publisher, &marks, seen, &gone);
        rc = older_remember(publisher, &gone, err);
    }
    return rc == PMIXFAB_OK ? store_gone_load(publisher->store, &publisher->gone, &publisher->n_gone, err)
                            : rc;
}

/* Snapshots that are good are not given up for a store that knows nothing: they are served until a sweep is.
 */
int publish_inherit(struct publisher *publisher, struct served_set **out, struct fab_err *err)
{
    struct served_set *set;
    struct fab_err why;
    *out = NULL;
    const bool reads = store_writable(publisher->store, &why) != PMIXFAB_OK;
    if (reads)
        snprintf(publisher->stale_why, sizeof(publisher->stale_why), "%s", why.text);
    const bool newer = reads && older_rundir_newest(publisher) > publisher->generation;
    int rc = publisher->generation == 0 || newer ? rundir_load(publisher->config->rundir, &set, err)
                                                 : PMIXFAB_ERR_NOTFOUND;
    if (rc != PMIXFAB_OK)
        return rc == PMIXFAB_ERR_NOTFOUND ? PMIXFAB_OK : rc;
    if (set->n == 0) {
        served_set_put(set);
        return PMIXFAB_OK;
    }
    publisher->inherited = true;
    if (publisher->stale_why[0] == '\0')
        snprintf(publisher->stale_why, sizeof(publisher->stale_why),
                 "the store is empty, and no sweep was good since: the run directory's snapshots are served");
    if (!reads)
        log_warning("store %s: it is empty: the run directory's snapshots are served until a sweep is good",
                    publisher->config->store);
    *out = set;
    return PMIXFAB_OK;
}

const char *publisher_stale_why(const struct publisher *publisher)
{
    return publisher->stale_why;
}

const struct store_gone *publisher_gone(const struct publisher *publisher, uint32_t *n)
{
    *n = publisher->n_gone;
    return publisher->gone;
}
