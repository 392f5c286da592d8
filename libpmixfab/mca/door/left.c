#include "mca/door/left.h"

#include <stddef.h>

static void (*on_left)(const pmix_proc_t *who);

void door_on_left(void (*fn)(const pmix_proc_t *who))
{
    on_left = fn;
}

void door_left(const pmix_proc_t *who)
{
    if (on_left != NULL)
        on_left(who);
}
