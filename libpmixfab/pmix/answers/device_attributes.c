/* device_attributes.c - the attributes of one device. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pmix/answers/device.h"
#include "pmix/answers/value.h"
#include "topo/snapshot/reader.h"

#define ETHERNET_ID "ipv4://" /* before the MAC, in the id of a device that is not RDMA */

struct known {
    const struct pmixfab *fab;
    struct pmixfab_plane plane;
    struct pmixfab_device device;
};

/* ---- from the snapshot's members ----------------------------------------------------------------------- */

static pmix_status_t get_id(const struct known *known, pmix_value_t *value)
{
    return fab_value_string(value, known->device.id);
}

static pmix_status_t get_nodeid(const struct known *known, pmix_value_t *value)
{
    return fab_value_number(value, PMIX_UINT32,
                            fab_reader_number(known->fab->host_numbers, known->device.host_index));
}

static pmix_status_t get_index(const struct known *known, pmix_value_t *value)
{
    return fab_value_number(value, PMIX_UINT32,
                            fab_reader_number(known->fab->device_numbers, known->device.index));
}

static pmix_status_t attribute_coordinates(const struct known *known, pmix_value_t *value)
{
    value->data.geometry = calloc(1, sizeof(*value->data.geometry));
    if (value->data.geometry == NULL)
        return PMIX_ERR_NOMEM;
    value->type = PMIX_GEOMETRY;
    pmix_status_t rc = fab_device_geometry(known->fab, known->device.index, 0, value->data.geometry);
    if (rc != PMIX_SUCCESS)
        fab_value_free(value);
    return rc;
}

static pmix_status_t get_switch(const struct known *known, pmix_value_t *value)
{
    struct pmixfab_switch one;
    if (pmixfab_switch(known->fab, known->device.switch_index, &one) != PMIXFAB_OK)
        return PMIX_ERR_NOT_FOUND; /* cabled to another device, or without cable */
    return fab_value_string(value, one.id);
}

static pmix_status_t get_seen(const struct known *known, pmix_value_t *value)
{
    static const char *const words[] = {NULL, "subnet",  "node", "subnet,node",
                                        NULL, "missing", NULL,   "missing,node"};
    uint32_t seen = known->device.seen & 7;
    return words[seen] == NULL ? PMIX_ERR_NOT_FOUND : fab_value_string(value, words[seen]);
}

/* ---- from facts -------------------------------------------------------------------------------------- */

static const char *attribute_fact(const struct known *known, const char *kind)
{
    return pmixfab_fact_text(known->fab, known->device.index, kind);
}

static pmix_status_t text_value(const char *text, pmix_value_t *value)
{
    return text == NULL || text[0] == '\0' ? PMIX_ERR_NOT_FOUND : fab_value_string(value, text);
}

/* Make a decimal number, times `unit`. Another text, 0, or more than a size_t counts as unknown. */
static pmix_status_t number_value(const char *text, size_t unit, pmix_value_t *value)
{
    char *end;
    if (text == NULL || text[0] < '0' || text[0] > '9')
        return PMIX_ERR_NOT_FOUND;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (errno != 0 || *end != '\0' || number == 0 || number > SIZE_MAX / unit)
        return PMIX_ERR_NOT_FOUND;
    return fab_value_number(value, PMIX_SIZE, number * unit);
}

/* The standard requires it. The plane's vendor is that of the sweep. */
static pmix_status_t get_vendor(const struct known *known, pmix_value_t *value)
{
    const char *vendor = attribute_fact(known, "vendor");
    if (vendor == NULL && (known->device.seen & PMIXFAB_SEEN_SUBNET) != 0)
        vendor = known->plane.vendor;
    return fab_value_string(value, vendor != NULL && vendor[0] != '\0' ? vendor : "unknown");
}

/* The vendor's number of the product; if it is unknown, the number of the vendor. */
static pmix_status_t get_vendor_id(const struct known *known, pmix_value_t *value)
{
    const char *part = attribute_fact(known, "part-id");
    return text_value(part != NULL ? part : attribute_fact(known, "vendor-id"), value);
}

/* The standard requires it. A device with a PCI address is on that bus, whatever the source. */
static pmix_status_t get_bus(const struct known *known, pmix_value_t *value)
{
    const char *bus = attribute_fact(known, "bus");
    if (bus == NULL && attribute_fact(known, "pci") != NULL)
        bus = "PCI";
    return fab_value_string(value, bus != NULL ? bus : "unknown");
}

