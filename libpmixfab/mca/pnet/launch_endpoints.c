/*
 * launch_endpoints.c - take a starter's endpoints with the job's launch information, and release them at the
 * end of the job. This uses the control socket of the fabricd on the starter's host, where the kernel
 * identifies the starter (docs/control.md, "endpoints").
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "mca/pnet/pnet_component.h"
#include "pmix/launch/job_endpoints.h"
#include "topo/base/milliseconds.h"
#include "topo/model/model.h"

#include <src/class/pmix_list.h>

#define MAX_SECONDS 600
#define ANSWER_MAX  (4u << 20) /* bytes */
#define AGAIN_MS    100

/* ---- the control socket ----------------------------------------------------------------------------- */

/* Limit the wait of the next call on the socket; PMIXFAB_ERR_TIMEOUT: the time is over. */
static int endpoints_limit(int fd, int64_t until)
{
    const int64_t left = until - fab_now_ms();
    const struct timeval limit = {.tv_sec = left / 1000, .tv_usec = left % 1000 * 1000};
    if (left <= 0)
        return PMIXFAB_ERR_TIMEOUT;
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    return PMIXFAB_OK;
}

/* Return whether to retry after the last call on the socket failed. */
static bool endpoints_may_retry(void)
{
    return errno == EAGAIN || errno == EINTR;
}

static int endpoints_connect(int64_t until, int *out)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int length =
        snprintf(address.sun_path, sizeof(address.sun_path), "%s/control.sock", pnet_launch_params.rundir);
    const int fd = *out = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || length >= (int)sizeof(address.sun_path))
        return PMIXFAB_ERR_UNREACH;
    int rc = endpoints_limit(fd, until);
    while (rc == PMIXFAB_OK && connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0)
        rc = endpoints_may_retry() ? endpoints_limit(fd, until) : PMIXFAB_ERR_UNREACH;
    return rc;
}

static int endpoints_send(int fd, const char *line, int64_t until)
{
    for (size_t left = strlen(line); left > 0;) {
        int rc = endpoints_limit(fd, until);
        const ssize_t n = rc == PMIXFAB_OK ? send(fd, line, left, MSG_NOSIGNAL) : 0;
        if (rc != PMIXFAB_OK)
            return rc;
        if (n < 0 && !endpoints_may_retry())
            return PMIXFAB_ERR_UNREACH;
        line += n > 0 ? n : 0;
        left -= n > 0 ? (size_t)n : 0;
    }
    return PMIXFAB_OK;
}

/* Receive one line. */
static int endpoints_receive(int fd, int64_t until, struct fab_bytes *out)
{
    char piece[4096];
    while (out->n == 0 || out->at[out->n - 1] != '\n') {
        int rc = endpoints_limit(fd, until);
        const ssize_t n = rc == PMIXFAB_OK ? recv(fd, piece, sizeof(piece), 0) : 0;
        if (rc != PMIXFAB_OK)
            return rc;
        if (n == 0 || (n < 0 && !endpoints_may_retry()) || out->n > ANSWER_MAX)
            return PMIXFAB_ERR_UNREACH;
        if (n > 0)
            fab_bytes_add(out, piece, (size_t)n);
        if (out->failed)
            return PMIXFAB_ERR_NOMEM;
    }
    return PMIXFAB_OK;
}

/* Try once. *there becomes true if a process listens. */
static int endpoints_try(const char *line, int64_t until, bool *there, json_t **answer, struct fab_err *err)
{
    struct fab_bytes bytes = {.n = 0};
    int fd, rc = endpoints_connect(until, &fd);
    *there |= rc == PMIXFAB_OK;
    if (rc == PMIXFAB_OK)
        rc = endpoints_send(fd, line, until);
    if (rc == PMIXFAB_OK)
        rc = endpoints_send(fd, "\n", until);
    if (rc == PMIXFAB_OK)
        rc = endpoints_receive(fd, until, &bytes);
    if (fd >= 0)
        close(fd);
    if (rc == PMIXFAB_OK && (*answer = json_loadb((char *)bytes.at, bytes.n, 0, NULL)) == NULL)
        rc = PMIXFAB_ERR_FOREIGN;
    free(bytes.at);
    if (rc != PMIXFAB_OK)
        return fab_fail(err, rc, "endpoints: %s/control.sock: %s", pnet_launch_params.rundir,
                        pmixfab_strerror(rc));
    if (!json_is_true(json_object_get(*answer, "ok"))) {
        const char *message = json_string_value(json_object_get(*answer, "message"));
        rc = (int)json_integer_value(json_object_get(*answer, "error"));
        rc = fab_fail(err, rc < 0 ? rc : PMIXFAB_ERR_FOREIGN, "%s", message != NULL ? message : "no message");
        json_decref(*answer);
        *answer = NULL;
    }
    return rc;
}

