/* format.c - definitions shared by writers and readers of snapshots. */
#include "topo/snapshot/format.h"

#include <string.h>

#include <xxhash.h>

#include "topo/snapshot/snapshot.h"

/* The strings come last, because they grow while the rest is written. */
enum snap_section fab_snapshot_order(uint32_t version, unsigned at)
{
    if (at + 1 == snap_sections(version))
        return SNAP_STRINGS;
    return (enum snap_section)(at < SNAP_STRINGS ? at : at + 1);
}

int fab_snapshot_layout(const struct snap_meta *meta, uint32_t version,
                        struct snap_entry table[SNAP_SECTIONS], uint64_t *size)
{
    const uint64_t devices = meta->n_devices;
    const struct {
        uint64_t count;
        uint32_t element;
    } plan[SNAP_SECTIONS] = {
        [SNAP_DEVICES] = {devices, sizeof(struct snap_device)},
        [SNAP_HOSTS] = {meta->n_hosts, sizeof(struct snap_host)},
        [SNAP_SWITCHES] = {meta->n_switches, sizeof(struct snap_switch)},
        [SNAP_LINKS] = {meta->n_links, sizeof(struct snap_link)},
        [SNAP_OTHERS] = {meta->n_others, sizeof(uint64_t)},
        [SNAP_EDGE] = {devices, sizeof(uint32_t)},
        [SNAP_ACCESS] = {devices, sizeof(uint16_t)},
        [SNAP_HOST] = {devices, sizeof(uint32_t)},
        [SNAP_DIST] = {(uint64_t)meta->n_edges * meta->n_edges, sizeof(uint16_t)},
        [SNAP_LOGICAL] = {devices * meta->dims, sizeof(uint32_t)},
        [SNAP_PHYSICAL] = {devices * meta->physical_dims, sizeof(uint32_t)},
        [SNAP_GROUP_START] = {(uint64_t)meta->n_groups + 1, sizeof(uint32_t)},
        [SNAP_GROUP_MEMBER] = {meta->n_members, sizeof(uint32_t)},
        [SNAP_BY_NODE] = {devices, sizeof(uint32_t)},
        [SNAP_BY_PORT] = {devices, sizeof(uint32_t)},
        [SNAP_STRINGS] = {meta->string_bytes, 1},
        [SNAP_PLACES] = {meta->n_places, sizeof(struct fab_locality)},
        [SNAP_FACT_AT] = {meta->n_facts > 0 ? devices + 1 : 0, sizeof(uint32_t)},
        [SNAP_FACTS] = {meta->n_facts, sizeof(struct snap_fact)},
        [SNAP_GROUP_NAME] = {meta->n_groups, sizeof(uint32_t)},
        [SNAP_RAILS] = {meta->n_switches, sizeof(struct snap_rail)},
        [SNAP_STRAYS] = {meta->n_strays, sizeof(struct snap_stray)},
        [SNAP_OTHER_KINDS] = {meta->n_others, sizeof(uint32_t)},
    };

    uint64_t end = snap_body(version);
    for (unsigned at = 0; at < snap_sections(version); at++) {
        enum snap_section s = fab_snapshot_order(version, at);
        uint64_t bytes;
        end = (end + SNAP_ALIGN - 1) / SNAP_ALIGN * SNAP_ALIGN;
        table[s] = (struct snap_entry){end, plan[s].count, plan[s].element, s};
        if (__builtin_mul_overflow(plan[s].count, plan[s].element, &bytes) ||
            __builtin_add_overflow(end, bytes, &end) || end > INT64_MAX)
            return PMIXFAB_ERR_RANGE;
    }
    *size = end;
    return PMIXFAB_OK;
}

uint64_t fab_snapshot_checksum(const struct snap_head *head)
{
    struct snap_head copy = *head;
    copy.checksum = 0;
    return XXH3_64bits(&copy, sizeof(copy));
}

void fab_snapshot_seal(void *bytes)
{
    struct snap_head *head = bytes;
    head->content = XXH3_64bits((const char *)bytes + sizeof(*head), head->size - sizeof(*head));
    head->checksum = fab_snapshot_checksum(head);
}

uint64_t fab_snapshot_content(const void *bytes)
{
    return snap_head(bytes)->content;
}

void fab_snapshot_stamp(void *bytes, uint64_t generation, int64_t published)
{
    struct snap_head *head = bytes;
    head->generation = generation;
    head->published = published;
    head->checksum = fab_snapshot_checksum(head);
}

void fab_snapshot_number(void *bytes, uint32_t number)
{
    struct snap_meta *meta = (struct snap_meta *)((char *)bytes + sizeof(struct snap_head));
    meta->index = number;
    fab_snapshot_seal(bytes);
}

uint64_t fab_snapshot_generation(const void *bytes)
{
    static_assert(sizeof(struct snap_head) == FAB_SNAPSHOT_HEAD, "as promised");
    const struct snap_head *head = bytes;
    bool whole = memcmp(head->magic, SNAP_MAGIC, SNAP_MAGIC_SIZE) == 0 && head->order == SNAP_ORDER &&
                 head->checksum == fab_snapshot_checksum(head);
    return whole ? head->generation : 0;
}

bool fab_snapshot_name_ok(const char *name)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    size_t len = strspn(name, allowed);
    return len > 0 && len <= SNAP_NAME_MAX && name[len] == '\0' && name[0] != '.';
}

bool fab_snapshot_plane_of(const char *file, char name[SNAP_NAME_MAX + 1])
{
    size_t len = strlen(file);

    if (len <= strlen(SNAP_SUFFIX) || len - strlen(SNAP_SUFFIX) > SNAP_NAME_MAX)
        return false;
    len -= strlen(SNAP_SUFFIX);
    if (strcmp(file + len, SNAP_SUFFIX) != 0)
        return false;
    memcpy(name, file, len);
    name[len] = '\0';
    return fab_snapshot_name_ok(name);
}
