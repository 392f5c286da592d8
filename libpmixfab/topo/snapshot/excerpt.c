/*
 * excerpt.c - write the part of a plane that describes some hosts, and read it from untrusted bytes into a
 * handle:
 *
 *   head | strings | hosts | switches | devices | groups
 *
 * All numbers are little-endian. A string is an offset in the strings; a switch or host is the number of its
 * place here.
 */
#include "topo/snapshot/excerpt.h"

#include <stdlib.h>

#include "topo/base/natural.h"
#include "topo/base/order.h"
#include "topo/base/string_table.h"
#include "topo/snapshot/reader.h"

struct excerpt_out {
    const struct pmixfab *fab;
    struct fab_strings strings;
    struct fab_bytes body;
    uint32_t *hosts, n_hosts; /* of the plane */
    uint32_t *switches;       /* of the plane, ascending; the position is the number here */
    uint32_t n_switches, n_devices, n_facts, n_groups, n_members;
};

static void excerpt_string(struct excerpt_out *out, uint32_t offset)
{
    fab_bytes_put(&out->body, fab_strings_add(&out->strings, fab_reader_string(out->fab, offset)), 4);
}

/*
 * ---- writing: selection
 * --------------------------------------------------------------------------------------
 */

static int excerpt_cmp(const void *left, const void *right)
{
    return FAB_ORDER(*(const uint32_t *)left, *(const uint32_t *)right);
}

static int excerpt_choose(struct excerpt_out *out, const bool *wanted)
{
    const struct pmixfab *fab = out->fab;
    uint32_t n = 0;
    for (uint32_t h = 0; h < fab->meta->n_hosts; h++) {
        out->n_hosts += wanted[h];
        out->n_devices += wanted[h] ? fab_reader_host_end(fab, h) - fab->hosts[h].first : 0;
    }
    out->hosts = malloc(((size_t)out->n_hosts + 1) * sizeof(*out->hosts));
    out->switches = malloc(((size_t)out->n_devices + 1) * sizeof(*out->switches));
    if (out->hosts == NULL || out->switches == NULL)
        return PMIXFAB_ERR_NOMEM;
    out->n_hosts = 0;
    for (uint32_t h = 0; h < fab->meta->n_hosts; h++) {
        if (!wanted[h])
            continue;
        out->hosts[out->n_hosts++] = h;
        for (uint32_t i = fab->hosts[h].first; i < fab_reader_host_end(fab, h); i++)
            if (fab->devices[i].sw != FAB_NONE)
                out->switches[n++] = fab->devices[i].sw;
    }
    qsort(out->switches, n, sizeof(*out->switches), excerpt_cmp);
    for (uint32_t i = 0; i < n; i++)
        if (i == 0 || out->switches[i] != out->switches[i - 1])
            out->switches[out->n_switches++] = out->switches[i];
    return PMIXFAB_OK;
}

/* ---- writing: contents ------------------------------------------------------------------------------ */

static void excerpt_hosts(struct excerpt_out *out)
{
    for (uint32_t i = 0; i < out->n_hosts; i++) {
        const struct snap_host *host = &out->fab->hosts[out->hosts[i]];
        excerpt_string(out, host->name);
        fab_bytes_put(&out->body, out->hosts[i], 4);
        fab_bytes_put(&out->body, fab_reader_host_end(out->fab, out->hosts[i]) - host->first, 4);
    }
}

/* Write the first fact of each kind: readers of a kind use no other. */
static void excerpt_facts(struct excerpt_out *out, uint32_t device)
{
    const struct pmixfab *fab = out->fab;
    const uint32_t before = out->n_facts, at = out->body.n;
    uint8_t last = 0;
    fab_bytes_put(&out->body, 0, 1);
    for (uint32_t f = fab->fact_at == NULL ? 0 : fab->fact_at[device];
         fab->fact_at != NULL && f < fab->fact_at[device + 1] && fab->facts[f].kind < FAB_FACTS; f++) {
        const struct snap_fact *fact = &fab->facts[f];
        if (fact->kind == last)
            continue;
        last = fact->kind;
        fab_bytes_put(&out->body, fact->kind, 1);
        fab_bytes_put(&out->body, fact->flags, 1);
        excerpt_string(out, fact->text);
        out->n_facts++;
    }
    if (!out->body.failed)
        out->body.at[at] = (uint8_t)(out->n_facts - before);
}

