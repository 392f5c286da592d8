#include "fabricd/channel/credential.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/timer.h"
#include "fabricd/base/work.h"

#define THREADS   2       /* of each queue */
#define MOST_WAIT 65536   /* in a queue */
#define NAME_MS   10000   /* so long a name is waited for: resolvers have deadlines below that, mostly */
#define AWAY_US   1000000 /* so long a munged that did not answer is not asked again */

enum job_kind { JOB_SEAL, JOB_OPEN, JOB_IS_OURS, JOB_RESOLVE };

struct credential_job {
    struct credential_job *prev, *next;
    struct credential_worker *worker;
    enum job_kind kind;
    const struct credential_calls *calls;
    struct channel_seal seal;
    char *text; /* to be opened; the host */
    int family;
    struct in_addr address;
    struct credential_body body;
    struct credential_result result;
    struct credential_addresses addresses;
    credential_done_fn done; /* NULL: nobody waits for it any more */
    void *cbdata;
    struct work *work;  /* NULL: it waits */
    struct timer *late; /* of a name: the caller does not wait any longer */
};

/* A queue and those of it that are on threads. */
struct lane {
    struct credential_job *waiting, *working;
    unsigned n_waiting, n_working;
};

struct credential_worker {
    struct event_base *base;
    struct timer *start; /* those that wait */
    struct lane munge, names;
    int64_t away_until; /* microseconds of CLOCK_MONOTONIC */
};

/* ---- the calls ------------------------------------------------------------------------------------ */

static munge_err_t real_encode(const void *bytes, size_t size, char **text)
{
    return munge_encode(text, NULL, bytes, (int)size);
}

static munge_err_t real_decode(const char *text, struct credential_payload *out)
{
    munge_ctx_t ctx = munge_ctx_create();
    *out = (struct credential_payload){.maker = {.uid = (uid_t)-1, .gid = (gid_t)-1}};
    if (ctx == NULL)
        return EMUNGE_NO_MEMORY;
    const munge_err_t rc = munge_decode(text, ctx, &out->bytes, &out->size, &out->maker.uid, &out->maker.gid);
    if (munge_ctx_get(ctx, MUNGE_OPT_ADDR4, &out->maker.origin) != EMUNGE_SUCCESS)
        out->maker.origin.s_addr = htonl(INADDR_ANY);
    munge_ctx_destroy(ctx);
    return rc;
}

static int real_resolve(const char *host, int family, struct credential_addresses *out)
{
    const struct addrinfo hints = {.ai_family = family, .ai_socktype = SOCK_STREAM};
    struct addrinfo *all = NULL;
    out->n = 0;
    const int rc = getaddrinfo(host, NULL, &hints, &all);
    if (rc != 0)
        return rc;
    for (const struct addrinfo *one = all; one != NULL && out->n < sizeof(out->at) / sizeof(out->at[0]);
         one = one->ai_next)
        if (one->ai_addrlen <= sizeof(out->at[0]))
            memcpy(&out->at[out->n++], one->ai_addr, one->ai_addrlen);
    freeaddrinfo(all);
    return 0;
}

/* What this host's munged says of itself. */
static bool is_own_munged(struct in_addr address)
{
    struct credential_payload own = {.bytes = NULL};
    char *text = NULL;
    munge_err_t rc = real_encode(NULL, 0, &text);
    if (rc == EMUNGE_SUCCESS)
        rc = real_decode(text, &own);
    free(own.bytes);
    free(text);
    return rc == EMUNGE_SUCCESS && own.maker.origin.s_addr == address.s_addr;
}

static bool real_is_ours(struct in_addr address)
{
    struct ifaddrs *all = NULL;
    bool ours = false;
    if (credential_is_anywhere(address))
        return is_own_munged(address);
    if (getifaddrs(&all) != 0)
        return false;
    for (const struct ifaddrs *one = all; one != NULL && !ours; one = one->ifa_next)
        ours = one->ifa_addr != NULL && one->ifa_addr->sa_family == AF_INET &&
               ((const struct sockaddr_in *)(const void *)one->ifa_addr)->sin_addr.s_addr == address.s_addr;
    freeifaddrs(all);
    return ours;
}

