/*
 * show.h - the room of one word for whatever there is: what a name is, and what is around it.
 */
#ifndef FABRICCTL_SHOW_SHOW_H
#define FABRICCTL_SHOW_SHOW_H

#include "fabricctl/core/ctl.h"

enum ctl_exit ctl_show(const struct ctl *ctl);

#endif
