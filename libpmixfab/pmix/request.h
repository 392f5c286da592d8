/*
 * request.h - what a fabric request asks for: directives of a register, qualifiers of a query.
 */
#ifndef FAB_PMIX_REQUEST_H
#define FAB_PMIX_REQUEST_H

#include <pmix_common.h>
#include <stdbool.h>

#include "pmixfab.h"

/* Strings belong to the info array that was parsed. NULL and false: not asked for. */
struct fab_request {
    const char *plane, *vendor, *identifier;
    bool has_index;
    size_t index;
};

/*
 * Parse directives. PMIX_ERR_BAD_PARAM: a wrong type, an empty or missing string, one key twice with
 * different values, a required directive that is not known. Unknown directives that are not required are
 * ignored, as the standard wants it.
 */
pmix_status_t fab_request_parse(const pmix_info_t *info, size_t n, struct fab_request *out);

/* Is this the plane that was asked for? An empty request matches every plane. */
bool fab_request_matches(const struct fab_request *request, const struct pmixfab_plane *plane);
bool fab_request_empty(const struct fab_request *request);

#endif
