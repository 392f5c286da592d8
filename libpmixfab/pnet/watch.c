#include "pnet/watch.h"

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

#include "topo/log.h"

/*
 * How often it is looked whether the run directory is still the one that is watched. Its removal is not told
 * while a snapshot of it is mapped, which keeps it in being; and one that is not there, or for which the
 * system has no watch to give, is only ever found by looking.
 */
#define RETRY_MS 1000

/* Publishers rename into place; IN_CLOSE_WRITE is for a file that was copied there by hand. */
#define EVENTS (IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_CLOSE_WRITE | IN_ONLYDIR)

struct pnet_watch {
    pthread_t thread;
    struct pnet_registry *registry;
    char *rundir;
    pnet_announce_fn announce;
    void *cbdata;
    int inotify; /* -1: the system gave none */
    int stop;    /* an eventfd */
};

static bool rundir_watcher_stopping(const struct pnet_watch *watch)
{
    struct pollfd fd = {.fd = watch->stop, .events = POLLIN};
    return poll(&fd, 1, 0) > 0;
}

/* Everything that is new, until nothing is: a generation may be published while another is announced. */
static void bring_news(struct pnet_watch *watch)
{
    for (;;) {
        struct pnet_change *changes;
        size_t n;
        if (pnet_look(watch->registry, &changes, &n) != PMIXFAB_OK)
            fab_log(PMIXFAB_LOG_ERROR, "%s: a new generation is there, but no memory for it", watch->rundir);
        if (n == 0)
            return;
        for (size_t i = 0; i < n && !rundir_watcher_stopping(watch); i++)
            watch->announce(true, &changes[i], watch->cbdata);
        if (!rundir_watcher_stopping(watch))
            pnet_switch(watch->registry);
        for (size_t i = 0; i < n && !rundir_watcher_stopping(watch); i++)
            watch->announce(false, &changes[i], watch->cbdata);
        free(changes);
        if (rundir_watcher_stopping(watch))
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
static void rundir_watcher_rearm(const struct pnet_watch *watch, struct watched *watched)
{
    struct stat st;
    bool there = stat(watch->rundir, &st) == 0;
    if (watched->wd >= 0 && there && st.st_dev == watched->device && st.st_ino == watched->inode)
        return;
    if (watched->wd >= 0)
        inotify_rm_watch(watch->inotify, watched->wd);
    watched->wd = -1;
    if (!there || watch->inotify < 0)
        return;
    watched->wd = inotify_add_watch(watch->inotify, watch->rundir, EVENTS);
    watched->device = st.st_dev;
    watched->inode = st.st_ino;
}

/* What has happened is seen by looking; the events only say that it is worth it. */
static void rundir_watcher_drain(const struct pnet_watch *watch)
{
    char buffer[4096];
    while (read(watch->inotify, buffer, sizeof(buffer)) > 0)
        ;
}

static void *rundir_watcher_thread(void *arg)
{
    struct pnet_watch *watch = arg;
    struct watched watched = {.wd = -1};
    bool look = true;
    for (;;) {
        int before = watched.wd;
        rundir_watcher_rearm(watch, &watched);
        if (look || watched.wd < 0 || watched.wd != before)
            bring_news(watch); /* after the watch is in place: nothing slips through between */
        struct pollfd fds[] = {{.fd = watch->stop, .events = POLLIN},
                               {.fd = watch->inotify, .events = POLLIN}};
        if (poll(fds, 2, RETRY_MS) < 0 && errno != EINTR)
            return NULL;
        if (fds[0].revents != 0)
            return NULL;
        look = fds[1].revents != 0;
        if (look)
            rundir_watcher_drain(watch);
    }
}

static void free_watch(struct pnet_watch *watch)
{
    if (watch->inotify >= 0)
        close(watch->inotify);
    if (watch->stop >= 0)
        close(watch->stop);
    free(watch->rundir);
    free(watch);
}

int pnet_watch_start(struct pnet_registry *registry, const char *rundir, pnet_announce_fn announce,
                     void *cbdata, struct pnet_watch **out)
{
    sigset_t all, before;
    *out = NULL;
    struct pnet_watch *watch = calloc(1, sizeof(*watch));
    if (watch == NULL)
        return PMIXFAB_ERR_NOMEM;
    watch->registry = registry;
    watch->rundir = strdup(rundir);
    watch->announce = announce;
    watch->cbdata = cbdata;
    watch->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    watch->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (watch->rundir == NULL || watch->stop < 0) {
        free_watch(watch);
        return PMIXFAB_ERR_NOMEM;
    }
    /* The host's signals are for the host's threads. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&watch->thread, NULL, rundir_watcher_thread, watch);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed != 0) {
        free_watch(watch);
        return PMIXFAB_ERR_IO;
    }
    *out = watch;
    return PMIXFAB_OK;
}

void pnet_watch_stop(struct pnet_watch *watch)
{
    if (watch == NULL)
        return;
    eventfd_write(watch->stop, 1);
    pthread_join(watch->thread, NULL);
    free_watch(watch);
}
