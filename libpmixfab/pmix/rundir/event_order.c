#include "pmix/rundir/event_order.h"

#include <stdlib.h>
#include <string.h>

#include "topo/base/array.h"

struct order_state {
    uint64_t generation;
    int64_t published;
    bool gone;
};

struct order_entry {
    char name[SNAP_NAME_MAX + 1];
    uint32_t index;
    struct order_state now, known; /* as found by the last look; as reported to callers */
    bool named;                    /* named in the `pending` of the last look */
    bool open;                     /* PENDING was raised, UPDATED was not */
    uint64_t announced;            /* the generation of that PENDING */
};

struct event_order {
    struct order_entry *entries;
    uint32_t n, room;
    uint32_t n_open;
    uint64_t open_for;            /* the open pairs wait for the end of this `pending`; 0: none */
    uint64_t pending;             /* the valid one of the last look; 0: none */
    uint64_t last_seen;           /* in the file, valid or not */
    int64_t since;                /* time when that was first seen */
    struct order_change *changes; /* of the step; room for `room` */
};

struct event_order *event_order_new(void)
{
    return calloc(1, sizeof(struct event_order));
}

void event_order_free(struct event_order *order)
{
    if (order == NULL)
        return;
    free(order->entries);
    free(order->changes);
    free(order);
}

static struct order_entry *order_find(struct event_order *order, const char *name)
{
    for (uint32_t i = 0; i < order->n; i++)
        if (strcmp(order->entries[i].name, name) == 0)
            return &order->entries[i];
    return NULL;
}

/* Find or add an entry; NULL without memory. */
static struct order_entry *order_entry(struct event_order *order, const char *name)
{
    struct order_entry *entry = order_find(order, name);
    if (entry != NULL)
        return entry;
    const uint32_t room = order->room;
    if (!FAB_ARRAY_ROOM(&order->entries, &order->room, (uint64_t)order->n + 1))
        return NULL;
    if (order->room != room) {
        struct order_change *changes = reallocarray(order->changes, order->room, sizeof(*changes));
        if (changes == NULL) {
            order->room = room; /* a larger array of entries does no harm */
            return NULL;
        }
        order->changes = changes;
    }
    entry = &order->entries[order->n++];
    memset(entry, 0, sizeof(*entry));
    strncpy(entry->name, name, SNAP_NAME_MAX);
    return entry;
}

/* ---- input from looks ------------------------------------------------------------------------------ */

static struct order_entry *order_take(struct event_order *order, const struct order_plane *plane)
{
    struct order_entry *entry = order_entry(order, plane->name);
    if (entry == NULL)
        return NULL;
    entry->index = plane->index;
    entry->now = (struct order_state){plane->generation, plane->published, plane->gone};
    return entry;
}

void event_order_know(struct event_order *order, const struct order_plane *plane)
{
    struct order_entry *entry = order_take(order, plane);
    if (entry == NULL)
        return;
    entry->known = entry->now;
    order->n_open -= entry->open;
    entry->open = false;
}

/* Use a `pending` while it is recent enough. */
static void order_take_pending(struct event_order *order, uint64_t generation, int64_t now)
{
    if (generation != order->last_seen)
        order->since = now;
    order->last_seen = generation;
    order->pending = now - order->since < ORDER_PATIENCE_MS ? generation : 0;
}

int event_order_look(struct event_order *order, const struct order_plane *planes, uint32_t n,
                     const struct fab_pending *pending, int64_t now)
{
    int rc = PMIXFAB_OK;
    for (uint32_t i = 0; i < n; i++)
        if (order_take(order, &planes[i]) == NULL)
            rc = PMIXFAB_ERR_NOMEM;
    order_take_pending(order, pending->generation, now);
    for (uint32_t i = 0; i < order->n; i++)
        order->entries[i].named = false;
    for (uint32_t i = 0; i < pending->n && order->pending != 0; i++) {
        struct order_entry *entry = order_find(order, pending->planes[i].name);
        if (entry == NULL && (entry = order_entry(order, pending->planes[i].name)) != NULL)
            entry->index = pending->planes[i].index;
        if (entry == NULL)
            rc = PMIXFAB_ERR_NOMEM;
        else
            entry->named = true;
    }
    return rc;
}

