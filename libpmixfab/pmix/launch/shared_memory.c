/* shared_memory.c - room for what a job is told, in the memory that the library shares with its clients. */
#include <stddef.h>

#include "pmix/launch/launch.h"

/* The library's own, without a public header. All versions from 4.2 on have them in this shape; one that has
 * them no more leaves them NULL. */
extern int pmix_mca_base_var_find(const char *project, const char *framework, const char *component,
                                  const char *name) __attribute__((weak));
extern int pmix_mca_base_var_get_value(int at, void *value, void *source, const char **file)
    __attribute__((weak));

/* The factor that one of the library's stores goes by; NULL: there is no such store. */
static double *shared_memory_factor(const char *store)
{
    double *factor = NULL;
    int at = pmix_mca_base_var_find("pmix", "gds", store, "segment_size_multiplier");
    return at >= 0 && pmix_mca_base_var_get_value(at, (void *)&factor, NULL, NULL) == 0 ? factor : NULL;
}

void fab_launch_make_room(void)
{
    static const char *const stores[] = {"shmem2", "shmem3"};
    const double room = 8;
    if (pmix_mca_base_var_find == NULL || pmix_mca_base_var_get_value == NULL)
        return;
    for (size_t i = 0; i < sizeof(stores) / sizeof(stores[0]); i++) {
        double *factor = shared_memory_factor(stores[i]);
        if (factor != NULL && *factor < room)
            *factor = room;
    }
}
