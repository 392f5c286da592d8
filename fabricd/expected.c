#include "fabricd/expected.h"

#include <stdlib.h>
#include <string.h>

#include "fabricd/log.h"
#include "topo/join.h"

struct expected {
    struct store *store;
    struct store_expected *rows; /* by name (strcmp); the names are theirs */
    uint32_t n, cap;
    bool failed; /* out of memory while they were read */
};

static int planned_nomem(struct fab_err *err)
{
    return fab_fail(err, PMIXFAB_ERR_NOMEM, "expect: out of memory");
}

static bool planned_reserve(struct expected *expected)
{
    if (expected->n < expected->cap)
        return true;
    uint32_t cap = expected->cap == 0 ? 8 : 2 * expected->cap;
    struct store_expected *grown = reallocarray(expected->rows, cap, sizeof(*grown));
    if (grown == NULL)
        return false;
    expected->rows = grown;
    expected->cap = cap;
    return true;
}

/* Where the name stands, or would. */
static uint32_t planned_position(const struct expected *expected, const char *name, bool *found)
{
    uint32_t at = 0;
    while (at < expected->n && strcmp(expected->rows[at].name, name) < 0)
        at++;
    *found = at < expected->n && strcmp(expected->rows[at].name, name) == 0;
    return at;
}

static int planned_load_row(const struct store_expected *row, void *cbdata)
{
    struct expected *expected = cbdata;
    char *name = planned_reserve(expected) ? strdup(row->name) : NULL;
    expected->failed = name == NULL;
    if (expected->failed)
        return 1;
    expected->rows[expected->n] = *row;
    expected->rows[expected->n++].name = name;
    return 0;
}

int expected_new(struct store *store, struct expected **out, struct fab_err *err)
{
    struct expected *expected = calloc(1, sizeof(*expected));
    *out = NULL;
    if (expected == NULL)
        return planned_nomem(err);
    expected->store = store;
    int rc = store_expected_load(store, planned_load_row, expected, err);
    if (rc == PMIXFAB_OK && expected->failed)
        rc = planned_nomem(err);
    if (rc != PMIXFAB_OK) {
        expected_free(expected);
        return rc;
    }
    *out = expected;
    return PMIXFAB_OK;
}

void expected_free(struct expected *expected)
{
    if (expected == NULL)
        return;
    for (uint32_t i = 0; i < expected->n; i++)
        free((char *)expected->rows[i].name);
    free(expected->rows);
    free(expected);
}

static void planned_remove(struct expected *expected, uint32_t at)
{
    free((char *)expected->rows[at].name);
    expected->n--;
    memmove(&expected->rows[at], &expected->rows[at + 1], (expected->n - at) * sizeof(*expected->rows));
}

/* A row that cannot be removed from the store now is over all the same, and goes at the next occasion. */
static void planned_expire_due(struct expected *expected, int64_t now)
{
    struct fab_err err = {""};
    for (uint32_t i = 0; i < expected->n;) {
        if (expected->rows[i].until > now) {
            i++;
            continue;
        }
        if (store_expected_delete(expected->store, expected->rows[i].name, &err) != PMIXFAB_OK)
            log_warning("expect: %s", err.text);
        planned_remove(expected, i);
    }
}

const struct store_expected *expected_all(struct expected *expected, int64_t now, uint32_t *n)
{
    planned_expire_due(expected, now);
    *n = expected->n;
    return expected->rows;
}

int expected_add(struct expected *expected, const char *name, int64_t now, unsigned seconds, unsigned uid,
                 struct fab_err *err)
{
    bool found;
    if (seconds == 0 || seconds > EXPECTED_MAX_TIME)
        return fab_fail(err, PMIXFAB_ERR_RANGE, "expect: %u seconds: give a time from 1 second to %d days",
                        seconds, EXPECTED_MAX_TIME / 86400);
    planned_expire_due(expected, now);
    uint32_t at = planned_position(expected, name, &found);
    if (!found && expected->n >= EXPECTED_MAX)
        return fab_fail(
            err, PMIXFAB_ERR_RANGE,
            "expect: %u swaps are announced already: cancel some (fabricctl expect HOST --cancel)",
            expected->n);
    char *copy = found || !planned_reserve(expected) ? NULL : strdup(name);
    if (!found && copy == NULL)
        return planned_nomem(err);
    const struct store_expected row = {
        .name = name, .since = now, .until = now + (int64_t)seconds * 1000000, .uid = uid};
    int rc = store_expected_put(expected->store, &row, err);
    if (rc != PMIXFAB_OK) {
        free(copy);
        return rc;
    }
    struct store_expected *slot = &expected->rows[at];
    const char *kept = found ? slot->name : copy;
    if (!found)
        memmove(slot + 1, slot, (expected->n++ - at) * sizeof(*slot));
    *slot = row;
    slot->name = kept;
    return PMIXFAB_OK;
}

int expected_cancel(struct expected *expected, const char *name, int64_t now, struct fab_err *err)
{
    bool found;
    planned_expire_due(expected, now);
    uint32_t at = planned_position(expected, name, &found);
    if (!found)
        return fab_fail(err, PMIXFAB_ERR_NOTFOUND,
                        "expect: %s is not expected to change: `fabricctl expect` lists what is", name);
    int rc = store_expected_delete(expected->store, name, err);
    if (rc == PMIXFAB_OK)
        planned_remove(expected, at);
    return rc;
}

static bool is_expected(const struct expected *expected, const char *name)
{
    for (uint32_t i = 0; i < expected->n; i++)
        if (fab_same_host(expected->rows[i].name, name))
            return true;
    return false;
}

/* Does a device come, go, or get another name by this? Then indices may move. */
static bool moves_indices(const struct fab_change *change)
{
    switch (change->kind) {
    case FAB_CHANGE_HOST_ADDED:
    case FAB_CHANGE_HOST_LOST:
    case FAB_CHANGE_DEVICE_ADDED:
    case FAB_CHANGE_DEVICE_LOST:
    case FAB_CHANGE_REPORT_ADDED:
    case FAB_CHANGE_REPORT_LOST:
    case FAB_CHANGE_HCA_REPLACED:
    case FAB_CHANGE_HOST_MOVED:
    case FAB_CHANGE_NAME:
        return true;
    case FAB_CHANGE_HOST_BACK:
    case FAB_CHANGE_PORT_BACK:
        return strcmp(change->before, "missing") != 0; /* else it had kept its index */
    default:
        return false;
    }
}

/* Indices move because of the other changes of their generation: planned when all that can move them are. */
static void mark_indices(struct fab_diff *diff)
{
    bool any = false, all = true;
    for (uint32_t i = 0; i < diff->n; i++) {
        if (!moves_indices(&diff->changes[i]))
            continue;
        any = true;
        all = all && diff->changes[i].planned;
    }
    for (uint32_t i = 0; any && all && i < diff->n; i++)
        if (diff->changes[i].kind == FAB_CHANGE_INDEX)
            diff->changes[i].planned = true;
}

void expected_mark(struct expected *expected, struct fab_diff *diff, int64_t now)
{
    planned_expire_due(expected, now);
    if (expected->n == 0)
        return;
    for (uint32_t i = 0; i < diff->n; i++) {
        struct fab_change *change = &diff->changes[i];
        const char *subject = change->subjects == NULL ? "" : change->subjects;
        for (; *subject != '\0' && !change->planned; subject = fab_subject_next(subject))
            change->planned = is_expected(expected, subject);
    }
    mark_indices(diff);
}
