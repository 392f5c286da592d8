/*
 * ibnetdisc_switches.c - read some switches again: their selection, the paths to them, their answers and
 * those of their neighbours.
 */
#include <stdlib.h>
#include <string.h>

#include "probes/ibnetdisc/ibnetdisc.h"

/* ---- the answers of the switches, and their neighbours ---- */

#define PATIENCE 64u

#define MELLANOX 0x2c9u

static int switches_surprise(struct fab_err *err, const char *what)
{
    return fab_fail(err, PMIXFAB_ERR_UNSUPPORTED, "ibnetdisc: %s", what);
}

/* Requests with the destinations of their answers. */
struct batch {
    struct smp *questions; /* room for all requests of one round */
    struct place {
        uint8_t *to;
        bool *heard; /* NULL: an answer is required */
    } * places;
    size_t n;
};

static void batch_add(struct batch *batch, const struct smp_path *path, unsigned attribute, unsigned modifier,
                      uint8_t *to, bool *heard)
{
    batch->questions[batch->n] =
        (struct smp){.path = *path, .attribute = (uint16_t)attribute, .modifier = modifier};
    batch->places[batch->n++] = (struct place){to, heard};
}

static int batch_ask(struct reread_sweep *sweep, struct batch *batch, struct fab_err *err)
{
    int rc = smp_ask(sweep->port, batch->questions, batch->n, PATIENCE, err);
    for (size_t i = 0; rc == PMIXFAB_OK && i < batch->n; i++) {
        struct smp *question = &batch->questions[i];
        const struct place *place = &batch->places[i];
        if (!question->answered && place->heard == NULL)
            rc = switches_surprise(err, "a node does not answer");
        if (question->answered && place->to != NULL)
            memcpy(place->to, question->data, ATTRIBUTE_SIZE);
        if (place->heard != NULL) /* Mellanox' own attribute, of which one bit is used */
            *place->heard = question->answered &&
                            (mad_get_field(question->data, 0, IB_MLNX_EXT_PORT_LINK_SPEED_ACTIVE_F) & 1) != 0;
    }
    batch->n = 0;
    return rc;
}

static bool reread_port_is_up(const struct reread_port *port)
{
    struct port_info info;
    port_info_decode(port->info, NULL, false, &info);
    return info.link_up;
}

/* Return whether it could be FDR10, which looks like QDR. */
static bool ask_fdr10(const uint8_t node[ATTRIBUTE_SIZE], const uint8_t port[ATTRIBUTE_SIZE])
{
    struct node_info info;
    node_info_decode(node, &info);
    return info.vendor_id == MELLANOX && port[35] >> 4 == 4 && port[62] >> 4 == 0;
}

/* First the switches themselves with the states of their ports. */
static void ask_themselves(struct reread *r, struct batch *batch)
{
    batch_add(batch, &r->path, IB_ATTR_NODE_DESC, 0, r->desc, NULL);
    batch_add(batch, &r->path, IB_ATTR_SWITCH_INFO, 0, r->switch_info, NULL);
    for (unsigned num = 0; num <= r->num_ports; num++)
        batch_add(batch, &r->path, IB_ATTR_PORT_INFO, num, r->ports[num].info, NULL);
}

/* Then the neighbours at ports that are up. */
static int ask_neighbours(struct reread *r, struct batch *batch, struct fab_err *err)
{
    for (unsigned num = 1; num <= r->num_ports; num++) {
        struct reread_port *port = &r->ports[num];
        struct smp_path path = r->path;
        if (!reread_port_is_up(port))
            continue;
        if (!smp_path_extend(&path, num))
            return switches_surprise(err, "a node is too far away");
        port->behind.there = true;
        batch_add(batch, &path, IB_ATTR_NODE_INFO, 0, port->behind.info, NULL);
        if (ask_fdr10(r->info, port->info))
            batch_add(batch, &r->path, IB_ATTR_MLNX_EXT_PORT_INFO, num, NULL, &port->fdr10);
    }
    return PMIXFAB_OK;
}

/* Then descriptions and ports of the hosts there. fdr10: once that is known. */
static void ask_hosts(struct reread *r, struct batch *batch, bool fdr10)
{
    for (unsigned num = 1; num <= r->num_ports; num++) {
        struct behind *behind = &r->ports[num].behind;
        struct smp_path path = r->path;
        struct node_info info;
        node_info_decode(behind->info, &info);
        if (!behind->there || info.type == NODE_TYPE_SWITCH || !smp_path_extend(&path, num))
            continue;
        if (!fdr10) {
            batch_add(batch, &path, IB_ATTR_NODE_DESC, 0, behind->desc, NULL);
            batch_add(batch, &path, IB_ATTR_PORT_INFO, info.local_port, behind->port_info, NULL);
        } else if (ask_fdr10(behind->info, behind->port_info)) {
            batch_add(batch, &path, IB_ATTR_MLNX_EXT_PORT_INFO, info.local_port, NULL, &behind->fdr10);
        }
    }
}

