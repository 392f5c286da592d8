#include "fabricd/server/server_events.h"

#include <pmix.h>
#include <pmix_server.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "fabricd/base/log.h"
#include "fabricd/base/timer.h"
#include "fabricd/server/server.h"

/*
 * An announcement. The library's thread counts down; the event loop waits for zero or for the deadline. Both
 * hold a reference, so that a late handler finds it.
 */
struct announcement {
    atomic_uint refs;
    atomic_uint waiting; /* notifications with running handlers */
    struct timer *finished;
    events_done_fn done;
    void *cbdata;
    bool called; /* done was called; event loop only */
};

/* The data of a notification; freed when its handlers have finished. */
struct notification {
    struct announcement *announcement;
    pmix_info_t *info;
    size_t n;
};

static void announcement_put(struct announcement *a)
{
    if (atomic_fetch_sub(&a->refs, 1) != 1)
        return;
    timer_free(a->finished);
    free(a);
}

static void event_on_finished(void *arg)
{
    struct announcement *a = arg;
    if (a->called)
        return;
    if (atomic_load(&a->waiting) > 0) /* the deadline has passed */
        log_warning("events: a handler in this process took more than %d s: continuing without it",
                    EVENTS_DEADLINE_S);
    events_done_fn done = a->done;
    void *cbdata = a->cbdata;
    a->called = true;
    timer_cancel(a->finished);
    announcement_put(a);
    done(cbdata);
}

static void notification_free(struct notification *notification)
{
    PMIX_INFO_FREE(notification->info, notification->n);
    announcement_put(notification->announcement);
    free(notification);
}

/* Called on the library's thread when the local handlers have finished. */
static void handlers_done(pmix_status_t status, void *cbdata)
{
    struct notification *notification = cbdata;
    struct announcement *a = notification->announcement;
    if (status != PMIX_SUCCESS && status != PMIX_OPERATION_SUCCEEDED)
        log_debug("events: notification ended with %s", PMIx_Error_string(status));
    if (atomic_fetch_sub(&a->waiting, 1) == 1)
        timer_fire(a->finished);
    notification_free(notification);
}

static struct notification *notification_new(struct announcement *a, const struct order_change *change)
{
    struct notification *notification = calloc(1, sizeof(*notification));
    if (notification == NULL)
        return NULL;
    bool yes = true;
    notification->n = 4;
    PMIX_INFO_CREATE(notification->info, notification->n);
    if (notification->info == NULL) {
        free(notification);
        return NULL;
    }
    PMIX_INFO_LOAD(&notification->info[0], PMIX_FABRIC_INDEX, &change->index, PMIX_SIZE);
    PMIX_INFO_LOAD(&notification->info[1], PMIXFAB_KEY_GENERATION, &change->generation, PMIX_UINT64);
    PMIX_INFO_LOAD(&notification->info[2], PMIX_FABRIC_PLANE, change->name, PMIX_STRING);
    /* Tools that connect later must not get old events. */
    PMIX_INFO_LOAD(&notification->info[3], PMIX_EVENT_DO_NOT_CACHE, &yes, PMIX_BOOL);
    notification->announcement = a;
    atomic_fetch_add(&a->refs, 1);
    return notification;
}

void events_announce(struct event_base *base, bool pending, const struct order_change *changes, uint32_t n,
                     events_done_fn done, void *cbdata)
{
    struct announcement *a = calloc(1, sizeof(*a));
    if (a == NULL || (a->finished = timer_new(base, event_on_finished, a)) == NULL) {
        log_error("events: out of memory: the change is published without an event");
        free(a);
        done(cbdata);
        return;
    }
    atomic_init(&a->refs, 1);
    atomic_init(&a->waiting, 1); /* one for this function, so that the count cannot reach zero early */
    a->done = done;
    a->cbdata = cbdata;
    timer_after(a->finished, EVENTS_DEADLINE_S * 1000);
    for (uint32_t i = 0; i < n; i++) {
        struct notification *notification = notification_new(a, &changes[i]);
        if (notification == NULL)
            continue;
        atomic_fetch_add(&a->waiting, 1);
        pmix_status_t rc = PMIx_Notify_event(pending ? PMIX_FABRIC_UPDATE_PENDING : PMIX_FABRIC_UPDATED,
                                             server_self(), PMIX_RANGE_SESSION, notification->info,
                                             notification->n, handlers_done, notification);
        if (rc == PMIX_SUCCESS)
            continue;
        if (rc != PMIX_OPERATION_SUCCEEDED)
            log_error("events: plane %s: %s", changes[i].name, PMIx_Error_string(rc));
        atomic_fetch_sub(&a->waiting, 1);
        notification_free(notification);
    }
    if (atomic_fetch_sub(&a->waiting, 1) == 1)
        timer_fire(a->finished);
}
