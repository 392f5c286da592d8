/*
 * damping.c - damping of cables and switches that flap: they count as down until they are quiet.
 *
 * A cable or switch that changes (comes, or goes) `count` times within `window` is suppressed for `down`.
 * Each change while it is suppressed starts that time again and doubles it, up to `down_max`. When the time
 * is over, it is released. If it flaps again, it is suppressed for twice as long as the last time. But each
 * quiet `window` after its release halves that time, down to `down`.
 *
 * Rules for counting changes between two sweeps:
 * - A change of one cable is one change of that cable.
 * - If a switch with two cables or more disappears or appears as a whole, this is one change of the switch.
 *   Its cables are not counted, since they changed because of the switch. A cable is not counted either if it
 *   returns later than the switch, or went before it, within the window.
 * - If all neighbours of the switch disappear or appear as well, the switch is not counted, because it was
 *   only behind them.
 * - Announced swaps are not counted at all.
 */
#include <stdlib.h>
#include <string.h>

#include "fabricd/engine/publisher.h"
#include "topo/base/array.h"
#include "topo/base/order.h"
#include "topo/base/search.h"

#define SECOND 1000000ll

struct damping {
    struct damping_limits limits;
    int64_t now;
    struct damped **entries; /* by their keys */
    uint32_t n, cap;
};

void damping_limit(struct damping *damping, const struct damping_limits *limits)
{
    damping->limits = *limits;
    if (damping->limits.count > DAMPING_MAX_COUNT)
        damping->limits.count = DAMPING_MAX_COUNT;
    if (damping->limits.down_max < damping->limits.down)
        damping->limits.down_max = damping->limits.down;
}

struct damping *damping_new(const struct damping_limits *limits)
{
    struct damping *damping = calloc(1, sizeof(*damping));
    if (damping != NULL)
        damping_limit(damping, limits);
    return damping;
}

static void damped_free(struct damped *damped)
{
    free(damped->names);
    free(damped);
}

void damping_free(struct damping *damping)
{
    if (damping == NULL)
        return;
    for (uint32_t i = 0; i < damping->n; i++)
        damped_free(damping->entries[i]);
    free(damping->entries);
    free(damping);
}

/* ---- remembered entries ---------------------------------------------------------------------------- */

static int compare_cable_ends(struct damping_end a, struct damping_end b)
{
    return FAB_ORDER(a.guid, b.guid) ?: FAB_ORDER(a.port, b.port);
}

int damping_compare(const struct damping_key *a, const struct damping_key *b)
{
    return compare_cable_ends(a->end, b->end) ?: compare_cable_ends(a->far, b->far);
}

struct damping_key damping_cable(struct damping_end a, struct damping_end b)
{
    return compare_cable_ends(a, b) < 0 ? (struct damping_key){a, b} : (struct damping_key){b, a};
}

struct damping_key damping_switch(uint64_t guid)
{
    return (struct damping_key){.end = {.guid = guid}};
}

bool damping_is_switch(const struct damping_key *key)
{
    return key->end.port == 0 && key->far.guid == 0;
}

/* Return the position of the entry, or where to insert it. */
static uint32_t position_of(const struct damping *damping, const struct damping_key *key, bool *found)
{
    uint32_t at = FAB_LOWER_BOUND(0, damping->n, i, damping_compare(&damping->entries[i]->key, key) < 0);
    *found = at < damping->n && damping_compare(&damping->entries[at]->key, key) == 0;
    return at;
}

static struct damped *find_or_add(struct damping *damping, const struct damping_key *key)
{
    bool found;
    const uint32_t at = position_of(damping, key, &found);
    if (found)
        return damping->entries[at];
    struct damped *damped = NULL;
    if (FAB_ARRAY_ROOM(&damping->entries, &damping->cap, damping->n + 1))
        damped = calloc(1, sizeof(*damped));
    if (damped == NULL)
        return NULL;
    damped->key = *key;
    memmove(damping->entries + at + 1, damping->entries + at, (damping->n++ - at) * sizeof(struct damped *));
    damping->entries[at] = damped;
    return damped;
}

/* ---- time ------------------------------------------------------------------------------------------ */

static void pass_time(struct damping *damping, int64_t now)
{
    if (now > damping->now)
        damping->now = now;
}

static int64_t window_of(const struct damping *damping)
{
    return damping->limits.window * SECOND;
}

static void forget_old_changes(const struct damping *damping, struct damped *damped)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; !damped->suppressed && i < damped->changes; i++)
        if (damping->now - damped->times[i] <= window_of(damping))
            damped->times[kept++] = damped->times[i];
    if (!damped->suppressed)
        damped->changes = kept;
    if (damping->now > damped->excused)
        damped->excused = 0;
    if (damping->now - damped->went > window_of(damping))
        damped->went = 0;
}

