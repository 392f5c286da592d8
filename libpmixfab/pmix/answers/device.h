/* device.h - devices of a snapshot in the form of the standard: PMIX_FABRIC_DEVICE, pmix_geometry_t. */
#ifndef FAB_PMIX_ANSWERS_DEVICE_H
#define FAB_PMIX_ANSWERS_DEVICE_H

#include "pmix/answers/request.h"

/*
 * A pass over the devices that match a request's conditions (host, device, switch); conditions for the plane
 * are ignored.
 */
struct fab_device_walk {
    const struct pmixfab *fab;
    const struct fab_request *request;
    uint32_t next, end, on_switch;
};
void fab_device_walk(const struct pmixfab *fab, const struct fab_request *request,
                     struct fab_device_walk *out);

/* Find the next device; return false after the last. */
bool fab_device_next(struct fab_device_walk *walk, uint32_t *index);

/* Return the number of matching devices. */
uint32_t fab_device_count(const struct pmixfab *fab, const struct fab_request *request);

/*
 * Make PMIX_FABRIC_DEVICE, an array of pmix_info_t. The first element is the PMIX_DEVICE_ID. Unknown
 * attributes are left out, for example driver, firmware, MTU and place on the bus of a device that only the
 * subnet sees. The bus type is required, so an unknown one is "unknown". PMIXFAB_KEY_SEEN names the sources.
 */
pmix_status_t fab_device_value(const struct pmixfab *fab, uint32_t index, pmix_value_t *value);

/* As above, with only the attributes that the standard requires. */
pmix_status_t fab_device_brief(const struct pmixfab *fab, uint32_t index, pmix_value_t *value);

/*
 * Make one attribute of a device, PMIX_FABRIC_SWITCH included (device_attributes.c). PMIX_ERR_NOT_FOUND: the
 * device does not have it.
 */
pmix_status_t fab_device_attribute(const struct pmixfab *fab, uint32_t index, const char *key,
                                   pmix_value_t *value);

/* Return whether fab_device_attribute() may have a value for this key. */
bool fab_device_knows(const char *key);

/* Fill one zeroed pmix_geometry_t: both views, or the requested one (0: both). */
pmix_status_t fab_device_geometry(const struct pmixfab *fab, uint32_t index, enum pmixfab_view view,
                                  pmix_geometry_t *out);

/* Append the matching devices to an array of pmix_info_t, each as PMIX_FABRIC_DEVICE, from element *at on. */
pmix_status_t fab_devices_fill(const struct pmixfab *fab, const struct fab_request *request,
                               pmix_data_array_t *array, size_t *at);

/* Make PMIX_FABRIC_DEVICES: all matching devices of one plane. */
pmix_status_t fab_devices_value(const struct pmixfab *fab, const struct fab_request *request,
                                pmix_value_t *value);

#endif
