/* history_check.h - the stored history is compared with its digests once, by a thread of its own. */
#ifndef FABRICD_JOBS_HISTORY_CHECK_H
#define FABRICD_JOBS_HISTORY_CHECK_H

#include <event2/event.h>
#include <stdint.h>

/* Of the store at this path, which stays as it is. changed() is called on the loop when it was not as it was
 * published, or cannot be compared. NULL: no memory; nothing is compared. */
struct history_check;
struct history_check *history_check_new(struct event_base *base, const char *path, uint64_t newest,
                                        void (*changed)(void *cbdata), void *cbdata);
void history_check_free(struct history_check *check); /* waits for its thread; NULL allowed */

/* Where the history is not as it was published, which generation; else NULL. NULL allowed. */
const char *history_check_fault(const struct history_check *check);

#endif
