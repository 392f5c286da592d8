/* side_channel.c - the front's end of the channel to fabricd: its standard input. */
#include <unistd.h>

#include "fabricd/front/front_note.h"
#include "fabricd/front/side/side.h"

#define MAX_MESSAGE ((size_t)64 << 20) /* fabricd is believed: a length that is wrong is a fault */

static struct channel *to_fabricd;

void side_take_note(void)
{
    const struct pmix_guard *guard = guard_find();
    struct guard_note *note = note_take(STDIN_FILENO);
    if (guard != NULL)
        guard->note_in(note);
}

int side_listen(struct event_base *base, const struct channel_fns *fns)
{
    return channel_new(base, STDIN_FILENO, MAX_MESSAGE, fns, &to_fabricd);
}

void side_say(const struct front_message *message)
{
    channel_send(to_fabricd, message);
}
