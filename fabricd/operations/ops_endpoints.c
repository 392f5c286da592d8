/* ops_endpoints.c - endpoints: assigned to starters of jobs, returned, listed, freed by an operator. */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/base/log.h"
#include "fabricd/endpoints/endpoints.h"
#include "fabricd/operations/ops.h"

/* ---- for starters ---- */

/* Return whether the caller has disconnected: it would never return its endpoints. */
static bool caller_is_gone(struct connection *connection)
{
    struct pollfd poll_fd = {.fd = bufferevent_getfd(connection->bev), .events = POLLRDHUP};
    return poll(&poll_fd, 1, 0) > 0;
}

static bool bad_request(struct connection *connection, json_t *request, struct endpoints_request *out)
{
    json_t *planes = json_object_get(request, "planes"), *name;
    const json_int_t count = json_integer_value(json_object_get(request, "take"));
    const size_t n = json_array_size(planes);
    size_t i;
    json_array_foreach(planes, i, name)
    {
        if (i < ENDPOINTS_MAX_PLANES && (out->planes[i] = json_string_value(name)) == NULL)
            break;
    }
    out->n_planes = (uint32_t)n;
    out->count = (uint32_t)count;
    if (n > 0 && n <= ENDPOINTS_MAX_PLANES && i == n && count > 0 && count <= UINT32_MAX)
        return false;
    connection_fail(connection, PMIXFAB_ERR_SYNTAX,
                    "endpoints: give `take`, a number from 1, and `planes`, up to %d names",
                    ENDPOINTS_MAX_PLANES);
    return true;
}

/* Return the job's endpoints as [plane, first, last]. */
static json_t *job_endpoints(const struct connection *connection, const char *job)
{
    uint32_t n;
    const struct store_endpoints *rows = endpoints_all(ops_parts_of(connection)->endpoints, &n);
    json_t *list = json_array();
    for (uint32_t i = 0; i < n; i++)
        if (rows[i].pid == connection->pid && rows[i].uid == connection->uid && strcmp(rows[i].job, job) == 0)
            json_array_append_new(list, json_pack("[s, I, I]", rows[i].plane, (json_int_t)rows[i].first,
                                                  (json_int_t)rows[i].last));
    return list;
}

/* Assign endpoints; free them if the caller has disconnected while the disk was written. */
static int hand_over_to_caller(struct connection *connection, const struct endpoints_request *wanted,
                               struct fab_err *err)
{
    struct endpoints *endpoints = ops_parts_of(connection)->endpoints;
    json_t *had = job_endpoints(connection, wanted->job);
    const bool has = json_array_size(had) > 0;
    json_decref(had);
    if (caller_is_gone(connection))
        return fab_fail(err, PMIXFAB_ERR_UNREACH, "endpoints: the caller has disconnected");
    int rc = endpoints_take(endpoints, wanted, err);
    if (rc != PMIXFAB_OK || has || !caller_is_gone(connection))
        return rc;
    log_debug("endpoints: process %d disconnected before it got its endpoints: they are freed",
              (int)wanted->pid);
    if (endpoints_give_back(endpoints, wanted->pid, wanted->uid, wanted->job, err) != PMIXFAB_OK)
        log_warning("%s", err->text); /* they stay until the end of the starter */
    return fab_fail(err, PMIXFAB_ERR_UNREACH, "endpoints: the caller has disconnected");
}

static void endpoints_hand_over(struct connection *connection, json_t *request, const char *job)
{
    struct endpoints_request wanted = {.pid = connection->pid, .uid = connection->uid, .job = job};
    struct fab_err err = {""};
    if (bad_request(connection, request, &wanted))
        return;
    int rc = hand_over_to_caller(connection, &wanted, &err);
    if (connection_failed(connection, rc, &err))
        return;
    log_debug("endpoints: %u for job %s of process %d, uid %u", wanted.count, job, (int)wanted.pid,
              (unsigned)wanted.uid);
    connection_send(connection,
                    json_pack("{s:b, s:o}", "ok", 1, "endpoints", job_endpoints(connection, job)));
}

