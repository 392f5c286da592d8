/*
 * captures.h - the room of recorded fabrics: the only one of fabricctl that reads them itself, without a
 * daemon, and for that includes the reader and the words for what changed.
 */
#ifndef FABRICCTL_SHOW_CAPTURES_H
#define FABRICCTL_SHOW_CAPTURES_H

#include <jansson.h>

#include "fabricctl/core/ctl.h"

/*
 * What changed from one recorded fabric to another: *changes is an array of changes as the daemon tells them,
 * with null for what only a publication has. CTL_USAGE: a file cannot be read, which is told.
 */
enum ctl_exit ctl_compare_captures(const char *before, const char *after, json_t **changes);

#endif
