#include "fabricd/base/counts.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

struct counts {
    atomic_uint_fast64_t of[COUNT_KINDS];
    atomic_bool unseen;
    pthread_mutex_t lock; /* of the listener only */
    void (*listener)(void *cbdata);
    void *listener_data;
};

struct counts *counts_new(void)
{
    struct counts *counts = calloc(1, sizeof(*counts));
    if (counts != NULL)
        pthread_mutex_init(&counts->lock, NULL);
    return counts;
}

void counts_free(struct counts *counts)
{
    if (counts == NULL)
        return;
    pthread_mutex_destroy(&counts->lock);
    free(counts);
}

static void counts_tell(struct counts *counts)
{
    if (atomic_exchange(&counts->unseen, true))
        return;
    pthread_mutex_lock(&counts->lock);
    if (counts->listener != NULL)
        counts->listener(counts->listener_data);
    pthread_mutex_unlock(&counts->lock);
}

void count_listen(struct counts *counts, void (*changed)(void *cbdata), void *cbdata)
{
    if (counts == NULL)
        return;
    pthread_mutex_lock(&counts->lock);
    counts->listener = changed;
    counts->listener_data = cbdata;
    pthread_mutex_unlock(&counts->lock);
}

void count_seen(struct counts *counts)
{
    if (counts != NULL)
        atomic_store(&counts->unseen, false);
}

void count_add(struct counts *counts, enum count what, uint64_t n)
{
    if (counts == NULL)
        return;
    atomic_fetch_add(&counts->of[what], n);
    counts_tell(counts);
}

void count(struct counts *counts, enum count what)
{
    count_add(counts, what, 1);
}

uint64_t counted(const struct counts *counts, enum count what)
{
    return counts == NULL ? 0 : atomic_load(&counts->of[what]);
}
