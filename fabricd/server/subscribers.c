#include "fabricd/server/subscribers.h"

#include <stdlib.h>
#include <utlist.h>

#include "fabricd/server/long_poll.h"
#include "fabricd/server/server.h"
#include "pmix/answers/info.h"
#include "pmix/relay/relay.h"

struct subscriber {
    struct long_poll_waiter waiter;
    struct subscriber_knows known;
};

static struct served *subscribers_served;

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

/* The library packs the answer before cbfunc returns, so all its memory stays ours. */
static void subscriber_answer(const struct long_poll_waiter *waiter)
{
    struct served_set *set = served_get(subscribers_served);
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
    data[2].value.data.flag = served_is_stale(subscribers_served);
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
        waiter->cbfunc(PMIX_SUCCESS, data, n, waiter->cbdata);
    else
        waiter->cbfunc(PMIX_ERR_NOMEM, NULL, 0, waiter->cbdata);
    free(arrays.indices.array);
    free(arrays.generations.array);
    free(arrays.names.array);
    served_set_put(set);
}

static struct long_poll subscribers = {.lock = PTHREAD_MUTEX_INITIALIZER, .answer = subscriber_answer};

/* ---- waiting ------------------------------------------------------------------------------------ */

static bool subscriber_is_outdated(const struct subscriber_knows *known, const struct served_set *set)
{
    return !known->any || set == NULL || known->generation != set->generation ||
           known->published != set->published ||
           (known->says_stale && known->stale != served_is_stale(subscribers_served));
}

unsigned subscribers_count(void)
{
    pthread_mutex_lock(&subscribers.lock);
    unsigned n = subscribers.n;
    pthread_mutex_unlock(&subscribers.lock);
    return n;
}

pmix_status_t subscriber_add(const pmix_proc_t *who, const struct subscriber_knows *known,
                             pmix_lookup_cbfunc_t cbfunc, void *cbdata)
{
    struct subscriber *subscriber = calloc(1, sizeof(*subscriber));
    struct long_poll_waiter *due = NULL;
    if (subscriber == NULL)
        return PMIX_ERR_NOMEM;
    *subscriber = (struct subscriber){.waiter = {.cbfunc = cbfunc, .cbdata = cbdata}, .known = *known};
    /* With the lock held, so that the subscriber does not miss a publication after this check. */
    pthread_mutex_lock(&subscribers.lock);
    struct served_set *set = served_get(subscribers_served);
    bool open = long_poll_open(&subscribers, who) && long_poll_add(&subscribers, &subscriber->waiter, who);
    if (open && subscriber_is_outdated(known, set))
        long_poll_take(&subscribers, &subscriber->waiter, &due);
    pthread_mutex_unlock(&subscribers.lock);
    served_set_put(set);
    long_poll_answer(due);
    if (!open)
        free(subscriber);
    return open ? PMIX_SUCCESS : PMIX_ERR_NOT_AVAILABLE;
}

void subscribers_notify(void)
{
    struct long_poll_waiter *waiter, *next, *due = NULL;
    pthread_mutex_lock(&subscribers.lock);
    struct served_set *set = served_get(subscribers_served);
    DL_FOREACH_SAFE(subscribers.waiters, waiter, next)
    {
        if (subscriber_is_outdated(&((struct subscriber *)waiter)->known, set))
            long_poll_take(&subscribers, waiter, &due);
    }
    pthread_mutex_unlock(&subscribers.lock);
    served_set_put(set);
    long_poll_answer_soon(due);
}

/* ---- start and stop ----------------------------------------------------------------------------- */

int subscribers_start(struct event_base *base, struct served *served)
{
    subscribers_served = served;
    return long_poll_start(&subscribers, base);
}

void subscribers_stop(void)
{
    long_poll_stop(&subscribers);
}
