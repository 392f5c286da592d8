/* verify.c - is it as it is served? */
#include "fabricctl/core/ask.h"
#include "fabricctl/core/table.h"
#include "fabricctl/show/changes.h"

static enum ctl_exit show_verified(const struct ctl *ctl, const json_t *answer)
{
    const json_t *changes = json_object_get(answer, "changes");
    json_t *generation = json_object_get(answer, "generation"), *rows;
    bool equal = json_is_true(json_object_get(answer, "equal"));
    enum ctl_exit status = CTL_DONE;

    if (ctl->format == CTL_TEXT)
        printf("generation %lld %s\n", (long long)json_integer_value(generation),
               equal ? "is what a sweep sees now" : "is not what a sweep sees now:");
    if (ctl->format == CTL_JSON) {
        rows = ctl_changes_json(ctl, changes);
        status = rows == NULL
                     ? CTL_FAILED
                     : ctl_json_print(stdout,
                                      json_pack("{s:O, s:b, s:o, s:O?, s:O?}", "generation", generation,
                                                "equal", equal, "changes", rows, "suppressed",
                                                json_object_get(answer, "suppressed"), "suppressed_switches",
                                                json_object_get(answer, "suppressed_switches")));
    } else if (!equal || ctl->format == CTL_CSV) {
        status = ctl_changes_table(ctl, changes, NULL);
    }
    if (ctl->format == CTL_TEXT)
        ctl_print_suppressed(answer);
    return status == CTL_DONE && !equal ? CTL_FAILED : status;
}

enum ctl_exit ctl_verify(const struct ctl *ctl)
{
    return ctl_ask_show(ctl, json_pack("{s:s}", "op", "verify"), CTL_SWEEP_SECONDS, show_verified);
}