/*
 * Send a request, which is taken over; *answer is a success, else an error is returned. A busy fabricd
 * reports that, or closes the connection: then the request is sent again. It may have been received before
 * the close, so that is never "no fabricd".
 */
static int endpoints_ask(json_t *question, json_t **answer, struct fab_err *err)
{
    const struct timespec pause = {.tv_nsec = AGAIN_MS * 1000000};
    const int asked = pnet_launch_params.seconds;
    const int seconds = asked < 1 ? 1 : asked > MAX_SECONDS ? MAX_SECONDS : asked;
    const int64_t until = fab_now_ms() + (int64_t)seconds * 1000;
    char *line = question == NULL ? NULL : json_dumps(question, JSON_COMPACT);
    bool there = false;
    *answer = NULL;
    json_decref(question);
    if (line == NULL)
        return fab_fail(err, PMIXFAB_ERR_SYNTAX, "endpoints: the job's name is not UTF-8, or no memory");
    int rc = endpoints_try(line, until, &there, answer, err);
    while (there && (rc == PMIXFAB_ERR_BUSY || rc == PMIXFAB_ERR_UNREACH) &&
           fab_now_ms() + AGAIN_MS < until) {
        nanosleep(&pause, NULL);
        rc = endpoints_try(line, until, &there, answer, err);
    }
    free(line);
    return there && rc == PMIXFAB_ERR_UNREACH ? PMIXFAB_ERR_TIMEOUT : rc;
}

struct endpoints_planes {
    const char *const *names;
    uint32_t n;
};

/* Read [plane, first, last], with the name of one of the planes. Return false if it is invalid. */
static bool endpoints_row(const struct endpoints_planes *planes, json_t *row, struct fab_blob_endpoints *out)
{
    const char *plane = json_string_value(json_array_get(row, 0));
    const json_int_t first = json_integer_value(json_array_get(row, 1));
    const json_int_t last = json_integer_value(json_array_get(row, 2));
    *out = (struct fab_blob_endpoints){.first = (uint32_t)first, .last = (uint32_t)last};
    for (uint32_t i = 0; plane != NULL && i < planes->n; i++)
        if (strcmp(planes->names[i], plane) == 0)
            out->plane = planes->names[i];
    return out->plane != NULL && first > 0 && first <= last && last <= UINT32_MAX;
}

/*
 * Take endpoints; the result is the job's endpoints with the plane names of `wanted`, to be freed with
 * free(). PMIXFAB_ERR_UNREACH: there is no fabricd. _TIMEOUT: no answer in time. Else fabricd's own error.
 */
static int endpoints_take(const char *job, const struct endpoints_planes *wanted, uint32_t count,
                          struct fab_blob_endpoints **out, uint32_t *n, struct fab_err *err)
{
    json_t *planes = json_array(), *answer = NULL, *list, *row;
    *out = NULL;
    *n = 0;
    for (uint32_t p = 0; p < wanted->n; p++)
        json_array_append_new(planes, json_string(wanted->names[p]));
    int rc = endpoints_ask(json_pack("{s:s, s:I, s:s, s:o}", "op", "endpoints", "take", (json_int_t)count,
                                     "job", job, "planes", planes),
                           &answer, err);
    if (rc != PMIXFAB_OK)
        goto cleanup;
    list = json_object_get(answer, "endpoints");
    *out = calloc(json_array_size(list) + 1, sizeof(**out));
    if (*out == NULL) {
        rc = fab_fail(err, PMIXFAB_ERR_NOMEM, "endpoints: out of memory");
        goto cleanup;
    }
    bool good = json_array_size(list) > 0;
    for (size_t i = 0; good && (row = json_array_get(list, i)) != NULL; i++)
        good = endpoints_row(wanted, row, &(*out)[(*n)++]);
    if (!good)
        rc = fab_fail(err, PMIXFAB_ERR_FOREIGN, "endpoints: invalid answer of fabricd");

cleanup:
    json_decref(answer);
    if (rc != PMIXFAB_OK) {
        free(*out);
        *out = NULL;
        *n = 0;
    }
    return rc;
}