/* Return the time for which it would be suppressed now. */
static int64_t next_period(const struct damping *damping, const struct damped *damped)
{
    const int64_t down = damping->limits.down * SECOND, most = damping->limits.down_max * SECOND;
    const int64_t window = window_of(damping);
    if (damped->period == 0)
        return down;
    int64_t period = 2 * damped->period;
    for (int64_t quiet = damping->now - damped->until; quiet >= window && window > 0 && period > down;
         quiet -= window)
        period /= 2;
    return period < down ? down : period > most ? most : period;
}

/* Release the entry if its time is over. */
static bool release_due(const struct damping *damping, struct damped *damped)
{
    if (!damped->suppressed || damping->now < damped->until)
        return false;
    free(damped->names);
    damped->names = NULL;
    damped->suppressed = false;
    damped->changes = 0;
    return true;
}

uint32_t damping_advance(struct damping *damping, int64_t now)
{
    uint32_t released = 0, kept = 0;
    pass_time(damping, now);
    for (uint32_t i = 0; i < damping->n; i++) {
        struct damped *damped = damping->entries[i];
        released += release_due(damping, damped);
        forget_old_changes(damping, damped);
        if (damped->suppressed || damped->changes > 0 || damped->excused != 0 || damped->went != 0 ||
            next_period(damping, damped) != damping->limits.down * SECOND)
            damping->entries[kept++] = damped;
        else /* nothing of its past matters any more */
            damped_free(damped);
    }
    damping->n = kept;
    return released;
}

bool damping_release(struct damping *damping, const struct damping_key *key)
{
    bool found;
    const uint32_t at = position_of(damping, key, &found);
    if (!found || !damping->entries[at]->suppressed)
        return false;
    damped_free(damping->entries[at]);
    damping->n--;
    memmove(damping->entries + at, damping->entries + at + 1, (damping->n - at) * sizeof(struct damped *));
    return true;
}

/* ---- changes --------------------------------------------------------------------------------------- */

bool damping_change(struct damping *damping, const struct damping_key *key, bool came, int64_t now)
{
    if (damping->limits.count == 0)
        return false;
    pass_time(damping, now);
    struct damped *damped = find_or_add(damping, key);
    if (damped == NULL)
        return false;
    const bool excused = damped->excused != 0 && damping->now <= damped->excused;
    damped->excused = 0;
    damped->went = came || excused ? 0 : damping->now;
    if (excused)
        return false;
    release_due(damping, damped);
    if (damped->suppressed) {
        const int64_t most = damping->limits.down_max * SECOND;
        damped->period = 2 * damped->period > most ? most : 2 * damped->period;
        damped->until = damping->now + damped->period;
        damped->changes++;
        return false;
    }
    forget_old_changes(damping, damped);
    damped->times[damped->changes++] = damping->now;
    if (damped->changes < damping->limits.count)
        return false;
    damped->period = next_period(damping, damped);
    damped->until = damping->now + damped->period;
    damped->suppressed = true;
    return true;
}

/* Do not count its next change within the window: that has another cause. */
static void excuse(const struct damping *damping, struct damped *damped)
{
    damped->excused = damping->now + window_of(damping);
    damped->went = 0;
}

/* A switch has disappeared: do not count the cables that went before it within the window, since that was its
 * effect. Suppressions that they caused stay. */
static void ignore_cables_of(struct damping *damping, uint64_t guid)
{
    for (uint32_t i = 0; i < damping->n; i++) {
        struct damped *damped = damping->entries[i];
        const struct damping_key *key = &damped->key;
        if (damping_is_switch(key) || (key->end.guid != guid && key->far.guid != guid))
            continue;
        forget_old_changes(damping, damped);
        if (damped->went == 0)
            continue;
        if (!damped->suppressed && damped->changes > 0 && damped->times[damped->changes - 1] == damped->went)
            damped->changes--;
        excuse(damping, damped);
    }
}

void damping_name(struct damping *damping, const struct damping_key *key, const char *what,
                  const char *subjects)
{
    struct damped *damped = damping_find(damping, key);
    const char *end = subjects;
    if (damped == NULL)
        return;
    while (*end != '\0')
        end += strlen(end) + 1;
    const size_t n_what = strlen(what) + 1, n_subjects = (size_t)(end - subjects) + 1;
    free(damped->names);
    damped->names = malloc(n_what + n_subjects);
    if (damped->names == NULL)
        return;
    memcpy(damped->names, what, n_what);
    memcpy(damped->names + n_what, subjects, n_subjects);
}

