/*
 * snapshot_check.c - check everything in a snapshot before it is used.
 *
 * The checks cover all that readers rely on: bounds, indices, ends of strings, and the orders that searches
 * need. Hashes prove that the bytes are those of the writer; the other checks do not trust the writer either.
 */
#include <string.h>

#include <xxhash.h>

#include "topo/base/natural.h"
#include "topo/model/details.h"
#include "topo/snapshot/format.h"
#include "topo/snapshot/snapshot.h"

static int snapshot_check_head(const void *bytes, size_t size, struct fab_err *err)
{
    struct snap_head head;
    size_t seen = size < SNAP_MAGIC_SIZE ? size : SNAP_MAGIC_SIZE;

    if (memcmp(bytes, SNAP_MAGIC, seen) != 0)
        return fab_fail(err, PMIXFAB_ERR_FOREIGN, "not a snapshot of fabricd (wrong magic)");
    if (size < sizeof(head))
        return fab_fail(err, PMIXFAB_ERR_TRUNCATED, "snapshot cut off in its head: %zu of %zu bytes", size,
                        sizeof(head));
    memcpy(&head, bytes, sizeof(head));
    if (head.order != SNAP_ORDER)
        return fab_fail(err, PMIXFAB_ERR_FOREIGN, "snapshot written in another byte order");
    if (head.version < SNAP_OLDEST)
        return fab_fail(
            err, PMIXFAB_ERR_OLDER,
            "snapshot of format %u, but the oldest supported format is %u: let fabricd publish it again",
            head.version, SNAP_OLDEST);
    if (head.version > SNAP_VERSION)
        return fab_fail(
            err, PMIXFAB_ERR_NEWER,
            "snapshot of format %u, but this libpmixfab reads formats up to %u: update libpmixfab",
            head.version, SNAP_VERSION);
    if (head.size > size)
        return fab_fail(err, PMIXFAB_ERR_TRUNCATED, "snapshot cut off: %zu of %llu bytes", size,
                        (unsigned long long)head.size);
    if (head.checksum != fab_snapshot_checksum(&head))
        return fab_fail(err, PMIXFAB_ERR_CORRUPT, "snapshot damaged: its head does not match its checksum");
    if (head.size < size)
        return fab_fail(err, PMIXFAB_ERR_CORRUPT, "snapshot of %llu bytes with %llu bytes after its end",
                        (unsigned long long)head.size, (unsigned long long)(size - head.size));
    if (head.size < snap_body(head.version) || head.zero != 0)
        return fab_fail(err, PMIXFAB_ERR_CORRUPT, "snapshot inconsistent: impossible values in its head");
    if (head.content != XXH3_64bits((const char *)bytes + sizeof(head), size - sizeof(head)))
        return fab_fail(err, PMIXFAB_ERR_CORRUPT, "snapshot damaged: its content does not match its hash");
    return PMIXFAB_OK;
}

static bool all_zero(const void *bytes, size_t size)
{
    const char *p = bytes;
    for (size_t i = 0; i < size; i++)
        if (p[i] != 0)
            return false;
    return true;
}

/* Only one layout fits the counts, so no section overlaps another or lies outside. */
static int check_layout(const void *bytes, size_t size, struct fab_err *err)
{
    const struct snap_meta *meta = snap_meta(bytes);
    const struct snap_entry *table = snap_table(bytes);
    struct snap_entry expected[SNAP_SECTIONS];
    const uint32_t version = snap_head(bytes)->version;
    uint64_t total, end = snap_body(version);

    if (meta->dims > PMIXFAB_MAX_DIMS || meta->physical_dims > PMIXFAB_MAX_DIMS)
        return fab_fail(err, PMIXFAB_ERR_CORRUPT,
                        "snapshot inconsistent: %u and %u dimensions; at most %d are possible", meta->dims,
                        meta->physical_dims, PMIXFAB_MAX_DIMS);
    /* version 1 has zeros in place of these counts */
    if (version == 1 && (meta->n_places != 0 || meta->n_facts != 0 || meta->n_missing != 0))
        return fab_fail(err, PMIXFAB_ERR_CORRUPT, "snapshot inconsistent: facts in a format without them");
    if (version <= 3 && meta->n_strays != 0)
        return fab_fail(err, PMIXFAB_ERR_CORRUPT, "snapshot inconsistent: rails in a format without them");
    if (fab_snapshot_layout(meta, version, expected, &total) != 0 || total != size)
        return fab_fail(err, PMIXFAB_ERR_CORRUPT, "snapshot inconsistent: its counts do not match its size");
    for (unsigned at = 0; at < snap_sections(version); at++) {
        unsigned s = fab_snapshot_order(version, at);
        if (memcmp(&table[s], &expected[s], sizeof(expected[s])) != 0)
            return fab_fail(err, PMIXFAB_ERR_CORRUPT, "snapshot inconsistent: section %u is not in its place",
                            s);
        if (!all_zero((const char *)bytes + end, table[s].offset - end))
            return fab_fail(err, PMIXFAB_ERR_CORRUPT, "snapshot inconsistent: section %u has bytes before it",
                            s);
        end = table[s].offset + table[s].count * table[s].element;
    }
    return PMIXFAB_OK;
}

