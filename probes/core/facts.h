/*
 * facts.h - add facts from devices, libraries and the kernel to an item.
 *
 * A library repeats values that a report has once, and not all of its values have the form of a fact. These
 * functions skip such values, so that the report can always be finished; the first failure is kept.
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
    const char *what; /* for notes: the device's name, borrowed */
    uint32_t index;
    int rc;    /* of the first failure; after it nothing more is added */
    bool full; /* no room for more GIDs */
};

/* Append an item to the report. A device with nothing but a name is an item, too. */
void probe_item_open(struct probe_item *item, enum fab_source source, const char *what,
                     const struct probe_sink *sink, struct fab_report *report);

/* Facts of one kind in an item; more are skipped. Four such kinds leave room for one of all others. */
#define FACTS_MANY 12

/*
 * Add a fact. These are skipped without an error:
 * - NULL, or an empty text
 * - a fact that the item has already
 * - a second fact of a kind that has only one
 * - a text in a wrong form, with a note.
 *
 * On error item->rc becomes PMIXFAB_ERR_NOMEM, _RANGE (the limits of report.h) or _INVAL. After that nothing
 * more is added.
 */
void fact_add(struct probe_item *item, enum fab_fact kind, const char *text);
void fact_estimate(struct probe_item *item, enum fab_fact kind, const char *text);
/* Add a formatted text without blanks at its ends. */
void fact_printf(struct probe_item *item, enum fab_fact kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Add "0000:c1:00:01", the standard's form. */
void fact_pci(struct probe_item *item, enum fab_fact kind, unsigned domain, unsigned bus, unsigned device,
              unsigned function);
/* Convert the kernel's form "0000:c1:00.1" to it; return false for another text. */
bool probe_pci_text(const char *text, char *out, size_t size);

/* Add a GUID, unless it is zero. */
void fact_guid(struct probe_item *item, enum fab_fact kind, uint64_t guid);

/* Add a MAC, unless it is zero. */
void fact_mac(struct probe_item *item, const uint8_t mac[6]);

/*
 * Add a GID, unless it is zero or was added before. Return false if the item has no room for it, which is
 * noted once.
 */
bool probe_item_gid(struct probe_item *item, const uint8_t gid[16]);

/* Return a number of n bytes, big-endian, as GUIDs and GIDs are in memory. */
uint64_t probe_be(const uint8_t *bytes, unsigned n);

/*
 * Return a link's width in lanes from the encoding of PortInfo and struct ibv_port_attr (InfiniBand
 * architecture, 14.2.5.6); 0: unknown.
 */
uint8_t probe_lanes(unsigned width);

/*
 * Add a GID from its 16 bytes; and, if the port runs InfiniBand, the port's GUID, which is its second half.
 */
void fact_gid(struct probe_item *item, const unsigned char gid[16], bool infiniband);

/* The meaning of a name on this host. */
enum fact_interface { FACT_NO_INTERFACE = 0, FACT_INTERFACE = 1, FACT_LOOPBACK = 2 };
enum fact_interface fact_interface(const char *name);

/* For a probe's available(): write the number of items that its scan() finds, as "PREFIXn NOUNs". */
int fact_available(int (*scan)(const struct probe_config *config, const struct probe_sink *sink,
                               struct fab_report *report, struct fab_err *err),
                   const char *prefix, const char *noun, char *text, size_t size);

/* ---- the kernel's files of one line ---- */

/* Read a line. Return false if there is no such file, it is empty, or it cannot be read now. */
bool sysfs_line(const char *folder, const char *name, char *text, size_t size);

/* Read the last part of a link's target; return false if it is not a link, or that is longer than `size`. */
bool sysfs_link(const char *folder, const char *name, char *text, size_t size);

/* Read a number, decimal or 0x..; 0 for another text, and for -1, the value of drivers for unknown. */
unsigned sysfs_number(const char *folder, const char *name);

#endif
