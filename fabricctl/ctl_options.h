/*
 * ctl_options.h - private to the command line: values of options. Each function reads the text of one option
 * into the request, and reports a text that is no such value.
 */
#ifndef FABRICCTL_CTL_OPTIONS_H
#define FABRICCTL_CTL_OPTIONS_H

#include "fabricctl/core/ctl.h"

enum ctl_exit ctl_set_format(struct ctl *ctl, const char *text);
enum ctl_exit ctl_set_json(struct ctl *ctl, const char *text);
/* Print the values that an option ("--format") or the arguments of a command ("show") can have, one a line.
 */
enum ctl_exit ctl_print_values(const struct ctl *ctl, const char *of);
enum ctl_exit ctl_set_limit(struct ctl *ctl, const char *text);
enum ctl_exit ctl_set_purpose(struct ctl *ctl, const char *text);
enum ctl_exit ctl_set_time(struct ctl *ctl, const char *text);
enum ctl_exit ctl_set_since(struct ctl *ctl, const char *text);
enum ctl_exit ctl_set_max_shrink(struct ctl *ctl, const char *text);
enum ctl_exit ctl_set_spare(struct ctl *ctl, const char *text);
enum ctl_exit ctl_set_slurm(struct ctl *ctl, const char *text);
enum ctl_exit ctl_set_bytes(struct ctl *ctl, const char *text);
enum ctl_exit ctl_set_severity(struct ctl *ctl, const char *text);

#endif
