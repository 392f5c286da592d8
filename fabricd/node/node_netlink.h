/*
 * node_netlink.h - the kernel tells when a device of this host comes, goes or changes.
 *
 * Two netlink sockets: network interfaces and their addresses, and events of devices (RDMA, network, PCI).
 * Much of what they say means nothing here, lifetimes of addresses above all: of network interfaces a
 * fingerprint is compared. Changes come in bursts: a moment after the first of them the whole is looked at.
 */
#ifndef FABRICD_NODE_NODE_NETLINK_H
#define FABRICD_NODE_NODE_NETLINK_H

#include <event2/event.h>
#include <ifaddrs.h>

#include "topo/model/model.h"

#define NETLINK_DEBOUNCE_MS     300   /* that moment */
#define NETLINK_DEBOUNCE_MAX_MS 30000 /* ... after many scans that found nothing */

struct devices;

/* `changed` is called on the loop. */
int devices_new(struct event_base *base, void (*changed)(void *cbdata), void *cbdata, struct devices **out,
                struct fab_err *err);
void devices_free(struct devices *devices); /* NULL allowed */

/*
 * What came of a scan: a host on which something moves all the time, and nothing that is reported, is looked
 * at less often.
 */
void netlink_scanned(struct devices *devices, bool found);

/*
 * What there is to say of the interfaces in this list, whatever its order: names, hardware addresses, up and
 * running, MTUs, IP addresses with their networks. The loopback interface is left out. mtu: of an interface,
 * 0 where it is not known.
 */
uint64_t devices_fingerprint(const struct ifaddrs *list, unsigned (*mtu)(const char *name, void *cbdata),
                             void *cbdata);

#endif
