/* front_words.c - what fabricd and its front say to each other, fabricd's side. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* Without memory somebody is forgotten; the macros would end the process. */
#define HASH_NONFATAL_OOM        1
#define uthash_nonfatal_oom(one) free(one)
#include <uthash.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/log.h"
#include "fabricd/base/loop.h"
#include "fabricd/base/timer.h"
#include "fabricd/front/front_state.h"
#include "fabricd/serving/served.h"

#define NAMES_A_MS  100   /* no front gives more */
#define NAMES_APART 65536 /* from the last that is known: some may not have come through */

struct front_meant {
    UT_hash_handle hh;
    uint64_t rank, index;
    char who[]; /* its rank as text, and its namespace */
};

/* ---- what is served ------------------------------------------------------------------------------- */

static void send_plain(struct front *front, enum front_kind kind, uint64_t a, const char *text)
{
    channel_send(front->channel, &(struct front_message){.kind = kind, .a = a, .text = text});
}

void front_serve(struct front *front)
{
    struct served_set *set = front->channel == NULL ? NULL : served_get(front->served);
    const uint32_t n = set == NULL ? 0 : set->n;
    struct event_plane *planes = calloc((size_t)n + 1, sizeof(*planes));
    uint64_t *generations = calloc((size_t)n + 1, sizeof(*generations));
    for (uint32_t i = 0; planes != NULL && generations != NULL && i < n; i++) {
        planes[i].index = set->planes[i]->info.index;
        snprintf(planes[i].name, sizeof(planes[i].name), "%s", set->planes[i]->info.name);
        generations[i] = set->planes[i]->info.generation;
    }
    if (planes != NULL && generations != NULL && set != NULL)
        channel_send(front->channel, &(struct front_message){.kind = FRONT_SERVE,
                                                             .a = set->generation,
                                                             .b = (uint64_t)set->published,
                                                             .n = n,
                                                             .planes = planes,
                                                             .generations = generations});
    free(planes);
    free(generations);
    served_set_put(set);
}

void front_stale(struct front *front, bool stale)
{
    send_plain(front, FRONT_STALE, stale, NULL);
}

/* ---- announcements -------------------------------------------------------------------------------- */

void front_go_on(struct front *front)
{
    void (*done)(void *cbdata) = front->announced;
    front->announced = NULL;
    if (front->patience != NULL)
        timer_cancel(front->patience);
    if (done != NULL)
        done(front->announced_cbdata);
}

static void front_on_patience(void *arg)
{
    struct front *front = arg;
    log_warning("front: it has not said in time that something changes: going on without it");
    front_go_on(front);
}

/* Remember that these are to be told: with those that were owed before, each once. */
static void front_owe(struct front *front, const struct event_plane *planes, uint32_t n, uint64_t generation)
{
    struct event_plane *all = realloc(front->owed, ((size_t)front->n_owed + n + 1) * sizeof(*all));
    front->owed_generation = generation;
    front->owed_number = front->announcement;
    if (all == NULL)
        return;
    front->owed = all;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = 0;
        while (k < front->n_owed && all[k].index != planes[i].index)
            k++;
        all[k] = planes[i];
        front->n_owed += k == front->n_owed;
    }
}

static void front_say(struct front *front, bool pending, const struct event_plane *planes, uint32_t n,
                      uint64_t generation, uint64_t number)
{
    channel_send(
        front->channel,
        &(struct front_message){
            .kind = FRONT_ANNOUNCE, .a = pending, .b = generation, .c = number, .n = n, .planes = planes});
}

void front_announce(struct front *front, bool pending, const struct event_plane *planes, uint32_t n,
                    uint64_t generation, void (*done)(void *cbdata), void *cbdata)
{
    front->announcement++;
    if (!pending)
        front_owe(front, planes, n, generation);
    if (!front->ready) { /* nobody is connected who could be told; of one that begins somebody soon may be */
        if (!pending)
            front_say(front, false, planes, n, generation, front->announcement);
        done(cbdata);
        return;
    }
    front->announced = done;
    front->announced_cbdata = cbdata;
    front_say(front, pending, planes, n, generation, front->announcement);
    timer_after(front->patience, pending ? FRONT_PENDING_MS : FRONT_UPDATED_MS);
}

static void front_has_announced(struct front *front, uint64_t number)
{
    if (number == front->announcement && front->announced != NULL)
        front_go_on(front);
    if (number == front->owed_number)
        front->n_owed = 0;
}

/* ---- for others ----------------------------------------------------------------------------------- */

void front_on_replaced(struct front *front, void (*fn)(void *cbdata), void *cbdata)
{
    front->fns.replaced = fn;
    front->fns.replaced_cbdata = cbdata;
}

static bool front_is_now(const struct front *front, uint64_t number)
{
    return front->channel != NULL && number >> 32 == front->number;
}

/* ---- credentials of connections ------------------------------------------------------------------- */

void front_on_check(struct front *front, void (*fn)(const char *credential, uint64_t number, void *cbdata),
                    void *cbdata)
{
    front->fns.check = fn;
    front->fns.check_cbdata = cbdata;
}

