/* store_history_digest.h - is the history as it was published? */
#ifndef FABRICD_STORE_STORE_HISTORY_DIGEST_H
#define FABRICD_STORE_STORE_HISTORY_DIGEST_H

#include "fabricd/store/store_tables.h"

struct store_history_checked {
    uint64_t checked; /* generations */
    uint64_t without; /* the first ones, of a fabricd without digests, which cannot be checked */
};

/*
 * Compare each generation with its digest, to the newest, which has to be there. PMIXFAB_ERR_CORRUPT: err
 * names the first one that is not as it was. progress is called now and then; false gives up (_TIMEOUT).
 */
int store_history_check(struct store *store, uint64_t newest, bool (*progress)(uint64_t done, void *cbdata),
                        void *cbdata, struct store_history_checked *out, struct fab_err *err);

#endif
