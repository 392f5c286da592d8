/* endpoints.c - starters of jobs, each watched until its end, and their requests. */
#include "fabricd/endpoints/endpoints.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utlist.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/file_io.h"
#include "fabricd/base/log.h"
#include "fabricd/base/rate.h"
#include "fabricd/base/watch.h"
#include "fabricd/endpoints/pool.h"

/* ---- a starter ---- */

struct starter {
    struct starter *prev, *next; /* utlist */
    void *owner;
    pid_t pid;
    uint64_t started; /* in the kernel's ticks since boot; 0: not visible */
    int fd;           /* pidfd, which stays with this process if its number is reused; -1: ended */
    struct watch *ended;
};

#define RESERVE 512 /* descriptors */

/*
 * Return the start time. It is field 22 of /proc/PID/stat, after the process name, which ends with the last
 * ')'. 0: the process is not visible, for example another user's process under ProtectProc=invisible.
 */
static uint64_t starter_began(pid_t pid)
{
    char path[64], line[1024] = "";
    unsigned long long began = 0;
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    const size_t n = file == NULL ? 0 : fread(line, 1, sizeof(line) - 1, file);
    line[n] = '\0';
    if (file != NULL)
        fclose(file);
    const char *at = strrchr(line, ')');
    for (int field = 2; at != NULL && field < 22; field++)
        at = strchr(at + 1, ' ');
    return at != NULL && sscanf(at, " %llu", &began) == 1 ? began : 0;
}

static bool starter_is_gone(const struct starter *starter)
{
    struct pollfd poll_fd = {.fd = starter->fd, .events = POLLIN};
    return poll(&poll_fd, 1, 0) > 0;
}

static int starter_error(int error)
{
    switch (error) {
    case ESRCH:
    case ENOENT: /* the number belongs to a thread now; */
    case EINVAL: /* the same, from older kernels */
        return PMIXFAB_ERR_NOTFOUND;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
        return PMIXFAB_ERR_BUSY; /* may be temporary */
    default:
        return PMIXFAB_ERR_UNSUPPORTED;
    }
}

/* Reserve descriptors for callers, the store and children: refuse a starter's descriptor above the limit
 * minus the reserve. The kernel returns the lowest free number. */
static bool leaves_reserve(int fd)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return true;
    const rlim_t reserve = limit.rlim_cur / 2 < RESERVE ? limit.rlim_cur / 2 : RESERVE;
    return (rlim_t)fd < limit.rlim_cur - reserve;
}

static void starter_free(struct starter *starter)
{
    if (starter == NULL)
        return;
    watch_free(starter->ended);
    if (starter->fd >= 0)
        close(starter->fd);
    free(starter);
}

/* Watch a process: `ended` is called when it ends, and may free it. PMIXFAB_ERR_NOTFOUND: no such process.
 * _UNSUPPORTED: the kernel cannot watch it, or it is not visible. _BUSY: no descriptor is left. _NOMEM. */
static int starter_new(struct event_base *base, pid_t pid, watch_fn ended, void *owner, struct starter **out,
                       struct fab_err *err)
{
    struct starter *starter = calloc(1, sizeof(*starter));
    *out = NULL;
    if (starter == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "endpoints: out of memory");
    *starter = (struct starter){.owner = owner, .pid = pid, .fd = -1};
    if (pid > 0)
        starter->fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (starter->fd >= 0 && !leaves_reserve(starter->fd)) {
        close(starter->fd);
        starter->fd = -1;
        errno = EMFILE;
    }
    int rc = starter->fd >= 0 ? PMIXFAB_OK : starter_error(pid > 0 ? errno : 0);
    if (rc != PMIXFAB_OK)
        fab_fail(err, rc, "endpoints: process %d cannot be watched: %s", (int)pid,
                 pid > 0 ? strerror(errno) : "it is in another PID namespace");
    else if ((starter->ended = watch_new(base, starter->fd, WATCH_READ, ended, starter)) == NULL)
        rc = fab_fail(err, PMIXFAB_ERR_NOMEM, "endpoints: out of memory");
    if (rc != PMIXFAB_OK) {
        starter_free(starter);
        return rc;
    }
    starter->started = starter_began(pid);
    *out = starter;
    return PMIXFAB_OK;
}

