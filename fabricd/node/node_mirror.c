#include "fabricd/node/node_mirror.h"

#include <malloc.h>
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/base/chance.h"
#include "fabricd/base/log.h"
#include "fabricd/base/loop.h"
#include "fabricd/base/timer.h"
#include "fabricd/serving/rundir.h"
#include "pmix/answers/info.h"

#define FETCH_MS 60000 /* a large fabric's snapshot, while a thousand nodes fetch it */

/* One plane on its way here. */
struct fetched {
    struct relay_plane plane;     /* as the scheduler says */
    struct served_plane *content; /* NULL: not there yet */
    bool fresh;                   /* not what was served before */
    bool asked_identity;
};

struct mirror {
    const struct config *config;
    struct loop_queue *queue;
    struct mirror_calls calls;
    struct served *served;
    struct timer *start;
    struct relay_news wanted;
    bool trusted; /* planes of equal generation are equal: what is served is of this scheduler's history */
    /* the following, under way */
    struct fetched *list; /* NULL: nothing is */
    uint32_t n;
    uint64_t generation; /* of the news that are followed */
    int64_t published;
    bool asking;
    struct served_set *set;      /* being put in place; NULL: it is not that far */
    struct event_plane *changes; /* that it brings */
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
    malloc_trim(0); /* two generations of a large fabric would stay resident otherwise */
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

/* Planes that are new, and those that are gone. */
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

static int write_files(struct mirror *m, struct fab_err *err)
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

/* The last step: what came of it; and on, where the scheduler has gone on meanwhile. */
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
            log_error("mirror: %s; callers on this host go on with the old snapshot", err.text);
    }
    if (rundir_mend(rundir, set, served_is_stale(m->served), NULL, &err) != PMIXFAB_OK)
        log_error("mirror: %s", err.text);
    rundir_clean(rundir, set); /* ends what is pending, too */
    const uint64_t generation = set->generation;
    m->set = NULL;
    served_swap(m->served, set);
    m->trusted = true;
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
                                                : write_files(m, &err);
    if (rc != PMIXFAB_OK)
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

static int mirror_request(struct mirror *m, const struct relay_plane *plane, char **keys,
                          loop_queue_answer_fn fn)
{
    pmix_info_t qualifier, info;
    pmix_query_t query = {.keys = keys, .qualifiers = &qualifier, .nqual = 1};
    pmix_data_array_t queries = {.type = PMIX_QUERY, .size = 1, .array = &query};
    PMIX_INFO_LOAD(&qualifier, PMIX_FABRIC_PLANE, plane->name, PMIX_STRING);
    PMIX_INFO_CONSTRUCT(&info);
    PMIX_LOAD_KEY(info.key, RELAY_QUERIES);
    info.value.type = PMIX_DATA_ARRAY;
    info.value.data.darray = &queries; /* lent: relay_ask() copies it */
    int rc = loop_queue_ask(m->queue, RELAY_QUERY, &info, 1, FETCH_MS, fn, m);
    PMIX_INFO_DESTRUCT(&qualifier);
    m->asking = rc == PMIXFAB_OK;
    return rc;
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
    snprintf(text, sizeof(text), "plane %s cannot be fetched: %s", one->plane.name, why);
    give_up(m, PMIXFAB_ERR_IO, text);
}

/* Where it is the scheduler that does not answer, no plane is to blame. */
static void not_answered(struct mirror *m, const struct fetched *one, pmix_status_t status)
{
    if (status == PMIX_ERR_UNREACH)
        give_up(m, PMIXFAB_ERR_UNREACH, "the scheduler cannot be reached");
    else if (status == PMIX_ERR_TIMEOUT)
        give_up(m, PMIXFAB_ERR_TIMEOUT, "the scheduler does not answer in time");
    else
        mirror_fetch_failed(m, one,
                            status == PMIX_SUCCESS ? "the answer is none" : PMIx_Error_string(status));
}

/* The scheduler's bytes, which nothing is believed of before they were checked. */
static void take_bytes(struct mirror *m, struct fetched *one, pmix_byte_object_t *bytes)
{
    struct fab_err err = {""};
    struct served_plane *plane = NULL;
    void *own = bytes->bytes;
    size_t size = bytes->size;
    bytes->bytes = NULL;
    bytes->size = 0;
    if (served_plane_new(own, size, m->config->rundir, &plane, &err) != PMIXFAB_OK) {
        mirror_fetch_failed(m, one, err.text);
        return;
    }
    if (plane->info.generation == one->plane.generation &&
        (plane->info.index != one->plane.index || strcmp(plane->info.name, one->plane.name) != 0)) {
        served_plane_put(plane);
        mirror_fetch_failed(m, one, "the answer is another plane");
        return;
    }
    if (plane->info.generation != one->plane.generation) {
        log_debug("mirror: plane %s has changed meanwhile", one->plane.name);
        served_plane_put(plane);
        mirror_reset(m);
        if (!mirror_needs(m, m->generation, m->published))
            mirror_begin(m);
        return; /* else the news of that are on their way */
    }
    one->content = plane;
    one->fresh = true;
    mirror_fetch_next(m);
}

