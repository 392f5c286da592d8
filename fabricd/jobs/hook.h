/*
 * hook.h - a program of the site's that is told of each published generation, and of what looks wrong and did
 * not before: the change as JSON on its standard input.
 *
 * One at a time, in order. While one runs further generations wait, the oldest are left out when there are
 * too many. Nothing waits for a hook, and what becomes of it is a line in the log. On the loop.
 */
#ifndef FABRICD_JOBS_HOOK_H
#define FABRICD_JOBS_HOOK_H

#include <event2/event.h>
#include <jansson.h>

#include "fabricd/base/counts.h"
#include "fabricd/process/child.h"
#include "fabricd/serving/plane_ref.h"

#define HOOK_WAITING 64 /* generations */

struct store;
struct hooks;

/* config->hook may be empty: then hooks_tell() does nothing. The changes are read from the store. */
int hooks_new(struct event_base *base, const struct config *config, struct counts *counts,
              struct store *store, struct hooks **out, struct fab_err *err);
void hooks_free(struct hooks *hooks); /* NULL allowed; kills the one that runs */

/* What was published, and when (microseconds since 1970); what came and went of what looks wrong. */
struct hook_news {
    uint64_t generation; /* the newest */
    int64_t published;
    bool changed;                     /* that one is new: */
    const struct event_plane *planes; /* with these, which are copied */
    uint32_t n;
    json_t *findings; /* an array, whose reference is taken; NULL: none */
};
/* Nothing changed and no finding: nothing is told. hooks may be NULL. */
void hooks_tell(struct hooks *hooks, const struct hook_news *news);
/* Start a program of the site's with these words; its environment says where the daemon is found and what it
 * serves, so that the program can ask more with fabricctl. */
int hook_start_program(struct event_base *base, const struct config *config, uint64_t generation,
                       const struct config_list *words, struct child_order order, struct child **out,
                       struct fab_err *err);

/* Does one run or wait? hooks may be NULL. */
bool hooks_busy(const struct hooks *hooks);

/* Is there a hook? */
bool hooks_wanted(const struct hooks *hooks);

#endif
