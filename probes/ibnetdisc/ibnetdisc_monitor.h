/* ibnetdisc_monitor.h - inside of the probe `ibnetdisc`: what it does between two discoveries. */
#ifndef FAB_PROBES_IBNETDISC_IBNETDISC_MONITOR_H
#define FAB_PROBES_IBNETDISC_IBNETDISC_MONITOR_H

#include "probes/core/probe.h"

/* As struct probe's functions of these names. */
int ibnetdisc_monitor_open(const struct probe_config *config, const struct fab_inventory *inv,
                           struct probe_monitor **out, struct fab_err *err);
int ibnetdisc_monitor_poll(struct probe_monitor *monitor, struct dirty_switches *dirty, struct fab_err *err);
void ibnetdisc_monitor_close(struct probe_monitor *monitor);
void ibnetdisc_monitor_manager(const struct probe_monitor *monitor, struct probe_manager *out);
int ibnetdisc_counters(const struct probe_config *config, const struct fab_inventory *last,
                       struct probe_reading *list, uint32_t n, struct fab_err *err);
int ibnetdisc_partial(const struct probe_config *config, const struct probe_sink *sink,
                      const struct fab_inventory *last, const struct dirty_switches *dirty,
                      struct fab_inventory *inv, struct fab_err *err);

#endif
