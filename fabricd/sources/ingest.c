/* ingest.c - deliveries on their way through the intake. */
#include "fabricd/sources/ingest.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/counts.h"
#include "fabricd/base/log.h"
#include "fabricd/base/timer.h"
#include "fabricd/sources/entry.h"
#include "topo/base/text.h"

#define MUNGED_AWAY_MS 1000 /* a munged that does not answer is not asked again for so long */
/* They wait for the checker, mostly. Fewer than it takes questions at once (CHECKER_AT_ONCE): names that hang
 * leave it room for those who connect. */
#define INGEST_THREADS 3
#define GATHER_MS      10 /* deliveries are stored together that are ready within so many milliseconds */

static int64_t ingest_clock_ms(void)
{
    return clock_now(CLOCK_MONOTONIC) / 1000;
}

/* ---- the answer --------------------------------------------------------------------------------- */

/* On any thread. */
static void entry_release(void *arg)
{
    struct ingest_entry *entry = arg;
    free(entry->check.credential);
    free(entry->check.made.bytes);
    free(entry);
}

void ingest_free(struct ingest_entry *entry)
{
    entry->ingest->n--;
    entry->ingest->bytes -= entry->size;
    entry_release(entry);
}

/* Both logs show why something is refused: the sender's its answer, ours this line. That somebody has to
 * begin anew or to come again is nobody's fault. */
static void log_refused(struct ingest *ingest, int code, const char *reason)
{
    char again[INGEST_AGAIN_TEXT];
    if (code == PMIXFAB_ERR_CONFLICT || !said_lines_may_log(&ingest->said, reason, again))
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
    ingest_free(entry);
}

void ingest_refuse(struct ingest_entry *entry, int code, const char *reason)
{
    ingest_answer(&entry->item, code, 0, reason);
}

void ingest_turn_away(struct ingest_entry *entry)
{
    entry->done(INGEST_NOBODY, 0, INGEST_STOPPED, entry->cbdata);
    ingest_free(entry);
}

/* ---- to the receiver ---------------------------------------------------------------------------- */

static void ingest_on_gathered(void *arg)
{
    struct ingest *ingest = arg;
    struct ingest_item *ready = ingest->ready;
    timer_cancel(ingest->gather);
    ingest->ready = NULL;
    if (ready != NULL)
        ingest->fn(ready, ingest->cbdata);
}

/* Each storing waits for the disk, and the loop with it: where others are about to be ready they are stored
 * together. */
static void ingest_gather(struct ingest *ingest)
{
    if (ingest->ready == NULL)
        return;
    if (ingest->queue == NULL && ingest->working == NULL)
        timer_fire(ingest->gather);
    else if (!timer_pending(ingest->gather))
        timer_after(ingest->gather, GATHER_MS);
}

/* ---- on threads --------------------------------------------------------------------------------- */

static void ingest_start_next(struct ingest *ingest);

static void entry_on_thread(void *arg)
{
    struct ingest_entry *entry = arg;
    ingest_check_call(&entry->check);
}

static void ingest_on_checked(struct ingest_entry *entry, int rc, struct fab_err *err)
{
    struct ingest *ingest = entry->ingest;
    if (rc == PMIXFAB_ERR_UNREACH)
        ingest->munged_away = ingest_clock_ms() + MUNGED_AWAY_MS;
    const struct fab_delivery *delivery = &entry->check.delivery;
    if (rc == PMIXFAB_OK &&
        !buckets_take(&ingest->hosts, delivery->host, strlen(delivery->host), ingest_clock_ms()))
        rc = fab_fail(err, PMIXFAB_ERR_BUSY, "%s delivers more often than once a second: come again later",
                      delivery->host);
    if (rc != PMIXFAB_OK) {
        ingest_refuse(entry, rc, err->text);
        return;
    }
    entry->item.delivery = *delivery;
    entry->item.uid = (unsigned)entry->check.made.uid;
    DL_APPEND(ingest->ready, &entry->item);
}

static void entry_on_called(void *arg)
{
    struct ingest_entry *entry = arg;
    struct ingest *ingest = entry->ingest;
    struct fab_err err = {""};
    int rc;
    entry->work = NULL;
    if (ingest_check_next(&entry->check, &ingest->rules, &ingest->names, &rc, &err)) {
        entry->work = work_run(ingest->parts.base, entry_on_thread, entry_on_called, entry);
        if (entry->work != NULL)
            return;
        rc = fab_fail(&err, PMIXFAB_ERR_BUSY, "no thread: come again later");
    }
    DL_DELETE(ingest->working, &entry->item);
    ingest->n_working--;
    ingest_on_checked(entry, rc, &err);
    ingest_start_next(ingest);
    ingest_gather(ingest);
}

