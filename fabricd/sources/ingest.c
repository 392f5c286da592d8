/* ingest.c - the stages of a delivery in the intake. */
#include "fabricd/sources/ingest.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/counts.h"
#include "fabricd/base/log.h"
#include "fabricd/base/rate.h"
#include "fabricd/base/timer.h"
#include "fabricd/sources/entry.h"
#include "topo/base/text.h"

#define AT_ONCE        2  /* parallel queries: as many as there are threads for names */
#define GATHER_MS      10 /* deliveries that are ready within this time are stored together */
#define INGEST_STOPPED "the scheduler's fabricd is stopping"

/* A delivery. It is in one place at a time: queue -> working -> ready -> receiver -> answered. */
struct ingest_entry {
    struct ingest_item item; /* the first member */
    struct ingest *ingest;
    struct credential_job *job; /* the running query */
    struct ingest_check check;
    size_t size; /* its share of the bounds */
    ingest_done_fn done;
    void *cbdata;
};

struct ingest {
    struct ingest_parts parts;
    bool stopping;
    struct ingest_item *queue;   /* waits for its check */
    struct ingest_item *working; /* a query runs for it */
    unsigned n_working;
    struct ingest_item *ready; /* waits to be stored with others */
    unsigned n;                /* total, including those at the receiver */
    size_t bytes;
    struct timer *gather;
    ingest_fn fn;
    void *cbdata;
    struct ingest_names names;
    struct buckets hosts;
    struct log_limit said;
};

static void ingest_start_next(struct ingest *ingest);

static int64_t ingest_clock_ms(void)
{
    return clock_now(CLOCK_MONOTONIC) / 1000;
}

/* ---- answers ------------------------------------------------------------------------------------ */

static void entry_free(struct ingest_entry *entry)
{
    entry->ingest->n--;
    entry->ingest->bytes -= entry->size;
    credential_cancel(entry->job);
    free(entry->check.bytes);
    free(entry);
}

/* Log a refusal, with its reason; the sender logs the answer. A request to deliver the whole, or later, is
 * not logged as a fault. */
static void log_refused(struct ingest *ingest, int code, const char *reason)
{
    char again[LOG_LIMIT_AGAIN];
    if (code == PMIXFAB_ERR_CONFLICT || !log_limit_may(&ingest->said, reason, again))
        log_debug("intake: refused: %s", reason);
    else
        log_warning("intake: refused: %s%s", reason, again);
}

void ingest_answer(struct ingest_item *item, int code, uint64_t held, const char *reason)
{
    struct ingest_entry *entry = item->priv;
    struct fab_err clean;
    fab_text_clean(clean.text, sizeof(clean.text), reason, strlen(reason), NULL);
    if (code == PMIXFAB_OK) {
        count(entry->ingest->parts.counts, COUNT_DELIVERIES);
    } else {
        count(entry->ingest->parts.counts, count_of_refused(code));
        log_refused(entry->ingest, code, clean.text);
    }
    entry->done(code, held, clean.text, entry->cbdata);
    entry_free(entry);
}

static void ingest_turn_away(struct ingest_entry *entry)
{
    entry->done(INGEST_NOBODY, 0, INGEST_STOPPED, entry->cbdata);
    entry_free(entry);
}

/* ---- the receiver ------------------------------------------------------------------------------- */

static void ingest_on_gathered(void *arg)
{
    struct ingest *ingest = arg;
    struct ingest_item *ready = ingest->ready;
    timer_cancel(ingest->gather);
    ingest->ready = NULL;
    if (ready != NULL)
        ingest->fn(ready, ingest->cbdata);
}

/* Each transaction waits for the disk, and blocks the loop: deliveries that are nearly ready are stored
 * together. */
static void ingest_gather(struct ingest *ingest)
{
    const bool alone =
        ingest->queue == NULL && ingest->working == NULL && !credential_worker_is_busy(ingest->parts.worker);
    if (alone)
        timer_fire(ingest->gather);
    else if (!timer_pending(ingest->gather))
        timer_after(ingest->gather, GATHER_MS);
}

