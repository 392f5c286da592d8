#include "pmix/relay/relay_state.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include <utlist.h>

#include "topo/base/library_log.h"

#define DEADLINE_MS 10000

struct relay fab_relay = {
    .lock = PTHREAD_MUTEX_INITIALIZER, .tried_changed = PTHREAD_COND_INITIALIZER, .deadline_ms = DEADLINE_MS};

void relay_poke(struct relay *relay)
{
    const uint64_t one = 1;
    relay->poked = true;
    if (write(relay->bell, &one, sizeof(one)) < 0)
        return; /* it is set already */
}

/* Do not seed from the clock: a thousand servers may start in the same second. */
int64_t relay_with_jitter(unsigned pause)
{
    static unsigned count;
    unsigned chance;
    if (getrandom(&chance, sizeof(chance), GRND_NONBLOCK) != (ssize_t)sizeof(chance))
        chance =
            ((unsigned)(uintptr_t)pthread_self() >> 4) + (unsigned)getpid() * 7919 + ++count * 2654435761u;
    return pause / 2 + chance % (pause + 1);
}

void relay_forget_attempt(struct relay *relay, struct relay_request *request)
{
    if (request->id == 0)
        return;
    request->id = 0;
    relay->waiting++;
}

void relay_lost(struct relay *relay)
{
    struct relay_subscription *subscription = &relay->subscription;
    struct relay_request *request;
    if (relay->connected)
        fab_log(PMIXFAB_LOG_WARNING, "relay: the connection to the scheduler is lost");
    relay->connected = false;
    subscription->id = 0;
    subscription->confirmed = subscription->news_ready = false;
    free(subscription->news.planes);
    memset(&subscription->news, 0, sizeof(subscription->news));
    DL_FOREACH(relay->list, request)
    {
        relay_forget_attempt(relay, request);
    }
    relay_poke(relay);
}
