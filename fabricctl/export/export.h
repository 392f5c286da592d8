/*
 * export.h - the room of whole planes as files for other programs: its commands.
 */
#ifndef FABRICCTL_EXPORT_EXPORT_H
#define FABRICCTL_EXPORT_EXPORT_H

#include "fabricctl/core/ctl.h"

enum ctl_exit ctl_matrix(const struct ctl *ctl);

#endif
