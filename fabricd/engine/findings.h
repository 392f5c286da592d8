/*
 * findings.h - the memory of what looks wrong: since when, how often it came, whether the operator knows.
 * What topo/changes/check.h finds in what is served comes here after each publication, and what the daemon
 * knows (scheduler_findings.c) whenever that changes.
 *
 * A finding is one as long as its identity is (topo/changes/check.h). When it goes it is remembered for
 * FINDINGS_QUIET more; comes it again meanwhile, it goes on, and its comings are counted. So the log and the
 * hook are told when it comes, when it goes, once more when it came again, and no more until it has been away
 * for FINDINGS_QUIET. An acknowledgement ends with its time, with the finding, or when the finding's state or
 * kind is another one.
 *
 * On the loop. Times are microseconds since 1970.
 */
#ifndef FABRICD_ENGINE_FINDINGS_H
#define FABRICD_ENGINE_FINDINGS_H

#include <jansson.h>

#include "fabricd/config/config.h"
#include "fabricd/store/store_tables.h"
#include "topo/changes/check.h"

#define FINDINGS_QUIET   (3600 * INT64_C(1000000))
#define FINDINGS_MAX_ACK (10 * 366 * 86400) /* seconds */

struct findings;

/* What the store remembers. The store and the settings outlive it. */
int findings_new(const struct config *config, struct store *store, struct findings **out,
                 struct fab_err *err);
void findings_free(struct findings *findings); /* NULL allowed */

/*
 * What is in these lists is all that looks wrong now. What comes and goes by this is logged and stored; rows
 * that the store does not take are tried again at the next look. tell: also kept for findings_news().
 * PMIXFAB_ERR_NOMEM: nothing has changed.
 */
int findings_look(struct findings *findings, const struct fab_findings *const *lists, uint32_t n_lists,
                  int64_t now, bool tell, struct fab_err *err);

/* Did the last look tell anything? */
bool findings_changed(const struct findings *findings);

/* What came and went since the last call, as findings_json() with "event" beside it: "came", "again", "gone",
 * "changed" or "unacked". A new reference; NULL: nothing. */
json_t *findings_news(struct findings *findings);

/* In so many microseconds time alone changes something; -1: it does not. */
int64_t findings_wait(const struct findings *findings, int64_t now);

/* One that is remembered. */
struct finding {
    struct store_finding row; /* its texts are ours */
    enum fab_check_kind kind;
    double share, all; /* as in struct fab_finding */
    struct fab_about_end end[2];
    uint64_t cause;           /* likewise */
    uint32_t switches, hosts; /* that hang on it */
    char *what;               /* "": it is not there, or was not found yet since the start */
    bool unsaved;
};

/* What looked wrong at the last look, gravest first; NULL behind the last. Valid until the next look. */
const struct finding *const *findings_all(const struct findings *findings, uint32_t *n);

json_t *findings_json(const struct finding *finding);

/* Where a finding stands in that order, as a text; and the number of the first one behind such a place.
 * False: the text is none. */
json_t *findings_place(const struct finding *finding);
bool findings_behind(const struct findings *findings, const char *place, uint32_t *out);

/*
 * Acknowledge for so many seconds (0: until it changes), or take that back: what is there and has an id that
 * begins so, is of this kind, or is about what is called so. So many in one call: *at is where in the list of
 * all it begins, with 0, and where the next call goes on; behind the last it is done. list: each is appended.
 * PMIXFAB_ERR_NOTFOUND: there is none at all; _RANGE; of the store, and then this call has changed nothing.
 */
#define FINDINGS_ACKS 1000
struct findings_ack {
    const char *which;
    bool cancel;
    int64_t seconds;
    unsigned uid;
};
int findings_ack(struct findings *findings, const struct findings_ack *ack, int64_t now, uint32_t *at,
                 json_t *list, struct fab_err *err);

/* How many of a kind are there; acked: of these the acknowledged ones, else the others. What hangs on an
 * acknowledged finding is acknowledged with it. */
uint32_t findings_count(const struct findings *findings, enum fab_check_kind kind, bool acked);

/* "errors", "warnings" and "notices" that are not acknowledged and hang on no other finding, how many are
 * "acknowledged", how many hang on another one ("folded"), and the gravest of the first ("worst"). */
json_t *findings_summary(const struct findings *findings);

#endif