/* ---- checks ------------------------------------------------------------------------------------- */

static void ingest_on_checked(struct ingest_entry *entry, int rc, struct fab_err *err)
{
    struct ingest *ingest = entry->ingest;
    const struct fab_delivery *delivery = &entry->check.delivery;
    if (rc == PMIXFAB_OK &&
        !buckets_take(&ingest->hosts, delivery->host, strlen(delivery->host), ingest_clock_ms()))
        rc = fab_fail(err, PMIXFAB_ERR_BUSY, "%s delivers more often than once a second: try again later",
                      delivery->host);
    if (rc != PMIXFAB_OK) {
        ingest_answer(&entry->item, rc, 0, err->text);
        return;
    }
    entry->item.delivery = *delivery;
    entry->item.uid = (unsigned)entry->check.maker.uid;
    DL_APPEND(ingest->ready, &entry->item);
    ingest_gather(ingest);
}

static void entry_on_told(const struct credential_result *result, void *cbdata);

/* Start the next query. False: the check is complete. */
static bool entry_ask(struct ingest_entry *entry)
{
    struct ingest *ingest = entry->ingest;
    struct ingest_check *check = &entry->check;
    struct fab_err err = {""};
    int rc;
    if (ingest_check_next(check, ingest->parts.config->host, &ingest->names, ingest_clock_ms(), &rc, &err)) {
        check->began = ingest_clock_ms();
        entry->job = check->ask == INGEST_IS_OURS
                         ? credential_is_ours(ingest->parts.worker, check->maker.origin, entry_on_told, entry)
                         : credential_resolve(ingest->parts.worker, check->delivery.host, AF_INET,
                                              entry_on_told, entry);
        if (entry->job != NULL)
            return true;
        rc = fab_fail(&err, PMIXFAB_ERR_BUSY, "too many names are being resolved: try again later");
    }
    ingest_on_checked(entry, rc, &err);
    return false;
}

static void entry_on_told(const struct credential_result *result, void *cbdata)
{
    struct ingest_entry *entry = cbdata;
    struct ingest *ingest = entry->ingest;
    struct ingest_check *check = &entry->check;
    entry->job = NULL;
    check->is_ours = result->is_ours;
    check->error = result->error;
    check->addresses.n = 0;
    for (uint32_t i = 0; check->ask == INGEST_RESOLVE && i < result->addresses->n; i++)
        if (result->addresses->at[i].any.sa_family == AF_INET)
            check->addresses.at[check->addresses.n++] = result->addresses->at[i].v4.sin_addr;
    DL_DELETE(ingest->working, &entry->item);
    ingest->n_working--;
    DL_PREPEND(ingest->queue, &entry->item); /* started checks continue before new ones begin */
    ingest_start_next(ingest);
}

/*
 * Start waiting deliveries up to the limit of parallel queries. A delivery whose name is in the cache is
 * checked without a query when its turn comes.
 */
static void ingest_start_next(struct ingest *ingest)
{
    while (ingest->queue != NULL && ingest->n_working < AT_ONCE && !ingest->stopping) {
        struct ingest_entry *entry = (struct ingest_entry *)ingest->queue;
        DL_DELETE(ingest->queue, &entry->item);
        if (!entry_ask(entry))
            continue;
        DL_APPEND(ingest->working, &entry->item);
        ingest->n_working++;
    }
}

/* ---- new deliveries ----------------------------------------------------------------------------- */

/* NULL: see err; the caller keeps the bytes. */
static struct ingest_entry *entry_new(struct ingest *ingest, void *bytes, size_t size, ingest_done_fn done,
                                      void *cbdata, struct fab_err *err)
{
    if (ingest->n >= INGEST_MAX_ITEMS || ingest->bytes + size > INGEST_MAX_BYTES) {
        fab_fail(err, PMIXFAB_ERR_BUSY, "too many deliveries are waiting: try again later");
        return NULL;
    }
    struct ingest_entry *entry = calloc(1, sizeof(*entry));
    if (entry == NULL) {
        fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
        return NULL;
    }
    entry->item.priv = entry;
    entry->ingest = ingest;
    entry->check.bytes = bytes;
    entry->check.size = entry->size = size;
    entry->done = done;
    entry->cbdata = cbdata;
    ingest->n++;
    ingest->bytes += size;
    return entry;
}

