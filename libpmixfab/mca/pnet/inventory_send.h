/*
 * inventory_send.h - a thread that hands hosts' inventories to the fabricd of this host, over its control
 * socket.
 *
 * While there is no fabricd they wait, the newest of each host, and it is tried again with growing pauses.
 * What fabricd refuses is dropped, with the reason in the log. Any thread may call; nothing here blocks but
 * the stop, which takes less than a second.
 */
#ifndef FAB_PNET_INVENTORY_SEND_H
#define FAB_PNET_INVENTORY_SEND_H

#include <stddef.h>
#include <stdint.h>

#include "topo/inventory/model.h"

struct pnet_sender;

/* The socket is RUNDIR/control.sock. PMIXFAB_ERR_INVAL (the path is too long for a socket), _NOMEM, _IO. */
int pnet_sender_start(const char *rundir, struct pnet_sender **out, struct fab_err *err);

/*
 * A host's inventory (a whole report in the form of topo/report/delivery.h), which is copied. Refused with
 * the reason: damaged, truncated or foreign bytes, a change instead of a whole, more than can wait. 0: it
 * waits.
 */
int pnet_sender_add(struct pnet_sender *sender, const void *bytes, size_t size, struct fab_err *err);

struct pnet_sender_counts {
    uint64_t delivered; /* taken by fabricd */
    uint64_t refused;   /* by fabricd, for good */
    uint64_t attempts;  /* that came to nothing: no fabricd, or it had no time */
    size_t waiting;     /* the one that is under way included */
};
void pnet_sender_counts(struct pnet_sender *sender, struct pnet_sender_counts *out);

/* What waits is delivered if that is done in less than a second; else it is dropped, which the log says. NULL
 * allowed. */
void pnet_sender_stop(struct pnet_sender *sender);

#endif
