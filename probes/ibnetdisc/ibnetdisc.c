/* ibnetdisc.c - the probe `ibnetdisc`: discover a live InfiniBand subnet with libibnetdisc. */
#include <infiniband/mad.h>
#include <infiniband/umad.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/ibnetdisc/ibnetdisc.h"

/* ---- libibnetdisc's lists, as raw observations ---- */

/*
 * The position of a node's observations: nodes are sorted by address, because the library does not number
 * them.
 */
struct place {
    const ibnd_node_t *node;
    uint32_t index;
};

static int by_address(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    uintptr_t p = (uintptr_t)x->node, q = (uintptr_t)y->node;
    return p < q ? -1 : p > q;
}

/*
 * Return whether the port answered. A port that was only seen from its neighbour has no PortInfo, and no node
 * before it.
 */
static bool ibnd_port_is_usable(const ibnd_node_t *node, int num)
{
    const ibnd_port_t *port = node->ports[num];
    return port != NULL && port->node == node && port->portnum == num;
}

static void observe_node(const ibnd_node_t *node, uint32_t index, struct observed *seen)
{
    const bool is_switch = node->type == IB_NODE_SWITCH;
    const ibnd_port_t *port0 = is_switch && node->ports != NULL ? node->ports[0] : NULL;
    struct observed_node *to = &seen->nodes[index];
    *to = (struct observed_node){.info = node->info,
                                 .desc = node->nodedesc,
                                 .lid = node->smalid,
                                 .lmc = node->smalmc,
                                 .enhanced = node->smaenhsp0 != 0,
                                 .first_port = seen->n_ports};
    for (int num = 1; node->ports != NULL && num <= node->numports; num++) {
        if (!ibnd_port_is_usable(node, num))
            continue;
        const ibnd_port_t *port = node->ports[num];
        uint8_t ext_info[IB_SMP_DATA_SIZE]; /* the library's accessor requires writable bytes */
        memcpy(ext_info, port->ext_info, sizeof(ext_info));
        seen->ports[seen->n_ports++] = (struct observed_port){
            .info = port->info,
            .capabilities = !is_switch      ? port->info
                            : port0 != NULL ? port0->info
                                            : NULL,
            .guid = port->guid,
            .node = index,
            .peer = FAB_NONE,
            .num = (uint8_t)num,
            .fdr10 = (mad_get_field(ext_info, 0, IB_MLNX_EXT_PORT_LINK_SPEED_ACTIVE_F) & 1) != 0,
        };
    }
    to->n_ports = seen->n_ports - to->first_port;
}

static uint32_t ibnd_find_port(const struct observed *seen, const struct place *places,
                               const ibnd_port_t *port)
{
    struct place key = {.node = port->node};
    const struct place *at = bsearch(&key, places, seen->n_nodes, sizeof(*places), by_address);
    if (at == NULL)
        return FAB_NONE;
    const struct observed_node *node = &seen->nodes[at->index];
    for (uint32_t i = node->first_port; i < node->first_port + node->n_ports; i++)
        if (seen->ports[i].num == port->portnum)
            return i;
    return FAB_NONE;
}

/* Add cables whose two ends refer to each other. */
static void observe_cables(const struct place *places, struct observed *seen)
{
    for (uint32_t n = 0; n < seen->n_nodes; n++) {
        const ibnd_node_t *node = places[n].node;
        const struct observed_node *from = &seen->nodes[places[n].index];
        for (uint32_t i = from->first_port; i < from->first_port + from->n_ports; i++) {
            const ibnd_port_t *port = node->ports[seen->ports[i].num];
            if (port->remoteport != NULL && port->remoteport->remoteport == port)
                seen->ports[i].peer = ibnd_find_port(seen, places, port->remoteport);
        }
    }
    for (uint32_t i = 0; i < seen->n_ports; i++) {
        uint32_t peer = seen->ports[i].peer;
        if (peer != FAB_NONE && seen->ports[peer].peer != i)
            seen->ports[i].peer = FAB_NONE;
    }
}

/* Return the subnet manager's prefix of the discovering port. */
static uint64_t local_prefix(const ibnd_fabric_t *fabric)
{
    const ibnd_node_t *node = fabric->from_node;
    int num = node != NULL && node->type == IB_NODE_SWITCH ? 0 : fabric->from_portnum;
    struct port_info info;
    if (node == NULL || node->ports == NULL || num < 0 || num > node->numports || node->ports[num] == NULL)
        return 0;
    port_info_decode(node->ports[num]->info, NULL, false, &info);
    return info.prefix;
}

int ibnetdisc_observe(const ibnd_fabric_t *fabric, struct observed *seen, struct fab_err *err)
{
    size_t n_nodes = 0, n_ports = 0;
    *seen = (struct observed){0};
    for (const ibnd_node_t *node = fabric->nodes; node != NULL; node = node->next) {
        n_nodes++;
        n_ports += node->numports > 0 ? (size_t)node->numports : 0;
    }
    if (n_nodes == 0)
        return fab_fail(err, PMIXFAB_ERR_PARTIAL,
                        "ibnetdisc: no node of the subnet answered; check the cable and the subnet manager");
    struct place *places = calloc(n_nodes, sizeof(*places));
    seen->nodes = calloc(n_nodes, sizeof(*seen->nodes));
    seen->ports = calloc(n_ports + 1, sizeof(*seen->ports));
    if (places == NULL || seen->nodes == NULL || seen->ports == NULL) {
        free(places);
        observed_free(seen);
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "ibnetdisc: out of memory for %zu nodes and %zu ports",
                        n_nodes, n_ports);
    }
    for (const ibnd_node_t *node = fabric->nodes; node != NULL; node = node->next) {
        places[seen->n_nodes] = (struct place){node, seen->n_nodes};
        observe_node(node, seen->n_nodes, seen);
        seen->n_nodes++;
    }
    qsort(places, n_nodes, sizeof(*places), by_address);
    observe_cables(places, seen);
    seen->prefix = local_prefix(fabric);
    free(places);
    return PMIXFAB_OK;
}

/*
 * ---- the probe `ibnetdisc`: discover a live InfiniBand subnet with libibnetdisc.
 *
 * The library prints to standard error, can abort or hang its process, and returns a partial result when a
 * part of the subnet does not answer. The first two are the reason to run probes in a child; the third
 * appears in the inventory as ports that are up without a peer.
 */

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
        .flags = IBND_CONFIG_MLX_EPI, /* the only place of FDR10 */
    };
    ibnetdisc_hide_systems(true);
    *fabric = ibnd_discover_fabric(port->ca_name, port->portnum, NULL, &how);
    ibnetdisc_hide_systems(false);
    if (*fabric == NULL)
        return fab_fail(err, PMIXFAB_ERR_IO,
                        "ibnetdisc:%s:%d: cannot discover the subnet; check the access to "
                        "/dev/infiniband/umad*, and the library's message before this line",
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
    rc = ibnetdisc_discover(&port, config, sink, &fabric, err) ?: ibnetdisc_observe(fabric, &seen, err)
         ?: observed_inventory(&seen, sink, inv, err);
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
    .summary = "[CA[:PORT]]: the InfiniBand subnet of an HCA of this host",
    .check = ibnetdisc_check,
    .run = ibnetdisc_sweep,
    .monitor_open = ibnetdisc_monitor_open,
    .monitor_poll = ibnetdisc_monitor_poll,
    .monitor_close = ibnetdisc_monitor_close,
    .monitor_manager = ibnetdisc_monitor_manager,
    .counters = ibnetdisc_counters,
    .sweep_switches = ibnetdisc_switches,
    .available = ibnetdisc_available,
};
