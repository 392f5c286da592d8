/*
 * flap_count.h - what came and went from one sweep to the next, as it counts for what is suppressed
 * (damping.h).
 *
 * A cable counts by itself. A switch that goes altogether (it had two cables or more, and has none), or comes
 * so, is one change of the switch, and none of its cables: they went because of it. Nor is it counted when
 * such a cable comes back later than the switch, or went before it, within the window. Where all that it was
 * cabled to goes or comes as well, it is not counted either: it was only behind what did. What an operator
 * has announced is not counted at all.
 */
#ifndef FABRICD_ENGINE_FLAP_COUNT_H
#define FABRICD_ENGINE_FLAP_COUNT_H

#include "fabricd/engine/damping.h"
#include "pmixfab.h"

/* A cable that is up, and which of its ends are at switches. */
struct transition_cable {
    struct damping_key key;
    bool end_is_switch, far_is_switch;
};

/* Those of a sweep, by their keys. */
struct sweep_links {
    struct transition_cable *cables; /* its own */
    uint32_t n;
    bool known; /* there was a sweep */
};
void sweep_links_free(struct sweep_links *seen);

struct transition_calls {
    /* Has a swap of this node been announced, or of its host? */
    bool (*is_planned)(uint64_t guid, void *cbdata);
    /* From now on it is suppressed. */
    void (*on_suppressed)(const struct damping_key *key, void *cbdata);
    void *cbdata;
};

/*
 * Count what is different in *now from *before (nothing, where that is not known), which takes its place, and
 * *now is emptied. PMIXFAB_ERR_NOMEM: as it was.
 */
int transition_count(struct damping *damping, struct sweep_links *before, struct sweep_links *now,
                     int64_t when, const struct transition_calls *calls);

#endif