const struct credential_calls credential_real_calls = {real_encode, real_decode, real_resolve, real_is_ours};
const struct credential_calls *credential_calls = &credential_real_calls;

bool credential_is_anywhere(struct in_addr address)
{
    return address.s_addr == htonl(INADDR_ANY) || ntohl(address.s_addr) >> 24 == 127;
}

struct credential_where credential_address_text(struct in_addr address)
{
    struct credential_where where = {"?"};
    inet_ntop(AF_INET, &address, where.text, sizeof(where.text));
    return where;
}

/* ---- on a thread ---------------------------------------------------------------------------------- */

static void job_digest(struct credential_job *job)
{
    if (job->body.digest != NULL)
        memcpy(job->result.digest, job->body.digest, CHANNEL_DIGEST);
    else
        channel_digest(job->body.bytes, job->body.size, job->result.digest);
}

static void job_seal(struct credential_job *job)
{
    uint8_t bytes[CHANNEL_SEAL];
    job_digest(job);
    channel_seal_put(&job->seal, job->result.digest, bytes);
    free(job->text);
    job->text = NULL;
    job->result.munge = job->calls->encode(bytes, sizeof(bytes), &job->text);
}

static void job_open(struct credential_job *job)
{
    struct credential_payload payload = {.bytes = NULL};
    struct credential_result *result = &job->result;
    result->munge = job->calls->decode(job->text, &payload);
    result->maker = payload.maker;
    result->code = PMIXFAB_OK;
    if (result->munge == EMUNGE_SUCCESS) {
        job_digest(job);
        result->code = channel_seal_check(&job->seal, result->digest, payload.bytes,
                                          payload.size > 0 ? (size_t)payload.size : 0, &result->err);
    }
    free(payload.bytes);
}

static void job_on_thread(void *arg)
{
    struct credential_job *job = arg;
    switch (job->kind) {
    case JOB_SEAL:
        job_seal(job);
        break;
    case JOB_OPEN:
        job_open(job);
        break;
    case JOB_IS_OURS:
        job->result.is_ours = job->calls->is_ours(job->address);
        break;
    case JOB_RESOLVE:
        job->result.error = job->calls->resolve(job->text, job->family, &job->addresses);
        break;
    }
}

/* Any thread, without its timer. */
static void job_release(void *arg)
{
    struct credential_job *job = arg;
    if (job->body.release != NULL)
        job->body.release(job->body.owner);
    free(job->text);
    free(job);
}

static void credential_job_free(struct credential_job *job)
{
    timer_free(job->late);
    job_release(job);
}

/* ---- queues --------------------------------------------------------------------------------------- */

static struct lane *lane_of(const struct credential_job *job)
{
    return job->kind == JOB_SEAL || job->kind == JOB_OPEN ? &job->worker->munge : &job->worker->names;
}

static bool munge_is_away(munge_err_t rc)
{
    return rc == EMUNGE_SOCKET || rc == EMUNGE_TIMEOUT;
}

/* The body is the caller's again. */
static void job_done(struct credential_job *job)
{
    job->result.text = job->kind == JOB_SEAL && job->result.munge == EMUNGE_SUCCESS ? job->text : NULL;
    job->result.addresses = &job->addresses;
    job->body.release = NULL;
    job->done(&job->result, job->cbdata);
    credential_job_free(job);
}

/* A name server that hangs holds up its thread, and nobody else for longer than this. */
static void job_on_late(void *arg)
{
    struct credential_job *job = arg;
    const struct credential_addresses none = {.n = 0};
    const struct credential_result result = {.error = EAI_AGAIN, .addresses = &none};
    const credential_done_fn done = job->done;
    void *cbdata = job->cbdata;
    if (done == NULL)
        return;
    credential_cancel(job);
    done(&result, cbdata);
}

