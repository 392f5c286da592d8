/*
 * guard_munge.c - keep the library's thread from waiting for munged (docs/upstream.md, C9).
 *
 * The library's security module calls munged for each connection, and at its start to find out whether it
 * runs, on the library's only working thread. Here credentials of new connections are opened on threads of
 * the guard, and the module gets the results. The credential that it makes at its start is never used, since
 * such a server connects to none. The first credential of a client shows whether munged runs.
 */
#include <event2/event.h>
#include <munge.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "guard/guard_priv.h"

#if GUARD_KNOWS_LIBRARY
#include <src/include/pmix_config.h>

#include <src/include/pmix_globals.h>

#define MOST_OPENED  4096 /* results that the library has not asked for yet, or never will */
#define MOST_THREADS 4    /* a hanging munged blocks each for the timeout of libmunge */

/* A credential: in the queue, on a thread, or opened. */
struct credential {
    struct credential *prev, *next;
    uint32_t number;
    credential_fn done;
    bool good;
    uid_t uid;
    gid_t gid;
    char text[];
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct credential *queue;
    unsigned threads, idle;
    bool stopped;
} opening = {.lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER};

/* On the library's thread: valid ones that the library will ask for. */
static struct credential *opened;
static unsigned n_opened;

static void opened_drop(struct credential *one)
{
    DL_DELETE(opened, one);
    n_opened--;
    free(one);
}

static void credential_on_opened(evutil_socket_t none, short what, void *arg)
{
    struct credential *one = arg;
    const struct credential result = *one;
    (void)none, (void)what;
    if (one->good) {
        DL_APPEND(opened, one);
        if (++n_opened > MOST_OPENED)
            opened_drop(opened);
    } else {
        free(one);
    }
    result.done(result.number, result.good, result.uid, result.gid);
}

/* ---- threads ---------------------------------------------------------------------------------------------
 */

static void credential_ask(struct credential *one)
{
    munge_err_t (*original)(const char *, munge_ctx_t, void **, int *, uid_t *, gid_t *);
    *(void **)&original = guard_find_original("munge_decode");
    one->good =
        original != NULL && original(one->text, NULL, NULL, NULL, &one->uid, &one->gid) == EMUNGE_SUCCESS;
}

static void *credential_thread(void *arg)
{
    const struct timeval at_once = {0};
    pthread_mutex_lock(&opening.lock);
    for (;;) {
        opening.idle++;
        while (opening.queue == NULL)
            pthread_cond_wait(&opening.more, &opening.lock);
        opening.idle--;
        struct credential *one = opening.queue;
        DL_DELETE(opening.queue, one);
        pthread_mutex_unlock(&opening.lock);
        credential_ask(one);
        pthread_mutex_lock(&opening.lock);
        if (opening.stopped ||
            event_base_once(pmix_globals.evbase, -1, EV_TIMEOUT, credential_on_opened, one, &at_once) != 0)
            free(one);
    }
    return arg;
}

/* The lock is held. */
static void credential_start_thread(void)
{
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&thread, NULL, credential_thread, NULL) == 0) {
        pthread_detach(thread);
        opening.threads++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

bool credentials_are_opened(void)
{
    return guard_server() == GUARD_SERVER_FABRIC && guard_does(GUARD_CONNECTIONS);
}

bool credential_open(uint32_t number, const char *text, credential_fn done)
{
    const size_t size = strlen(text) + 1;
    struct credential *one = calloc(1, sizeof(*one) + size);
    if (one == NULL)
        return false;
    one->number = number;
    one->done = done;
    memcpy(one->text, text, size);
    pthread_mutex_lock(&opening.lock);
    if ((opening.idle == 0 || opening.queue != NULL) && opening.threads < MOST_THREADS)
        credential_start_thread();
    const bool queued = opening.threads > 0;
    if (queued) {
        DL_APPEND(opening.queue, one);
        pthread_cond_signal(&opening.more);
    }
    pthread_mutex_unlock(&opening.lock);
    if (!queued)
        free(one);
    return queued;
}

void credential_forget(uint32_t number)
{
    struct credential *one;
    pthread_mutex_lock(&opening.lock);
    DL_SEARCH_SCALAR(opening.queue, one, number, number);
    if (one != NULL)
        DL_DELETE(opening.queue, one);
    pthread_mutex_unlock(&opening.lock);
    free(one);
}

void credentials_stop(void)
{
    pthread_mutex_lock(&opening.lock);
    opening.stopped = true;
    pthread_mutex_unlock(&opening.lock);
}

/* ---- results for the library's module ----------------------------------------------------------------- */

munge_err_t munge_encode(char **credential, munge_ctx_t context, const void *bytes, int size)
{
    if (!credentials_are_opened()) {
        GUARD_ORIGINAL(munge_encode);
        return original(credential, context, bytes, size);
    }
    *credential = strdup("MUNGE:");
    return *credential == NULL ? EMUNGE_NO_MEMORY : EMUNGE_SUCCESS;
}

munge_err_t munge_decode(const char *credential, munge_ctx_t context, void **bytes, int *size, uid_t *uid,
                         gid_t *gid)
{
    struct credential *one;
    if (!credentials_are_opened()) {
        GUARD_ORIGINAL(munge_decode);
        return original(credential, context, bytes, size, uid, gid);
    }
    DL_FOREACH(opened, one)
    {
        if (strcmp(one->text, credential) == 0)
            break;
    }
    if (one == NULL)
        return EMUNGE_SOCKET;
    *uid = one->uid;
    *gid = one->gid;
    opened_drop(one);
    return EMUNGE_SUCCESS;
}

#else

void credentials_stop(void)
{
}

#endif
