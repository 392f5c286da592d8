/* identity.c - identities of the devices of a snapshot, and the device, host or switch that a text names. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "topo/base/natural.h"
#include "topo/base/search.h"
#include "topo/base/text.h"
#include "topo/model/host_name.h"
#include "topo/snapshot/reader.h"

/*
 * Read 16 hexadecimal digits, with a colon after each four if `colons`. Return the text after them; NULL: not
 * a GUID.
 */
static const char *identity_read_guid(const char *text, bool colons, uint64_t *guid)
{
    *guid = 0;
    for (int i = 0; i < 16; i++) {
        if (colons && i > 0 && i % 4 == 0 && *text++ != ':')
            return NULL;
        int digit = fab_hex_digit(*text++);
        if (digit < 0)
            return NULL;
        *guid = *guid << 4 | (uint64_t)digit;
    }
    return text;
}

static uint64_t identity_guid(const struct pmixfab *fab, const uint32_t *order, uint32_t place)
{
    const struct snap_device *device = &fab->devices[order[place]];
    return order == fab->by_node ? device->node_guid : device->port_guid;
}

/* Return the position of the first device with this GUID or a higher one in one of the two orders. */
static uint32_t place_of(const struct pmixfab *fab, const uint32_t *order, uint64_t guid)
{
    return FAB_LOWER_BOUND(0, fab->meta->n_devices, i, identity_guid(fab, order, i) < guid);
}

/* Return the first device (lowest index) with this GUID in one of the two orders; FAB_NONE. */
static uint32_t identity_find_guid(const struct pmixfab *fab, const uint32_t *order, uint64_t guid)
{
    uint32_t place = place_of(fab, order, guid);
    return place < fab->meta->n_devices && identity_guid(fab, order, place) == guid ? order[place] : FAB_NONE;
}

uint32_t fab_reader_port(const struct pmixfab *fab, uint64_t guid)
{
    return identity_find_guid(fab, fab->by_port, guid);
}

/* Read a hardware address in the form of the PMIx library: n bytes, a colon before each but the first. */
static bool read_address(const char *text, uint8_t *bytes, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        if (i > 0 && *text++ != ':')
            return false;
        int high = fab_hex_digit(text[0]), low = high < 0 ? -1 : fab_hex_digit(text[1]);
        if (low < 0)
            return false;
        bytes[i] = (uint8_t)(high << 4 | low);
        text += 2;
    }
    return *text == '\0';
}

/* Return the last n of some bytes as a number. */
static uint64_t number_at(const uint8_t *bytes, unsigned n)
{
    uint64_t number = 0;
    for (unsigned i = 0; i < n; i++)
        number = number << 8 | bytes[i];
    return number;
}

/* Return the MAC of "ipv4://00:21:5e:c4:86:1a"; 0: another text. */
static uint64_t identity_mac(const char *what)
{
    uint8_t bytes[6];
    return strncmp(what, "ipv4://", 7) == 0 && read_address(what + 7, bytes, 6) ? number_at(bytes, 6) : 0;
}

/*
 * Return the port GUID of "ipv6://80:00:10:86:fe:80:...", the address of an interface of IP over InfiniBand.
 * The port GUID is the last half of the GID. 0: another text.
 */
static uint64_t identity_ipoib_port(const char *what)
{
    uint8_t bytes[20];
    return strncmp(what, "ipv6://", 7) == 0 && read_address(what + 7, bytes, 20) ? number_at(bytes + 12, 8)
                                                                                 : 0;
}

/* ---- reported values of devices --------------------------------------------------------------------- */

/* Return the chosen fact of a kind; NULL. */
static const struct snap_fact *fact_of(const struct pmixfab *fab, uint32_t index, enum fab_fact kind)
{
    if (fab->fact_at == NULL)
        return NULL;
    for (uint32_t f = fab->fact_at[index]; f < fab->fact_at[index + 1] && fab->facts[f].kind <= kind; f++)
        if (fab->facts[f].kind == kind)
            return &fab->facts[f];
    return NULL;
}

