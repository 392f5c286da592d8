/* memory.h - shared by the files of findings only. */
#ifndef FABRICD_ENGINE_MEMORY_H
#define FABRICD_ENGINE_MEMORY_H

#include "fabricd/engine/findings.h"

#define FINDINGS_AGAIN (60 * INT64_C(1000000)) /* until the store is tried again */

struct findings {
    const struct config *config;
    struct store *store;
    struct fab_findings otherwise[FAB_CHECK_KINDS]; /* known of each kind, not by the inventory */
    struct finding **all;                           /* by id */
    struct finding **there;                         /* of them those that are there, in order */
    uint32_t n, n_there;
    struct store_finding *dropped; /* that the store may still have; only their ids */
    uint32_t n_dropped, cap_dropped;
    json_t *news;
    uint32_t told[FAB_SEVERITY_ERROR + 1]; /* of this look, by severity */
    bool tell;
    bool changed; /* the last look told something */
    bool unsaved; /* the store did not take the last look: told */
};

enum finding_event { FINDING_CAME, FINDING_AGAIN, FINDING_GONE, FINDING_CHANGED, FINDING_UNACKED };

/* ---- findings_tell.c ---- */

/* To the log, and kept for the hook. */
void findings_tell(struct findings *findings, const struct finding *finding, enum finding_event event);
/* The look is over. */
void findings_told(struct findings *findings);

/* ---- findings_store.c ---- */

struct finding *finding_new(uint64_t id, enum fab_check_kind kind, const char *place); /* NULL: no memory */
void finding_free(struct finding *finding);                                            /* NULL allowed */
int findings_load(struct findings *findings, struct fab_err *err);
/* What the store does not have yet. */
int findings_save(struct findings *findings, struct fab_err *err);

#endif
