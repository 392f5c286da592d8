#include "mca/pnet/plane_registry.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "pmix/rundir/published.h"

/* A registered object. Each content that is not NULL counts it as a user. */
struct registration {
    struct registration *prev, *next;
    pmix_fabric_t *object;
    void *tag;
    struct pnet_content *now;        /* what the object shows */
    struct pnet_content *before;     /* what it showed until the last switch */
    struct pnet_content *last_given; /* what the last register or update put in */
};

struct pnet_registry {
    pthread_mutex_t lock;
    struct pnet_published published;
    struct registration *objects;
};

int pnet_registry_new(const char *rundir, struct pnet_registry **out)
{
    if (out == NULL)
        return PMIXFAB_ERR_INVAL;
    *out = NULL;
    if (rundir == NULL || rundir[0] == '\0')
        return PMIXFAB_ERR_INVAL;
    struct pnet_registry *registry = calloc(1, sizeof(*registry));
    if (registry == NULL || (registry->published.rundir = strdup(rundir)) == NULL) {
        free(registry);
        return PMIXFAB_ERR_NOMEM;
    }
    pthread_mutex_init(&registry->lock, NULL);
    *out = registry;
    return PMIXFAB_OK;
}

static void free_registration(struct pnet_registry *registry, struct registration *r)
{
    DL_DELETE(registry->objects, r);
    pnet_content_release(r->last_given);
    pnet_content_release(r->before);
    pnet_content_release(r->now);
    free(r->tag);
    free(r);
}

void pnet_registry_free(struct pnet_registry *registry)
{
    if (registry == NULL)
        return;
    while (registry->objects != NULL)
        free_registration(registry, registry->objects);
    pnet_published_forget(&registry->published);
    free(registry->published.rundir);
    pthread_mutex_destroy(&registry->lock);
    free(registry);
}

/* ---- objects ---------------------------------------------------------------------------------------- */

/* By its tag, else by its address. An object that its owner has moved is known by its new place from then on.
 */
static struct registration *registry_find(struct pnet_registry *registry, pmix_fabric_t *fabric)
{
    struct registration *r;
    DL_FOREACH(registry->objects, r)
    {
        if (r->tag != NULL && r->tag == fabric->module) {
            r->object = fabric;
            return r;
        }
    }
    DL_FOREACH(registry->objects, r)
    {
        if (r->object == fabric)
            return r;
    }
    return NULL;
}

static void registration_export(struct registration *r)
{
    r->object->index = r->now->plane.index;
    r->object->info = r->now->info;
    r->object->ninfo = r->now->ninfo;
}

static bool has_objects(const struct pnet_registry *registry, const char *plane)
{
    const struct registration *r;
    DL_FOREACH(registry->objects, r)
    {
        if (strcmp(r->now->plane.name, plane) == 0)
            return true;
    }
    return false;
}

/* Whoever registers or updates now knows of everything up to here. */
static void mark_told(struct pnet_plane *plane)
{
    plane->told_generation = plane->content->plane.generation;
    plane->told_published = plane->content->plane.published;
    plane->told_gone = plane->gone;
}

static bool any_readable(const struct pnet_published *published)
{
    const struct pnet_plane *plane;
    DL_FOREACH(published->planes, plane)
    {
        if (plane->readable)
            return true;
    }
    return false;
}

/* Look at the run directory and choose; the run directory's error, or why there is none. */
static pmix_status_t registry_choose(struct pnet_registry *registry, const struct fab_request *request,
                                     struct pnet_plane **out, struct fab_err *err)
{
    int rc = pnet_published_refresh(&registry->published, err);
    *out = NULL;
    if (rc != PMIXFAB_OK)
        return PMIX_ERR_UNREACH;
    *out = pnet_published_select(&registry->published, request);
    if (*out != NULL)
        return PMIX_SUCCESS;
    if (any_readable(&registry->published)) {
        fab_fail(err, PMIXFAB_ERR_NOTFOUND, "%s: no plane that was asked for is published there",
                 registry->published.rundir);
        return PMIX_ERR_NOT_FOUND;
    }
    fab_fail(err, PMIXFAB_ERR_NOTFOUND, "%s: no readable snapshot is there", registry->published.rundir);
    return PMIX_ERR_UNREACH;
}

