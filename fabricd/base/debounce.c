#include "fabricd/base/debounce.h"

void debounce_init(struct debounce *debounce, int64_t quiet, int64_t debounce_max)
{
    *debounce = (struct debounce){.quiet = quiet, .debounce_max = debounce_max, .taken = -1};
}

void debounce_changed(struct debounce *debounce, int64_t now)
{
    const bool at_once = !debounce->more_follow && (!debounce->any || now - debounce->last > debounce->quiet);
    if (!debounce->due) {
        debounce->due = true;
        /* After quiet it is as if it had waited enough. */
        debounce->first = at_once ? now - debounce->debounce_max : now;
        debounce->since = now;
    }
    debounce->any = true;
    debounce->last = now;
}

int64_t debounce_when(const struct debounce *debounce)
{
    if (!debounce->due)
        return -1;
    const int64_t patient = debounce->first + debounce->debounce_max,
                  settled = debounce->last + debounce->quiet;
    const int64_t when = patient < settled ? patient : settled;
    return when > 0 ? when : 0;
}

void debounce_covered(struct debounce *debounce)
{
    debounce->taken = debounce_since(debounce);
    debounce->due = false;
}

int64_t debounce_since(const struct debounce *debounce)
{
    return debounce->due ? debounce->since : -1;
}

int64_t debounce_covered_since(const struct debounce *debounce)
{
    return debounce->taken;
}
