/*
 * relay.h - the room of those who talk to another PMIx server: a relaying server and fabricd talk by
 * PMIx_Lookup(): the one key that is looked up is the request, the info array carries the request's subject,
 * and each attribute of the answer is one published value.
 */
#ifndef FAB_PMIX_RELAY_RELAY_H
#define FAB_PMIX_RELAY_RELAY_H

#include <pmix_server.h>
#include <stdbool.h>

#include "pmixfab.h"

/* Requests. The directives of a register and an update are the info array. */
#define RELAY_REGISTER "pmixfab.relay.register"
#define RELAY_UPDATE   "pmixfab.relay.update"
#define RELAY_QUERY    "pmixfab.relay.query" /* info: RELAY_QUERIES */
#define RELAY_SUBSCRIBE                                                                                      \
    "pmixfab.relay.subscribe" /* info: what is known, see below; nothing: answer at once */

#define RELAY_QUERIES "pmixfab.relay.queries" /* PMIX_DATA_ARRAY of PMIX_QUERY */

/* The first info of a register and an update: PMIX_PROC, the relay's client that asks. */
#define RELAY_REQUESTOR "pmixfab.relay.requestor"

/*
 * A subscription is answered when something else is published than the PMIXFAB_KEY_GENERATION and
 * FAB_KEY_PUBLISHED that the watcher knows, when PMIXFAB_KEY_STALE is not what it says (if it does), or after
 * RELAY_SUBSCRIBE_SECONDS. The answer: the three of the published set, and, where there are planes, three
 * arrays of one length.
 */
#define RELAY_SUBSCRIBE_SECONDS 20
#define RELAY_INDICES           "pmixfab.relay.indices"     /* PMIX_DATA_ARRAY of PMIX_SIZE */
#define RELAY_GENERATIONS       "pmixfab.relay.generations" /* PMIX_DATA_ARRAY of PMIX_UINT64 */
#define RELAY_NAMES             "pmixfab.relay.names"       /* PMIX_DATA_ARRAY of PMIX_STRING */
#define RELAY_MAX_PLANES        4096

/*
 * With this a node of fabricd before 1.0 hands over its report. Nodes have a channel of their own now, so it
 * is answered with what to do: RELAY_CODE, RELAY_REASON and RELAY_DIGEST.
 */
#define RELAY_DELIVER "pmixfab.relay.deliver"
#define RELAY_CODE    "pmixfab.relay.code"   /* int32_t: enum pmixfab_err */
#define RELAY_REASON  "pmixfab.relay.reason" /* string */
#define RELAY_DIGEST  "pmixfab.relay.digest" /* uint64_t: 0 */

/*
 * Can the running library serve a relay? PMIXFAB_ERR_UNSUPPORTED: it has holes (relay_tags.h), and is another
 * version than libpmixfab was built for, or one that the repair was not tried with. Any from 6.1.1 on will
 * do. With FABRICD_NO_REPAIR=1 in the environment nothing is refused, nor repaired. PMIx need not be
 * initialized.
 */
int relay_check_library(void);

/* ---- reading answers ---------------------------------------------------------------------------- */

/*
 * The answer to a register, update or query as an info array (free with PMIX_INFO_FREE); values are moved out
 * of `data`, which stays the caller's to free. `whole`: everything that a fabric object needs must be there.
 * PMIX_ERR_UNPACK_FAILURE: not what a fabricd says.
 */
pmix_status_t relay_decode(pmix_pdata_t *data, size_t n, bool whole, pmix_info_t **info, size_t *ninfo);

/* What a scheduler serves, as a subscription tells it. */
struct relay_plane {
    size_t index;
    uint64_t generation;
    char name[64];
};
struct relay_news {
    uint64_t generation;
    int64_t published;
    uint32_t n;
    struct relay_plane *planes; /* free with free() */
    bool stale;                 /* the scheduler says it of itself */
};
pmix_status_t relay_decode_news(const pmix_pdata_t *data, size_t n, struct relay_news *out);

/*
 * The planes that differ from before to after, those that are gone included, into *out (free with free()).
 */
int relay_changed(const struct relay_news *before, const struct relay_news *after, struct relay_plane **out,
                  uint32_t *n);

#endif
