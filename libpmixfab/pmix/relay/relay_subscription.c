/* relay_subscription.c - the long poll: turn the scheduler's changes into events for a server's clients. */
#include <pmix.h>
#include <stdlib.h>
#include <string.h>

#include "pmix/answers/info.h"
#include "pmix/relay/relay_state.h"
#include "topo/base/library_log.h"
#include "topo/base/milliseconds.h"

#define HANDLERS_MS 5000 /* maximum time for handlers of this process before UPDATED is sent anyway */
#define SLACK_MS    10000
#define AGAIN_MS    1000

/* ---- requests ----------------------------------------------------------------------------------- */

/* On PMIx's thread. */
static void subscription_on_news(pmix_status_t status, pmix_pdata_t *data, size_t n, void *cbdata)
{
    struct relay *relay = &fab_relay;
    struct relay_subscription *subscription = &relay->subscription;
    pthread_mutex_lock(&relay->lock);
    if (subscription->id == (uint64_t)(uintptr_t)cbdata) {
        subscription->id = 0;
        subscription->due = fab_now_ms();
        if (status == PMIX_SUCCESS)
            status = relay_decode_news(data, n, &subscription->news);
        subscription->news_ready = status == PMIX_SUCCESS;
        if (status == PMIX_SUCCESS && subscription->confirmed &&
            fab_now_ms() < subscription->asked + AGAIN_MS &&
            subscription->news.generation == subscription->known.generation &&
            subscription->news.published == subscription->known.published &&
            subscription->news.stale == subscription->known.stale)
            subscription->due +=
                AGAIN_MS; /* an answer at once without a change violates the protocol: do not loop fast */
        if (status != PMIX_SUCCESS) {
            fab_log(PMIXFAB_LOG_WARNING, "relay: watching the scheduler: %s", PMIx_Error_string(status));
            subscription->due += AGAIN_MS;
        }
        relay_poke(relay);
    }
    pthread_mutex_unlock(&relay->lock);
}

static void subscription_request(struct relay *relay, int64_t now)
{
    struct relay_subscription *subscription = &relay->subscription;
    char *keys[] = {RELAY_SUBSCRIBE, NULL};
    pmix_info_t info[3];
    size_t n = subscription->confirmed ? 3 : 0; /* the first answer on a connection comes at once */
    PMIX_INFO_LOAD(&info[0], PMIXFAB_KEY_GENERATION, &subscription->known.generation, PMIX_UINT64);
    PMIX_INFO_LOAD(&info[1], FAB_KEY_PUBLISHED, &subscription->known.published, PMIX_INT64);
    PMIX_INFO_LOAD(&info[2], PMIXFAB_KEY_STALE, &subscription->known.stale, PMIX_BOOL);
    uint64_t id = subscription->id = ++relay->last_id;
    subscription->asked = now;
    subscription->due = now + RELAY_SUBSCRIBE_SECONDS * 1000 + SLACK_MS;
    relay->sending++;
    pthread_mutex_unlock(&relay->lock);
    pmix_status_t rc =
        PMIx_Lookup_nb(keys, n == 0 ? NULL : info, n, subscription_on_news, (void *)(uintptr_t)id);
    pthread_mutex_lock(&relay->lock);
    relay->sending--;
    if (rc != PMIX_SUCCESS && subscription->id == id)
        relay_lost(relay);
}

/* ---- events ------------------------------------------------------------------------------------- */

#define N_TOLD 4

/*
 * An event, with all data that the library may read until it calls back. From 6.1 on the call copies neither
 * the infos nor the source.
 */
struct relay_told {
    pmix_proc_t source;
    pmix_info_t *info;
};

/* On PMIx's thread: the handlers of this process have finished. */
static void on_told(pmix_status_t status, void *cbdata)
{
    struct relay *relay = &fab_relay;
    struct relay_told *told = cbdata;
    (void)status;
    PMIX_INFO_FREE(told->info, N_TOLD);
    free(told);
    pthread_mutex_lock(&relay->lock);
    if (relay->subscription.telling > 0 && --relay->subscription.telling == 0)
        relay_poke(relay);
    pthread_mutex_unlock(&relay->lock);
}

