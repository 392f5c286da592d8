/* probes.h - the probes that the registry names. */
#ifndef FAB_PROBE_PROBES_H
#define FAB_PROBE_PROBES_H

#include "probes/core/probe.h"

extern const struct probe probe_file;
#ifdef HAVE_IBNETDISC
extern const struct probe probe_ibnetdisc;
#endif

#endif
