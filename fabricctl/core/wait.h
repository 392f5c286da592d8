/* wait.h - fabricctl's clocks, and the only place where it waits for the daemon; a simulation has another
 * one. */
#ifndef FABRICCTL_CORE_WAIT_H
#define FABRICCTL_CORE_WAIT_H

#include <stdint.h>

/* Seconds since 1970. */
int64_t ctl_now(void);

/* Milliseconds of a clock that never jumps. */
int64_t ctl_wait_now(void);

/* Wait for POLLIN or POLLOUT of the connection. 1: ready, 0: the deadline passed, -1: interrupted or no
 * reader of our output any more. deadline: as ctl_wait_now() tells it, < 0: none. */
int ctl_wait(int fd, short what, int64_t deadline);

#endif