static struct relay_told *subscription_told_new(const pmix_proc_t *self, const struct relay_plane *plane)
{
    struct relay_told *told = calloc(1, sizeof(*told));
    bool yes = true;
    if (told == NULL)
        return NULL;
    told->source = *self;
    PMIX_INFO_CREATE(told->info, N_TOLD);
    if (told->info == NULL) {
        free(told);
        return NULL;
    }
    PMIX_INFO_LOAD(&told->info[0], PMIX_FABRIC_INDEX, &plane->index, PMIX_SIZE);
    PMIX_INFO_LOAD(&told->info[1], PMIXFAB_KEY_GENERATION, &plane->generation, PMIX_UINT64);
    PMIX_INFO_LOAD(&told->info[2], PMIX_FABRIC_PLANE, plane->name, PMIX_STRING);
    /* do not send it to clients that come later */
    PMIX_INFO_LOAD(&told->info[3], PMIX_EVENT_DO_NOT_CACHE, &yes, PMIX_BOOL);
    return told;
}

static void subscription_report(struct relay *relay, pmix_status_t code)
{
    struct relay_subscription *subscription = &relay->subscription;
    for (uint32_t i = 0; i < subscription->n_changed; i++) {
        struct relay_told *told = subscription_told_new(&relay->self, &subscription->changed[i]);
        if (told == NULL)
            continue;
        const pmix_proc_t *source =
            told->source.nspace[0] != '\0' ? &told->source : NULL; /* an empty name matches every process */
        subscription->telling++;
        pthread_mutex_unlock(&relay->lock);
        pmix_status_t rc =
            PMIx_Notify_event(code, source, PMIX_RANGE_SESSION, told->info, N_TOLD, on_told, told);
        if (rc != PMIX_SUCCESS)
            on_told(rc, told); /* its callback will not come */
        pthread_mutex_lock(&relay->lock);
    }
}

/* ---- step by step ------------------------------------------------------------------------------- */

static void start_telling(struct relay *relay, int64_t now)
{
    struct relay_subscription *subscription = &relay->subscription;
    subscription->news_ready = false;
    if (subscription->known_any &&
        relay_changed(&subscription->known, &subscription->news, &subscription->changed,
                      &subscription->n_changed) != PMIXFAB_OK)
        fab_log(PMIXFAB_LOG_ERROR, "relay: out of memory: a change is not announced");
    free(subscription->known.planes);
    subscription->known = subscription->news;
    subscription->known_any = true;
    subscription->confirmed = relay->connected;
    memset(&subscription->news, 0, sizeof(subscription->news));
    if (subscription->n_changed == 0) {
        free(subscription->changed);
        subscription->changed = NULL;
        return;
    }
    fab_log(PMIXFAB_LOG_INFO, "relay: generation %llu: %u plane%s changed",
            (unsigned long long)subscription->known.generation, subscription->n_changed,
            subscription->n_changed == 1 ? "" : "s");
    subscription->pending_told = true;
    subscription->told_until = now + HANDLERS_MS;
    subscription_report(relay, PMIX_FABRIC_UPDATE_PENDING);
}

int64_t relay_subscription_step(struct relay *relay, int64_t now)
{
    struct relay_subscription *subscription = &relay->subscription;
    if (subscription->pending_told && (subscription->telling == 0 || now >= subscription->told_until)) {
        subscription_report(relay, PMIX_FABRIC_UPDATED);
        subscription->pending_told = false;
        subscription->n_changed = 0;
        free(subscription->changed);
        subscription->changed = NULL;
    }
    if (subscription->pending_told)
        return subscription->told_until;
    if (subscription->news_ready) {
        start_telling(relay, now);
        return now; /* immediately again */
    }
    if (!relay->connected)
        return INT64_MAX;
    if (subscription->due > now)
        return subscription->due;
    if (subscription->id == 0) {
        subscription_request(relay, now);
        return subscription->due;
    }
    fab_log(PMIXFAB_LOG_WARNING, "relay: the scheduler no longer answers");
    relay_lost(relay);
    return now;
}

void relay_subscription_reset(struct relay *relay)
{
    struct relay_subscription *subscription = &relay->subscription;
    free(subscription->known.planes);
    free(subscription->news.planes);
    free(subscription->changed);
    unsigned telling = subscription->telling; /* their callbacks will still come */
    *subscription = (struct relay_subscription){.telling = telling};
}
