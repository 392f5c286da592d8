/*
 * node_mirror.h - a node's copy of the scheduler's snapshots: served, and in the run directory.
 *
 * Snapshots of an earlier process are served at once, marked stale until the scheduler confirms them. Each
 * plane is fetched whole, checked, and put in place with the others of its generation. All on the loop.
 */
#ifndef FABRICD_NODE_NODE_MIRROR_H
#define FABRICD_NODE_NODE_MIRROR_H

#include "fabricd/channel/channel.h"
#include "fabricd/config/config.h"
#include "fabricd/serving/plane_ref.h"
#include "fabricd/serving/served.h"

struct mirror;

struct mirror_calls {
    /* Snapshots of planes are about to be replaced (pending), or were: announce it, then call
     * next(next_cbdata). */
    void (*changes)(bool pending, const struct event_plane *planes, uint32_t n, uint64_t generation,
                    void (*next)(void *cbdata), void *next_cbdata, void *cbdata);
    /* Another set is served, and its files are in place. */
    void (*served)(void *cbdata);
    /* The scheduler's generation is in place (0), or the error; after an error the next news start a retry.
     */
    void (*done)(int code, const char *reason, void *cbdata);
    void *cbdata;
};

/* Create the mirror, and serve the snapshots of the run directory in `served`. */
int mirror_new(struct event_base *base, const struct config *config, struct channel_client *client,
               const struct mirror_calls *calls, struct served *served, struct mirror **out,
               struct fab_err *err);
void mirror_free(struct mirror *mirror); /* NULL allowed */

/* Note the scheduler's news; the mirror follows after a random delay. */
void mirror_news(struct mirror *mirror, const struct channel_news *news);

/* Return whether a generation is being fetched. */
bool mirror_is_busy(const struct mirror *mirror);
/* Return the newest generation that is in place and announced; 0: no generation is. */
uint64_t mirror_announced(const struct mirror *mirror);

#endif