static void excerpt_device(struct excerpt_out *out, uint32_t i)
{
    const struct snap_device *device = &out->fab->devices[i];
    const struct snap_meta *meta = out->fab->meta;
    const uint32_t *sw = device->sw == FAB_NONE ? NULL
                                                : bsearch(&device->sw, out->switches, out->n_switches,
                                                          sizeof(*out->switches), excerpt_cmp);
    excerpt_string(out, device->name);
    fab_bytes_put(&out->body, i, 4);
    fab_bytes_put(&out->body, device->node_guid, 8);
    fab_bytes_put(&out->body, device->port_guid, 8);
    fab_bytes_put(&out->body, device->system_guid, 8);
    fab_bytes_put(&out->body, sw == NULL ? FAB_NONE : (uint32_t)(sw - out->switches), 4);
    fab_bytes_put(&out->body, device->mbps, 4);
    fab_bytes_put(&out->body, device->port, 1);
    fab_bytes_put(&out->body, device->switch_port, 1);
    fab_bytes_put(&out->body, device->state, 1);
    fab_bytes_put(&out->body, device->seen != 0 ? device->seen : PMIXFAB_SEEN_SUBNET, 1);
    for (uint32_t d = 0; d < meta->dims; d++)
        fab_bytes_put(&out->body, out->fab->logical[(size_t)i * meta->dims + d], 4);
    for (uint32_t d = 0; d < meta->physical_dims; d++)
        fab_bytes_put(&out->body, out->fab->physical[(size_t)i * meta->physical_dims + d], 4);
    excerpt_facts(out, i);
}

/* Write the groups with wanted hosts; members ascend, as the hosts do. */
static void excerpt_groups(struct excerpt_out *out, const bool *wanted)
{
    const struct pmixfab *fab = out->fab;
    for (uint32_t g = 0; g < fab->meta->n_groups; g++) {
        const uint32_t at = out->body.n + 4, before = out->n_members;
        for (uint32_t m = fab->group_start[g]; m < fab->group_start[g + 1]; m++) {
            const uint32_t host = fab->group_members[m];
            if (!wanted[host])
                continue;
            if (out->n_members++ == before) {
                fab_bytes_put(&out->body, g, 4);
                fab_bytes_put(&out->body, 0, 4);
                out->n_groups++;
            }
            const uint32_t *place =
                bsearch(&host, out->hosts, out->n_hosts, sizeof(*out->hosts), excerpt_cmp);
            fab_bytes_put(&out->body, (uint64_t)(place - out->hosts), 4);
        }
        if (out->n_members > before && !out->body.failed)
            frame_put(out->body.at + at, out->n_members - before, 4);
    }
}

/* ---- the whole excerpt ----------------------------------------------------------------------------- */

