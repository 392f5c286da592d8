/*
 * device.h - devices of a snapshot as the standard describes them: PMIX_FABRIC_DEVICE, pmix_geometry_t.
 */
#ifndef FAB_PMIX_ANSWERS_DEVICE_H
#define FAB_PMIX_ANSWERS_DEVICE_H

#include "pmix/answers/request.h"

/* A walk over the devices that a request's conditions (host, device, switch) fit; those of the plane are not
 * looked at. */
struct fab_device_walk {
    const struct pmixfab *fab;
    const struct fab_request *request;
    uint32_t next, end, on_switch;
};
void fab_device_walk(const struct pmixfab *fab, const struct fab_request *request,
                     struct fab_device_walk *out);

/* The next one; false after the last. */
bool fab_device_next(struct fab_device_walk *walk, uint32_t *index);

/* How many there are. */
uint32_t fab_device_count(const struct pmixfab *fab, const struct fab_request *request);

/*
 * PMIX_FABRIC_DEVICE: an array of pmix_info_t, first the PMIX_DEVICE_ID. What nobody tells of a device (of
 * one that only the subnet sees: driver, firmware, MTU, place on the bus) is left out, and its bus type,
 * which must not be, is "unknown". PMIXFAB_KEY_SEEN says who knows of it.
 */
pmix_status_t fab_device_value(const struct pmixfab *fab, uint32_t index, pmix_value_t *value);

/* The same with no more than what the standard requires. */
pmix_status_t fab_device_brief(const struct pmixfab *fab, uint32_t index, pmix_value_t *value);

/* One attribute of it, PMIX_FABRIC_SWITCH among them (device_attributes.c). PMIX_ERR_NOT_FOUND: none that a
 * device has. */
pmix_status_t fab_device_attribute(const struct pmixfab *fab, uint32_t index, const char *key,
                                   pmix_value_t *value);

/* Is it a key that fab_device_attribute() may have an answer to? */
bool fab_device_knows(const char *key);

/* Fill one zeroed pmix_geometry_t: both views, or the one that is asked for (0: both). */
pmix_status_t fab_device_geometry(const struct pmixfab *fab, uint32_t index, enum pmixfab_view view,
                                  pmix_geometry_t *out);

/* Append the fitting devices to an array of pmix_info_t, each a PMIX_FABRIC_DEVICE, from element *at on. */
pmix_status_t fab_devices_fill(const struct pmixfab *fab, const struct fab_request *request,
                               pmix_data_array_t *array, size_t *at);

/* PMIX_FABRIC_DEVICES: all fitting devices of one plane. */
pmix_status_t fab_devices_value(const struct pmixfab *fab, const struct fab_request *request,
                                pmix_value_t *value);

#endif
