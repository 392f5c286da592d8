#include "fabricd/settle.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "topo/report.h"

#define QUIET_MS 5 /* after a change of one host that is known */
#define PATIENCE 3 /* times the quiet: then it is time, quiet or not */

struct settle {
    const struct config *config;
    struct event *timer;
    void (*fn)(void *cbdata);
    void *cbdata;
    int64_t since;              /* monotonic milliseconds of the first change that is due; 0: none */
    bool burst;                 /* several hosts changed, or a new one came */
    char who[FAB_HOST_MAX + 1]; /* the host that changed last */
};

static int64_t debounce_clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void debounce_on_timeout(evutil_socket_t fd, short what, void *arg)
{
    struct settle *settle = arg;
    (void)fd, (void)what;
    settle_done(settle);
    settle->fn(settle->cbdata);
}

void settle_done(struct settle *settle)
{
    settle->since = 0;
    settle->burst = false;
    settle->who[0] = '\0';
    event_del(settle->timer);
}

void settle_changed(struct settle *settle, const char *host, bool is_new)
{
    const int64_t now = debounce_clock_ms();
    if (settle->since == 0)
        settle->since = now;
    else if (strcmp(settle->who, host) != 0)
        settle->burst = true;
    settle->burst |= is_new;
    snprintf(settle->who, sizeof(settle->who), "%s", host);
    const int64_t quiet = settle->burst ? (int64_t)settle->config->settle_ms : QUIET_MS;
    int64_t wait = settle->since + PATIENCE * quiet - now;
    if (wait > quiet)
        wait = quiet;
    if (wait <= 0) {
        /* It may be about to run: adding it again would put that off, delivery by delivery. */
        if (event_pending(settle->timer, EV_TIMEOUT, NULL))
            return;
        wait = 0;
    }
    const struct timeval limit = {.tv_sec = wait / 1000, .tv_usec = wait % 1000 * 1000};
    event_add(settle->timer, &limit);
}

int settle_new(struct event_base *base, const struct config *config, void (*fn)(void *cbdata), void *cbdata,
               struct settle **out)
{
    struct settle *settle = *out = calloc(1, sizeof(*settle));
    if (settle == NULL)
        return PMIXFAB_ERR_NOMEM;
    *settle = (struct settle){.config = config, .fn = fn, .cbdata = cbdata};
    settle->timer = evtimer_new(base, debounce_on_timeout, settle);
    if (settle->timer != NULL)
        return PMIXFAB_OK;
    free(settle);
    *out = NULL;
    return PMIXFAB_ERR_NOMEM;
}

void settle_free(struct settle *settle)
{
    if (settle == NULL)
        return;
    event_free(settle->timer);
    free(settle);
}