/* Release the job's endpoints. */
static int endpoints_give_back(const char *job, struct fab_err *err)
{
    json_t *answer = NULL;
    int rc = endpoints_ask(json_pack("{s:s, s:b, s:s}", "op", "endpoints", "give_back", 1, "job", job),
                           &answer, err);
    json_decref(answer);
    return rc;
}

/* ---- jobs with requests ------------------------------------------------------------------------------- */

/* The jobs with requests. On the library's thread. */
static struct asked_job {
    struct asked_job *next;
    pmix_namespace_t *held; /* by an entry of ours in the library's list */
    bool may_have;          /* fabricd was there, and a take with a lost answer may have succeeded */
    bool ended;             /* but fabricd could not be informed */
    char nspace[PMIX_MAX_NSLEN + 1];
} * asked_jobs;

static struct asked_job **asked_find(const char *nspace)
{
    struct asked_job **at = &asked_jobs;
    while (*at != NULL && strcmp((*at)->nspace, nspace) != 0)
        at = &(*at)->next;
    return at;
}

/*
 * Up to 6.1 the library reports to a component only the end of jobs that it keeps variables of. An entry of
 * its list holds the job, and does not release it: its creator does.
 */
static bool asked_watch(struct asked_job *asked, pmix_namespace_t *job)
{
#if PMIX_VERSION_MAJOR >= 7
    (void)asked, (void)job;
    return true;
#else
    pmix_nspace_env_cache_t *cache;
    PMIX_LIST_FOREACH(cache, &pmix_pnet_globals.nspaces, pmix_nspace_env_cache_t)
    {
        if (strcmp(cache->ns->nspace, job->nspace) == 0)
            return true;
    }
    if ((cache = PMIX_NEW(pmix_nspace_env_cache_t)) == NULL)
        return false;
    PMIX_RETAIN(job);
    cache->ns = asked->held = job;
    pmix_list_append(&pmix_pnet_globals.nspaces, &cache->super);
    return true;
#endif
}

static bool asked_remember(pmix_namespace_t *job)
{
    struct asked_job **at = asked_find(job->nspace);
    if (*at == NULL && (*at = calloc(1, sizeof(**at))) != NULL)
        PMIX_LOAD_NSPACE((*at)->nspace, job->nspace);
    if (*at == NULL || !asked_watch(*at, job))
        return false;
    (*at)->ended = false;
    return true;
}

/* The entry is out of the list, and the library still has the job. */
static void asked_let_go(struct asked_job *asked)
{
    pmix_namespace_t *job = asked->held;
    asked->held = NULL;
    if (job != NULL)
        PMIX_RELEASE(job);
}

/* Return whether to retry: no fabricd was there, or it was busy. */
static bool asked_again(int code)
{
    return code == PMIXFAB_ERR_TIMEOUT || code == PMIXFAB_ERR_UNREACH || code == PMIXFAB_ERR_BUSY ||
           code == PMIXFAB_ERR_IO || code == PMIXFAB_ERR_NOMEM;
}

/*
 * Release the endpoints of jobs that have ended; a failed release is repeated before the next take and at the
 * next end. Return its error.
 */
static int asked_settle(struct fab_err *err)
{
    for (struct asked_job **at = &asked_jobs, *asked; (asked = *at) != NULL;) {
        if (!asked->ended) {
            at = &asked->next;
            continue;
        }
        int rc = asked->may_have ? endpoints_give_back(asked->nspace, err) : PMIXFAB_OK;
        if (rc != PMIXFAB_OK)
            pnet_say("launch: %s: %s", asked->nspace, err->text);
        if (asked_again(rc))
            return rc;
        *at = asked->next;
        free(asked);
    }
    return PMIXFAB_OK;
}

static pmix_status_t endpoints_status(int code)
{
    switch (code) {
    case PMIXFAB_OK:
        return PMIX_SUCCESS;
    case PMIXFAB_ERR_NOMEM:
        return PMIX_ERR_NOMEM;
    case PMIXFAB_ERR_BUSY:
    case PMIXFAB_ERR_RANGE:
        return PMIX_ERR_OUT_OF_RESOURCE;
    case PMIXFAB_ERR_TIMEOUT:
        return PMIX_ERR_TIMEOUT;
    case PMIXFAB_ERR_UNREACH:
        return PMIX_ERR_UNREACH;
    case PMIXFAB_ERR_CONFLICT:
        return PMIX_ERR_EXISTS;
    case PMIXFAB_ERR_NOTFOUND:
    case PMIXFAB_ERR_UNSUPPORTED:
        return PMIX_ERR_NOT_SUPPORTED;
    default:
        return PMIX_ERROR;
    }
}

