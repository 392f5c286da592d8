/* watch.h - functions that an event loop calls when a descriptor is ready, or a signal arrives. */
#ifndef FABRICD_BASE_WATCH_H
#define FABRICD_BASE_WATCH_H

#include <event2/event.h>

struct watch;
typedef void (*watch_fn)(int fd, void *cbdata);

enum watch_for { WATCH_READ, WATCH_WRITE };

/* Call `fn` on the loop as long as the descriptor is ready. The caller closes it, after watch_free(). NULL:
 * no memory. */
struct watch *watch_new(struct event_base *base, int fd, enum watch_for ready, watch_fn fn, void *cbdata);

/* Call `fn` for each signal `number`, with the number as its first argument. */
struct watch *watch_signal(struct event_base *base, int number, watch_fn fn, void *cbdata);

void watch_pause(struct watch *watch);
void watch_resume(struct watch *watch);
int watch_fd(const struct watch *watch);
void watch_free(struct watch *watch); /* NULL allowed */

#endif
