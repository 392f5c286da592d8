#include "fabricd/base/chance.h"

#include <event2/util.h>

uint32_t chance_below(uint32_t below)
{
    uint32_t chance;
    evutil_secure_rng_get_bytes(&chance, sizeof(chance));
    return chance % below;
}

void chance_bytes(void *bytes, size_t n)
{
    evutil_secure_rng_get_bytes(bytes, n);
}
