/* relay_watch.c - the long poll: what the scheduler has published meanwhile, as events for a server's
 * clients. */
#include <pmix.h>
#include <stdlib.h>
#include <string.h>

#include "pmix/info.h"
#include "pmix/relay_priv.h"
#include "topo/log.h"

#define HANDLERS_MS 5000 /* how long handlers of this process may take before UPDATED comes nevertheless */
#define SLACK_MS    10000
#define AGAIN_MS    1000

/* ---- asking ------------------------------------------------------------------------------------- */

/* On PMIx's thread. */
static void subscription_on_news(pmix_status_t status, pmix_pdata_t *data, size_t n, void *cbdata)
{
    struct relay *relay = &fab_relay;
    struct relay_watch *watch = &relay->watch;
    pthread_mutex_lock(&relay->lock);
    if (watch->id == (uint64_t)(uintptr_t)cbdata) {
        watch->id = 0;
        watch->due = relay_now();
        if (status == PMIX_SUCCESS)
            status = relay_decode_news(data, n, &watch->news);
        watch->news_ready = status == PMIX_SUCCESS;
        if (status == PMIX_SUCCESS && watch->confirmed && relay_now() < watch->asked + AGAIN_MS &&
            watch->news.generation == watch->known.generation &&
            watch->news.published == watch->known.published && watch->news.stale == watch->known.stale)
            watch->due += AGAIN_MS; /* nothing new, and at once: not as agreed, so not in a tight loop */
        if (status != PMIX_SUCCESS) {
            fab_log(PMIXFAB_LOG_WARNING, "relay: watching the scheduler: %s", PMIx_Error_string(status));
            watch->due += AGAIN_MS;
        }
        relay_poke(relay);
    }
    pthread_mutex_unlock(&relay->lock);
}

static void subscription_request(struct relay *relay, int64_t now)
{
    struct relay_watch *watch = &relay->watch;
    char *keys[] = {RELAY_WATCH, NULL};
    pmix_info_t info[3];
    size_t n = watch->confirmed ? 3 : 0; /* the first answer on a connection comes at once */
    PMIX_INFO_LOAD(&info[0], PMIXFAB_KEY_GENERATION, &watch->known.generation, PMIX_UINT64);
    PMIX_INFO_LOAD(&info[1], FAB_KEY_PUBLISHED, &watch->known.published, PMIX_INT64);
    PMIX_INFO_LOAD(&info[2], PMIXFAB_KEY_STALE, &watch->known.stale, PMIX_BOOL);
    uint64_t id = watch->id = ++relay->last_id;
    watch->asked = now;
    watch->due = now + RELAY_WATCH_SECONDS * 1000 + SLACK_MS;
    relay->sending++;
    pthread_mutex_unlock(&relay->lock);
    pmix_status_t rc =
        PMIx_Lookup_nb(keys, n == 0 ? NULL : info, n, subscription_on_news, (void *)(uintptr_t)id);
    pthread_mutex_lock(&relay->lock);
    relay->sending--;
    if (rc != PMIX_SUCCESS && watch->id == id)
        relay_lost(relay);
}

/* ---- telling ------------------------------------------------------------------------------------ */

struct notice {
    size_t n;
    pmix_info_t info[4];
};

static void subscription_news_free(struct notice *notice)
{
    for (size_t i = 0; i < notice->n; i++)
        PMIX_INFO_DESTRUCT(&notice->info[i]);
    free(notice);
}

/* On PMIx's thread: the handlers of this process have finished. */
static void on_told(pmix_status_t status, void *cbdata)
{
    struct relay *relay = &fab_relay;
    (void)status;
    subscription_news_free(cbdata);
    pthread_mutex_lock(&relay->lock);
    if (relay->watch.telling > 0 && --relay->watch.telling == 0)
        relay_poke(relay);
    pthread_mutex_unlock(&relay->lock);
}

static struct notice *subscription_news_new(const struct relay_plane *plane)
{
    struct notice *notice = calloc(1, sizeof(*notice));
    size_t index = plane->index;
    bool yes = true;
    if (notice == NULL)
        return NULL;
    PMIX_INFO_LOAD(&notice->info[0], PMIX_FABRIC_INDEX, &index, PMIX_SIZE);
    PMIX_INFO_LOAD(&notice->info[1], PMIXFAB_KEY_GENERATION, &plane->generation, PMIX_UINT64);
    PMIX_INFO_LOAD(&notice->info[2], PMIX_FABRIC_PLANE, plane->name, PMIX_STRING);
    /* A client that comes later must not be told of what was before it. */
    PMIX_INFO_LOAD(&notice->info[3], PMIX_EVENT_DO_NOT_CACHE, &yes, PMIX_BOOL);
    notice->n = 4;
    return notice;
}

