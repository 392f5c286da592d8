/*
 * format.h - the bytes of a snapshot, for the code that writes, checks and reads them (only).
 *
 *   head | meta | section table | section 0 | section 1 | ... | strings
 *
 * All numbers are little-endian. Each section starts at a multiple of 64 bytes. Gaps are zero. There is one
 * possible order and no other gap. Two hashes cover every bit: `content` covers all bytes after the head,
 * `checksum` covers the head. So a new generation with equal content rewrites the head only.
 *
 * Only the places of strings depend on the former snapshot (compile.c), and unused strings may be among them.
 * Two snapshots built from the same data, and from the same former snapshot or one from the other, have equal
 * bytes.
 *
 * Any change of a struct here requires a new SNAP_VERSION.
 *
 * Version 1 has no places and no facts. Its table has SNAP_SECTIONS_1 entries with the same section numbers.
 * The byte of `seen` in a device is 0, which means that only data of the subnet are known. Versions 1 and 2
 * do not mark missing switches. The place of the mark has the high bytes of n_ports, which are 0. Versions 1
 * to 3 have no names of groups, no units, no rails, and no kinds of other ends.
 */
#ifndef FAB_TOPO_SNAPSHOT_FORMAT_H
#define FAB_TOPO_SNAPSHOT_FORMAT_H

#include <assert.h>
#include <stdbool.h>

#include "topo/model/model.h"
#include "topo/snapshot/cost_view.h"

/* The high bit, the line ends and the ^Z reveal transfers in text mode. */
#define SNAP_MAGIC                                                                                           \
    "\x89"                                                                                                   \
    "FAB\r\n\x1a\n"
#define SNAP_MAGIC_SIZE 8
#define SNAP_ORDER      0x01020304u
#define SNAP_VERSION    4u
#define SNAP_OLDEST     1u /* the oldest version still read */
#define SNAP_ALIGN      64u
#define SNAP_NAME_MAX   63u /* bytes of a plane's name */
#define SNAP_SUFFIX     ".snap"

struct snap_head {
    unsigned char magic[SNAP_MAGIC_SIZE];
    uint32_t order;
    uint32_t version;
    uint64_t size;     /* of the whole snapshot */
    uint64_t checksum; /* XXH3-64 of this head, this field zero */
    uint64_t content;  /* XXH3-64 of all bytes after this head */
    uint64_t generation;
    int64_t published;
    uint64_t zero;
};
static_assert(sizeof(struct snap_head) == 64, "no holes");

/* Strings here and below are offsets in the section of strings; 0 is the empty one. */
struct snap_meta {
    uint32_t n_devices, n_hosts, n_switches, n_links, n_others, n_groups, n_members, n_edges;
    uint32_t string_bytes;
    uint32_t n_unnamed;
    uint32_t index, is_default;
    uint32_t name, vendor, identifier, kind;
    uint64_t fastest_mbps;
    uint32_t dims, physical_dims;
    uint32_t shape[PMIXFAB_MAX_DIMS], physical_shape[PMIXFAB_MAX_DIMS];
    uint32_t n_places; /* n_devices, or 0: no place is known */
    uint32_t n_facts;
    uint32_t n_missing; /* switches that carry the traffic of their own devices only */
    uint32_t n_strays;
};
static_assert(sizeof(struct snap_meta) == 128, "no holes");

struct snap_entry {
    uint64_t offset; /* from the start of the head */
    uint64_t count;
    uint32_t element; /* bytes of one */
    uint32_t section; /* its own number */
};
static_assert(sizeof(struct snap_entry) == 24, "no holes");

enum snap_section {
    SNAP_DEVICES,      /* struct snap_device, in index order */
    SNAP_HOSTS,        /* struct snap_host, natural order of names */
    SNAP_SWITCHES,     /* struct snap_switch, by GUID */
    SNAP_LINKS,        /* struct snap_link */
    SNAP_OTHERS,       /* uint64_t: node GUIDs of cable ends that are neither device nor switch, ascending */
    SNAP_EDGE,         /* these four as in struct fab_cost_view */
    SNAP_ACCESS,       /* */
    SNAP_HOST,         /* */
    SNAP_DIST,         /* */
    SNAP_LOGICAL,      /* uint32_t: dims numbers for each device */
    SNAP_PHYSICAL,     /* uint32_t: physical_dims numbers for each device */
    SNAP_GROUP_START,  /* uint32_t: n_groups + 1, as in struct fab_groups */
    SNAP_GROUP_MEMBER, /* uint32_t: host indices */
    SNAP_BY_NODE,      /* uint32_t: device indices by node GUID, then index */
    SNAP_BY_PORT,      /* uint32_t: device indices by port GUID, then index */
    /* char: each with its terminating 0; the first and the last byte are 0. The last in the file */
    SNAP_STRINGS,
    SNAP_SECTIONS_1,
    SNAP_PLACES = SNAP_SECTIONS_1, /* struct fab_locality for each device, or nothing */
    /* uint32_t: n_devices + 1: facts of device i are [i] to before [i + 1]; or nothing */
    SNAP_FACT_AT,
    SNAP_FACTS, /* struct snap_fact: of a device by kind, the chosen ones first, then by text */
    SNAP_SECTIONS_3,
    SNAP_GROUP_NAME = SNAP_SECTIONS_3, /* uint32_t: a string for each group */
    SNAP_RAILS,                        /* uint32_t: a string for each group */
    SNAP_STRAYS,                       /* struct snap_rail for each switch */
    SNAP_OTHER_KINDS,                  /* uint32_t: enum pmixfab_end_kind, as SNAP_OTHERS */
    SNAP_SECTIONS
};

