#include "fabricd/base/interface.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "topo/base/cidr.h"

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
