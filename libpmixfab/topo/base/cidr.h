/*
 * cidr.h - IP networks and addresses in them, IPv4 and IPv6.
 */
#ifndef FAB_TOPO_BASE_CIDR_H
#define FAB_TOPO_BASE_CIDR_H

#include <stdbool.h>

#include "topo/base/error.h"

struct fab_cidr {
    unsigned char bytes[16]; /* 4 or 16 of them count */
    unsigned length;         /* of the network, in bits */
    bool v6;
};

/* "10.91.0.0/16", "fd00::/64". PMIXFAB_ERR_SYNTAX: not that, or bits are set beyond its length. */
int fab_cidr_check(const char *text, struct fab_err *err);

/* An address with the length of its network, "10.91.0.2/16": bits beyond it are allowed. False: none. */
bool fab_cidr_parse(const char *text, struct fab_cidr *out);

/* Is that address in this network? The address's own length does not matter. */
bool fab_cidr_contains(const struct fab_cidr *network, const struct fab_cidr *address);

#endif
