/* ibnetdisc_look.h - inside of the probe `ibnetdisc`: what it does between two discoveries. */
#ifndef FAB_PROBE_IBNETDISC_LOOK_H
#define FAB_PROBE_IBNETDISC_LOOK_H

#include "probes/probe.h"

/* As struct probe's functions of these names. */
int ibnetdisc_watch_open(const struct probe_config *config, const struct fab_inventory *inv,
                         struct probe_watch **out, struct fab_err *err);
int ibnetdisc_watch_look(struct probe_watch *watch, struct probe_noticed *noticed, struct fab_err *err);
void ibnetdisc_watch_close(struct probe_watch *watch);
int ibnetdisc_again(const struct probe_config *config, const struct probe_sink *sink,
                    const struct fab_inventory *last, const struct probe_noticed *noticed,
                    struct fab_inventory *inv, struct fab_err *err);

#endif
