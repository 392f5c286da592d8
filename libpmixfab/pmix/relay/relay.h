/*
 * relay.h - the protocol between a relay and fabricd, which uses PMIx_Lookup(). The only key is the request.
 * The info array has the content of the request. Each attribute of the answer is one published value. The
 * room relay is for code that connects to another PMIx server.
 */
#ifndef FAB_PMIX_RELAY_RELAY_H
#define FAB_PMIX_RELAY_RELAY_H

#include <pmix_server.h>
#include <stdbool.h>

#include "pmixfab.h"

/* Requests. The directives of a register and an update are the info array. */
#define RELAY_REGISTER  "pmixfab.relay.register"
#define RELAY_UPDATE    "pmixfab.relay.update"
#define RELAY_QUERY     "pmixfab.relay.query"     /* info: RELAY_QUERIES */
#define RELAY_SUBSCRIBE "pmixfab.relay.subscribe" /* info: the known state; none: answer at once */

#define RELAY_QUERIES "pmixfab.relay.queries" /* PMIX_DATA_ARRAY of PMIX_QUERY */

/* The first info of a register and an update: PMIX_PROC, the relay's client that sends it. */
#define RELAY_REQUESTOR "pmixfab.relay.requestor"

/*
 * A subscription is answered when the published state differs from the watcher's PMIXFAB_KEY_GENERATION and
 * FAB_KEY_PUBLISHED, or from its PMIXFAB_KEY_STALE if given, or after RELAY_SUBSCRIBE_SECONDS. The answer:
 * these three values and, if there are planes, three arrays of one length.
 */
#define RELAY_SUBSCRIBE_SECONDS 20
#define RELAY_INDICES           "pmixfab.relay.indices"     /* PMIX_DATA_ARRAY of PMIX_SIZE */
#define RELAY_GENERATIONS       "pmixfab.relay.generations" /* PMIX_DATA_ARRAY of PMIX_UINT64 */
#define RELAY_NAMES             "pmixfab.relay.names"       /* PMIX_DATA_ARRAY of PMIX_STRING */
#define RELAY_MAX_PLANES        4096

/*
 * A node of fabricd before 1.0 delivers its report with this. Nodes have a channel of their own now, so the
 * answer contains instructions: RELAY_CODE, RELAY_REASON and RELAY_DIGEST.
 */
#define RELAY_DELIVER "pmixfab.relay.deliver"
#define RELAY_CODE    "pmixfab.relay.code"   /* int32_t: enum pmixfab_err */
#define RELAY_REASON  "pmixfab.relay.reason" /* string */
#define RELAY_DIGEST  "pmixfab.relay.digest" /* uint64_t: 0 */

/*
 * Return whether the running library can serve a relay. PMIXFAB_ERR_UNSUPPORTED: it has bugs (relay_tags.h),
 * and it is not the version that libpmixfab was built for, or the repair was not tested with it. Every
 * version from 6.1.1 on is supported. With FABRICD_NO_REPAIR=1 in the environment nothing is rejected or
 * repaired. PMIx need not be initialized.
 */
int relay_check_library(void);

/* ---- reading answers ---------------------------------------------------------------------------- */

/*
 * Make an info array of the answer to a register, update or query. Free it with PMIX_INFO_FREE. Values are
 * moved out of `data`, which the caller still frees. `whole`: the answer must have everything that a fabric
 * object needs. PMIX_ERR_UNPACK_FAILURE: not a valid answer of fabricd.
 */
pmix_status_t relay_decode(pmix_pdata_t *data, size_t n, bool whole, pmix_info_t **info, size_t *ninfo);

/* A plane of the scheduler, as in the answer to a subscription. */
struct relay_plane {
    size_t index;
    uint64_t generation;
    char name[64];
};
struct relay_news {
    uint64_t generation;
    int64_t published;
    uint32_t n;
    struct relay_plane *planes; /* to be freed with free() */
    bool stale;                 /* reported by the scheduler */
};
pmix_status_t relay_decode_news(const pmix_pdata_t *data, size_t n, struct relay_news *out);

/* Write the planes that differ from before to after, removed ones included, to *out (free it with free()). */
int relay_changed(const struct relay_news *before, const struct relay_news *after, struct relay_plane **out,
                  uint32_t *n);

#endif