static pmix_status_t get_mtu(const struct known *known, pmix_value_t *value)
{
    return number_value(attribute_fact(known, "mtu"), 1, value);
}

static pmix_status_t get_speed(const struct known *known, pmix_value_t *value)
{
    if (known->device.mbps != 0)
        return fab_value_number(value, PMIX_SIZE, known->device.mbps * 1000000u);
    return number_value(attribute_fact(known, "speed"), 1000000u, value);
}

static pmix_status_t get_state(const struct known *known, pmix_value_t *value)
{
    const char *said = attribute_fact(known, "state");
    uint32_t state = known->device.state;
    if (state == PMIXFAB_STATE_UNKNOWN && said != NULL)
        state = strcmp(said, "up") == 0     ? PMIXFAB_STATE_UP
                : strcmp(said, "down") == 0 ? PMIXFAB_STATE_DOWN
                                            : PMIXFAB_STATE_UNKNOWN;
    value->type = PMIX_LINK_STATE;
    value->data.linkstate = (pmix_link_state_t)state;
    return PMIX_SUCCESS;
}

/* A sweep sees InfiniBand only; the type of an RDMA device known from its host comes from the host. */
static const char *type_of(const struct known *known)
{
    const char *type = attribute_fact(known, "type");
    if (type != NULL)
        return type;
    if (strncmp(known->device.id, ETHERNET_ID, strlen(ETHERNET_ID)) == 0)
        return "Ethernet";
    return (known->device.seen & PMIXFAB_SEEN_SUBNET) != 0 ? "InfiniBand" : NULL;
}

static pmix_status_t get_type(const struct known *known, pmix_value_t *value)
{
    return text_value(type_of(known), value);
}

/* InfiniBand: the port's GUID. Ethernet: the MAC. */
static pmix_status_t get_address(const struct known *known, pmix_value_t *value)
{
    const char *type = type_of(known), *mac = attribute_fact(known, "mac"),
               *guid = attribute_fact(known, "port-guid");
    char text[32];
    if (type != NULL && strcmp(type, "Ethernet") == 0) {
        if (mac == NULL && strncmp(known->device.id, ETHERNET_ID, strlen(ETHERNET_ID)) == 0)
            mac = known->device.id + strlen(ETHERNET_ID);
        return text_value(mac, value);
    }
    if (guid != NULL) /* also for a port that goes by another GUID here */
        return text_value(guid, value);
    if (known->device.port_guid == 0)
        return text_value(mac, value);
    snprintf(text, sizeof(text), "0x%016llx", (unsigned long long)known->device.port_guid);
    return fab_value_string(value, text);
}

/*
 * ---- all attributes --------------------------------------------------------------------------------------
 */

/* A field of struct known, the text of a fact, or a value that get() makes. */
#define FIELD(type, field)                                                                                   \
    FAB_FIELD_TYPE(type, ((struct known *)NULL)->field), offsetof(struct known, field), NULL, NULL
#define FACT(kind) PMIX_STRING, 0, (kind), NULL
#define MADE(get)  PMIX_UNDEF, 0, NULL, (get)
static const struct attribute {
    const char *key;
    pmix_data_type_t type;
    size_t offset;
    const char *fact;
    pmix_status_t (*get)(const struct known *known, pmix_value_t *value);
} attributes[] = {
    {PMIX_DEVICE_ID, MADE(get_id)}, /* the standard: the first element */
    {PMIX_HOSTNAME, FIELD(PMIX_STRING, device.host)},
    {PMIX_NODEID, MADE(get_nodeid)}, /* as in a qualifier: within this plane */
    {PMIX_FABRIC_DEVICE_NAME, FIELD(PMIX_STRING, device.name)},
    {PMIX_FABRIC_DEVICE_VENDOR, MADE(get_vendor)},
    {PMIX_FABRIC_DEVICE_VENDORID, MADE(get_vendor_id)},
    {PMIX_FABRIC_DEVICE_BUS_TYPE, MADE(get_bus)},
    {PMIX_FABRIC_DEVICE_PCI_DEVID, FACT("pci")},
    {PMIX_FABRIC_DEVICE_DRIVER, FACT("driver")},
    {PMIX_FABRIC_DEVICE_FIRMWARE, FACT("firmware")},
    {PMIX_FABRIC_DEVICE_INDEX, MADE(get_index)},
    {PMIX_FABRIC_DEVICE_ADDRESS, MADE(get_address)},
    {PMIX_FABRIC_DEVICE_COORDINATES, MADE(attribute_coordinates)},
    {PMIX_FABRIC_DEVICE_MTU, MADE(get_mtu)},
    {PMIX_FABRIC_DEVICE_SPEED, MADE(get_speed)},
    {PMIX_FABRIC_DEVICE_STATE, MADE(get_state)},
    {PMIX_FABRIC_DEVICE_TYPE, MADE(get_type)},
    {PMIX_FABRIC_PLANE, FIELD(PMIX_STRING, plane.name)}, /* the plane that the index belongs to */
    {PMIX_FABRIC_SWITCH, MADE(get_switch)},
    {PMIXFAB_KEY_SEEN, MADE(get_seen)},
};
#define N_ATTRIBUTES (sizeof(attributes) / sizeof(attributes[0]))