/* Return whether there is no fabricd with a pool here. */
static bool endpoints_none(pmix_status_t rc)
{
    return rc == PMIX_ERR_UNREACH || rc == PMIX_ERR_NOT_SUPPORTED;
}

/* Fail only if endpoints are required. A rejection is always an error. */
static pmix_status_t endpoints_without(const struct pnet_endpoints_wanted *wanted, pmix_status_t rc)
{
    return endpoints_none(rc) && !wanted->required ? PMIX_SUCCESS : rc;
}

static pmix_status_t endpoints_put(const struct pnet_endpoints_wanted *wanted, const struct fab_job_map *map,
                                   const struct endpoints_planes *planes, struct fab_blob *blob,
                                   struct fab_err *err)
{
    struct asked_job *asked = *asked_find(blob->nspace);
    struct fab_blob_endpoints *list;
    const uint64_t count = fab_endpoints_needed(map, wanted->per_process, wanted->per_node);
    if (count > UINT32_MAX) {
        fab_fail(err, PMIXFAB_ERR_RANGE, "endpoints: too many are requested, or no memory");
        return PMIX_ERR_OUT_OF_RESOURCE;
    }
    int rc = endpoints_take(blob->nspace, planes, (uint32_t)count, &list, &blob->n_endpoints, err);
    asked->may_have |= !endpoints_none(endpoints_status(rc));
    if (rc != PMIXFAB_OK) {
        pnet_say("launch: %s: %s", blob->nspace, err->text);
        return endpoints_without(wanted, endpoints_status(rc));
    }
    blob->endpoints = list;
    blob->per_process = wanted->per_process;
    blob->per_node = wanted->per_node;
    return PMIX_SUCCESS;
}

pmix_status_t pnet_launch_endpoints(pmix_namespace_t *job, const struct pnet_endpoints_wanted *wanted,
                                    const struct fab_job_map *map, struct fab_blob *blob, struct fab_err *err)
{
    const struct fab_launch_job places = {.planes = blob->planes,
                                          .n_planes = blob->n_planes,
                                          .hosts = map->hosts,
                                          .n_hosts = map->n_hosts,
                                          .host_of = map->host_of,
                                          .n_ranks = map->n_ranks,
                                          .here = FAB_NONE};
    struct endpoints_planes planes = {.names = &blob->plane, .n = 1};
    const char **all = NULL;
    pmix_status_t rc;
    if (wanted->per_process == 0 && wanted->per_node == 0)
        return PMIX_SUCCESS;
    if (map->n_hosts == 0) {
        fab_fail(err, PMIXFAB_ERR_INVAL, "endpoints: PMIX_NODE_MAP and PMIX_PROC_MAP are required");
        return PMIX_ERR_BAD_PARAM;
    }
    if (blob->plane[0] == '\0') {
        if ((all = fab_endpoints_planes(&places, &planes.n)) == NULL)
            return PMIX_ERR_NOMEM;
        planes.names = all;
    }
    if (blob->n_planes == 0 || planes.n == 0)
        rc = endpoints_without(wanted, PMIX_ERR_NOT_SUPPORTED);
    else if (asked_settle(err) == PMIXFAB_ERR_TIMEOUT)
        rc = PMIX_ERR_TIMEOUT; /* it would take that long, too */
    else if (!asked_remember(job))
        rc = PMIX_ERR_NOMEM;
    else
        rc = endpoints_put(wanted, map, &planes, blob, err);
    free((void *)all);
    return rc;
}

void pnet_launch_end(pmix_namespace_t *job)
{
    struct asked_job *asked = *asked_find(job->nspace);
    struct fab_err err = {""};
    pnet_launch_node_forget(job->nspace);
    if (asked == NULL)
        return;
    asked_let_go(asked);
    asked->ended = true;
    (void)asked_settle(&err);
}

/* The endpoints of unfinished jobs are released when this process ends. */
void pnet_launch_stop(void)
{
    pnet_launch_node_stop();
    while (asked_jobs != NULL) {
        struct asked_job *next = asked_jobs->next;
        free(asked_jobs);
        asked_jobs = next;
    }
}