static void endpoints_free_of(struct connection *connection, pid_t pid, uid_t uid, const char *job)
{
    struct fab_err err = {""};
    int rc = endpoints_give_back(ops_parts_of(connection)->endpoints, pid, uid, job, &err);
    if (connection_failed(connection, rc, &err))
        return;
    if (uid == ENDPOINTS_ANY_USER)
        log_info("endpoints of job %s of process %d are freed, requested by uid %u", job, (int)pid,
                 (unsigned)connection->uid);
    connection_send(connection, json_pack("{s:b}", "ok", 1));
}

/* ---- for all callers ---- */

static void endpoints_list(struct connection *connection, json_t *request)
{
    uint32_t n, i = 0;
    const struct store_endpoints *rows = endpoints_all(ops_parts_of(connection)->endpoints, &n);
    char where[300] = "";
    const char *next;
    if (!connection_next(connection, request, &next))
        return;
    while (next != NULL && i < n) { /* after the last one of the previous page */
        snprintf(where, sizeof(where), "%" PRIu32 " %s", rows[i].first, rows[i].plane);
        const char *plane = strchr(next, ' ');
        const int order = plane == NULL ? 1 : strcmp(rows[i].plane, plane + 1);
        if (order > 0 || (order == 0 && rows[i].first > strtoul(next, NULL, 10)))
            break;
        i++;
    }
    json_t *list = json_array();
    for (uint32_t k = 0; k < CONTROL_PAGE && i < n; k++, i++) {
        const struct store_endpoints *row = &rows[i];
        json_array_append_new(list, json_pack("{s:s, s:I, s:I, s:s, s:I, s:i, s:o}", "plane", row->plane,
                                              "first", (json_int_t)row->first, "last", (json_int_t)row->last,
                                              "job", row->job, "uid", (json_int_t)row->uid, "pid", row->pid,
                                              "since", control_time(row->since)));
        snprintf(where, sizeof(where), "%" PRIu32 " %s", row->first, row->plane);
    }
    connection_send(connection,
                    json_pack("{s:b, s:o, s:s*}", "ok", 1, "endpoints", list, "next", i < n ? where : NULL));
}

void control_op_endpoints(struct connection *connection, json_t *request)
{
    json_t *pid = json_object_get(request, "pid");
    struct fab_err err = {""};
    const char *job = json_string_value(json_object_get(request, "job"));
    const bool takes = json_object_get(request, "take") != NULL;
    const bool gives = json_is_true(json_object_get(request, "give_back"));
    if (!takes && !gives) {
        endpoints_list(connection, request);
    } else if (job == NULL || job[0] == '\0' || strlen(job) > ENDPOINTS_MAX_JOB) {
        connection_fail(connection, PMIXFAB_ERR_SYNTAX, "endpoints: job is not a name");
    } else if ((takes || pid == NULL) &&
               endpoints_admit(ops_parts_of(connection)->endpoints, connection->uid, &err) != PMIXFAB_OK) {
        connection_fail(connection, PMIXFAB_ERR_BUSY, "%s", err.text);
    } else if (takes) {
        endpoints_hand_over(connection, request, job);
    } else if (pid == NULL) {
        endpoints_free_of(connection, connection->pid, connection->uid, job);
    } else if (!json_is_integer(pid) || json_integer_value(pid) < 1 || json_integer_value(pid) > INT32_MAX) {
        connection_fail(connection, PMIXFAB_ERR_SYNTAX, "endpoints: pid is not the number of a process");
    } else if (connection_allowed(connection, "endpoints")) {
        endpoints_free_of(connection, (pid_t)json_integer_value(pid), ENDPOINTS_ANY_USER, job);
    }
}
