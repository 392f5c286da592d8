/*
 * door_request.h - a connected tool's or relay's message, before the library unpacks it.
 */
#ifndef FAB_MCA_DOOR_DOOR_REQUEST_H
#define FAB_MCA_DOOR_DOOR_REQUEST_H

#include <pmix_common.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The events that fabricd raises. */
enum { REQUEST_PENDING = 1, REQUEST_UPDATED = 2 };

struct request {
    uint8_t command;
    unsigned events; /* of those that fabricd raises, the ones that it registers for or deregisters */
};

/*
 * PMIX_SUCCESS: a command that fabricd answers, with all that belongs to it. PMIX_ERR_NOT_SUPPORTED: another
 * command. PMIX_ERR_NOT_FOUND: data of a job are asked for; there is none here. PMIX_ERR_BAD_PARAM: damaged.
 */
pmix_status_t request_check(const void *bytes, size_t size, bool described, struct request *out);

#endif