static bool good_meta(const void *bytes)
{
    const struct snap_meta *meta = snap_meta(bytes);
    const uint32_t n = meta->string_bytes;
    const char *strings = snap_section(bytes, SNAP_STRINGS);

    return n > 0 && strings[0] == '\0' && strings[n - 1] == '\0' && meta->name < n && meta->vendor < n &&
           meta->identifier < n && meta->kind < n && fab_snapshot_name_ok(strings + meta->name) &&
           meta->is_default <= 1 && meta->n_unnamed <= meta->n_hosts && meta->n_devices < SNAP_END_SWITCH &&
           meta->n_switches < SNAP_END_SWITCH && meta->n_others < SNAP_END_SWITCH &&
           (meta->n_places == 0 || meta->n_places == meta->n_devices) && meta->n_missing <= meta->n_switches;
}

static bool good_devices(const void *bytes)
{
    const struct snap_meta *meta = snap_meta(bytes);
    const struct snap_device *device = snap_section(bytes, SNAP_DEVICES);
    const uint8_t known = PMIXFAB_SEEN_SUBNET | PMIXFAB_SEEN_NODE | PMIXFAB_SEEN_MISSING;
    const bool first = snap_head(bytes)->version == 1;

    for (uint32_t i = 0; i < meta->n_devices; i++, device++) {
        if (device->name >= meta->string_bytes || device->state > PMIXFAB_STATE_UP)
            return false;
        if ((device->seen & ~known) != 0 || (device->seen == 0) != first)
            return false;
        if ((device->seen & (PMIXFAB_SEEN_SUBNET | PMIXFAB_SEEN_MISSING)) == PMIXFAB_SEEN_MISSING)
            return false;
        if (device->sw == FAB_NONE ? device->switch_port != 0 : device->sw >= meta->n_switches)
            return false;
    }
    return true;
}

/* Every host has devices, and the hosts' devices are all devices, in order. */
static bool good_hosts(const void *bytes)
{
    const struct snap_meta *meta = snap_meta(bytes);
    const struct snap_host *hosts = snap_section(bytes, SNAP_HOSTS);
    const uint32_t *host_of = snap_section(bytes, SNAP_HOST);

    if ((meta->n_hosts == 0) != (meta->n_devices == 0))
        return false;
    for (uint32_t h = 0; h < meta->n_hosts; h++) {
        uint32_t first = hosts[h].first;
        uint32_t end = h + 1 < meta->n_hosts ? hosts[h + 1].first : meta->n_devices;
        if (first >= end || end > meta->n_devices || (h == 0 && first != 0))
            return false;
        for (uint32_t i = first; i < end; i++)
            if (host_of[i] != h)
                return false;
        if (hosts[h].name >= meta->string_bytes)
            return false;
        if (h > 0 &&
            fab_natural_cmp(snap_string(bytes, hosts[h - 1].name), snap_string(bytes, hosts[h].name)) >= 0)
            return false;
    }
    return true;
}

static bool good_switches(const void *bytes)
{
    const struct snap_meta *meta = snap_meta(bytes);
    const struct snap_switch *sw = snap_section(bytes, SNAP_SWITCHES);
    const bool told = snap_head(bytes)->version >= 3;
    uint32_t n_missing = 0;

    for (uint32_t i = 0; i < meta->n_switches; i++) {
        if (sw[i].name >= meta->string_bytes || sw[i].n_hosts > meta->n_hosts || sw[i].missing > told)
            return false;
        n_missing += sw[i].missing;
        if (i > 0 && sw[i - 1].guid >= sw[i].guid)
            return false;
    }
    return !told || n_missing == meta->n_missing;
}