/* ---- steps ----------------------------------------------------------------------------------------- */

static bool order_changed(const struct order_entry *entry)
{
    const struct order_state *now = &entry->now, *known = &entry->known;
    return now->gone
               ? !known->gone
               : known->gone || now->generation != known->generation || now->published != known->published;
}

/*
 * Return whether the change belongs, wholly or in part, to an earlier generation than the present `pending`.
 */
static bool order_precedes(const struct event_order *order, const struct order_entry *entry)
{
    return order->pending == 0 || !entry->named ||
           (!entry->now.gone && entry->now.generation < order->pending);
}

static void order_add(struct order_step *step, struct order_change *changes, const struct order_entry *entry,
                      uint64_t generation)
{
    struct order_change *change = &changes[step->n++];
    *change = (struct order_change){.index = entry->index, .generation = generation};
    memcpy(change->name, entry->name, sizeof(change->name));
}

static void order_open(struct event_order *order, struct order_entry *entry, uint64_t generation,
                       struct order_step *step)
{
    entry->open = true;
    entry->announced = generation;
    order->n_open++;
    order_add(step, order->changes, entry, generation);
}

/* Open pairs for changes without a `pending`, or after its end. */
static void order_open_changed(struct event_order *order, struct order_step *step)
{
    for (uint32_t i = 0; i < order->n; i++) {
        struct order_entry *entry = &order->entries[i];
        if (!entry->open && order_changed(entry) && order_precedes(order, entry))
            order_open(order, entry, entry->now.generation, step);
    }
    if (step->n > 0)
        order->open_for = 0;
}

/*
 * Return whether the part of a generation that was in place before its `pending` was seen is reported by now.
 */
static bool order_is_done(const struct event_order *order, const struct order_entry *entry)
{
    return entry->known.gone ? entry->now.gone : entry->known.generation == order->pending;
}

static void order_open_named(struct event_order *order, struct order_step *step)
{
    for (uint32_t i = 0; i < order->n; i++)
        if (order->entries[i].named && !order_is_done(order, &order->entries[i]))
            order_open(order, &order->entries[i], order->pending, step);
    order->open_for = order->pending;
}

/*
 * Close a pair. If the plane is at a later generation already, this pair is for the announced generation and
 * the next pair for the present one. If it is at an earlier one, because the publisher failed or died, it is
 * reported as it is.
 */
static void order_close(struct event_order *order, struct order_entry *entry, struct order_step *step)
{
    const bool further = !entry->now.gone && entry->now.generation > entry->announced;
    const bool same = entry->now.gone || further || entry->now.generation == 0;
    order_add(step, order->changes, entry, same ? entry->announced : entry->now.generation);
    entry->known = entry->now;
    if (further)
        entry->known.generation = entry->announced;
    entry->open = false;
    order->n_open--;
}

static void order_close_all(struct event_order *order, struct order_step *step)
{
    for (uint32_t i = 0; i < order->n; i++)
        if (order->entries[i].open)
            order_close(order, &order->entries[i], step);
    order->open_for = 0;
}

bool event_order_next(struct event_order *order, struct order_step *step)
{
    *step = (struct order_step){.pending = true, .changes = order->changes};
    if (order->n_open > 0 && event_order_waits(order))
        return false;
    order_open_changed(order, step);
    if (step->n > 0)
        return true;
    step->pending = order->n_open == 0;
    if (order->n_open > 0)
        order_close_all(order, step);
    else if (order->pending != 0)
        order_open_named(order, step);
    return step->n > 0;
}

bool event_order_waits(const struct event_order *order)
{
    return order->pending != 0 && order->open_for == order->pending;
}