static void job_on_ended(void *arg)
{
    struct credential_job *job = arg;
    struct credential_worker *worker = job->worker;
    struct lane *lane = lane_of(job);
    DL_DELETE(lane->working, job);
    lane->n_working--;
    if (lane == &worker->munge && munge_is_away(job->result.munge))
        worker->away_until = clock_now(CLOCK_MONOTONIC) + AWAY_US;
    timer_fire(worker->start);
    if (job->done != NULL)
        job_done(job);
    else
        credential_job_free(job);
}

/* True: it runs. Else it has no result but this. */
static bool job_start(struct credential_job *job)
{
    struct credential_worker *worker = job->worker;
    const bool away = lane_of(job) == &worker->munge && clock_now(CLOCK_MONOTONIC) < worker->away_until;
    job->work = away ? NULL : work_run(worker->base, job_on_thread, job_on_ended, job);
    if (job->work != NULL)
        return true;
    job->result.munge = away ? EMUNGE_SOCKET : EMUNGE_NO_MEMORY;
    job->result.error = EAI_MEMORY;
    return false;
}

/* `done` may ask for more, and cancel what waits: it is called one at a time, each from the loop. */
static void lane_start(struct credential_worker *worker, struct lane *lane)
{
    while (lane->waiting != NULL && lane->n_working < THREADS) {
        struct credential_job *job = lane->waiting;
        DL_DELETE(lane->waiting, job);
        lane->n_waiting--;
        if (job_start(job)) {
            DL_APPEND(lane->working, job);
            lane->n_working++;
            continue;
        }
        timer_fire(worker->start);
        job_done(job);
        return;
    }
}

static void worker_on_start(void *arg)
{
    struct credential_worker *worker = arg;
    lane_start(worker, &worker->names);
    lane_start(worker, &worker->munge);
}

static struct credential_job *credential_job_new(struct credential_worker *worker, enum job_kind kind,
                                                 char *text, credential_done_fn done, void *cbdata)
{
    struct lane *lane = kind == JOB_SEAL || kind == JOB_OPEN ? &worker->munge : &worker->names;
    struct credential_job *job = lane->n_waiting < MOST_WAIT ? calloc(1, sizeof(*job)) : NULL;
    if (job == NULL) {
        free(text);
        return NULL;
    }
    job->worker = worker;
    job->kind = kind;
    job->calls = credential_calls;
    job->text = text;
    job->done = done;
    job->cbdata = cbdata;
    if (lane == &worker->names) {
        job->late = timer_new(worker->base, job_on_late, job);
        if (job->late == NULL) {
            credential_job_free(job);
            return NULL;
        }
        timer_after(job->late, NAME_MS);
    }
    DL_APPEND(lane->waiting, job);
    lane->n_waiting++;
    timer_fire(worker->start);
    return job;
}

struct credential_job *credential_seal(struct credential_worker *worker, const struct channel_seal *seal,
                                       const struct credential_body *body, credential_done_fn done,
                                       void *cbdata)
{
    struct credential_job *job = credential_job_new(worker, JOB_SEAL, NULL, done, cbdata);
    if (job != NULL) {
        job->seal = *seal;
        job->body = *body;
    }
    return job;
}

struct credential_job *credential_verify(struct credential_worker *worker, const struct channel_seal *seal,
                                         char *text, const struct credential_body *body,
                                         credential_done_fn done, void *cbdata)
{
    struct credential_job *job = credential_job_new(worker, JOB_OPEN, text, done, cbdata);
    if (job != NULL) {
        job->seal = *seal;
        job->body = *body;
    }
    return job;
}

struct credential_job *credential_is_ours(struct credential_worker *worker, struct in_addr address,
                                          credential_done_fn done, void *cbdata)
{
    struct credential_job *job = credential_job_new(worker, JOB_IS_OURS, NULL, done, cbdata);
    if (job != NULL)
        job->address = address;
    return job;
}