/* Return the GUID or MAC of a fact; 0: none. */
static uint64_t identity_fact_number(const struct pmixfab *fab, const struct snap_fact *fact)
{
    uint64_t number = 0;
    if (fact == NULL)
        return 0;
    const char *text = fab_reader_string(fab, fact->text);
    for (text += strncmp(text, "0x", 2) == 0 ? 2 : 0; *text != '\0'; text++)
        if (*text != ':')
            number = number << 4 | (uint64_t)(fab_hex_digit(*text) & 15);
    return number;
}

/*
 * Return the identity of a device. It is the node GUID with the system image GUID, and the MAC or the value
 * in its place. A device without a node GUID has 0.
 */
static void identity_own(const struct pmixfab *fab, uint32_t index, uint64_t *node, uint64_t *system,
                         uint64_t *mac)
{
    const struct snap_device *device = &fab->devices[index];
    *node = device->node_guid;
    *system = device->system_guid;
    *mac = 0;
    if (!FAB_GUID_IS_MADE_UP(device->node_guid))
        return;
    *node = identity_fact_number(fab, fact_of(fab, index, FAB_FACT_NODE_GUID));
    uint64_t said = identity_fact_number(fab, fact_of(fab, index, FAB_FACT_SYSTEM_GUID));
    *system = said != 0 ? said : *node;
    *mac = identity_fact_number(fab, fact_of(fab, index, FAB_FACT_MAC));
    if (*mac == 0)
        *mac = device->node_guid & ~FAB_ETHERNET_GUID;
}

/* Of two matching devices take the one that goes by the value, else the one with the lower index. */
static void take_better(const struct pmixfab *fab, uint32_t index, enum fab_fact kind, uint32_t *found)
{
    const struct snap_fact *own = fact_of(fab, index, kind);
    if (*found != FAB_NONE) {
        const struct snap_fact *other = fact_of(fab, *found, kind);
        bool yields = own != NULL && (own->flags & FAB_DETAIL_OUTRANKED) != 0;
        bool other_yields = other != NULL && (other->flags & FAB_DETAIL_OUTRANKED) != 0;
        if (yields != other_yields ? yields : *found < index)
            return;
    }
    *found = index;
}

/*
 * Find "fab://NODE::SYSTEM". Several ports of one HCA share an id; the first is meant. Devices with a
 * generated GUID are matched by the values that they report.
 */
static uint32_t identity_find_id(const struct pmixfab *fab, const char *guids)
{
    uint64_t node, system, own, own_system, mac;
    uint32_t found = FAB_NONE;

    const char *rest = identity_read_guid(guids, true, &node);
    if (rest == NULL || strncmp(rest, "::", 2) != 0)
        return FAB_NONE;
    rest = identity_read_guid(rest + 2, true, &system);
    if (rest == NULL || *rest != '\0' || node == 0)
        return FAB_NONE;
    uint32_t index = identity_find_guid(fab, fab->by_node, node);
    if (index != FAB_NONE && fab->devices[index].system_guid == system)
        return index;
    for (uint32_t i = place_of(fab, fab->by_node, FAB_ETHERNET_GUID); i < fab->meta->n_devices; i++) {
        identity_own(fab, fab->by_node[i], &own, &own_system, &mac);
        if (own == node && own_system == system)
            take_better(fab, fab->by_node[i], FAB_FACT_NODE_GUID, &found);
    }
    return found;
}

/* Find the device of a MAC: its GUID is made of it, or its host reports it for its interface. */
static uint32_t with_mac(const struct pmixfab *fab, uint64_t mac)
{
    uint32_t found = identity_find_guid(fab, fab->by_node, FAB_ETHERNET_GUID | mac);
    for (uint32_t i = 0; found == FAB_NONE && fab->fact_at != NULL && i < fab->meta->n_devices; i++)
        if (identity_fact_number(fab, fact_of(fab, i, FAB_FACT_MAC)) == mac)
            take_better(fab, i, FAB_FACT_MAC, &found);
    return found;
}
/* Find the device of a port GUID: it has it, or reports it. */
static uint32_t with_port(const struct pmixfab *fab, uint64_t guid)
{
    uint32_t found = identity_find_guid(fab, fab->by_port, guid);
    for (uint32_t i = place_of(fab, fab->by_port, FAB_ETHERNET_GUID);
         found == FAB_NONE && i < fab->meta->n_devices; i++)
        if (identity_fact_number(fab, fact_of(fab, fab->by_port[i], FAB_FACT_PORT_GUID)) == guid)
            take_better(fab, fab->by_port[i], FAB_FACT_PORT_GUID, &found);
    return found;
}

