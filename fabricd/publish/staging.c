/*
 * publish_ready.c - the files of a publication are written, and its snapshots checked, while the store takes
 * its rows. Both have to be good before the commit: the store waits for them there.
 */
#include "fabricd/publish/update.h"

static void *staging_thread(void *arg)
{
    struct staging *staging = arg;
    staging->rc = update_write_rows(staging->update, &staging->err);
    return NULL;
}

void staging_begin(struct staging *staging)
{
    update_stamp_rows(staging->update, staging->generation, staging->published);
    staging->running = pthread_create(&staging->thread, NULL, staging_thread, staging) == 0;
    if (!staging->running)
        staging_thread(staging);
}

static void staging_join_thread(struct staging *staging)
{
    if (staging->running)
        pthread_join(staging->thread, NULL);
    staging->running = false;
}

int staging_wait(void *arg, struct fab_err *err)
{
    struct staging *staging = arg;
    staging_join_thread(staging);
    if (staging->rc != PMIXFAB_OK)
        return fab_fail(err, staging->rc, "%s", staging->err.text);
    return update_make_publication(staging->update, staging->generation, staging->published, staging->out,
                                   err);
}

void staging_end(struct staging *staging)
{
    staging_join_thread(staging);
    for (uint32_t i = 0; i < staging->update->n_rows; i++) {
        pmixfab_close(staging->update->rows[i].fab); /* NULL where the publication has it */
        staging->update->rows[i].fab = NULL;
    }
}
