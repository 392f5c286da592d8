/*
 * node_netlink.h - kernel events: a device of this host is added, removed or changed.
 *
 * There are two netlink sockets: one for network interfaces and their addresses, one for events of devices
 * (RDMA, network, PCI). Many messages are irrelevant, above all lifetimes of addresses, so a fingerprint of
 * the network interfaces is compared. Changes come in bursts: the comparison is made a moment after the first
 * event.
 */
#ifndef FABRICD_NODE_NODE_NETLINK_H
#define FABRICD_NODE_NODE_NETLINK_H

#include <event2/event.h>
#include <ifaddrs.h>

#include "topo/model/model.h"

#define NETLINK_DEBOUNCE_MS     300   /* the moment after the first event */
#define NETLINK_DEBOUNCE_MAX_MS 30000 /* ... after many scans without a difference */

struct devices;

/* Create the sockets. `changed` is called on the loop. */
int devices_new(struct event_base *base, void (*changed)(void *cbdata), void *cbdata, struct devices **out,
                struct fab_err *err);
void devices_free(struct devices *devices); /* NULL allowed */

/*
 * Note the result of a scan. Where events keep coming and reports do not change, the debounce time grows.
 */
void netlink_scanned(struct devices *devices, bool found);

/*
 * Return a fingerprint of the interfaces in this list, independent of the order. It covers names, hardware
 * addresses, up and running, MTUs, and IP addresses with their networks. The loopback interface is left out.
 * mtu: returns the MTU of an interface, 0: not known.
 */
uint64_t devices_fingerprint(const struct ifaddrs *list, unsigned (*mtu)(const char *name, void *cbdata),
                             void *cbdata);

#endif
