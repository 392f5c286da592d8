/*
 * left.h - a tool, relay or one of one's own clients has gone, for those who keep something for it.
 */
#ifndef FAB_MCA_DOOR_LEFT_H
#define FAB_MCA_DOOR_LEFT_H

#include <pmix_common.h>

/* Who is told, on the library's thread; NULL: nobody. Before the server starts, and after it was stopped. */
void door_on_left(void (*fn)(const pmix_proc_t *who));

/* Nobody of this name is connected any more. */
void door_left(const pmix_proc_t *who);

#endif
