/* ibnetdisc.h - inside of the probe `ibnetdisc`, which sweeps a live subnet and looks between the sweeps. */
#ifndef FAB_PROBES_IBNETDISC_IBNETDISC_H
#define FAB_PROBES_IBNETDISC_IBNETDISC_H

#include <infiniband/ibnetdisc.h>
#include <infiniband/umad.h>
#include <stdbool.h>

#include "probes/fabric/observed.h"

extern const struct probe probe_ibnetdisc;

/* What libibnetdisc found, as raw observations, which point into the fabric. Free with observed_free(). */
int ibnetdisc_observe(const ibnd_fabric_t *fabric, struct observed *seen, struct fab_err *err);

/* "CA", "CA:PORT"; a CA of no letters and port 0 mean the library's choice. arg may be NULL. */
int ibnetdisc_target(const char *arg, char ca[UMAD_CA_NAME_LEN], int *port, struct fab_err *err);

/* The port to ask through; release it. PMIXFAB_ERR_NOTFOUND, and `why` says what there is instead. */
int ibnetdisc_port(const char *ca, int num, umad_port_t *port, char *why, size_t size);

/* "no state", "down", "init", "armed", "active" */
const char *ibnetdisc_state_name(unsigned state);

/* The port that is configured, which a subnet manager has brought up; release it. PMIXFAB_ERR_INVAL,
 * _NOTFOUND. */
int ibnetdisc_usable(const struct probe_config *config, umad_port_t *port, struct fab_err *err);

/* Requests in flight: 32 is about ten times as fast as the library's 2, and more gains nothing. */
#define IBNETDISC_MAX_SMPS   32u
#define IBNETDISC_TIMEOUT_MS 1000u
#define IBNETDISC_RETRIES    3u

/* Let libibnetdisc, in this thread, find no system image GUIDs: that spares it its search for chassis. */
void ibnetdisc_hide_systems(bool hide);

#endif
