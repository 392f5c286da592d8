/* host_post.h - from the PMIx library's thread to the loop. (The other way: pmix/relay/thread.h.) */
#ifndef FABRICD_HOST_HOST_POST_H
#define FABRICD_HOST_HOST_POST_H

#include <event2/event.h>
#include <stdbool.h>

/* The loop; before the server starts. */
void host_post_to(struct event_base *base);
struct event_base *host_loop(void);

/* Call fn(arg) on the loop, in the order of these calls. False: no memory, and it is not called. */
bool host_post(void (*fn)(void *arg), void *arg);

#endif
