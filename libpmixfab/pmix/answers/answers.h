/*
 * answers.h - what is answered to fabric requests and queries, from a set of planes. The room answers is for
 * whoever has snapshots and a PMIx server: fabricd, and the component in another's process.
 */
#ifndef FAB_PMIX_ANSWERS_ANSWERS_H
#define FAB_PMIX_ANSWERS_ANSWERS_H

#include <pmix_server.h>
#include <stdbool.h>

#include "pmixfab.h"

#define ANSWERS_MAX_KEYS  1024 /* of one query; more get PMIX_ERR_OUT_OF_RESOURCE */
#define ANSWERS_MAX_LARGE 32   /* of them those whose answers may be large */

struct fab_answer_plane {
    const struct pmixfab *fab;
    struct pmixfab_plane info;
    const char *path; /* of its file */
};

/* What there is to answer from. Lent. */
struct fab_answer_set {
    const struct fab_answer_plane *planes; /* by index */
    uint32_t n;
    int stale;        /* PMIXFAB_KEY_STALE: 1 or 0; -1: not known */
    bool with_bytes;  /* callers may be on other hosts, which cannot map files: answers hold the snapshot */
    const char *host; /* whom a question is about that asks for a node's and names none; NULL: the system's */
};

/* An answer that holds nothing of the set. */
struct fab_answered {
    pmix_status_t status;
    pmix_info_t *info; /* these are free()d by fab_answer_send() */
    size_t n, allocated;
};

/* Fabric requests are noted down by requestor (plane_memory.h): one of these at a time. */
void fab_answer_fabric(const struct fab_answer_set *set, const pmix_proc_t *requestor,
                       pmix_fabric_operation_t op, const pmix_info_t directives[], size_t n,
                       struct fab_answered *out);
void fab_answer_query(const struct fab_answer_set *set, const pmix_query_t *queries, size_t n,
                      struct fab_answered *out);

/* The error of questions that are refused whatever is served; else PMIX_SUCCESS. */
pmix_status_t fab_answer_check(const pmix_query_t *queries, size_t n);

/* Calls back, once, and at once. The answer belongs to the caller's library then. */
void fab_answer_send(struct fab_answered *answered, pmix_info_cbfunc_t cbfunc, void *cbdata);

#endif
