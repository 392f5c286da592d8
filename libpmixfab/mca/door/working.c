#include "mca/door/working.h"

#include <stddef.h>

#include "mca/door/connections.h"

static struct working_note own, *note = &own;
static int64_t proved;

void working_note_in(struct working_note *place)
{
    note = place != NULL ? place : &own;
}

void working_on(int fd, int64_t user)
{
    struct origin origin;
    if (!connections_origin(fd, &origin))
        return;
    note->origin = origin;
    proved = user;
    note->noted = 1;
}

void working_ended(void)
{
    note->noted = 0;
}

bool working_for(struct origin *origin, bool *preferred)
{
    if (note->noted == 0)
        return false;
    *origin = note->origin;
    const int64_t user = origin->local ? (int64_t)origin->uid : proved;
    *preferred = user >= 0 && connections_is_preferred((uid_t)user);
    return true;
}