/* ---- starters ---- */

struct endpoints {
    struct event_base *base;
    const struct config *config;
    struct pool *pool;
    struct starter *starters; /* those with rows in the pool */
    struct buckets changes;   /* by user */
};

/* ---- starters ---- */

static bool endpoints_has(const struct endpoints *endpoints, const struct store_endpoints *who)
{
    uint32_t n;
    const struct store_endpoints *rows = pool_all(endpoints->pool, &n);
    for (uint32_t i = 0; i < n; i++)
        if (pool_is_of(&rows[i], who))
            return true;
    return false;
}

/* Return a key that matches all endpoints of the starter. */
static struct store_endpoints endpoints_all_of(const struct starter *starter)
{
    return (struct store_endpoints){.pid = starter->pid, .started = starter->started};
}

static void endpoints_leave(struct endpoints *endpoints, struct starter *starter)
{
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): it is in the list */
    DL_DELETE(endpoints->starters, starter);
    starter_free(starter);
}

static void endpoints_leave_idle(struct endpoints *endpoints, struct starter *starter)
{
    const struct store_endpoints all = endpoints_all_of(starter);
    if (!endpoints_has(endpoints, &all))
        endpoints_leave(endpoints, starter);
}

/* Free the endpoints of a starter that has ended. If the store fails, this is repeated before the next
 * request. */
static void endpoints_bury(struct endpoints *endpoints, struct starter *starter)
{
    struct fab_err err = {""};
    const struct store_endpoints all = endpoints_all_of(starter);
    int rc = pool_give_back(endpoints->pool, &all, &err);
    if (rc == PMIXFAB_OK) {
        log_debug("endpoints: process %d has ended: the endpoints of its jobs are freed", (int)starter->pid);
        endpoints_leave(endpoints, starter);
    } else {
        log_warning("endpoints: process %d has ended, but its endpoints cannot be freed yet: %s",
                    (int)starter->pid, err.text);
    }
}

static void endpoints_on_ended(int fd, void *arg)
{
    struct starter *starter = arg;
    (void)fd;
    watch_pause(starter->ended);
    endpoints_bury(starter->owner, starter);
}

static struct starter *endpoints_starter(struct endpoints *endpoints, pid_t pid)
{
    struct starter *starter;
    DL_SEARCH_SCALAR(endpoints->starters, starter, pid, pid);
    return starter;
}

static void endpoints_bury_all(struct endpoints *endpoints)
{
    struct starter *starter, *next;
    DL_FOREACH_SAFE(endpoints->starters, starter, next)
    {
        if (starter_is_gone(starter))
            endpoints_bury(endpoints, starter);
    }
}

static int endpoints_watch(struct endpoints *endpoints, pid_t pid, struct starter **out, struct fab_err *err)
{
    int rc = starter_new(endpoints->base, pid, endpoints_on_ended, endpoints, out, err);
    if (rc == PMIXFAB_OK)
        DL_APPEND(endpoints->starters, *out); /* NOLINT(clang-analyzer-core.NullDereference): of the macro */
    return rc;
}

/* ---- creation ---- */

/*
 * Watch the starter of a row from an earlier fabricd. If its identity cannot be verified, it counts as the
 * same process, so that no number in use is freed.
 */
static int endpoints_recall(struct endpoints *endpoints, const struct store_endpoints *row,
                            struct fab_err *err)
{
    struct starter *starter = endpoints_starter(endpoints, row->pid);
    int rc = starter != NULL ? PMIXFAB_OK : endpoints_watch(endpoints, row->pid, &starter, err);
    if (rc == PMIXFAB_OK &&
        (starter->started == 0 || row->started == 0 || starter->started == row->started)) {
        starter->started = row->started;
        return PMIXFAB_OK;
    }
    if (rc != PMIXFAB_OK && rc != PMIXFAB_ERR_NOTFOUND)
        return rc;
    if (starter != NULL)
        endpoints_leave_idle(endpoints, starter);
    return PMIXFAB_ERR_NOTFOUND;
}

