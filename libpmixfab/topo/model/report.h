/*
 * report.h - what a host says of its own devices: facts, each with the source that it comes from.
 *
 * A report is a list of items. An item is one thing as one source sees it: a port of an RDMA device as
 * libibverbs tells it, a network interface as hwloc does, a transport of UCX. It says nothing of other items;
 * which of them are one device is found by join.h. Every fact is a short text in one canonical form per kind,
 * so that facts of different sources can be compared.
 *
 * Built by adding items and facts, then finished once: checked, in canonical order, comparable.
 */
#ifndef FAB_TOPO_MODEL_REPORT_H
#define FAB_TOPO_MODEL_REPORT_H

#include <stdbool.h>

#include "topo/model/model.h"

/* Who says it. The numbers stand in snapshots and stores: they are never given to another. */
enum fab_source {
    FAB_FROM_SUBNET = 0, /* the sweep of the fabric; in no report */
    FAB_FROM_VERBS = 1,
    FAB_FROM_HWLOC = 2,
    FAB_FROM_LIBFABRIC = 3,
    FAB_FROM_UCX = 4,
    FAB_FROM_ETHERNET = 5, /* the host's network interfaces, from the kernel */
    FAB_FROM_LLDP = 6,     /* what lldpd heard from the switch */
    FAB_SOURCES = 7
};

/* "subnet", "verbs", "hwloc", "libfabric", "ucx", "ethernet", "lldp", "?"; and back (FAB_SOURCES: none). */
const char *fab_source_name(enum fab_source source);
enum fab_source fab_source_parse(const char *name);

/* Names of the sources in a set of bits 1 << enum fab_source: "verbs, ucx"; cut where it does not fit. */
void fab_sources_text(uint32_t sources, char *out, size_t size);

/*
 * Kinds of facts, with the form of their text. The numbers stand in snapshots and stores. "many": an item may
 * hold several facts of this kind, of the others one.
 */
enum fab_fact {
    FAB_FACT_NAME = 1,  /* RDMA device as the operating system calls it: "mlx5_3"; 1 to 63 printable bytes */
    FAB_FACT_PORT,      /* its port number, decimal, 1 to 254 */
    FAB_FACT_INTERFACE, /* network interface: "ib0", "ens1f0" */
    FAB_FACT_NODE_GUID, /* 0x and 16 lower-case hexadecimal digits; never 0 */
    FAB_FACT_SYSTEM_GUID, /* likewise */
    FAB_FACT_PORT_GUID,   /* likewise */
    FAB_FACT_MAC,         /* "00:21:5e:c4:86:1a", lower case; never all zero */
    FAB_FACT_PCI,         /* the standard's form of a PCI device id: "0000:c1:00:01" (four parts, colons) */
    FAB_FACT_BUS,         /* "PCI", "virtual", "USB", ... */
    FAB_FACT_VENDOR,      /* name of the vendor: "Mellanox Technologies" */
    FAB_FACT_VENDOR_ID,   /* of the PCI vendor: "0x15b3" (4 digits) */
    FAB_FACT_PART,        /* name of the product: "MT28908 Family [ConnectX-6]" */
    FAB_FACT_PART_ID,     /* the vendor's number of the product: "0x101b" (PCI device id), 4 digits */
    FAB_FACT_DRIVER,      /* "mlx5_core" */
    FAB_FACT_FIRMWARE,    /* "20.31.1014" */
    FAB_FACT_TYPE,        /* link layer: "InfiniBand" or "Ethernet" */
    FAB_FACT_STATE,       /* "up", "down", "unknown" */
    FAB_FACT_MTU,         /* active one, bytes, decimal */
    FAB_FACT_SPEED,       /* active data rate, megabits per second, decimal, not 0 */
    FAB_FACT_LID,         /* decimal, not 0 */
    FAB_FACT_GID,         /* many: an IPv6 address as inet_ntop() writes it; never all zero */
    FAB_FACT_ADDRESS,     /* many: IP address with the length of its network: "10.91.0.2/16", "fd00::2/64" */
    FAB_FACT_NUMA,        /* number of the NUMA node, decimal */
    FAB_FACT_PACKAGE,     /* number of the processor package, decimal */
    FAB_FACT_SWITCH,      /* PCI switch above it: its upstream port in the form of FAB_FACT_PCI */
    FAB_FACT_SLOT_SPEED,  /* of the PCI slot, megabits per second, decimal */
    FAB_FACT_PROVIDER,    /* many: libfabric provider that can use it: "verbs;ofi_rxm" */
    FAB_FACT_PROTOCOL,    /* many: "FI_PROTO_RDMA_CM_IB_RC" */
    FAB_FACT_TRANSPORT,   /* many: UCX transport: "rc_mlx5" */
    FAB_FACT_BANDWIDTH,   /* of the fastest of them, megabits per second, decimal */
    FAB_FACT_LATENCY,     /* of the quickest of them, nanoseconds, decimal */
    FAB_FACT_SWITCH_ID,   /* LLDP: chassis of the neighbour: a MAC as above, or "TYPE TEXT" for other kinds */
    FAB_FACT_SWITCH_NAME, /* LLDP: its system name */
    FAB_FACT_SWITCH_PORT, /* LLDP: the neighbour's port as it says it: "Ethernet12", a MAC, ... */
    FAB_FACT_SOFTWARE,    /* "yes": no hardware behind it (tcp, shm, veth) */
    FAB_FACT_CPUS,        /* processors that it is attached to, as taskset(1) lists them: "0-11,24-35" */
    FAB_FACT_PACKAGE_CPUS, /* processors of the processor package, likewise */
    FAB_FACTS,             /* one more than the last that a host reports */
    /* Of snapshots only. The last of all kinds, so that a device's last fact is this one where it has it. */
    FAB_FACT_COMPUTE = 255 /* "yes": the site says that jobs use it */
};

