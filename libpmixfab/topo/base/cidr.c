#include "topo/base/cidr.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool fab_cidr_parse(const char *text, struct fab_cidr *out)
{
    char address[INET6_ADDRSTRLEN];
    const char *slash = strchr(text, '/');
    memset(out, 0, sizeof(*out));
    if (slash == NULL || (size_t)(slash - text) >= sizeof(address))
        return false;
    memcpy(address, text, (size_t)(slash - text));
    address[slash - text] = '\0';
    out->v6 = strchr(address, ':') != NULL;
    if (inet_pton(out->v6 ? AF_INET6 : AF_INET, address, out->bytes) != 1)
        return false;
    size_t digits = strspn(slash + 1, "0123456789");
    if (digits == 0 || digits > 3 || slash[1 + digits] != '\0')
        return false;
    out->length = (unsigned)strtoul(slash + 1, NULL, 10);
    return out->length <= (out->v6 ? 128u : 32u);
}

/* Return the bits of byte i that belong to the network. */
static unsigned mask_of(const struct fab_cidr *network, unsigned i)
{
    if (network->length >= 8 * (i + 1))
        return 0xff;
    return network->length <= 8 * i ? 0 : (0xff00u >> (network->length - 8 * i)) & 0xff;
}

bool fab_cidr_contains(const struct fab_cidr *network, const struct fab_cidr *address)
{
    if (network->v6 != address->v6)
        return false;
    for (unsigned i = 0; i < (network->v6 ? 16u : 4u); i++)
        if (((network->bytes[i] ^ address->bytes[i]) & mask_of(network, i)) != 0)
            return false;
    return true;
}

int fab_cidr_check(const char *text, struct fab_err *err)
{
    struct fab_cidr network;
    if (!fab_cidr_parse(text, &network))
        return fab_fail(
            err, PMIXFAB_ERR_SYNTAX,
            "\"%.60s\" is not a network: give an address and a length, as 10.91.0.0/16 or fd00::/64", text);
    for (unsigned i = 0; i < 16; i++)
        if ((network.bytes[i] & ~mask_of(&network, i) & 0xff) != 0)
            return fab_fail(err, PMIXFAB_ERR_SYNTAX,
                            "\"%.60s\" is not a network: bits are set after the first %u", text,
                            network.length);
    return PMIXFAB_OK;
}