static int endpoints_recall_all(struct endpoints *endpoints, struct fab_err *err)
{
    uint32_t n;
    for (uint32_t i = 0; i < (pool_all(endpoints->pool, &n), n);) {
        const struct store_endpoints row = pool_all(endpoints->pool, &n)[i];
        int rc = endpoints_recall(endpoints, &row, err);
        if (rc == PMIXFAB_OK) {
            i++;
            continue;
        }
        if (rc == PMIXFAB_ERR_NOMEM)
            return rc;
        const struct store_endpoints all = {.pid = row.pid, .started = row.started};
        if (rc == PMIXFAB_ERR_NOTFOUND)
            rc = pool_give_back(endpoints->pool, &all, err);
        /* not watched: its endpoints stay until an operator frees them, or the next start */
        if (rc != PMIXFAB_OK) {
            log_warning("%s", err->text);
            i++;
        }
    }
    return PMIXFAB_OK;
}

int endpoints_new(struct event_base *base, const struct config *config, struct store *store,
                  struct endpoints **out, struct fab_err *err)
{
    struct endpoints *endpoints = calloc(1, sizeof(*endpoints));
    *out = NULL;
    if (endpoints == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "endpoints: out of memory");
    endpoints->base = base;
    endpoints->config = config;
    endpoints->changes = (struct buckets){.burst = ENDPOINTS_BURST, .refill_ms = ENDPOINTS_REFILL_MS};
    int rc = pool_new(store, &endpoints->pool, err);
    if (rc == PMIXFAB_OK)
        rc = endpoints_recall_all(endpoints, err);
    if (rc == PMIXFAB_OK)
        *out = endpoints;
    else
        endpoints_free(endpoints);
    return rc;
}

void endpoints_free(struct endpoints *endpoints)
{
    struct starter *starter, *next;
    if (endpoints == NULL)
        return;
    DL_FOREACH_SAFE(endpoints->starters, starter, next)
    {
        endpoints_leave(endpoints, starter);
    }
    pool_free(endpoints->pool);
    buckets_forget_full(&endpoints->changes, INT64_MAX);
    free(endpoints);
}

/* ---- requests ---- */

static bool endpoints_is_bound(uid_t uid)
{
    return uid != 0 && uid != geteuid();
}

int endpoints_admit(struct endpoints *endpoints, uid_t uid, struct fab_err *err)
{
    const int64_t now = clock_now(CLOCK_MONOTONIC) / 1000;
    if (!endpoints_is_bound(uid) || buckets_take(&endpoints->changes, &uid, sizeof(uid), now))
        return PMIXFAB_OK;
    return fab_fail(err, PMIXFAB_ERR_BUSY, "endpoints: too many requests of uid %u: try again in a moment",
                    (unsigned)uid);
}

/* Find the configured pools of the requested planes. */
static uint32_t endpoints_pools(const struct endpoints *endpoints, const struct endpoints_request *request,
                                struct pool_range *ranges)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < request->n_planes && i < ENDPOINTS_MAX_PLANES; i++) {
        bool again = false;
        for (uint32_t k = 0; k < n; k++)
            again |= strcmp(ranges[k].plane, request->planes[i]) == 0;
        ranges[n].plane = request->planes[i];
        n += !again && config_pool(endpoints->config, request->planes[i], &ranges[n].first, &ranges[n].last);
    }
    return n;
}

/* Return whether the job has so many of each plane. */
static bool endpoints_same(const struct endpoints *endpoints, const struct store_endpoints *who,
                           const struct pool_range *ranges, uint32_t n, uint32_t count)
{
    uint32_t n_rows, planes = 0;
    const struct store_endpoints *rows = pool_all(endpoints->pool, &n_rows);
    for (uint32_t r = 0; r < n; r++) {
        uint64_t has = 0;
        for (uint32_t i = 0; i < n_rows; i++)
            if (pool_is_of(&rows[i], who) && strcmp(rows[i].plane, ranges[r].plane) == 0)
                has += (uint64_t)rows[i].last - rows[i].first + 1;
        planes += has == count;
    }
    return planes == n;
}

