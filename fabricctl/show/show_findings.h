/*
 * show_findings.h - the room of what looks wrong in the fabric: its commands.
 */
#ifndef FABRICCTL_SHOW_SHOW_FINDINGS_H
#define FABRICCTL_SHOW_SHOW_FINDINGS_H

#include <jansson.h>

#include "fabricctl/core/ctl.h"

enum ctl_exit ctl_check(const struct ctl *ctl);
enum ctl_exit ctl_counters(const struct ctl *ctl);
enum ctl_exit ctl_ack(const struct ctl *ctl);

/* 1 notice, 2 warning, 3 error; 0: it is none. NULL allowed. */
int ctl_severity(const char *name);

/* "1 error, 2 warnings", "none"; of `findings` in the daemon's status. */
#define CTL_FINDINGS_WORDS 120
const char *ctl_findings_words(const json_t *summary, char text[static CTL_FINDINGS_WORDS]);

#endif
