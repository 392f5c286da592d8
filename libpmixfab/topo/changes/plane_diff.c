/* plane_diff.c - changes of a plane as a whole between two of its snapshots. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "topo/base/natural.h"
#include "topo/base/order.h"
#include "topo/changes/changes_private.h"
#include "topo/snapshot/format.h"

static int put_plane(struct fab_diff *diff, enum fab_change_kind kind, const char *plane, const char *before,
                     const char *after, const char *why)
{
    struct diff_out out = {.diff = diff};

    diff_put(&out, &(struct fab_change){.kind = kind,
                                        .what = (char *)plane,
                                        .before = (char *)before,
                                        .after = (char *)after,
                                        .why = why});
    return diff_finish(&out);
}

/* ---- indices ---------------------------------------------------------------------------------------- */

/* A pass over the devices of a snapshot, with the host of each. */
struct device_walk {
    const void *bytes;
    const struct snap_device *devices;
    const struct snap_host *hosts;
    uint32_t n, n_hosts, device, host;
};

static struct device_walk walk_begin(const void *bytes)
{
    return (struct device_walk){.bytes = bytes,
                                .devices = snap_section(bytes, SNAP_DEVICES),
                                .hosts = snap_section(bytes, SNAP_HOSTS),
                                .n = snap_meta(bytes)->n_devices,
                                .n_hosts = snap_meta(bytes)->n_hosts};
}

static void walk_on(struct device_walk *w)
{
    w->device++;
    while (w->host + 1 < w->n_hosts && w->hosts[w->host + 1].first <= w->device)
        w->host++;
}

/* Compare in the order of indices. */
static int compare_walks(const struct device_walk *a, const struct device_walk *b)
{
    const struct snap_device *x = &a->devices[a->device], *y = &b->devices[b->device];
    return fab_natural_cmp(snap_string(a->bytes, a->hosts[a->host].name),
                           snap_string(b->bytes, b->hosts[b->host].name))
               ?: fab_natural_cmp(snap_string(a->bytes, x->name), snap_string(b->bytes, y->name))
               ?: FAB_ORDER(x->port, y->port);
}

/* Return the new index of each device of before, FAB_NONE if it is gone; NULL without memory. */
static uint32_t *find_moved(const void *before, const void *after)
{
    struct device_walk b = walk_begin(before), a = walk_begin(after);
    uint32_t *to = malloc((b.n + 1u) * sizeof(*to));

    for (uint32_t i = 0; to != NULL && i < b.n; i++)
        to[i] = FAB_NONE;
    while (to != NULL && b.device < b.n && a.device < a.n) {
        int order = compare_walks(&b, &a);
        if (order == 0)
            to[b.device] = a.device;
        if (order <= 0)
            walk_on(&b);
        if (order >= 0)
            walk_on(&a);
    }
    return to;
}

/* Ranges as text: as many as fit, then the number of the others. */
struct ranges {
    char text[DIFF_VALUE_TEXT];
    size_t used;
    uint32_t more;
};

#define RANGES_FIT (DIFF_VALUE_TEXT - 24)

static void add_range(struct ranges *ranges, uint32_t first, uint32_t n)
{
    char text[32];
    int len = snprintf(text, sizeof(text), n == 1 ? "%s%" PRIu32 : "%s%" PRIu32 "-%" PRIu32,
                       ranges->used > 0 ? ", " : "", first, first + n - 1);

    if (ranges->more > 0 || ranges->used + (size_t)len + 1 > RANGES_FIT) {
        ranges->more++;
        return;
    }
    memcpy(ranges->text + ranges->used, text, (size_t)len + 1);
    ranges->used += (size_t)len;
}

static const char *ranges_text(struct ranges *ranges)
{
    if (ranges->more > 0)
        snprintf(ranges->text + ranges->used, sizeof(ranges->text) - ranges->used, " and %" PRIu32 " more",
                 ranges->more);
    return ranges->text;
}

/* Make one change; a range covers neighbours whose indices moved by the same amount. */
int fab_index_changes(const void *before, const void *after, struct fab_diff *diff)
{
    const uint32_t n_before = snap_meta(before)->n_devices, n_after = snap_meta(after)->n_devices;
    uint32_t *to = find_moved(before, after), n = 0, stayed = 0;
    struct ranges from = {.used = 0}, now = {.used = 0};
    char why[DIFF_WHY_TEXT];
    int rc = PMIXFAB_OK;

    if (to == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t i = 0; i < n_before; i += n) {
        n = 1;
        stayed += to[i] != FAB_NONE;
        if (to[i] == FAB_NONE || to[i] == i)
            continue;
        while (i + n < n_before && to[i + n] == to[i] + n)
            n++;
        stayed += n - 1;
        add_range(&from, i, n);
        add_range(&now, to[i], n);
    }
    snprintf(why, sizeof(why), "%" PRIu32 " device%s came and %" PRIu32 " went", n_after - stayed,
             n_after - stayed == 1 ? "" : "s", n_before - stayed);
    if (from.used > 0)
        rc = put_plane(diff, FAB_CHANGE_INDEX, snap_string(after, snap_meta(after)->name), ranges_text(&from),
                       ranges_text(&now), why);
    free(to);
    return rc;
}

/* ---- kind, shape, default ---------------------------------------------------------------------------- */

static void shape_text(const struct snap_meta *meta, char text[DIFF_VALUE_TEXT])
{
    size_t used = 0;

    text[0] = '\0';
    for (uint32_t i = 0; i < meta->dims; i++)
        used += (size_t)snprintf(text + used, DIFF_VALUE_TEXT - used, "%s%" PRIu32, i > 0 ? "x" : "",
                                 meta->shape[i]);
}

int fab_plane_changes(const void *before, const void *after, struct fab_diff *diff)
{
    const struct snap_meta *was = snap_meta(before), *is = snap_meta(after);
    const char *name = snap_string(after, is->name), *old_kind = snap_string(before, was->kind),
               *kind = snap_string(after, is->kind);
    char old_shape[DIFF_VALUE_TEXT], shape[DIFF_VALUE_TEXT];
    int rc = PMIXFAB_OK;

    shape_text(was, old_shape);
    shape_text(is, shape);
    if (strcmp(old_kind, kind) != 0)
        rc = put_plane(diff, FAB_CHANGE_PLANE_KIND, name, old_kind, kind,
                       "its logical coordinates are numbered anew");
    if (rc == PMIXFAB_OK && strcmp(old_shape, shape) != 0)
        rc = put_plane(diff, FAB_CHANGE_PLANE_SHAPE, name, old_shape, shape,
                       "its largest coordinates have changed");
    return rc;
}

int fab_default_change(const char *before, const char *after, const char *why, struct fab_diff *diff)
{
    return put_plane(diff, FAB_CHANGE_DEFAULT_PLANE, after, before, after, why);
}
