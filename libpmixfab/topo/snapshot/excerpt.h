/*
 * excerpt.h - of a plane what is told of some of its hosts at a launch, as bytes that grow with these hosts
 * and not with the plane. The room excerpt writes them, and reads them into a handle that answers as the
 * plane's own does.
 *
 * What such a handle knows: pmixfab_plane() but for the counts, the hosts, their devices with both
 * coordinates and a fact of each kind, the ids of their switches, and of each group those hosts. Hosts,
 * devices and groups have numbers of their own there; fab_reader_number() says those in the plane. It knows
 * no costs and finds nothing by GUID.
 */
#ifndef FAB_TOPO_SNAPSHOT_EXCERPT_H
#define FAB_TOPO_SNAPSHOT_EXCERPT_H

#include "topo/base/bytes.h"
#include "topo/base/frame.h"

/* Append that of the hosts which are wanted (a bool each) to `out`. PMIXFAB_ERR_NOMEM, _RANGE. */
int fab_excerpt_write(const struct pmixfab *fab, const bool *wanted, struct fab_bytes *out);

/*
 * The next one of a frame, whose bytes may be anybody's: nothing is believed before it was looked at.
 * pmixfab_close() it. PMIXFAB_ERR_CORRUPT, _NOMEM.
 */
int fab_excerpt_read(struct frame *in, struct pmixfab **out, struct fab_err *err);

#endif
