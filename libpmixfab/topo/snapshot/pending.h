/*
 * pending.h - the file `pending` of a run directory. It exists while a publisher puts a generation in place,
 * from before the first snapshot is renamed until after the last.
 *
 * The file is text. A rename puts it in place as a whole:
 *     generation 17
 *     plane 1 ib0
 *     plane 2 ib1
 */
#ifndef FAB_TOPO_SNAPSHOT_PENDING_H
#define FAB_TOPO_SNAPSHOT_PENDING_H

#include <stddef.h>

#include "pmixfab.h"
#include "topo/snapshot/format.h"

#define FAB_RUNDIR_PENDING "pending"
#define FAB_PENDING_PLANES 4096u /* a file with more planes is rejected */

struct fab_pending_plane {
    uint32_t index;
    char name[SNAP_NAME_MAX + 1];
};

struct fab_pending {
    uint64_t generation; /* 0: no generation is pending */
    uint32_t n;
    struct fab_pending_plane *planes;
};

/* Return the file's text, to be freed with free(); NULL without memory. */
char *fab_pending_text(const struct fab_pending *pending);

/* Read an open file. PMIXFAB_ERR_CORRUPT: it is not a `pending` file; _NOMEM, _IO. On error *out is empty. */
int fab_pending_read(int fd, struct fab_pending *out);

void fab_pending_clear(struct fab_pending *pending);

#endif
