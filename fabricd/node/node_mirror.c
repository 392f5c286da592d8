#include "fabricd/node/node_mirror.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/log.h"
#include "fabricd/base/loop.h"
#include "fabricd/base/timer.h"
#include "fabricd/serving/rundir.h"

#define FETCH_MS                                                                                             \
    600000 /* a large fabric's snapshot, while a thousand nodes fetch it; a lost connection ends it sooner   \
            */

/* A plane that is being fetched. */
struct fetched {
    struct channel_plane plane;   /* from the scheduler's news */
    struct served_plane *content; /* NULL: not fetched yet */
    bool fresh;                   /* differs from the served plane */
};

struct mirror {
    const struct config *config;
    struct channel_client *client;
    struct mirror_calls calls;
    struct served *served;
    struct timer *start;
    struct channel_news wanted;
    /* the generation that is being fetched */
    struct fetched *list; /* NULL: none */
    uint32_t n;
    uint64_t generation; /* of the news that are followed */
    int64_t published;
    bool asking;
    struct served_set *set;      /* the set that is being put in place; NULL: none yet */
    struct event_plane *changes; /* the changes of that set */
    uint32_t n_changes;
};

static void mirror_begin(struct mirror *m);
static bool mirror_needs(const struct mirror *m, uint64_t generation, int64_t published);
static void mirror_fetch_next(struct mirror *m);

/* ---- the end ------------------------------------------------------------------------------------ */

static void mirror_reset(struct mirror *m)
{
    for (uint32_t i = 0; i < m->n; i++)
        served_plane_put(m->list[i].content);
    free(m->list);
    m->list = NULL;
    m->n = 0;
    served_set_put(m->set);
    m->set = NULL;
    free(m->changes);
    m->changes = NULL;
    malloc_trim(0); /* otherwise two generations of a large fabric stay resident */
}

static void give_up(struct mirror *m, int code, const char *reason)
{
    mirror_reset(m);
    m->calls.done(code, reason, m->calls.cbdata);
}

/* ---- putting in place --------------------------------------------------------------------------- */

static void add_change(struct mirror *m, uint32_t index, const char *name)
{
    struct event_plane *plane = &m->changes[m->n_changes++];
    *plane = (struct event_plane){.index = index};
    snprintf(plane->name, sizeof(plane->name), "%s", name);
}

/* List the planes that are new or changed, and those that are gone. */
static bool list_changes(struct mirror *m)
{
    struct served_set *old = served_get(m->served);
    m->n_changes = 0;
    m->changes = calloc((size_t)m->n + old->n + 1, sizeof(*m->changes));
    for (uint32_t i = 0; m->changes != NULL && i < m->n; i++)
        if (m->list[i].fresh)
            add_change(m, (uint32_t)m->list[i].plane.index, m->list[i].plane.name);
    for (uint32_t i = 0; m->changes != NULL && i < old->n; i++)
        if (served_find(m->set, old->planes[i]->info.index) == NULL)
            add_change(m, old->planes[i]->info.index, old->planes[i]->info.name);
    served_set_put(old);
    return m->changes != NULL;
}

static int mirror_write_files(struct mirror *m, struct fab_err *err)
{
    const char *rundir = m->config->rundir;
    int rc = PMIXFAB_OK;
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < m->n; i++)
        if (m->list[i].fresh)
            rc = rundir_write(rundir, m->list[i].plane.name, m->list[i].content->bytes,
                              m->list[i].content->size, err);
    for (uint32_t i = 0; rc != PMIXFAB_OK && i < m->n; i++)
        if (m->list[i].fresh)
            rundir_discard(rundir, m->list[i].plane.name);
    return rc;
}

static struct served_set *mirror_make_set(const struct mirror *m)
{
    struct served_plane **planes = calloc(m->n + 1, sizeof(*planes));
    if (planes == NULL)
        return NULL;
    for (uint32_t i = 0; i < m->n; i++)
        planes[i] = served_plane_ref(m->list[i].content);
    struct served_set *set = served_set_new(planes, m->n, m->generation, m->published);
    for (uint32_t i = 0; set == NULL && i < m->n; i++)
        served_plane_put(planes[i]);
    free(planes);
    return set;
}

/* Report the result; begin again if the scheduler has published another generation meanwhile. */
static void mirror_finish(void *arg)
{
    struct mirror *m = arg;
    const bool again = !mirror_needs(m, m->generation, m->published);
    mirror_reset(m);
    m->calls.done(PMIXFAB_OK, "", m->calls.cbdata);
    if (again)
        mirror_begin(m);
}

