#include "pmix/answers/request.h"

#include <string.h>
#include <strings.h>

static pmix_status_t request_read_string(const pmix_value_t *value, const char **out)
{
    if (value->type != PMIX_STRING || value->data.string == NULL || value->data.string[0] == '\0' ||
        (*out != NULL && strcmp(*out, value->data.string) != 0))
        return PMIX_ERR_BAD_PARAM;
    *out = value->data.string;
    return PMIX_SUCCESS;
}

/* The standard's types are size_t and uint32_t; callers in other languages use other integers. */
bool fab_request_read_number(const pmix_value_t *value, uint64_t *out)
{
    int64_t with_sign = 0;
    switch (value->type) {
    case PMIX_SIZE:
        *out = value->data.size;
        return true;
    case PMIX_UINT64:
        *out = value->data.uint64;
        return true;
    case PMIX_UINT32:
        *out = value->data.uint32;
        return true;
    case PMIX_UINT:
        *out = value->data.uint;
        return true;
    case PMIX_UINT8:
        *out = value->data.uint8;
        return true;
    case PMIX_INT:
        with_sign = value->data.integer;
        break;
    case PMIX_INT64:
        with_sign = value->data.int64;
        break;
    default:
        return false;
    }
    *out = (uint64_t)with_sign;
    return with_sign >= 0;
}

static pmix_status_t take_number(const pmix_value_t *value, uint64_t most, bool *has, size_t *out)
{
    uint64_t number;
    if (!fab_request_read_number(value, &number) || number > most || (*has && *out != number))
        return PMIX_ERR_BAD_PARAM;
    *has = true;
    *out = number;
    return PMIX_SUCCESS;
}

static pmix_status_t take_view(const pmix_value_t *value, struct fab_request *out)
{
    uint64_t number = 0;
    if (value->type == PMIX_STRING && value->data.string != NULL)
        number = strcmp(value->data.string, "logical") == 0    ? PMIXFAB_LOGICAL
                 : strcmp(value->data.string, "physical") == 0 ? PMIXFAB_PHYSICAL
                                                               : 0;
    else if (!fab_request_read_number(value, &number))
        return PMIX_ERR_BAD_PARAM;
    if ((number != PMIXFAB_LOGICAL && number != PMIXFAB_PHYSICAL) ||
        (out->view != 0 && out->view != (enum pmixfab_view)number))
        return PMIX_ERR_BAD_PARAM;
    out->view = (enum pmixfab_view)number;
    return PMIX_SUCCESS;
}

/* A key alone means true, as everywhere in PMIx. */
static pmix_status_t request_read_devices(const pmix_value_t *value, struct fab_request *out)
{
    if (value->type != PMIX_BOOL && value->type != PMIX_UNDEF)
        return PMIX_ERR_BAD_PARAM;
    /* read as a byte: from another language it may have any value */
    out->devices = value->type == PMIX_UNDEF || value->data.uint8 != 0;
    return PMIX_SUCCESS;
}

/* Read a bool as PMIX_INFO_TRUE() does, but accept any byte. */
static bool request_says_yes(const pmix_info_t *info)
{
    return info->value.type == PMIX_BOOL ? info->value.data.uint8 != 0 : PMIX_INFO_TRUE(info);
}

/* Unknown keys are ignored. */
static pmix_status_t request_read_info(const pmix_info_t *info, struct fab_request *out)
{
    const struct {
        const char *key;
        const char **string;
    } strings[] = {
        {PMIX_FABRIC_PLANE, &out->plane},
        {PMIX_FABRIC_VENDOR, &out->vendor},
        {PMIX_FABRIC_IDENTIFIER, &out->identifier},
        {PMIX_FABRIC_SWITCH, &out->switch_id},
        {PMIX_HOSTNAME, &out->hostname},
        {PMIX_DEVICE_ID, &out->device_id},
        {PMIX_FABRIC_DEVICE_NAME, &out->device_name},
    };
    for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++)
        if (PMIX_CHECK_KEY(info, strings[i].key))
            return request_read_string(&info->value, strings[i].string);
    if (PMIX_CHECK_KEY(info, PMIX_FABRIC_INDEX))
        return take_number(&info->value, UINT64_MAX, &out->has_index, &out->index);
    if (PMIX_CHECK_KEY(info, PMIX_NODEID))
        return take_number(&info->value, UINT32_MAX, &out->has_nodeid, &out->nodeid);
    if (PMIX_CHECK_KEY(info, PMIX_FABRIC_DEVICE_INDEX))
        return take_number(&info->value, UINT32_MAX, &out->has_device_index, &out->device_index);
    if (PMIX_CHECK_KEY(info, FAB_KEY_VIEW))
        return take_view(&info->value, out);
    if (PMIX_CHECK_KEY(info, PMIX_FABRIC_DEVICES))
        return request_read_devices(&info->value, out);
    if (PMIX_CHECK_KEY(info, PMIX_NODE_INFO))
        out->node = request_says_yes(info);
    return PMIX_SUCCESS;
}

/*
 * The directives that may be required. 0: every answer supports it, because it is made at once from the
 * present data.
 */
