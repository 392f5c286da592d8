/* index_diff.c - what changed about a plane as a whole from one of its snapshots to the next. */
#include "topo/changes/index_diff.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/base/natural.h"
#include "topo/base/order.h"
#include "topo/changes/text_sizes.h"
#include "topo/snapshot/format.h"

/* A walk over the devices of a snapshot, with the host of each. */
struct walk {
    const void *bytes;
    const struct snap_device *devices;
    const struct snap_host *hosts;
    uint32_t n, n_hosts, device, host;
};

static struct walk walk_begin(const void *bytes)
{
    return (struct walk){.bytes = bytes,
                         .devices = snap_section(bytes, SNAP_DEVICES),
                         .hosts = snap_section(bytes, SNAP_HOSTS),
                         .n = snap_meta(bytes)->n_devices,
                         .n_hosts = snap_meta(bytes)->n_hosts};
}

static void walk_on(struct walk *w)
{
    w->device++;
    while (w->host + 1 < w->n_hosts && w->hosts[w->host + 1].first <= w->device)
        w->host++;
}

/* In the order of indices. */
static int index_compare_devices(const struct walk *a, const struct walk *b)
{
    const struct snap_device *x = &a->devices[a->device], *y = &b->devices[b->device];
    return fab_natural_cmp(snap_string(a->bytes, a->hosts[a->host].name),
                           snap_string(b->bytes, b->hosts[b->host].name))
               ?: fab_natural_cmp(snap_string(a->bytes, x->name), snap_string(b->bytes, y->name))
               ?: FAB_ORDER(x->port, y->port);
}

/* The index after of each device before; FAB_NONE: it is gone. NULL: no memory. */
static uint32_t *find_moved(const void *before, const void *after)
{
    struct walk b = walk_begin(before), a = walk_begin(after);
    uint32_t *to = malloc((b.n + 1u) * sizeof(*to));

    for (uint32_t i = 0; to != NULL && i < b.n; i++)
        to[i] = FAB_NONE;
    while (to != NULL && b.device < b.n && a.device < a.n) {
        int order = index_compare_devices(&b, &a);
        if (order == 0)
            to[b.device] = a.device;
        if (order <= 0)
            walk_on(&b);
        if (order >= 0)
            walk_on(&a);
    }
    return to;
}

/* Ranges as text: those that fit. */
struct ranges {
    char text[DIFF_VALUE_TEXT - 24]; /* and how many more */
    size_t used;
    uint32_t more;
};

static void add_range(struct ranges *ranges, uint32_t first, uint32_t n)
{
    char text[32];
    int len = n == 1 ? snprintf(text, sizeof(text), "%" PRIu32, first)
                     : snprintf(text, sizeof(text), "%" PRIu32 "-%" PRIu32, first, first + n - 1);
    const char *comma = ranges->used > 0 ? ", " : "";

    if (ranges->more > 0 || ranges->used + strlen(comma) + (size_t)len + 1 > sizeof(ranges->text)) {
        ranges->more++;
        return;
    }
    ranges->used += (size_t)snprintf(ranges->text + ranges->used, sizeof(ranges->text) - ranges->used, "%s%s",
                                     comma, text);
}

static void range_text(const struct ranges *ranges, char text[DIFF_VALUE_TEXT])
{
    if (ranges->more > 0)
        snprintf(text, DIFF_VALUE_TEXT, "%s and %" PRIu32 " more", ranges->text, ranges->more);
    else
        snprintf(text, DIFF_VALUE_TEXT, "%s", ranges->text);
}

/* One change for all ranges of neighbours that moved by the same. */
static void index_append_change(struct diff_walk *out, const void *before, const void *after,
                                const uint32_t *to)
{
    struct ranges from = {.used = 0}, now = {.used = 0};
    uint32_t n_before = snap_meta(before)->n_devices, n_after = snap_meta(after)->n_devices, n = 0,
             stayed = 0;
    char text_before[DIFF_VALUE_TEXT], text_after[DIFF_VALUE_TEXT], why[DIFF_WHY_TEXT];

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
    if (from.used == 0)
        return;
    range_text(&from, text_before);
    range_text(&now, text_after);
    snprintf(why, sizeof(why), "%" PRIu32 " device%s came and %" PRIu32 " went", n_after - stayed,
             n_after - stayed == 1 ? "" : "s", n_before - stayed);
    diff_put(out, &(struct fab_change){.kind = FAB_CHANGE_INDEX,
                                       .what = (char *)snap_string(after, snap_meta(after)->name),
                                       .before = text_before,
                                       .after = text_after,
                                       .why = why,
                                       .subjects = ""});
}

int fab_index_changes(const void *before, const void *after, struct fab_diff *diff)
{
    struct diff_walk out = {.diff = diff};
    uint32_t *to = find_moved(before, after);

    if (to == NULL)
        return PMIXFAB_ERR_NOMEM;
    index_append_change(&out, before, after, to);
    free(to);
    if (out.rc == PMIXFAB_OK)
        fab_diff_sort(diff);
    return out.rc;
}

/* ---- kind, shape, default ---- */

static int index_put_plane(struct fab_diff *diff, enum fab_change_kind kind, const char *plane,
                           const char *before, const char *after, const char *why)
{
    struct diff_walk out = {.diff = diff};

    diff_put(&out, &(struct fab_change){.kind = kind,
                                        .what = (char *)plane,
                                        .before = (char *)before,
                                        .after = (char *)after,
                                        .why = why,
                                        .subjects = ""});
    if (out.rc == PMIXFAB_OK)
        fab_diff_sort(diff);
    return out.rc;
}

static void index_shape(const struct snap_meta *meta, char text[DIFF_VALUE_TEXT])
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

    index_shape(was, old_shape);
    index_shape(is, shape);
    if (strcmp(old_kind, kind) != 0)
        rc = index_put_plane(diff, FAB_CHANGE_PLANE_KIND, name, old_kind, kind,
                             "its logical coordinates are counted anew");
    if (rc == PMIXFAB_OK && strcmp(old_shape, shape) != 0)
        rc = index_put_plane(diff, FAB_CHANGE_PLANE_SHAPE, name, old_shape, shape,
                             "its largest coordinates are others now");
    return rc;
}

int fab_default_change(const char *before, const char *after, const char *why, struct fab_diff *diff)
{
    return index_put_plane(diff, FAB_CHANGE_DEFAULT_PLANE, after, before, after, why);
}