/* ---- questions ------------------------------------------------------------------------------------- */

const char *damped_what(const struct damped *damped)
{
    return damped->names != NULL ? damped->names : "";
}

const char *damped_subjects(const struct damped *damped)
{
    return damped->names != NULL ? damped->names + strlen(damped->names) + 1 : "";
}

struct damped *damping_find(const struct damping *damping, const struct damping_key *key)
{
    bool found;
    const uint32_t at = position_of(damping, key, &found);
    return found && damping->entries[at]->suppressed ? damping->entries[at] : NULL;
}

const struct damped *damping_next(const struct damping *damping, uint32_t *at)
{
    while (*at < damping->n && !damping->entries[*at]->suppressed)
        (*at)++;
    return *at < damping->n ? damping->entries[(*at)++] : NULL;
}

bool damping_is_suppressed(const struct damping *damping, const struct damping_key *cable)
{
    const struct damping_key end = damping_switch(cable->end.guid), far = damping_switch(cable->far.guid);
    return damping_find(damping, cable) != NULL || damping_find(damping, &end) != NULL ||
           damping_find(damping, &far) != NULL;
}

bool damping_suppresses_end(const struct damping *damping, uint64_t guid, uint32_t port)
{
    const struct damping_end end = {guid, port};
    const struct damped *damped;
    for (uint32_t at = 0; (damped = damping_next(damping, &at)) != NULL;) {
        const struct damping_key *key = &damped->key;
        if (compare_cable_ends(key->end, end) == 0 || compare_cable_ends(key->far, end) == 0 ||
            (damping_is_switch(key) && key->end.guid == guid))
            return true;
    }
    return false;
}

struct damping_counts damping_count(const struct damping *damping)
{
    struct damping_counts counts = {0};
    const struct damped *damped;
    for (uint32_t at = 0; (damped = damping_next(damping, &at)) != NULL;) {
        counts.switches += damping_is_switch(&damped->key);
        counts.cables += !damping_is_switch(&damped->key);
        if (counts.next == 0 || damped->until < counts.next)
            counts.next = damped->until;
    }
    return counts;
}

uint32_t damping_remembered(const struct damping *damping)
{
    return damping->n;
}

/* ---- comparison of two sweeps ---------------------------------------------------------------------- */

/* A cable that came or went. */
struct transition {
    const struct sweep_cable *cable;
    bool came;
};

/* A node with such a cable. */
struct concerned {
    uint64_t guid;
    uint32_t before, after; /* numbers of cables */
    bool is_switch;
    bool itself; /* a changed cable led to a node that is there before and after */
};

struct counting {
    struct damping *damping;
    int64_t when;
    const struct flap_calls *calls;
    struct transition *changed; /* by their keys */
    uint32_t n_changed;
    struct concerned *nodes; /* by GUID */
    uint32_t n_nodes;
};

void sweep_links_free(struct sweep_links *seen)
{
    free(seen->cables);
    *seen = (struct sweep_links){0};
}

static void find_transitions(struct counting *c, const struct sweep_links *before,
                             const struct sweep_links *now)
{
    for (uint32_t i = 0, k = 0; i < before->n || k < now->n;) {
        int order = i == before->n ? 1
                    : k == now->n  ? -1
                                   : damping_compare(&before->cables[i].key, &now->cables[k].key);
        if (order != 0)
            c->changed[c->n_changed++] =
                (struct transition){order < 0 ? &before->cables[i] : &now->cables[k], order > 0};
        i += order <= 0;
        k += order >= 0;
    }
}

static int compare_nodes(const void *a, const void *b)
{
    const struct concerned *x = a, *y = b;
    return FAB_ORDER(x->guid, y->guid);
}

/* Called for both ends of all cables: bsearch() would take several times as long. */
static struct concerned *find_node(const struct counting *c, uint64_t guid)
{
    uint32_t at = FAB_LOWER_BOUND(0, c->n_nodes, i, c->nodes[i].guid < guid);
    return at < c->n_nodes && c->nodes[at].guid == guid ? &c->nodes[at] : NULL;
}

/* Count the nodes' cables before; with the changes follows how many they have now. */
static void count_cables(const struct counting *c, const struct sweep_links *before)
{
    for (uint32_t i = 0; i < before->n; i++) {
        const struct damping_key *key = &before->cables[i].key;
        struct concerned *end = find_node(c, key->end.guid), *far = find_node(c, key->far.guid);
        if (end != NULL)
            end->after = ++end->before;
        if (far != NULL)
            far->after = ++far->before;
    }
    for (uint32_t i = 0; i < c->n_changed; i++) {
        const struct damping_key *key = &c->changed[i].cable->key;
        const int more = c->changed[i].came ? 1 : -1;
        find_node(c, key->end.guid)->after += (uint32_t)more;
        find_node(c, key->far.guid)->after += (uint32_t)more;
    }
}