/* As many of those that wait as there may be threads. */
static void ingest_start_next(struct ingest *ingest)
{
    while (ingest->queue != NULL && ingest->n_working < INGEST_THREADS && !ingest->stopping) {
        struct ingest_entry *entry = (struct ingest_entry *)ingest->queue;
        DL_DELETE(ingest->queue, &entry->item);
        if (ingest_clock_ms() < ingest->munged_away) {
            ingest_refuse(entry, PMIXFAB_ERR_UNREACH, INGEST_NO_MUNGED);
            continue;
        }
        entry->work = work_run(ingest->parts.base, entry_on_thread, entry_on_called, entry);
        if (entry->work == NULL) {
            ingest_refuse(entry, PMIXFAB_ERR_BUSY, "no thread: come again later");
            continue;
        }
        DL_APPEND(ingest->working, &entry->item);
        ingest->n_working++;
    }
}

/* ---- for the doors ------------------------------------------------------------------------------ */

struct ingest_entry *ingest_new(struct ingest *ingest)
{
    struct ingest_entry *entry = calloc(1, sizeof(*entry));
    if (entry == NULL)
        return NULL;
    entry->item.priv = entry;
    entry->ingest = ingest;
    entry->check.calls = ingest->calls;
    entry->check.checker = ingest->parts.checker;
    ingest->n++;
    return entry;
}

int ingest_room(struct ingest_entry *entry, size_t size, struct fab_err *err)
{
    struct ingest *ingest = entry->ingest;
    if (ingest->n > INGEST_MAX_ITEMS || ingest->bytes + size > INGEST_MAX_BYTES)
        return fab_fail(err, PMIXFAB_ERR_BUSY, "too many deliveries wait already: come again later");
    entry->size = size;
    ingest->bytes += size;
    return PMIXFAB_OK;
}

void ingest_queue(struct ingest_entry *entry)
{
    struct ingest *ingest = entry->ingest;
    if (entry->check.credential != NULL) {
        DL_APPEND(ingest->queue, &entry->item);
        ingest_start_next(ingest);
    } else {
        DL_APPEND(ingest->ready, &entry->item);
        timer_fire(ingest->gather);
    }
}

/* ---- life --------------------------------------------------------------------------------------- */

static int set_rules(struct ingest_rules *rules, const struct config *config, struct fab_err *err)
{
    snprintf(rules->host, sizeof(rules->host), "%s", config->host);
    if (config->node_user == NULL)
        return PMIXFAB_OK;
    const struct passwd *user = getpwnam(config->node_user);
    if (user == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOTFOUND, "[nodes] user: there is no user \"%.60s\" on this host",
                        config->node_user);
    snprintf(rules->node_user, sizeof(rules->node_user), "%s", config->node_user);
    rules->node_uid = user->pw_uid;
    return PMIXFAB_OK;
}

int ingest_start_alone(const struct ingest_parts *parts, ingest_fn fn, void *cbdata, struct ingest **out,
                       struct fab_err *err)
{
    struct ingest *ingest = *out = calloc(1, sizeof(*ingest));
    if (ingest == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "intake: out of memory");
    *ingest = (struct ingest){.parts = *parts,
                              .calls = ingest_calls,
                              .fn = fn,
                              .cbdata = cbdata,
                              .hosts = {.burst = INGEST_BURST, .refill_ms = INGEST_REFILL_MS}};
    int rc = set_rules(&ingest->rules, parts->config, err);
    if (rc == PMIXFAB_OK && (ingest->gather = timer_new(parts->base, ingest_on_gathered, ingest)) == NULL)
        rc = fab_fail(err, PMIXFAB_ERR_NOMEM, "intake: out of memory");
    if (rc != PMIXFAB_OK) {
        ingest_stop_alone(ingest);
        *out = NULL;
    }
    return rc;
}

static void turn_all_away(struct ingest_item *list)
{
    struct ingest_item *item, *next;
    DL_FOREACH_SAFE(list, item, next)
    {
        ingest_turn_away(item->priv);
    }
}

/* A thread may wait for a name server, for which the stop does not wait longer than until then: the delivery
 * is turned away, and its memory left to the thread. */
static void ingest_leave_thread(struct ingest_entry *entry, int64_t until)
{
    const int64_t left = until - ingest_clock_ms();
    const struct ingest_entry copy = *entry;
    if (work_leave(entry->work, left > 0 ? left : 0, entry_release))
        ingest_turn_away(entry);
    else
        copy.done(INGEST_NOBODY, 0, INGEST_STOPPED, copy.cbdata);
}

void ingest_stop_alone(struct ingest *ingest)
{
    struct ingest_item *item, *next;
    if (ingest == NULL)
        return;
    ingest->stopping = true;
    turn_all_away(ingest->ready);
    turn_all_away(ingest->queue);
    const int64_t until = ingest_clock_ms() + (int64_t)ingest->calls->patience * 1000;
    DL_FOREACH_SAFE(ingest->working, item, next)
    {
        ingest_leave_thread(item->priv, until);
    }
    timer_free(ingest->gather);
    buckets_forget_full(&ingest->hosts, INT64_MAX);
    said_lines_clear(&ingest->said);
    ingest_names_clear(&ingest->names);
    free(ingest);
}
