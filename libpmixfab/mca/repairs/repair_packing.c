/*
 * repair_packing.c - callers of a newer library need no setting.
 *
 * A caller names its way of packing, and a library that does not know the name refuses it. 6.0 and 6.1 have
 * new names for what v41 is: they pack each type of v41 alike, and add types that no library before them has
 * and nothing here uses. So where the library does not know such a name it is given v41. This looks into no
 * structure, so it is for every version.
 */
#include <stddef.h>
#include <string.h>

#include "mca/repairs/repair.h"

typedef struct packing_module *(*assign_fn)(const char *names); /* the library's own, known by its address */

struct packing_module *pmix_bfrops_base_assign_module(const char *names);

struct packing_module *pmix_bfrops_base_assign_module(const char *names)
{
    assign_fn original = NULL;
    *(void **)&original = fab_repair_original(__func__);
    if (original == NULL)
        return NULL;
    struct packing_module *module = original(names);
    if (module == NULL && names != NULL && (strcmp(names, "v51") == 0 || strcmp(names, "v61") == 0) &&
        !fab_repair_is_off())
        return original("v41");
    return module;
}
