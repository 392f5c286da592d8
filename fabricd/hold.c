#include "fabricd/hold.h"

#include <stdlib.h>
#include <string.h>

#define SECOND 1000000ll

struct entry {
    struct hold_key key;
    bool held;
    char *what;       /* held: what people call it, and behind that the subjects; NULL: not known */
    int64_t since;    /* held: when the first of the changes was that it is held for */
    uint32_t changes; /* held: how many there were since */
    int64_t until;    /* held: until when; else when it was released last, 0: it never was held */
    int64_t period;   /* for so long it was held last; 0: it never was */
    int64_t excused;  /* its coming back is not counted up to then; 0: it is */
    int64_t went;     /* the last that was counted: it went, then; 0: it came, or that was not counted */
    unsigned n_times; /* changes within the window, while it is not held */
    int64_t times[HOLD_MAX_COUNT];
};

struct hold {
    struct hold_limits limits;
    int64_t now;
    struct entry **entries; /* by their keys */
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

static void entry_free(struct entry *entry)
{
    free(entry->what);
    free(entry);
}

void hold_free(struct hold *hold)
{
    if (hold == NULL)
        return;
    for (uint32_t i = 0; i < hold->n; i++)
        entry_free(hold->entries[i]);
    free(hold->entries);
    free(hold);
}

/* ---- what is remembered ---- */

static int damping_compare_ends(struct hold_end a, struct hold_end b)
{
    if (a.guid != b.guid)
        return a.guid < b.guid ? -1 : 1;
    return (a.port > b.port) - (a.port < b.port);
}

int hold_compare(const struct hold_key *a, const struct hold_key *b)
{
    int order = damping_compare_ends(a->end, b->end);
    return order != 0 ? order : damping_compare_ends(a->far, b->far);
}

struct hold_key hold_cable(struct hold_end a, struct hold_end b)
{
    return damping_compare_ends(a, b) < 0 ? (struct hold_key){a, b} : (struct hold_key){b, a};
}

struct hold_key hold_switch(uint64_t guid)
{
    return (struct hold_key){.end = {.guid = guid}};
}

bool hold_is_switch(const struct hold_key *key)
{
    return key->end.port == 0 && key->far.guid == 0;
}

/* Where it stands, or would. */
static uint32_t damping_position(const struct hold *hold, const struct hold_key *key)
{
    uint32_t low = 0, high = hold->n;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (hold_compare(&hold->entries[mid]->key, key) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static struct entry *damping_find_entry(const struct hold *hold, const struct hold_key *key)
{
    uint32_t at = damping_position(hold, key);
    return at < hold->n && hold_compare(&hold->entries[at]->key, key) == 0 ? hold->entries[at] : NULL;
}

static struct entry *damping_find_or_add(struct hold *hold, const struct hold_key *key)
{
    struct entry *entry = damping_find_entry(hold, key);
    if (entry != NULL)
        return entry;
    if (hold->n == hold->cap) {
        uint32_t cap = hold->cap == 0 ? 64 : 2 * hold->cap;
        struct entry **larger = reallocarray(hold->entries, cap, sizeof(struct entry *));
        if (larger == NULL)
            return NULL;
        hold->entries = larger;
        hold->cap = cap;
    }
    entry = calloc(1, sizeof(*entry));
    if (entry == NULL)
        return NULL;
    entry->key = *key;
    uint32_t at = damping_position(hold, key);
    memmove(hold->entries + at + 1, hold->entries + at, (hold->n - at) * sizeof(struct entry *));
    hold->entries[at] = entry;
    hold->n++;
    return entry;
}

/* ---- time ---- */

static int64_t window_of(const struct hold *hold)
{
    return hold->limits.window * SECOND;
}

static void forget_old_times(const struct hold *hold, struct entry *entry)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < entry->n_times; i++)
        if (hold->now - entry->times[i] <= window_of(hold))
            entry->times[kept++] = entry->times[i];
    entry->n_times = kept;
    if (hold->now > entry->excused)
        entry->excused = 0;
    if (hold->now - entry->went > window_of(hold))
        entry->went = 0;
}

/* For how long it would be held now. */
static int64_t next_period(const struct hold *hold, const struct entry *entry)
{
    const int64_t down = hold->limits.down * SECOND, most = hold->limits.down_max * SECOND;
    if (entry->period == 0)
        return down;
    int64_t period = 2 * entry->period;
    int64_t window = window_of(hold);
    for (int64_t quiet = hold->now - entry->until; quiet >= window && window > 0 && period > down;
         quiet -= window)
        period /= 2;
    return period < down ? down : period > most ? most : period;
}

/* Does nothing of its past matter any more? */
static bool is_forgotten(const struct hold *hold, const struct entry *entry)
{
    return !entry->held && entry->n_times == 0 && entry->excused == 0 && entry->went == 0 &&
           next_period(hold, entry) == hold->limits.down * SECOND;
}

static void damping_decay(struct hold *hold, int64_t now)
{
    if (now > hold->now)
        hold->now = now;
}

/* Is its time over, or was its holding ended? */
static void let_go(struct entry *entry)
{
    free(entry->what);
    entry->what = NULL;
    entry->held = false;
}

uint32_t hold_pass(struct hold *hold, int64_t now)
{
    uint32_t released = 0, kept = 0;
    damping_decay(hold, now);
    for (uint32_t i = 0; i < hold->n; i++) {
        struct entry *entry = hold->entries[i];
        if (entry->held && hold->now >= entry->until) {
            let_go(entry);
            released++;
        }
        forget_old_times(hold, entry);
        if (is_forgotten(hold, entry))
            entry_free(entry);
        else
            hold->entries[kept++] = entry;
    }
    hold->n = kept;
    return released;
}

bool hold_release(struct hold *hold, const struct hold_key *key)
{
    uint32_t at = damping_position(hold, key);
    struct entry *entry = damping_find_entry(hold, key);
    if (entry == NULL || !entry->held)
        return false;
    entry_free(entry);
    hold->n--;
    memmove(hold->entries + at, hold->entries + at + 1, (hold->n - at) * sizeof(struct entry *));
    return true;
}

/* ---- changes ---- */

/* Is this the return that is not counted? */
static bool is_excused(const struct hold *hold, struct entry *entry)
{
    bool excused = entry->excused != 0 && hold->now <= entry->excused;
    entry->excused = 0;
    return excused;
}

bool hold_change(struct hold *hold, const struct hold_key *key, bool came, int64_t now)
{
    if (hold->limits.count == 0)
        return false;
    damping_decay(hold, now);
    struct entry *entry = damping_find_or_add(hold, key);
    if (entry == NULL)
        return false;
    entry->went = 0;
    if (is_excused(hold, entry))
        return false;
    entry->went = came ? 0 : hold->now;
    if (entry->held && hold->now >= entry->until)
        let_go(entry);
    if (entry->held) {
        const int64_t most = hold->limits.down_max * SECOND;
        entry->period = 2 * entry->period > most ? most : 2 * entry->period;
        entry->until = hold->now + entry->period;
        entry->changes++;
        return false;
    }
    forget_old_times(hold, entry);
    entry->times[entry->n_times++] = hold->now;
    if (entry->n_times < hold->limits.count)
        return false;
    entry->period = next_period(hold, entry);
    entry->until = hold->now + entry->period;
    entry->held = true;
    entry->since = entry->times[0];
    entry->changes = entry->n_times;
    entry->n_times = 0;
    return true;
}

void hold_excuse(struct hold *hold, const struct hold_key *cable, int64_t now)
{
    struct entry *entry = NULL;
    damping_decay(hold, now);
    if (hold->limits.count > 0)
        entry = damping_find_or_add(hold, cable);
    if (entry == NULL)
        return;
    entry->excused = hold->now + window_of(hold);
    entry->went = 0;
}

void hold_excuse_all(struct hold *hold, uint64_t guid, int64_t now)
{
    damping_decay(hold, now);
    for (uint32_t i = 0; i < hold->n; i++) {
        struct entry *entry = hold->entries[i];
        if (hold_is_switch(&entry->key) || (entry->key.end.guid != guid && entry->key.far.guid != guid))
            continue;
        forget_old_times(hold, entry);
        if (entry->went == 0)
            continue;
        if (entry->n_times > 0 && entry->times[entry->n_times - 1] == entry->went)
            entry->n_times--;
        entry->excused = hold->now + window_of(hold);
        entry->went = 0;
    }
}

void hold_name(struct hold *hold, const struct hold_key *key, const char *what, const char *subjects)
{
    struct entry *entry = damping_find_entry(hold, key);
    const char *end = subjects;
    if (entry == NULL || !entry->held)
        return;
    while (*end != '\0')
        end += strlen(end) + 1;
    const size_t n_what = strlen(what) + 1, n_subjects = (size_t)(end - subjects) + 1;
    free(entry->what);
    entry->what = malloc(n_what + n_subjects);
    if (entry->what == NULL)
        return;
    memcpy(entry->what, what, n_what);
    memcpy(entry->what + n_what, subjects, n_subjects);
}

/* ---- questions ---- */

static bool damping_suppresses(const struct hold *hold, struct hold_key key)
{
    const struct entry *entry = damping_find_entry(hold, &key);
    return entry != NULL && entry->held;
}

bool hold_is_held(const struct hold *hold, const struct hold_key *cable)
{
    return damping_suppresses(hold, *cable) || damping_suppresses(hold, hold_switch(cable->end.guid)) ||
           damping_suppresses(hold, hold_switch(cable->far.guid));
}

bool hold_holds_end(const struct hold *hold, uint64_t guid, uint32_t port)
{
    const struct hold_end end = {guid, port};
    for (uint32_t i = 0; i < hold->n; i++) {
        const struct hold_key *key = &hold->entries[i]->key;
        if (hold->entries[i]->held &&
            (damping_compare_ends(key->end, end) == 0 || damping_compare_ends(key->far, end) == 0 ||
             (hold_is_switch(key) && key->end.guid == guid)))
            return true;
    }
    return false;
}

static void damping_describe(const struct entry *entry, struct held *out)
{
    const char *what = entry->what != NULL ? entry->what : "";
    *out = (struct held){.key = entry->key,
                         .what = what,
                         .subjects = what[0] != '\0' ? what + strlen(what) + 1 : "",
                         .since = entry->since,
                         .until = entry->until,
                         .changes = entry->changes};
}

bool hold_next(const struct hold *hold, uint32_t *at, struct held *out)
{
    while (*at < hold->n && !hold->entries[*at]->held)
        (*at)++;
    if (*at >= hold->n)
        return false;
    damping_describe(hold->entries[(*at)++], out);
    return true;
}

bool hold_find(const struct hold *hold, const struct hold_key *key, struct held *out)
{
    const struct entry *entry = damping_find_entry(hold, key);
    if (entry == NULL || !entry->held)
        return false;
    damping_describe(entry, out);
    return true;
}

struct hold_counts hold_count(const struct hold *hold)
{
    struct hold_counts counts = {0};
    struct held held;
    for (uint32_t at = 0; hold_next(hold, &at, &held);) {
        if (hold_is_switch(&held.key))
            counts.switches++;
        else
            counts.cables++;
        if (counts.next == 0 || held.until < counts.next)
            counts.next = held.until;
    }
    return counts;
}

uint32_t hold_remembered(const struct hold *hold)
{
    return hold->n;
}
