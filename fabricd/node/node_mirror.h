/*
 * node_mirror.h - a node's copy of what the scheduler publishes: in service, and in the run directory.
 *
 * What stands in the run directory from before is served at once; it is stale until the scheduler has said
 * that it is still so. Each plane is fetched whole, checked, and put in place with the others of its
 * generation. All on the loop.
 */
#ifndef FABRICD_NODE_NODE_MIRROR_H
#define FABRICD_NODE_NODE_MIRROR_H

#include "fabricd/channel/channel.h"
#include "fabricd/config/config.h"
#include "fabricd/serving/plane_ref.h"
#include "fabricd/serving/served.h"

struct mirror;

struct mirror_calls {
    /* Snapshots of planes are about to be replaced (pending), or were: tell it, then call next(next_cbdata).
     */
    void (*changes)(bool pending, const struct event_plane *planes, uint32_t n, uint64_t generation,
                    void (*next)(void *cbdata), void *next_cbdata, void *cbdata);
    /* Another set is being served: its files are in place. */
    void (*served)(void *cbdata);
    /* What the scheduler published is in place (0), or why it is not; it is tried again with the next news.
     */
    void (*done)(int code, const char *reason, void *cbdata);
    void *cbdata;
};

/* Serves what stands in the run directory, in `served`. */
int mirror_new(struct event_base *base, const struct config *config, struct channel_client *client,
               const struct mirror_calls *calls, struct served *served, struct mirror **out,
               struct fab_err *err);
void mirror_free(struct mirror *mirror); /* NULL allowed */

/* What the scheduler serves, as it says itself; after a random delay the mirror follows. */
void mirror_news(struct mirror *mirror, const struct channel_news *news);

/* Is a generation on its way here? */
bool mirror_is_busy(const struct mirror *mirror);
/* The newest generation that is in place and announced; 0: none. */
uint64_t mirror_announced(const struct mirror *mirror);

#endif
