#include "mca/pnet/plane_registry.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "pmix/answers/request.h"
#include "pmix/rundir/rundir_watch.h"
#include "pmix/rundir/snapshots.h"
#include "topo/base/library_log.h"

/* A registered object. Each content that is not NULL counts it as a user. */
struct registration {
    struct registration *prev, *next;
    pmix_fabric_t *object;
    struct pnet_tag tag;
    struct rundir_content *now;        /* the content that the object shows */
    struct rundir_content *before;     /* the content until the last switch */
    struct rundir_content *last_given; /* the content of the last register or update */
};

struct pnet_registry {
    pthread_mutex_t lock;
    char *rundir;
    struct rundir_snapshots *snapshots; /* used here only: the lock covers them, too */
    struct registration *objects;
    struct dir_watch *watch;
    pnet_announce_fn announce;
    void *cbdata;
};

static bool has_objects(const char *plane, void *cbdata)
{
    const struct pnet_registry *registry = cbdata;
    const struct registration *r;
    DL_FOREACH(registry->objects, r)
    {
        if (strcmp(r->now->plane.name, plane) == 0)
            return true;
    }
    return false;
}

int pnet_registry_new(const char *rundir, struct pnet_registry **out)
{
    if (out == NULL)
        return PMIXFAB_ERR_INVAL;
    *out = NULL;
    if (rundir == NULL)
        return PMIXFAB_ERR_INVAL;
    struct pnet_registry *registry = calloc(1, sizeof(*registry));
    if (registry == NULL)
        return PMIXFAB_ERR_NOMEM;
    pthread_mutex_init(&registry->lock, NULL);
    registry->rundir = strdup(rundir);
    int rc =
        registry->rundir == NULL ? PMIXFAB_ERR_NOMEM : rundir_snapshots_new(rundir, &registry->snapshots);
    if (rc != PMIXFAB_OK) {
        pnet_registry_free(registry);
        return rc;
    }
    rundir_snapshots_for_objects(registry->snapshots, has_objects, registry);
    *out = registry;
    return PMIXFAB_OK;
}

static void free_registration(struct pnet_registry *registry, struct registration *r)
{
    DL_DELETE(registry->objects, r);
    rundir_content_release(r->last_given);
    rundir_content_release(r->before);
    rundir_content_release(r->now);
    if (r->tag.free != NULL)
        r->tag.free(r->tag.tag);
    free(r);
}

void pnet_registry_free(struct pnet_registry *registry)
{
    if (registry == NULL)
        return;
    dir_watch_stop(registry->watch);
    while (registry->objects != NULL)
        free_registration(registry, registry->objects);
    rundir_snapshots_free(registry->snapshots);
    free(registry->rundir);
    pthread_mutex_destroy(&registry->lock);
    free(registry);
}

/* ---- objects ---------------------------------------------------------------------------------------- */

/*
 * Find an object by its tag, else by its address. An object that its owner has moved has its new address from
 * then on.
 */
