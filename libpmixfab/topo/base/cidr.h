/*
 * cidr.h - IP networks and addresses in them, IPv4 and IPv6.
 */
#ifndef FAB_TOPO_BASE_CIDR_H
#define FAB_TOPO_BASE_CIDR_H

#include <stdbool.h>

#include "topo/base/error.h"

struct fab_cidr {
    unsigned char bytes[16]; /* 4 or 16 bytes are used */
    unsigned length;         /* length of the network, in bits */
    bool v6;
};

/*
 * Check that `text` is a network, as "10.91.0.0/16" or "fd00::/64". PMIXFAB_ERR_SYNTAX: it is not, or bits
 * are set beyond its length.
 */
int fab_cidr_check(const char *text, struct fab_err *err);

/*
 * Parse an address with the length of its network, "10.91.0.2/16"; bits beyond the length are allowed. Return
 * false for any other text.
 */
bool fab_cidr_parse(const char *text, struct fab_cidr *out);

/* Return whether the network contains the address. The address's own length is ignored. */
bool fab_cidr_contains(const struct fab_cidr *network, const struct fab_cidr *address);

#endif
