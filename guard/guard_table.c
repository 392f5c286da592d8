/* guard_table.c - the table that programs find, and the parts that are active for each version of the
 * library. */
#include <string.h>

#include "guard/guard_priv.h"

/* ---- callers of a newer library need no setting ----------------------------------------------------------
 */

/*
 * A caller names its packing module, and a library without this name rejects the caller. 6.0 and 6.1 have new
 * names for the module v41. They pack each type of v41 in the same way. They also add types that no older
 * library has and that are not used here. So an unknown name of these gets v41. This code accesses no
 * structure, so it is active for every version.
 */
struct packing_module *pmix_bfrops_base_assign_module(const char *names);

struct packing_module *pmix_bfrops_base_assign_module(const char *names)
{
    struct packing_module *(*original)(const char *names);
    *(void **)&original = guard_original("pmix_bfrops_base_assign_module");
    struct packing_module *module = original(names);
    if (module == NULL && names != NULL && (strcmp(names, "v51") == 0 || strcmp(names, "v61") == 0) &&
        guard_server() != GUARD_SERVER_OTHER && !guard_is_off())
        return original("v41");
    return module;
}

/* ---- the table
 * --------------------------------------------------------------------------------------------- */

extern const struct pmix_guard pmix_guard; /* found by its name */
const struct pmix_guard pmix_guard = {
    .size = sizeof(struct pmix_guard),
    .why_not = guard_why_not_done,
    .is_off = guard_is_off,
    .serve = guard_serve,
    .listen_on = guard_listen_on,
    .log_to = guard_log_to,
    .on_left = guard_on_left,
    .prefer = connections_prefer,
    .admit = connections_admit_only,
    .connected = connections_count,
    .refused = connections_count_refused,
    .job_forgotten = guard_job_forgotten,
    .stop = credentials_stop,
};
