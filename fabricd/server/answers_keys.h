/*
 * answers_keys.h - the value of one key over everything that is served: planes, switches, devices,
 * coordinates.
 */
#ifndef FABRICD_SERVER_ANSWERS_KEYS_H
#define FABRICD_SERVER_ANSWERS_KEYS_H

#include "fabricd/serving/served.h"
#include "pmix/values/info.h"
#include "pmix/values/request.h"

/* The plane that is asked for: the default one if it fits, else the first that does. NULL: none. */
const struct served_plane *answer_plane(const struct served_set *set, const struct fab_request *request);

/*
 * The answer to one key of a query into *value (constructed here, released with fab_value_free()).
 * PMIX_ERR_NOT_FOUND: nothing that fits; PMIX_ERR_BAD_PARAM: a device's key without saying which device.
 */
pmix_status_t answer_key(const struct served_set *set, const struct fab_request *request, const char *key,
                         pmix_value_t *value);

/*
 * This host's name, as the daemon is configured: whom a question is about that asks for a node's devices or
 * coordinates and names no node. Kept, not copied. Without it the system's name.
 */
void answer_host_is(const char *host);
const char *answer_host(void); /* NULL: not said */

/* Is this key, asked with these conditions, about this host? */
bool answer_is_local(const char *key, const struct fab_request *request);

/* May the answer to it be large? */
bool answer_is_large(const char *key);

#endif