/* Write a GUID in the form of sysfs, hwloc and the PMIx library: "0002:c903:00a5:0d10", 19 characters. */
static char *write_guid(char *to, uint64_t guid)
{
    static const char digits[] = "0123456789abcdef";

    for (int shift = 60; shift >= 0; shift -= 4) {
        *to++ = digits[guid >> shift & 15];
        if (shift % 16 == 0 && shift > 0)
            *to++ = ':';
    }
    return to;
}

/* Write a MAC in the form of the kernel, hwloc and the PMIx library: "00:21:5e:c4:86:1a", 17 characters. */
static void write_mac(char *to, uint64_t mac)
{
    snprintf(to, sizeof("00:21:5e:c4:86:1a"), "%02x:%02x:%02x:%02x:%02x:%02x", (unsigned)(mac >> 40 & 255),
             (unsigned)(mac >> 32 & 255), (unsigned)(mac >> 24 & 255), (unsigned)(mac >> 16 & 255),
             (unsigned)(mac >> 8 & 255), (unsigned)(mac & 255));
}

void fab_reader_write_id(const struct pmixfab *fab, uint32_t index, char *to)
{
    uint64_t node, system, mac;
    identity_own(fab, index, &node, &system, &mac);
    if (node == 0) {
        write_mac(stpcpy(to, "ipv4://"), mac);
        return;
    }
    char *end = write_guid(stpcpy(to, "fab://"), node);
    *end++ = ':';
    *end++ = ':';
    *write_guid(end, system) = '\0';
}

/* ---- ids of a host and a name ------------------------------------------------------------------------ */

/* Return the first device of a host with this name and, unless 0, this port. */
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

/*
 * From PMIx 7 on a device without a GUID or address of its own has an id of its host and its name:
 * "fab://HOST::NAME", "fab://NODE::SYSTEM::HOST::NAME" with the GUIDs 0, "net://HOST::NAME". Return the name,
 * and write the host's; NULL: another id.
 */
static const char *identity_named(const char *id, char host[FAB_HOST_MAX + 1])
{
    const bool fabric = strncmp(id, "fab://", 6) == 0;
    uint64_t guid;
    if (!fabric && strncmp(id, "net://", 6) != 0)
        return NULL;
    const char *at = id + 6, *rest = fabric ? identity_read_guid(at, true, &guid) : NULL;
    if (rest != NULL && strncmp(rest, "::", 2) == 0 &&
        (rest = identity_read_guid(rest + 2, true, &guid)) != NULL) {
        if (strncmp(rest, "::", 2) != 0)
            return NULL; /* the usual one */
        at = rest + 2;
    }
    const char *end = strstr(at, "::");
    if (end == NULL || end == at || end[2] == '\0' || end - at > FAB_HOST_MAX)
        return NULL;
    memcpy(host, at, (size_t)(end - at));
    host[end - at] = '\0';
    return end + 2;
}

/* Find the host that a name means; FAB_NONE: none, or several. */
static uint32_t identity_host(const struct pmixfab *fab, const char *name)
{
    struct fab_host_choice choice = {NULL};
    uint32_t found = FAB_NONE;
    for (uint32_t h = 0; h < fab->meta->n_hosts; h++) {
        const char *before = choice.host;
        fab_choose_host(&choice, name, fab_reader_host(fab, h));
        if (choice.host != before)
            found = h;
    }
    return choice.several ? FAB_NONE : found;
}