static int switches_ask(struct reread_sweep *sweep, struct fab_err *err)
{
    size_t most = 1;
    for (uint32_t i = 0; i < sweep->n_rereads; i++)
        most += 2u * sweep->rereads[i].num_ports + 3u;
    struct batch batch = {calloc(most, sizeof(*batch.questions)), calloc(most, sizeof(*batch.places)), 0};
    int rc = batch.questions == NULL || batch.places == NULL
                 ? fab_fail(err, PMIXFAB_ERR_NOMEM, "ibnetdisc: out of memory")
                 : PMIXFAB_OK;
    for (unsigned round = 0; round < 4 && rc == PMIXFAB_OK; round++) {
        for (uint32_t i = 0; i < sweep->n_rereads && rc == PMIXFAB_OK; i++) {
            struct reread *r = &sweep->rereads[i];
            if (!switches_fresh(r))
                continue;
            if (round == 0)
                ask_themselves(r, &batch);
            else if (round == 1)
                rc = ask_neighbours(r, &batch, err);
            else
                ask_hosts(r, &batch, round == 3);
        }
        if (rc == PMIXFAB_OK)
            rc = batch_ask(sweep, &batch, err);
    }
    free(batch.questions);
    free(batch.places);
    return rc;
}

/*
 * ---- read a few switches' ports, and their neighbours.
 *
 * Everything that does not fit the last inventory (a switch that is not found in its place, an unknown
 * switch, a part that is not reached) is left to a full discovery.
 */

#define CHEAP      2000u /* requests that are always worth it */
#define CANDIDATES 8     /* paths into a switch that are tried */

/* ---- selection ----------------------------------------------------------------------------------- */

static int reread_add(struct reread_sweep *sweep, uint32_t node, struct fab_err *err)
{
    if (sweep->which[node] != FAB_NONE)
        return PMIXFAB_OK;
    struct reread *to = &sweep->rereads[sweep->n_rereads];
    *to = (struct reread){.node = node, .num_ports = sweep->last->nodes[node].num_ports};
    to->ports = calloc(to->num_ports + 1, sizeof(*to->ports));
    if (to->ports == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "ibnetdisc: out of memory");
    sweep->which[node] = sweep->n_rereads++;
    /* its cables do not count until they are read */
    memset(&sweep->view.signs[sweep->view.switches[sweep->view.at[node]].first_sign], 0,
           (to->num_ports + 1) * sizeof(*sweep->view.signs));
    return PMIXFAB_OK;
}

/* Add the dirty switches of this port's subnet. */
static int add_dirty(struct reread_sweep *sweep, const struct dirty_switches *dirty, struct fab_err *err)
{
    uint32_t cost = 0;
    for (uint32_t i = 0; i < dirty->n; i++) {
        const uint32_t node = fab_inventory_find(sweep->last, dirty->guids[i]);
        if (node == FAB_NONE)
            return switches_surprise(err, "a switch changed that is not in the last inventory");
        if (sweep->view.at[node] == FAB_NONE)
            continue;
        cost += sweep->last->nodes[node].num_ports * 2u;
        int rc = reread_add(sweep, node, err);
        if (rc != PMIXFAB_OK)
            return rc;
    }
    if (cost > CHEAP && cost > view_sweep_cost(sweep->last) / 2)
        return switches_surprise(err, "too much has changed");
    return PMIXFAB_OK;
}

/* ---- paths --------------------------------------------------------------------------------------- */

/* Find paths into a switch from those that are verified. */
static unsigned reread_candidates(const struct reread_sweep *sweep, const struct reread *to,
                                  struct smp *questions)
{
    const struct fab_inventory *last = sweep->last;
    const struct fab_node *node = &last->nodes[to->node];
    unsigned n = 0;
    for (uint32_t i = node->first_port; i < node->first_port + node->n_ports && n < CANDIDATES; i++) {
        const uint32_t peer = last->ports[i].peer;
        if (peer == FAB_NONE)
            continue;
        struct smp *question = &questions[n];
        *question = (struct smp){.attribute = IB_ATTR_NODE_INFO};
        const uint32_t from = last->ports[peer].node;
        const uint32_t at = sweep->view.at[from];
        const bool home = peer == sweep->view.own;
        /* a neighbour that was read again shows whether that cable is still there */
        if (!home && (at == FAB_NONE ||
                      sweep->view.signs[sweep->view.switches[at].first_sign + last->ports[peer].num] == 0))
            continue;
        if (home ? smp_path_extend(&question->path, last->ports[peer].num)
                 : view_path(&sweep->view, from, &question->path) &&
                       smp_path_extend(&question->path, last->ports[peer].num))
            n++;
    }
    return n;
}

