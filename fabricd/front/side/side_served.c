/* side_served.c - the set that the front serves: the snapshots of the run directory, mapped. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fabricd/base/log.h"
#include "fabricd/front/side/side.h"
#include "fabricd/server/subscribers.h"
#include "fabricd/serving/served.h"

static ino_t side_file(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 ? st.st_ino : 0;
}

/* The plane as it is served now, if it is that one, of a file that was not written again; NULL. */
static struct served_plane *side_known(const struct served_set *old, const struct event_plane *plane,
                                       uint64_t generation)
{
    const struct served_plane *known = old == NULL ? NULL : served_find(old, plane->index);
    if (known == NULL || known->info.generation != generation || strcmp(known->info.name, plane->name) != 0 ||
        known->file != side_file(known->path))
        return NULL;
    return served_plane_ref((struct served_plane *)known);
}

static struct served_plane *side_old(const struct served_set *old, uint32_t index)
{
    const struct served_plane *found = old == NULL ? NULL : served_find(old, index);
    return found == NULL ? NULL : served_plane_ref((struct served_plane *)found);
}

/* Its file holds this generation or, where the next one was faster, that. */
static struct served_plane *side_map(const char *rundir, const struct event_plane *plane, uint64_t generation)
{
    struct fab_err err = {""};
    struct served_plane *mapped = NULL;
    struct pmixfab *fab = NULL;
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s.snap", rundir, plane->name);
    const ino_t file =
        side_file(path); /* before: one that is written again meanwhile is mapped again later */
    int rc = pmixfab_open_rundir(rundir, plane->name, &fab);
    if (rc == PMIXFAB_OK)
        rc = served_plane_opened(NULL, 0, fab, rundir, &mapped, &err);
    if (rc == PMIXFAB_OK)
        mapped->file = file;
    if (rc == PMIXFAB_OK && mapped->info.generation < generation) {
        rc = fab_fail(&err, PMIXFAB_ERR_CONFLICT, "its file holds generation %llu, not %llu",
                      (unsigned long long)mapped->info.generation, (unsigned long long)generation);
        served_plane_put(mapped);
        mapped = NULL;
    }
    if (rc != PMIXFAB_OK)
        log_warning("plane %s cannot be mapped: %s", plane->name,
                    err.text[0] != '\0' ? err.text : pmixfab_strerror(rc));
    return mapped;
}

void side_serve(const char *rundir, struct served *served, const struct front_message *message)
{
    struct served_set *old = served_get(served);
    struct served_plane **planes = calloc((size_t)message->n + 1, sizeof(struct served_plane *));
    uint32_t n = 0;
    for (uint32_t i = 0; planes != NULL && i < message->n; i++) {
        planes[n] = side_known(old, &message->planes[i], message->generations[i]);
        if (planes[n] == NULL)
            planes[n] = side_map(rundir, &message->planes[i], message->generations[i]);
        if (planes[n] == NULL) /* better the one before than none */
            planes[n] = side_old(old, message->planes[i].index);
        n += planes[n] != NULL;
    }
    struct served_set *set =
        planes == NULL ? NULL : served_set_new(planes, n, message->a, (int64_t)message->b);
    if (set == NULL) {
        log_error("out of memory: what was served before goes on being served");
        for (uint32_t i = 0; i < n; i++)
            served_plane_put(planes[i]);
    } else {
        served_swap(served, set);
        subscribers_notify();
    }
    free(planes);
    served_set_put(old);
}
