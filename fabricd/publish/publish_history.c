/* publish_history.c - the changes of a publication as they go into the history. */
#include "fabricd/publish/update.h"
#include "topo/correlate/correlate.h"
#include "topo/diff/index_diff.h"

int update_correlate(struct update *update, struct fab_err *err)
{
    const struct publisher *publisher = update->publisher;
    int rc = fab_diff_correlate_with(&publisher->current, &update->inv, &update->publisher->absent.lost,
                                     &update->diff);
    if (rc != PMIXFAB_OK)
        return fab_fail(err, rc, "the difference cannot be understood: %s", pmixfab_strerror(rc));
    publish_stamp(&update->diff, update->seen, publish_history_since(publisher));
    update_correct_seen(update);
    return PMIXFAB_OK;
}

int update_announce_indices(struct update *update, struct fab_err *err)
{
    int rc = PMIXFAB_OK;
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < update->n_rows; i++) {
        const struct store_plane *row = &update->rows[i];
        const struct served_plane *old = served_find(update->served, row->index);
        if (!row->retired && old != NULL)
            rc = fab_index_changes(old->bytes, row->snapshot, &update->diff);
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
