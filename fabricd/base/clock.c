#include "fabricd/base/clock.h"

#include <errno.h>
#include <event2/util.h>

int64_t clock_now(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

void clock_sleep(int64_t microseconds)
{
    struct timespec left = {.tv_sec = microseconds / 1000000, .tv_nsec = microseconds % 1000000 * 1000};
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
        ;
}

int clock_sleep_until(int64_t microseconds)
{
    const struct timespec then = {.tv_sec = microseconds / 1000000, .tv_nsec = microseconds % 1000000 * 1000};
    return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &then, NULL);
}

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
