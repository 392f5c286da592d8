/*
 * address.h - addresses as somebody writes them: one to listen at, with a port; and a network interface of
 * this host by its name, by a network or by an address, all of IPv4.
 */
#ifndef FABRICD_BASE_ADDRESS_H
#define FABRICD_BASE_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>

#include "topo/base/error.h"

/* "127.0.0.1:9400", "[::1]:9400": host without brackets, and the port, 1 to 65535. PMIXFAB_ERR_SYNTAX. */
int address_parse(const char *text, char host[INET6_ADDRSTRLEN], uint16_t *port, struct fab_err *err);

/* May this process listen at that address, and at that port (else at any)? PMIXFAB_ERR_SYNTAX, _IO. */
int address_try(const char *text, bool port, struct fab_err *err);

/* Is it the name of an interface, "10.92.0.0/24", or "10.92.0.1"? PMIXFAB_ERR_SYNTAX. */
int interface_check(const char *text, struct fab_err *err);

/* The address of such an interface that is up. PMIXFAB_ERR_NOTFOUND: there is none; IO: the system does not
 * say. text: as interface_check() takes it. */
int interface_find(const char *text, char address[INET_ADDRSTRLEN], struct fab_err *err);

/* As the PMIx library takes it: an address becomes a network of one. NULL: no memory. free() it. */
char *interface_for_pmix(const char *text);

/* ---- where a server is, as a client is told ---- */

#define ADDRESS_MOST_PLACES 8
struct address_place {
    char host[256]; /* a name or an address, without brackets */
    uint16_t port;
};

/* "HOST[:PORT], HOST[:PORT]...", with [ADDRESS]:PORT for IPv6; the port is `port` where none is given.
 * PMIXFAB_ERR_SYNTAX, _RANGE (too many). */
int address_places(const char *text, uint16_t port, struct address_place out[ADDRESS_MOST_PLACES],
                   unsigned *n, struct fab_err *err);

#endif
