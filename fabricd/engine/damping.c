#include "fabricd/engine/damping.h"

#include <stdlib.h>
#include <string.h>

#include "topo/base/array.h"
#include "topo/base/search.h"

#define SECOND 1000000ll

struct entry {
    struct damping_key key;
    bool suppressed;
    char *what;       /* suppressed: what people call it, and behind that the subjects; NULL: not known */
    int64_t since;    /* suppressed: when the first of the changes was that it is suppressed for */
    uint32_t changes; /* suppressed: how many there were since */
    int64_t until;    /* suppressed: until when; else when it was released last, 0: it never was suppressed */
    int64_t period;   /* for so long it was suppressed last; 0: it never was */
    int64_t excused;  /* its coming back is not counted up to then; 0: it is */
    int64_t went;     /* the last that was counted: it went, then; 0: it came, or that was not counted */
    unsigned n_times; /* changes within the window, while it is not suppressed */
    int64_t times[DAMPING_MAX_COUNT];
};

struct damping {
    struct damping_limits limits;
    int64_t now;
    struct entry **entries; /* by their keys */
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

static void entry_free(struct entry *entry)
{
    free(entry->what);
    free(entry);
}

void damping_free(struct damping *damping)
{
    if (damping == NULL)
        return;
    for (uint32_t i = 0; i < damping->n; i++)
        entry_free(damping->entries[i]);
    free(damping->entries);
    free(damping);
}

/* ---- what is remembered ---- */

static int damping_compare_ends(struct damping_end a, struct damping_end b)
{
    if (a.guid != b.guid)
        return a.guid < b.guid ? -1 : 1;
    return (a.port > b.port) - (a.port < b.port);
}

int damping_compare(const struct damping_key *a, const struct damping_key *b)
{
    int order = damping_compare_ends(a->end, b->end);
    return order != 0 ? order : damping_compare_ends(a->far, b->far);
}

struct damping_key damping_cable(struct damping_end a, struct damping_end b)
{
    return damping_compare_ends(a, b) < 0 ? (struct damping_key){a, b} : (struct damping_key){b, a};
}

struct damping_key damping_switch(uint64_t guid)
{
    return (struct damping_key){.end = {.guid = guid}};
}

bool damping_is_switch(const struct damping_key *key)
{
    return key->end.port == 0 && key->far.guid == 0;
}

/* Where it stands, or would. */
static uint32_t damping_position(const struct damping *damping, const struct damping_key *key)
{
    return FAB_LOWER_BOUND(0, damping->n, i, damping_compare(&damping->entries[i]->key, key) < 0);
}

static struct entry *damping_find_entry(const struct damping *damping, const struct damping_key *key)
{
    uint32_t at = damping_position(damping, key);
    return at < damping->n && damping_compare(&damping->entries[at]->key, key) == 0 ? damping->entries[at]
                                                                                    : NULL;
}

static struct entry *damping_find_or_add(struct damping *damping, const struct damping_key *key)
{
    struct entry *entry = damping_find_entry(damping, key);
    if (entry != NULL)
        return entry;
    if (FAB_ARRAY_ROOM(&damping->entries, &damping->cap, damping->n + 1))
        entry = calloc(1, sizeof(*entry));
    if (entry == NULL)
        return NULL;
    entry->key = *key;
    uint32_t at = damping_position(damping, key);
    memmove(damping->entries + at + 1, damping->entries + at, (damping->n - at) * sizeof(struct entry *));
    damping->entries[at] = entry;
    damping->n++;
    return entry;
}

/* ---- time ---- */

static int64_t window_of(const struct damping *damping)
{
    return damping->limits.window * SECOND;
}

static void forget_old_times(const struct damping *damping, struct entry *entry)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < entry->n_times; i++)
        if (damping->now - entry->times[i] <= window_of(damping))
            entry->times[kept++] = entry->times[i];
    entry->n_times = kept;
    if (damping->now > entry->excused)
        entry->excused = 0;
    if (damping->now - entry->went > window_of(damping))
        entry->went = 0;
}

/* For how long it would be suppressed now. */
static int64_t next_period(const struct damping *damping, const struct entry *entry)
{
    const int64_t down = damping->limits.down * SECOND, most = damping->limits.down_max * SECOND;
    if (entry->period == 0)
        return down;
    int64_t period = 2 * entry->period;
    int64_t window = window_of(damping);
    for (int64_t quiet = damping->now - entry->until; quiet >= window && window > 0 && period > down;
         quiet -= window)
        period /= 2;
    return period < down ? down : period > most ? most : period;
}

/* Does nothing of its past matter any more? */
static bool is_forgotten(const struct damping *damping, const struct entry *entry)
{
    return !entry->suppressed && entry->n_times == 0 && entry->excused == 0 && entry->went == 0 &&
           next_period(damping, entry) == damping->limits.down * SECOND;
}

static void damping_decay(struct damping *damping, int64_t now)
{
    if (now > damping->now)
        damping->now = now;
}

/* Is its time over, or was its holding ended? */
static void let_go(struct entry *entry)
{
    free(entry->what);
    entry->what = NULL;
    entry->suppressed = false;
}

uint32_t damping_advance(struct damping *damping, int64_t now)
{
    uint32_t released = 0, kept = 0;
    damping_decay(damping, now);
    for (uint32_t i = 0; i < damping->n; i++) {
        struct entry *entry = damping->entries[i];
        if (entry->suppressed && damping->now >= entry->until) {
            let_go(entry);
            released++;
        }
        forget_old_times(damping, entry);
        if (is_forgotten(damping, entry))
            entry_free(entry);
        else
            damping->entries[kept++] = entry;
    }
    damping->n = kept;
    return released;
}

