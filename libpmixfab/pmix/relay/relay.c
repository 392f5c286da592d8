/* relay.c - answer a PMIx server's clients from the scheduler's fabricd: open, run, close. */
#include "pmix/relay/relay.h"

#include <pmix.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "pmix/relay/relay_state.h"
#include "pmix/relay/relay_tags.h"
#include "pmix/relay/thread.h"
#include "topo/base/library_log.h"
#include "topo/base/milliseconds.h"

#define FIRST_PAUSE_MS 50
#define MAX_PAUSE_MS   5000

/* One open or close at a time. */
static pthread_mutex_t doing = PTHREAD_MUTEX_INITIALIZER;

/* ---- the relay's thread -------------------------------------------------------------------------- */

static int64_t relay_reconnect(struct relay *relay, int64_t now)
{
    if (now < relay->try_at)
        return relay->try_at;
    if (relay->sending > 0) /* the last thread to leave the library wakes this one */
        return now + 10;
    pthread_mutex_unlock(&relay->lock);
    bool connected = relay_link_connect(relay);
    pthread_mutex_lock(&relay->lock);
    relay->tried = true;
    pthread_cond_broadcast(&relay->tried_changed);
    now = fab_now_ms();
    if (!connected) {
        relay->try_at = now + relay_with_jitter((unsigned)backoff_next(&relay->pause));
    } else {
        relay->subscription.id = 0;
        /* before any request, so that no change is missed after the first answer */
        relay->subscription.due = now;
    }
    return now;
}

static void sleep_until(struct relay *relay, int64_t when)
{
    int64_t rest = when - fab_now_ms();
    relay->wakes_at = when;
    relay_wait(relay, when == INT64_MAX ? -1 : rest < 0 ? 0 : (int)rest + 1);
    relay->wakes_at = INT64_MAX; /* while the thread is awake, every new request makes it check again */
}

static void *relay_thread(void *arg)
{
    struct relay *relay = arg;
    pthread_mutex_lock(&relay->lock);
    while (!relay->closing) {
        int64_t now = fab_now_ms(), next = INT64_MAX, when;
        relay->poked = false;
        /* before the first attempt: the snapshots present at the start are no change */
        relay_local_look(relay);
        if (!relay->connected)
            next = relay_reconnect(relay, now);
        when = relay_subscription_step(relay, now);
        next = when < next ? when : next;
        if (relay->subscription.confirmed && relay->connected)
            backoff_reset(&relay->pause); /* the scheduler has sent a valid answer */
        relay_send_waiting(relay);
        when = relay_expire(relay, fab_now_ms(), false);
        next = when < next ? when : next;
        if (next > now && !relay->poked)
            sleep_until(relay, next);
    }
    relay->connected = false;
    relay_expire(relay, 0, true);
    pthread_mutex_unlock(&relay->lock);
    return NULL;
}

/* ---- functions for the host ------------------------------------------------------------------------ */

static int relay_start_thread(struct relay *relay)
{
    relay->closing = relay->tried = relay->connected = false;
    relay->pause = (struct backoff){.first = FIRST_PAUSE_MS, .most = MAX_PAUSE_MS};
    relay->try_at = 0;
    relay->wakes_at = INT64_MAX;
    relay->socket = -1;
    relay_subscription_reset(relay);
    int rc = relay_check_library();
    if (rc != PMIXFAB_OK) {
        fab_log(PMIXFAB_LOG_ERROR, "relay: not supported with this version of the PMIx library: %s",
                PMIx_Get_version());
        return rc;
    }
    relay_repair_questions();
    relay->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (relay->bell < 0)
        return PMIXFAB_ERR_IO;
    rc = relay_local_open(relay);
    if (rc == PMIXFAB_OK && pthread_create(&relay->keeper, NULL, relay_thread, relay) != 0) {
        relay_local_close(relay);
        rc = PMIXFAB_ERR_NOMEM;
    }
    if (rc != PMIXFAB_OK) {
        close(relay->bell);
        return rc;
    }
    pthread_mutex_lock(&relay->lock);
    relay->open = true;
    while (!relay->tried)
        pthread_cond_wait(&relay->tried_changed, &relay->lock);
    pthread_mutex_unlock(&relay->lock);
    return PMIXFAB_OK;
}

int pmixfab_relay_open(const char *scheduler)
{
    struct relay *relay = &fab_relay;
    int rc;
    if (scheduler == NULL)
        scheduler = "/run/fabricd";
    if (scheduler[0] == '\0')
        return PMIXFAB_ERR_INVAL;
    if (!relay_is_uri(scheduler) && strstr(scheduler, "://") != NULL)
        return PMIXFAB_ERR_SYNTAX;
    if (!PMIx_Initialized())
        return PMIXFAB_ERR_UNREACH;
    pthread_mutex_lock(&doing);
    if (relay->open) {
        rc = PMIXFAB_ERR_BUSY;
    } else if ((relay->where = strdup(scheduler)) == NULL) {
        rc = PMIXFAB_ERR_NOMEM;
    } else if ((rc = relay_start_thread(relay)) != PMIXFAB_OK) {
        free(relay->where);
        relay->where = NULL;
    }
    pthread_mutex_unlock(&doing);
    return rc;
}

int pmixfab_relay_deadline(unsigned milliseconds)
{
    if (milliseconds == 0 || milliseconds > 3600000)
        return PMIXFAB_ERR_RANGE;
    pthread_mutex_lock(&fab_relay.lock);
    fab_relay.deadline_ms = milliseconds;
    pthread_mutex_unlock(&fab_relay.lock);
    return PMIXFAB_OK;
}

void pmixfab_relay_close(void)
{
    struct relay *relay = &fab_relay;
    pthread_mutex_lock(&doing);
    if (relay->open) {
        pthread_mutex_lock(&relay->lock);
        relay->closing = true;
        relay_poke(relay);
        pthread_mutex_unlock(&relay->lock);
        pthread_join(relay->keeper, NULL);
        fab_wait_for_pmix_thread(); /* so that all requests are answered when the host continues */
        relay_link_close(relay);
        relay_local_close(relay);
        pthread_mutex_lock(&relay->lock);
        relay->open = false;
        close(relay->bell);
        relay->bell = -1;
        relay_subscription_reset(relay);
        pthread_mutex_unlock(&relay->lock);
        free(relay->where);
        relay->where = NULL;
    }
    pthread_mutex_unlock(&doing);
}
