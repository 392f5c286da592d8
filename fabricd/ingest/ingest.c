#include "fabricd/ingest/ingest.h"

#include <pthread.h>
#include <pwd.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <utlist.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/timer.h"
#include "fabricd/ingest/entry.h"
#include "fabricd/metrics/counters.h"
#include "fabricd/util/log.h"
#include "fabricd/util/loop.h"
#include "topo/base/text.h"

#define MUNGED_AWAY_MS 1000 /* a munged that does not answer is not asked again for so long */
/* They wait for the checker, mostly. Fewer than it takes questions at once (CHECKER_AT_ONCE): names that hang
 * leave it room for those who connect. */
#define INGEST_THREADS 3
#define GATHER_MS      10 /* deliveries are stored together that are ready within so many milliseconds */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool running;
    struct ingest_entry *current[INGEST_THREADS]; /* in each thread's hands */
    struct ingest_item *queue;                    /* waits for a thread */
    struct ingest_item *ready;                    /* waits for the loop, to be stored */
    struct ingest_item *done;                     /* waits for the loop, to be answered there */
    unsigned n;                                   /* in all of them, and in the loop's hands */
    size_t bytes;
    pthread_t threads[INGEST_THREADS];
    unsigned n_threads;
    _Atomic int64_t munged_away; /* until then */
    struct timer *bell;          /* wakes the loop */
    ingest_fn fn;
    void *cbdata;
    struct ingest_rules rules; /* their texts are the next two: the thread may outlive the configuration */
    char host[FAB_HOST_MAX + 1], user[64];
} in = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

static int64_t ingest_clock_ms(void)
{
    return clock_now(CLOCK_MONOTONIC) / 1000;
}

/* ---- the answer --------------------------------------------------------------------------------- */

void ingest_free(struct ingest_entry *entry)
{
    pthread_mutex_lock(&in.lock);
    in.n--;
    in.bytes -= entry->size;
    pthread_mutex_unlock(&in.lock);
    free(entry->credential);
    free(entry->bytes);
    free(entry);
}

/* On the loop. */
static void answer_give(struct ingest_entry *entry)
{
    entry->done(entry->code, entry->held, entry->reason.text, entry->cbdata);
    ingest_free(entry);
}

bool ingest_may_log(const char *what, char again[INGEST_AGAIN_TEXT])
{
    unsigned unsaid;
    bool may = ingest_say(what, ingest_clock_ms(), &unsaid);
    again[0] = '\0';
    if (unsaid > 0)
        snprintf(again, INGEST_AGAIN_TEXT, " (and %u time%s since this was said)", unsaid,
                 unsaid == 1 ? "" : "s");
    return may;
}

/* Both logs show why something is refused: the sender's its answer, ours this line. That somebody has to
 * begin anew or to come again is nobody's fault. */
static void log_refused(const struct ingest_entry *entry)
{
    char again[INGEST_AGAIN_TEXT];
    if (entry->code == PMIXFAB_ERR_CONFLICT || !ingest_may_log(entry->reason.text, again))
        log_debug("intake: refused: %s", entry->reason.text);
    else
        log_warning("intake: refused: %s%s", entry->reason.text, again);
}

static void set_answer(struct ingest_entry *entry, int code, uint64_t held, const char *reason)
{
    entry->code = code;
    entry->held = held;
    fab_text_clean(entry->reason.text, sizeof(entry->reason.text), reason, strlen(reason), NULL);
    if (code == PMIXFAB_OK) {
        count(COUNT_DELIVERIES);
    } else {
        count(count_of_refused(code));
        log_refused(entry);
    }
}

void ingest_answer(struct ingest_item *item, int code, uint64_t held, const char *reason)
{
    struct ingest_entry *entry = item->priv;
    set_answer(entry, code, held, reason);
    pthread_mutex_lock(&in.lock);
    DL_APPEND(in.done, item);
    if (in.bell != NULL)
        timer_fire(in.bell);
    pthread_mutex_unlock(&in.lock);
}

/* ---- the thread --------------------------------------------------------------------------------- */

