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

int partial_ask(struct partial *partial, struct fab_err *err)
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