static int endpoints_hand_out(struct endpoints *endpoints, const struct starter *starter,
                              const struct endpoints_request *request, const struct pool_range *ranges,
                              uint32_t n, struct fab_err *err)
{
    const struct store_endpoints who = {.job = request->job,
                                        .uid = request->uid,
                                        .pid = request->pid,
                                        .started = starter->started,
                                        .boot = boot_id(),
                                        .since = clock_now(CLOCK_REALTIME)};
    const uint64_t has = pool_of_uid(endpoints->pool, request->uid);
    const uint64_t wanted = (uint64_t)request->count * n;
    if (endpoints_has(endpoints, &who))
        return endpoints_same(endpoints, &who, ranges, n, request->count)
                   ? PMIXFAB_OK
                   : fab_fail(err, PMIXFAB_ERR_CONFLICT,
                              "endpoints: job %s of process %d has other endpoints already", request->job,
                              (int)request->pid);
    if (endpoints_is_bound(request->uid) && has + wanted > endpoints->config->endpoints_quota)
        return fab_fail(err, PMIXFAB_ERR_RANGE,
                        "endpoints: uid %u has %llu and requests %llu more: its quota is %u "
                        "(fabricd.conf(5), [endpoints] quota)",
                        (unsigned)request->uid, (unsigned long long)has, (unsigned long long)wanted,
                        endpoints->config->endpoints_quota);
    return pool_take(endpoints->pool, &who, ranges, n, request->count, err);
}

int endpoints_take(struct endpoints *endpoints, const struct endpoints_request *request, struct fab_err *err)
{
    struct pool_range ranges[ENDPOINTS_MAX_PLANES + 1];
    const uint32_t n = endpoints_pools(endpoints, request, ranges);
    if (n == 0)
        return fab_fail(err, PMIXFAB_ERR_NOTFOUND,
                        "endpoints: no pool of %s is configured: see fabricd.conf(5), [endpoints.pools]",
                        request->n_planes == 1 ? request->planes[0] : "these planes");
    endpoints_bury_all(endpoints);
    struct starter *starter = endpoints_starter(endpoints, request->pid);
    int rc = starter != NULL ? PMIXFAB_OK : endpoints_watch(endpoints, request->pid, &starter, err);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = starter_is_gone(starter)
             ? fab_fail(err, PMIXFAB_ERR_NOTFOUND, "endpoints: process %d has ended", (int)request->pid)
             : endpoints_hand_out(endpoints, starter, request, ranges, n, err);
    endpoints_leave_idle(endpoints, starter);
    return rc;
}

static const struct store_endpoints *endpoints_find(const struct endpoints *endpoints, pid_t pid, uid_t uid,
                                                    const char *job)
{
    uint32_t n;
    const struct store_endpoints *rows = pool_all(endpoints->pool, &n);
    for (uint32_t i = 0; i < n; i++)
        if (rows[i].pid == pid && (uid == ENDPOINTS_ANY_USER || rows[i].uid == uid) &&
            strcmp(rows[i].job, job) == 0)
            return &rows[i];
    return NULL;
}

int endpoints_give_back(struct endpoints *endpoints, pid_t pid, uid_t uid, const char *job,
                        struct fab_err *err)
{
    const struct store_endpoints *row = endpoints_find(endpoints, pid, uid, job);
    int rc = row != NULL ? PMIXFAB_OK
                         : fab_fail(err, PMIXFAB_ERR_NOTFOUND,
                                    "endpoints: job %s of process %d has no endpoints", job, (int)pid);
    for (; rc == PMIXFAB_OK && row != NULL; row = endpoints_find(endpoints, pid, uid, job)) {
        struct store_endpoints who = *row;
        who.job = job;
        rc = pool_give_back(endpoints->pool, &who, err);
    }
    struct starter *starter = endpoints_starter(endpoints, pid);
    if (rc == PMIXFAB_OK && starter != NULL)
        endpoints_leave_idle(endpoints, starter);
    return rc;
}

const struct store_endpoints *endpoints_all(const struct endpoints *endpoints, uint32_t *n)
{
    return pool_all(endpoints->pool, n);
}
