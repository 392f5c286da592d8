/*
 * ibnetdisc.c - the probe `ibnetdisc`: ask a live InfiniBand subnet through libibnetdisc.
 *
 * The library prints to standard error, can abort or hang its process, and returns what it has when a part of
 * the subnet does not answer. The first two are why probes run in a child; the third shows in the inventory
 * as ports that are up and lead nowhere.
 */
#include <infiniband/umad.h>
#include <stdio.h>

#include "probes/ibnetdisc/ibnetdisc.h"
#include "probes/ibnetdisc/ibnetdisc_monitor.h"

static int ibnetdisc_check(const struct probe_config *config, struct fab_err *err)
{
    char ca[UMAD_CA_NAME_LEN];
    int port;
    return ibnetdisc_target(config->arg, ca, &port, err);
}

static int ibnetdisc_available(char *text, size_t size)
{
    umad_port_t port;
    int rc = ibnetdisc_port("", 0, &port, text, size);
    if (rc != PMIXFAB_OK)
        return rc;
    snprintf(text, size, "InfiniBand port %s:%d, %s, LID %u", port.ca_name, port.portnum,
             ibnetdisc_state_name(port.state), port.base_lid);
    umad_release_port(&port);
    return PMIXFAB_OK;
}

static int ibnetdisc_discover(umad_port_t *port, const struct probe_config *config,
                              const struct probe_sink *sink, ibnd_fabric_t **fabric, struct fab_err *err)
{
    ibnd_config_t how = {
        .max_smps = config->max_smps != 0 ? config->max_smps : IBNETDISC_MAX_SMPS,
        .timeout_ms = config->timeout_ms != 0 ? config->timeout_ms : IBNETDISC_TIMEOUT_MS,
        .retries = config->retries != 0 ? config->retries : IBNETDISC_RETRIES,
        .flags = IBND_CONFIG_MLX_EPI, /* FDR10 stands there only */
    };
    ibnetdisc_hide_systems(true);
    *fabric = ibnd_discover_fabric(port->ca_name, port->portnum, NULL, &how);
    ibnetdisc_hide_systems(false);
    if (*fabric == NULL)
        return fab_fail(err, PMIXFAB_ERR_IO,
                        "ibnetdisc:%s:%d: the subnet cannot be discovered; check the access to "
                        "/dev/infiniband/umad*, and what the library said before this line",
                        port->ca_name, port->portnum);
    probe_note(sink, PMIXFAB_LOG_DEBUG, "everything discovered with %u packets", (*fabric)->total_mads_used);
    return PMIXFAB_OK;
}

static int ibnetdisc_sweep(const struct probe_config *config, const struct probe_sink *sink,
                           struct fab_inventory *inv, struct fab_err *err)
{
    umad_port_t port;
    ibnd_fabric_t *fabric = NULL;
    struct observed seen = {0};
    int rc = ibnetdisc_usable(config, &port, err);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = ibnetdisc_discover(&port, config, sink, &fabric, err);
    if (rc == PMIXFAB_OK)
        rc = ibnetdisc_observe(fabric, &seen, err);
    if (rc == PMIXFAB_OK)
        rc = observed_inventory(&seen, sink, inv, err);
    if (rc == PMIXFAB_OK && inv->n_dangling > 0)
        probe_note(sink, PMIXFAB_LOG_DEBUG,
                   "%u port%s up and lead%s nowhere: a part of the subnet did not answer", inv->n_dangling,
                   inv->n_dangling == 1 ? " is" : "s are", inv->n_dangling == 1 ? "s" : "");
    observed_free(&seen);
    if (fabric != NULL)
        ibnd_destroy_fabric(fabric);
    umad_release_port(&port);
    return rc;
}

const struct probe probe_ibnetdisc = {
    .name = "ibnetdisc",
    .summary = "[CA[:PORT]]: the InfiniBand subnet that an HCA of this host is on",
    .check = ibnetdisc_check,
    .run = ibnetdisc_sweep,
    .monitor_open = ibnetdisc_monitor_open,
    .monitor_poll = ibnetdisc_monitor_poll,
    .monitor_close = ibnetdisc_monitor_close,
    .monitor_manager = ibnetdisc_monitor_manager,
    .counters = ibnetdisc_counters,
    .sweep_partial = ibnetdisc_partial,
    .available = ibnetdisc_available,
};
