#include "pmix/rundir/rundir_watch.h"

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

#include "pmixfab.h"

/*
 * How often it is looked whether the run directory is still the one that is watched. Its removal is not told
 * while a snapshot of it is mapped, which keeps it in being; and one that is not there, or for which the
 * system has no watcher to give, is only ever found by looking.
 */
#define RETRY_MS 1000

/* Publishers rename into place; IN_CLOSE_WRITE is for a file that was copied there by hand. */
#define EVENTS (IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_CLOSE_WRITE | IN_ONLYDIR)

struct dir_watch {
    pthread_t thread;
    char *rundir;
    dir_watch_fn look;
    void *cbdata;
    int inotify; /* -1: not yet, or the system gave none */
    int stop;    /* an eventfd */
};

bool dir_watch_stopping(const struct dir_watch *watch)
{
    struct pollfd fd = {.fd = watch->stop, .events = POLLIN};
    return poll(&fd, 1, 0) > 0;
}

/* The directory that is watched; wd < 0: none. */
struct watched {
    int wd;
    dev_t device;
    ino_t inode;
};

/* Watch what the run directory's name stands for now. */
static void dir_watch_rearm(const struct dir_watch *watch, struct watched *watched)
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

static void *dir_watch_thread(void *arg)
{
    struct dir_watch *watch = arg;
    struct watched watched = {.wd = -1};
    char buffer[4096];
    bool look = true;
    for (;;) {
        int before = watched.wd;
        dir_watch_rearm(watch, &watched);
        if (look || watched.wd < 0 || watched.wd != before)
            watch->look(watch,
                        watch->cbdata); /* after the watcher is in place: nothing slips through between */
        struct pollfd fds[] = {{.fd = watch->stop, .events = POLLIN},
                               {.fd = watch->inotify, .events = POLLIN}};
        if (poll(fds, 2, RETRY_MS) < 0 && errno != EINTR)
            return NULL;
        if (fds[0].revents != 0)
            return NULL;
        look = watch->inotify >= 0 && fds[1].revents != 0;
        /* Not at once: to give a watcher back takes many milliseconds, which is long for the host of a job
         * that ends soon. */
        if (watch->inotify < 0)
            watch->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
        /* What has happened is seen by looking; the events only say that it is worth it. */
        while (look && read(watch->inotify, buffer, sizeof(buffer)) > 0)
            ;
    }
}

static void dir_watch_free(struct dir_watch *watch)
{
    if (watch->inotify >= 0)
        close(watch->inotify);
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
    watch->inotify = -1;
    watch->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (watch->rundir == NULL || watch->stop < 0) {
        dir_watch_free(watch);
        return PMIXFAB_ERR_NOMEM;
    }
    /* The host's signals are for the host's threads. */
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
