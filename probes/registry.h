/* registry.h - the probes that this version knows: what a new one is added to. */
#ifndef FAB_PROBES_REGISTRY_H
#define FAB_PROBES_REGISTRY_H

#include "probes/core/probe.h"

/* All of them, ended by an entry with a NULL name. */
extern const struct probe *const probe_registry[];

/* By name; NULL. `spec` is "name" or "name:arg": *arg becomes the part behind the colon or NULL. */
const struct probe *probe_find(const char *spec, const char **arg);

/* Is it a probe of this host (and not of the fabric)? */
bool probe_is_local(const struct probe *probe);

#endif