/* Write all counts first, so that a reader can allocate at once; then the plane. */
static void excerpt_head(struct excerpt_out *out, struct fab_bytes *to)
{
    const struct snap_meta *meta = out->fab->meta;
    const uint32_t counts[] = {out->n_hosts,  out->n_switches, out->n_devices,   out->n_facts,
                               out->n_groups, out->n_members,  out->strings.size};
    const uint32_t texts[] = {meta->name, meta->vendor, meta->identifier, meta->kind};
    uint32_t strings[4];
    for (size_t i = 0; i < 4; i++)
        strings[i] = fab_strings_add(&out->strings, fab_reader_string(out->fab, texts[i]));
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        fab_bytes_put(to, i == 6 ? out->strings.size : counts[i], 4);
    fab_bytes_put(to, out->fab->head->generation, 8);
    fab_bytes_put(to, (uint64_t)out->fab->head->published, 8);
    fab_bytes_put(to, meta->fastest_mbps, 8);
    fab_bytes_put(to, meta->index, 4);
    fab_bytes_put(to, meta->is_default, 1);
    for (size_t i = 0; i < 4; i++)
        fab_bytes_put(to, strings[i], 4);
    fab_bytes_put(to, meta->dims, 1);
    for (uint32_t d = 0; d < meta->dims; d++)
        fab_bytes_put(to, meta->shape[d], 4);
    fab_bytes_put(to, meta->physical_dims, 1);
    for (uint32_t d = 0; d < meta->physical_dims; d++)
        fab_bytes_put(to, meta->physical_shape[d], 4);
    fab_bytes_add(to, out->strings.text, out->strings.size);
}

int fab_excerpt_write(const struct pmixfab *fab, const bool *wanted, struct fab_bytes *to)
{
    struct excerpt_out out = {.fab = fab};
    int rc = fab_strings_init(&out.strings) ?: excerpt_choose(&out, wanted);
    if (rc == PMIXFAB_OK) {
        excerpt_hosts(&out);
        for (uint32_t i = 0; i < out.n_switches; i++)
            fab_bytes_put(&out.body, fab->switches[out.switches[i]].guid, 8);
        for (uint32_t h = 0; h < out.n_hosts; h++)
            for (uint32_t i = fab->hosts[out.hosts[h]].first; i < fab_reader_host_end(fab, out.hosts[h]); i++)
                excerpt_device(&out, i);
        excerpt_groups(&out, wanted);
        excerpt_head(&out, to);
        fab_bytes_add(to, out.body.at, out.body.n);
        rc = out.strings.error != 0          ? out.strings.error
             : out.body.failed || to->failed ? PMIXFAB_ERR_NOMEM
                                             : PMIXFAB_OK;
    }
    fab_strings_destroy(&out.strings);
    free(out.body.at);
    free(out.hosts);
    free(out.switches);
    return rc;
}

/* The memory that the handle points at. */
struct excerpt_room {
    struct snap_head head;
    struct snap_meta meta;
    struct snap_device *devices;
    struct snap_host *hosts;
    struct snap_switch *switches;
    struct snap_fact *facts;
    uint32_t *fact_at, *host_of, *logical, *physical;
    uint32_t *group_start, *group_members, *device_numbers, *host_numbers, *group_numbers;
    char *strings;
    uint64_t words[]; /* all of these arrays */
};
#define EXCERPT_WORD sizeof(uint64_t)

/*
 * Minimum bytes of each element in the excerpt: an impossible count is rejected before memory is allocated.
 */
enum {
    HOST_BYTES = 12,
    SWITCH_BYTES = 8,
    DEVICE_BYTES = 45,
    FACT_BYTES = 6,
    GROUP_BYTES = 8,
    MEMBER_BYTES = 4
};

/* ---- reading: the head
 * --------------------------------------------------------------------------------------- */

static bool excerpt_read_shape(struct frame *in, uint32_t *dims, uint32_t *shape)
{
    *dims = (uint32_t)frame_get(in, 1);
    for (uint32_t d = 0; *dims <= PMIXFAB_MAX_DIMS && d < *dims; d++)
        shape[d] = (uint32_t)frame_get(in, 4);
    return *dims <= PMIXFAB_MAX_DIMS;
}