/* Find some more of the missing switches. Set *found to how many this call has found. */
static int find_some(struct reread_sweep *sweep, uint32_t *found, struct fab_err *err)
{
    struct smp *questions = calloc((size_t)sweep->n_rereads * CANDIDATES + 1, sizeof(*questions));
    unsigned *counts = calloc(sweep->n_rereads + 1, sizeof(*counts));
    size_t n = 0;
    int rc = questions == NULL || counts == NULL ? PMIXFAB_ERR_NOMEM : PMIXFAB_OK;
    if (rc != PMIXFAB_OK)
        fab_fail(err, rc, "ibnetdisc: out of memory");
    view_route(&sweep->view);
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < sweep->n_rereads; i++) {
        if (!sweep->rereads[i].found)
            counts[i] = reread_candidates(sweep, &sweep->rereads[i], questions + n);
        n += counts[i];
    }
    if (rc == PMIXFAB_OK)
        rc = smp_ask(sweep->port, questions, n, n, err);
    const struct smp *question = questions;
    *found = 0;
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < sweep->n_rereads; i++) {
        struct reread *to = &sweep->rereads[i];
        for (unsigned k = 0; k < counts[i]; k++, question++) {
            struct node_info info;
            node_info_decode(question->data, &info);
            if (!question->answered || to->found || info.node_guid != sweep->last->nodes[to->node].guid)
                continue;
            to->found = true;
            to->path = question->path;
            memcpy(to->info, question->data, ATTRIBUTE_SIZE);
            *found += 1;
            if (info.type != NODE_TYPE_SWITCH || info.num_ports != to->num_ports)
                rc = switches_surprise(err, "a switch was replaced by another one");
        }
    }
    free(questions);
    free(counts);
    return rc;
}

/* ---- effects on other switches ----------------------------------------------------------------------- */

/* Also read the switch of the last inventory whose port has another cable now. */
static int reread_suspect(struct reread_sweep *sweep, uint32_t port, struct fab_err *err)
{
    const uint32_t node = port == FAB_NONE ? FAB_NONE : sweep->last->ports[port].node;
    if (node == FAB_NONE || sweep->view.at[node] == FAB_NONE)
        return PMIXFAB_OK;
    return reread_add(sweep, node, err);
}

/* Check whether a port of a switch that was read has its former cable. */
static int reread_compare_port(struct reread_sweep *sweep, uint32_t node, unsigned num, struct fab_err *err)
{
    const struct fab_inventory *last = sweep->last;
    const struct behind *behind = &sweep->rereads[sweep->which[node]].ports[num].behind;
    const uint32_t port = fab_inventory_port(last, node, num);
    const uint32_t before = port == FAB_NONE ? FAB_NONE : last->ports[port].peer;
    struct node_info info;
    node_info_decode(behind->info, &info);
    const uint32_t other = behind->there ? fab_inventory_find(last, info.node_guid) : FAB_NONE;
    if (behind->there && info.type == NODE_TYPE_SWITCH &&
        (other == FAB_NONE || last->nodes[other].kind != FAB_SWITCH || sweep->view.at[other] == FAB_NONE))
        return switches_surprise(err, "there is a new switch");
    const uint32_t now = other == FAB_NONE ? FAB_NONE : fab_inventory_port(last, other, info.local_port);
    if (before != FAB_NONE && now == before) {
        struct view *view = &sweep->view;
        view->signs[view->switches[view->at[node]].first_sign + num] = 1;
        return PMIXFAB_OK;
    }
    int rc = reread_suspect(sweep, before, err);
    if (rc == PMIXFAB_OK && now != FAB_NONE) /* the former owner of that port has lost it */
        rc = reread_suspect(sweep, last->ports[now].peer, err);
    if (rc == PMIXFAB_OK && other != FAB_NONE && other != node && info.type == NODE_TYPE_SWITCH)
        rc = reread_add(sweep, other, err);
    return rc;
}

