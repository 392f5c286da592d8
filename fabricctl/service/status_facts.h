/*
 * status_facts.h - the daemon's state: what `status` says, and `top`.
 */
#ifndef FABRICCTL_SERVICE_STATUS_FACTS_H
#define FABRICCTL_SERVICE_STATUS_FACTS_H

#include "fabricctl/core/ctl_control.h"
#include "fabricctl/core/source.h"

/*
 * As `fabricctl --format json status`, with no row in `planes`; a new reference, NULL without memory. Asks
 * the daemon for at most so many seconds; why it says nothing is in `why` then, else "".
 */
json_t *ctl_status_facts(const struct ctl *ctl, const struct ctl_view *view, int seconds,
                         char why[static CTL_WHY_SIZE]);

/* status --check: one line (as text), and the exit status that monitoring plugins have: 0, 1 for warnings, 2
 * for errors, and where the daemon does not answer, which `why` says. */
enum ctl_exit ctl_status_monitor(const struct ctl *ctl, const json_t *facts, const char *why);

#endif