static pmix_status_t get_attribute(const struct attribute *attribute, const struct known *known,
                                   pmix_value_t *value)
{
    if (attribute->get != NULL)
        return attribute->get(known, value);
    if (attribute->fact != NULL)
        return text_value(attribute_fact(known, attribute->fact), value);
    return fab_value_field(value, attribute->type, (const char *)known + attribute->offset);
}

static pmix_status_t attribute_find_device(const struct pmixfab *fab, uint32_t index, struct known *known)
{
    known->fab = fab;
    return pmixfab_plane(fab, &known->plane) == PMIXFAB_OK &&
                   pmixfab_device(fab, index, &known->device) == PMIXFAB_OK
               ? PMIX_SUCCESS
               : PMIX_ERR_NOT_FOUND;
}

bool fab_device_knows(const char *key)
{
    for (size_t i = 0; i < N_ATTRIBUTES; i++)
        if (strcmp(key, attributes[i].key) == 0)
            return true;
    return false;
}

pmix_status_t fab_device_attribute(const struct pmixfab *fab, uint32_t index, const char *key,
                                   pmix_value_t *value)
{
    struct known known;
    pmix_status_t rc = attribute_find_device(fab, index, &known);
    for (size_t i = 0; rc == PMIX_SUCCESS && i < N_ATTRIBUTES; i++)
        if (strcmp(key, attributes[i].key) == 0)
            return get_attribute(&attributes[i], &known, value);
    return rc == PMIX_SUCCESS ? PMIX_ERR_NOT_FOUND : rc;
}

/* Return whether the standard requires the key in every description of a device. */
static bool attribute_is_required(const char *key)
{
    static const char *const keys[] = {PMIX_DEVICE_ID,
                                       PMIX_HOSTNAME,
                                       PMIX_FABRIC_DEVICE_NAME,
                                       PMIX_FABRIC_DEVICE_VENDOR,
                                       PMIX_FABRIC_DEVICE_BUS_TYPE,
                                       PMIX_FABRIC_DEVICE_PCI_DEVID};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (strcmp(key, keys[i]) == 0)
            return true;
    return false;
}

static pmix_status_t attribute_all(const struct pmixfab *fab, uint32_t index, bool required,
                                   pmix_value_t *value)
{
    struct known known;
    size_t n = 0;
    pmix_status_t rc = attribute_find_device(fab, index, &known);
    if (rc == PMIX_SUCCESS)
        rc = fab_value_array(value, PMIX_INFO, N_ATTRIBUTES);
    if (rc != PMIX_SUCCESS)
        return rc;
    pmix_info_t *info = value->data.darray->array;
    for (size_t i = 0; i < N_ATTRIBUTES; i++) {
        if (required && !attribute_is_required(attributes[i].key))
            continue;
        rc = get_attribute(&attributes[i], &known, &info[n].value);
        if (rc == PMIX_SUCCESS) {
            PMIX_LOAD_KEY(info[n].key, attributes[i].key);
            n++;
        } else if (rc != PMIX_ERR_NOT_FOUND) {
            fab_value_free(value);
            return rc;
        }
    }
    value->data.darray->size = n; /* the id is always there: n > 0 */
    info[n - 1].flags |= PMIX_INFO_ARRAY_END;
    return PMIX_SUCCESS;
}

pmix_status_t fab_device_value(const struct pmixfab *fab, uint32_t index, pmix_value_t *value)
{
    return attribute_all(fab, index, false, value);
}

pmix_status_t fab_device_brief(const struct pmixfab *fab, uint32_t index, pmix_value_t *value)
{
    return attribute_all(fab, index, true, value);
}
