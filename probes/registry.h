/* registry.h - the list of all probes; add a new one here. */
#ifndef FAB_PROBES_REGISTRY_H
#define FAB_PROBES_REGISTRY_H

#include "probes/core/probe.h"

/* All probes, ended by an entry with a NULL name. */
extern const struct probe *const probe_registry[];

/*
 * Find a probe by name; NULL: no such probe. `spec` is "name" or "name:arg". *arg becomes the part after the
 * colon or NULL.
 */
const struct probe *probe_find(const char *spec, const char **arg);

/* Return whether it is a probe of this host (and not of the fabric). */
bool probe_is_local(const struct probe *probe);

#endif
