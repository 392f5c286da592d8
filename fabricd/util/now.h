/* now.h - the time. */
#ifndef FABRICD_UTIL_NOW_H
#define FABRICD_UTIL_NOW_H

#include <stdint.h>
#include <time.h>

/* Microseconds; of CLOCK_REALTIME since 1970. */
static inline int64_t microseconds_now(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

#endif
