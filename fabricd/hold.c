#include "fabricd/hold.h"

#include <stdlib.h>
#include <string.h>

#define SECOND 1000000ll

struct end {
    uint64_t guid;
    unsigned port;
    bool held;
    int64_t until;    /* held: until when; else when it was released last, 0: it never was held */
    int64_t period;   /* for so long it was held last; 0: it never was */
    unsigned n_times; /* changes within the window, while it is not held */
    int64_t times[HOLD_MAX_COUNT];
};

struct hold {
    struct hold_limits limits;
    int64_t now;
    struct end **ends; /* by GUID and port */
    uint32_t n, cap;
};

struct hold *hold_new(const struct hold_limits *limits)
{
    struct hold *hold = calloc(1, sizeof(*hold));
    if (hold == NULL)
        return NULL;
    hold->limits = *limits;
    if (hold->limits.count > HOLD_MAX_COUNT)
        hold->limits.count = HOLD_MAX_COUNT;
    if (hold->limits.down_max < hold->limits.down)
        hold->limits.down_max = hold->limits.down;
    return hold;
}

void hold_free(struct hold *hold)
{
    if (hold == NULL)
        return;
    for (uint32_t i = 0; i < hold->n; i++)
        free(hold->ends[i]);
    free(hold->ends);
    free(hold);
}

/* ---- the ends ---- */

/* Where it stands, or would. */
static uint32_t place_of(const struct hold *hold, uint64_t guid, unsigned port)
{
    uint32_t low = 0, high = hold->n;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        const struct end *end = hold->ends[mid];
        if (end->guid < guid || (end->guid == guid && end->port < port))
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static struct end *find(const struct hold *hold, uint64_t guid, unsigned port)
{
    uint32_t at = place_of(hold, guid, port);
    if (at == hold->n || hold->ends[at]->guid != guid || hold->ends[at]->port != port)
        return NULL;
    return hold->ends[at];
}

static struct end *find_or_add(struct hold *hold, uint64_t guid, unsigned port)
{
    struct end *end = find(hold, guid, port);
    if (end != NULL)
        return end;
    if (hold->n == hold->cap) {
        uint32_t cap = hold->cap == 0 ? 64 : 2 * hold->cap;
        struct end **larger = reallocarray(hold->ends, cap, sizeof(struct end *));
        if (larger == NULL)
            return NULL;
        hold->ends = larger;
        hold->cap = cap;
    }
    end = calloc(1, sizeof(*end));
    if (end == NULL)
        return NULL;
    end->guid = guid;
    end->port = port;
    uint32_t at = place_of(hold, guid, port);
    memmove(hold->ends + at + 1, hold->ends + at, (hold->n - at) * sizeof(struct end *));
    hold->ends[at] = end;
    hold->n++;
    return end;
}

/* ---- time ---- */

static void forget_old_times(const struct hold *hold, struct end *end)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < end->n_times; i++)
        if (hold->now - end->times[i] <= hold->limits.window * SECOND)
            end->times[kept++] = end->times[i];
    end->n_times = kept;
}

/* For how long it would be held now. */
static int64_t next_period(const struct hold *hold, const struct end *end)
{
    const int64_t down = hold->limits.down * SECOND, most = hold->limits.down_max * SECOND;
    if (end->period == 0)
        return down;
    int64_t period = 2 * end->period;
    int64_t window = hold->limits.window * SECOND;
    for (int64_t quiet = hold->now - end->until; quiet >= window && window > 0 && period > down;
         quiet -= window)
        period /= 2;
    return period < down ? down : period > most ? most : period;
}

/* Does nothing of its past matter any more? */
static bool is_forgotten(const struct hold *hold, const struct end *end)
{
    return !end->held && end->n_times == 0 && next_period(hold, end) == hold->limits.down * SECOND;
}

uint32_t hold_pass(struct hold *hold, int64_t now)
{
    uint32_t released = 0, kept = 0;
    if (now > hold->now)
        hold->now = now;
    for (uint32_t i = 0; i < hold->n; i++) {
        struct end *end = hold->ends[i];
        if (end->held && hold->now >= end->until) {
            end->held = false;
            released++;
        }
        forget_old_times(hold, end);
        if (is_forgotten(hold, end))
            free(end);
        else
            hold->ends[kept++] = end;
    }
    hold->n = kept;
    return released;
}

bool hold_change(struct hold *hold, uint64_t guid, unsigned port, int64_t now)
{
    if (hold->limits.count == 0)
        return false;
    if (now > hold->now)
        hold->now = now;
    struct end *end = find_or_add(hold, guid, port);
    if (end == NULL)
        return false;
    if (end->held && hold->now >= end->until)
        end->held = false;
    if (end->held) {
        const int64_t most = hold->limits.down_max * SECOND;
        end->period = 2 * end->period > most ? most : 2 * end->period;
        end->until = hold->now + end->period;
        return false;
    }
    forget_old_times(hold, end);
    end->times[end->n_times++] = hold->now;
    if (end->n_times < hold->limits.count)
        return false;
    end->period = next_period(hold, end);
    end->until = hold->now + end->period;
    end->held = true;
    end->n_times = 0;
    return true;
}

/* ---- questions ---- */

bool hold_is_held(const struct hold *hold, uint64_t guid, unsigned port, int64_t *until)
{
    const struct end *end = find(hold, guid, port);
    if (end == NULL || !end->held)
        return false;
    if (until != NULL)
        *until = end->until;
    return true;
}

uint32_t hold_count(const struct hold *hold, int64_t *next)
{
    uint32_t n = 0;
    int64_t first = 0;
    for (uint32_t i = 0; i < hold->n; i++) {
        if (!hold->ends[i]->held)
            continue;
        n++;
        if (first == 0 || hold->ends[i]->until < first)
            first = hold->ends[i]->until;
    }
    if (next != NULL)
        *next = first;
    return n;
}

uint32_t hold_remembered(const struct hold *hold)
{
    return hold->n;
}
