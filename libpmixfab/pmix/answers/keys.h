/*
 * keys.h - the value of one key over a set of planes: planes, switches, devices,
 * coordinates.
 */
#ifndef FAB_PMIX_ANSWERS_KEYS_H
#define FAB_PMIX_ANSWERS_KEYS_H

#include "pmix/answers/answers.h"
#include "pmix/answers/info.h"
#include "pmix/answers/request.h"

/* The plane that is asked for: the default one if it fits, else the first that does. NULL: none. */
const struct fab_answer_plane *answer_plane(const struct fab_answer_set *set,
                                            const struct fab_request *request);

/*
 * The answer to one key of a query into *value (constructed here, released with fab_value_free()).
 * PMIX_ERR_NOT_FOUND: nothing that fits; PMIX_ERR_BAD_PARAM: a device's key without saying which device;
 * PMIX_ERR_NOT_SUPPORTED: a qualifier is required that the key does not heed.
 */
pmix_status_t answer_key(const struct fab_answer_set *set, const struct fab_request *request, const char *key,
                         pmix_value_t *value);

/* The plane that a request without directives gets; the plane of this number. NULL where there is none. */
const struct fab_answer_plane *answer_default(const struct fab_answer_set *set);
const struct fab_answer_plane *answer_find(const struct fab_answer_set *set, uint32_t index);

/* Does the answer to this key heed all that is required? */
bool answer_heeds(const char *key, const struct fab_request *request);

/* May the answer to it be large? */
bool answer_is_large(const char *key);

#endif
