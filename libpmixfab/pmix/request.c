#include "pmix/request.h"

#include <string.h>

static pmix_status_t take_string(const pmix_value_t *value, const char **out)
{
    if (value->type != PMIX_STRING || value->data.string == NULL || value->data.string[0] == '\0')
        return PMIX_ERR_BAD_PARAM;
    if (*out != NULL && strcmp(*out, value->data.string) != 0)
        return PMIX_ERR_BAD_PARAM;
    *out = value->data.string;
    return PMIX_SUCCESS;
}

/* The standard's type is size_t; callers in other languages hand over other integers. */
static pmix_status_t take_index(const pmix_value_t *value, struct fab_request *out)
{
    size_t index;
    switch (value->type) {
    case PMIX_SIZE:
        index = value->data.size;
        break;
    case PMIX_UINT64:
        index = value->data.uint64;
        break;
    case PMIX_UINT32:
        index = value->data.uint32;
        break;
    case PMIX_UINT:
        index = value->data.uint;
        break;
    case PMIX_INT:
        if (value->data.integer < 0)
            return PMIX_ERR_BAD_PARAM;
        index = (size_t)value->data.integer;
        break;
    default:
        return PMIX_ERR_BAD_PARAM;
    }
    if (out->has_index && out->index != index)
        return PMIX_ERR_BAD_PARAM;
    out->has_index = true;
    out->index = index;
    return PMIX_SUCCESS;
}

pmix_status_t fab_request_parse(const pmix_info_t *info, size_t n, struct fab_request *out)
{
    *out = (struct fab_request){0};
    if (info == NULL && n > 0)
        return PMIX_ERR_BAD_PARAM;
    for (size_t i = 0; i < n; i++) {
        pmix_status_t rc = PMIX_SUCCESS;
        if (PMIX_CHECK_KEY(&info[i], PMIX_FABRIC_PLANE))
            rc = take_string(&info[i].value, &out->plane);
        else if (PMIX_CHECK_KEY(&info[i], PMIX_FABRIC_VENDOR))
            rc = take_string(&info[i].value, &out->vendor);
        else if (PMIX_CHECK_KEY(&info[i], PMIX_FABRIC_IDENTIFIER))
            rc = take_string(&info[i].value, &out->identifier);
        else if (PMIX_CHECK_KEY(&info[i], PMIX_FABRIC_INDEX))
            rc = take_index(&info[i].value, out);
        else if (PMIX_INFO_IS_REQUIRED(&info[i]))
            rc = PMIX_ERR_BAD_PARAM;
        if (rc != PMIX_SUCCESS)
            return rc;
    }
    return PMIX_SUCCESS;
}

bool fab_request_matches(const struct fab_request *request, const struct pmixfab_plane *plane)
{
    return (request->plane == NULL || strcmp(request->plane, plane->name) == 0) &&
           (request->vendor == NULL || strcmp(request->vendor, plane->vendor) == 0) &&
           (request->identifier == NULL || strcmp(request->identifier, plane->identifier) == 0) &&
           (!request->has_index || request->index == plane->index);
}

bool fab_request_empty(const struct fab_request *request)
{
    return request->plane == NULL && request->vendor == NULL && request->identifier == NULL &&
           !request->has_index;
}
