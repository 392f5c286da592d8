#include "pmix/answers/device.h"

#include <string.h>

#include "pmix/answers/value.h"

pmix_status_t fab_devices_fill(const struct pmixfab *fab, const struct fab_request *request,
                               pmix_data_array_t *array, size_t *at)
{
    struct fab_device_walk walk;
    pmix_info_t *info = array->array;
    pmix_status_t rc = PMIX_SUCCESS;
    uint32_t index;
    fab_device_walk(fab, request, &walk);
    while (rc == PMIX_SUCCESS && *at < array->size && fab_device_next(&walk, &index)) {
        rc = fab_device_value(fab, index, &info[*at].value);
        PMIX_LOAD_KEY(info[*at].key, PMIX_FABRIC_DEVICE);
        ++*at;
    }
    return rc;
}

pmix_status_t fab_devices_value(const struct pmixfab *fab, const struct fab_request *request,
                                pmix_value_t *value)
{
    size_t at = 0;
    pmix_status_t rc = fab_value_array(value, PMIX_INFO, fab_device_count(fab, request));
    if (rc != PMIX_SUCCESS)
        return rc;
    rc = fab_devices_fill(fab, request, value->data.darray, &at);
    if (rc != PMIX_SUCCESS)
        fab_value_free(value);
    return rc;
}
