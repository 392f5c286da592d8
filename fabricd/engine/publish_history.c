/* publish_history.c - the changes of a publication as they go into the history. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "fabricd/base/log.h"
#include "fabricd/engine/update.h"
#include "topo/changes/changes.h"
#include "topo/snapshot/format.h"

#define LOGGED_CHANGES 10

int update_correlate(struct update *update, struct fab_err *err)
{
    const struct publisher *publisher = update->publisher;
    int rc = fab_diff_correlate_with(&publisher->current, &update->inv, &update->publisher->absent.lost,
                                     &update->diff);
    if (rc != PMIXFAB_OK)
        return fab_fail(err, rc, "the difference cannot be understood: %s", pmixfab_strerror(rc));
    publish_stamp(&update->diff, update->seen, publish_history_since(publisher));
    update_correct_seen(update);
    if (update->input->unmanaged)
        fab_diff_mark_inactive(&update->inv, &update->diff);
    return PMIXFAB_OK;
}

/* The first changes: who reads the log sees what it was about, and a storm does not fill it. Of planes as a
 * whole there are few, and each is logged. */
void update_log(const struct update *update)
{
    const uint32_t n = update->diff.n;
    log_info("generation %" PRIu64 ": %" PRIu32 " change%s, %" PRIu32 " plane%s published%s",
             update->generation, n, n == 1 ? "" : "s", update->n_rows, update->n_rows == 1 ? "" : "s",
             n > LOGGED_CHANGES ? "; the first changes:" : "");
    for (uint32_t i = 0; i < n; i++) {
        const struct fab_change *change = &update->diff.changes[i];
        if (i >= LOGGED_CHANGES && change->kind < FAB_CHANGE_PLANE_KIND)
            continue;
        const bool from = change->before[0] != '\0', to = change->after[0] != '\0', why = change->why != NULL;
        log_info("generation %" PRIu64 ": %s %s%s%s%s%s%s%s", update->generation,
                 fab_change_name(change->kind), change->what, from ? " " : "", change->before,
                 to ? (from ? " -> " : " ") : "", change->after, why && change->why[0] != '\0' ? "; " : "",
                 why ? change->why : "");
    }
}

/* Another plane is the default: tell it, where one was before. */
static int announce_default(struct update *update)
{
    const struct served_set *set = update->served;
    const char *was = NULL, *is = NULL, *configured = update->publisher->config->default_plane;
    char why[160];
    bool gone = true;
    for (uint32_t i = 0; i < set->n; i++)
        if (set->planes[i]->info.is_default != 0)
            was = set->planes[i]->info.name;
    for (uint32_t i = 0; i < update->built.n; i++) {
        if (snap_meta(update->built.planes[i].bytes)->is_default != 0)
            is = update->built.planes[i].name;
        gone = gone && (was == NULL || strcmp(update->built.planes[i].name, was) != 0);
    }
    if (was == NULL || is == NULL || strcmp(was, is) == 0)
        return PMIXFAB_OK;
    if (configured != NULL && strcmp(configured, is) == 0)
        snprintf(why, sizeof(why), "[fabricd] default_plane says so");
    else if (gone)
        snprintf(why, sizeof(why), "plane %s is gone", was);
    else
        why[0] = '\0';
    return fab_default_change(was, is, why, &update->diff);
}

int update_announce_planes(struct update *update, struct fab_err *err)
{
    int rc = announce_default(update);
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < update->n_rows; i++) {
        const struct store_plane *row = &update->rows[i];
        const struct served_plane *old = served_find(update->served, row->index);
        if (!row->retired && old != NULL)
            rc = fab_index_changes(old->bytes, row->snapshot, &update->diff)
                     ?: fab_plane_changes(old->bytes, row->snapshot, &update->diff);
    }
    return rc == PMIXFAB_OK ? rc : fab_fail(err, rc, "out of memory");
}

void publish_stamp(struct fab_diff *diff, int64_t first_seen, int64_t last_seen)
{
    for (uint32_t i = 0; i < diff->n; i++) {
        struct fab_change *change = &diff->changes[i];
        int64_t last = change->last_seen != 0 ? change->last_seen : last_seen;
        change->first_seen = first_seen;
        change->last_seen = last > first_seen && first_seen != 0 ? first_seen : last;
    }
}
