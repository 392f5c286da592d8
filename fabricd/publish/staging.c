/*
 * staging.c - the files of a publication are written, and its snapshots checked, while the store takes
 * its rows. Both have to be good before the commit: the store waits for them there.
 */
#include "fabricd/publish/update.h"

static void *staging_thread(void *arg)
{
    struct update *update = arg;
    update->written = update_write_rows(update, &update->write_err);
    return NULL;
}

void staging_begin(struct update *update)
{
    update_stamp_rows(update);
    update->running = pthread_create(&update->thread, NULL, staging_thread, update) == 0;
    if (!update->running)
        staging_thread(update);
}

static void staging_join_thread(struct update *update)
{
    if (update->running)
        pthread_join(update->thread, NULL);
    update->running = false;
}

int staging_wait(void *arg, struct fab_err *err)
{
    struct update *update = arg;
    staging_join_thread(update);
    if (update->written != PMIXFAB_OK)
        return fab_fail(err, update->written, "%s", update->write_err.text);
    return update_make_publication(update, err);
}

void staging_end(struct update *update)
{
    staging_join_thread(update);
    for (uint32_t i = 0; i < update->n_rows; i++) {
        pmixfab_close(update->rows[i].fab); /* NULL where the publication has it */
        update->rows[i].fab = NULL;
    }
}
