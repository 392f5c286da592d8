/*
 * ports.h - LIDs, and widths of links: no snapshot has them, the daemon of the run directory is asked, once.
 */
#ifndef FABRICCTL_SHOW_PORTS_H
#define FABRICCTL_SHOW_PORTS_H

#include "fabricctl/core/table.h"

/* LID of a node (port 0: a switch's own) or of one of its ports; null where it is not known. */
void ctl_put_lid(struct ctl_table *table, const struct ctl *ctl, uint64_t guid, uint32_t port);
/* Width and speed of the link at a port, as "4xHDR". */
void ctl_put_width(struct ctl_table *table, const struct ctl *ctl, uint64_t guid, uint32_t port);

#endif