void front_checked(struct front *front, uint64_t number, bool good, uid_t uid, gid_t gid)
{
    if (front_is_now(front, number))
        channel_send(front->channel, &(struct front_message){.kind = FRONT_CHECKED,
                                                             .a = number & UINT32_MAX,
                                                             .b = good,
                                                             .c = (uint64_t)gid << 32 | uid});
}

static bool front_check(struct front *front, const struct front_message *message)
{
    const uint64_t number = (uint64_t)front->number << 32 | (uint32_t)message->a;
    if (strlen(message->text) > FRONT_MAX_CHECKED)
        return false;
    if (front->fns.check != NULL)
        front->fns.check(message->text, number, front->fns.check_cbdata);
    else
        front_checked(front, number, false, 0, 0);
    return true;
}

/* ---- who was given which plane -------------------------------------------------------------------- */

static void front_remember(struct front *front, const struct front_message *message)
{
    struct front_meant *found = NULL;
    char who[600];
    const int length = snprintf(who, sizeof(who), "%u %s", (unsigned)message->a, message->text);
    if (length >= (int)sizeof(who))
        return;
    HASH_FIND(hh, front->meant, who, (size_t)length, found);
    if (found != NULL) {
        found->index = message->b;
        return;
    }
    found = calloc(1, sizeof(*found) + (size_t)length + 1);
    if (found == NULL)
        return;
    memcpy(found->who, who, (size_t)length + 1);
    found->rank = message->a;
    found->index = message->b;
    HASH_ADD_KEYPTR(hh, front->meant, found->who, (size_t)length, found);
    if (HASH_COUNT(front->meant) > PLANE_MEMORY_MAX) {
        struct front_meant *oldest = front->meant;
        HASH_DEL(front->meant, oldest);
        free(oldest);
    }
}

static void tell_meant(struct front *front)
{
    struct front_meant *one, *next;
    HASH_ITER(hh, front->meant, one, next)
    {
        channel_send(front->channel, &(struct front_message){.kind = FRONT_MEANT,
                                                             .a = one->rank,
                                                             .b = one->index,
                                                             .text = strchr(one->who, ' ') + 1});
    }
}

/* ---- names of tools ------------------------------------------------------------------------------- */

/* More than a front can have given in its time would use up the names for those that come later. */
static bool front_named(struct front *front, uint64_t next)
{
    const int64_t lived = clock_now(CLOCK_MONOTONIC) / 1000 - front->life.began;
    if (next > front->named_from + NAMES_APART + (uint64_t)(lived > 0 ? lived : 0) * NAMES_A_MS)
        return false;
    if (next < UINT32_MAX / 2 && next + NAMES_APART > front->first_name)
        front->first_name = next + NAMES_APART;
    return true;
}

/* ---- all of it ------------------------------------------------------------------------------------ */

/* The one that is configured; else that of the front before, which its tools know. */
static unsigned front_port(const struct front *front)
{
    return front->config->pmix_port != 0 ? front->config->pmix_port : front->port;
}

static void tell_settings(struct front *front)
{
    const struct config *config = front->config;
    channel_send(front->channel,
                 &(struct front_message){.kind = FRONT_SETTINGS,
                                         .a = config->role,
                                         .b = front_port(front) | (config->remote ? FRONT_REMOTE : 0),
                                         .c = config->node_user == NULL ? 0 : (uint64_t)front->node_uid + 1,
                                         .text = config->rundir,
                                         .more = config->host});
    if (config->pmix_listen != NULL)
        channel_send(front->channel,
                     &(struct front_message){.kind = FRONT_LISTEN, .text = config->pmix_listen});
    send_plain(front, FRONT_LOG, (uint64_t)config->log, NULL);
}

void front_tell_all(struct front *front)
{
    tell_settings(front);
    front_serve(front);
    front_stale(front, served_is_stale(front->served));
    tell_meant(front);
    front_tell_refused(front);
    front->named_from = front->first_name;
    channel_send(front->channel, &(struct front_message){.kind = FRONT_BEGIN, .c = front->first_name});
    if (front->n_owed > 0)
        front_say(front, false, front->owed, front->n_owed, front->owed_generation, front->owed_number);
}

bool front_take_word(struct front *front, const struct front_message *message)
{
    switch (message->kind) {
    case FRONT_CHECK:
        return front_check(front, message);
    case FRONT_ANNOUNCED:
        front_has_announced(front, message->c);
        return true;
    case FRONT_MEANT:
        front_remember(front, message);
        return true;
    case FRONT_NAMED:
        return front_named(front, message->c);
    default:
        return false;
    }
}

int front_words_start(struct front *front)
{
    front->patience = timer_new(front->base, front_on_patience, front);
    return front->patience == NULL ? PMIXFAB_ERR_NOMEM : PMIXFAB_OK;
}

void front_words_stop(struct front *front)
{
    struct front_meant *one, *next;
    timer_free(front->patience);
    HASH_ITER(hh, front->meant, one, next)
    {
        HASH_DEL(front->meant, one); /* NOLINT(clang-analyzer-unix.Malloc): nothing links to a freed one */
        free(one);
    }
    free(front->owed);
}
