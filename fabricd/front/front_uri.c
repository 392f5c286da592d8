/* front_uri.c - where a front says that it serves: tools connect to what stands in fabricd.uri. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/front/front_state.h"

bool front_uri_read(const char *uri, const char *before, bool remote, unsigned *port)
{
    const char *way = strchr(uri, ';'), *colon = strrchr(uri, ':');
    for (const char *p = uri; *p != '\0'; p++)
        if (*p <= ' ' || *p > '~')
            return false;
    if (way == NULL || (strncmp(way, ";tcp4://", 8) != 0 && strncmp(way, ";tcp6://", 8) != 0) ||
        colon < way + 8 || !isdigit((unsigned char)colon[1]))
        return false;
    const char *address = way + 8;
    const bool loopback = strncmp(address, "127.", 4) == 0 || strncmp(address, "[::1]", 5) == 0;
    const bool same_name = before[0] == '\0' || strncmp(before, uri, (size_t)(way - uri) + 1) == 0;
    char *end;
    const unsigned long number = strtoul(colon + 1, &end, 10);
    *port = (unsigned)number;
    return same_name && (remote || loopback) && strspn(address, "0123456789abcdef.:[]") == strlen(address) &&
           *end == '\0' && number > 0 && number <= 65535;
}
