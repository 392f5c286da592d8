/* host_name.c - which hosts are meant by a name. */
#include "topo/model/host_name.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#include "topo/base/natural.h"

bool fab_same_host(const char *a, const char *b)
{
    size_t in_a = strcspn(a, "."), in_b = strcspn(b, ".");
    if (strcmp(a, b) == 0)
        return true;
    /* node1 and node1.cluster are one, node1.here and node1.there are two */
    return in_a > 0 && in_a == in_b && memcmp(a, b, in_a) == 0 && (a[in_a] == '\0' || b[in_b] == '\0');
}

bool fab_host_differs_by_case(const char *a, const char *b)
{
    size_t in_a = strcspn(a, "."), in_b = strcspn(b, ".");
    if (strcasecmp(a, b) == 0)
        return strcmp(a, b) != 0;
    return in_a > 0 && in_a == in_b && strncasecmp(a, b, in_a) == 0 && (a[in_a] == '\0' || b[in_b] == '\0') &&
           memcmp(a, b, in_a) != 0;
}

bool fab_host_is_address(const char *host)
{
    struct in_addr address;
    return inet_aton(host, &address) != 0;
}

bool fab_host_is_local(const char *host)
{
    return strncmp(host, "localhost", 9) == 0 && (host[9] == '\0' || host[9] == '.');
}

void fab_choose_host(struct fab_host_choice *choice, const char *name, const char *host)
{
    if (choice->exact || (choice->host != NULL && strcmp(choice->host, host) == 0) ||
        !fab_same_host(host, name))
        return;
    choice->exact = strcmp(host, name) == 0;
    choice->several = choice->host != NULL && !choice->exact;
    if (choice->host == NULL || choice->exact || fab_natural_cmp(host, choice->host) < 0)
        choice->host = host;
}
