/*
 * info.h - a snapshot as pmix_info_t: the attributes of the standard's chapter on fabrics, and fabricd's own.
 */
#ifndef FAB_PMIX_ANSWERS_INFO_H
#define FAB_PMIX_ANSWERS_INFO_H

#include <pmix_common.h>

#include "pmix/answers/value.h"
#include "pmixfab.h"

#define FAB_KEY_PUBLISHED "pmixfab.published" /* int64_t: microseconds since 1970, UTC */

/* Data of an answer besides the snapshot. */
struct fab_info_source {
    const struct pmixfab *fab;
    const char *path;       /* of its file; NULL: none */
    const uint16_t *matrix; /* PMIX_FABRIC_COST_MATRIX; NULL: none */
    enum pmixfab_view view; /* of dims and shape; 0: the default, which is logical */
};

/*
 * Write the value of one key into *value (constructed here; free it with fab_value_free()).
 * PMIX_ERR_NOT_FOUND: not a key of a plane, or without data.
 */
pmix_status_t fab_info_value(const struct fab_info_source *source, const char *key, pmix_value_t *value);

/*
 * Make the answer to a register or update: every key with a value, the snapshot's bytes only if `with_bytes`.
 * Free it with fab_infos_free() or PMIX_INFO_FREE.
 */
pmix_status_t fab_info_all(const struct fab_info_source *source, int with_bytes, pmix_info_t **info,
                           size_t *n);

#endif
