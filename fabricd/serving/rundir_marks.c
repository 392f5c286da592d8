/* rundir_marks.c - the mark files beside the snapshots in the run directory. The simulation records them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabricd/base/file_io.h"
#include "fabricd/base/log.h"
#include "fabricd/serving/rundir.h"
#include "topo/snapshot/pending.h"

#define PATH_SIZE 4096

void rundir_begin(const char *rundir, uint64_t generation, const struct event_plane *planes, uint32_t n)
{
    struct fab_pending pending = {.generation = generation,
                                  .planes = calloc((size_t)n + 1, sizeof(*pending.planes))};
    char path[PATH_SIZE], beside[PATH_SIZE];
    for (uint32_t i = 0; pending.planes != NULL && i < n && i < FAB_PENDING_PLANES; i++) {
        struct fab_pending_plane *plane = &pending.planes[pending.n++];
        plane->index = planes[i].index;
        snprintf(plane->name, sizeof(plane->name), "%s", planes[i].name);
    }
    char *text = pending.planes == NULL ? NULL : fab_pending_text(&pending);
    snprintf(path, sizeof(path), "%s/" FAB_RUNDIR_PENDING, rundir);
    snprintf(beside, sizeof(beside), "%s/" RUNDIR_PENDING_NEW, rundir);
    const int failed = text == NULL ? ENOMEM : file_replace(path, beside, text, strlen(text));
    if (failed != 0)
        log_warning("run directory: %s cannot be written: %s", path, strerror(failed));
    free(text);
    fab_pending_clear(&pending);
}

void rundir_end(const char *rundir)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof(path), "%s/" FAB_RUNDIR_PENDING, rundir);
    if (unlink(path) != 0 && errno != ENOENT)
        log_warning("run directory: %s cannot be removed: %s", path, strerror(errno));
}

void rundir_set_stale(const char *rundir, struct served *served, bool stale)
{
    served_set_stale(served, stale);
    rundir_mark_stale(rundir, stale);
}
