/*
 * report.h - the report of a host about its own devices. It contains facts, each with its source.
 *
 * A report is a list of items. An item has the data of one source about one thing. Examples are a port of an
 * RDMA device from libibverbs, a network interface from hwloc, or a transport of UCX. Items are independent;
 * join.h puts those of one device together. Every fact is a short text in the one canonical form of its kind,
 * so that facts of different sources can be compared.
 *
 * Add items and facts, then finish once: the report is then checked, in canonical order, and comparable.
 */
#ifndef FAB_TOPO_MODEL_REPORT_H
#define FAB_TOPO_MODEL_REPORT_H

#include <stdbool.h>

#include "topo/model/model.h"

/* Sources. The numbers are stored in snapshots and stores and never reused. */
enum fab_source {
    FAB_FROM_SUBNET = 0, /* the sweep of the fabric; in no report */
    FAB_FROM_VERBS = 1,
    FAB_FROM_HWLOC = 2,
    FAB_FROM_LIBFABRIC = 3,
    FAB_FROM_UCX = 4,
    FAB_FROM_ETHERNET = 5, /* the host's network interfaces, from the kernel */
    FAB_FROM_LLDP = 6,     /* from the switch, received by lldpd */
    FAB_SOURCES = 7
};

/*
 * Return "subnet", "verbs", "hwloc", "libfabric", "ucx", "ethernet", "lldp", "?"; and the reverse
 * (FAB_SOURCES: none).
 */
const char *fab_source_name(enum fab_source source);
enum fab_source fab_source_parse(const char *name);

/*
 * Write the names of the sources in a set of bits 1 << enum fab_source: "verbs, ucx"; cut if it does not fit.
 */
void fab_sources_text(uint32_t sources, char *out, size_t size);

/*
 * Kinds of facts, with the form of their text. The numbers are stored in snapshots and stores. "many": an
 * item may have several facts of this kind, else one.
 */
enum fab_fact {
    FAB_FACT_NAME =
        1,         /* name of the RDMA device in the operating system: "mlx5_3"; 1 to 63 printable bytes */
    FAB_FACT_PORT, /* its port number, decimal, 1 to 254 */
    FAB_FACT_INTERFACE,   /* network interface: "ib0", "ens1f0" */
    FAB_FACT_NODE_GUID,   /* 0x and 16 lower-case hexadecimal digits; never 0 */
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
    FAB_FACT_BANDWIDTH,   /* of the fastest transport, megabits per second, decimal */
    FAB_FACT_LATENCY,     /* of the transport with the lowest latency, nanoseconds, decimal */
    FAB_FACT_SWITCH_ID,   /* LLDP: chassis of the neighbour: a MAC as above, or "TYPE TEXT" for other kinds */
    FAB_FACT_SWITCH_NAME, /* LLDP: its system name */
    FAB_FACT_SWITCH_PORT, /* LLDP: the neighbour's port, as received: "Ethernet12", a MAC, ... */
    FAB_FACT_SOFTWARE,    /* "yes": no hardware behind it (tcp, shm, veth) */
    FAB_FACT_CPUS,        /* processors that it is attached to, as taskset(1) lists them: "0-11,24-35" */
    FAB_FACT_PACKAGE_CPUS, /* processors of the processor package, likewise */
    FAB_FACTS,             /* number of kinds of host reports + 1 */
    /* In snapshots only. The last of all kinds, so it is the last fact of a device that has it. */
    FAB_FACT_COMPUTE = 255 /* "yes": the site configures that jobs use it */
};

/* Return "name", "port", "interface", ... for programs, NULL past the last; and the reverse (0: none). */
const char *fab_fact_name(enum fab_fact kind);
enum fab_fact fab_fact_parse(const char *name);

/* Return whether an item may have several facts of this kind. */
bool fab_fact_many(enum fab_fact kind);

/* Check a text. PMIXFAB_ERR_SYNTAX: not in the form of this kind; err names the form. */
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
    uint32_t *owner;               /* of each fact of an unfinished report: its item */
    char *pool;
    uint32_t n_items, n_facts, cap_items, cap_facts, pool_size, pool_cap;
    bool finished;
};

