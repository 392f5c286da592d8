/*
 * inventory_child.h - run the program fabricd as a child of the host program. The child scans this host
 * before a deadline, or delivers hosts' inventories to the fabricd of this host until the end.
 *
 * The host's other children are not touched, and no signal handler is set. One thread at a time.
 */
#ifndef FAB_MCA_PNET_INVENTORY_CHILD_H
#define FAB_MCA_PNET_INVENTORY_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "topo/base/error.h"

struct pnet_inventory_params {
    const char *program; /* path of fabricd */
    const char *rundir;  /* of the fabricd that receives deliveries */
    const char *host;    /* host name in the inventory */
    const char *probes;  /* NAME[:ARG],NAME[:ARG]...; NULL or empty: all local ones */
    int seconds;         /* deadline */
    bool talks;          /* its messages go to standard error */
};

/*
 * Scan. *bytes becomes a delivery of the whole report (topo/model/delivery.h) whose head is checked; free it
 * with free(). PMIXFAB_ERR_UNSUPPORTED: the host has nothing that the probes find. PMIXFAB_ERR_TIMEOUT, _IO
 * (no such program, it failed), _CORRUPT, _NOMEM, _INVAL (invalid probes). Blocks up to the deadline and a
 * little more.
 */
int pnet_inspect(const struct pnet_inventory_params *params, void **bytes, size_t *size, struct fab_err *err);

struct pnet_sender {
    const struct pnet_inventory_params *params;
    int fd; /* to the child, which runs from the first inventory on; -1: none runs */
    pid_t pid;
};

/*
 * Send. Blocks for some seconds if the child does not read. PMIXFAB_ERR_IO, _RANGE (too long). 0: the child
 * has it, and logs the result itself. A child that has ended is replaced.
 */
int pnet_send(struct pnet_sender *sender, const void *bytes, size_t size, struct fab_err *err);

/* Stop: the child delivers waiting inventories if that takes less than a second, and ends. */
void pnet_send_stop(struct pnet_sender *sender);

#endif
