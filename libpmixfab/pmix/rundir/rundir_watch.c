#include "pmix/rundir/rundir_watch.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "pmixfab.h"
#include "topo/snapshot/folder_watch.h"

/*
 * Interval of looks at the run directory without a watch. There is no watch at first, if the system has no
 * watches left, and while neither the run directory nor its parent exists.
 */
#define RETRY_MS 1000

struct dir_watch {
    pthread_t thread;
    char *rundir;
    dir_watch_fn look;
    void *cbdata;
    struct fab_folder_watch folder; /* inotify -1: not yet, or not available */
    int stop;                       /* an eventfd */
};

bool dir_watch_stopping(const struct dir_watch *watch)
{
    struct pollfd fd = {.fd = watch->stop, .events = POLLIN};
    return poll(&fd, 1, 0) > 0;
}

static void *dir_watch_thread(void *arg)
{
    struct dir_watch *watch = arg;
    bool look = true;
    for (;;) {
        const bool watched = watch->folder.inotify >= 0 && fab_folder_watch_arm(&watch->folder);
        const bool again = look && watch->look(watch, watch->cbdata);
        struct pollfd fds[] = {{.fd = watch->stop, .events = POLLIN},
                               {.fd = watch->folder.inotify, .events = POLLIN}};
        if (poll(fds, 2, watched && !again ? -1 : RETRY_MS) < 0 && errno != EINTR)
            return NULL;
        if (fds[0].revents != 0)
            return NULL;
        /* Only now: closing a watch takes many milliseconds, too long for the host of a job that ends
         * soon. */
        if (watch->folder.inotify < 0)
            (void)fab_folder_watch_open(watch->rundir, &watch->folder);
        look = !watched || again;
        if (fds[1].revents != 0)
            look |= fab_folder_watch_drain(&watch->folder);
    }
}

static void dir_watch_free(struct dir_watch *watch)
{
    fab_folder_watch_close(&watch->folder);
    if (watch->stop >= 0)
        close(watch->stop);
    free(watch->rundir);
    free(watch);
}

int dir_watch_start(const char *rundir, dir_watch_fn look, void *cbdata, struct dir_watch **out)
{
    sigset_t all, before;
    *out = NULL;
    struct dir_watch *watch = calloc(1, sizeof(*watch));
    if (watch == NULL)
        return PMIXFAB_ERR_NOMEM;
    watch->rundir = strdup(rundir);
    watch->look = look;
    watch->cbdata = cbdata;
    watch->folder = (struct fab_folder_watch){.inotify = -1};
    watch->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (watch->rundir == NULL || watch->stop < 0) {
        dir_watch_free(watch);
        return PMIXFAB_ERR_NOMEM;
    }
    /* The host's signals must go to the host's threads. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&watch->thread, NULL, dir_watch_thread, watch);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed != 0) {
        dir_watch_free(watch);
        return PMIXFAB_ERR_IO;
    }
    *out = watch;
    return PMIXFAB_OK;
}

void dir_watch_stop(struct dir_watch *watch)
{
    if (watch == NULL)
        return;
    eventfd_write(watch->stop, 1);
    pthread_join(watch->thread, NULL);
    dir_watch_free(watch);
}
