/*
 * working.h - whose message the library's thread works on right now.
 *
 * Noted where another process can read it after this one has died of the message; also for who has to know
 * meanwhile. On the library's thread.
 */
#ifndef FAB_MCA_DOOR_WORKING_H
#define FAB_MCA_DOOR_WORKING_H

#include <stdbool.h>

#include "mca/door/origin.h"

/* Memory that two processes share. What is read there is what the other one wrote, whatever that is. */
struct working_note {
    volatile uint32_t noted; /* 0: nobody's; set last */
    struct origin origin;
};

/* Where it is noted; NULL: nowhere. Before the server starts. */
void working_note_in(struct working_note *note);

/* A message of this connection. user: whom it has proved to be (munge), -1: it has proved nothing. */
void working_on(int fd, int64_t user);
void working_ended(void);

/* Whose message it is; preferred: it is not bounded by its origin's share (connections.h). False: nobody's.
 */
bool working_for(struct origin *origin, bool *preferred);

#endif
