#include "fabricd/server/subscribers.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <utlist.h>

#include "fabricd/server/server.h"
#include "fabricd/serving/served.h"
#include "fabricd/util/now.h"
#include "pmix/relay/relay.h"
#include "pmix/relay/thread.h"
#include "pmix/values/info.h"

#define MAX_SUBSCRIBERS 65536

struct subscriber {
    struct subscriber *prev, *next;
    struct subscriber_knows known;
    time_t until; /* monotonic seconds; the list is in this order */
    pmix_lookup_cbfunc_t cbfunc;
    void *cbdata;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct subscriber *list;
static unsigned n_subscribers;
static struct event *timer; /* NULL: not started, or stopped */

static time_t subscriber_clock_seconds(void)
{
    return (time_t)(microseconds_now(CLOCK_MONOTONIC) / 1000000);
}

/* ---- the answer --------------------------------------------------------------------------------- */

struct arrays {
    pmix_data_array_t indices, generations, names;
};

static void subscriber_load_value(pmix_pdata_t *data, const char *key, pmix_data_type_t type)
{
    data->proc = *server_self();
    PMIX_LOAD_KEY(data->key, key);
    data->value.type = type;
}

static bool fill_arrays(const struct served_set *set, struct arrays *arrays)
{
    size_t *indices = calloc(set->n, sizeof(*indices));
    uint64_t *generations = calloc(set->n, sizeof(*generations));
    const char **names = calloc(set->n, sizeof(*names));
    *arrays = (struct arrays){.indices = {.type = PMIX_SIZE, .size = set->n, .array = indices},
                              .generations = {.type = PMIX_UINT64, .size = set->n, .array = generations},
                              .names = {.type = PMIX_STRING, .size = set->n, .array = names}};
    if (indices == NULL || generations == NULL || names == NULL)
        return false;
    for (uint32_t i = 0; i < set->n; i++) {
        indices[i] = set->planes[i]->info.index;
        generations[i] = set->planes[i]->info.generation;
        names[i] = set->planes[i]->info.name;
    }
    return true;
}

/* The library packs the answer before cbfunc returns, so everything in it stays ours. */
static void subscriber_answer(const struct subscriber *subscriber, const struct served_set *set)
{
    pmix_pdata_t data[6];
    struct arrays arrays = {.indices = {.array = NULL}};
    size_t n = 3;
    for (size_t i = 0; i < 6; i++)
        PMIX_PDATA_CONSTRUCT(&data[i]);
    subscriber_load_value(&data[0], PMIXFAB_KEY_GENERATION, PMIX_UINT64);
    subscriber_load_value(&data[1], FAB_KEY_PUBLISHED, PMIX_INT64);
    subscriber_load_value(&data[2], PMIXFAB_KEY_STALE, PMIX_BOOL);
    data[0].value.data.uint64 = set == NULL ? 0 : set->generation;
    data[1].value.data.int64 = set == NULL ? 0 : set->published;
    data[2].value.data.flag = served_is_stale();
    bool good = true;
    if (set != NULL && set->n > 0) {
        good = fill_arrays(set, &arrays);
        subscriber_load_value(&data[3], RELAY_INDICES, PMIX_DATA_ARRAY);
        subscriber_load_value(&data[4], RELAY_GENERATIONS, PMIX_DATA_ARRAY);
        subscriber_load_value(&data[5], RELAY_NAMES, PMIX_DATA_ARRAY);
        data[3].value.data.darray = &arrays.indices;
        data[4].value.data.darray = &arrays.generations;
        data[5].value.data.darray = &arrays.names;
        n = 6;
    }
    if (good)
        subscriber->cbfunc(PMIX_SUCCESS, data, n, subscriber->cbdata);
    else
        subscriber->cbfunc(PMIX_ERR_NOMEM, NULL, 0, subscriber->cbdata);
    free(arrays.indices.array);
    free(arrays.generations.array);
    free(arrays.names.array);
}

static void answer_list(struct subscriber *due, bool refuse)
{
    struct subscriber *subscriber, *next;
    struct served_set *set = served_get();
    DL_FOREACH_SAFE(due, subscriber, next)
    {
        if (refuse)
            subscriber->cbfunc(PMIX_ERR_NOT_AVAILABLE, NULL, 0, subscriber->cbdata);
        else
            subscriber_answer(subscriber, set);
        free(subscriber);
    }
    served_set_put(set);
}

/* On the library's thread, for those that the loop's thread has found. */
static void subscriber_answer_due(pmix_status_t status, void *due)
{
    (void)status;
    answer_list(due, false);
}

static void subscriber_refuse_due(pmix_status_t status, void *due)
{
    (void)status;
    answer_list(due, true);
}

/* ---- waiting ------------------------------------------------------------------------------------ */

static bool subscriber_is_outdated(const struct subscriber_knows *known, const struct served_set *set)
{
    return !known->any || set == NULL || known->generation != set->generation ||
           known->published != set->published || (known->says_stale && known->stale != served_is_stale());
}

static void subscriber_move(struct subscriber *subscriber, struct subscriber **to)
{
    if (list == NULL)
        return;
    DL_DELETE(list, subscriber);
    DL_APPEND(*to, subscriber);
    n_subscribers--;
}

unsigned subscribers_count(void)
{
    pthread_mutex_lock(&lock);
    unsigned n = n_subscribers;
    pthread_mutex_unlock(&lock);
    return n;
}

pmix_status_t subscriber_add(const struct subscriber_knows *known, pmix_lookup_cbfunc_t cbfunc, void *cbdata)
{
    struct subscriber *subscriber = calloc(1, sizeof(*subscriber)), *due = NULL;
    if (subscriber == NULL)
        return PMIX_ERR_NOMEM;
    *subscriber = (struct subscriber){.known = *known,
                                      .until = subscriber_clock_seconds() + RELAY_SUBSCRIBE_SECONDS,
                                      .cbfunc = cbfunc,
                                      .cbdata = cbdata};
    /* Under the lock: what is published after this answer finds the subscriber in the list. */
    pthread_mutex_lock(&lock);
    struct served_set *set = served_get();
    bool refused = timer == NULL || n_subscribers >= MAX_SUBSCRIBERS;
    if (refused || subscriber_is_outdated(known, set)) {
        DL_APPEND(due, subscriber);
    } else {
        const struct timeval limit = {.tv_sec = RELAY_SUBSCRIBE_SECONDS};
        if (list == NULL)
            event_add(timer, &limit);
        DL_APPEND(list, subscriber);
        n_subscribers++;
    }
    pthread_mutex_unlock(&lock);
    served_set_put(set);
    answer_list(due, refused);
    return PMIX_SUCCESS;
}

void subscribers_notify(void)
{
    struct subscriber *subscriber, *next, *due = NULL;
    pthread_mutex_lock(&lock);
    struct served_set *set = served_get();
    DL_FOREACH_SAFE(list, subscriber, next)
    {
        if (subscriber_is_outdated(&subscriber->known, set))
            subscriber_move(subscriber, &due);
    }
    pthread_mutex_unlock(&lock);
    served_set_put(set);
    if (due != NULL)
        fab_on_pmix_thread(subscriber_answer_due, due);
}

/* Those that have waited long enough hear that nothing has changed. */
static void subscriber_on_timeout(evutil_socket_t fd, short what, void *arg)
{
    struct subscriber *due = NULL;
    const time_t now = subscriber_clock_seconds();
    (void)fd, (void)what, (void)arg;
    pthread_mutex_lock(&lock);
    while (list != NULL && list->until <= now)
        subscriber_move(list, &due);
    if (list != NULL && timer != NULL) {
        const struct timeval rest = {.tv_sec = list->until - now};
        event_add(timer, &rest);
    }
    pthread_mutex_unlock(&lock);
    if (due != NULL)
        fab_on_pmix_thread(subscriber_answer_due, due);
}

/* ---- life --------------------------------------------------------------------------------------- */

int subscribers_start(struct event_base *base)
{
    struct event *made = evtimer_new(base, subscriber_on_timeout, NULL);
    if (made == NULL)
        return PMIXFAB_ERR_NOMEM;
    pthread_mutex_lock(&lock);
    timer = made;
    pthread_mutex_unlock(&lock);
    return PMIXFAB_OK;
}

void subscribers_stop(void)
{
    pthread_mutex_lock(&lock);
    struct subscriber *due = list;
    struct event *old = timer;
    list = NULL;
    timer = NULL;
    n_subscribers = 0;
    pthread_mutex_unlock(&lock);
    if (old != NULL)
        event_free(old);
    if (due != NULL) {
        fab_on_pmix_thread(subscriber_refuse_due, due);
        fab_wait_for_pmix_thread();
    }
}
