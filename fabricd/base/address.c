/* address.c - addresses to listen at, and interfaces of this host. */
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
    const int yes = 1; /* connections of before that are not over yet are no obstacle */
    struct sockaddr_storage address = {0};
    uint16_t *at;
    int size, rc = parse(text, &address, &size, &at, err);
    if (rc != PMIXFAB_OK)
        return rc;
    *at = port ? *at : 0;
    const int fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) != 0 ||
        bind(fd, (struct sockaddr *)&address, (socklen_t)size) != 0)
        rc = fab_fail(err, PMIXFAB_ERR_IO, "%.80s: this host cannot listen there: %s", text, strerror(errno));
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
    /* An address that was mistyped would be taken for a name that no interface has. */
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
        return fab_fail(err, PMIXFAB_ERR_IO, "the interfaces of this host cannot be listed: %s",
                        strerror(errno));
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
