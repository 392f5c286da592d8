/*
 * facts.h - facts of an item, as devices, libraries and the kernel say them.
 *
 * A library says hundreds of times what a report says once, and not all that it says has the form of a fact.
 * What is added here costs itself only, never makes the report one that cannot be finished, and the first
 * failure is kept.
 */
#ifndef FAB_PROBES_CORE_FACTS_H
#define FAB_PROBES_CORE_FACTS_H

#include <stdbool.h>
#include <stddef.h>

#include "probes/core/probe.h"

#define PROBE_MAX_GIDS 32 /* of an item; a report's items have room for 64 facts */

struct probe_item {
    const struct probe_sink *sink;
    struct fab_report *report;
    const char *what; /* is seen, in notes: the device's name. The caller's */
    uint32_t index;
    int rc;    /* of the first failure; after it nothing more is added */
    bool full; /* of GIDs */
};

/* Append an item to the report. A device that nothing is known of but its name is an item, too. */
void probe_item_open(struct probe_item *item, enum fab_source source, const char *what,
                     const struct probe_sink *sink, struct fab_report *report);

/* Facts of one kind in an item; more are left out. Four such kinds leave room for one of all others. */
#define FACTS_MANY 12

/*
 * Left out, which is no error: NULL, an empty text, one that the item has, a second one of a kind without
 * many; with a note one that does not have the form of its kind. item->rc becomes PMIXFAB_ERR_NOMEM, _RANGE
 * (the limits of report.h), _INVAL; after that nothing more is added.
 */
void fact_add(struct probe_item *item, enum fab_fact kind, const char *text);
void fact_estimate(struct probe_item *item, enum fab_fact kind, const char *text);
/* Without what is blank at its ends. */
void fact_printf(struct probe_item *item, enum fab_fact kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* "0000:c1:00:01": the standard's form. */
void fact_pci(struct probe_item *item, enum fab_fact kind, unsigned domain, unsigned bus, unsigned device,
              unsigned function);
/* The same of a text as the kernel writes it, "0000:c1:00.1"; false: it is none. */
bool probe_pci_text(const char *text, char *out, size_t size);

/* A GUID, unless it is zero. */
void fact_guid(struct probe_item *item, enum fab_fact kind, uint64_t guid);

/* A MAC, unless it is zero. */
void fact_mac(struct probe_item *item, const uint8_t mac[6]);

/* A GID, unless it is zero or was added before. False: the item has no room for it, which is noted once. */
bool probe_item_gid(struct probe_item *item, const uint8_t gid[16]);

/* A number of n bytes, big-endian, as GUIDs and GIDs stand in memory. */
uint64_t probe_be(const uint8_t *bytes, unsigned n);

/* A link's width as PortInfo and struct ibv_port_attr encode it (InfiniBand architecture, 14.2.5.6), in
 * lanes; 0: not known. */
uint8_t probe_lanes(unsigned width);

/* A GID from its 16 bytes; and, where the port runs InfiniBand, the port's GUID, which is its second half. */
void fact_gid(struct probe_item *item, const unsigned char gid[16], bool infiniband);

/* What a name is on this host. */
enum fact_interface { FACT_NO_INTERFACE = 0, FACT_INTERFACE = 1, FACT_LOOPBACK = 2 };
enum fact_interface fact_interface(const char *name);

/* For a probe's available(): how many items its scan() finds, as "PREFIXn NOUNs". */
int fact_available(int (*scan)(const struct probe_config *config, const struct probe_sink *sink,
                               struct fab_report *report, struct fab_err *err),
                   const char *prefix, const char *noun, char *text, size_t size);

/* ---- what the kernel says in files of one line ---- */

/* False: there is no such file, it is empty, or it cannot be read now. */
bool sysfs_line(const char *folder, const char *name, char *text, size_t size);

/* The last part of what a link leads to; false: it is none, or that is longer than `size`. */
bool sysfs_link(const char *folder, const char *name, char *text, size_t size);

/* A number, decimal or 0x..; 0 for what is none, and for -1, which drivers say when they do not know. */
unsigned sysfs_number(const char *folder, const char *name);

#endif
