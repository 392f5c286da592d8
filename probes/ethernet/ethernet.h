/*
 * ethernet.h - private parts of the probe `ethernet`: the kernel's data about the network interfaces of a
 * host.
 */
#ifndef FAB_PROBES_ETHERNET_ETHERNET_H
#define FAB_PROBES_ETHERNET_ETHERNET_H

#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <net/if.h>
#include <stdio.h>

#include "probes/core/facts.h"

/* The sources; tests replace them. */
struct ethernet_host {
    const char *sysfs;               /* "/sys" */
    const struct ifaddrs *addresses; /* from getifaddrs(): the list of interfaces */
    /* Read ethtool's drvinfo of an interface; return false if there is none. */
    bool (*driver)(const char *interface, struct ethtool_drvinfo *info, void *cbdata);
    /* if sysfs is another namespace's; NULL, 0: unknown */
    unsigned (*mtu)(const char *interface, void *cbdata);
    void *cbdata;
};

/* Maximum number of software interfaces in a report: a host of containers has many. */
#define ETHERNET_MAX_SOFTWARE 256

/*
 * Add an item for each Ethernet or InfiniBand interface except loopback. Software interfaces are added only
 * if they have an address: containers' ends of cables come and go, and are in no fabric.
 */
int ethernet_report(const struct ethernet_host *host, const struct probe_sink *sink,
                    struct fab_report *report);

#endif
