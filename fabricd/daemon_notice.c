/* daemon_notice.c - what a cheap look noticed is gathered, and leads to a round that sweeps only that. */
#include <stdlib.h>
#include <time.h>

#include "fabricd/daemon_priv.h"
#include "fabricd/log.h"

static int64_t round_clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* As this host's clock is now: it may have jumped since. */
static int64_t on_the_clock(int64_t monotonic)
{
    return monotonic < 0 ? 0 : daemon_now() - (round_clock_ms() - monotonic) * 1000;
}

static void round_schedule(struct daemon *d)
{
    const int64_t when = d->part_asked ? 0 : gather_when(&d->gather), now = round_clock_ms();
    if (when < 0)
        return;
    const int64_t wait = when > now ? when - now : 0;
    const struct timeval limit = {.tv_sec = wait / 1000, .tv_usec = wait % 1000 * 1000};
    event_add(d->notice_timer, &limit);
}

/* A look has found something. */
static void on_noticed(const struct probe_noticed *noticed, void *cbdata)
{
    struct daemon *d = cbdata;
    d->noticed.all |= noticed->all;
    d->noticed.probes |= noticed->probes;
    for (uint32_t i = 0; i < noticed->n; i++)
        if (probe_noticed_add(&d->noticed, noticed->guids[i], NULL) != PMIXFAB_OK)
            d->noticed.all = true;
    log_debug("cheap look: %u switches are not as they were%s", noticed->n,
              noticed->all || noticed->probes != 0 ? ", or all of them" : "");
    gather_changed(&d->gather, round_clock_ms());
    round_schedule(d);
}

/* It is time. What waits for a round, or is about to be swept with everything else, need not be started. */
static void round_on_timeout(evutil_socket_t fd, short what, void *arg)
{
    struct daemon *d = arg;
    (void)fd, (void)what;
    if (!d->round && !d->again && (d->part_asked || gather_when(&d->gather) >= 0))
        round_start(d, true);
}

/* As if it had been noticed, and waited for long enough. */
uint64_t daemon_sweep_switch(struct daemon *d, const char *name)
{
    uint32_t at = 0;
    uint64_t guid;
    while (publisher_next_switch(d->publisher, name, &at, &guid))
        if (probe_noticed_add(&d->noticed, guid, NULL) != PMIXFAB_OK)
            d->noticed.all = true;
    d->part_asked = true;
    if (!d->round)
        round_schedule(d);
    return d->number + 1;
}

int notices_start(struct daemon *d, struct fab_err *err)
{
    gather_init(&d->gather, (int64_t)d->config->settle * 1000, (int64_t)d->config->longest_wait * 1000);
    d->notice_timer = evtimer_new(d->base, round_on_timeout, d);
    if (d->notice_timer == NULL ||
        (notice_wanted(d->config) && notice_new(d->base, d->config, on_noticed, d, &d->notice) != PMIXFAB_OK))
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    return PMIXFAB_OK;
}

void notices_stop(struct daemon *d)
{
    notice_free(d->notice);
    if (d->notice_timer != NULL)
        event_free(d->notice_timer);
    probe_noticed_free(&d->noticed);
    free(d->last);
}

int64_t notices_since(const struct daemon *d)
{
    return d->notice == NULL ? 0 : on_the_clock(gather_since(&d->gather));
}

int64_t notices_taken_since(const struct daemon *d)
{
    return d->notice == NULL ? 0 : on_the_clock(gather_taken_since(&d->gather));
}

bool notices_part(struct daemon *d, struct sweep_again *again, struct fab_err *err)
{
    *again = (struct sweep_again){.noticed = &d->noticed, .parts = d->last, .size = d->last_size};
    if (d->notice != NULL)
        again->parts = notice_inventory(d->notice, &again->size);
    if (again->parts == NULL)
        fab_fail(err, PMIXFAB_ERR_NOTFOUND, "nothing was swept yet");
    else if (d->status.stale) /* nor may a part hide that */
        fab_fail(err, PMIXFAB_ERR_PARTIAL, "the last sweep failed");
    return again->parts != NULL && !d->status.stale;
}

void notices_taken(struct daemon *d)
{
    gather_taken(&d->gather);
    notice_forget(&d->noticed);
}

void notices_swept(struct daemon *d, struct sweep_result *result)
{
    if (result->code != PMIXFAB_OK || d->notice_timer == NULL)
        return;
    if (d->notice != NULL) {
        notice_watch(d->notice, result->bytes, result->size);
    } else {
        free(d->last);
        d->last = result->bytes;
        d->last_size = result->size;
    }
    result->bytes = NULL;
}

void notices_round_ended(struct daemon *d)
{
    if (d->notice_timer != NULL)
        round_schedule(d);
}
