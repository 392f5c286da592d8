#include "fabricd/change_json.h"

#include <string.h>

#include "fabricd/control_priv.h"

/* Lines as an array of strings. */
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
    /* A text that is not UTF-8 cannot be told in JSON: the names were cleaned before, so there is none. */
    if (one != NULL)
        json_array_append_new(array, one);
    return json_array_size(array) >= CHANGE_JSON_MAX;
}
