/*
 * hook.h - run a program of the site for each published generation, and for new findings. The program gets
 * the change as JSON on its standard input.
 *
 * Hooks run one at a time, in order. Meanwhile further generations wait. If too many wait, some are skipped.
 * The daemon does not wait for a hook, and logs its result. All functions run on the loop.
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

/* config->hook may be empty: hooks_tell() then does nothing. The changes are read from the store. */
int hooks_new(struct event_base *base, const struct config *config, struct counts *counts,
              struct store *store, struct hooks **out, struct fab_err *err);
void hooks_free(struct hooks *hooks); /* NULL allowed; kills a running hook */

/* The published change and its time (microseconds since 1970); the findings that came and went. */
struct hook_news {
    uint64_t generation; /* the newest */
    int64_t published;
    bool changed;                     /* the generation is new: */
    const struct event_plane *planes; /* its planes, which are copied */
    uint32_t n;
    json_t *findings; /* an array, whose reference is taken; NULL: none */
};
/* Run the hook for these news. Without a change and a finding nothing is run. hooks may be NULL. */
void hooks_tell(struct hooks *hooks, const struct hook_news *news);
/* Start a program of the site with these words. Its environment has the daemon's address and its generation,
 * so that the program can use fabricctl. */
int hook_start_program(struct event_base *base, const struct config *config, uint64_t generation,
                       const struct config_list *words, struct child_order order, struct child **out,
                       struct fab_err *err);

/* Return whether a hook runs or waits. hooks may be NULL. */
bool hooks_busy(const struct hooks *hooks);

/* Return whether a hook is configured. */
bool hooks_wanted(const struct hooks *hooks);

#endif
