/*
 * address.h - addresses in the form that users write. An address to listen at has a port. A network interface
 * of this host is given by its name, by an IPv4 network or by an IPv4 address.
 */
#ifndef FABRICD_BASE_ADDRESS_H
#define FABRICD_BASE_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>

#include "topo/base/error.h"

/*
 * Parse an address to listen at, for example "127.0.0.1:9400" or "[::1]:9400". The host is returned without
 * brackets. The port is 1 to 65535. PMIXFAB_ERR_SYNTAX.
 */
int address_parse(const char *text, char host[INET6_ADDRSTRLEN], uint16_t *port, struct fab_err *err);

/* Check that this process may listen at that address: at its port if `port`, else at any port.
 * PMIXFAB_ERR_SYNTAX, _IO. */
int address_try(const char *text, bool port, struct fab_err *err);

/* Check that the text is an interface name, a network as "10.92.0.0/24", or an address as "10.92.0.1".
 * PMIXFAB_ERR_SYNTAX. */
int interface_check(const char *text, struct fab_err *err);

/*
 * Find the IPv4 address of such an interface, if it is up. interface_check() has accepted the text.
 * PMIXFAB_ERR_NOTFOUND: no such interface; _IO: the interfaces cannot be listed.
 */
int interface_find(const char *text, char address[INET_ADDRSTRLEN], struct fab_err *err);

/* Return the text in the form that the PMIx library accepts: an address becomes a network of one address.
 * NULL: no memory. free() it. */
char *interface_for_pmix(const char *text);

/* ---- a server's address, in a client's configuration ---- */

#define ADDRESS_MOST_PLACES 8
struct address_place {
    char host[256]; /* a name or an address, without brackets */
    uint16_t port;
};

/* Parse "HOST[:PORT], HOST[:PORT]...", with [ADDRESS]:PORT for IPv6. An entry without a port gets `port`.
 * PMIXFAB_ERR_SYNTAX, _RANGE (too many). */
int address_places(const char *text, uint16_t port, struct address_place out[ADDRESS_MOST_PLACES],
                   unsigned *n, struct fab_err *err);

#endif