/* Return whether a device goes by this name on its host: its own, or that of its network interface. */
static bool identity_goes_by(const struct pmixfab *fab, uint32_t index, const char *name)
{
    const struct snap_fact *interface = fact_of(fab, index, FAB_FACT_INTERFACE);
    return strcmp(fab_reader_string(fab, fab->devices[index].name), name) == 0 ||
           (interface != NULL && strcmp(fab_reader_string(fab, interface->text), name) == 0);
}

/* Find the device of such an id; FAB_NONE. */
static uint32_t identity_find_named(const struct pmixfab *fab, const char *id)
{
    char host_name[FAB_HOST_MAX + 1];
    const char *name = identity_named(id, host_name);
    const uint32_t host = name == NULL ? FAB_NONE : identity_host(fab, host_name);
    if (host == FAB_NONE)
        return FAB_NONE;
    uint32_t found = device_named(fab, host, name, strlen(name), 0);
    for (uint32_t i = fab->hosts[host].first; found == FAB_NONE && i < fab_reader_host_end(fab, host); i++)
        if (identity_goes_by(fab, i, name))
            found = i;
    return found;
}

bool fab_reader_has_id(const struct pmixfab *fab, uint32_t index, const char *id)
{
    struct pmixfab_device own; /* only its id is used */
    uint64_t mac = identity_mac(id), port = identity_ipoib_port(id);
    char host[FAB_HOST_MAX + 1];
    if (index >= fab->meta->n_devices)
        return false;
    const char *name = identity_named(id, host);
    if (name != NULL) /* the hosts are searched for a device of this name only */
        return identity_goes_by(fab, index, name) && identity_host(fab, host) == fab->costs.host[index];
    if (mac != 0 && identity_fact_number(fab, fact_of(fab, index, FAB_FACT_MAC)) == mac)
        return true;
    if (port != 0 && (fab->devices[index].port_guid == port ||
                      identity_fact_number(fab, fact_of(fab, index, FAB_FACT_PORT_GUID)) == port))
        return true;
    fab_reader_write_id(fab, index, own.id);
    return strncmp(own.id, id, strlen("fab://")) == 0 && strcasecmp(own.id, id) == 0;
}

uint64_t fab_reader_said(const struct pmixfab *fab, uint32_t index, enum fab_fact kind, uint64_t *node)
{
    *node = 0;
    if (kind == FAB_FACT_SYSTEM_GUID && !FAB_GUID_IS_MADE_UP(fab->devices[index].node_guid))
        return 0;
    const struct snap_fact *fact = fact_of(fab, index, kind);
    const struct snap_fact *claim = kind == FAB_FACT_MAC ? fact : fact_of(fab, index, FAB_FACT_NODE_GUID);
    if (claim == NULL || (claim->flags & FAB_DETAIL_OUTRANKED) != 0)
        return 0;
    if (kind == FAB_FACT_SYSTEM_GUID)
        *node = identity_fact_number(fab, claim);
    return identity_fact_number(fab, fact);
}

const char *fab_reader_holder(const struct pmixfab *fab, enum fab_fact kind, uint64_t value, uint64_t node)
{
    const bool id = kind == FAB_FACT_SYSTEM_GUID;
    uint32_t found =
        identity_find_guid(fab, kind == FAB_FACT_PORT_GUID ? fab->by_port : fab->by_node, id ? node : value);
    if (found != FAB_NONE && id && fab->devices[found].system_guid != value)
        found = FAB_NONE;
    return found == FAB_NONE ? NULL : fab_reader_host(fab, fab->costs.host[found]);
}

bool fab_reader_disowned(const struct pmixfab *fab, const char *host, uint64_t guid)
{
    for (uint32_t h = 0; h < fab->meta->n_hosts; h++) {
        if (!fab_same_host(fab_reader_host(fab, h), host))
            continue;
        for (uint32_t d = fab->hosts[h].first; d < fab_reader_host_end(fab, h); d++) {
            const struct snap_fact *claim = fact_of(fab, d, FAB_FACT_NODE_GUID);
            if (claim != NULL && (claim->flags & FAB_DETAIL_OUTRANKED) != 0 &&
                identity_fact_number(fab, claim) == guid)
                return true;
        }
    }
    return false;
}

