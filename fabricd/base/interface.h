/*
 * interface.h - a network interface of this host by its name, by a network or by an address, all of IPv4.
 */
#ifndef FABRICD_BASE_INTERFACE_H
#define FABRICD_BASE_INTERFACE_H

#include <netinet/in.h>

#include "topo/base/error.h"

/* Is it the name of an interface, "10.92.0.0/24", or "10.92.0.1"? PMIXFAB_ERR_SYNTAX. */
int interface_check(const char *text, struct fab_err *err);

/* The address of such an interface that is up. PMIXFAB_ERR_NOTFOUND: there is none; IO: the system does not
 * say. text: as interface_check() takes it. */
int interface_find(const char *text, char address[INET_ADDRSTRLEN], struct fab_err *err);

/* As the PMIx library takes it: an address becomes a network of one. NULL: no memory. free() it. */
char *interface_for_pmix(const char *text);

#endif
