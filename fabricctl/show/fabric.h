/*
 * fabric.h - the room of what the published planes hold: its commands.
 */
#ifndef FABRICCTL_SHOW_FABRIC_H
#define FABRICCTL_SHOW_FABRIC_H

#include "fabricctl/core/ctl.h"

enum ctl_exit ctl_planes(const struct ctl *ctl);
enum ctl_exit ctl_devices(const struct ctl *ctl);
enum ctl_exit ctl_one_device(const struct ctl *ctl); /* as devices, of one by its own name */
enum ctl_exit ctl_switches(const struct ctl *ctl);
enum ctl_exit ctl_links(const struct ctl *ctl);
enum ctl_exit ctl_groups(const struct ctl *ctl);
enum ctl_exit ctl_rails(const struct ctl *ctl);
enum ctl_exit ctl_coords(const struct ctl *ctl);
enum ctl_exit ctl_cost(const struct ctl *ctl);
enum ctl_exit ctl_where(const struct ctl *ctl);
enum ctl_exit ctl_place(const struct ctl *ctl);
enum ctl_exit ctl_order(const struct ctl *ctl);

#endif
