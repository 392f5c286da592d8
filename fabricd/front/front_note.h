/*
 * front_note.h - a page that fabricd and its front share: whose message the front works on
 * (guard/guard.h).
 *
 * What is in it is the front's to write, and any value may stand there. It is handed over as the first byte
 * of the channel, so that it reaches a child and a process that somebody else has started alike.
 */
#ifndef FABRICD_FRONT_FRONT_NOTE_H
#define FABRICD_FRONT_FRONT_NOTE_H

#include <stdbool.h>

#include "guard/guard.h"

/* Make one and hand it to the other end of the channel, on which nothing was said yet. -1: there is none (no
 * memory); the front then goes without. The descriptor is the caller's. */
int note_hand_over(int channel);

/* What stands in it. False: nothing does. */
bool note_read(int note, struct guard_origin *out);

/* The front's: wait for it, and map it. NULL: it goes without. */
struct guard_note *note_take(int channel);

#endif
