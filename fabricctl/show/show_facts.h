/*
 * show_facts.h - what is known of a device, fact by fact, with who says so.
 */
#ifndef FABRICCTL_SHOW_SHOW_FACTS_H
#define FABRICCTL_SHOW_SHOW_FACTS_H

#include <jansson.h>

#include "fabricctl/core/ctl.h"

/* An array of objects: kind, text, sources (array), chosen, conflict, estimate. NULL without memory. */
json_t *ctl_facts_json(const struct pmixfab *fab, uint32_t device);

/*
 * For people: the device, and a line for each fact that is believed: kind, text, sources, and in brackets
 * what others say and whether it is an estimate. A device of which nothing is known gets no lines.
 */
void ctl_facts_print(const struct pmixfab *fab, const char *plane, uint32_t device);

#endif
