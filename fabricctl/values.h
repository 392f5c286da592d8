/*
 * values.h - values of options into what was asked. Each tells what is wrong with a value.
 */
#ifndef FABRICCTL_VALUES_H
#define FABRICCTL_VALUES_H

#include "fabricctl/core/ctl.h"

enum ctl_exit ctl_set_format(struct ctl *ctl, const char *text);
enum ctl_exit ctl_set_json(struct ctl *ctl, const char *text);
enum ctl_exit ctl_set_limit(struct ctl *ctl, const char *text);
enum ctl_exit ctl_set_time(struct ctl *ctl, const char *text);
enum ctl_exit ctl_set_since(struct ctl *ctl, const char *text);
enum ctl_exit ctl_set_severity(struct ctl *ctl, const char *text);

/* --values, for completion: a line for each value that an option ("--format") or the arguments of a command
 * ("show") can have. */
enum ctl_exit ctl_print_values(const struct ctl *ctl, const char *of);

#endif
