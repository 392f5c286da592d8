/* snapshot_answers.h - requests and queries, answered from the snapshots of a run directory. */
#ifndef FAB_PMIX_RUNDIR_SNAPSHOT_ANSWERS_H
#define FAB_PMIX_RUNDIR_SNAPSHOT_ANSWERS_H

#include "pmix/answers/answers.h"
#include "pmix/rundir/snapshots.h"
#include "topo/base/error.h"

/*
 * Of a request with its directives, or of n queries where there are queries. The answer holds nothing of the
 * snapshots: these are given back before anybody is called back, who may ask again. host: as in struct
 * fab_answer_set. Status PMIX_ERR_UNREACH: there is no snapshot that can be read, and err says why.
 */
void rundir_answer(struct rundir_snapshots *snapshots, const char *host, const pmix_proc_t *requestor,
                   pmix_fabric_operation_t op, const pmix_info_t *directives, const pmix_query_t *queries,
                   size_t n, struct fab_answered *out, struct fab_err *err);

#endif