static void mirror_put_in_place(void *arg)
{
    struct mirror *m = arg;
    const char *rundir = m->config->rundir;
    struct served_set *set = m->set;
    struct fab_err err = {""};
    uint32_t n_fresh = 0;
    rundir_begin(rundir, set->generation, m->changes, m->n_changes);
    for (uint32_t i = 0; i < m->n; i++) {
        n_fresh += m->list[i].fresh;
        if (m->list[i].fresh && rundir_commit(rundir, m->list[i].plane.name, &err) != PMIXFAB_OK)
            log_error("mirror: %s; callers on this host keep the old snapshot", err.text);
    }
    if (rundir_mend(rundir, set, served_is_stale(m->served), NULL, &err) != PMIXFAB_OK)
        log_error("mirror: %s", err.text);
    rundir_clean(rundir, set);
    rundir_end(rundir);
    const uint64_t generation = set->generation;
    m->set = NULL;
    served_swap(m->served, set);
    m->calls.served(m->calls.cbdata);
    log_info("mirror: generation %llu: %u of %u plane%s %s new", (unsigned long long)m->generation, n_fresh,
             m->n, m->n == 1 ? "" : "s", n_fresh == 1 ? "is" : "are");
    m->calls.changes(false, m->changes, m->n_changes, generation, mirror_finish, m, m->calls.cbdata);
}

static void mirror_publish_set(struct mirror *m)
{
    struct fab_err err = {""};
    m->set = mirror_make_set(m);
    int rc = m->set == NULL || !list_changes(m) ? fab_fail(&err, PMIXFAB_ERR_NOMEM, "out of memory")
                                                : mirror_write_files(m, &err);
    if (rc != PMIXFAB_OK || m->set == NULL)
        give_up(m, rc, err.text);
    else
        m->calls.changes(true, m->changes, m->n_changes, m->set->generation, mirror_put_in_place, m,
                         m->calls.cbdata);
}

/* ---- fetching ----------------------------------------------------------------------------------- */

static bool mirror_needs(const struct mirror *m, uint64_t generation, int64_t published)
{
    return m->wanted.generation == generation && m->wanted.published == published;
}

static struct fetched *first_missing(struct mirror *m)
{
    for (uint32_t i = 0; i < m->n; i++)
        if (m->list[i].content == NULL)
            return &m->list[i];
    return NULL;
}

static void mirror_fetch_failed(struct mirror *m, const struct fetched *one, const char *why)
{
    char text[300];
    snprintf(text, sizeof(text), "cannot fetch plane %s: %s", one->plane.name, why);
    give_up(m, PMIXFAB_ERR_IO, text);
}

/* Check the scheduler's bytes before use. */
static void take_bytes(struct mirror *m, struct fetched *one, void *bytes, size_t size)
{
    struct fab_err err = {""};
    struct served_plane *plane = NULL;
    if (served_plane_new(bytes, size, m->config->rundir, &plane, &err) != PMIXFAB_OK) {
        mirror_fetch_failed(m, one, err.text);
        return;
    }
    if (plane->info.generation == one->plane.generation &&
        (plane->info.index != one->plane.index || strcmp(plane->info.name, one->plane.name) != 0)) {
        served_plane_put(plane);
        mirror_fetch_failed(m, one, "the answer contains another plane");
        return;
    }
    if (plane->info.generation != one->plane.generation) {
        log_debug("mirror: plane %s has changed meanwhile", one->plane.name);
        served_plane_put(plane);
        mirror_reset(m);
        if (!mirror_needs(m, m->generation, m->published))
            mirror_begin(m);
        return; /* otherwise the news of that change will follow */
    }
    one->content = plane;
    one->fresh = true;
    mirror_fetch_next(m);
}

static void on_bytes(struct channel_reply *reply, void *cbdata)
{
    struct mirror *m = cbdata;
    struct fetched *one = first_missing(m);
    uint8_t *bytes = reply->body;
    m->asking = false;
    if (one == NULL)
        return; /* abandoned meanwhile */
    if (reply->code == PMIXFAB_OK) {
        reply->body = NULL;
        take_bytes(m, one, bytes, reply->size);
    } else if (reply->code == PMIXFAB_ERR_NOTFOUND && !reply->away) {
        log_debug("mirror: plane %s has changed meanwhile", one->plane.name);
        mirror_reset(m);
        if (!mirror_needs(m, m->generation, m->published))
            mirror_begin(m);  /* otherwise the news of that change will follow */
    } else if (reply->away) { /* the scheduler does not answer: no fault of a plane */
        give_up(m, reply->code, reply->reason);
    } else {
        mirror_fetch_failed(m, one, reply->reason);
    }
}

