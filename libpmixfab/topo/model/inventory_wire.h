/*
 * inventory_wire.h - an inventory as bytes, for the pipe between the sweeping child and the daemon.
 *
 * Little-endian, versioned, with lengths and an XXH3 checksum of all bytes. The reader checks each count,
 * offset and index, and the result has passed fab_inventory_finish().
 */
#ifndef FAB_TOPO_MODEL_INVENTORY_WIRE_H
#define FAB_TOPO_MODEL_INVENTORY_WIRE_H

#include "topo/model/inventory.h"

/* Encode a finished inventory into new memory; free *bytes with free(). */
int fab_wire_encode(const struct fab_inventory *inv, void **bytes, size_t *size);

/*
 * Decode. *inv is initialised here, and empty on error: PMIXFAB_ERR_TRUNCATED, _FOREIGN, _OLDER, _NEWER,
 * _CORRUPT, _NOMEM, or an error of fab_inventory_finish().
 */
int fab_wire_decode(const void *bytes, size_t size, struct fab_inventory *inv, struct fab_err *err);

/*
 * Size of the fixed head, and the total size that the head gives (0: not such a head), for a reader of a
 * pipe. A total above FAB_WIRE_MAX is rejected.
 */
#define FAB_WIRE_HEAD 32
#define FAB_WIRE_MAX  (1u << 30)
uint64_t fab_wire_total(const void *head);

#endif
