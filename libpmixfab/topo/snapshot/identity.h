/* identity.h - what the devices of a snapshot are known by: GUIDs, MACs, and the ids that are made of them.
 */
#ifndef FAB_TOPO_SNAPSHOT_IDENTITY_H
#define FAB_TOPO_SNAPSHOT_IDENTITY_H

#include "topo/snapshot/reader.h"

/* The device that is served with this port GUID; FAB_NONE. */
uint32_t fab_reader_port(const struct pmixfab *fab, uint64_t guid);

/* Does a device have this id? That is its own, or the one that the stock library gives an interface of it:
 * "ipv4://" with a MAC, "ipv6://" with the 20 bytes of IP over InfiniBand. The case of digits means nothing.
 */
bool fab_reader_has_id(const struct pmixfab *fab, uint32_t index, const char *id);

/* By what a device goes that its facts alone tell; 0: by none. FAB_FACT_MAC: its interface's; _SYSTEM_GUID:
 * where it does not go by its node GUID, and no other host's device has the same id: that with the node GUID
 * that it says, else *node is 0. */
uint64_t fab_reader_said(const struct pmixfab *fab, uint32_t index, enum fab_fact kind, uint64_t *node);
/* The host of the device that goes by this FAB_FACT_NODE_GUID or _PORT_GUID, or by that node GUID and has
 * this _SYSTEM_GUID; NULL. */
const char *fab_reader_holder(const struct pmixfab *fab, enum fab_fact kind, uint64_t value, uint64_t node);

/* What the stock library calls this device in PMIx_Compute_distances: by its GUIDs, also where it goes by one
 * that is made up here. to: as long as the `id` of struct pmixfab_device. */
void fab_reader_write_id(const struct pmixfab *fab, uint32_t index, char *to);

/* The device that an id ("fab://NODE::SYSTEM", or one of fab_reader_has_id()) names; FAB_NONE. */
uint32_t fab_reader_find_id(const struct pmixfab *fab, const char *what);

/* "0x" and 16 digits. */
bool fab_reader_read_guid(const char *what, uint64_t *guid);

/* Such a text: a port GUID, or a node GUID. */
uint32_t fab_reader_find_guid(const struct pmixfab *fab, const char *what);

#endif
