/*
 * excerpt.h - the part of a plane that describes some of its hosts at a launch. Its size grows with these
 * hosts and not with the plane. The room excerpt writes such a part, and reads it into a handle that gives
 * the same answers as the plane's own handle.
 *
 * Such a handle has these data:
 * - pmixfab_plane() except the counts
 * - the hosts, and their devices with both coordinates and a fact of each kind
 * - the ids of the switches of these devices
 * - each group, with these hosts only.
 *
 * Hosts, devices and groups have other numbers in the handle than in the plane. fab_reader_number() returns
 * the numbers of the plane. The handle has no costs and finds nothing by GUID.
 */
#ifndef FAB_TOPO_SNAPSHOT_EXCERPT_H
#define FAB_TOPO_SNAPSHOT_EXCERPT_H

#include "topo/base/bytes.h"
#include "topo/base/frame.h"

/* Append the excerpt for the wanted hosts (one bool each) to `out`. PMIXFAB_ERR_NOMEM, _RANGE. */
int fab_excerpt_write(const struct pmixfab *fab, const bool *wanted, struct fab_bytes *out);

/*
 * Read the next excerpt of a frame with untrusted bytes: everything is checked. Close it with
 * pmixfab_close(). PMIXFAB_ERR_CORRUPT, _NOMEM.
 */
int fab_excerpt_read(struct frame *in, struct pmixfab **out, struct fab_err *err);

#endif