static struct registration *registry_find(struct pnet_registry *registry, pmix_fabric_t *fabric)
{
    struct registration *r;
    DL_FOREACH(registry->objects, r)
    {
        if (r->tag.tag != NULL && r->tag.tag == fabric->module) {
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

/* The default plane first, then by index. */
static pmix_status_t registry_choose(struct pnet_registry *registry, const struct fab_request *request,
                                     struct rundir_content **out, struct fab_err *err)
{
    struct rundir_planes planes;
    *out = NULL;
    (void)rundir_planes_get(registry->snapshots, &planes, err);
    const bool any = planes.n > 0;
    for (uint32_t i = 0; i < planes.n && *out == NULL; i++) {
        const struct pmixfab_plane *plane = &planes.contents[i]->plane;
        if (fab_request_matches(request, plane) && (plane->is_default || !fab_request_empty(request)))
            *out = planes.contents[i];
    }
    rundir_planes_put(&planes);
    if (*out != NULL)
        return PMIX_SUCCESS;
    if (!any)
        return PMIX_ERR_UNREACH;
    fab_fail(err, PMIXFAB_ERR_NOTFOUND, "%s: the requested plane is not published there", registry->rundir);
    return PMIX_ERR_NOT_FOUND;
}

static pmix_status_t register_locked(struct pnet_registry *registry, const struct fab_request *request,
                                     pmix_fabric_t *fabric, const struct pnet_tag *tag, struct fab_err *err)
{
    struct rundir_content *content;
    struct registration *r = NULL;
    pmix_status_t rc = registry_choose(registry, request, &content, err);
    if (rc != PMIX_SUCCESS)
        goto failed;
    r = calloc(1, sizeof(*r));
    if (r == NULL || rundir_content_use(content) != PMIXFAB_OK) {
        fab_fail(err, PMIXFAB_ERR_NOMEM, "plane %s: no memory for its matrix", content->plane.name);
        rc = PMIX_ERR_NOMEM;
        goto failed;
    }
    if (!has_objects(content->plane.name, registry))
        rundir_snapshots_know(registry->snapshots, content->plane.name);
    r->object = fabric;
    if (tag != NULL)
        r->tag = *tag;
    r->now = r->last_given = content;
    r->last_given->users++;
    DL_APPEND(registry->objects, r);
    registration_export(r);
    return PMIX_SUCCESS;

failed:
    free(r);
    if (registry->objects == NULL)
        rundir_snapshots_forget(registry->snapshots);
    return rc;
}

pmix_status_t pnet_register(struct pnet_registry *registry, const pmix_info_t *directives, size_t n,
                            pmix_fabric_t *fabric, const struct pnet_tag *tag, struct fab_err *err)
{
    struct fab_request request;
    if (registry == NULL || fabric == NULL)
        return PMIX_ERR_BAD_PARAM;
    pmix_status_t rc = fab_request_parse(directives, n, &request);
    /* objects of one plane share their infos: no devices, and no other view */
    if (rc == PMIX_SUCCESS && fab_request_refused(&request, FAB_HEEDS_CONTENTS | FAB_HEEDS_MATRIX))
        rc = PMIX_ERR_NOT_SUPPORTED;
    if (rc != PMIX_SUCCESS) {
        fab_fail(err, PMIXFAB_ERR_INVAL,
                 "directives of a wrong type, empty, contradictory, or required but not supported in a "
                 "server's own process");
        return rc;
    }
    pthread_mutex_lock(&registry->lock);
    /* The owner reuses an object that it never deregistered. */
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
    struct rundir_content *newest = NULL;
    struct rundir_planes planes;
    bool gone;
    int rc = rundir_planes_get(registry->snapshots, &planes, err);
    for (uint32_t i = 0; i < planes.n && newest == NULL; i++)
        if (strcmp(planes.contents[i]->plane.name, name) == 0)
            newest = planes.contents[i];
    (void)rundir_snapshots_last(registry->snapshots, name, &gone);
    rundir_planes_put(&planes);
    if (rc != PMIXFAB_OK)
        return PMIX_ERR_UNREACH;
    if (newest == NULL) {
        fab_fail(err, PMIXFAB_ERR_NOTFOUND, "plane %s: %s", name,
                 gone ? "no longer exists" : "its snapshot is missing or cannot be read");
        return gone ? PMIX_ERR_NOT_FOUND : PMIX_ERR_UNREACH;
    }
    struct rundir_content *now = r->now, *before = r->before, *last_given = r->last_given;
    unsigned own = 1u + (before == now) + (last_given == now);
    if (rundir_content_use_instead(newest, now, own) != PMIXFAB_OK) {
        fab_fail(err, PMIXFAB_ERR_NOMEM, "plane %s: no memory for its matrix", name);
        return PMIX_ERR_NOMEM;
    }
    r->now = r->last_given = newest;
    r->last_given->users++;
    r->before = NULL;
    registration_export(r);
    rundir_content_release(last_given);
    rundir_content_release(before);
    rundir_content_release(now);
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
        fab_fail(err, PMIXFAB_ERR_INVAL, "the object is not registered here");
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
            rundir_snapshots_forget(registry->snapshots);
    }
    pthread_mutex_unlock(&registry->lock);
    return r == NULL ? PMIX_ERR_BAD_PARAM : PMIX_SUCCESS;
}

/* ---- changes ----------------------------------------------------------------------------------------- */

/* Show the newest content in an object. PMIXFAB_ERR_NOMEM: it is unchanged. */
static int switch_object(struct registration *r, struct rundir_content *content)
{
    if (r->now == content)
        return PMIXFAB_OK; /* its owner has updated it already */
    int rc = rundir_content_use(content);
    if (rc != PMIXFAB_OK)
        return rc;
    struct rundir_content *before = r->before;
    r->before = r->now;
    r->now = content;
    registration_export(r);
    rundir_content_release(before);
    return PMIXFAB_OK;
}

static void switch_plane(struct pnet_registry *registry, const char *name)
{
    bool gone;
    struct rundir_content *content = rundir_snapshots_last(registry->snapshots, name, &gone);
    struct registration *r;
    int rc = PMIXFAB_OK;
    if (content == NULL)
        return;
    DL_FOREACH(registry->objects, r)
    {
        if (rc == PMIXFAB_OK && strcmp(r->now->plane.name, name) == 0)
            rc = switch_object(r, content);
    }
    if (rc != PMIXFAB_OK)
        fab_log(PMIXFAB_LOG_ERROR, "plane %s: no memory for its new matrix", name);
}

int pnet_next(struct pnet_registry *registry, struct pnet_news *out)
{
    struct order_step step = {.n = 0};
    *out = (struct pnet_news){.pending = false};
    pthread_mutex_lock(&registry->lock);
    if (registry->objects != NULL) {
        out->again = rundir_snapshots_look(registry->snapshots);
        (void)rundir_snapshots_next(registry->snapshots, &step);
    }
    out->pending = step.pending;
    for (uint32_t i = 0; i < step.n && !step.pending; i++)
        switch_plane(registry, step.changes[i].name);
    if (step.n > 0)
        out->changes = calloc(step.n, sizeof(*out->changes));
    if (out->changes != NULL) {
        memcpy(out->changes, step.changes, step.n * sizeof(*out->changes));
        out->n = step.n;
    }
    pthread_mutex_unlock(&registry->lock);
    return step.n > 0 && out->changes == NULL ? PMIXFAB_ERR_NOMEM : PMIXFAB_OK;
}

/* Handle all changes, until there is none: a generation may be published while another is announced. */
static bool bring_news(struct dir_watch *watch, void *cbdata)
{
    struct pnet_registry *registry = cbdata;
    struct pnet_news news = {.n = 1};
    while (news.n > 0 && !dir_watch_stopping(watch)) {
        if (pnet_next(registry, &news) != PMIXFAB_OK)
            fab_log(PMIXFAB_LOG_ERROR, "%s: no memory for the events of a new generation", registry->rundir);
        for (uint32_t i = 0; i < news.n && !dir_watch_stopping(watch); i++)
            registry->announce(news.pending, &news.changes[i], registry->cbdata);
        free(news.changes);
    }
    return news.again;
}

int pnet_watch(struct pnet_registry *registry, pnet_announce_fn announce, void *cbdata)
{
    int rc = PMIXFAB_OK;
    pthread_mutex_lock(&registry->lock);
    if (registry->watch == NULL) {
        registry->announce = announce;
        registry->cbdata = cbdata;
        rc = dir_watch_start(registry->rundir, bring_news, registry, &registry->watch);
    }
    pthread_mutex_unlock(&registry->lock);
    return rc;
}
