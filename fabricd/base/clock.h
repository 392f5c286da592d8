/*
 * clock.h - the time. This file, timer.h, watch.h, work.h and process/child.h are the interface between the
 * daemon and the machine. No other part of the daemon reads a clock, sets a timer, or starts a thread or a
 * process. A simulation links its own functions in place of these.
 */
#ifndef FABRICD_BASE_CLOCK_H
#define FABRICD_BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* Return the microseconds of CLOCK_REALTIME (since 1970), CLOCK_MONOTONIC or CLOCK_BOOTTIME. Any thread. */
int64_t clock_now(clockid_t clock);

/* Sleep. Not for the main loop, since it would block all callers. A signal does not shorten the sleep. */
void clock_sleep(int64_t microseconds);

/* Sleep until that time of CLOCK_MONOTONIC. Return 0, or EINTR if a signal came first. */
int clock_sleep_until(int64_t microseconds);

/* Return a random number from 0 to `below` - 1. */
uint32_t chance_below(uint32_t below);

/* Fill `bytes` with unpredictable random bytes. */
void chance_bytes(void *bytes, size_t n);

#endif
