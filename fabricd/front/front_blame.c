/* front_blame.c - on whose message a front was lost, and who is refused because of that. */
#include <arpa/inet.h>
#include <stdio.h>
#include <unistd.h>

#include "fabricd/base/clock.h"
#include "fabricd/front/front_note.h"
#include "fabricd/front/front_state.h"

static int64_t blame_now(void)
{
    return clock_now(CLOCK_MONOTONIC) / 1000;
}

static unsigned blame_left(const struct refusal *one)
{
    return (unsigned)((one->until - blame_now() + 999) / 1000);
}

void front_blame(struct front *front, char text[FRONT_BLAME_TEXT])
{
    const uid_t spared[] = {0, geteuid(), front->node_uid};
    char *who = front->status.origin;
    struct guard_origin origin;
    text[0] = who[0] = '\0';
    if (!note_read(front->note, &origin))
        return;
    const unsigned seconds = refusals_add(&front->refusals, &origin, spared, 3, blame_now());
    origin_text(&origin, who);
    if (seconds > 0)
        snprintf(text, FRONT_BLAME_TEXT, ", on a message of %s, who is refused for %u s", who, seconds);
    else
        snprintf(text, FRONT_BLAME_TEXT, ", on a message of %s", who);
}

void front_tell_refused(struct front *front)
{
    unsigned at = 0;
    for (const struct refusal *one; (one = refusals_next(&front->refusals, &at, blame_now())) != NULL;) {
        char address[INET6_ADDRSTRLEN];
        inet_ntop(AF_INET6, &one->origin.address, address, sizeof(address));
        channel_send(front->channel,
                     &(struct front_message){.kind = FRONT_REFUSE,
                                             .a = blame_left(one),
                                             .b = one->origin.local ? (uint64_t)one->origin.uid + 1 : 0,
                                             .text = address});
    }
}

bool front_refused(const struct front *front, unsigned *at, struct front_refused *out)
{
    const struct refusal *one = refusals_next(&front->refusals, at, blame_now());
    if (one == NULL)
        return false;
    origin_text(&one->origin, out->origin);
    out->seconds = blame_left(one);
    return true;
}
