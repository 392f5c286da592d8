/*
 * request.h - what a fabric request asks for: directives of a register, qualifiers of a query.
 */
#ifndef FAB_PMIX_ANSWERS_REQUEST_H
#define FAB_PMIX_ANSWERS_REQUEST_H

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

/*
 * What required directives ask for that not every answer can heed. Whoever answers says what it heeds, and
 * refuses the rest: fab_request_refused().
 */
enum fab_request_heeds {
    FAB_HEEDS_CONDITIONS = 1, /* which devices */
    FAB_HEEDS_VIEW = 2,
    FAB_HEEDS_DEVICES = 4,   /* the devices in a register's answer */
    FAB_HEEDS_NODE = 8,      /* PMIX_NODE_INFO */
    FAB_HEEDS_CONTENTS = 16, /* a key that every register's answer holds: PMIX_FABRIC_GROUPS and the like */
    FAB_HEEDS_MATRIX = 32,   /* PMIX_FABRIC_COST_MATRIX in a register's answer */
};

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
    bool node;              /* PMIX_NODE_INFO: of a node, of this one if none is named */
    unsigned required;      /* enum fab_request_heeds */
};

/*
 * Parse directives. PMIX_ERR_BAD_PARAM: a wrong type, an empty or missing string, one key twice with
 * different values. PMIX_ERR_NOT_SUPPORTED: a required directive that nobody heeds. Unknown directives that
 * are not required are ignored, as the standard wants it.
 */
pmix_status_t fab_request_parse(const pmix_info_t *info, size_t n, struct fab_request *out);

/* Does it require more than what is heeded (a sum of enum fab_request_heeds)? */
bool fab_request_refused(const struct fab_request *request, unsigned heeded);

/* A number that is not negative, of whatever integer type. */
bool fab_request_read_number(const pmix_value_t *value, uint64_t *out);

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
