/* ibnetdisc.h - inside of the probe `ibnetdisc`. */
#ifndef FAB_PROBE_IBNETDISC_H
#define FAB_PROBE_IBNETDISC_H

#include <infiniband/ibnetdisc.h>
#include <infiniband/umad.h>
#include <stdbool.h>

#include "probes/observed.h"

/* What libibnetdisc found, as raw observations, which point into the fabric. Free with observed_free(). */
int ibnetdisc_observe(const ibnd_fabric_t *fabric, struct observed *seen, struct fab_err *err);

/* "CA", "CA:PORT"; a CA of no letters and port 0 mean the library's choice. arg may be NULL. */
int ibnetdisc_target(const char *arg, char ca[UMAD_CA_NAME_LEN], int *port, struct fab_err *err);

/* Let libibnetdisc, in this thread, find no system image GUIDs: that spares it its search for chassis. */
void ibnetdisc_hide_systems(bool hide);

#endif
