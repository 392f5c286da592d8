#include "mca/pnet/plane_registry.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "topo/base/library_log.h"

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
    struct event_order *order;
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
    if (registry == NULL)
        return PMIXFAB_ERR_NOMEM;
    registry->published.rundir = strdup(rundir);
    registry->order = event_order_new();
    if (registry->published.rundir == NULL || registry->order == NULL) {
        event_order_free(registry->order);
        free(registry->published.rundir);
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
    event_order_free(registry->order);
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
static void registry_know(struct pnet_registry *registry, const struct pnet_plane *plane)
{
    const struct order_plane known = pnet_plane_order(plane);
    event_order_know(registry->order, &known);
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
        registry_know(registry, plane);
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

static bool registry_wants(const char *plane, void *registry)
{
    return has_objects(registry, plane);
}

bool pnet_look(struct pnet_registry *registry)
{
    pthread_mutex_lock(&registry->lock);
    int rc = PMIXFAB_OK;
    if (registry->objects != NULL) {
        pnet_published_refresh(&registry->published, NULL);
        rc = pnet_published_look(&registry->published, registry->order, registry_wants, registry);
    }
    const bool waits = event_order_waits(registry->order);
    pthread_mutex_unlock(&registry->lock);
    if (rc != PMIXFAB_OK)
        fab_log(PMIXFAB_LOG_ERROR, "%s: a new generation is there, but no memory for it",
                registry->published.rundir);
    return waits;
}

/* Show the newest content in an object. PMIXFAB_ERR_NOMEM: it stays as it was. */
static int switch_object(struct registration *r, struct pnet_content *content)
{
    if (r->now == content)
        return PMIXFAB_OK; /* its owner was faster, with an update */
    int rc = pnet_content_use(content);
    if (rc != PMIXFAB_OK)
        return rc;
    struct pnet_content *before = r->before;
    r->before = r->now;
    r->now = content;
    registration_export(r);
    pnet_content_release(before);
    return PMIXFAB_OK;
}

static void switch_plane(struct pnet_registry *registry, const char *name)
{
    const struct pnet_plane *plane = pnet_published_find(&registry->published, name);
    struct registration *r;
    int rc = PMIXFAB_OK;
    if (plane == NULL || plane->content == NULL)
        return;
    DL_FOREACH(registry->objects, r)
    {
        if (rc == PMIXFAB_OK && strcmp(r->now->plane.name, name) == 0)
            rc = switch_object(r, plane->content);
    }
    if (rc != PMIXFAB_OK)
        fab_log(PMIXFAB_LOG_ERROR, "plane %s: no memory for its new matrix", name);
}

int pnet_next(struct pnet_registry *registry, bool *pending, struct order_change **changes, uint32_t *n)
{
    struct order_step step = {.n = 0};
    *changes = NULL;
    *n = 0;
    pthread_mutex_lock(&registry->lock);
    if (registry->objects != NULL && event_order_next(registry->order, &step)) {
        for (uint32_t i = 0; i < step.n && !step.pending; i++)
            switch_plane(registry, step.changes[i].name);
        *changes = calloc(step.n, sizeof(**changes));
    }
    if (*changes != NULL) {
        memcpy(*changes, step.changes, step.n * sizeof(**changes));
        *n = step.n;
    }
    pthread_mutex_unlock(&registry->lock);
    *pending = step.pending;
    return step.n > 0 && *changes == NULL ? PMIXFAB_ERR_NOMEM : PMIXFAB_OK;
}
