/* json.c - values as JSON. */
#include <stdlib.h>

#include "fabricctl/core/ctl_text.h"
#include "fabricctl/core/table.h"

json_t *ctl_json_text(const char *text)
{
    json_t *value;
    char *clean;

    if (text == NULL)
        return json_null();
    clean = ctl_clean_copy(text);
    value = clean == NULL ? NULL : json_string_nocheck(clean);
    free(clean);
    return value;
}

json_t *ctl_json_rate(uint64_t mbps)
{
    if (mbps == 0)
        return json_null();
    return mbps % 1000 == 0 ? json_integer((json_int_t)(mbps / 1000)) : json_real((double)mbps / 1000);
}

enum ctl_exit ctl_json_print(FILE *out, json_t *value)
{
    int failed;

    if (value == NULL)
        return ctl_nomem();
    failed = json_dumpf(value, out, (CTL_JSON_FLAGS & ~JSON_COMPACT) | JSON_INDENT(2)) != 0 && !ferror(out);
    putc('\n', out);
    json_decref(value);
    return failed ? ctl_nomem() : CTL_DONE;
}
