/*
 * history_json.h - a change of the history as JSON, for the control socket and the hook.
 */
#ifndef FABRICD_JOBS_HISTORY_JSON_H
#define FABRICD_JOBS_HISTORY_JSON_H

#include <jansson.h>

#include "fabricd/store/store_tables.h"

/* In one array: the first publication of a large fabric has about 50,000. */
#define CHANGE_JSON_MAX 100000

/* Append the change to the array (a json_t); non-zero when that is full. (a store_change_fn) */
int change_json(const struct store_change *change, void *array);

/* Append the changes of a diff that belongs to no generation, with this time (microseconds since 1970). */
void change_json_diff(const struct fab_diff *diff, int64_t time, json_t *array);

#endif
