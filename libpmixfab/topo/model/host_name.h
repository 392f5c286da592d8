/* host_name.h - find the hosts that a name means. */
#ifndef FAB_TOPO_MODEL_HOST_NAME_H
#define FAB_TOPO_MODEL_HOST_NAME_H

#include <stdbool.h>

/* Return whether both are one host: equal, or one has no dot and the other is equal up to its first dot. */
bool fab_same_host(const char *a, const char *b);

/*
 * Return whether two names are different hosts by fab_same_host(), but would be one without regard to case,
 * as for a resolver.
 */
bool fab_host_differs_by_case(const char *a, const char *b);

/*
 * Return whether it is an IPv4 address in any form that a resolver accepts: "10.0.0.7", "167772167", "0xa.7".
 */
bool fab_host_is_address(const char *host);

/*
 * Return whether it is "localhost", with or without a domain: the name of a host without a name of its own.
 */
bool fab_host_is_local(const char *host);

/*
 * Find the host that a name means: the one with exactly this name, else the first by name of those that are
 * fab_same_host(). Begin with zeros, then offer each host; offering one twice is allowed.
 */
struct fab_host_choice {
    const char *host; /* as offered; NULL: none of them */
    bool exact;
    bool several; /* no exact match, and more than one similar host */
};
void fab_choose_host(struct fab_host_choice *choice, const char *name, const char *host);

#endif
