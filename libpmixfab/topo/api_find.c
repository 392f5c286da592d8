/* api_find.c - the device that a text names. */
#include <stdlib.h>
#include <string.h>

#include "topo/handle.h"
#include "topo/join.h"

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* Read 16 hexadecimal digits, with a colon after each four where `colons`. What follows, NULL: no GUID. */
static const char *read_guid(const char *text, bool colons, uint64_t *guid)
{
    *guid = 0;
    for (int i = 0; i < 16; i++) {
        if (colons && i > 0 && i % 4 == 0 && *text++ != ':')
            return NULL;
        int digit = hex_digit(*text++);
        if (digit < 0)
            return NULL;
        *guid = *guid << 4 | (uint64_t)digit;
    }
    return text;
}

static uint64_t guid_of(const struct pmixfab *fab, const uint32_t *order, uint32_t place)
{
    const struct snap_device *device = &fab->devices[order[place]];
    return order == fab->by_node ? device->node_guid : device->port_guid;
}

/* The first device (lowest index) with this GUID in one of the two orders; FAB_NONE. */
static uint32_t by_guid(const struct pmixfab *fab, const uint32_t *order, uint64_t guid)
{
    uint32_t low = 0, high = fab->meta->n_devices;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (guid_of(fab, order, middle) < guid)
            low = middle + 1;
        else
            high = middle;
    }
    return low < fab->meta->n_devices && guid_of(fab, order, low) == guid ? order[low] : FAB_NONE;
}

/* "fab://NODE::SYSTEM". Several ports of one HCA share an id; the first is meant. */
static uint32_t by_id(const struct pmixfab *fab, const char *guids)
{
    uint64_t node, system;

    const char *rest = read_guid(guids, true, &node);
    if (rest == NULL || strncmp(rest, "::", 2) != 0)
        return FAB_NONE;
    rest = read_guid(rest + 2, true, &system);
    if (rest == NULL || *rest != '\0')
        return FAB_NONE;
    uint32_t index = by_guid(fab, fab->by_node, node);
    return index != FAB_NONE && fab->devices[index].system_guid == system ? index : FAB_NONE;
}

/* "ipv4://00:21:5e:c4:86:1a": the MAC of a device whose GUID is made up of it. */
static uint32_t by_mac(const struct pmixfab *fab, const char *text)
{
    uint64_t mac = 0;

    for (int i = 0; i < 12; i++) {
        if (i > 0 && i % 2 == 0 && *text++ != ':')
            return FAB_NONE;
        int digit = hex_digit(*text++);
        if (digit < 0)
            return FAB_NONE;
        mac = mac << 4 | (uint64_t)digit;
    }
    return *text == '\0' ? by_guid(fab, fab->by_node, FAB_ETHERNET_GUID | mac) : FAB_NONE;
}

static uint32_t host_named(const struct pmixfab *fab, const char *name)
{
    uint32_t low = 0, high = fab->meta->n_hosts;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = fab_natural_cmp(fab_handle_host(fab, middle), name);
        if (order == 0)
            return middle;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return FAB_NONE;
}

/* First device of a host with this name and, unless 0, this port. */
static uint32_t device_named(const struct pmixfab *fab, uint32_t host, const char *name, size_t len,
                             uint32_t port)
{
    uint32_t end = fab_handle_host_end(fab, host);

    for (uint32_t i = fab->hosts[host].first; i < end; i++) {
        const char *own = fab_handle_string(fab, fab->devices[i].name);
        if (strncmp(own, name, len) == 0 && own[len] == '\0' && (port == 0 || fab->devices[i].port == port))
            return i;
    }
    return FAB_NONE;
}

/* A port number as people write it, 1..255; 0: none. */
static uint32_t read_port(const char *text)
{
    uint32_t port = 0;

    if (*text < '1' || *text > '9')
        return 0;
    for (; *text >= '0' && *text <= '9' && port <= UINT8_MAX; text++)
        port = 10 * port + (uint32_t)(*text - '0');
    return *text == '\0' && port <= UINT8_MAX ? port : 0;
}

/* "DEVICE" or "DEVICE:PORT" of a host. A colon belongs to the device's name where there is such a device. */
static uint32_t on_host(const struct pmixfab *fab, uint32_t host, const char *what)
{
    uint32_t index = device_named(fab, host, what, strlen(what), 0);
    const char *last = strrchr(what, ':');

    if (index != FAB_NONE || last == NULL)
        return index;
    uint32_t port = read_port(last + 1);
    return port == 0 ? FAB_NONE : device_named(fab, host, what, (size_t)(last - what), port);
}

/* "HOST", "HOST:DEVICE" or "HOST:DEVICE:PORT"; names of hosts have no colon. */
static int by_name(const struct pmixfab *fab, const char *what, uint32_t *index)
{
    const char *colon = strchr(what, ':');
    uint32_t host;

    *index = FAB_NONE;
    if (colon == NULL) {
        host = host_named(fab, what);
        if (host != FAB_NONE)
            *index = fab->hosts[host].first;
        return PMIXFAB_OK;
    }
    char *name = strndup(what, (size_t)(colon - what));
    if (name == NULL)
        return PMIXFAB_ERR_NOMEM;
    host = host_named(fab, name);
    free(name);
    if (host != FAB_NONE)
        *index = on_host(fab, host, colon + 1);
    return PMIXFAB_OK;
}

/* "0x" and 16 digits: a port GUID, or a node GUID. */
static uint32_t by_bare_guid(const struct pmixfab *fab, const char *what)
{
    uint64_t guid;

    if (strncmp(what, "0x", 2) != 0)
        return FAB_NONE;
    const char *rest = read_guid(what + 2, false, &guid);
    if (rest == NULL || *rest != '\0')
        return FAB_NONE;
    uint32_t index = by_guid(fab, fab->by_port, guid);
    return index != FAB_NONE ? index : by_guid(fab, fab->by_node, guid);
}

int pmixfab_find(const struct pmixfab *fab, const char *what, uint32_t *index)
{
    uint32_t found = FAB_NONE;
    int rc = PMIXFAB_OK;

    if (fab == NULL || what == NULL || index == NULL)
        return PMIXFAB_ERR_INVAL;
    if (strncmp(what, "fab://", strlen("fab://")) == 0)
        found = by_id(fab, what + strlen("fab://"));
    else if (strncmp(what, "ipv4://", strlen("ipv4://")) == 0)
        found = by_mac(fab, what + strlen("ipv4://"));
    if (found == FAB_NONE)
        rc = by_name(fab, what, &found);
    if (rc == 0 && found == FAB_NONE)
        found = by_bare_guid(fab, what);
    if (rc == 0 && found == FAB_NONE)
        rc = PMIXFAB_ERR_NOTFOUND;
    if (rc == 0)
        *index = found;
    return rc;
}