void fab_report_init(struct fab_report *report);
void fab_report_destroy(struct fab_report *report); /* leaves it as after init */

/* Set the host. PMIXFAB_ERR_SYNTAX: not a valid host name. */
int fab_report_host(struct fab_report *report, const char *host, struct fab_err *err);

/*
 * Append an item, or a fact to an item. PMIXFAB_ERR_NOMEM, _RANGE (a limit above), _INVAL (finished, no such
 * item, source or kind). A text is cut to FAB_REPORT_MAX_TEXT bytes at the end of a character, and
 * unprintable bytes become '?'. NULL and empty texts add nothing and are no error.
 */
int fab_report_item(struct fab_report *report, enum fab_source source, uint32_t *item);
int fab_report_fact(struct fab_report *report, uint32_t item, enum fab_fact kind, const char *text);
int fab_report_estimate(struct fab_report *report, uint32_t item, enum fab_fact kind, const char *text);
/* As above, with a format. */
int fab_report_printf(struct fab_report *report, uint32_t item, enum fab_fact kind, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/*
 * Sort and check. Equal facts of an item become one fact, which is measured if one of them is measured. Items
 * without facts and repeated items are removed. The function may be called again. On error the report is
 * unchanged, and err has the place and the reason. PMIXFAB_ERR_SYNTAX, _CONFLICT, _RANGE: a text has a wrong
 * form, an item has two facts of a kind that is not "many", a limit is exceeded, or there is no host name.
 */
int fab_report_finish(struct fab_report *report, struct fab_err *err);

/*
 * Add the items of `from` to `into`. `from` must be finished; its host name is ignored. Finish `into` again.
 * PMIXFAB_ERR_NOMEM, _RANGE, _INVAL; `into` is then unchanged.
 */
int fab_report_merge(struct fab_report *into, const struct fab_report *from);
/* As above, for the items of one source. */
int fab_report_merge_source(struct fab_report *into, const struct fab_report *from, enum fab_source source);
int fab_report_copy(struct fab_report *to, const struct fab_report *from); /* *to is initialised here */

/* Return the text of the first fact of a kind of a finished report, or NULL. */
const char *fab_report_text(const struct fab_report *report, uint32_t item, enum fab_fact kind);

bool fab_report_equal(const struct fab_report *a, const struct fab_report *b);

/*
 * Return the XXH3-64 of the encoded form. Equal reports have equal digests on every machine. 0: the report is
 * unfinished, or there is no memory. No report has the digest 0.
 */
uint64_t fab_report_digest(const struct fab_report *report);

/*
 * Encode or decode: little-endian, versioned, with a checksum. The reader checks all content, and its result
 * has passed fab_report_finish(). *report is initialised here, and empty on error: PMIXFAB_ERR_TRUNCATED,
 * _FOREIGN, _OLDER, _NEWER, _CORRUPT, _NOMEM, _RANGE, or an error of finish.
 */
int fab_report_encode(const struct fab_report *report, void **bytes,
                      size_t *size); /* free *bytes with free() */
int fab_report_decode(const void *bytes, size_t size, struct fab_report *report, struct fab_err *err);

/*
 * Encode the difference between two reports of a host, both finished, as removed and added items. The second
 * function applies the difference, which contains both digests. *after is initialised here.
 * PMIXFAB_ERR_CONFLICT: the difference is applied to another report than `before`. Other errors are those of
 * fab_report_decode(). PMIXFAB_ERR_INVAL: a report is not finished, or the reports are of two hosts.
 * PMIXFAB_ERR_RANGE: the difference has more than FAB_REPORT_MAX_SIZE bytes, so the whole report is shorter.
 */
int fab_report_delta(const struct fab_report *before, const struct fab_report *after, void **bytes,
                     size_t *size);
int fab_report_apply(const struct fab_report *before, const void *bytes, size_t size,
                     struct fab_report *after, struct fab_err *err);

#endif
