#include "fabricd/sources/report_debounce.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/rate.h"
#include "fabricd/base/timer.h"
#include "topo/model/report.h"

#define QUIET_MS 5 /* after a change of one known host */
#define PATIENCE 3 /* times the quiet time: publish even without quiet */

struct report_debounce {
    const struct config *config;
    struct timer *timer;
    void (*fn)(void *cbdata);
    void *cbdata;
    struct debounce when;
    bool burst;                 /* several hosts changed, or a new one */
    char who[FAB_HOST_MAX + 1]; /* the host that changed last */
};

static void debounce_on_timeout(void *arg)
{
    struct report_debounce *debounce = arg;
    report_debounce_done(debounce);
    debounce->fn(debounce->cbdata);
}

bool report_debounce_is_due(const struct report_debounce *debounce)
{
    return debounce->when.due;
}

void report_debounce_done(struct report_debounce *debounce)
{
    debounce_covered(&debounce->when);
    debounce->burst = false;
    debounce->who[0] = '\0';
    timer_cancel(debounce->timer);
}

void report_debounce_changed(struct report_debounce *debounce, const char *host, bool is_new)
{
    const int64_t now = clock_now(CLOCK_MONOTONIC) / 1000;
    debounce->burst |= is_new || (debounce->when.due && strcmp(debounce->who, host) != 0);
    snprintf(debounce->who, sizeof(debounce->who), "%s", host);
    debounce->when.quiet = debounce->burst ? (int64_t)debounce->config->debounce_ms : QUIET_MS;
    debounce->when.debounce_max = PATIENCE * debounce->when.quiet;
    debounce_changed(&debounce->when, now);
    int64_t wait = debounce_when(&debounce->when) - now;
    if (wait <= 0) {
        /* Do not restart a running timer: each delivery would delay it further. */
        if (timer_pending(debounce->timer))
            return;
        wait = 0;
    }
    timer_after(debounce->timer, wait);
}

int report_debounce_new(struct event_base *base, const struct config *config, void (*fn)(void *cbdata),
                        void *cbdata, struct report_debounce **out)
{
    struct report_debounce *debounce = *out = calloc(1, sizeof(*debounce));
    if (debounce == NULL)
        return PMIXFAB_ERR_NOMEM;
    *debounce =
        (struct report_debounce){.config = config, .fn = fn, .cbdata = cbdata, .when = {.more_follow = true}};
    debounce->timer = timer_new(base, debounce_on_timeout, debounce);
    if (debounce->timer != NULL)
        return PMIXFAB_OK;
    free(debounce);
    *out = NULL;
    return PMIXFAB_ERR_NOMEM;
}

void report_debounce_free(struct report_debounce *debounce)
{
    if (debounce == NULL)
        return;
    timer_free(debounce->timer);
    free(debounce);
}
