#include "mca/pnet/rundir_watcher.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "topo/base/log.h"

/*
 * How often it is looked whether the run directory is still the one that is watched. Its removal is not told
 * while a snapshot of it is mapped, which keeps it in being; and one that is not there, or for which the
 * system has no watcher to give, is only ever found by looking.
 */
#define RETRY_MS 1000

/* Publishers rename into place; IN_CLOSE_WRITE is for a file that was copied there by hand. */
#define EVENTS (IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_CLOSE_WRITE | IN_ONLYDIR)

struct rundir_watcher {
    pthread_t thread;
    struct pnet_registry *registry;
    char *rundir;
    pnet_announce_fn announce;
    void *cbdata;
    int inotify; /* -1: the system gave none */
    int stop;    /* an eventfd */
};

static bool rundir_watcher_stopping(const struct rundir_watcher *watcher)
{
    struct pollfd fd = {.fd = watcher->stop, .events = POLLIN};
    return poll(&fd, 1, 0) > 0;
}

/* Everything that is new, until nothing is: a generation may be published while another is announced. */
static void bring_news(struct rundir_watcher *watcher)
{
    for (;;) {
        struct pnet_change *changes;
        size_t n;
        if (pnet_refresh(watcher->registry, &changes, &n) != PMIXFAB_OK)
            fab_log(PMIXFAB_LOG_ERROR, "%s: a new generation is there, but no memory for it",
                    watcher->rundir);
        if (n == 0)
            return;
        for (size_t i = 0; i < n && !rundir_watcher_stopping(watcher); i++)
            watcher->announce(true, &changes[i], watcher->cbdata);
        if (!rundir_watcher_stopping(watcher))
            pnet_switch(watcher->registry);
        for (size_t i = 0; i < n && !rundir_watcher_stopping(watcher); i++)
            watcher->announce(false, &changes[i], watcher->cbdata);
        free(changes);
        if (rundir_watcher_stopping(watcher))
            return;
    }
}

/* The directory that is watched; wd < 0: none. */
struct watched {
    int wd;
    dev_t device;
    ino_t inode;
};

/* Watch what the run directory's name stands for now. */
static void rundir_watcher_rearm(const struct rundir_watcher *watcher, struct watched *watched)
{
    struct stat st;
    bool there = stat(watcher->rundir, &st) == 0;
    if (watched->wd >= 0 && there && st.st_dev == watched->device && st.st_ino == watched->inode)
        return;
    if (watched->wd >= 0)
        inotify_rm_watch(watcher->inotify, watched->wd);
    watched->wd = -1;
    if (!there || watcher->inotify < 0)
        return;
    watched->wd = inotify_add_watch(watcher->inotify, watcher->rundir, EVENTS);
    watched->device = st.st_dev;
    watched->inode = st.st_ino;
}

static void *rundir_watcher_thread(void *arg)
{
    struct rundir_watcher *watcher = arg;
    struct watched watched = {.wd = -1};
    char buffer[4096];
    bool look = true;
    for (;;) {
        int before = watched.wd;
        rundir_watcher_rearm(watcher, &watched);
        if (look || watched.wd < 0 || watched.wd != before)
            bring_news(watcher); /* after the watcher is in place: nothing slips through between */
        struct pollfd fds[] = {{.fd = watcher->stop, .events = POLLIN},
                               {.fd = watcher->inotify, .events = POLLIN}};
        if (poll(fds, 2, RETRY_MS) < 0 && errno != EINTR)
            return NULL;
        if (fds[0].revents != 0)
            return NULL;
        look = fds[1].revents != 0;
        /* What has happened is seen by looking; the events only say that it is worth it. */
        while (look && read(watcher->inotify, buffer, sizeof(buffer)) > 0)
            ;
    }
}

static void subscriber_free(struct rundir_watcher *watcher)
{
    if (watcher->inotify >= 0)
        close(watcher->inotify);
    if (watcher->stop >= 0)
        close(watcher->stop);
    free(watcher->rundir);
    free(watcher);
}

int rundir_watcher_start(struct pnet_registry *registry, const char *rundir, pnet_announce_fn announce,
                         void *cbdata, struct rundir_watcher **out)
{
    sigset_t all, before;
    *out = NULL;
    struct rundir_watcher *watcher = calloc(1, sizeof(*watcher));
    if (watcher == NULL)
        return PMIXFAB_ERR_NOMEM;
    watcher->registry = registry;
    watcher->rundir = strdup(rundir);
    watcher->announce = announce;
    watcher->cbdata = cbdata;
    watcher->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    watcher->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (watcher->rundir == NULL || watcher->stop < 0) {
        subscriber_free(watcher);
        return PMIXFAB_ERR_NOMEM;
    }
    /* The host's signals are for the host's threads. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&watcher->thread, NULL, rundir_watcher_thread, watcher);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed != 0) {
        subscriber_free(watcher);
        return PMIXFAB_ERR_IO;
    }
    *out = watcher;
    return PMIXFAB_OK;
}

void rundir_watcher_stop(struct rundir_watcher *watcher)
{
    if (watcher == NULL)
        return;
    eventfd_write(watcher->stop, 1);
    pthread_join(watcher->thread, NULL);
    subscriber_free(watcher);
}
