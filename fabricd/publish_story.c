/* publish_story.c - the changes of a publication as they go into the history. */
#include "fabricd/publish_priv.h"
#include "topo/index_diff.h"
#include "topo/understand.h"

int draft_understand(struct draft *draft, struct fab_err *err)
{
    const struct publisher *publisher = draft->publisher;
    int rc =
        fab_diff_understand_with(&publisher->current, &draft->inv, &draft->publisher->lost, &draft->diff);
    if (rc != PMIXFAB_OK)
        return fab_fail(err, rc, "the difference cannot be understood: %s", pmixfab_strerror(rc));
    publish_stamp(&draft->diff, draft->seen, publish_seen_before(publisher));
    draft_correct_seen(draft);
    return PMIXFAB_OK;
}

int64_t publish_seen_before(const struct publisher *publisher)
{
    return publisher->swept != 0 ? publisher->swept : publisher->published;
}

int draft_tell_indices(struct draft *draft, struct fab_err *err)
{
    int rc = PMIXFAB_OK;
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < draft->n_rows; i++) {
        const struct store_plane *row = &draft->rows[i];
        const struct served_plane *old = served_find(draft->served, row->index);
        if (!row->retired && old != NULL)
            rc = fab_index_changes(old->bytes, row->snapshot, &draft->diff);
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
