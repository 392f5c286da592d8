/*
 * findings.h - the list of findings. For each finding it stores the time of its start, how often it came, and
 * whether it is acknowledged. After each publication the list gets the findings of topo/changes/check.h in
 * the served state. At each change it gets the findings of the daemon itself (scheduler_findings.c).
 *
 * A finding is the same as long as its identity is (topo/changes/check.h). When it goes, it stays in the list
 * for FINDINGS_QUIET. If it comes again within that time, it continues, and its comings are counted. The log
 * and the hook get its first coming, its going, and one more line when it comes again. After that they get
 * nothing until the finding has been absent for FINDINGS_QUIET. An acknowledgement ends with its time, with
 * the finding, or when the finding's state or kind changes.
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

/* Load the stored findings. The store and the settings outlive the handle. */
int findings_new(const struct config *config, struct store *store, struct findings **out,
                 struct fab_err *err);
void findings_free(struct findings *findings); /* NULL allowed */

/*
 * Process a check: these lists are all present findings. Those that come and go are logged and stored; rows
 * that the store rejects are stored at the next check. tell: also store the events for findings_news().
 * PMIXFAB_ERR_NOMEM: nothing has changed.
 */
int findings_look(struct findings *findings, const struct fab_findings *const *lists, uint32_t n_lists,
                  int64_t now, bool tell, struct fab_err *err);

/* Return whether the last check reported an event. */
bool findings_changed(const struct findings *findings);

/* Return the events since the last call, as findings_json() with a member "event": "came", "again", "gone",
 * "changed" or "unacked". A new reference; NULL: none. */
json_t *findings_news(struct findings *findings);

/* Return the microseconds until time alone changes a finding; -1: never. */
int64_t findings_wait(const struct findings *findings, int64_t now);

/* A remembered finding. */
struct finding {
    struct store_finding row; /* it owns its texts */
    enum fab_check_kind kind;
    double share, all; /* as in struct fab_finding */
    struct fab_about_end end[2];
    uint64_t cause;           /* as in struct fab_finding */
    uint32_t switches, hosts; /* numbers of those behind it */
    char *what;               /* "": it is absent, or was not found since the start */
    bool unsaved;
};

/* Return the findings of the last check, gravest first, terminated by NULL. Valid until the next check. */
const struct finding *const *findings_all(const struct findings *findings, uint32_t *n);

json_t *findings_json(const struct finding *finding);

/*
 * Return a finding's place in that order as text. The second function sets the number of the first finding
 * after such a place. False: the text is invalid.
 */
json_t *findings_place(const struct finding *finding);
bool findings_behind(const struct findings *findings, const char *place, uint32_t *out);

/*
 * Acknowledge findings for so many seconds (0: until they change), or cancel that. which: the beginning of an
 * id, a kind, or the name of an object. One call processes FINDINGS_ACKS findings. *at is the place in the
 * list of all findings where the call begins, 0 at first. It becomes the place where the next call continues.
 * The work is done at the end of the list. Each processed finding is appended to `list`.
 * PMIXFAB_ERR_NOTFOUND: there is no such finding; _RANGE; errors of the store: this call has changed nothing.
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

/*
 * Return the number of present findings of a kind. acked: count the acknowledged findings, else count the
 * others. A finding that another one caused is acknowledged with it.
 */
uint32_t findings_count(const struct findings *findings, enum fab_check_kind kind, bool acked);

/*
 * Return the counts of findings. "errors", "warnings" and "notices" count the findings that are not
 * acknowledged and have no other cause. "worst" is the gravest of these findings. "acknowledged" counts the
 * acknowledged findings, "folded" those with another cause.
 */
json_t *findings_summary(const struct findings *findings);

#endif