static const struct {
    const char *key;
    unsigned heeds;
} heeded[] = {
    {PMIX_FABRIC_PLANE, 0},
    {PMIX_FABRIC_VENDOR, 0},
    {PMIX_FABRIC_IDENTIFIER, 0},
    {PMIX_FABRIC_INDEX, 0},
    {PMIX_FABRIC_SWITCH, 0},
    {PMIX_TIMEOUT, 0},
    {PMIX_QUERY_REFRESH_CACHE, 0},
    {PMIX_GET_REFRESH_CACHE, 0},
    {PMIX_HOSTNAME, FAB_HEEDS_CONDITIONS},
    {PMIX_NODEID, FAB_HEEDS_CONDITIONS},
    {PMIX_DEVICE_ID, FAB_HEEDS_CONDITIONS},
    {PMIX_FABRIC_DEVICE_NAME, FAB_HEEDS_CONDITIONS},
    {PMIX_FABRIC_DEVICE_INDEX, FAB_HEEDS_CONDITIONS},
    {FAB_KEY_VIEW, FAB_HEEDS_VIEW},
    {PMIX_FABRIC_DEVICES, FAB_HEEDS_DEVICES},
    {PMIX_NODE_INFO, FAB_HEEDS_NODE},
    {PMIX_FABRIC_NUM_DEVICES, FAB_HEEDS_CONTENTS},
    {PMIX_FABRIC_GROUPS, FAB_HEEDS_CONTENTS},
    {PMIX_FABRIC_DIMS, FAB_HEEDS_CONTENTS},
    {PMIX_FABRIC_SHAPE, FAB_HEEDS_CONTENTS},
    {PMIX_FABRIC_SHAPE_STRING, FAB_HEEDS_CONTENTS},
    {PMIX_FABRIC_COST_MATRIX, FAB_HEEDS_MATRIX},
};

static pmix_status_t request_require(const pmix_info_t *info, struct fab_request *out)
{
    for (size_t i = 0; i < sizeof(heeded) / sizeof(heeded[0]); i++) {
        if (!PMIX_CHECK_KEY(info, heeded[i].key))
            continue;
        switch (heeded[i].heeds) {
        case FAB_HEEDS_DEVICES:
        case FAB_HEEDS_NODE:
            if (!request_says_yes(info)) /* nothing is requested */
                return PMIX_SUCCESS;
            break;
        case FAB_HEEDS_CONTENTS:
        case FAB_HEEDS_MATRIX:
            if (!request_says_yes(info)) /* neither a plane with that value, nor an answer without it */
                return PMIX_ERR_NOT_SUPPORTED;
            break;
        default: /* with any value */
            break;
        }
        out->required |= heeded[i].heeds;
        return PMIX_SUCCESS;
    }
    return PMIX_ERR_NOT_SUPPORTED;
}

pmix_status_t fab_request_parse(const pmix_info_t *info, size_t n, struct fab_request *out)
{
    *out = (struct fab_request){0};
    if (info == NULL && n > 0)
        return PMIX_ERR_BAD_PARAM;
    for (size_t i = 0; i < n; i++) {
        pmix_status_t rc = request_read_info(&info[i], out);
        if (rc == PMIX_SUCCESS && PMIX_INFO_IS_REQUIRED(&info[i]))
            rc = request_require(&info[i], out);
        if (rc != PMIX_SUCCESS)
            return rc;
    }
    return PMIX_SUCCESS;
}

bool fab_request_refused(const struct fab_request *request, unsigned heeds)
{
    return (request->required & ~heeds) != 0;
}

bool fab_request_matches(const struct fab_request *request, const struct pmixfab_plane *plane)
{
    return (request->plane == NULL || strcmp(request->plane, plane->name) == 0) &&
           (request->vendor == NULL || strcmp(request->vendor, plane->vendor) == 0) &&
           (request->identifier == NULL || strcmp(request->identifier, plane->identifier) == 0) &&
           (!request->has_index || request->index == plane->index);
}

bool fab_request_switch(const struct pmixfab *fab, const char *id, uint32_t *index)
{
    struct pmixfab_switch one;
    for (uint32_t i = 0; pmixfab_switch(fab, i, &one) == PMIXFAB_OK; i++)
        if (strcasecmp(one.id, id) == 0) {
            *index = i;
            return true;
        }
    return false;
}

bool fab_request_selects(const struct fab_request *request, const struct pmixfab *fab)
{
    struct pmixfab_plane plane;
    uint32_t index;
    return pmixfab_plane(fab, &plane) == PMIXFAB_OK && fab_request_matches(request, &plane) &&
           (request->switch_id == NULL || fab_request_switch(fab, request->switch_id, &index));
}

bool fab_request_empty(const struct fab_request *request)
{
    return request->plane == NULL && request->vendor == NULL && request->identifier == NULL &&
           !request->has_index && request->switch_id == NULL;
}

bool fab_request_names_device(const struct fab_request *request)
{
    return request->device_id != NULL || request->has_device_index ||
           (request->device_name != NULL && (request->hostname != NULL || request->has_nodeid));
}
