/* address.c - addresses to listen at, and network interfaces of this host. */
#include <arpa/inet.h>
#include <errno.h>
#include <event2/util.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fabricd/base/address.h"
#include "topo/base/cidr.h"
#include "topo/base/text.h"

static int parse(const char *text, struct sockaddr_storage *out, int *size, uint16_t **port,
                 struct fab_err *err)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)(void *)out;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)(void *)out;
    *size = sizeof(*out);
    const bool good = evutil_parse_sockaddr_port(text, (struct sockaddr *)out, size) == 0;
    *port = out->ss_family == AF_INET6 ? &v6->sin6_port : &v4->sin_port;
    if (good && **port != 0)
        return PMIXFAB_OK;
    return fab_fail(err, PMIXFAB_ERR_SYNTAX,
                    "\"%.80s\": give an address and a port, as 127.0.0.1:9400 or [::1]:9400", text);
}

int address_parse(const char *text, char host[INET6_ADDRSTRLEN], uint16_t *port, struct fab_err *err)
{
    struct sockaddr_storage address = {0};
    uint16_t *at;
    int size, rc = parse(text, &address, &size, &at, err);
    if (rc != PMIXFAB_OK)
        return rc;
    *port = ntohs(*at);
    if (address.ss_family == AF_INET6)
        inet_ntop(AF_INET6, &((struct sockaddr_in6 *)(void *)&address)->sin6_addr, host, INET6_ADDRSTRLEN);
    else
        inet_ntop(AF_INET, &((struct sockaddr_in *)(void *)&address)->sin_addr, host, INET6_ADDRSTRLEN);
    return PMIXFAB_OK;
}

int address_try(const char *text, bool port, struct fab_err *err)
{
    const int yes = 1; /* do not fail on connections of an earlier process that are still in TIME_WAIT */
    struct sockaddr_storage address = {0};
    uint16_t *at;
    int size, rc = parse(text, &address, &size, &at, err);
    if (rc != PMIXFAB_OK)
        return rc;
    *at = port ? *at : 0;
    const int fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) != 0 ||
        bind(fd, (struct sockaddr *)&address, (socklen_t)size) != 0)
        rc = fab_fail(err, PMIXFAB_ERR_IO, "%.80s: this host cannot listen at this address: %s", text,
                      strerror(errno));
    if (fd >= 0)
        close(fd);
    return rc;
}

static bool is_ipv4(const char *text)
{
    struct in_addr address;
    return inet_pton(AF_INET, text, &address) == 1;
}

char *interface_for_pmix(const char *text)
{
    char *out = NULL;
    return asprintf(&out, "%s%s", text, is_ipv4(text) ? "/32" : "") < 0 ? NULL : out;
}

int interface_check(const char *text, struct fab_err *err)
{
    if (strchr(text, '/') != NULL && strchr(text, ':') == NULL)
        return fab_cidr_check(text, err);
    /* Reject a mistyped address here: as an interface name it would match nothing. */
    if (!is_ipv4(text) && (strlen(text) >= IF_NAMESIZE || strpbrk(text, "/:, \t") != NULL ||
                           strspn(text, "0123456789.") == strlen(text)))
        return fab_fail(err, PMIXFAB_ERR_SYNTAX,
                        "\"%.60s\": give an interface's name, or a network or address of IPv4, as ib0, "
                        "10.92.0.0/24 or 10.92.0.1",
                        text);
    return PMIXFAB_OK;
}

int interface_find(const char *text, char address[INET_ADDRSTRLEN], struct fab_err *err)
{
    struct ifaddrs *all = NULL;
    struct fab_cidr network, one_address;
    char whole[INET_ADDRSTRLEN + 3], *own = interface_for_pmix(text);
    bool found = false;
    const bool is_network = own != NULL && fab_cidr_parse(own, &network);
    free(own);
    if (getifaddrs(&all) != 0)
        return fab_fail(err, PMIXFAB_ERR_IO, "cannot list the interfaces of this host: %s", strerror(errno));
    for (const struct ifaddrs *one = all; one != NULL && !found; one = one->ifa_next) {
        if (one->ifa_addr == NULL || one->ifa_addr->sa_family != AF_INET || (one->ifa_flags & IFF_UP) == 0)
            continue;
        const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)one->ifa_addr;
        inet_ntop(AF_INET, &in->sin_addr, address, INET_ADDRSTRLEN);
        snprintf(whole, sizeof(whole), "%s/32", address);
        found = is_network ? fab_cidr_parse(whole, &one_address) && fab_cidr_contains(&network, &one_address)
                           : strcmp(one->ifa_name, text) == 0;
    }
    freeifaddrs(all);
    return found
               ? PMIXFAB_OK
               : fab_fail(err, PMIXFAB_ERR_NOTFOUND,
                          "no interface of this host that is up %s %.60s: bring it up, or name another",
                          is_network ? "has an IPv4 address in" : "and has an IPv4 address is called", text);
}

/* ---- addresses of servers ------------------------------------------------------------------------- */

static bool place_port(const char *text, size_t len, uint16_t *port)
{
    unsigned value = 0;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9' || i > 4)
            return false;
        value = value * 10 + (unsigned)(text[i] - '0');
    }
    *port = (uint16_t)value;
    return len > 0 && value > 0 && value <= UINT16_MAX;
}

/* Parse one address, given without blanks around it. */
static bool place_parse(const char *text, size_t len, uint16_t port, struct address_place *out)
{
    const char *host = text, *end = text + len, *colon = memrchr(text, ':', len);
    out->port = port;
    if (len > 0 && text[0] == '[') {
        const char *bracket = memchr(text, ']', len);
        host = text + 1;
        colon = bracket != NULL && bracket + 1 < end ? bracket + 1 : NULL;
        if (bracket == NULL || (colon != NULL && colon[0] != ':') ||
            (colon != NULL && !place_port(colon + 1, (size_t)(end - colon - 1), &out->port)))
            return false;
        end = bracket;
    } else if (colon != NULL && memchr(text, ':', (size_t)(colon - text)) == NULL) { /* else IPv6 */
        if (!place_port(colon + 1, (size_t)(end - colon - 1), &out->port))
            return false;
        end = colon;
    }
    const size_t n = (size_t)(end - host);
    if (n == 0 || n >= sizeof(out->host))
        return false;
    memcpy(out->host, host, n);
    out->host[n] = '\0';
    return strspn(out->host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:%") == n;
}

int address_places(const char *text, uint16_t port, struct address_place out[ADDRESS_MOST_PLACES],
                   unsigned *n, struct fab_err *err)
{
    for (*n = 0; *n < ADDRESS_MOST_PLACES; text++) {
        size_t len = strcspn(text, ",");
        const char *one = text;
        text += len;
        one = fab_text_trim(one, &len);
        if (!place_parse(one, len, port, &out[*n]))
            return fab_fail(err, PMIXFAB_ERR_SYNTAX,
                            "\"%.*s\": expected HOST or HOST:PORT, or [ADDRESS]:PORT for IPv6",
                            len > 80 ? 80 : (int)len, one);
        (*n)++;
        if (text[0] == '\0')
            return PMIXFAB_OK;
    }
    return fab_fail(err, PMIXFAB_ERR_RANGE, "more than %d addresses: remove some", ADDRESS_MOST_PLACES);
}
