/*
 * findings.h - the room of what looks wrong in the fabric: its commands.
 */
#ifndef FABRICCTL_FINDINGS_FINDINGS_H
#define FABRICCTL_FINDINGS_FINDINGS_H

#include "fabricctl/core/ctl.h"

enum ctl_exit ctl_check(const struct ctl *ctl);
enum ctl_exit ctl_counters(const struct ctl *ctl);

#endif
