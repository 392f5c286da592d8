/*
 * status_facts.h - the daemon's state: what `status` says, and `top`.
 */
#ifndef FABRICCTL_SERVICE_STATUS_FACTS_H
#define FABRICCTL_SERVICE_STATUS_FACTS_H

#include "fabricctl/core/control.h"
#include "fabricctl/core/source.h"

/*
 * As `fabricctl --format json status`, with no row in `planes`; a new reference, NULL without memory. Asks
 * the daemon for at most so many seconds; why it says nothing is in `why` then, else "".
 */
json_t *ctl_status_facts(const struct ctl *ctl, const struct ctl_view *view, int seconds,
                         char why[static CTL_WHY_SIZE]);

#endif
