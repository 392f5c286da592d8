/* credential.c - two queues of slow calls, and the calls themselves, which run on threads. */
#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/timer.h"
#include "fabricd/base/work.h"
#include "fabricd/channel/channel_priv.h"

#define THREADS   2       /* of each queue */
#define MOST_WAIT 65536   /* in a queue */
#define NAME_MS   10000   /* timeout of a name; most resolvers have shorter ones */
#define AWAY_US   1000000 /* how long a munged that did not answer is not asked again */

/* A queue, and its jobs that run on threads. */
struct lane {
    struct event_base *base;
    struct credential_job *waiting, *working;
    unsigned n_waiting, n_working;
    struct timer *start; /* starts waiting jobs */
    int64_t away_until;  /* only for munge: microseconds of CLOCK_MONOTONIC */
};

struct credential_worker {
    struct lane munge, names;
};

struct credential_job {
    struct credential_job *prev, *next;
    struct lane *lane;
    void (*run)(struct credential_job *job); /* on a thread */
    const struct credential_calls *calls;
    struct channel_seal seal;
    char *text; /* the credential to open; or the host name */
    int family;
    struct in_addr address;
    struct channel_body body;
    struct served_digest digest; /* of the body */
    struct credential_result result;
    struct credential_addresses addresses;
    credential_done_fn done; /* NULL: cancelled */
    void *cbdata;
    struct work *work;  /* NULL: waiting in the queue */
    struct timer *late; /* the timeout of a name */
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

static const struct credential_calls real_calls = {real_encode, real_decode, real_resolve};
const struct credential_calls *credential_calls = &real_calls;

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
    if (!job->digest.known)
        channel_digest(job->body.bytes, job->body.size, job->digest.bytes);
    job->digest.known = true;
}

static void job_seal(struct credential_job *job)
{
    uint8_t bytes[CHANNEL_SEAL];
    job_digest(job);
    channel_seal_put(&job->seal, job->digest.bytes, bytes);
    job->result.munge = job->calls->encode(bytes, sizeof(bytes), &job->text);
    job->result.text = job->result.munge == EMUNGE_SUCCESS ? job->text : NULL;
}

static void job_open(struct credential_job *job)
{
    struct credential_payload payload = {.bytes = NULL};
    struct credential_result *result = &job->result;
    result->munge = job->calls->decode(job->text, &payload);
    result->maker = payload.maker;
    if (result->munge == EMUNGE_SUCCESS) {
        job_digest(job);
        result->code = channel_seal_check(&job->seal, job->digest.bytes, payload.bytes,
                                          payload.size > 0 ? (size_t)payload.size : 0, &result->err);
    }
    free(payload.bytes);
}

static void job_is_ours(struct credential_job *job)
{
    struct credential_payload own = {.bytes = NULL};
    job->result.is_ours = job->calls->encode(NULL, 0, &job->text) == EMUNGE_SUCCESS &&
                          job->calls->decode(job->text, &own) == EMUNGE_SUCCESS &&
                          own.maker.origin.s_addr == job->address.s_addr;
    free(own.bytes);
}

static void job_resolve(struct credential_job *job)
{
    job->result.error = job->calls->resolve(job->text, job->family, &job->addresses);
}

static void job_on_thread(void *arg)
{
    struct credential_job *job = arg;
    job->run(job);
}

/* Any thread; the timer was freed before. */
static void job_release(void *arg)
{
    struct credential_job *job = arg;
    if (job->body.release != NULL)
        job->body.release(job->body.bytes, job->body.size, job->body.owner);
    free(job->text);
    free(job);
}

/* ---- queues --------------------------------------------------------------------------------------- */

static void credential_job_free(struct credential_job *job)
{
    timer_free(job->late);
    job_release(job);
}

static void credential_job_end(struct credential_job *job)
{
    if (job->done != NULL) {
        if (job->body.digest != NULL && job->digest.known)
            *job->body.digest = job->digest;
        job->body.release = NULL; /* the caller owns it again */
        job->done(&job->result, job->cbdata);
    }
    credential_job_free(job);
}

/* A name server that hangs blocks its thread, but other callers wait no longer than this. */
static void job_on_late(void *arg)
{
    struct credential_job *job = arg;
    const struct credential_addresses none = {.n = 0};
    const struct credential_result result = {.error = EAI_AGAIN, .addresses = &none};
    const credential_done_fn done = job->done;
    void *cbdata = job->cbdata;
    credential_cancel(job);
    if (done != NULL)
        done(&result, cbdata);
}

static void job_on_ended(void *arg)
{
    struct credential_job *job = arg;
    struct lane *lane = job->lane;
    DL_DELETE(lane->working, job);
    lane->n_working--;
    if (job->result.munge == EMUNGE_SOCKET || job->result.munge == EMUNGE_TIMEOUT)
        lane->away_until = clock_now(CLOCK_MONOTONIC) + AWAY_US;
    timer_fire(lane->start);
    credential_job_end(job);
}

/* `done` may add jobs and cancel waiting ones, so one job is started at a time, each from the loop. */
static void lane_on_start(void *arg)
{
    struct lane *lane = arg;
    while (lane->waiting != NULL && lane->n_working < THREADS) {
        struct credential_job *job = lane->waiting;
        const bool away = clock_now(CLOCK_MONOTONIC) < lane->away_until;
        DL_DELETE(lane->waiting, job);
        lane->n_waiting--;
        job->work = away ? NULL : work_run(lane->base, job_on_thread, job_on_ended, job);
        if (job->work == NULL) {
            job->result.munge = away ? EMUNGE_SOCKET : EMUNGE_NO_MEMORY;
            job->result.error = EAI_MEMORY;
            timer_fire(lane->start);
            credential_job_end(job);
            return;
        }
        DL_APPEND(lane->working, job);
        lane->n_working++;
    }
}