static int compare_all(struct reread_sweep *sweep, struct fab_err *err)
{
    int rc = PMIXFAB_OK;
    const uint32_t n = sweep->n_rereads; /* switches added meanwhile are not read yet */
    for (uint32_t i = 0; i < n && rc == PMIXFAB_OK; i++) {
        if (!switches_fresh(&sweep->rereads[i]))
            continue;
        for (unsigned num = 1; num <= sweep->rereads[i].num_ports && rc == PMIXFAB_OK; num++)
            rc = reread_compare_port(sweep, sweep->rereads[i].node, num, err);
        sweep->rereads[i].read = true;
    }
    return rc;
}

/* Check that all switches are reached, as far as cables are known. */
static int check_reached(struct reread_sweep *sweep, struct fab_err *err)
{
    struct view *view = &sweep->view;
    view_route(view);
    for (uint32_t i = 0; i < view->n_switches; i++)
        if (view->up[view->switches[i].node] == FAB_NONE)
            return switches_surprise(err, "a part of the subnet is no longer reached");
    return PMIXFAB_OK;
}

/*
 * Read the switches, and their neighbours that have changed. PMIXFAB_ERR_UNSUPPORTED if a full discovery is
 * needed.
 */
static int switches_read(struct reread_sweep *sweep, struct fab_err *err)
{
    uint32_t left = sweep->n_rereads;
    int rc = PMIXFAB_OK;
    while (left > 0 && rc == PMIXFAB_OK) {
        uint32_t found = 0;
        rc = find_some(sweep, &found, err);
        if (rc == PMIXFAB_OK && found == 0)
            rc = switches_surprise(err, "a switch is not in its former place");
        if (rc == PMIXFAB_OK)
            rc = switches_ask(sweep, err);
        if (rc == PMIXFAB_OK)
            rc = compare_all(sweep, err);
        left = 0;
        for (uint32_t i = 0; i < sweep->n_rereads; i++)
            left += !sweep->rereads[i].read;
    }
    return rc == PMIXFAB_OK ? check_reached(sweep, err) : rc;
}

/* ---- the whole sweep ------------------------------------------------------------------------------ */

static int switches_open(struct reread_sweep *sweep, const umad_port_t *at, const struct probe_config *config,
                         struct fab_err *err)
{
    int rc = view_new(sweep->last, be64toh(at->port_guid), &sweep->view, err)
                 ?: smp_open(at, IB_SMI_DIRECT_CLASS,
                             config->max_smps != 0 ? config->max_smps : IBNETDISC_MAX_SMPS,
                             config->timeout_ms != 0 ? config->timeout_ms : IBNETDISC_TIMEOUT_MS,
                             config->retries != 0 ? config->retries : IBNETDISC_RETRIES, &sweep->port, err);
    if (rc == PMIXFAB_OK) {
        sweep->which = malloc((sweep->last->n_nodes + 1) * sizeof(*sweep->which));
        sweep->rereads = calloc(sweep->view.n_switches + 1, sizeof(*sweep->rereads));
        if (sweep->which == NULL || sweep->rereads == NULL)
            rc = fab_fail(err, PMIXFAB_ERR_NOMEM, "ibnetdisc: out of memory");
        else
            memset(sweep->which, 0xff, (sweep->last->n_nodes + 1) * sizeof(*sweep->which));
    }
    return rc;
}

int ibnetdisc_switches(const struct probe_config *config, const struct probe_sink *sink,
                       const struct fab_inventory *last, const struct dirty_switches *dirty,
                       struct fab_inventory *inv, struct fab_err *err)
{
    umad_port_t at;
    struct reread_sweep sweep = {.last = last};
    if (dirty->all)
        return switches_surprise(err, "everything may have changed");
    int rc = ibnetdisc_usable(config, &at, err);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = switches_open(&sweep, &at, config, err)
             ?: add_dirty(&sweep, dirty, err)
             ?: switches_read(&sweep, err)
         ?: switches_build(&sweep, inv, err);
    if (rc == PMIXFAB_OK)
        probe_note(sink, PMIXFAB_LOG_DEBUG, "%u switch%s read again with %ju packets", sweep.n_rereads,
                   sweep.n_rereads == 1 ? "" : "es", (uintmax_t)smp_sent(sweep.port));
    for (uint32_t i = 0; i < sweep.n_rereads; i++)
        free(sweep.rereads[i].ports);
    free(sweep.rereads);
    free(sweep.which);
    view_free(&sweep.view);
    smp_close(sweep.port);
    umad_release_port(&at);
    return rc;
}
