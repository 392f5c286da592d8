/*
 * findings.h - the room that keeps what looks wrong: what topo/check finds in what is served, and what the
 * daemon knows otherwise.
 *
 * On the loop.
 */
#ifndef FABRICD_FINDINGS_FINDINGS_H
#define FABRICD_FINDINGS_FINDINGS_H

#include "topo/check/check.h"

struct findings;
struct findings *findings_new(void);           /* NULL: out of memory */
void findings_free(struct findings *findings); /* NULL allowed */

/*
 * What is known of a kind otherwise than by the inventory: all of it, in place of what was said of this kind
 * before. The list, made with fab_findings_add(), is taken over and is empty afterwards; an empty one says
 * that nothing is wrong any more. A kind of these is not looked for by topo/check.
 */
void findings_replace(struct findings *findings, enum fab_check_kind kind, struct fab_findings *list);

/* All that looks wrong now, in order: what was found in what is served, and the above. *out is initialised
 * here. PMIXFAB_ERR_NOMEM. */
int findings_now(const struct findings *findings, const struct fab_findings *served,
                 struct fab_findings *out);

#endif