static bool excerpt_read_head(struct frame *in, struct snap_head *head, struct snap_meta *meta)
{
    uint32_t *const counts[] = {&meta->n_hosts,  &meta->n_switches, &meta->n_devices,   &meta->n_facts,
                                &meta->n_groups, &meta->n_members,  &meta->string_bytes};
    uint32_t *const texts[] = {&meta->name, &meta->vendor, &meta->identifier, &meta->kind};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        *counts[i] = (uint32_t)frame_get(in, 4);
    head->version = SNAP_VERSION;
    head->generation = frame_get(in, 8);
    head->published = (int64_t)frame_get(in, 8);
    meta->fastest_mbps = frame_get(in, 8);
    meta->index = (uint32_t)frame_get(in, 4);
    meta->is_default = (uint32_t)frame_get(in, 1);
    for (size_t i = 0; i < 4; i++) {
        *texts[i] = (uint32_t)frame_get(in, 4);
        if (*texts[i] >= meta->string_bytes)
            return false;
    }
    const uint64_t least = (uint64_t)meta->n_hosts * HOST_BYTES + (uint64_t)meta->n_switches * SWITCH_BYTES +
                           (uint64_t)meta->n_devices * DEVICE_BYTES + (uint64_t)meta->n_facts * FACT_BYTES +
                           (uint64_t)meta->n_groups * GROUP_BYTES + (uint64_t)meta->n_members * MEMBER_BYTES +
                           meta->string_bytes;
    return excerpt_read_shape(in, &meta->dims, meta->shape) &&
           excerpt_read_shape(in, &meta->physical_dims, meta->physical_shape) && meta->is_default <= 1 &&
           !in->overrun && least <= frame_left(in);
}

/* ---- memory ----------------------------------------------------------------------------------------- */

/* Take memory, in words; room NULL: only count. */
static void *excerpt_take(struct excerpt_room *room, size_t *used, size_t n, size_t size)
{
    const size_t at = *used;
    *used += (n * size + EXCERPT_WORD - 1) / EXCERPT_WORD;
    return room != NULL ? room->words + at : NULL;
}

/* Place all arrays; return the number of words. */
static size_t excerpt_lay_out(struct excerpt_room *room, const struct snap_meta *meta)
{
    struct excerpt_room none = {.devices = NULL}, *to = room != NULL ? room : &none;
    const size_t n = meta->n_devices;
    size_t used = 0;
    to->devices = excerpt_take(room, &used, n, sizeof(*to->devices));
    to->hosts = excerpt_take(room, &used, meta->n_hosts, sizeof(*to->hosts));
    to->switches = excerpt_take(room, &used, meta->n_switches, sizeof(*to->switches));
    to->facts = excerpt_take(room, &used, meta->n_facts, sizeof(*to->facts));
    to->fact_at = excerpt_take(room, &used, n + 1, sizeof(*to->fact_at));
    to->host_of = excerpt_take(room, &used, n, sizeof(*to->host_of));
    to->logical = excerpt_take(room, &used, n * meta->dims, sizeof(*to->logical));
    to->physical = excerpt_take(room, &used, n * meta->physical_dims, sizeof(*to->physical));
    to->group_start = excerpt_take(room, &used, (size_t)meta->n_groups + 1, sizeof(*to->group_start));
    to->group_members = excerpt_take(room, &used, meta->n_members, sizeof(*to->group_members));
    to->device_numbers = excerpt_take(room, &used, n, sizeof(*to->device_numbers));
    to->host_numbers = excerpt_take(room, &used, meta->n_hosts, sizeof(*to->host_numbers));
    to->group_numbers = excerpt_take(room, &used, meta->n_groups, sizeof(*to->group_numbers));
    to->strings = excerpt_take(room, &used, meta->string_bytes, 1);
    return used;
}

static struct pmixfab *excerpt_handle(struct excerpt_room *room)
{
    struct pmixfab *fab = calloc(1, sizeof(*fab));
    if (fab == NULL)
        return NULL;
    *fab = (struct pmixfab){.costs = {.n_devices = room->meta.n_devices, .host = room->host_of},
                            .meta = &room->meta,
                            .devices = room->devices,
                            .hosts = room->hosts,
                            .switches = room->switches,
                            .logical = room->logical,
                            .physical = room->physical,
                            .group_start = room->group_start,
                            .group_members = room->group_members,
                            .fact_at = room->fact_at,
                            .facts = room->facts,
                            .strings = room->strings,
                            .device_numbers = room->device_numbers,
                            .host_numbers = room->host_numbers,
                            .group_numbers = room->group_numbers,
                            .head = &room->head,
                            .heap = room};
    return fab;
}