bool damping_release(struct damping *damping, const struct damping_key *key)
{
    uint32_t at = damping_position(damping, key);
    struct entry *entry = damping_find_entry(damping, key);
    if (entry == NULL || !entry->suppressed)
        return false;
    entry_free(entry);
    damping->n--;
    memmove(damping->entries + at, damping->entries + at + 1, (damping->n - at) * sizeof(struct entry *));
    return true;
}

/* ---- changes ---- */

bool damping_change(struct damping *damping, const struct damping_key *key, bool came, int64_t now)
{
    if (damping->limits.count == 0)
        return false;
    damping_decay(damping, now);
    struct entry *entry = damping_find_or_add(damping, key);
    if (entry == NULL)
        return false;
    const bool excused = entry->excused != 0 && damping->now <= entry->excused; /* it is not counted */
    entry->went = 0;
    entry->excused = 0;
    if (excused)
        return false;
    entry->went = came ? 0 : damping->now;
    if (entry->suppressed && damping->now >= entry->until)
        let_go(entry);
    if (entry->suppressed) {
        const int64_t most = damping->limits.down_max * SECOND;
        entry->period = 2 * entry->period > most ? most : 2 * entry->period;
        entry->until = damping->now + entry->period;
        entry->changes++;
        return false;
    }
    forget_old_times(damping, entry);
    entry->times[entry->n_times++] = damping->now;
    if (entry->n_times < damping->limits.count)
        return false;
    entry->period = next_period(damping, entry);
    entry->until = damping->now + entry->period;
    entry->suppressed = true;
    entry->since = entry->times[0];
    entry->changes = entry->n_times;
    entry->n_times = 0;
    return true;
}

void damping_ignore(struct damping *damping, const struct damping_key *cable, int64_t now)
{
    struct entry *entry = NULL;
    damping_decay(damping, now);
    if (damping->limits.count > 0)
        entry = damping_find_or_add(damping, cable);
    if (entry == NULL)
        return;
    entry->excused = damping->now + window_of(damping);
    entry->went = 0;
}

void damping_ignore_all(struct damping *damping, uint64_t guid, int64_t now)
{
    damping_decay(damping, now);
    for (uint32_t i = 0; i < damping->n; i++) {
        struct entry *entry = damping->entries[i];
        if (damping_is_switch(&entry->key) || (entry->key.end.guid != guid && entry->key.far.guid != guid))
            continue;
        forget_old_times(damping, entry);
        if (entry->went == 0)
            continue;
        if (entry->n_times > 0 && entry->times[entry->n_times - 1] == entry->went)
            entry->n_times--;
        entry->excused = damping->now + window_of(damping);
        entry->went = 0;
    }
}

void damping_name(struct damping *damping, const struct damping_key *key, const char *what,
                  const char *subjects)
{
    struct entry *entry = damping_find_entry(damping, key);
    const char *end = subjects;
    if (entry == NULL || !entry->suppressed)
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

static bool damping_suppresses(const struct damping *damping, struct damping_key key)
{
    const struct entry *entry = damping_find_entry(damping, &key);
    return entry != NULL && entry->suppressed;
}

bool damping_is_suppressed(const struct damping *damping, const struct damping_key *cable)
{
    return damping_suppresses(damping, *cable) ||
           damping_suppresses(damping, damping_switch(cable->end.guid)) ||
           damping_suppresses(damping, damping_switch(cable->far.guid));
}

bool damping_suppresses_end(const struct damping *damping, uint64_t guid, uint32_t port)
{
    const struct damping_end end = {guid, port};
    for (uint32_t i = 0; i < damping->n; i++) {
        const struct damping_key *key = &damping->entries[i]->key;
        if (damping->entries[i]->suppressed &&
            (damping_compare_ends(key->end, end) == 0 || damping_compare_ends(key->far, end) == 0 ||
             (damping_is_switch(key) && key->end.guid == guid)))
            return true;
    }
    return false;
}

static void damping_describe(const struct entry *entry, struct suppressed *out)
{
    const char *what = entry->what != NULL ? entry->what : "";
    *out = (struct suppressed){.key = entry->key,
                               .what = what,
                               .subjects = what[0] != '\0' ? what + strlen(what) + 1 : "",
                               .since = entry->since,
                               .until = entry->until,
                               .changes = entry->changes};
}

bool damping_next(const struct damping *damping, uint32_t *at, struct suppressed *out)
{
    while (*at < damping->n && !damping->entries[*at]->suppressed)
        (*at)++;
    if (*at >= damping->n)
        return false;
    damping_describe(damping->entries[(*at)++], out);
    return true;
}

bool damping_find(const struct damping *damping, const struct damping_key *key, struct suppressed *out)
{
    const struct entry *entry = damping_find_entry(damping, key);
    if (entry == NULL || !entry->suppressed)
        return false;
    damping_describe(entry, out);
    return true;
}

struct damping_counts damping_count(const struct damping *damping)
{
    struct damping_counts counts = {0};
    struct suppressed suppressed;
    for (uint32_t at = 0; damping_next(damping, &at, &suppressed);) {
        if (damping_is_switch(&suppressed.key))
            counts.switches++;
        else
            counts.cables++;
        if (counts.next == 0 || suppressed.until < counts.next)
            counts.next = suppressed.until;
    }
    return counts;
}

uint32_t damping_remembered(const struct damping *damping)
{
    return damping->n;
}