static void subscription_report(struct relay *relay, pmix_status_t code)
{
    struct relay_watch *watch = &relay->watch;
    const pmix_proc_t self = relay->self;
    for (uint32_t i = 0; i < watch->n_changed; i++) {
        struct notice *notice = subscription_news_new(&watch->changed[i]);
        if (notice == NULL)
            continue;
        watch->telling++;
        pthread_mutex_unlock(&relay->lock);
        pmix_status_t rc =
            PMIx_Notify_event(code, &self, PMIX_RANGE_SESSION, notice->info, notice->n, on_told, notice);
        if (rc != PMIX_SUCCESS)
            on_told(rc, notice); /* its callback does not come */
        pthread_mutex_lock(&relay->lock);
    }
}

/* ---- step by step ------------------------------------------------------------------------------- */

static void start_telling(struct relay *relay, int64_t now)
{
    struct relay_watch *watch = &relay->watch;
    watch->news_ready = false;
    if (watch->known_any &&
        relay_changed(&watch->known, &watch->news, &watch->changed, &watch->n_changed) != PMIXFAB_OK)
        fab_log(PMIXFAB_LOG_ERROR, "relay: out of memory: a change is not announced");
    free(watch->known.planes);
    watch->known = watch->news;
    watch->known_any = true;
    watch->confirmed = relay->connected;
    watch->host_due = true;
    memset(&watch->news, 0, sizeof(watch->news));
    if (watch->n_changed == 0) {
        free(watch->changed);
        watch->changed = NULL;
        return;
    }
    fab_log(PMIXFAB_LOG_INFO, "relay: generation %llu: %u planes changed",
            (unsigned long long)watch->known.generation, watch->n_changed);
    watch->pending_told = true;
    watch->told_until = now + HANDLERS_MS;
    subscription_report(relay, PMIX_FABRIC_UPDATE_PENDING);
}

int64_t relay_watch_step(struct relay *relay, int64_t now)
{
    struct relay_watch *watch = &relay->watch;
    if (watch->pending_told && (watch->telling == 0 || now >= watch->told_until)) {
        subscription_report(relay, PMIX_FABRIC_UPDATED);
        watch->pending_told = false;
        watch->n_changed = 0;
        free(watch->changed);
        watch->changed = NULL;
    }
    if (watch->pending_told)
        return watch->told_until;
    if (watch->news_ready) {
        start_telling(relay, now);
        return now; /* once more */
    }
    if (!relay->connected)
        return INT64_MAX;
    if (watch->due > now)
        return watch->due;
    if (watch->id == 0) {
        subscription_request(relay, now);
        return watch->due;
    }
    fab_log(PMIXFAB_LOG_WARNING, "relay: the scheduler does not answer any more");
    relay_lost(relay);
    return now;
}

void relay_watch_lost(struct relay *relay)
{
    struct relay_watch *watch = &relay->watch;
    watch->id = 0;
    watch->confirmed = watch->news_ready = false;
    free(watch->news.planes);
    memset(&watch->news, 0, sizeof(watch->news));
}

void relay_watch_tell_host(struct relay *relay)
{
    struct relay_watch *watch = &relay->watch;
    bool connected = relay->connected && watch->confirmed;
    if (relay->news_fn == NULL || (!watch->host_due && connected == watch->host_knows))
        return;
    watch->host_due = false;
    watch->host_knows = connected;
    pthread_mutex_unlock(&relay->lock);
    relay->news_fn(connected, &watch->known, relay->news_cbdata); /* known changes on this thread only */
    pthread_mutex_lock(&relay->lock);
}

void relay_watch_reset(struct relay *relay)
{
    struct relay_watch *watch = &relay->watch;
    free(watch->known.planes);
    free(watch->news.planes);
    free(watch->changed);
    unsigned telling = watch->telling; /* their callbacks still come */
    *watch = (struct relay_watch){.telling = telling};
}