static bool good_end(const struct snap_meta *meta, uint32_t end)
{
    uint32_t index = end & ~SNAP_END_KIND;

    switch (end & SNAP_END_KIND) {
    case SNAP_END_DEVICE:
        return index < meta->n_devices;
    case SNAP_END_SWITCH:
        return index < meta->n_switches;
    case SNAP_END_OTHER:
        return index < meta->n_others;
    default:
        return false;
    }
}

static bool good_links(const void *bytes)
{
    const struct snap_meta *meta = snap_meta(bytes);
    const struct snap_link *links = snap_section(bytes, SNAP_LINKS);
    const uint64_t *others = snap_section(bytes, SNAP_OTHERS);

    for (uint32_t i = 0; i < meta->n_links; i++)
        if (!good_end(meta, links[i].a) || !good_end(meta, links[i].b))
            return false;
    for (uint32_t i = 1; i < meta->n_others; i++)
        if (others[i - 1] >= others[i])
            return false;
    return true;
}

static bool good_costs(const void *bytes)
{
    const struct snap_meta *meta = snap_meta(bytes);
    const uint32_t *edge = snap_section(bytes, SNAP_EDGE);
    const uint16_t *dist = snap_section(bytes, SNAP_DIST);

    for (uint32_t i = 0; i < meta->n_devices; i++)
        if (edge[i] >= meta->n_edges)
            return false;
    for (size_t e = 0; e < meta->n_edges; e++) {
        uint16_t own = dist[e * meta->n_edges + e];
        if (own != 0 && own != FAB_COST_NO_PATH)
            return false;
    }
    return true;
}

/*
 * Check the facts of a device: in order of kind, the chosen ones of a kind first. An unknown kind is a newer
 * one.
 */
static bool good_facts_of(const struct snap_fact *facts, uint32_t n, uint32_t string_bytes)
{
    const uint8_t known = FAB_DETAIL_CHOSEN | FAB_DETAIL_CONFLICT | FAB_DETAIL_ESTIMATE |
                          FAB_DETAIL_SOFTWARE | FAB_DETAIL_OUTRANKED;

    for (uint32_t i = 0; i < n; i++) {
        const struct snap_fact *fact = &facts[i];
        if (fact->kind == 0 || fact->sources == 0 || (fact->flags & ~known) != 0 || fact->text == 0 ||
            fact->text >= string_bytes)
            return false;
        if (i > 0 && (fact[-1].kind > fact->kind ||
                      (fact[-1].kind == fact->kind &&
                       (fact[-1].flags & FAB_DETAIL_CHOSEN) < (fact->flags & FAB_DETAIL_CHOSEN))))
            return false;
    }
    return true;
}

static bool good_facts(const void *bytes)
{
    const struct snap_meta *meta = snap_meta(bytes);

    if (meta->n_facts == 0)
        return true;
    const uint32_t *at = snap_section(bytes, SNAP_FACT_AT);
    const struct snap_fact *facts = snap_section(bytes, SNAP_FACTS);
    if (at[0] != 0 || at[meta->n_devices] != meta->n_facts)
        return false;
    for (uint32_t i = 0; i < meta->n_devices; i++)
        if (at[i] > at[i + 1] || at[i + 1] > meta->n_facts ||
            !good_facts_of(facts + at[i], at[i + 1] - at[i], meta->string_bytes))
            return false;
    return true;
}

static bool good_coords(const void *bytes, enum snap_section section, uint32_t dims, const uint32_t *shape)
{
    const uint32_t *coords = snap_section(bytes, section);
    uint32_t n = snap_meta(bytes)->n_devices;

    for (uint32_t d = dims; d < PMIXFAB_MAX_DIMS; d++)
        if (shape[d] != 0)
            return false;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t d = 0; d < dims; d++)
            if (*coords++ >= shape[d])
                return false;
    return true;
}