/* ---- reading: the rest --------------------------------------------------------------------------------- */

static bool excerpt_read_strings(struct frame *in, struct excerpt_room *room)
{
    const uint32_t n = room->meta.string_bytes;
    const uint8_t *from = frame_bytes(in, n);
    if (from == NULL || n == 0 || from[0] != '\0' || from[n - 1] != '\0')
        return false;
    memcpy(room->strings, from, n);
    return fab_snapshot_name_ok(room->strings + room->meta.name);
}

/* Read hosts. Names ascend, because they are searched; each host has devices, and these are all devices. */
static bool excerpt_read_hosts(struct frame *in, struct excerpt_room *room)
{
    uint64_t first = 0;
    for (uint32_t h = 0; h < room->meta.n_hosts; h++) {
        struct snap_host *host = &room->hosts[h];
        *host = (struct snap_host){.name = (uint32_t)frame_get(in, 4), .first = (uint32_t)first};
        room->host_numbers[h] = (uint32_t)frame_get(in, 4);
        const uint32_t n = (uint32_t)frame_get(in, 4);
        if (host->name >= room->meta.string_bytes || n == 0 || first + n > room->meta.n_devices)
            return false;
        if (h > 0 && (room->host_numbers[h - 1] >= room->host_numbers[h] ||
                      fab_natural_cmp(room->strings + host[-1].name, room->strings + host->name) >= 0))
            return false;
        for (uint32_t i = 0; i < n; i++)
            room->host_of[first++] = h;
    }
    return first == room->meta.n_devices;
}

static bool excerpt_read_coords(struct frame *in, uint32_t *to, uint32_t dims, const uint32_t *shape)
{
    for (uint32_t d = 0; d < dims; d++) {
        to[d] = (uint32_t)frame_get(in, 4);
        if (to[d] >= shape[d])
            return false;
    }
    return true;
}

/* Read facts. Kinds ascend, each once. */
static bool excerpt_read_facts(struct frame *in, struct excerpt_room *room, uint32_t device)
{
    const uint8_t known = FAB_DETAIL_CHOSEN | FAB_DETAIL_CONFLICT | FAB_DETAIL_ESTIMATE |
                          FAB_DETAIL_SOFTWARE | FAB_DETAIL_OUTRANKED;
    uint32_t at = room->fact_at[device], n = (uint32_t)frame_get(in, 1);
    for (uint8_t last = 0; n > 0; n--, at++) {
        if (at == room->meta.n_facts)
            return false;
        struct snap_fact *fact = &room->facts[at];
        fact->kind = (uint8_t)frame_get(in, 1);
        fact->flags = (uint8_t)frame_get(in, 1);
        fact->text = (uint32_t)frame_get(in, 4);
        if (fact->kind <= last || (fact->flags & ~known) != 0 || fact->text == 0 ||
            fact->text >= room->meta.string_bytes)
            return false;
        last = fact->kind;
    }
    room->fact_at[device + 1] = at;
    return true;
}