static pmix_status_t register_locked(struct pnet_registry *registry, const struct fab_request *request,
                                     pmix_fabric_t *fabric, void *tag, struct fab_err *err)
{
    struct pnet_plane *plane;
    pmix_status_t rc = registry_choose(registry, request, &plane, err);
    struct registration *r = NULL;
    if (rc != PMIX_SUCCESS)
        goto failed;
    r = calloc(1, sizeof(*r));
    if (r == NULL || pnet_content_use(plane->content) != PMIXFAB_OK) {
        fab_fail(err, PMIXFAB_ERR_NOMEM, "plane %s: no memory for its matrix", plane->name);
        rc = PMIX_ERR_NOMEM;
        goto failed;
    }
    if (!has_objects(registry, plane->name))
        mark_told(plane);
    r->object = fabric;
    r->tag = tag;
    r->now = r->last_given = plane->content;
    r->last_given->users++;
    DL_APPEND(registry->objects, r);
    registration_export(r);
    return PMIX_SUCCESS;

failed:
    free(r);
    if (registry->objects == NULL)
        pnet_published_forget(&registry->published);
    return rc;
}

pmix_status_t pnet_register(struct pnet_registry *registry, const pmix_info_t *directives, size_t n,
                            pmix_fabric_t *fabric, void *tag, struct fab_err *err)
{
    struct fab_request request;
    if (registry == NULL || fabric == NULL)
        return PMIX_ERR_BAD_PARAM;
    pmix_status_t rc = fab_request_parse(directives, n, &request);
    /* objects of one plane share their infos: no devices, and no other view */
    if (rc == PMIX_SUCCESS && fab_request_refused(&request, FAB_HEEDS_CONTENTS | FAB_HEEDS_MATRIX))
        rc = PMIX_ERR_NOT_SUPPORTED;
    if (rc != PMIX_SUCCESS) {
        fab_fail(
            err, PMIXFAB_ERR_INVAL,
            "directives of a wrong type, empty, contradictory, or required and not heeded in a server's own "
            "process");
        return rc;
    }
    pthread_mutex_lock(&registry->lock);
    /* The owner began anew with a place that it had never deregistered. */
    struct registration *old = registry_find(registry, fabric);
    if (old != NULL)
        free_registration(registry, old);
    rc = register_locked(registry, &request, fabric, tag, err);
    pthread_mutex_unlock(&registry->lock);
    return rc;
}

static pmix_status_t update_locked(struct pnet_registry *registry, struct registration *r,
                                   struct fab_err *err)
{
    const char *name = r->now->plane.name;
    int rc = pnet_published_refresh(&registry->published, err);
    struct pnet_plane *plane = pnet_published_find(&registry->published, name);
    if (rc != PMIXFAB_OK)
        return PMIX_ERR_UNREACH;
    if (plane == NULL || !plane->readable) {
        bool gone = plane != NULL && plane->gone;
        fab_fail(err, PMIXFAB_ERR_NOTFOUND, "plane %s: %s", name,
                 gone ? "is no more" : "its snapshot is missing or cannot be read");
        return gone ? PMIX_ERR_NOT_FOUND : PMIX_ERR_UNREACH;
    }
    struct pnet_content *now = r->now, *before = r->before, *last_given = r->last_given;
    unsigned own = 1u + (before == now) + (last_given == now);
    if (pnet_content_use_instead(plane->content, now, own) != PMIXFAB_OK) {
        fab_fail(err, PMIXFAB_ERR_NOMEM, "plane %s: no memory for its matrix", name);
        return PMIX_ERR_NOMEM;
    }
    r->now = r->last_given = plane->content;
    r->last_given->users++;
    r->before = NULL;
    registration_export(r);
    pnet_content_release(last_given);
    pnet_content_release(before);
    pnet_content_release(now);
    return PMIX_SUCCESS;
}

pmix_status_t pnet_update(struct pnet_registry *registry, pmix_fabric_t *fabric, struct fab_err *err)
{
    pmix_status_t rc = PMIX_ERR_BAD_PARAM;
    if (registry == NULL || fabric == NULL)
        return rc;
    pthread_mutex_lock(&registry->lock);
    struct registration *r = registry_find(registry, fabric);
    if (r == NULL)
        fab_fail(err, PMIXFAB_ERR_INVAL, "not an object that was registered here");
    else
        rc = update_locked(registry, r, err);
    pthread_mutex_unlock(&registry->lock);
    return rc;
}

