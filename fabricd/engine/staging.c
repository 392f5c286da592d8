/*
 * staging.c - the files of a publication are written, and its snapshots checked, while the store takes
 * its rows. Both have to be good before the commit: the store waits for them there.
 */
#include "fabricd/base/work.h"
#include "fabricd/engine/update.h"

static void staging_run(void *arg)
{
    struct update *update = arg;
    update->written = update_write_rows(update, &update->write_err);
}

void staging_begin(struct update *update)
{
    update_stamp_rows(update);
    update->staging = work_run(NULL, staging_run, NULL, update);
    if (update->staging == NULL)
        staging_run(update);
}

static void staging_finish(struct update *update)
{
    work_wait(update->staging);
    update->staging = NULL;
}

int staging_wait(void *arg, struct fab_err *err)
{
    struct update *update = arg;
    staging_finish(update);
    if (update->written != PMIXFAB_OK)
        return fab_fail(err, update->written, "%s", update->write_err.text);
    return update_make_publication(update, err);
}

void staging_end(struct update *update)
{
    staging_finish(update);
    for (uint32_t i = 0; i < update->n_rows; i++) {
        pmixfab_close(update->rows[i].fab); /* NULL where the publication has it */
        update->rows[i].fab = NULL;
    }
}
