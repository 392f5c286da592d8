#include "mca/door/door_request.h"

#include <string.h>

#include "mca/door/packed.h"

/* The numbers of the commands that are answered. */
enum {
    JOB_INFO = 0,
    GET = 4,
    FINALIZE = 5,
    LOOKUP = 7,
    REGISTER_EVENTS = 13,
    DEREGISTER_EVENTS = 14,
    QUERY = 15,
    FABRIC_REGISTER = 30,
    FABRIC_UPDATE = 31,
};

#define MOST_CODES 256

#define FABRIC_KEYS "pmix.fab" /* as in mca/repairs/repair_get.c */

static bool request_queries(struct packed *in)
{
    size_t n;
    return packed_count(in, &n) && n <= in->left && (n == 0 || packed_skip(in, PMIX_QUERY, n));
}

static bool request_lookup(struct packed *in)
{
    size_t n;
    const char *key;
    if (!packed_skip(in, PMIX_UINT32, 1) || !packed_count(in, &n) || n > in->left)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!packed_string(in, &key) || key == NULL)
            return false;
    return packed_infos(in, NULL);
}

/* The library reads two of them without a look at their types. */
static bool request_event_info(const char *key, pmix_data_type_t type, pmix_data_type_t of)
{
    if (strcmp(key, PMIX_EVENT_AFFECTED_PROC) == 0)
        return type == PMIX_PROC;
    if (strcmp(key, PMIX_EVENT_AFFECTED_PROCS) == 0)
        return type == PMIX_DATA_ARRAY && of == PMIX_PROC;
    return true;
}

static unsigned request_event(pmix_status_t code)
{
    return code == PMIX_FABRIC_UPDATE_PENDING ? REQUEST_PENDING
           : code == PMIX_FABRIC_UPDATED      ? REQUEST_UPDATED
                                              : 0;
}

/* Events of the system itself are the only ones that the library refuses where the host does not raise them.
 */
static pmix_status_t request_events(struct packed *in, unsigned *events)
{
    pmix_status_t codes[MOST_CODES], rc = PMIX_SUCCESS;
    size_t n;
    if (!packed_count(in, &n) || n > MOST_CODES || (n > 0 && !packed_statuses(in, n, codes)) ||
        !packed_infos(in, request_event_info))
        return PMIX_ERR_BAD_PARAM;
    for (size_t i = 0; i < n; i++) {
        *events |= request_event(codes[i]);
        if (PMIX_SYSTEM_EVENT(codes[i]))
            rc = PMIX_ERR_NOT_SUPPORTED;
    }
    return rc;
}

static bool request_no_events(struct packed *in, unsigned *events)
{
    pmix_status_t code;
    for (size_t n = 0; in->left > 0; n++) {
        if (n == MOST_CODES || !packed_statuses(in, 1, &code))
            return false;
        *events |= request_event(code);
    }
    return true;
}

static pmix_status_t request_get(struct packed *in)
{
    const char *nspace, *key;
    if (!packed_string(in, &nspace) || !packed_skip(in, PMIX_PROC_RANK, 1) || !packed_infos(in, NULL) ||
        in->left == 0)
        return PMIX_ERR_BAD_PARAM;
    if (!packed_string(in, &key) || key == NULL)
        return PMIX_ERR_BAD_PARAM;
    return strncmp(key, FABRIC_KEYS, strlen(FABRIC_KEYS)) == 0 ? PMIX_SUCCESS : PMIX_ERR_NOT_FOUND;
}

static pmix_status_t request_status(bool sound)
{
    return sound ? PMIX_SUCCESS : PMIX_ERR_BAD_PARAM;
}

pmix_status_t request_check(const void *bytes, size_t size, bool described, struct request *out)
{
    struct packed in = {.at = bytes, .left = size, .described = described};
    *out = (struct request){.command = UINT8_MAX};
    if (!packed_byte(&in, PMIX_COMMAND, &out->command))
        return PMIX_ERR_BAD_PARAM;
    switch (out->command) {
    case JOB_INFO:
    case FINALIZE:
        return PMIX_SUCCESS;
    case GET:
        return request_get(&in);
    case LOOKUP:
        return request_status(request_lookup(&in));
    case REGISTER_EVENTS:
        return request_events(&in, &out->events);
    case DEREGISTER_EVENTS:
        return request_status(request_no_events(&in, &out->events));
    case QUERY:
        return request_status(request_queries(&in));
    case FABRIC_REGISTER:
        return request_status(packed_infos(&in, NULL));
    case FABRIC_UPDATE:
        return request_status(packed_skip(&in, PMIX_SIZE, 1));
    default:
        return PMIX_ERR_NOT_SUPPORTED;
    }
}
