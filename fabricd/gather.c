#include "fabricd/gather.h"

void gather_init(struct gather *gather, int64_t settle, int64_t longest_wait)
{
    *gather = (struct gather){.settle = settle, .longest_wait = longest_wait, .taken = -1};
}

void gather_changed(struct gather *gather, int64_t now)
{
    const bool quiet = !gather->any || now - gather->last > gather->settle;
    if (!gather->due) {
        gather->due = true;
        /* After quiet it is as if it had waited enough. */
        gather->first = quiet ? now - gather->longest_wait : now;
        gather->since = now;
    }
    gather->any = true;
    gather->last = now;
}

int64_t gather_when(const struct gather *gather)
{
    if (!gather->due)
        return -1;
    const int64_t patient = gather->first + gather->longest_wait, settled = gather->last + gather->settle;
    const int64_t when = patient < settled ? patient : settled;
    return when > 0 ? when : 0;
}

void gather_taken(struct gather *gather)
{
    gather->taken = gather_since(gather);
    gather->due = false;
}

int64_t gather_since(const struct gather *gather)
{
    return gather->due ? gather->since : -1;
}

int64_t gather_taken_since(const struct gather *gather)
{
    return gather->taken;
}
