#include "fabricd/process/supervisor.h"

#include <string.h>

#include "topo/base/text.h"

void supervisor_began(struct supervisor *supervisor, int64_t now)
{
    supervisor->began = now;
}

void supervisor_good(struct supervisor *supervisor)
{
    backoff_reset(&supervisor->again);
}

int64_t supervisor_lost(struct supervisor *supervisor, const char *why, bool served, int64_t now,
                        int64_t real)
{
    int64_t pause = 0;
    if (served && now - supervisor->began > supervisor->good_ms)
        supervisor_good(supervisor);
    else
        pause = backoff_next(&supervisor->again);
    supervisor->not_before = now + pause;
    supervisor->replaced++;
    supervisor->last = real;
    fab_text_clean(supervisor->why, sizeof(supervisor->why), why, strlen(why), NULL);
    return pause;
}

int64_t supervisor_wait(const struct supervisor *supervisor, int64_t now)
{
    return supervisor->not_before > now ? supervisor->not_before - now : 0;
}