/* "name", "port", "interface", ... as programs read it; NULL past the last; and back (0: none). */
const char *fab_fact_name(enum fab_fact kind);
enum fab_fact fab_fact_parse(const char *name);

/* May an item hold several facts of this kind? */
bool fab_fact_many(enum fab_fact kind);

/* PMIXFAB_ERR_SYNTAX: not the form that this kind has; err says which form it should have. */
int fab_fact_check(enum fab_fact kind, const char *text, struct fab_err *err);

#define FAB_REPORT_MAX_ITEMS 4096   /* of a report */
#define FAB_REPORT_MAX_FACTS 64     /* of an item */
#define FAB_REPORT_MAX_TEXT  255    /* bytes of a fact: UTF-8 without control characters */
#define FAB_REPORT_MAX_SIZE  262144 /* encoded */
#define FAB_HOST_MAX         253    /* bytes of a host's name: letters, digits, '.', '-', '_' */

struct fab_report_fact {
    uint32_t text;    /* in the pool */
    uint8_t kind;     /* enum fab_fact */
    uint8_t estimate; /* 1: not measured, or a constant of the software */
    uint16_t zero;
};

struct fab_report_item {
    uint8_t source; /* enum fab_source, not FAB_FROM_SUBNET */
    uint32_t first; /* its facts are neighbours; set by fab_report_finish() */
    uint32_t n;
};

struct fab_report {
    char host[FAB_HOST_MAX + 1];
    struct fab_report_item *items; /* by source, then by their facts */
    struct fab_report_fact *facts; /* of an item: by kind, then text */
    uint32_t *owner;               /* of each fact while the report is being built: its item */
    char *pool;
    uint32_t n_items, n_facts, cap_items, cap_facts, pool_size, pool_cap;
    bool finished;
};

void fab_report_init(struct fab_report *report);
void fab_report_destroy(struct fab_report *report); /* leaves it as after init */

/* PMIXFAB_ERR_SYNTAX: not a name that a host can have. */
int fab_report_host(struct fab_report *report, const char *host, struct fab_err *err);

/* Append an item, and a fact to an item. PMIXFAB_ERR_NOMEM, _RANGE (a limit above), _INVAL (finished, no such
 * item, source or kind). A text is cut to FAB_REPORT_MAX_TEXT bytes at a character's end, and what is not
 * printable becomes '?'. NULL and empty texts are no fact and no error. */
int fab_report_item(struct fab_report *report, enum fab_source source, uint32_t *item);
int fab_report_fact(struct fab_report *report, uint32_t item, enum fab_fact kind, const char *text);
int fab_report_estimate(struct fab_report *report, uint32_t item, enum fab_fact kind, const char *text);
/* With a format; the same rules. */
int fab_report_printf(struct fab_report *report, uint32_t item, enum fab_fact kind, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/*
 * Sort and check. Equal facts of an item become one (measured, if one of them is), items without facts and
 * equal items go. Refused, with the place and the reason: a text that has not its kind's form, two facts of a
 * kind that is not "many", more than the limits, no host name (PMIXFAB_ERR_SYNTAX, _CONFLICT, _RANGE); the
 * report is then as it was. Finishing again is allowed.
 */
int fab_report_finish(struct fab_report *report, struct fab_err *err);

/* Add the items of `from` (finished; its host's name does not matter) to `into`, unfinished afterwards.
 * PMIXFAB_ERR_NOMEM, _RANGE, _INVAL; `into` is then as it was. */
int fab_report_merge(struct fab_report *into, const struct fab_report *from);
/* ... only those of one source. */
int fab_report_merge_source(struct fab_report *into, const struct fab_report *from, enum fab_source source);
int fab_report_copy(struct fab_report *to, const struct fab_report *from); /* *to is initialised here */

/* Text of the first fact of a kind, NULL: none. Of a finished report. */
const char *fab_report_text(const struct fab_report *report, uint32_t item, enum fab_fact kind);

bool fab_report_equal(const struct fab_report *a, const struct fab_report *b);

/* XXH3-64 of the encoded form; equal reports have equal ones, on every machine. 0: unfinished
 * or no memory, never of a report. */
uint64_t fab_report_digest(const struct fab_report *report);

/*
 * As bytes: little-endian, versioned, checksummed. The reader believes nothing, and what it gives has been
 * through fab_report_finish(). *report is initialised here, and empty on error: PMIXFAB_ERR_TRUNCATED,
 * _FOREIGN, _OLDER, _NEWER, _CORRUPT, _NOMEM, _RANGE, or what finish says.
 */
int fab_report_encode(const struct fab_report *report, void **bytes, size_t *size); /* free(*bytes) */
int fab_report_decode(const void *bytes, size_t size, struct fab_report *report, struct fab_err *err);

/*
 * What leads from one report of a host to another, as bytes: items that went and items that came. Applying it
 * to anything else than `before` is PMIXFAB_ERR_CONFLICT (it holds both digests), other errors are those of
 * fab_report_decode(). *after is initialised here. Both reports are finished and of one host, else
 * PMIXFAB_ERR_INVAL. PMIXFAB_ERR_RANGE: more than FAB_REPORT_MAX_SIZE bytes, the whole is shorter.
 */
int fab_report_delta(const struct fab_report *before, const struct fab_report *after, void **bytes,
                     size_t *size);
int fab_report_apply(const struct fab_report *before, const void *bytes, size_t size,
                     struct fab_report *after, struct fab_err *err);

#endif