static int credential_verify(struct ingest_entry *entry, struct fab_err *err)
{
    int64_t now = ingest_clock_ms();
    if (now < in.munged_away)
        return fab_fail(err, PMIXFAB_ERR_UNREACH, INGEST_NO_MUNGED);
    int rc = ingest_open(&in.rules, entry->credential, &entry->item.delivery, &entry->bytes, &entry->item.uid,
                         err);
    free(entry->credential);
    entry->credential = NULL;
    if (rc == PMIXFAB_ERR_UNREACH)
        in.munged_away = ingest_clock_ms() + MUNGED_AWAY_MS;
    if (rc == PMIXFAB_OK && !ingest_allow(entry->item.delivery.host, now))
        rc = fab_fail(err, PMIXFAB_ERR_BUSY, "%s delivers more often than once a second: come again later",
                      entry->item.delivery.host);
    return rc;
}

/* The lock is held. Each storing waits for the disk, and the loop with it, without which no credential is
 * opened: where others are about to be ready they are stored together. */
static void ingest_ready(struct ingest_entry *entry)
{
    bool alone = in.queue == NULL;
    for (unsigned i = 0; i < INGEST_THREADS; i++)
        alone = alone && in.current[i] == NULL;
    const bool first = in.ready == NULL;
    DL_APPEND(in.ready, &entry->item);
    if (alone)
        timer_fire(in.bell);
    else if (first)
        timer_after(in.bell, GATHER_MS);
}

static void *ingest_thread(void *arg)
{
    struct ingest_entry **current = arg;
    pthread_mutex_lock(&in.lock);
    while (in.running) {
        if (in.queue == NULL) {
            pthread_cond_wait(&in.wake, &in.lock);
            continue;
        }
        struct ingest_entry *entry = (struct ingest_entry *)in.queue;
        struct fab_err err = {""};
        DL_DELETE(in.queue, &entry->item);
        *current = entry;
        pthread_mutex_unlock(&in.lock);
        int rc = credential_verify(entry, &err);
        pthread_mutex_lock(&in.lock);
        bool mine = *current == entry; /* else the stop has answered, and left only the memory to us */
        *current = NULL;
        if (mine && (rc == PMIXFAB_OK || !in.running)) {
            ingest_ready(entry);
            continue;
        }
        pthread_mutex_unlock(&in.lock);
        if (mine)
            ingest_answer(&entry->item, rc, 0, err.text);
        else
            ingest_free(entry);
        pthread_mutex_lock(&in.lock);
    }
    pthread_mutex_unlock(&in.lock);
    return NULL;
}

/* ---- on the loop -------------------------------------------------------------------------------- */

static void ingest_on_wakeup(void *arg)
{
    struct ingest_item *item, *next;
    (void)arg;
    pthread_mutex_lock(&in.lock);
    struct ingest_item *ready = in.ready, *done = in.done;
    in.ready = in.done = NULL;
    pthread_mutex_unlock(&in.lock);
    DL_FOREACH_SAFE(done, item, next)
    {
        answer_give(item->priv);
    }
    if (ready != NULL)
        in.fn(ready, in.cbdata);
}

/* ---- for the doors ------------------------------------------------------------------------------ */

struct ingest_entry *ingest_new(void)
{
    struct ingest_entry *entry = calloc(1, sizeof(*entry));
    if (entry == NULL)
        return NULL;
    entry->item.priv = entry;
    pthread_mutex_lock(&in.lock);
    in.n++;
    pthread_mutex_unlock(&in.lock);
    return entry;
}

int ingest_room(struct ingest_entry *entry, size_t size, struct fab_err *err)
{
    int rc = PMIXFAB_OK;
    pthread_mutex_lock(&in.lock);
    if (in.n > INGEST_MAX_ITEMS || in.bytes + size > INGEST_MAX_BYTES) {
        rc = fab_fail(err, PMIXFAB_ERR_BUSY, "too many deliveries wait already: come again later");
    } else {
        entry->size = size;
        in.bytes += size;
    }
    pthread_mutex_unlock(&in.lock);
    return rc;
}

bool ingest_queue(struct ingest_entry *entry)
{
    pthread_mutex_lock(&in.lock);
    bool running = in.running;
    if (running && entry->credential != NULL) {
        DL_APPEND(in.queue, &entry->item);
        pthread_cond_signal(&in.wake);
    } else if (running) {
        DL_APPEND(in.ready, &entry->item);
        timer_fire(in.bell);
    }
    pthread_mutex_unlock(&in.lock);
    return running;
}

