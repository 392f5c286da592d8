/*
 * deliver_child.h - deliver hosts' inventories from another PMIx server to the fabricd of this host. The
 * server's component starts this program as a child (libpmixfab/mca/pnet/inventory_child.h).
 *
 * While fabricd cannot be reached, the newest inventory of each host waits, and delivery is retried with
 * growing pauses. Inventories that fabricd rejects are dropped. Messages go to standard error in the
 * component's name.
 */
#ifndef FABRICD_NODE_DELIVER_CHILD_H
#define FABRICD_NODE_DELIVER_CHILD_H

#include <stddef.h>

#define DELIVER_CHILD_OPTION "--deliver-child"

/* Run as "fabricd --deliver-child RUNDIR"; delivers to RUNDIR/control.sock. */
int deliver_child(int argc, char **argv);

/*
 * Read full deliveries (topo/model/delivery.h) from this socket to its end, each preceded by its size
 * (uint32_t). At the end, waiting ones have less than a second left. max_hosts, max_bytes: bounds of the
 * waiting ones. Returns the exit status.
 */
int deliver_from(int fd, const char *rundir, unsigned max_hosts, size_t max_bytes);

#endif
