#include "fabricd/metrics/counters.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

static atomic_uint_fast64_t counts[COUNT_KINDS];
static atomic_bool unseen;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the listener only */
static void (*listener)(void *cbdata);
static void *listener_data;

static void counters_log(void)
{
    if (atomic_exchange(&unseen, true))
        return;
    pthread_mutex_lock(&lock);
    if (listener != NULL)
        listener(listener_data);
    pthread_mutex_unlock(&lock);
}

void count_listen(void (*changed)(void *cbdata), void *cbdata)
{
    pthread_mutex_lock(&lock);
    listener = changed;
    listener_data = cbdata;
    pthread_mutex_unlock(&lock);
}

void count_seen(void)
{
    atomic_store(&unseen, false);
}

void count_add(enum count what, uint64_t n)
{
    atomic_fetch_add(&counts[what], n);
    counters_log();
}

void count(enum count what)
{
    count_add(what, 1);
}

uint64_t counted(enum count what)
{
    return atomic_load(&counts[what]);
}
