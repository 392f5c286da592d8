/*
 * address.h - an address and a port to listen at, as somebody writes them.
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
