#include "fabricd/change_json.h"

#include "fabricd/control_priv.h"

int change_json(const struct store_change *change, void *array)
{
    json_t *one = json_pack("{s:I, s:o, s:s, s:s, s:s, s:s}", "generation", (json_int_t)change->generation,
                            "time", control_time(change->time), "kind", change->kind, "what", change->what,
                            "before", change->before, "after", change->after);
    /* A text that is not UTF-8 cannot be told in JSON: the names were cleaned before, so there is none. */
    if (one != NULL)
        json_array_append_new(array, one);
    return json_array_size(array) >= CHANGE_JSON_MAX;
}
