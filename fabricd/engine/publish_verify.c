/* publish_verify.c - is what is served what a sweep sees? */
#include <stdlib.h>

#include "fabricd/base/clock.h"
#include "fabricd/engine/publish.h"
#include "fabricd/engine/update.h"

int publish_verify(struct publisher *publisher, const struct publish_request *input, struct fab_diff *diff,
                   struct fab_err *err)
{
    struct sweep_findings report = {0};
    struct otherwise otherwise = {0};
    struct update update = {.publisher = publisher,
                            .input = input,
                            .report = &report,
                            .after = &update.inv,
                            .inv = *input->inv,
                            .otherwise = &otherwise,
                            .seen = clock_now(CLOCK_REALTIME)};
    fab_inventory_init(input->inv);
    int rc = update_judge_sweep(&update, err);
    if (rc == PMIXFAB_OK) {
        planned_mark(publisher->planned, &update.diff, update.seen);
        rc = update_verify_missing(&update) ?: fab_diff_move(&update.diff, &otherwise.diff);
        if (rc != PMIXFAB_OK)
            fab_fail(err, rc, "out of memory");
        fab_diff_sort(&update.diff);
    }
    *diff = update.diff;
    fab_diff_destroy(&otherwise.diff);
    fab_inventory_destroy(&otherwise.uncut);
    fab_inventory_destroy(&update.inv);
    free(update.elsewhere.guids);
    return rc;
}
