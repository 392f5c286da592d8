/*
 * request.h - what a fabric request asks for: directives of a register, qualifiers of a query.
 */
#ifndef FAB_PMIX_VALUES_REQUEST_H
#define FAB_PMIX_VALUES_REQUEST_H

#include <pmix_common.h>
#include <stdbool.h>

#include "pmixfab.h"

/*
 * The view of dims, shape and coordinates: the standard says that a caller may ask for one and names no
 * attribute to do it with. A pmix_coord_view_t (PMIX_UINT8), another integer of that value, or "logical" or
 * "physical".
 */
#define FAB_KEY_VIEW "pmixfab.view"

/* Keys that the standard and the stock library's header spell differently. */
#define FAB_KEY_COORDINATES "pmix.fab.coords" /* PMIX_FABRIC_COORDINATES in the standard */

/* Strings belong to the info array that was parsed. NULL and false: not asked for. */
struct fab_request {
    /* which plane */
    const char *plane, *vendor, *identifier;
    bool has_index, has_nodeid, has_device_index;
    size_t index;
    const char *switch_id; /* the plane with this switch; and of devices, those on it */
    /* which devices of it */
    const char *hostname, *device_id, *device_name;
    size_t nodeid; /* number of the host in the plane: in natural order of the names, from 0 */
    size_t device_index;
    /* what of them */
    enum pmixfab_view view; /* 0: the default, which is logical; of coordinates, both */
    bool devices;           /* a register's answer holds the devices, too */
};

/*
 * Parse directives. PMIX_ERR_BAD_PARAM: a wrong type, an empty or missing string, one key twice with
 * different values, a required directive that is not known. Unknown directives that are not required are
 * ignored, as the standard wants it.
 */
pmix_status_t fab_request_parse(const pmix_info_t *info, size_t n, struct fab_request *out);

/* Is this the plane that was asked for? An empty request matches every plane. The switch is not looked at. */
bool fab_request_matches(const struct fab_request *request, const struct pmixfab_plane *plane);

/* As above, and the plane has the switch that was asked for. */
bool fab_request_selects(const struct fab_request *request, const struct pmixfab *fab);

/* No plane is named, in no way. */
bool fab_request_empty(const struct fab_request *request);

/* One device is named: by id, by its host's name or number and its own, or by its index. */
bool fab_request_names_device(const struct fab_request *request);

/* The index of a plane's switch by its id; false where it has none of that id. */
bool fab_request_switch(const struct pmixfab *fab, const char *id, uint32_t *index);

#endif