pmix_status_t pnet_deregister(struct pnet_registry *registry, pmix_fabric_t *fabric)
{
    if (registry == NULL || fabric == NULL)
        return PMIX_ERR_BAD_PARAM;
    pthread_mutex_lock(&registry->lock);
    struct registration *r = registry_find(registry, fabric);
    if (r != NULL) {
        free_registration(registry, r);
        fabric->index = 0;
        fabric->info = NULL;
        fabric->ninfo = 0;
        fabric->module = NULL;
        if (registry->objects == NULL)
            pnet_published_forget(&registry->published);
    }
    pthread_mutex_unlock(&registry->lock);
    return r == NULL ? PMIX_ERR_BAD_PARAM : PMIX_SUCCESS;
}

/* ---- news ------------------------------------------------------------------------------------------- */

/* Is there anything to tell of this plane? What is told of a plane that is gone is told once. */
static bool registry_is_news(const struct pnet_plane *plane)
{
    if (plane->content == NULL)
        return false;
    if (plane->gone)
        return !plane->told_gone;
    return plane->readable &&
           (plane->told_gone || plane->told_generation != plane->content->plane.generation ||
            plane->told_published != plane->content->plane.published);
}

static int make_ready(struct pnet_plane *plane, struct pnet_change *change)
{
    int rc = pnet_content_use(plane->content);
    if (rc != PMIXFAB_OK)
        return rc;
    pnet_content_release(plane->ready);
    plane->ready = plane->content;
    mark_told(plane);
    *change = (struct pnet_change){.index = plane->content->plane.index,
                                   .generation = plane->content->plane.generation};
    memcpy(change->name, plane->name, sizeof(change->name));
    return PMIXFAB_OK;
}

static int refresh_locked(struct pnet_registry *registry, struct pnet_change **changes, size_t *n)
{
    struct pnet_plane *plane;
    unsigned planes = 0;
    int rc = PMIXFAB_OK;
    pnet_published_refresh(&registry->published, NULL);
    DL_COUNT(registry->published.planes, plane, planes);
    *changes = calloc(planes + 1, sizeof(**changes));
    if (*changes == NULL)
        return PMIXFAB_ERR_NOMEM;
    DL_FOREACH(registry->published.planes, plane)
    {
        if (!registry_is_news(plane) || !has_objects(registry, plane->name))
            continue;
        int failed = make_ready(plane, &(*changes)[*n]);
        if (failed == PMIXFAB_OK)
            ++*n;
        else
            rc = failed;
    }
    return rc;
}

int pnet_refresh(struct pnet_registry *registry, struct pnet_change **changes, size_t *n)
{
    int rc = PMIXFAB_OK;
    *changes = NULL;
    *n = 0;
    pthread_mutex_lock(&registry->lock);
    if (registry->objects != NULL)
        rc = refresh_locked(registry, changes, n);
    pthread_mutex_unlock(&registry->lock);
    if (*n == 0) {
        free(*changes);
        *changes = NULL;
    }
    return rc;
}

static void switch_object(struct registration *r, struct pnet_content *content)
{
    if (r->now == content)
        return; /* its owner was faster, with an update */
    struct pnet_content *before = r->before;
    r->before = r->now;
    r->now = content;
    content->users++; /* its `ready` counts as one, so matrix and info array are there */
    registration_export(r);
    pnet_content_release(before);
}

void pnet_switch(struct pnet_registry *registry)
{
    struct pnet_plane *plane;
    struct registration *r;
    pthread_mutex_lock(&registry->lock);
    DL_FOREACH(registry->published.planes, plane)
    {
        if (plane->ready == NULL)
            continue;
        DL_FOREACH(registry->objects, r)
        {
            /* a still newer one may have come by an update meanwhile */
            if (strcmp(r->now->plane.name, plane->name) == 0 && r->now != plane->content)
                switch_object(r, plane->ready);
        }
        pnet_content_release(plane->ready);
        plane->ready = NULL;
    }
    pthread_mutex_unlock(&registry->lock);
}
