#include "mca/pmdl/news.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include <src/include/pmix_config.h>

#include <src/event/pmix_event.h>
#include <src/include/pmix_globals.h>

#include "mca/library/shapes.h"
#include "mca/pmdl/own.h"
#include "mca/pmdl/pmdl_component.h"
#include "mca/pmdl/slots.h"
#include "pmix/rundir/rundir_watch.h"

#define N_INFOS    5
#define DEADLINE_S 5 /* for a handler in this process: then the next event is sent without it */

static struct dir_watch *watch;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
/* read before the thread begins: the library frees the information in its finalize */
static bool in_scheduler;
static unsigned under_way; /* notifications whose handlers have not finished */

static void news_on_told(pmix_status_t status, void *cbdata)
{
    (void)status, (void)cbdata;
    pthread_mutex_lock(&lock);
    if (under_way > 0)
        under_way--;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

/*
 * Use the function behind PMIx_Notify_event(), which itself takes a lock that the library's finalize holds
 * while it waits for this thread.
 */
static void news_tell(pmix_status_t code, const struct order_change *change)
{
    pmix_info_t infos[N_INFOS];
    bool yes = true;
    PMIX_INFO_LOAD(&infos[0], PMIX_FABRIC_INDEX, &change->index, PMIX_SIZE);
    PMIX_INFO_LOAD(&infos[1], PMIXFAB_KEY_GENERATION, &change->generation, PMIX_UINT64);
    PMIX_INFO_LOAD(&infos[2], PMIX_FABRIC_PLANE, change->name, PMIX_STRING);
    /* do not send old changes to processes that start later */
    PMIX_INFO_LOAD(&infos[3], PMIX_EVENT_DO_NOT_CACHE, &yes, PMIX_BOOL);
    /* Slurm's step daemon treats every event of its default handler as an error, and kills the step */
    PMIX_INFO_LOAD(&infos[4], PMIX_EVENT_NON_DEFAULT, &yes, PMIX_BOOL);
    pthread_mutex_lock(&lock);
    under_way++;
    pthread_mutex_unlock(&lock);
    pmix_status_t rc = pmix_server_notify_client_of_event(code, &pmix_globals.myid, PMIX_RANGE_LOCAL, infos,
                                                          N_INFOS, news_on_told, NULL);
    if (rc != PMIX_SUCCESS)
        news_on_told(rc, NULL);
    for (size_t i = 0; i < N_INFOS; i++)
        PMIX_INFO_DESTRUCT(&infos[i]);
}

static void news_wait(const struct dir_watch *watching)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    time_t end = until.tv_sec + DEADLINE_S;
    pthread_mutex_lock(&lock);
    while (under_way > 0 && until.tv_sec < end && !dir_watch_stopping(watching)) {
        until.tv_nsec += 100000000; /* check for the stop, too */
        if (until.tv_nsec >= 1000000000) {
            until.tv_nsec -= 1000000000;
            until.tv_sec++;
        }
        pthread_cond_timedwait(&changed, &lock, &until);
    }
    under_way = 0;
    pthread_mutex_unlock(&lock);
}

static bool news_look(struct dir_watch *watching, void *cbdata)
{
    struct order_step step;
    bool waits = false, any = true;
    while (any && !dir_watch_stopping(watching)) {
        /* A server's finalize closes no component of this framework: this thread outlives the library. */
        if (!mca_library_is_up())
            return false;
        waits = rundir_snapshots_look(cbdata);
        any = rundir_snapshots_next(cbdata, &step);
        if (in_scheduler && (!any || !step.pending))
            pmdl_own_tell(cbdata);
        /* otherwise the component pnet announces changes to the handlers of a scheduler */
        const bool tell = any && (!in_scheduler || pmdl_slots_have_fabric());
        for (uint32_t i = 0; i < step.n && tell && !dir_watch_stopping(watching); i++)
            news_tell(step.pending ? PMIX_FABRIC_UPDATE_PENDING : PMIX_FABRIC_UPDATED, &step.changes[i]);
        if (tell)
            news_wait(watching);
    }
    return waits;
}

bool pmdl_news_start(struct rundir_snapshots *snapshots, const char *rundir)
{
    if (watch != NULL)
        return true;
    in_scheduler = PMIX_PEER_IS_SCHEDULER(pmix_globals.mypeer);
    return dir_watch_start(rundir, news_look, snapshots, &watch) == PMIXFAB_OK;
}

void pmdl_news_stop(void)
{
    dir_watch_stop(watch);
    watch = NULL;
}
