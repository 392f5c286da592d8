/*
 * query.h - one question to the connected PMIx server, with an answer or an error within a deadline.
 */
#ifndef FAB_PMIX_RELAY_QUERY_H
#define FAB_PMIX_RELAY_QUERY_H

#include <pmix_common.h>

#include "pmixfab.h"

#define FAB_QUERY_SECONDS 30

/* An answer; release with fab_answer_free(). */
struct fab_answer;

/*
 * Ask for `keys` (ended by NULL) with the directives as qualifiers, and give up after FAB_QUERY_SECONDS.
 */
int fab_query(const char *const *keys, const pmix_info_t *directives, size_t ndirs, struct fab_answer **out);
void fab_answer_free(struct fab_answer *answer); /* NULL allowed */

/* The value of a key in the answer; NULL where it is absent or of another type. */
const pmix_value_t *fab_answer_value(const struct fab_answer *answer, const char *key, pmix_data_type_t type);

/* The library's code that says what a PMIx status says. */
int fab_error_of(pmix_status_t status);

#endif
