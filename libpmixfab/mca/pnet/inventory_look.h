/*
 * inventory_look.h - what this host has, looked at by the program fabricd in a child process with a deadline.
 *
 * The host program's other children are left alone, and no signal handler is set. It may have its own for
 * SIGCHLD, which sees one child more, and may wait for it before we do: that counts as its end.
 */
#ifndef FAB_PNET_INVENTORY_LOOK_H
#define FAB_PNET_INVENTORY_LOOK_H

#include <stddef.h>

#include "topo/inventory/model.h"

struct pnet_inspection {
    const char *program; /* path of fabricd */
    const char *host;    /* whose name stands in the inventory */
    const char *probes;  /* NAME[:ARG],NAME[:ARG]...; NULL or empty: all local ones */
    unsigned seconds;    /* at most */
};

/*
 * *bytes becomes a checked delivery of the whole (topo/report/delivery.h); free() it. Remarks of the probes
 * go to the log. PMIXFAB_ERR_UNSUPPORTED: the host has nothing that the probes know of. PMIXFAB_ERR_TIMEOUT,
 * _IO (no such program, it failed), _CORRUPT, _NOMEM, _INVAL (probes that cannot be). Blocks up to the
 * deadline and a little more. One thread at a time.
 */
int pnet_inspect(const struct pnet_inspection *wanted, void **bytes, size_t *size, struct fab_err *err);

/* Wait, without blocking, for children that did not end when they were killed. */
void pnet_inspect_reap(void);

#endif
