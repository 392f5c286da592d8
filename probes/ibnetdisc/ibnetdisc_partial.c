/*
 * ibnetdisc_partial.c - which switches are read anew, the way to them, and what they and their neighbours
 * answer.
 */
#include <stdlib.h>
#include <string.h>

#include "probes/ibnetdisc/ibnetdisc.h"

/* ---- what the switches say that are read anew, and who is behind them ---- */

#define PATIENCE 64u

#define MELLANOX 0x2c9u

static int partial_surprise(struct fab_err *err, const char *what)
{
    return fab_fail(err, PMIXFAB_ERR_UNSUPPORTED, "ibnetdisc: %s", what);
}

/* Questions with the places that their answers go to. */
struct batch {
    struct smp *questions; /* room for all that one round can ask */
    struct place {
        uint8_t *to;
        bool *heard; /* NULL: an answer is a must */
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

static int batch_ask(struct partial *partial, struct batch *batch, struct fab_err *err)
{
    int rc = smp_ask(partial->port, batch->questions, batch->n, PATIENCE, err);
    for (size_t i = 0; rc == PMIXFAB_OK && i < batch->n; i++) {
        struct smp *question = &batch->questions[i];
        const struct place *place = &batch->places[i];
        if (!question->answered && place->heard == NULL)
            rc = partial_surprise(err, "a node does not answer");
        if (question->answered && place->to != NULL)
            memcpy(place->to, question->data, ATTRIBUTE_SIZE);
        if (place->heard != NULL) /* Mellanox' own attribute, of which one bit counts */
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

/* Could it be FDR10, which looks like QDR? */
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

/* Then who is behind the ports that are up. */
static int ask_neighbours(struct reread *r, struct batch *batch, struct fab_err *err)
{
    for (unsigned num = 1; num <= r->num_ports; num++) {
        struct reread_port *port = &r->ports[num];
        struct smp_path path = r->path;
        if (!reread_port_is_up(port))
            continue;
        if (!smp_path_extend(&path, num))
            return partial_surprise(err, "a node is too far away");
        port->behind.there = true;
        batch_add(batch, &path, IB_ATTR_NODE_INFO, 0, port->behind.info, NULL);
        if (ask_fdr10(r->info, port->info))
            batch_add(batch, &r->path, IB_ATTR_MLNX_EXT_PORT_INFO, num, NULL, &port->fdr10);
    }
    return PMIXFAB_OK;
}

/* Then what hosts there are called, and their ports. fdr10: once that is known. */
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

static int partial_ask(struct partial *partial, struct fab_err *err)
{
    size_t most = 1;
    for (uint32_t i = 0; i < partial->n_rereads; i++)
        most += 2u * partial->rereads[i].num_ports + 3u;
    struct batch batch = {calloc(most, sizeof(*batch.questions)), calloc(most, sizeof(*batch.places)), 0};
    int rc = batch.questions == NULL || batch.places == NULL
                 ? fab_fail(err, PMIXFAB_ERR_NOMEM, "ibnetdisc: out of memory")
                 : PMIXFAB_OK;
    for (unsigned round = 0; round < 4 && rc == PMIXFAB_OK; round++) {
        for (uint32_t i = 0; i < partial->n_rereads && rc == PMIXFAB_OK; i++) {
            struct reread *r = &partial->rereads[i];
            if (!partial_fresh(r))
                continue;
            if (round == 0)
                ask_themselves(r, &batch);
            else if (round == 1)
                rc = ask_neighbours(r, &batch, err);
            else
                ask_hosts(r, &batch, round == 3);
        }
        if (rc == PMIXFAB_OK)
            rc = batch_ask(partial, &batch, err);
    }
    free(batch.questions);
    free(batch.places);
    return rc;
}

/* ----
 * ask a few switches for their ports, and who is behind them.
 *
 * Whatever does not fit to the last inventory (a switch that cannot be found where it was, one that nobody
 * knew, a part that is not reached any more) is left to a discovery of everything.
 */

#define CHEAP      2000u /* questions that are always worth it */
#define CANDIDATES 8     /* ways into a switch that are tried */

/* ---- which switches ------------------------------------------------------------------------------- */

static int reread_add(struct partial *partial, uint32_t node, struct fab_err *err)
{
    if (partial->which[node] != FAB_NONE)
        return PMIXFAB_OK;
    struct reread *to = &partial->rereads[partial->n_rereads];
    *to = (struct reread){.node = node, .num_ports = partial->last->nodes[node].num_ports};
    to->ports = calloc(to->num_ports + 1, sizeof(*to->ports));
    if (to->ports == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "ibnetdisc: out of memory");
    partial->which[node] = partial->n_rereads++;
    /* Its cables do not count from now on, until they are read. */
    memset(&partial->view.signs[partial->view.switches[partial->view.at[node]].first_sign], 0,
           (to->num_ports + 1) * sizeof(*partial->view.signs));
    return PMIXFAB_OK;
}

/* Those that are dirty and in this port's subnet. */
static int add_dirty(struct partial *partial, const struct dirty_switches *dirty, struct fab_err *err)
{
    uint32_t cost = 0;
    for (uint32_t i = 0; i < dirty->n; i++) {
        const uint32_t node = fab_inventory_find(partial->last, dirty->guids[i]);
        if (node == FAB_NONE)
            return partial_surprise(err, "a switch changed that the last inventory does not have");
        if (partial->view.at[node] == FAB_NONE)
            continue;
        cost += partial->last->nodes[node].num_ports * 2u;
        int rc = reread_add(partial, node, err);
        if (rc != PMIXFAB_OK)
            return rc;
    }
    if (cost > CHEAP && cost > view_sweep_cost(partial->last) / 2)
        return partial_surprise(err, "too much has changed");
    return PMIXFAB_OK;
}

/* ---- the way to them ------------------------------------------------------------------------------ */

/* Ways into a switch from those that are believed. */
static unsigned reread_candidates(const struct partial *partial, const struct reread *to,
                                  struct smp *questions)
{
    const struct fab_inventory *last = partial->last;
    const struct fab_node *node = &last->nodes[to->node];
    unsigned n = 0;
    for (uint32_t i = node->first_port; i < node->first_port + node->n_ports && n < CANDIDATES; i++) {
        const uint32_t peer = last->ports[i].peer;
        if (peer == FAB_NONE)
            continue;
        struct smp *question = &questions[n];
        *question = (struct smp){.attribute = IB_ATTR_NODE_INFO};
        const uint32_t from = last->ports[peer].node;
        const uint32_t at = partial->view.at[from];
        const bool home = peer == partial->view.own;
        /* A neighbour that was read anew says itself whether that cable is still there. */
        if (!home &&
            (at == FAB_NONE ||
             partial->view.signs[partial->view.switches[at].first_sign + last->ports[peer].num] == 0))
            continue;
        if (home ? smp_path_extend(&question->path, last->ports[peer].num)
                 : view_path(&partial->view, from, &question->path) &&
                       smp_path_extend(&question->path, last->ports[peer].num))
            n++;
    }
    return n;
}

/* Find some of those that are not found yet: *found says how many. */
static int find_some(struct partial *partial, uint32_t *found, struct fab_err *err)
{
    struct smp *questions = calloc((size_t)partial->n_rereads * CANDIDATES + 1, sizeof(*questions));
    unsigned *counts = calloc(partial->n_rereads + 1, sizeof(*counts));
    size_t n = 0;
    int rc = questions == NULL || counts == NULL ? PMIXFAB_ERR_NOMEM : PMIXFAB_OK;
    if (rc != PMIXFAB_OK)
        fab_fail(err, rc, "ibnetdisc: out of memory");
    view_route(&partial->view);
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < partial->n_rereads; i++) {
        if (!partial->rereads[i].found)
            counts[i] = reread_candidates(partial, &partial->rereads[i], questions + n);
        n += counts[i];
    }
    if (rc == PMIXFAB_OK)
        rc = smp_ask(partial->port, questions, n, n, err);
    const struct smp *question = questions;
    *found = 0;
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < partial->n_rereads; i++) {
        struct reread *to = &partial->rereads[i];
        for (unsigned k = 0; k < counts[i]; k++, question++) {
            struct node_info info;
            node_info_decode(question->data, &info);
            if (!question->answered || to->found || info.node_guid != partial->last->nodes[to->node].guid)
                continue;
            to->found = true;
            to->path = question->path;
            memcpy(to->info, question->data, ATTRIBUTE_SIZE);
            *found += 1;
            if (info.type != NODE_TYPE_SWITCH || info.num_ports != to->num_ports)
                rc = partial_surprise(err, "a switch has become another one");
        }
    }
    free(questions);
    free(counts);
    return rc;
}

/* ---- what it means for others --------------------------------------------------------------------- */

/* The switch of the last inventory, whose port has another cable than it says now, is to be read, too. */
static int reread_suspect(struct partial *partial, uint32_t port, struct fab_err *err)
{
    const uint32_t node = port == FAB_NONE ? FAB_NONE : partial->last->ports[port].node;
    if (node == FAB_NONE || partial->view.at[node] == FAB_NONE)
        return PMIXFAB_OK;
    return reread_add(partial, node, err);
}

/* A port of a switch that was read: is it the cable that it had? */
static int reread_compare_port(struct partial *partial, uint32_t node, unsigned num, struct fab_err *err)
{
    const struct fab_inventory *last = partial->last;
    const struct behind *behind = &partial->rereads[partial->which[node]].ports[num].behind;
    const uint32_t port = fab_inventory_port(last, node, num);
    const uint32_t before = port == FAB_NONE ? FAB_NONE : last->ports[port].peer;
    struct node_info info;
    node_info_decode(behind->info, &info);
    const uint32_t other = behind->there ? fab_inventory_find(last, info.node_guid) : FAB_NONE;
    if (behind->there && info.type == NODE_TYPE_SWITCH &&
        (other == FAB_NONE || last->nodes[other].kind != FAB_SWITCH || partial->view.at[other] == FAB_NONE))
        return partial_surprise(err, "there is a switch that was not there");
    const uint32_t now = other == FAB_NONE ? FAB_NONE : fab_inventory_port(last, other, info.local_port);
    if (before != FAB_NONE && now == before) {
        struct view *view = &partial->view;
        view->signs[view->switches[view->at[node]].first_sign + num] = 1;
        return PMIXFAB_OK;
    }
    int rc = reread_suspect(partial, before, err);
    if (rc == PMIXFAB_OK && now != FAB_NONE) /* who had that port before has lost it */
        rc = reread_suspect(partial, last->ports[now].peer, err);
    if (rc == PMIXFAB_OK && other != FAB_NONE && other != node && info.type == NODE_TYPE_SWITCH)
        rc = reread_add(partial, other, err);
    return rc;
}

static int compare_all(struct partial *partial, struct fab_err *err)
{
    int rc = PMIXFAB_OK;
    const uint32_t n = partial->n_rereads; /* what is added meanwhile is not read yet */
    for (uint32_t i = 0; i < n && rc == PMIXFAB_OK; i++) {
        if (!partial_fresh(&partial->rereads[i]))
            continue;
        for (unsigned num = 1; num <= partial->rereads[i].num_ports && rc == PMIXFAB_OK; num++)
            rc = reread_compare_port(partial, partial->rereads[i].node, num, err);
        partial->rereads[i].read = true;
    }
    return rc;
}

/* Are all switches reached, as far as cables are known to be there? */
static int check_reached(struct partial *partial, struct fab_err *err)
{
    struct view *view = &partial->view;
    view_route(view);
    for (uint32_t i = 0; i < view->n_switches; i++)
        if (view->up[view->switches[i].node] == FAB_NONE)
            return partial_surprise(err, "a part of the subnet is not reached any more");
    return PMIXFAB_OK;
}

/* Read the switches, and those of their neighbours that turn out to have changed. PMIXFAB_ERR_UNSUPPORTED
 * where what is seen is more than this can tell. */
static int partial_read(struct partial *partial, struct fab_err *err)
{
    uint32_t left = partial->n_rereads;
    int rc = PMIXFAB_OK;
    while (left > 0 && rc == PMIXFAB_OK) {
        uint32_t found = 0;
        rc = find_some(partial, &found, err);
        if (rc == PMIXFAB_OK && found == 0)
            rc = partial_surprise(err, "a switch is not where it was");
        if (rc == PMIXFAB_OK)
            rc = partial_ask(partial, err);
        if (rc == PMIXFAB_OK)
            rc = compare_all(partial, err);
        left = 0;
        for (uint32_t i = 0; i < partial->n_rereads; i++)
            left += !partial->rereads[i].read;
    }
    return rc == PMIXFAB_OK ? check_reached(partial, err) : rc;
}

/* ---- the whole ------------------------------------------------------------------------------------ */

static int partial_open(struct partial *partial, const umad_port_t *at, const struct probe_config *config,
                        struct fab_err *err)
{
    int rc = view_new(partial->last, be64toh(at->port_guid), &partial->view, err)
                 ?: smp_open(at, IB_SMI_DIRECT_CLASS,
                             config->max_smps != 0 ? config->max_smps : IBNETDISC_MAX_SMPS,
                             config->timeout_ms != 0 ? config->timeout_ms : IBNETDISC_TIMEOUT_MS,
                             config->retries != 0 ? config->retries : IBNETDISC_RETRIES, &partial->port, err);
    if (rc == PMIXFAB_OK) {
        partial->which = malloc((partial->last->n_nodes + 1) * sizeof(*partial->which));
        partial->rereads = calloc(partial->view.n_switches + 1, sizeof(*partial->rereads));
        if (partial->which == NULL || partial->rereads == NULL)
            rc = fab_fail(err, PMIXFAB_ERR_NOMEM, "ibnetdisc: out of memory");
        else
            memset(partial->which, 0xff, (partial->last->n_nodes + 1) * sizeof(*partial->which));
    }
    return rc;
}

int ibnetdisc_partial(const struct probe_config *config, const struct probe_sink *sink,
                      const struct fab_inventory *last, const struct dirty_switches *dirty,
                      struct fab_inventory *inv, struct fab_err *err)
{
    umad_port_t at;
    struct partial partial = {.last = last};
    if (dirty->all)
        return partial_surprise(err, "everything may have changed");
    int rc = ibnetdisc_usable(config, &at, err);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = partial_open(&partial, &at, config, err)
             ?: add_dirty(&partial, dirty, err)
             ?: partial_read(&partial, err)
         ?: partial_build(&partial, inv, err);
    if (rc == PMIXFAB_OK)
        probe_note(sink, PMIXFAB_LOG_DEBUG, "%u switch%s read anew with %ju packets", partial.n_rereads,
                   partial.n_rereads == 1 ? "" : "es", (uintmax_t)smp_sent(partial.port));
    for (uint32_t i = 0; i < partial.n_rereads; i++)
        free(partial.rereads[i].ports);
    free(partial.rereads);
    free(partial.which);
    view_free(&partial.view);
    smp_close(partial.port);
    umad_release_port(&at);
    return rc;
}