static bool good_groups(const void *bytes)
{
    const struct snap_meta *meta = snap_meta(bytes);
    const uint32_t *start = snap_section(bytes, SNAP_GROUP_START);
    const uint32_t *members = snap_section(bytes, SNAP_GROUP_MEMBER);

    if (start[0] != 0 || start[meta->n_groups] != meta->n_members)
        return false;
    for (uint32_t g = 0; g < meta->n_groups; g++) {
        if (start[g] > start[g + 1] || start[g + 1] > meta->n_members)
            return false;
        for (uint32_t m = start[g]; m < start[g + 1]; m++)
            if (members[m] >= meta->n_hosts || (m > start[g] && members[m - 1] >= members[m]))
                return false;
    }
    return true;
}

static bool good_names_and_rails(const void *bytes)
{
    const struct snap_meta *meta = snap_meta(bytes);

    if (snap_head(bytes)->version <= 3)
        return true;
    const uint32_t *name = snap_section(bytes, SNAP_GROUP_NAME);
    const struct snap_rail *rails = snap_section(bytes, SNAP_RAILS);
    const struct snap_stray *stray = snap_section(bytes, SNAP_STRAYS);
    for (uint32_t g = 0; g < meta->n_groups; g++)
        if (name[g] >= meta->string_bytes)
            return false;
    for (uint32_t s = 0; s < meta->n_switches; s++)
        if (rails[s].rail == FAB_NONE && rails[s].unit != FAB_NONE)
            return false;
    for (uint32_t i = 0; i < meta->n_strays; i++)
        if (stray[i].device >= meta->n_devices || (i > 0 && stray[i - 1].device >= stray[i].device) ||
            (stray[i].sw != FAB_NONE && stray[i].sw >= meta->n_switches) || stray[i].unit == FAB_NONE)
            return false;
    return true;
}

/* Check that n pairs of GUID and index ascend and differ: so each device is there once. */
static bool good_index(const void *bytes, enum snap_section section)
{
    const struct snap_device *devices = snap_section(bytes, SNAP_DEVICES);
    const uint32_t *order = snap_section(bytes, section);
    uint32_t n = snap_meta(bytes)->n_devices;
    uint64_t last = 0;

    for (uint32_t i = 0; i < n; i++) {
        if (order[i] >= n)
            return false;
        const struct snap_device *device = &devices[order[i]];
        uint64_t guid = section == SNAP_BY_NODE ? device->node_guid : device->port_guid;
        if (i > 0 && (guid < last || (guid == last && order[i] <= order[i - 1])))
            return false;
        last = guid;
    }
    return true;
}

static int check_content(const void *bytes, struct fab_err *err)
{
    const struct snap_meta *meta = snap_meta(bytes);
    const char *wrong = !good_meta(bytes)       ? "the description of the plane"
                        : !good_devices(bytes)  ? "a device"
                        : !good_hosts(bytes)    ? "a host or the order of hosts"
                        : !good_switches(bytes) ? "a switch"
                        : !good_links(bytes)    ? "a link"
                        : !good_costs(bytes)    ? "the costs"
                        : !good_coords(bytes, SNAP_LOGICAL, meta->dims, meta->shape) ? "a logical coordinate"
                        : !good_coords(bytes, SNAP_PHYSICAL, meta->physical_dims, meta->physical_shape)
                            ? "a physical coordinate"
                        : !good_groups(bytes)          ? "a group"
                        : !good_names_and_rails(bytes) ? "the name of a group, or a rail"
                        : !good_facts(bytes)           ? "a fact or the order of facts"
                        : !good_index(bytes, SNAP_BY_NODE) || !good_index(bytes, SNAP_BY_PORT)
                            ? "the order of GUIDs"
                            : NULL;
    if (wrong != NULL)
        return fab_fail(err, PMIXFAB_ERR_CORRUPT, "snapshot inconsistent: %s is impossible", wrong);
    return PMIXFAB_OK;
}

int fab_snapshot_check(const void *bytes, size_t size, struct fab_err *err)
{
    if (bytes == NULL)
        return fab_fail(err, PMIXFAB_ERR_INVAL, "no snapshot given");
    if ((uintptr_t)bytes % _Alignof(struct snap_head) != 0)
        return fab_fail(err, PMIXFAB_ERR_INVAL, "snapshot at an address that is not a multiple of 8");
    return snapshot_check_head(bytes, size, err) ?: check_layout(bytes, size, err) ?: check_content(bytes, err);
}