static void on_bytes(struct loop_queue_answer *answer, void *cbdata)
{
    struct mirror *m = cbdata;
    struct fetched *one = first_missing(m);
    m->asking = false;
    if (one == NULL)
        return; /* given up meanwhile */
    pmix_value_t *bytes = loop_queue_value(answer, PMIXFAB_KEY_SNAPSHOT, PMIX_BYTE_OBJECT);
    if (answer->status != PMIX_SUCCESS || bytes == NULL || bytes->data.bo.bytes == NULL)
        not_answered(m, one, answer->status);
    else
        take_bytes(m, one, &bytes->data.bo);
}

/* Is what is served under this number what the scheduler means, although its history may be another? */
static void on_identity(struct loop_queue_answer *answer, void *cbdata)
{
    struct mirror *m = cbdata;
    struct fetched *one = first_missing(m);
    m->asking = false;
    if (one == NULL)
        return;
    const pmix_value_t *published = loop_queue_value(answer, FAB_KEY_PUBLISHED, PMIX_INT64);
    const pmix_value_t *generation = loop_queue_value(answer, PMIXFAB_KEY_GENERATION, PMIX_UINT64);
    if (answer->status != PMIX_SUCCESS || published == NULL || generation == NULL) {
        not_answered(m, one, answer->status);
        return;
    }
    struct served_set *set = served_get(m->served);
    const struct served_plane *served = served_find(set, (uint32_t)one->plane.index);
    one->asked_identity = true;
    if (served != NULL && served->info.published == published->data.int64 &&
        served->info.generation == generation->data.uint64)
        one->content = served_plane_ref((struct served_plane *)served);
    served_set_put(set);
    mirror_fetch_next(m);
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
        const struct served_plane *served = served_find(set, (uint32_t)m->wanted.planes[i].index);
        struct fetched *one = &m->list[i];
        one->plane = m->wanted.planes[i];
        if (served == NULL || served->info.generation != one->plane.generation ||
            strcmp(served->info.name, one->plane.name) != 0)
            one->asked_identity = true; /* not the same: there is nothing to ask */
        else if (m->trusted)
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
    char *identity[] = {PMIXFAB_KEY_GENERATION, FAB_KEY_PUBLISHED, NULL};
    char *bytes[] = {PMIXFAB_KEY_SNAPSHOT, NULL};
    if (m->list != NULL && !mirror_needs(m, m->generation, m->published)) {
        mirror_reset(m);
        mirror_begin(m); /* the scheduler has gone on */
        return;
    }
    struct fetched *one = first_missing(m);
    if (one == NULL) {
        mirror_publish_set(m);
        return;
    }
    int rc = one->asked_identity ? mirror_request(m, &one->plane, bytes, on_bytes)
                                 : mirror_request(m, &one->plane, identity, on_identity);
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

void mirror_news(struct mirror *m, const struct relay_news *news)
{
    struct served_set *set = served_get(m->served);
    bool same = set->generation == news->generation && set->published == news->published;
    served_set_put(set);
    /* A scheduler that has lost everything and not looked yet: nothing is better than what was there. */
    if (same || news->generation == 0) {
        m->trusted |= same;
        if (same)
            m->calls.done(PMIXFAB_OK, "", m->calls.cbdata);
        else
            m->calls.done(PMIXFAB_ERR_NOTFOUND, "it has published nothing yet", m->calls.cbdata);
        return;
    }
    struct relay_plane *planes = malloc((news->n + 1) * sizeof(*planes));
    if (planes == NULL)
        return; /* the next news come */
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
    /* The files are in place, the events are on their way. */
    const bool announcing = m->changes != NULL && m->set == NULL;
    return announcing ? served - 1 : served;
}

void mirror_lost(struct mirror *m)
{
    m->trusted = false;
}

int mirror_new(struct event_base *base, const struct config *config, struct loop_queue *queue,
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
    m->queue = queue;
    m->calls = *calls;
    m->served = served;
    int rc = rundir_load(config->rundir, &set, err);
    if (rc != PMIXFAB_OK) {
        mirror_free(m);
        *out = NULL;
        return rc;
    }
    rundir_clean(config->rundir, set);
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
