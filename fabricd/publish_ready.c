/*
 * publish_ready.c - the files of a publication are written, and its snapshots checked, while the store takes
 * its rows. Both have to be good before the commit: the store waits for them there.
 */
#include "fabricd/publish_priv.h"

static void *staging_thread(void *arg)
{
    struct ready *ready = arg;
    ready->rc = draft_write_rows(ready->draft, &ready->err);
    return NULL;
}

void ready_begin(struct ready *ready)
{
    draft_stamp_rows(ready->draft, ready->generation, ready->published);
    ready->running = pthread_create(&ready->thread, NULL, staging_thread, ready) == 0;
    if (!ready->running)
        staging_thread(ready);
}

static void staging_join_thread(struct ready *ready)
{
    if (ready->running)
        pthread_join(ready->thread, NULL);
    ready->running = false;
}

int ready_wait(void *arg, struct fab_err *err)
{
    struct ready *ready = arg;
    staging_join_thread(ready);
    if (ready->rc != PMIXFAB_OK)
        return fab_fail(err, ready->rc, "%s", ready->err.text);
    return draft_make_publication(ready->draft, ready->generation, ready->published, ready->out, err);
}

void ready_end(struct ready *ready)
{
    staging_join_thread(ready);
    for (uint32_t i = 0; i < ready->draft->n_rows; i++) {
        pmixfab_close(ready->draft->rows[i].fab); /* NULL where the publication has it */
        ready->draft->rows[i].fab = NULL;
    }
}
