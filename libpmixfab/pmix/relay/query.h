/*
 * query.h - send one query to the connected PMIx server and wait for the answer, or an error, within a
 * deadline.
 */
#ifndef FAB_PMIX_RELAY_QUERY_H
#define FAB_PMIX_RELAY_QUERY_H

#include <pmix_common.h>

#include "pmixfab.h"

#define FAB_QUERY_SECONDS 30

/* An answer, to be freed with fab_answer_free(). */
struct fab_answer;

/*
 * Query `keys` (ended by NULL) with the directives as qualifiers; PMIXFAB_ERR_TIMEOUT after
 * FAB_QUERY_SECONDS.
 */
int fab_query(const char *const *keys, const pmix_info_t *directives, size_t ndirs, struct fab_answer **out);
void fab_answer_free(struct fab_answer *answer); /* NULL is allowed */

/* Return the value of a key in the answer; NULL if it is absent or of another type. */
const pmix_value_t *fab_answer_value(const struct fab_answer *answer, const char *key, pmix_data_type_t type);

/* Return the code of this library for a PMIx status. */
int fab_error_of(pmix_status_t status);

#endif
