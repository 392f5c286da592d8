/*
 * ethernet.h - inside of the probe `ethernet`: what the kernel says of the network interfaces of a host.
 */
#ifndef FAB_PROBES_ETHERNET_ETHERNET_H
#define FAB_PROBES_ETHERNET_ETHERNET_H

#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <net/if.h>
#include <stdio.h>

#include "probes/core/facts.h"

/* Where it is asked; tests make up their own. */
struct ethernet_host {
    const char *sysfs;               /* "/sys" */
    const struct ifaddrs *addresses; /* as getifaddrs() gives them: they say which interfaces there are */
    /* ethtool's drvinfo of an interface; false: it gives none. */
    bool (*driver)(const char *interface, struct ethtool_drvinfo *info, void *cbdata);
    unsigned (*mtu)(const char *interface, void *cbdata); /* where sysfs is another's; NULL, 0: not known */
    void *cbdata;
};

/* Interfaces without hardware in a report: a host of containers has many. */
#define ETHERNET_MAX_SOFTWARE 256

/* An item for each interface that is Ethernet or InfiniBand and no loopback. Interfaces of software alone
 * only where they have an address: containers' ends of cables come and go, and are in no fabric. */
int ethernet_report(const struct ethernet_host *host, const struct probe_sink *sink,
                    struct fab_report *report);

#endif
