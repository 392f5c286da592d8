#include "mca/door/opened.h"

#include <stddef.h>

static void (*opener)(uint32_t number, const char *credential);
static void (*on_opened)(const struct door_opened *opened);

void door_on_credential(void (*fn)(uint32_t number, const char *credential))
{
    opener = fn;
}

bool door_has_opener(void)
{
    return opener != NULL;
}

void door_open(uint32_t number, const char *credential)
{
    opener(number, credential);
}

void door_opened(const struct door_opened *opened)
{
    if (on_opened != NULL)
        on_opened(opened);
}

void door_on_opened(void (*fn)(const struct door_opened *opened))
{
    on_opened = fn;
}