void ingest_refuse(struct ingest_entry *entry, int code, const char *reason)
{
    set_answer(entry, code, 0, reason);
    answer_give(entry);
}

void ingest_turn_away(struct ingest_entry *entry)
{
    entry->code = INGEST_NOBODY;
    fab_fail(&entry->reason, PMIXFAB_ERR_UNREACH, "the scheduler's fabricd is being stopped");
    answer_give(entry);
}

/* ---- life --------------------------------------------------------------------------------------- */

static int set_rules(const struct config *config, struct fab_err *err)
{
    in.rules = (struct ingest_rules){.calls = ingest_calls, .host = in.host};
    snprintf(in.host, sizeof(in.host), "%s", config->host);
    if (config->node_user == NULL)
        return PMIXFAB_OK;
    const struct passwd *user = getpwnam(config->node_user);
    if (user == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOTFOUND, "[nodes] user: there is no user \"%.60s\" on this host",
                        config->node_user);
    snprintf(in.user, sizeof(in.user), "%s", config->node_user);
    in.rules.node_user = in.user;
    in.rules.node_uid = user->pw_uid;
    return PMIXFAB_OK;
}

int ingest_start_thread(struct event_base *base, const struct config *config, ingest_fn fn, void *cbdata,
                        struct fab_err *err)
{
    int rc = set_rules(config, err);
    if (rc != PMIXFAB_OK)
        return rc;
    in.fn = fn;
    in.cbdata = cbdata;
    in.bell = timer_new(base, ingest_on_wakeup, NULL);
    if (in.bell == NULL) {
        ingest_stop();
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "intake: out of memory");
    }
    int failed = 0;
    pthread_mutex_lock(&in.lock);
    in.running = true;
    in.munged_away = 0;
    for (in.n_threads = 0; failed == 0 && in.n_threads < INGEST_THREADS; in.n_threads += failed == 0)
        failed = pthread_create(&in.threads[in.n_threads], NULL, ingest_thread, &in.current[in.n_threads]);
    pthread_mutex_unlock(&in.lock);
    if (failed != 0) {
        ingest_stop();
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "intake: no thread: %s", strerror(failed));
    }
    return PMIXFAB_OK;
}

/* A thread may wait for a name server, for which nobody waits here: its delivery is refused, and what it
 * finds out does not matter any more. */
static void ingest_end_thread(unsigned i, const struct timespec *limit)
{
    if (pthread_timedjoin_np(in.threads[i], NULL, limit) == 0)
        return;
    pthread_detach(in.threads[i]);
    pthread_mutex_lock(&in.lock);
    struct ingest_entry *copy = in.current[i] == NULL ? NULL : malloc(sizeof(*copy));
    if (copy != NULL) {
        *copy = *in.current[i];
        copy->item.priv = copy;
        copy->credential = copy->bytes = NULL;
        copy->size = 0;
        DL_APPEND(in.ready, &copy->item);
        in.n++;
    }
    in.current[i] = NULL;
    pthread_mutex_unlock(&in.lock);
}

static void ingest_end_threads(void)
{
    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += in.rules.calls->patience;
    for (unsigned i = 0; i < in.n_threads; i++)
        ingest_end_thread(i, &limit);
    in.n_threads = 0;
}

void ingest_stop(void)
{
    struct ingest_item *item, *next;
    pthread_mutex_lock(&in.lock);
    bool running = in.running;
    in.running = false;
    pthread_cond_broadcast(&in.wake);
    pthread_mutex_unlock(&in.lock);
    if (running)
        ingest_end_threads();
    pthread_mutex_lock(&in.lock);
    DL_CONCAT(in.ready, in.queue);
    struct ingest_item *waits = in.ready, *done = in.done;
    struct timer *bell = in.bell;
    in.queue = in.ready = in.done = NULL;
    in.bell = NULL;
    pthread_mutex_unlock(&in.lock);
    if (bell != NULL)
        timer_free(bell);
    DL_FOREACH_SAFE(waits, item, next)
    {
        ingest_turn_away(item->priv);
    }
    DL_FOREACH_SAFE(done, item, next)
    {
        answer_give(item->priv);
    }
    ingest_limits_clear();
    ingest_names_clear();
}
