/*
 * relay_local.c - a run directory whose fabricd has no server: answers and changes come from its snapshots.
 */
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "pmix/answers/info.h"
#include "pmix/relay/relay_state.h"
#include "pmix/rundir/rundir_watch.h"
#include "pmix/rundir/snapshots.h"
#include "topo/base/library_log.h"

/* Return whether its fabricd publishes an address. Then the relay connects to it, or tries to. */
static bool local_has_uri(const struct relay *relay)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/fabricd.uri", relay->where);
    return access(path, F_OK) == 0;
}

/* ---- changes: on the relay's thread ------------------------------------------------------------------ */

static bool local_on_change(struct dir_watch *watch, void *cbdata)
{
    struct relay *relay = cbdata;
    (void)watch;
    pthread_mutex_lock(&relay->lock);
    relay->look = true;
    relay_poke(relay);
    pthread_mutex_unlock(&relay->lock);
    return false;
}

/* Read the present state in the form of a scheduler's answer. */
static bool local_news(const struct relay *relay, struct relay_news *news)
{
    struct rundir_planes planes;
    rundir_planes_get(relay->snapshots, &planes, NULL);
    *news = (struct relay_news){.planes = calloc((size_t)planes.n + 1, sizeof(*news->planes))};
    for (uint32_t i = 0; news->planes != NULL && i < planes.n; i++) {
        struct pmixfab_plane plane;
        struct relay_plane *one = &news->planes[news->n++];
        pmixfab_plane(planes.planes[i], &plane);
        one->index = plane.index;
        one->generation = plane.generation;
        snprintf(one->name, sizeof(one->name), "%s", plane.name);
        if (plane.generation > news->generation) {
            news->generation = plane.generation;
            news->published = plane.published;
        }
    }
    rundir_planes_put(&planes);
    if (news->n == 0)
        free(news->planes);
    return news->n > 0;
}

void relay_local_look(struct relay *relay)
{
    struct relay_news news;
    if (!relay->look || relay->connected || relay->snapshots == NULL)
        return;
    relay->look = false;
    pthread_mutex_unlock(&relay->lock);
    const bool any = !local_has_uri(relay) && local_news(relay, &news);
    pthread_mutex_lock(&relay->lock);
    if (!any)
        return;
    free(relay->subscription.news.planes);
    relay->subscription.news = news;
    relay->subscription.news_ready = true;
}

/* ---- answers: on the library's thread -------------------------------------------------------------- */

bool relay_local_answer(const pmix_proc_t *requestor, pmix_fabric_operation_t op,
                        const pmix_info_t *directives, const pmix_query_t *queries, size_t n,
                        pmix_info_cbfunc_t cbfunc, void *cbdata)
{
    struct relay *relay = &fab_relay;
    struct fab_answered answered;
    pthread_mutex_lock(&relay->lock);
    const bool local = relay->open && !relay->closing && !relay->connected && relay->snapshots != NULL;
    pthread_mutex_unlock(&relay->lock);
    if (!local || local_has_uri(relay))
        return false;
    rundir_answer(relay->snapshots, NULL, requestor, op, directives, queries, n, &answered, NULL);
    if (answered.status == PMIX_ERR_UNREACH)
        return false; /* there is no snapshot either */
    if (answered.status != PMIX_SUCCESS)
        fab_log(PMIXFAB_LOG_DEBUG, "relay: from %s: %s", relay->where, PMIx_Error_string(answered.status));
    if (queries != NULL && answered.status != PMIX_SUCCESS) { /* same rule as in relay_requests.c */
        fab_infos_free(answered.info, answered.allocated);
        answered = (struct fab_answered){.status = relay_error_of_query(answered.status)};
    }
    fab_answer_send(&answered, cbfunc, cbdata);
    return true;
}

/* ---- life ------------------------------------------------------------------------------------------- */

int relay_local_open(struct relay *relay)
{
    relay->look = true;
    if (relay_is_uri(relay->where))
        return PMIXFAB_OK;
    int rc = rundir_snapshots_new(relay->where, &relay->snapshots);
    if (rc == PMIXFAB_OK)
        rc = dir_watch_start(relay->where, local_on_change, relay, &relay->watch);
    if (rc != PMIXFAB_OK)
        relay_local_close(relay);
    return rc;
}

void relay_local_close(struct relay *relay)
{
    dir_watch_stop(relay->watch);
    relay->watch = NULL;
    rundir_snapshots_free(relay->snapshots);
    relay->snapshots = NULL;
}
