/* host_name.h - which hosts are meant by a name. */
#ifndef FAB_TOPO_MODEL_HOST_NAME_H
#define FAB_TOPO_MODEL_HOST_NAME_H

#include <stdbool.h>

/* Are these one host: equal, or one of them without a dot and the other equal up to its first dot? */
bool fab_same_host(const char *a, const char *b);

/* Not one host by this, and would be if case did not count, as it does not to a resolver. */
bool fab_host_differs_by_case(const char *a, const char *b);

/* An IPv4 address, in any of the forms that a resolver takes: "10.0.0.7", "167772167", "0xa.7". */
bool fab_host_is_address(const char *host);

/* "localhost", with a domain or without: the name of a host that has none of its own. */
bool fab_host_is_local(const char *host);

/*
 * Which of several hosts is meant by a name: the one that is called so, else, by name, the first of those
 * that are fab_same_host(). Begin with zeros, then offer each; once more does no harm.
 */
struct fab_host_choice {
    const char *host; /* as it was offered; NULL: none of them */
    bool exact;
    bool several; /* none is called so, and more than one could be meant */
};
void fab_choose_host(struct fab_host_choice *choice, const char *name, const char *host);

#endif
