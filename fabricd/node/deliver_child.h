/*
 * deliver_child.h - hosts' inventories on their way to the fabricd of this host, from another PMIx server on
 * it: its component starts this program for that (libpmixfab/mca/pnet/inventory_child.h).
 *
 * While there is no fabricd they wait, the newest of each host, and it is tried again with growing pauses.
 * What fabricd refuses is dropped. Standard error tells, in the component's name.
 */
#ifndef FABRICD_NODE_DELIVER_CHILD_H
#define FABRICD_NODE_DELIVER_CHILD_H

#include <stddef.h>

#define DELIVER_CHILD_OPTION "--deliver-child"

/* argv is "fabricd --deliver-child RUNDIR"; RUNDIR/control.sock is where to. */
int deliver_child(int argc, char **argv);

/*
 * Take deliveries of the whole (topo/model/delivery.h) from this socket, each behind its size (uint32_t), to
 * its end. What waits then has less than a second. So many hosts' may wait, and bytes of them. Returns the
 * exit status.
 */
int deliver_from(int fd, const char *rundir, unsigned max_hosts, size_t max_bytes);

#endif
