/* planned.c - swaps that an operator announced. */
#include <stdlib.h>
#include <string.h>

#include "fabricd/base/log.h"
#include "fabricd/engine/publish.h"
#include "topo/base/array.h"
#include "topo/base/search.h"
#include "topo/model/host_name.h"

struct planned {
    struct store *store;
    struct store_planned *rows; /* by name (strcmp); they own their names */
    uint32_t n, cap;
    bool failed; /* no memory while they were read */
};

static int planned_nomem(struct fab_err *err)
{
    return fab_fail(err, PMIXFAB_ERR_NOMEM, "expect: out of memory");
}

/* Return the position of the name, or where to insert it. */
static uint32_t planned_position(const struct planned *planned, const char *name, bool *found)
{
    uint32_t at = FAB_LOWER_BOUND(0, planned->n, i, strcmp(planned->rows[i].name, name) < 0);
    *found = at < planned->n && strcmp(planned->rows[at].name, name) == 0;
    return at;
}

static int planned_load_row(const struct store_planned *row, void *cbdata)
{
    struct planned *planned = cbdata;
    char *name = FAB_ARRAY_ROOM(&planned->rows, &planned->cap, planned->n + 1) ? strdup(row->name) : NULL;
    planned->failed = name == NULL;
    if (planned->failed)
        return 1;
    planned->rows[planned->n] = *row;
    planned->rows[planned->n++].name = name;
    return 0;
}

int planned_new(struct store *store, struct planned **out, struct fab_err *err)
{
    struct planned *planned = calloc(1, sizeof(*planned));
    *out = NULL;
    if (planned == NULL)
        return planned_nomem(err);
    planned->store = store;
    int rc = store_planned_load(store, planned_load_row, planned, err);
    if (rc == PMIXFAB_OK && planned->failed)
        rc = planned_nomem(err);
    if (rc != PMIXFAB_OK) {
        planned_free(planned);
        return rc;
    }
    *out = planned;
    return PMIXFAB_OK;
}

void planned_free(struct planned *planned)
{
    if (planned == NULL)
        return;
    for (uint32_t i = 0; i < planned->n; i++)
        free((char *)planned->rows[i].name);
    free(planned->rows);
    free(planned);
}

static void planned_remove(struct planned *planned, uint32_t at)
{
    free((char *)planned->rows[at].name);
    planned->n--;
    memmove(&planned->rows[at], &planned->rows[at + 1], (planned->n - at) * sizeof(*planned->rows));
}

/* Drop a row that is over; if the store cannot delete it now, it is deleted later. */
static void planned_expire_due(struct planned *planned, int64_t now)
{
    struct fab_err err = {""};
    for (uint32_t i = 0; i < planned->n;) {
        if (planned->rows[i].until > now) {
            i++;
            continue;
        }
        if (store_planned_delete(planned->store, planned->rows[i].name, &err) != PMIXFAB_OK)
            log_error("expect: %s", err.text);
        planned_remove(planned, i);
    }
}

const struct store_planned *planned_all(struct planned *planned, int64_t now, uint32_t *n)
{
    planned_expire_due(planned, now);
    *n = planned->n;
    return planned->rows;
}

int planned_add(struct planned *planned, const char *name, int64_t now, unsigned seconds, unsigned uid,
                struct fab_err *err)
{
    bool found;
    if (seconds == 0 || seconds > PLANNED_MAX_TIME)
        return fab_fail(err, PMIXFAB_ERR_RANGE, "expect: give a time from 1 second to %d days",
                        PLANNED_MAX_TIME / 86400);
    planned_expire_due(planned, now);
    uint32_t at = planned_position(planned, name, &found);
    if (!found && planned->n >= PLANNED_MAX)
        return fab_fail(
            err, PMIXFAB_ERR_RANGE,
            "expect: %u swaps are announced already: cancel some (fabricctl expect HOST --cancel)",
            planned->n);
    char *copy =
        found || !FAB_ARRAY_ROOM(&planned->rows, &planned->cap, planned->n + 1) ? NULL : strdup(name);
    if (!found && copy == NULL)
        return planned_nomem(err);
    const struct store_planned row = {
        .name = name, .since = now, .until = now + (int64_t)seconds * 1000000, .uid = uid};
    int rc = store_planned_put(planned->store, &row, err);
    if (rc != PMIXFAB_OK) {
        free(copy);
        return rc;
    }
    struct store_planned *slot = &planned->rows[at];
    const char *kept = found ? slot->name : copy;
    if (!found)
        memmove(slot + 1, slot, (planned->n++ - at) * sizeof(*slot));
    *slot = row;
    slot->name = kept;
    return PMIXFAB_OK;
}

int planned_cancel(struct planned *planned, const char *name, int64_t now, struct fab_err *err)
{
    bool found;
    planned_expire_due(planned, now);
    uint32_t at = planned_position(planned, name, &found);
    if (!found)
        return fab_fail(err, PMIXFAB_ERR_NOTFOUND,
                        "expect: no swap of %s is announced: `fabricctl expect` lists the announced ones",
                        name);
    int rc = store_planned_delete(planned->store, name, err);
    if (rc == PMIXFAB_OK)
        planned_remove(planned, at);
    return rc;
}

static bool is_planned(const struct planned *planned, const char *name)
{
    for (uint32_t i = 0; i < planned->n; i++)
        if (fab_same_host(planned->rows[i].name, name))
            return true;
    return false;
}

/* Return whether the change adds, removes or renames a device: indices may move then. */
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
    case FAB_CHANGE_INACTIVE:
        return change->was_lost; /* otherwise it has kept its index */
    default:
        return false;
    }
}

/* Indices move because of other changes of the generation: mark the moves as planned if all their possible
 * causes are. */
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
        if (diff->changes[i].kind == FAB_CHANGE_INDEX || diff->changes[i].kind == FAB_CHANGE_PLANE_KIND ||
            diff->changes[i].kind == FAB_CHANGE_PLANE_SHAPE)
            diff->changes[i].planned = true;
}

void planned_mark(struct planned *planned, struct fab_diff *diff, int64_t now)
{
    planned_expire_due(planned, now);
    if (planned->n == 0)
        return;
    for (uint32_t i = 0; i < diff->n; i++) {
        struct fab_change *change = &diff->changes[i];
        const char *subject = change->subjects == NULL ? "" : change->subjects;
        for (; *subject != '\0' && !change->planned; subject = fab_subject_next(subject))
            change->planned = is_planned(planned, subject);
    }
    mark_indices(diff);
}
