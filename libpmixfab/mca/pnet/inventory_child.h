/*
 * inventory_child.h - the program fabricd as a child of the host program: it looks at this host, with a
 * deadline; or it hands hosts' inventories to the fabricd that runs here, until the end.
 *
 * The host's other children are left alone, and no signal handler is set. One thread at a time.
 */
#ifndef FAB_MCA_PNET_INVENTORY_CHILD_H
#define FAB_MCA_PNET_INVENTORY_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "topo/base/error.h"

struct pnet_inventory_params {
    const char *program; /* path of fabricd */
    const char *rundir;  /* of the one that is delivered to */
    const char *host;    /* whose name stands in the inventory */
    const char *probes;  /* NAME[:ARG],NAME[:ARG]...; NULL or empty: all local ones */
    int seconds;         /* at most */
    bool talks;          /* what it has to say goes to standard error */
};

/*
 * *bytes becomes a delivery of the whole (topo/model/delivery.h) whose head is checked; free() it.
 * PMIXFAB_ERR_UNSUPPORTED: the host has nothing that the probes know of. PMIXFAB_ERR_TIMEOUT, _IO (no such
 * program, it failed), _CORRUPT, _NOMEM, _INVAL (probes that cannot be). Blocks up to the deadline and a
 * little more.
 */
int pnet_inspect(const struct pnet_inventory_params *params, void **bytes, size_t *size, struct fab_err *err);

struct pnet_sender {
    const struct pnet_inventory_params *params;
    int fd; /* to the child, which runs from the first inventory on; -1: none does */
    pid_t pid;
};

/* Blocks for some seconds where the child does not read. PMIXFAB_ERR_IO, _RANGE (too long). 0: the child has
 * it, and says itself what comes of it. A child that has ended is replaced. */
int pnet_send(struct pnet_sender *sender, const void *bytes, size_t size, struct fab_err *err);

/* The child delivers what waits if that is done in less than a second, and ends. */
void pnet_send_stop(struct pnet_sender *sender);

#endif
