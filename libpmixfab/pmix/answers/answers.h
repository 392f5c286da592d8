/*
 * answers.h - answers to fabric requests and queries from a set of planes. The room answers is for every
 * process with snapshots and a PMIx server: fabricd, and the component in another process.
 */
#ifndef FAB_PMIX_ANSWERS_ANSWERS_H
#define FAB_PMIX_ANSWERS_ANSWERS_H

#include <pmix_server.h>
#include <stdbool.h>

#include "pmixfab.h"

#define ANSWERS_MAX_KEYS  1024 /* keys of one query; more get PMIX_ERR_OUT_OF_RESOURCE */
#define ANSWERS_MAX_LARGE 32   /* of them, keys with possibly large answers */

struct fab_answer_plane {
    const struct pmixfab *fab;
    struct pmixfab_plane info;
    const char *path; /* of its file */
};

/* The data for answers. Borrowed. */
struct fab_answer_set {
    const struct fab_answer_plane *planes; /* by index */
    uint32_t n;
    int stale;        /* PMIXFAB_KEY_STALE: 1 or 0; -1: unknown */
    bool with_bytes;  /* callers may be on other hosts and cannot map files: answers hold the snapshot */
    const char *host; /* the host of requests for a node that name none; NULL: the system's host name */
};

/* An answer that is independent of the set. */
struct fab_answered {
    pmix_status_t status;
    pmix_info_t *info; /* fab_answer_send() frees these with free() */
    size_t n, allocated;
};

/*
 * Answer. The requestor of a fabric request is recorded (plane_memory.h): call this from one thread at a
 * time.
 */
void fab_answer_fabric(const struct fab_answer_set *set, const pmix_proc_t *requestor,
                       pmix_fabric_operation_t op, const pmix_info_t directives[], size_t n,
                       struct fab_answered *out);
void fab_answer_query(const struct fab_answer_set *set, const pmix_query_t *queries, size_t n,
                      struct fab_answered *out);

/* Return the error of a query that is rejected for any set of planes, else PMIX_SUCCESS. */
pmix_status_t fab_answer_check(const pmix_query_t *queries, size_t n);

/* Call the callback, once and at once. The caller's library then owns the answer. */
void fab_answer_send(struct fab_answered *answered, pmix_info_cbfunc_t cbfunc, void *cbdata);

#endif