/* ---- names in a text --------------------------------------------------------------------------------- */

/* Find the device of an id ("fab://NODE::SYSTEM", or one of fab_reader_has_id()); FAB_NONE. */
static uint32_t find_by_id(const struct pmixfab *fab, const char *what)
{
    if (strncmp(what, "fab://", strlen("fab://")) == 0) {
        const uint32_t found = identity_find_id(fab, what + strlen("fab://"));
        return found != FAB_NONE ? found : identity_find_named(fab, what);
    }
    if (strncmp(what, "net://", strlen("net://")) == 0)
        return identity_find_named(fab, what);
    if (identity_mac(what) != 0)
        return with_mac(fab, identity_mac(what));
    if (identity_ipoib_port(what) != 0)
        return with_port(fab, identity_ipoib_port(what));
    return FAB_NONE;
}

/* Read "0x" and 16 digits. */
static bool read_guid(const char *what, uint64_t *guid)
{
    const char *rest = strncmp(what, "0x", 2) == 0 ? identity_read_guid(what + 2, false, guid) : NULL;
    return rest != NULL && *rest == '\0';
}

/* Find a device by such a text: a port GUID, or a node GUID. */
static uint32_t find_by_guid(const struct pmixfab *fab, const char *what)
{
    uint64_t guid;

    if (!read_guid(what, &guid))
        return FAB_NONE;
    uint32_t index = identity_find_guid(fab, fab->by_port, guid);
    return index != FAB_NONE ? index : identity_find_guid(fab, fab->by_node, guid);
}

static uint32_t host_named(const struct pmixfab *fab, const char *name)
{
    uint32_t at =
        FAB_LOWER_BOUND(0, fab->meta->n_hosts, i, fab_natural_cmp(fab_reader_host(fab, i), name) < 0);
    return at < fab->meta->n_hosts && fab_natural_cmp(fab_reader_host(fab, at), name) == 0 ? at : FAB_NONE;
}

/* Return a decimal port number, 1..255; 0: another text. */
static uint32_t read_port(const char *text)
{
    uint32_t port = 0;

    if (*text < '1' || *text > '9')
        return 0;
    for (; *text >= '0' && *text <= '9' && port <= UINT8_MAX; text++)
        port = 10 * port + (uint32_t)(*text - '0');
    return *text == '\0' && port <= UINT8_MAX ? port : 0;
}

/*
 * Find "DEVICE" or "DEVICE:PORT" of a host. A colon belongs to the device's name if there is such a device.
 */
static uint32_t on_host(const struct pmixfab *fab, uint32_t host, const char *what)
{
    uint32_t index = device_named(fab, host, what, strlen(what), 0);
    const char *last = strrchr(what, ':');

    if (index != FAB_NONE || last == NULL)
        return index;
    uint32_t port = read_port(last + 1);
    return port == 0 ? FAB_NONE : device_named(fab, host, what, (size_t)(last - what), port);
}

/* Find "HOST", "HOST:DEVICE" or "HOST:DEVICE:PORT"; names of hosts have no colon. */
static int find_by_name(const struct pmixfab *fab, const char *what, uint32_t *index)
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
    if (fab == NULL || what == NULL || index == NULL)
        return PMIXFAB_ERR_INVAL;
    uint32_t found = find_by_id(fab, what);
    if (found == FAB_NONE && find_by_name(fab, what, &found) != PMIXFAB_OK)
        return PMIXFAB_ERR_NOMEM;
    if (found == FAB_NONE)
        found = find_by_guid(fab, what);
    if (found == FAB_NONE)
        return PMIXFAB_ERR_NOTFOUND;
    *index = found;
    return PMIXFAB_OK;
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
    uint32_t found = read_guid(what, &guid) ? switch_with_guid(fab, guid) : FAB_NONE;
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
