/*
 * report_debounce.h - when to publish changed reports.
 *
 * After a change of one known host the quiet time is short. If several hosts change or new ones appear, more
 * will follow, and a longer quiet time makes one generation of them. The limit is three times the quiet time.
 */
#ifndef FABRICD_SOURCES_REPORT_DEBOUNCE_H
#define FABRICD_SOURCES_REPORT_DEBOUNCE_H

#include <event2/event.h>
#include <stdbool.h>

#include "fabricd/config/config.h"

struct report_debounce;

/* fn is called on the loop when a publication is due; nothing is due afterwards. */
int report_debounce_new(struct event_base *base, const struct config *config, void (*fn)(void *cbdata),
                        void *cbdata, struct report_debounce **out);
void report_debounce_free(struct report_debounce *debounce); /* NULL allowed */

/* Note that this host's report has changed, or is its first. */
void report_debounce_changed(struct report_debounce *debounce, const char *host, bool is_new);

/* Return whether a publication is due. */
bool report_debounce_is_due(const struct report_debounce *debounce);

/* Note the publication: nothing is due any more. */
void report_debounce_done(struct report_debounce *debounce);

#endif