static int mirror_request(struct mirror *m, const struct channel_plane *plane)
{
    const struct channel_fetch fetch = {.index = plane->index, .generation = plane->generation};
    uint8_t *body = malloc(CHANNEL_MAX_WORDS);
    if (body == NULL)
        return PMIXFAB_ERR_NOMEM;
    const int rc = channel_client_ask(m->client, CHANNEL_FETCH, body, channel_put_fetch(&fetch, body),
                                      plane->size, FETCH_MS, on_bytes, m);
    m->asking = rc == PMIXFAB_OK;
    return rc;
}

/* ---- following ---------------------------------------------------------------------------------- */

static void mirror_begin(struct mirror *m)
{
    struct served_set *set = served_get(m->served);
    m->generation = m->wanted.generation;
    m->published = m->wanted.published;
    m->list = calloc(m->wanted.n + 1, sizeof(*m->list));
    m->n = m->list == NULL ? 0 : m->wanted.n;
    for (uint32_t i = 0; i < m->n; i++) {
        struct fetched *one = &m->list[i];
        one->plane = m->wanted.planes[i];
        const struct served_plane *served = served_find(set, one->plane.index);
        if (served != NULL && served->info.generation == one->plane.generation &&
            served->info.published == one->plane.published && strcmp(served->info.name, one->plane.name) == 0)
            one->content = served_plane_ref((struct served_plane *)served);
    }
    served_set_put(set);
    if (m->list == NULL)
        give_up(m, PMIXFAB_ERR_NOMEM, "out of memory");
    else
        mirror_fetch_next(m);
}

static void mirror_fetch_next(struct mirror *m)
{
    if (m->list != NULL && !mirror_needs(m, m->generation, m->published)) {
        mirror_reset(m);
        mirror_begin(m); /* the scheduler has published another generation */
        return;
    }
    struct fetched *one = first_missing(m);
    if (one == NULL) {
        mirror_publish_set(m);
        return;
    }
    const int rc = mirror_request(m, &one->plane);
    if (rc != PMIXFAB_OK)
        mirror_fetch_failed(m, one, pmixfab_strerror(rc));
}

static void mirror_on_start(void *arg)
{
    struct mirror *m = arg;
    if (m->list == NULL && !m->asking)
        mirror_begin(m);
}

/* ---- for the node ------------------------------------------------------------------------------- */

void mirror_news(struct mirror *m, const struct channel_news *news)
{
    struct served_set *set = served_get(m->served);
    bool same = set->generation == news->generation && set->published == news->published;
    served_set_put(set);
    /* A scheduler that has lost its data and not swept yet: the old state is better than none. */
    if (same || news->generation == 0) {
        if (same)
            m->calls.done(PMIXFAB_OK, "", m->calls.cbdata);
        else
            m->calls.done(PMIXFAB_ERR_NOTFOUND, "it has published nothing yet", m->calls.cbdata);
        return;
    }
    struct channel_plane *planes = malloc((news->n + 1) * sizeof(*planes));
    if (planes == NULL)
        return; /* the next news will follow */
    if (news->n > 0)
        memcpy(planes, news->planes, news->n * sizeof(*planes));
    free(m->wanted.planes);
    m->wanted = *news;
    m->wanted.planes = planes;
    if (m->list != NULL || timer_pending(m->start))
        return;
    timer_after(m->start, m->config->once ? 0 : chance_below(m->config->mirror_delay_ms + 1));
}

bool mirror_is_busy(const struct mirror *m)
{
    return m->list != NULL || m->asking || timer_pending(m->start);
}

uint64_t mirror_announced(const struct mirror *m)
{
    struct served_set *set = served_get(m->served);
    const uint64_t served = set->generation;
    served_set_put(set);
    /* The files are in place, but the events are not sent yet. */
    const bool announcing = m->changes != NULL && m->set == NULL;
    return announcing ? served - 1 : served;
}

int mirror_new(struct event_base *base, const struct config *config, struct channel_client *client,
               const struct mirror_calls *calls, struct served *served, struct mirror **out,
               struct fab_err *err)
{
    struct served_set *set = NULL;
    struct mirror *m = *out = calloc(1, sizeof(*m));
    if (m == NULL || (m->start = timer_new(base, mirror_on_start, m)) == NULL) {
        free(m);
        *out = NULL;
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    }
    m->config = config;
    m->client = client;
    m->calls = *calls;
    m->served = served;
    int rc = rundir_load(config->rundir, &set, err);
    if (rc != PMIXFAB_OK) {
        mirror_free(m);
        *out = NULL;
        return rc;
    }
    rundir_clean(config->rundir, set);
    rundir_end(config->rundir);
    served_swap(m->served, set);
    return PMIXFAB_OK;
}

void mirror_free(struct mirror *m)
{
    if (m == NULL)
        return;
    mirror_reset(m);
    timer_free(m->start);
    free(m->wanted.planes);
    free(m);
}