struct credential_job *credential_resolve(struct credential_worker *worker, const char *host, int family,
                                          credential_done_fn done, void *cbdata)
{
    char *name = strdup(host);
    struct credential_job *job =
        name == NULL ? NULL : credential_job_new(worker, JOB_RESOLVE, name, done, cbdata);
    if (job != NULL)
        job->family = family;
    return job;
}

static void lane_forget(struct lane *lane, struct credential_job *job)
{
    DL_DELETE(lane->waiting, job);
    lane->n_waiting--;
    credential_job_free(job);
}

/* One that is on a thread keeps its place there, so that no more threads wait than there may be. */
void credential_cancel(struct credential_job *job)
{
    if (job == NULL)
        return;
    if (job->work == NULL)
        lane_forget(lane_of(job), job);
    else
        job->done = NULL;
}

static void lane_cancel(struct lane *lane)
{
    struct credential_job *job, *next;
    while (lane->waiting != NULL)
        lane_forget(lane, lane->waiting);
    DL_FOREACH_SAFE(lane->working, job, next)
    {
        timer_free(job->late);
        job->late = NULL;
        if (work_leave(job->work, 0, job_release))
            job_release(job);
    }
}

struct credential_worker *credential_worker_new(struct event_base *base)
{
    struct credential_worker *worker = calloc(1, sizeof(*worker));
    if (worker == NULL || (worker->start = timer_new(base, worker_on_start, worker)) == NULL) {
        free(worker);
        return NULL;
    }
    worker->base = base;
    return worker;
}

bool credential_worker_is_busy(const struct credential_worker *worker)
{
    return worker->munge.waiting != NULL || worker->munge.working != NULL;
}

void credential_worker_free(struct credential_worker *worker)
{
    if (worker == NULL)
        return;
    lane_cancel(&worker->munge);
    lane_cancel(&worker->names);
    timer_free(worker->start);
    free(worker);
}

/* ---- in words ------------------------------------------------------------------------------------- */

int credential_explain(const struct credential_result *result, const char *here, struct fab_err *err)
{
    const struct credential_where where = credential_address_text(result->maker.origin);
    const unsigned uid = (unsigned)result->maker.uid;
    switch (result->munge) {
    case EMUNGE_SUCCESS:
        if (result->code != PMIXFAB_OK)
            return fab_fail(err, result->code, "the credential of uid %u on %s %s", uid, where.text,
                            result->err.text);
        return PMIXFAB_OK;
    case EMUNGE_SOCKET:
    case EMUNGE_TIMEOUT:
        return fab_fail(err, PMIXFAB_ERR_UNREACH,
                        "no munged answers on %s: nobody can be believed without it", here);
    case EMUNGE_CRED_EXPIRED:
        return fab_fail(err, PMIXFAB_ERR_PERM,
                        "the credential of uid %u on %s has expired: are the clocks of both hosts alike?",
                        uid, where.text);
    case EMUNGE_CRED_REWOUND:
        return fab_fail(err, PMIXFAB_ERR_PERM,
                        "the credential of uid %u on %s was made in the future: are the clocks of both hosts "
                        "alike?",
                        uid, where.text);
    case EMUNGE_CRED_REPLAYED:
        return fab_fail(err, PMIXFAB_ERR_PERM,
                        "the credential of uid %u on %s was used before: each is good once", uid, where.text);
    case EMUNGE_CRED_UNAUTHORIZED:
        return fab_fail(err, PMIXFAB_ERR_PERM, "the credential is for another user than the scheduler's");
    case EMUNGE_NO_MEMORY:
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    default:
        return fab_fail(
            err, PMIXFAB_ERR_PERM,
            "munged does not accept the credential (%s): it was altered, or made with another key",
            munge_strerror(result->munge));
    }
}
