#include "topo/snapshot/folder_watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "pmixfab.h"

/*
 * These events occur in the folder:
 * - A publisher renames files into it.
 * - A user copies a file by hand, which is a write.
 * - The file `stale` and the control socket come and go.
 * - The mode of the socket changes after listen(), which shows that it is ready.
 */
#define IN_FOLDER                                                                                            \
    (IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_CLOSE_WRITE | IN_CREATE | IN_ATTRIB | IN_ONLYDIR)
/*
 * Events in the parent: the run directory comes and goes with its service. Its own watch does not report that
 * while a mapped snapshot keeps it alive.
 */
#define IN_PARENT (IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_CREATE | IN_ONLYDIR)

int fab_folder_watch_open(const char *folder, struct fab_folder_watch *out)
{
    *out = (struct fab_folder_watch){.folder = strdup(folder), .inotify = -1, .wd = -1, .above = -1};
    char *parent = out->parent = strdup(folder);
    if (out->folder == NULL || parent == NULL) {
        fab_folder_watch_close(out);
        return PMIXFAB_ERR_NOMEM;
    }
    for (size_t n = strlen(parent); n > 1 && parent[n - 1] == '/'; n--)
        parent[n - 1] = out->folder[n - 1] = '\0';
    char *slash = strrchr(parent, '/');
    out->name = slash != NULL ? out->folder + (slash - parent) + 1 : out->folder;
    if (strcmp(out->name, ".") == 0 || strcmp(out->name, "..") == 0 || out->name[0] == '\0')
        out->name = NULL;
    if (slash != NULL)
        slash[slash == parent] = '\0';
    else
        strcpy(parent, ".");
    out->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (out->inotify >= 0)
        return PMIXFAB_OK;
    const int failed = errno;
    fab_folder_watch_close(out);
    errno = failed;
    return PMIXFAB_ERR_IO;
}

void fab_folder_watch_close(struct fab_folder_watch *watch)
{
    if (watch->inotify >= 0)
        close(watch->inotify);
    free(watch->folder);
    free(watch->parent);
    *watch = (struct fab_folder_watch){.inotify = -1, .wd = -1, .above = -1};
}

static void watch_arm(const struct fab_folder_watch *watch, const char *folder, uint32_t what, int *wd)
{
    int now = inotify_add_watch(watch->inotify, folder, what);
    if (*wd >= 0 && *wd != now)
        inotify_rm_watch(watch->inotify, *wd);
    *wd = now;
}

bool fab_folder_watch_arm(struct fab_folder_watch *watch)
{
    watch_arm(watch, watch->parent, IN_PARENT, &watch->above);
    const int failed = errno;
    watch_arm(watch, watch->folder, IN_FOLDER, &watch->wd);
    errno = failed;
    return watch->wd >= 0 || watch->above >= 0;
}

bool fab_folder_watch_drain(const struct fab_folder_watch *watch)
{
    char bytes[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
    bool any = false;
    ssize_t n;
    while ((n = read(watch->inotify, bytes, sizeof(bytes))) > 0)
        for (const char *at = bytes; at < bytes + n;) {
            const struct inotify_event *event = (const struct inotify_event *)at;
            /* other folders beside this one come and go */
            any |= event->wd != watch->above || event->len == 0 || watch->name == NULL ||
                   strcmp(event->name, watch->name) == 0;
            at += sizeof(*event) + event->len;
        }
    return any;
}
