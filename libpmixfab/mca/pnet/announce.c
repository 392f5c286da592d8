/* announce.c - the chain of handlers, started from here with its own final callback: not by
 * PMIx_Notify_event(), as docs/design/component.md explains under "News". */
#include "mca/pnet/pnet_component.h"

#include <pthread.h>
#include <stdlib.h>

#include <src/include/pmix_config.h>

#include <src/class/pmix_list.h>
#include <src/event/pmix_event.h>
#include <src/include/pmix_globals.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool stopped;

/* One event on its way through the handlers. */
struct announcement {
    pmix_event_t start;
    pmix_event_chain_t chain;
    bool finished;
};

#define N_FACTS 3 /* index, plane, generation */
#define N_SPARE 2 /* the library puts a handler's name and object there */

static struct announcement *announcement_new(bool pending, const struct order_change *change)
{
    struct announcement *a = calloc(1, sizeof(*a));
    if (a == NULL)
        return NULL;
    PMIX_CONSTRUCT(&a->chain.super, pmix_list_item_t);
    a->chain.status = pending ? PMIX_FABRIC_UPDATE_PENDING : PMIX_FABRIC_UPDATED;
    a->chain.interim_status = PMIX_ERROR;
    a->chain.range = PMIX_RANGE_PROC_LOCAL;
    PMIX_LOAD_PROCID(&a->chain.source, pmix_globals.myid.nspace, pmix_globals.myid.rank);
    PMIX_INFO_CREATE(a->chain.info, N_FACTS + N_SPARE);
    if (a->chain.info == NULL) {
        free(a);
        return NULL;
    }
    a->chain.ninfo = N_FACTS;
    a->chain.nallocated = N_FACTS + N_SPARE;
    PMIX_INFO_LOAD(&a->chain.info[0], PMIX_FABRIC_INDEX, &change->index, PMIX_SIZE);
    PMIX_INFO_LOAD(&a->chain.info[1], PMIX_FABRIC_PLANE, change->name, PMIX_STRING);
    PMIX_INFO_LOAD(&a->chain.info[2], PMIXFAB_KEY_GENERATION, &change->generation, PMIX_UINT64);
    return a;
}

static void announcement_free(struct announcement *a)
{
    PMIX_INFO_FREE(a->chain.info, a->chain.nallocated);
    if (a->chain.results != NULL)
        PMIX_INFO_FREE(a->chain.results, a->chain.nresults);
    PMIX_DESTRUCT(&a->chain.super);
    free(a);
}

/* On the library's thread: the last handler has finished. */
static void announce_on_finished(pmix_status_t status, void *cbdata)
{
    struct announcement *a = cbdata;
    (void)status;
    pthread_mutex_lock(&lock);
    a->finished = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

/* On the library's thread. */
static void announce_on_start(int fd, short what, void *arg)
{
    struct announcement *a = arg;
    (void)fd, (void)what;
    a->chain.final_cbfunc = announce_on_finished;
    a->chain.final_cbdata = a;
    pmix_invoke_local_event_hdlr(&a->chain);
}

void pnet_announce(bool pending, const struct order_change *change, void *cbdata)
{
    struct announcement *a = announcement_new(pending, change);
    (void)cbdata;
    if (a == NULL)
        return;
    pmix_event_assign(&a->start, pmix_globals.evbase, -1, EV_WRITE, announce_on_start, a);
    pthread_mutex_lock(&lock);
    if (!stopped) {
        pmix_event_active(&a->start, EV_WRITE, 1);
        while (!a->finished && !stopped)
            pthread_cond_wait(&changed, &lock);
    } else {
        a->finished = true;
    }
    bool finished = a->finished;
    pthread_mutex_unlock(&lock);
    /* One that a handler still has stays its: it may yet come back. Only the end of the library leads here.
     */
    if (finished)
        announcement_free(a);
}

void pnet_announce_allow(bool allowed)
{
    pthread_mutex_lock(&lock);
    stopped = !allowed;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}