static bool excerpt_read_device(struct frame *in, struct excerpt_room *room, uint32_t i)
{
    const uint8_t known = PMIXFAB_SEEN_SUBNET | PMIXFAB_SEEN_NODE | PMIXFAB_SEEN_MISSING;
    const struct snap_meta *meta = &room->meta;
    struct snap_device *device = &room->devices[i];
    device->name = (uint32_t)frame_get(in, 4);
    room->device_numbers[i] = (uint32_t)frame_get(in, 4);
    device->node_guid = frame_get(in, 8);
    device->port_guid = frame_get(in, 8);
    device->system_guid = frame_get(in, 8);
    device->sw = (uint32_t)frame_get(in, 4);
    device->mbps = (uint32_t)frame_get(in, 4);
    device->port = (uint8_t)frame_get(in, 1);
    device->switch_port = (uint8_t)frame_get(in, 1);
    device->state = (uint8_t)frame_get(in, 1);
    device->seen = (uint8_t)frame_get(in, 1);
    if (device->name >= meta->string_bytes || (device->sw != FAB_NONE && device->sw >= meta->n_switches) ||
        device->state > PMIXFAB_STATE_UP || device->seen == 0 || (device->seen & ~known) != 0 ||
        (i > 0 && room->device_numbers[i - 1] >= room->device_numbers[i]))
        return false;
    return excerpt_read_coords(in, room->logical + (size_t)i * meta->dims, meta->dims, meta->shape) &&
           excerpt_read_coords(in, room->physical + (size_t)i * meta->physical_dims, meta->physical_dims,
                               meta->physical_shape) &&
           excerpt_read_facts(in, room, i);
}

static bool excerpt_read_devices(struct frame *in, struct excerpt_room *room)
{
    for (uint32_t i = 0; i < room->meta.n_switches; i++)
        room->switches[i].guid = frame_get(in, 8);
    for (uint32_t i = 0; i < room->meta.n_devices; i++)
        if (!excerpt_read_device(in, room, i))
            return false;
    return room->fact_at[room->meta.n_devices] == room->meta.n_facts;
}

static bool excerpt_read_groups(struct frame *in, struct excerpt_room *room)
{
    uint64_t at = 0;
    for (uint32_t g = 0; g < room->meta.n_groups; g++) {
        room->group_numbers[g] = (uint32_t)frame_get(in, 4);
        const uint32_t n = (uint32_t)frame_get(in, 4);
        if (at + n > room->meta.n_members || (g > 0 && room->group_numbers[g - 1] >= room->group_numbers[g]))
            return false;
        for (uint32_t m = 0; m < n; m++, at++) {
            room->group_members[at] = (uint32_t)frame_get(in, 4);
            if (room->group_members[at] >= room->meta.n_hosts ||
                (m > 0 && room->group_members[at - 1] >= room->group_members[at]))
                return false;
        }
        room->group_start[g + 1] = (uint32_t)at;
    }
    return at == room->meta.n_members;
}

int fab_excerpt_read(struct frame *in, struct pmixfab **out, struct fab_err *err)
{
    struct snap_head head = {.version = 0};
    struct snap_meta meta = {.n_devices = 0};
    *out = NULL;
    if (!excerpt_read_head(in, &head, &meta))
        return fab_fail(err, PMIXFAB_ERR_CORRUPT, "the excerpt of a plane has an impossible head");
    struct excerpt_room *room = calloc(1, sizeof(*room) + excerpt_lay_out(NULL, &meta) * EXCERPT_WORD);
    if (room == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "no memory for the excerpt of a plane");
    room->head = head;
    room->meta = meta;
    excerpt_lay_out(room, &meta);
    const char *wrong = !excerpt_read_strings(in, room)   ? "text"
                        : !excerpt_read_hosts(in, room)   ? "host"
                        : !excerpt_read_devices(in, room) ? "device"
                        : !excerpt_read_groups(in, room)  ? "group"
                        : in->overrun                     ? "end"
                                                          : NULL;
    if (wrong == NULL)
        *out = excerpt_handle(room);
    if (*out != NULL)
        return PMIXFAB_OK;
    free(room);
    return wrong == NULL
               ? fab_fail(err, PMIXFAB_ERR_NOMEM, "no memory for the excerpt of a plane")
               : fab_fail(err, PMIXFAB_ERR_CORRUPT, "the excerpt of a plane has an impossible %s", wrong);
}
