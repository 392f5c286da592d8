/* ibnetdisc_ask.c - what the switches say that are read anew, and who is behind them. */
#include <stdlib.h>
#include <string.h>

#include "probes/ibnetdisc/ibnetdisc_partial.h"

#define PATIENCE 64u

#define MELLANOX 0x2c9u

int partial_surprise(struct fab_err *err, const char *what)
{
    return fab_fail(err, PMIXFAB_ERR_UNSUPPORTED, "ibnetdisc: %s", what);
}

/* Questions with the places that their answers go to. */
struct batch {
    struct smp *questions;
    uint8_t **to;
    bool **heard; /* NULL: an answer is a must */
    size_t n, cap;
};

static void batch_free(struct batch *batch)
{
    free(batch->questions);
    free(batch->to);
    free(batch->heard);
    *batch = (struct batch){0};
}

static int batch_add(struct batch *batch, const struct smp_path *path, unsigned attribute, unsigned modifier,
                     uint8_t *to, bool *heard)
{
    if (batch->n == batch->cap) {
        const size_t cap = batch->cap == 0 ? 256 : batch->cap * 2;
        void *questions = realloc(batch->questions, cap * sizeof(*batch->questions));
        if (questions != NULL)
            batch->questions = questions;
        void *places = realloc(batch->to, cap * sizeof(*batch->to));
        if (places != NULL)
            batch->to = places;
        void *marks = realloc(batch->heard, cap * sizeof(*batch->heard));
        if (marks != NULL)
            batch->heard = marks;
        if (questions == NULL || places == NULL || marks == NULL)
            return PMIXFAB_ERR_NOMEM;
        batch->cap = cap;
    }
    batch->questions[batch->n] =
        (struct smp){.path = *path, .attribute = (uint16_t)attribute, .modifier = modifier};
    batch->to[batch->n] = to;
    batch->heard[batch->n++] = heard;
    return PMIXFAB_OK;
}

static int batch_ask(struct partial *partial, struct batch *batch, struct fab_err *err)
{
    int rc = smp_ask(partial->port, batch->questions, batch->n, PATIENCE, err);
    for (size_t i = 0; rc == PMIXFAB_OK && i < batch->n; i++) {
        if (!batch->questions[i].answered && batch->heard[i] == NULL)
            rc = partial_surprise(err, "a node does not answer");
        if (batch->questions[i].answered && batch->to[i] != NULL)
            memcpy(batch->to[i], batch->questions[i].data, ATTRIBUTE_SIZE);
        if (batch->heard[i] != NULL) /* Mellanox' own attribute, of which one bit counts */
            *batch->heard[i] =
                batch->questions[i].answered &&
                (mad_get_field(batch->questions[i].data, 0, IB_MLNX_EXT_PORT_LINK_SPEED_ACTIVE_F) & 1) != 0;
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
static int ask_themselves(struct partial *partial, struct batch *batch, struct fab_err *err)
{
    int rc = PMIXFAB_OK;
    for (uint32_t i = 0; i < partial->n_rereads && rc == PMIXFAB_OK; i++) {
        struct reread *r = &partial->rereads[i];
        if (!partial_fresh(r))
            continue;
        rc = batch_add(batch, &r->path, IB_ATTR_NODE_DESC, 0, r->desc, NULL);
        if (rc == PMIXFAB_OK)
            rc = batch_add(batch, &r->path, IB_ATTR_SWITCH_INFO, 0, r->switch_info, NULL);
        for (unsigned num = 0; num <= r->num_ports && rc == PMIXFAB_OK; num++)
            rc = batch_add(batch, &r->path, IB_ATTR_PORT_INFO, num, r->ports[num].info, NULL);
    }
    return rc == PMIXFAB_OK ? batch_ask(partial, batch, err) : rc;
}

/* Then who is behind the ports that are up. */
static int ask_neighbours(struct partial *partial, struct batch *batch, struct fab_err *err)
{
    int rc = PMIXFAB_OK;
    for (uint32_t i = 0; i < partial->n_rereads && rc == PMIXFAB_OK; i++) {
        struct reread *r = &partial->rereads[i];
        for (unsigned num = 1; partial_fresh(r) && num <= r->num_ports && rc == PMIXFAB_OK; num++) {
            struct reread_port *port = &r->ports[num];
            struct smp_path path = r->path;
            if (!reread_port_is_up(port))
                continue;
            if (!smp_path_extend(&path, num))
                return partial_surprise(err, "a node is too far away");
            port->behind.there = true;
            rc = batch_add(batch, &path, IB_ATTR_NODE_INFO, 0, port->behind.info, NULL);
            if (rc == PMIXFAB_OK && ask_fdr10(r->info, port->info))
                rc = batch_add(batch, &r->path, IB_ATTR_MLNX_EXT_PORT_INFO, num, NULL, &port->fdr10);
        }
    }
    return rc == PMIXFAB_OK ? batch_ask(partial, batch, err) : rc;
}

/* Then what hosts there are called, and their ports. fdr10: once that is known. */
static int ask_hosts(struct partial *partial, struct batch *batch, bool fdr10, struct fab_err *err)
{
    int rc = PMIXFAB_OK;
    for (uint32_t i = 0; i < partial->n_rereads && rc == PMIXFAB_OK; i++) {
        struct reread *r = &partial->rereads[i];
        for (unsigned num = 1; partial_fresh(r) && num <= r->num_ports && rc == PMIXFAB_OK; num++) {
            struct behind *behind = &r->ports[num].behind;
            struct smp_path path = r->path;
            struct node_info info;
            node_info_decode(behind->info, &info);
            if (!behind->there || info.type == NODE_TYPE_SWITCH || !smp_path_extend(&path, num))
                continue;
            if (fdr10) {
                if (ask_fdr10(behind->info, behind->port_info))
                    rc = batch_add(batch, &path, IB_ATTR_MLNX_EXT_PORT_INFO, info.local_port, NULL,
                                   &behind->fdr10);
                continue;
            }
            rc = batch_add(batch, &path, IB_ATTR_NODE_DESC, 0, behind->desc, NULL);
            if (rc == PMIXFAB_OK)
                rc = batch_add(batch, &path, IB_ATTR_PORT_INFO, info.local_port, behind->port_info, NULL);
        }
    }
    return rc == PMIXFAB_OK ? batch_ask(partial, batch, err) : rc;
}

int partial_ask(struct partial *partial, struct fab_err *err)
{
    struct batch batch = {0};
    int rc = ask_themselves(partial, &batch, err);
    if (rc == PMIXFAB_OK)
        rc = ask_neighbours(partial, &batch, err);
    if (rc == PMIXFAB_OK)
        rc = ask_hosts(partial, &batch, false, err);
    if (rc == PMIXFAB_OK)
        rc = ask_hosts(partial, &batch, true, err);
    batch_free(&batch);
    return rc;
}
