/* request.h - parse a fabric request: directives of a register, qualifiers of a query. */
#ifndef FAB_PMIX_ANSWERS_REQUEST_H
#define FAB_PMIX_ANSWERS_REQUEST_H

#include <pmix_common.h>
#include <stdbool.h>

#include "pmixfab.h"

/*
 * The view of dims, shape and coordinates. The standard lets a caller request a view but names no attribute
 * for it. The value is a pmix_coord_view_t (PMIX_UINT8), another integer of that value, or "logical" or
 * "physical".
 */
#define FAB_KEY_VIEW "pmixfab.view"

/* Keys that the standard and the PMIx library's header spell differently. */
#define FAB_KEY_COORDINATES "pmix.fab.coords" /* PMIX_FABRIC_COORDINATES in the standard */

/*
 * Conditions of required directives that not every answer supports. Each answer lists the conditions that it
 * supports. fab_request_refused() rejects the others.
 */
enum fab_request_heeds {
    FAB_HEEDS_CONDITIONS = 1, /* selection of devices */
    FAB_HEEDS_VIEW = 2,
    FAB_HEEDS_DEVICES = 4,   /* the devices in a register's answer */
    FAB_HEEDS_NODE = 8,      /* PMIX_NODE_INFO */
    FAB_HEEDS_CONTENTS = 16, /* a key that is in every register's answer: PMIX_FABRIC_GROUPS and others */
    FAB_HEEDS_MATRIX = 32,   /* PMIX_FABRIC_COST_MATRIX in a register's answer */
};

/* Strings belong to the parsed info array. NULL and false: not requested. */
struct fab_request {
    /* selection of the plane */
    const char *plane, *vendor, *identifier;
    bool has_index, has_nodeid, has_device_index;
    size_t index;
    const char *switch_id; /* the plane with this switch; and of devices, those on it */
    /* selection of devices */
    const char *hostname, *device_id, *device_name;
    size_t nodeid; /* number of the host in the plane: in natural order of the names, from 0 */
    size_t device_index;
    /* content */
    enum pmixfab_view view; /* 0: the default, which is logical; of coordinates, both */
    bool devices;           /* a register's answer includes the devices */
    bool node;              /* PMIX_NODE_INFO: of a node, of this one if none is named */
    unsigned required;      /* enum fab_request_heeds */
};

/*
 * Parse directives. PMIX_ERR_BAD_PARAM: a wrong type, an empty or missing string, one key twice with
 * different values. PMIX_ERR_NOT_SUPPORTED: a required directive that no answer supports. Unknown directives
 * that are not required are ignored, as the standard demands.
 */
pmix_status_t fab_request_parse(const pmix_info_t *info, size_t n, struct fab_request *out);

/* Return whether more is required than is supported (a sum of enum fab_request_heeds). */
bool fab_request_refused(const struct fab_request *request, unsigned heeded);

/* Read a non-negative number of any integer type. */
bool fab_request_read_number(const pmix_value_t *value, uint64_t *out);

/* Return whether this is the requested plane. An empty request matches every plane. The switch is ignored. */
bool fab_request_matches(const struct fab_request *request, const struct pmixfab_plane *plane);

/* As above, and the plane has the requested switch. */
bool fab_request_selects(const struct fab_request *request, const struct pmixfab *fab);

/* Return whether the request selects no plane. */
bool fab_request_empty(const struct fab_request *request);

/*
 * Return whether the request names one device: by id, by the name or number of its host and its own name, or
 * by index.
 */
bool fab_request_names_device(const struct fab_request *request);

/* Find the index of a plane's switch by id; return false if there is none. */
bool fab_request_switch(const struct pmixfab *fab, const char *id, uint32_t *index);

#endif