void ingest_deliver(struct ingest *ingest, const struct credential_maker *maker, void *bytes, size_t size,
                    ingest_done_fn done, void *cbdata)
{
    struct fab_err err = {""};
    if (ingest == NULL || ingest->stopping) {
        free(bytes);
        done(INGEST_NOBODY, 0, INGEST_STOPPED, cbdata);
        return;
    }
    struct ingest_entry *entry = entry_new(ingest, bytes, size, done, cbdata, &err);
    if (entry == NULL) {
        free(bytes);
        count(ingest->parts.counts, count_of_refused(PMIXFAB_ERR_BUSY));
        log_refused(ingest, PMIXFAB_ERR_BUSY, err.text);
        done(PMIXFAB_ERR_BUSY, 0, err.text, cbdata);
        return;
    }
    entry->check.maker = *maker;
    DL_APPEND(ingest->queue, &entry->item);
    ingest_start_next(ingest);
}

int ingest_local(struct ingest *ingest, const void *bytes, size_t size, unsigned uid, ingest_done_fn done,
                 void *cbdata, struct fab_err *err)
{
    struct ingest_entry *entry = NULL;
    struct fab_delivery delivery;
    void *copy = NULL;
    int rc;
    if (ingest == NULL || ingest->stopping)
        return fab_fail(err, PMIXFAB_ERR_UNSUPPORTED, "only a scheduler accepts reports of nodes");
    if (size == 0 || size > FAB_DELIVERY_MAX)
        return fab_fail(err, PMIXFAB_ERR_RANGE, "a delivery of %zu bytes: 1 to %d are accepted", size,
                        FAB_DELIVERY_MAX);
    if ((copy = malloc(size)) == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    memcpy(copy, bytes, size);
    rc = fab_delivery_decode(copy, size, &delivery, err);
    if (rc == PMIXFAB_OK && (entry = entry_new(ingest, copy, size, done, cbdata, err)) == NULL)
        rc = PMIXFAB_ERR_BUSY;
    if (rc != PMIXFAB_OK) {
        free(copy);
        return rc;
    }
    entry->item.delivery = delivery;
    entry->item.uid = uid;
    DL_APPEND(ingest->ready, &entry->item);
    timer_fire(ingest->gather);
    return PMIXFAB_OK;
}

/* ---- creation and end --------------------------------------------------------------------------- */

int ingest_start(const struct ingest_parts *parts, ingest_fn fn, void *cbdata, struct ingest **out,
                 struct fab_err *err)
{
    struct ingest *ingest = *out = calloc(1, sizeof(*ingest));
    if (ingest == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "intake: out of memory");
    *ingest = (struct ingest){.parts = *parts,
                              .fn = fn,
                              .cbdata = cbdata,
                              .hosts = {.burst = INGEST_BURST, .refill_ms = INGEST_REFILL_MS}};
    ingest->gather = timer_new(parts->base, ingest_on_gathered, ingest);
    if (ingest->gather != NULL)
        return PMIXFAB_OK;
    ingest_stop(ingest);
    *out = NULL;
    return fab_fail(err, PMIXFAB_ERR_NOMEM, "intake: out of memory");
}

static void turn_all_away(struct ingest_item *list)
{
    struct ingest_item *item, *next;
    DL_FOREACH_SAFE(list, item, next)
    {
        ingest_turn_away(item->priv);
    }
}

void ingest_stop(struct ingest *ingest)
{
    if (ingest == NULL)
        return;
    ingest->stopping = true;
    turn_all_away(ingest->ready);
    turn_all_away(ingest->queue);
    turn_all_away(ingest->working);
    timer_free(ingest->gather);
    buckets_forget_full(&ingest->hosts, INT64_MAX);
    log_limit_clear(&ingest->said);
    ingest_names_clear(&ingest->names);
    free(ingest);
}
