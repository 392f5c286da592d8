/*
 * flaps.h - what came and went from one sweep to the next, as it counts for what is held down (hold.h).
 *
 * A cable counts by itself. A switch that goes altogether (it had two cables or more, and has none), or comes
 * so, is one change of the switch, and none of its cables: they went because of it. Nor is it counted when
 * such a cable comes back later than the switch, or went before it, within the window. Where all that it was
 * cabled to goes or comes as well, it is not counted either: it was only behind what did. What an operator
 * has announced is not counted at all.
 */
#ifndef FABRICD_FLAPS_H
#define FABRICD_FLAPS_H

#include "fabricd/hold.h"
#include "pmixfab.h"

/* A cable that is up, and which of its ends are at switches. */
struct flaps_cable {
    struct hold_key key;
    bool end_is_switch, far_is_switch;
};

/* Those of a sweep, by their keys. */
struct flaps_seen {
    struct flaps_cable *cables; /* its own */
    uint32_t n;
    bool known; /* there was a sweep */
};
void flaps_seen_free(struct flaps_seen *seen);

struct flaps_calls {
    /* Has a swap of this node been announced, or of its host? */
    bool (*is_planned)(uint64_t guid, void *cbdata);
    /* From now on it is held. */
    void (*on_held)(const struct hold_key *key, void *cbdata);
    void *cbdata;
};

/*
 * Count what is different in *now from *before (nothing, where that is not known), which takes its place, and
 * *now is emptied. PMIXFAB_ERR_NOMEM: as it was.
 */
int flaps_count(struct hold *hold, struct flaps_seen *before, struct flaps_seen *now, int64_t when,
                const struct flaps_calls *calls);

#endif
