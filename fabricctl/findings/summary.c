/* summary.c - how many findings there are, in words. */
#include "fabricctl/findings/findings.h"

#include <stdio.h>

#include "fabricctl/core/table.h"

const char *ctl_findings_words(const json_t *summary, char text[static CTL_FINDINGS_WORDS])
{
    static const struct {
        const char *key, *one, *many;
    } parts[] = {
        {"errors", "error", "errors"}, {"warnings", "warning", "warnings"}, {"notices", "notice", "notices"}};
    const long long acked = json_integer_value(json_object_get(summary, "acknowledged"));
    size_t used = 0;

    for (size_t i = 0; i < CTL_COUNT(parts); i++) {
        const long long n = json_integer_value(json_object_get(summary, parts[i].key));

        if (n > 0)
            used += (size_t)snprintf(text + used, CTL_FINDINGS_WORDS - used, "%s%lld %s",
                                     used > 0 ? ", " : "", n, n == 1 ? parts[i].one : parts[i].many);
    }
    if (used == 0)
        used = (size_t)snprintf(text, CTL_FINDINGS_WORDS, "none");
    if (acked > 0)
        snprintf(text + used, CTL_FINDINGS_WORDS - used, "; %lld acknowledged", acked);
    return text;
}
