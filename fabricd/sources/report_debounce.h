/*
 * report_debounce.h - when it is time to publish what hosts report.
 *
 * After one known host's change it is quiet soon; where several change or new ones come, more will follow,
 * and a longer quiet makes one generation of them. Three times the quiet is waited for at most.
 */
#ifndef FABRICD_SOURCES_REPORT_DEBOUNCE_H
#define FABRICD_SOURCES_REPORT_DEBOUNCE_H

#include <event2/event.h>
#include <stdbool.h>

#include "fabricd/config/config.h"

struct report_debounce;

/* fn is called on the loop when it is time: then nothing is due any more. */
int report_debounce_new(struct event_base *base, const struct config *config, void (*fn)(void *cbdata),
                        void *cbdata, struct report_debounce **out);
void report_debounce_free(struct report_debounce *debounce); /* NULL allowed */

/* This host's report is another one, or its first. */
void report_debounce_changed(struct report_debounce *debounce, const char *host, bool is_new);

/* Is something due? */
bool report_debounce_is_due(const struct report_debounce *debounce);

/* Nothing is due any more. */
void report_debounce_done(struct report_debounce *debounce);

#endif
