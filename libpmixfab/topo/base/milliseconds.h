/* milliseconds.h - the clock for deadlines. */
#ifndef FAB_TOPO_BASE_MILLISECONDS_H
#define FAB_TOPO_BASE_MILLISECONDS_H

#include <stdint.h>
#include <time.h>

/* Milliseconds of CLOCK_MONOTONIC. */
static inline int64_t fab_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

#endif