struct snap_device {
    uint64_t node_guid, port_guid, system_guid;
    uint32_t name;
    uint32_t sw;   /* FAB_NONE: none */
    uint32_t mbps; /* 0: unknown */
    uint8_t port, switch_port;
    uint8_t state; /* enum pmixfab_state */
    uint8_t seen;  /* enum pmixfab_seen; 0 in version 1 */
};
static_assert(sizeof(struct snap_device) == 40, "no holes");

/*
 * As struct fab_detail; before version 3 there was no SOFTWARE and no OUTRANKED. Unknown kinds and sources
 * are those of a newer writer.
 */
struct snap_fact {
    uint32_t text;
    uint16_t sources;
    uint8_t kind;
    uint8_t flags;
};
static_assert(sizeof(struct snap_fact) == 8, "no holes");

struct snap_host {
    uint32_t name;
    uint32_t first; /* first device; the last is the one before the next host's first */
};
static_assert(sizeof(struct snap_host) == 8, "no holes");

struct snap_switch {
    uint64_t guid;
    uint32_t name;
    uint32_t level;
    uint16_t n_ports;
    uint16_t missing; /* 0 or 1; meta has the number of them */
    uint32_t n_hosts;
};
static_assert(sizeof(struct snap_switch) == 24, "no holes");

/* Of a leaf. A rail without unit: the whole plane is that rail of its hosts. FAB_NONE: none. */
struct snap_rail {
    uint32_t unit, rail;
};
static_assert(sizeof(struct snap_rail) == 8, "no holes");

struct snap_stray {
    uint32_t device;
    uint32_t sw;   /* where it should be; FAB_NONE: unknown */
    uint32_t unit; /* where it should be; FAB_NONE: unknown */
};
static_assert(sizeof(struct snap_stray) == 12, "no holes");

/* An end of a link: its kind in the two high bits, its index below. */
#define SNAP_END_KIND   0xc0000000u
#define SNAP_END_DEVICE 0x00000000u
#define SNAP_END_SWITCH 0x40000000u
#define SNAP_END_OTHER  0x80000000u

struct snap_link {
    uint32_t a, b;
    uint32_t mbps;
    uint16_t cost;
    uint8_t a_port, b_port;
};
static_assert(sizeof(struct snap_link) == 16, "no holes");

#define SNAP_TABLE (sizeof(struct snap_head) + sizeof(struct snap_meta))
#define SNAP_BODY  (SNAP_TABLE + SNAP_SECTIONS * sizeof(struct snap_entry))

static inline unsigned snap_sections(uint32_t version)
{
    return version == 1 ? SNAP_SECTIONS_1 : version <= 3 ? SNAP_SECTIONS_3 : SNAP_SECTIONS;
}

/* Return the end of the table of this version. */
static inline size_t snap_body(uint32_t version)
{
    return SNAP_TABLE + snap_sections(version) * sizeof(struct snap_entry);
}

static inline const struct snap_head *snap_head(const void *bytes)
{
    return bytes;
}

static inline const struct snap_meta *snap_meta(const void *bytes)
{
    return (const struct snap_meta *)((const char *)bytes + sizeof(struct snap_head));
}

static inline const struct snap_entry *snap_table(const void *bytes)
{
    return (const struct snap_entry *)((const char *)bytes + SNAP_TABLE);
}

/* Return a section, which the snapshot's version must have. */
static inline const void *snap_section(const void *bytes, enum snap_section section)
{
    return (const char *)bytes + snap_table(bytes)[section].offset;
}

static inline const char *snap_string(const void *bytes, uint32_t offset)
{
    return (const char *)snap_section(bytes, SNAP_STRINGS) + offset;
}

/* Return the order of sections in the file: number `at` of them, at from 0 to snap_sections() - 1. */
enum snap_section fab_snapshot_order(uint32_t version, unsigned at);

/*
 * Compute the table of this version for the counts in meta, and the total size. PMIXFAB_ERR_RANGE past 2^63.
 */
int fab_snapshot_layout(const struct snap_meta *meta, uint32_t version,
                        struct snap_entry table[SNAP_SECTIONS], uint64_t *size);

/* Compute content hash and checksum of a whole snapshot (its head->size bytes) again. */
void fab_snapshot_seal(void *bytes);

/* Return the checksum that this head should have. */
uint64_t fab_snapshot_checksum(const struct snap_head *head);

/*
 * Return whether this can be a plane's name, and so a file's: 1 to 63 of A-Z a-z 0-9 . _ - and no leading
 * dot.
 */
bool fab_snapshot_name_ok(const char *name);
/* Find the plane's name in "NAME.snap"; return false for other file names. */
bool fab_snapshot_plane_of(const char *file, char name[SNAP_NAME_MAX + 1]);

#endif
