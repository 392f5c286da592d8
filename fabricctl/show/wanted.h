/*
 * wanted.h - of which things a list is: those with the names on the command line, and those that are down.
 */
#ifndef FABRICCTL_SHOW_WANTED_H
#define FABRICCTL_SHOW_WANTED_H

#include "fabricctl/core/ctl.h"

/* "host:device" or "host:device:port", as `cost` takes it. */
void ctl_device_label(const struct pmixfab_device *device, bool with_port, char *buf, size_t size);

#define CTL_LABEL_SIZE 256

#define CTL_SHOWN_SIZE 300 /* a name of 255 bytes, and a GUID */

/* "NAME (0x...)". A name that is longer than the buffer is cut, the GUID is not. */
const char *ctl_name_with_guid(const char *name, uint64_t guid, char buf[static CTL_SHOWN_SIZE]);

/* "rail2", of rails in all planes. */
#define CTL_RAIL_SIZE 16
const char *ctl_rail_name(uint32_t rail, char name[CTL_RAIL_SIZE]);

/* Is it asked for by its name or GUID or both, as it is shown (of a device: its host's with or without a
 * domain, "host:device", "host:device:port", its id, its GUIDs), or is nothing? Remembers which names were
 * met. */
bool ctl_wants_switch(const struct ctl *ctl, const struct pmixfab_switch *sw);
bool ctl_wants_device(const struct ctl *ctl, const struct pmixfab_device *device);
bool ctl_wants_name(const struct ctl *ctl, const char *name);

/* The kinds of names (enum ctl_names) that a command takes; 0: none. */
unsigned ctl_names_of(const char *command);

/* Tell which names were never met: CTL_FAILED. `kind` "switch", `command` where they are shown. */
enum ctl_exit ctl_wanted_met(const struct ctl *ctl, const char *kind, const char *command);

/* The same name, or one of them without a domain and the other equal up to its own? */
bool ctl_same_host(const char *a, const char *b);

#endif
