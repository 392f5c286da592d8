/*
 * inventory_wire.h - an inventory as bytes, for the pipe between the sweeping child and the daemon.
 *
 * Little-endian, versioned, with lengths and an XXH3 checksum over everything. The reader believes nothing:
 * each count, offset and index is checked, and the result has been through fab_inventory_finish().
 */
#ifndef FAB_TOPO_MODEL_INVENTORY_WIRE_H
#define FAB_TOPO_MODEL_INVENTORY_WIRE_H

#include "topo/model/inventory.h"

/* Encode a finished inventory into memory of its own; free(*bytes). */
int fab_wire_encode(const struct fab_inventory *inv, void **bytes, size_t *size);

/*
 * Decode. *inv is initialised here, and empty on error: PMIXFAB_ERR_TRUNCATED, _FOREIGN, _OLDER, _NEWER,
 * _CORRUPT, _NOMEM, or what fab_inventory_finish() says.
 */
int fab_wire_decode(const void *bytes, size_t size, struct fab_inventory *inv, struct fab_err *err);

/* Size of the fixed head, and the size of the whole as the head says it (0: not a head of ours). A reader of
 * a pipe uses them to know how much will come; larger than FAB_WIRE_MAX is refused. */
#define FAB_WIRE_HEAD 32
#define FAB_WIRE_MAX  (1u << 30)
uint64_t fab_wire_total(const void *head);

#endif
