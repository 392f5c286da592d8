#include "mca/pnet/pnet_endpoints.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define ANSWER_MAX (4u << 20) /* bytes */
#define AGAIN_MS   100

static int64_t endpoints_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Until it can be read or written; PMIXFAB_ERR_TIMEOUT: not until then. */
static int endpoints_wait(int fd, short what, int64_t until)
{
    struct pollfd poll_fd = {.fd = fd, .events = what};
    for (;;) {
        const int64_t left = until - endpoints_clock();
        const int n = poll(&poll_fd, 1, left > 0 ? (int)left : 0);
        if (n > 0)
            return PMIXFAB_OK;
        if (n == 0)
            return PMIXFAB_ERR_TIMEOUT;
        if (errno != EINTR)
            return PMIXFAB_ERR_IO;
    }
}

/* Many who connect at once are turned away for a moment: EAGAIN, which nothing tells the end of. */
static int endpoints_connect(const char *rundir, int64_t until, int *out)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int length = snprintf(address.sun_path, sizeof(address.sun_path), "%s/control.sock", rundir);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const struct timespec moment = {.tv_nsec = 5000000};
    int rc = fd < 0 || length >= (int)sizeof(address.sun_path) ? PMIXFAB_ERR_UNREACH : PMIXFAB_OK;
    while (rc == PMIXFAB_OK && connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
        if (errno != EAGAIN && errno != EINTR)
            rc = PMIXFAB_ERR_UNREACH;
        else if (endpoints_clock() >= until)
            rc = PMIXFAB_ERR_TIMEOUT;
        else
            nanosleep(&moment, NULL);
    }
    if (rc != PMIXFAB_OK && fd >= 0)
        close(fd);
    *out = rc == PMIXFAB_OK ? fd : -1;
    return rc;
}

static int endpoints_send(int fd, const char *line, int64_t until)
{
    for (size_t left = strlen(line); left > 0;) {
        int rc = endpoints_wait(fd, POLLOUT, until);
        const ssize_t n = rc == PMIXFAB_OK ? send(fd, line, left, MSG_NOSIGNAL) : -1;
        if (rc != PMIXFAB_OK)
            return rc;
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return PMIXFAB_ERR_UNREACH;
        line += n > 0 ? n : 0;
        left -= n > 0 ? (size_t)n : 0;
    }
    return PMIXFAB_OK;
}

/* One line. */
static int endpoints_receive(int fd, int64_t until, struct fab_bytes *out)
{
    char piece[4096];
    while (out->n == 0 || out->at[out->n - 1] != '\n') {
        int rc = endpoints_wait(fd, POLLIN, until);
        const ssize_t n = rc == PMIXFAB_OK ? recv(fd, piece, sizeof(piece), 0) : -1;
        if (rc != PMIXFAB_OK)
            return rc;
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR) || out->n > ANSWER_MAX)
            return PMIXFAB_ERR_UNREACH;
        if (n > 0)
            fab_bytes_add(out, piece, (size_t)n);
        if (out->failed)
            return PMIXFAB_ERR_NOMEM;
    }
    return PMIXFAB_OK;
}

/* Once. *there becomes true where somebody listens. */
static int endpoints_try(const struct pnet_endpoints_request *request, const char *line, int64_t until,
                         bool *there, json_t **answer, struct fab_err *err)
{
    struct fab_bytes bytes = {.n = 0};
    int fd, rc = endpoints_connect(request->rundir, until, &fd);
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
        return fab_fail(err, rc, "endpoints: %s/control.sock: %s", request->rundir, pmixfab_strerror(rc));
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
 * Takes the question over; *answer is good, else it is an error. A fabricd that is too busy says so, or hangs
 * up: it is asked again. The question may have been heard by one that hung up, so that is never "nobody
 * there".
 */
static int endpoints_ask(const struct pnet_endpoints_request *request, json_t *question, json_t **answer,
                         struct fab_err *err)
{
    const struct timespec pause = {.tv_nsec = AGAIN_MS * 1000000};
    const int64_t until = endpoints_clock() + (int64_t)request->seconds * 1000;
    char *line = question == NULL ? NULL : json_dumps(question, JSON_COMPACT);
    bool there = false;
    *answer = NULL;
    json_decref(question);
    if (line == NULL)
        return fab_fail(err, PMIXFAB_ERR_SYNTAX, "endpoints: the job's name is not UTF-8, or no memory");
    int rc = endpoints_try(request, line, until, &there, answer, err);
    while (there && (rc == PMIXFAB_ERR_BUSY || rc == PMIXFAB_ERR_UNREACH) &&
           endpoints_clock() + AGAIN_MS < until) {
        nanosleep(&pause, NULL);
        rc = endpoints_try(request, line, until, &there, answer, err);
    }
    free(line);
    return there && rc == PMIXFAB_ERR_UNREACH ? PMIXFAB_ERR_TIMEOUT : rc;
}

/* [plane, first, last]; the name is the request's own. False: it is none. */
static bool endpoints_row(const struct pnet_endpoints_request *request, json_t *row,
                          struct fab_blob_endpoints *out)
{
    const char *plane = json_string_value(json_array_get(row, 0));
    const json_int_t first = json_integer_value(json_array_get(row, 1));
    const json_int_t last = json_integer_value(json_array_get(row, 2));
    *out = (struct fab_blob_endpoints){.first = (uint32_t)first, .last = (uint32_t)last};
    for (uint32_t i = 0; plane != NULL && i < request->n_planes; i++)
        if (strcmp(request->planes[i], plane) == 0)
            out->plane = request->planes[i];
    return out->plane != NULL && first > 0 && first <= last && last <= UINT32_MAX;
}

int pnet_endpoints_take(const struct pnet_endpoints_request *request, struct fab_blob_endpoints **out,
                        uint32_t *n, struct fab_err *err)
{
    json_t *planes = json_array(), *answer = NULL, *list, *row;
    size_t i;
    *out = NULL;
    *n = 0;
    for (uint32_t p = 0; p < request->n_planes; p++)
        json_array_append_new(planes, json_string(request->planes[p]));
    int rc = endpoints_ask(request,
                           json_pack("{s:s, s:I, s:s, s:o}", "op", "endpoints", "take",
                                     (json_int_t)request->count, "job", request->job, "planes", planes),
                           &answer, err);
    list = json_object_get(answer, "endpoints");
    if (rc == PMIXFAB_OK && (*out = calloc(json_array_size(list) + 1, sizeof(**out))) == NULL)
        rc = fab_fail(err, PMIXFAB_ERR_NOMEM, "endpoints: out of memory");
    for (i = 0; rc == PMIXFAB_OK && *out != NULL && (row = json_array_get(list, i)) != NULL; i++)
        if (!endpoints_row(request, row, &(*out)[(*n)++]))
            rc = fab_fail(err, PMIXFAB_ERR_FOREIGN, "endpoints: fabricd's answer is none");
    if (rc == PMIXFAB_OK && *n == 0)
        rc = fab_fail(err, PMIXFAB_ERR_FOREIGN, "endpoints: fabricd's answer is none");
    json_decref(answer);
    if (rc != PMIXFAB_OK) {
        free(*out);
        *out = NULL;
        *n = 0;
    }
    return rc;
}

int pnet_endpoints_give_back(const struct pnet_endpoints_request *request, struct fab_err *err)
{
    json_t *answer = NULL;
    int rc = endpoints_ask(
        request, json_pack("{s:s, s:b, s:s}", "op", "endpoints", "give_back", 1, "job", request->job),
        &answer, err);
    json_decref(answer);
    return rc;
}
