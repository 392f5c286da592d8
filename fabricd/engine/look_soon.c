/* look_soon.c - something has changed that may look wrong, or right. */
#include "fabricd/base/timer.h"
#include "fabricd/engine/scheduler_state.h"

#define LOOK_MS 500 /* a storm of publications is looked at once */

void scheduler_look_soon(struct scheduler *d)
{
    if (d->look == NULL || d->look_soon)
        return;
    d->look_soon = true;
    timer_after(d->look, LOOK_MS);
}
