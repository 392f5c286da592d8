#include "fabricd/jobs/history_json.h"

#include <stdlib.h>
#include <string.h>

#include "fabricd/control/connection.h"

/* Return lines as an array of strings. */
static json_t *subjects_json(const char *lines)
{
    json_t *array = json_array();
    while (*lines != '\0') {
        size_t len = strcspn(lines, "\n");
        json_array_append_new(array, json_stringn(lines, len));
        lines += len + (lines[len] != '\0');
    }
    return array;
}

int change_json(const struct store_change *change, void *array)
{
    json_t *one =
        json_pack("{s:I, s:o, s:s, s:s, s:s, s:s, s:s, s:b, s:o, s:o, s:o}", "generation",
                  (json_int_t)change->generation, "time", control_time(change->time), "kind", change->kind,
                  "what", change->what, "before", change->before, "after", change->after, "why", change->why,
                  "planned", change->planned, "first_seen", control_time(change->first_seen), "last_seen",
                  control_time(change->last_seen), "subjects", subjects_json(change->subjects));
    /* NULL for a text that is not UTF-8; names were cleaned before, so there is none. */
    if (one != NULL)
        json_array_append_new(array, one);
    return json_array_size(array) >= CHANGE_JSON_MAX;
}

void change_json_diff(const struct fab_diff *diff, int64_t time, json_t *array)
{
    int full = 0;
    for (uint32_t i = 0; i < diff->n && full == 0; i++) {
        const struct fab_change *change = &diff->changes[i];
        char *lines = store_subject_lines(change->subjects);
        const struct store_change told = {.time = time,
                                          .kind = fab_change_name(change->kind),
                                          .what = change->what,
                                          .before = change->before,
                                          .after = change->after,
                                          .why = change->why == NULL ? "" : change->why,
                                          .subjects = lines == NULL ? "" : lines,
                                          .planned = change->planned,
                                          .first_seen = change->first_seen,
                                          .last_seen = change->last_seen};
        full = change_json(&told, array);
        json_object_set_new(json_array_get(array, json_array_size(array) - 1), "generation", json_null());
        free(lines);
    }
}
