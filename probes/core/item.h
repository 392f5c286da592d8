/*
 * item.h - filling an item of a report: what does not fit costs itself only, and the first failure is kept.
 */
#ifndef FAB_PROBES_CORE_ITEM_H
#define FAB_PROBES_CORE_ITEM_H

#include "probes/core/probe.h"

#define PROBE_MAX_GIDS 32 /* of an item; a report's items have room for 64 facts */

struct probe_item {
    const struct probe_sink *sink;
    struct fab_report *report;
    const char *what; /* is seen, in notes: the device's name. The caller's */
    uint32_t index;
    int rc;    /* of the first failure; after it nothing more is added */
    bool full; /* of GIDs */
    unsigned n_gids;
    uint8_t gids[PROBE_MAX_GIDS][16];
};

/* Append an item to the report. A device that nothing is known of but its name is an item, too. */
void probe_item_open(struct probe_item *item, enum fab_source source, const char *what,
                     const struct probe_sink *sink, struct fab_report *report);

/* Add a fact. A text that has not its kind's form is left out with a note: it came from a device. */
void probe_item_fact(struct probe_item *item, enum fab_fact kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* "0000:c1:00:01": the standard's form. */
void probe_item_pci(struct probe_item *item, enum fab_fact kind, unsigned domain, unsigned bus,
                    unsigned device, unsigned function);

/* A GUID, unless it is zero. */
void probe_item_guid(struct probe_item *item, enum fab_fact kind, uint64_t guid);

/* A GID, unless it is zero or was added before. False: the item has no room for it, which is noted once. */
bool probe_item_gid(struct probe_item *item, const uint8_t gid[16]);

/* A number of n bytes, big-endian, as GUIDs and GIDs stand in memory. */
uint64_t probe_be(const uint8_t *bytes, unsigned n);

/* A link's width as PortInfo and struct ibv_port_attr encode it (InfiniBand architecture, 14.2.5.6), in
 * lanes; 0: not known. */
uint8_t probe_lanes(unsigned width);

#endif
