/* keys.h - the value of one key for a set of planes: planes, switches, devices, coordinates. */
#ifndef FAB_PMIX_ANSWERS_KEYS_H
#define FAB_PMIX_ANSWERS_KEYS_H

#include "pmix/answers/answers.h"
#include "pmix/answers/info.h"
#include "pmix/answers/request.h"

/* Return the requested plane: the default one if it matches, else the first match. NULL: none. */
const struct fab_answer_plane *answer_plane(const struct fab_answer_set *set,
                                            const struct fab_request *request);

/*
 * Write the answer to one key of a query into *value (constructed here; free it with fab_value_free()).
 * PMIX_ERR_NOT_FOUND: no match; PMIX_ERR_BAD_PARAM: a device's key without a device; PMIX_ERR_NOT_SUPPORTED:
 * a qualifier is required that the key does not support.
 */
pmix_status_t answer_key(const struct fab_answer_set *set, const struct fab_request *request, const char *key,
                         pmix_value_t *value);

/* Return the plane for a request without directives; the plane with this number. NULL if there is none. */
const struct fab_answer_plane *answer_default(const struct fab_answer_set *set);
const struct fab_answer_plane *answer_find(const struct fab_answer_set *set, uint32_t index);

/* Return whether the answer to this key supports all required conditions. */
bool answer_heeds(const char *key, const struct fab_request *request);

/* Return whether the answer to this key may be large. */
bool answer_is_large(const char *key);

#endif