/* Append a job. Takes the text. */
static struct credential_job *lane_ask(struct lane *lane, void (*run)(struct credential_job *), char *text,
                                       credential_done_fn done, void *cbdata)
{
    struct credential_job *job = lane->n_waiting < MOST_WAIT ? calloc(1, sizeof(*job)) : NULL;
    if (job == NULL) {
        free(text);
        return NULL;
    }
    job->lane = lane;
    job->run = run;
    job->calls = credential_calls;
    job->text = text;
    job->done = done;
    job->cbdata = cbdata;
    job->result.addresses = &job->addresses;
    DL_APPEND(lane->waiting, job);
    lane->n_waiting++;
    timer_fire(lane->start);
    return job;
}

struct credential_job *credential_munge(struct credential_worker *worker, const struct channel_seal *seal,
                                        char *text, const struct channel_body *body, credential_done_fn done,
                                        void *cbdata)
{
    struct credential_job *job =
        lane_ask(&worker->munge, text == NULL ? job_seal : job_open, text, done, cbdata);
    if (job == NULL)
        return NULL;
    job->seal = *seal;
    job->body = *body;
    if (body->digest != NULL)
        job->digest = *body->digest;
    return job;
}

struct credential_job *credential_is_ours(struct credential_worker *worker, struct in_addr address,
                                          credential_done_fn done, void *cbdata)
{
    struct credential_job *job = lane_ask(&worker->munge, job_is_ours, NULL, done, cbdata);
    if (job != NULL)
        job->address = address;
    return job;
}

struct credential_job *credential_resolve(struct credential_worker *worker, const char *host, int family,
                                          credential_done_fn done, void *cbdata)
{
    char *name = strdup(host);
    struct credential_job *job =
        name == NULL ? NULL : lane_ask(&worker->names, job_resolve, name, done, cbdata);
    if (job == NULL)
        return NULL;
    job->family = family;
    job->late = timer_new(worker->names.base, job_on_late, job);
    if (job->late != NULL) {
        timer_after(job->late, NAME_MS);
        return job;
    }
    credential_cancel(job);
    return NULL;
}

/* A running job keeps its place, which bounds the number of blocked threads. */
void credential_cancel(struct credential_job *job)
{
    if (job == NULL)
        return;
    job->done = NULL;
    if (job->work != NULL)
        return;
    DL_DELETE(job->lane->waiting, job);
    job->lane->n_waiting--;
    credential_job_free(job);
}

static void lane_end(struct lane *lane)
{
    struct credential_job *job, *next;
    DL_FOREACH_SAFE(lane->waiting, job, next)
    {
        credential_cancel(job);
    }
    DL_FOREACH_SAFE(lane->working, job, next)
    {
        timer_free(job->late);
        job->late = NULL;
        if (work_leave(job->work, 0, job_release))
            job_release(job);
    }
    timer_free(lane->start);
}

struct credential_worker *credential_worker_new(struct event_base *base)
{
    struct credential_worker *worker = calloc(1, sizeof(*worker));
    if (worker == NULL)
        return NULL;
    worker->munge.base = worker->names.base = base;
    worker->munge.start = timer_new(base, lane_on_start, &worker->munge);
    worker->names.start = timer_new(base, lane_on_start, &worker->names);
    if (worker->munge.start != NULL && worker->names.start != NULL)
        return worker;
    credential_worker_free(worker);
    return NULL;
}

bool credential_worker_is_busy(const struct credential_worker *worker)
{
    return worker->munge.waiting != NULL || worker->munge.working != NULL;
}

void credential_worker_free(struct credential_worker *worker)
{
    if (worker == NULL)
        return;
    lane_end(&worker->munge);
    lane_end(&worker->names);
    free(worker);
}

/* ---- messages ------------------------------------------------------------------------------------- */

int credential_explain(const struct credential_result *result, const char *here, struct fab_err *err)
{
    static const struct {
        munge_err_t munge;
        const char *text;
    } refusals[] = {
        {EMUNGE_CRED_EXPIRED, "has expired: check that the clocks of both hosts agree"},
        {EMUNGE_CRED_REWOUND, "was made in the future: check that the clocks of both hosts agree"},
        {EMUNGE_CRED_REPLAYED, "was used before: each is valid once"},
    };
    const struct credential_where where = credential_address_text(result->maker.origin);
    const unsigned uid = (unsigned)result->maker.uid;
    if (result->munge == EMUNGE_SUCCESS && result->code == PMIXFAB_OK)
        return PMIXFAB_OK;
    if (result->munge == EMUNGE_SUCCESS)
        return fab_fail(err, result->code, "the credential of uid %u on %s %s", uid, where.text,
                        result->err.text);
    if (result->munge == EMUNGE_SOCKET || result->munge == EMUNGE_TIMEOUT)
        return fab_fail(err, PMIXFAB_ERR_UNREACH,
                        "no munged answers on %s: fabricd cannot verify messages without it", here);
    if (result->munge == EMUNGE_NO_MEMORY)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    if (result->munge == EMUNGE_CRED_UNAUTHORIZED)
        return fab_fail(err, PMIXFAB_ERR_PERM, "the credential is for another user than the scheduler's");
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
        if (refusals[i].munge == result->munge)
            return fab_fail(err, PMIXFAB_ERR_PERM, "the credential of uid %u on %s %s", uid, where.text,
                            refusals[i].text);
    return fab_fail(err, PMIXFAB_ERR_PERM,
                    "munged rejects the credential (%s): it was altered, or made with another key",
                    munge_strerror(result->munge));
}