static void find_nodes(struct counting *c, const struct sweep_links *before)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < c->n_changed; i++) {
        const struct sweep_cable *cable = c->changed[i].cable;
        c->nodes[c->n_nodes++] =
            (struct concerned){.guid = cable->key.end.guid, .is_switch = cable->end_is_switch};
        c->nodes[c->n_nodes++] =
            (struct concerned){.guid = cable->key.far.guid, .is_switch = cable->far_is_switch};
    }
    qsort(c->nodes, c->n_nodes, sizeof(*c->nodes), compare_nodes);
    for (uint32_t i = 0; i < c->n_nodes; i++)
        if (kept == 0 || c->nodes[kept - 1].guid != c->nodes[i].guid)
            c->nodes[kept++] = c->nodes[i];
    c->n_nodes = kept;
    count_cables(c, before);
    for (uint32_t i = 0; i < c->n_changed; i++) {
        const struct damping_key *key = &c->changed[i].cable->key;
        struct concerned *end = find_node(c, key->end.guid), *far = find_node(c, key->far.guid);
        end->itself |= (c->changed[i].came ? far->before : far->after) > 0;
        far->itself |= (c->changed[i].came ? end->before : end->after) > 0;
    }
}

static bool has_gone(const struct concerned *sw)
{
    return sw->is_switch && sw->before >= 2 && sw->after == 0;
}

static bool has_come(const struct concerned *sw)
{
    return sw->is_switch && sw->before == 0 && sw->after >= 2;
}

static void count_change(const struct counting *c, const struct damping_key *key, bool came)
{
    if (damping_change(c->damping, key, came, c->when))
        c->calls->on_suppressed(key, c->calls->cbdata);
}

/* Return whether the change has another cause: its switch, or an announced swap. */
static bool goes_along(const struct counting *c, const struct damping_key *key)
{
    const struct concerned *ends[2] = {find_node(c, key->end.guid), find_node(c, key->far.guid)};
    for (int e = 0; e < 2; e++)
        if (ends[e] != NULL && (has_gone(ends[e]) || has_come(ends[e])))
            return true;
    return c->calls->is_planned(key->end.guid, c->calls->cbdata) ||
           c->calls->is_planned(key->far.guid, c->calls->cbdata);
}

/* Count switches first, then cables that went, then cables that came. */
static void count_all(const struct counting *c)
{
    for (uint32_t i = 0; i < c->n_nodes; i++) {
        const struct concerned *sw = &c->nodes[i];
        const struct damping_key key = damping_switch(sw->guid);
        if (has_gone(sw))
            ignore_cables_of(c->damping, sw->guid);
        if ((has_gone(sw) || has_come(sw)) && sw->itself && !c->calls->is_planned(sw->guid, c->calls->cbdata))
            count_change(c, &key, has_come(sw));
    }
    for (int came = 0; came <= 1; came++)
        for (uint32_t i = 0; i < c->n_changed; i++) {
            const struct damping_key *key = &c->changed[i].cable->key;
            if (c->changed[i].came != (came == 1))
                continue;
            const bool along = goes_along(c, key);
            struct damped *damped = along ? find_or_add(c->damping, key) : NULL;
            if (damped != NULL) /* nor is its return within the window counted */
                excuse(c->damping, damped);
            if (!along || came == 1)
                count_change(c, key, came == 1);
        }
}

int flaps_count(struct damping *damping, struct sweep_links *before, struct sweep_links *now, int64_t when,
                const struct flap_calls *calls)
{
    struct counting c = {.damping = damping, .when = when, .calls = calls};
    pass_time(damping, when);
    int rc = PMIXFAB_ERR_NOMEM;
    if (before->known) {
        c.changed = calloc((size_t)before->n + now->n + 1, sizeof(*c.changed));
        if (c.changed == NULL)
            goto cleanup;
        find_transitions(&c, before, now);
    }
    if (c.n_changed > 0) {
        c.nodes = calloc(2 * (size_t)c.n_changed, sizeof(*c.nodes));
        if (c.nodes == NULL)
            goto cleanup;
        find_nodes(&c, before);
        count_all(&c);
    }
    sweep_links_free(before);
    *before = *now;
    *now = (struct sweep_links){0};
    rc = PMIXFAB_OK;
cleanup:
    free(c.changed);
    free(c.nodes);
    return rc;
}
