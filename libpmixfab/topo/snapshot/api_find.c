/* api_find.c - the device, host or switch that a text names. */
#include <stdlib.h>
#include <string.h>

#include "topo/base/natural.h"
#include "topo/base/search.h"
#include "topo/snapshot/identity.h"

static uint32_t host_named(const struct pmixfab *fab, const char *name)
{
    uint32_t at =
        FAB_LOWER_BOUND(0, fab->meta->n_hosts, i, fab_natural_cmp(fab_reader_host(fab, i), name) < 0);
    return at < fab->meta->n_hosts && fab_natural_cmp(fab_reader_host(fab, at), name) == 0 ? at : FAB_NONE;
}

/* First device of a host with this name and, unless 0, this port. */
static uint32_t device_named(const struct pmixfab *fab, uint32_t host, const char *name, size_t len,
                             uint32_t port)
{
    uint32_t end = fab_reader_host_end(fab, host);

    for (uint32_t i = fab->hosts[host].first; i < end; i++) {
        const char *own = fab_reader_string(fab, fab->devices[i].name);
        if (strncmp(own, name, len) == 0 && own[len] == '\0' && (port == 0 || fab->devices[i].port == port))
            return i;
    }
    return FAB_NONE;
}

/* A port number as people write it, 1..255; 0: none. */
static uint32_t identity_read_port(const char *text)
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
    uint32_t port = identity_read_port(last + 1);
    return port == 0 ? FAB_NONE : device_named(fab, host, what, (size_t)(last - what), port);
}

/* "HOST", "HOST:DEVICE" or "HOST:DEVICE:PORT"; names of hosts have no colon. */
static int identity_find_name(const struct pmixfab *fab, const char *what, uint32_t *index)
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

int pmixfab_find(const struct pmixfab *fab, const char *what, uint32_t *index)
{
    int rc = PMIXFAB_OK;

    if (fab == NULL || what == NULL || index == NULL)
        return PMIXFAB_ERR_INVAL;
    uint32_t found = fab_reader_find_id(fab, what);
    if (found == FAB_NONE)
        rc = identity_find_name(fab, what, &found);
    if (rc == 0 && found == FAB_NONE)
        found = fab_reader_find_guid(fab, what);
    if (rc == 0 && found == FAB_NONE)
        rc = PMIXFAB_ERR_NOTFOUND;
    if (rc == 0)
        *index = found;
    return rc;
}

int pmixfab_find_host(const struct pmixfab *fab, const char *name, uint32_t *host)
{
    if (fab == NULL || name == NULL || host == NULL)
        return PMIXFAB_ERR_INVAL;
    uint32_t found = host_named(fab, name);
    if (found == FAB_NONE)
        return PMIXFAB_ERR_NOTFOUND;
    *host = found;
    return PMIXFAB_OK;
}

/* The snapshot has switches in the order of their GUIDs. */
static uint32_t switch_with_guid(const struct pmixfab *fab, uint64_t guid)
{
    const uint32_t n = fab->meta->n_switches;
    uint32_t at = FAB_LOWER_BOUND(0, n, i, fab->switches[i].guid < guid);
    return at < n && fab->switches[at].guid == guid ? at : FAB_NONE;
}

int pmixfab_find_switch(const struct pmixfab *fab, const char *what, uint32_t *index)
{
    uint64_t guid;

    if (fab == NULL || what == NULL || index == NULL)
        return PMIXFAB_ERR_INVAL;
    uint32_t found = fab_reader_read_guid(what, &guid) ? switch_with_guid(fab, guid) : FAB_NONE;
    if (found == FAB_NONE) {
        for (uint32_t i = 0; i < fab->meta->n_switches; i++) {
            if (strcmp(fab_reader_string(fab, fab->switches[i].name), what) != 0)
                continue;
            if (found != FAB_NONE)
                return PMIXFAB_ERR_CONFLICT;
            found = i;
        }
    }
    if (found == FAB_NONE)
        return PMIXFAB_ERR_NOTFOUND;
    *index = found;
    return PMIXFAB_OK;
}
