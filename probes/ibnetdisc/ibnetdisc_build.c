/* ibnetdisc_build.c - build an inventory from the last one and the switches that were read again. */
#include <stdlib.h>
#include <string.h>

#include "probes/ibnetdisc/ibnetdisc.h"

/* A node that is not a switch, at a port of a switch that was read. */
struct host {
    uint64_t guid;
    struct behind *behind;
    uint32_t made; /* in the new inventory */
};

struct build {
    struct reread_sweep *sweep;
    const struct fab_inventory *last;
    struct fab_inventory *inv;
    struct host *hosts; /* sorted by GUID, each once */
    uint32_t n_hosts;
    uint32_t *nodes; /* of the last inventory: their number in the new one; FAB_NONE: gone */
    uint32_t *ports; /* likewise */
};

static int build_compare_guid(const void *a, const void *b)
{
    const struct host *x = a, *y = b;
    return x->guid < y->guid ? -1 : x->guid > y->guid;
}

static struct host *build_find_host(const struct build *b, uint64_t guid)
{
    const struct host key = {.guid = guid};
    return b->n_hosts == 0 ? NULL : bsearch(&key, b->hosts, b->n_hosts, sizeof(key), build_compare_guid);
}

static int collect_hosts(struct build *b, struct fab_err *err)
{
    size_t most = 0;
    for (uint32_t i = 0; i < b->sweep->n_rereads; i++)
        most += b->sweep->rereads[i].num_ports;
    b->hosts = calloc(most + 1, sizeof(*b->hosts));
    if (b->hosts == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "ibnetdisc: out of memory");
    for (uint32_t i = 0; i < b->sweep->n_rereads; i++) {
        struct reread *r = &b->sweep->rereads[i];
        for (unsigned num = 1; num <= r->num_ports; num++) {
            struct node_info info;
            node_info_decode(r->ports[num].behind.info, &info);
            if (r->ports[num].behind.there && info.type != NODE_TYPE_SWITCH)
                b->hosts[b->n_hosts++] =
                    (struct host){.guid = info.node_guid, .behind = &r->ports[num].behind, .made = FAB_NONE};
        }
    }
    qsort(b->hosts, b->n_hosts, sizeof(*b->hosts), build_compare_guid);
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->n_hosts; i++)
        if (n == 0 || b->hosts[n - 1].guid != b->hosts[i].guid)
            b->hosts[n++] = b->hosts[i];
    b->n_hosts = n;
    return PMIXFAB_OK;
}

/* ---- nodes ---------------------------------------------------------------------------------------- */

static bool was_read(const struct build *b, uint32_t node)
{
    return b->sweep->which[node] != FAB_NONE;
}

/* Return whether this port, of a node that was not read, still has its cable. */
static bool build_port_unchanged(const struct build *b, uint32_t port)
{
    const uint32_t peer = b->last->ports[port].peer;
    return peer != FAB_NONE && !was_read(b, b->last->ports[peer].node);
}

static int copy_node(struct build *b, uint32_t from, struct fab_err *err)
{
    struct fab_node node = b->last->nodes[from];
    const char *desc = fab_str(b->last, node.desc);
    node.desc = fab_inventory_string(b->inv, desc, strlen(desc));
    if (node.desc == FAB_NONE || fab_inventory_add_node(b->inv, &node, &b->nodes[from]) != PMIXFAB_OK)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "ibnetdisc: out of memory");
    return PMIXFAB_OK;
}

static int build_add_switch(struct build *b, uint32_t from, struct fab_err *err)
{
    struct reread *r = &b->sweep->rereads[b->sweep->which[from]];
    struct port_info zero;
    port_info_decode(r->ports[0].info, NULL, false, &zero);
    const struct observed_node seen = {
        .info = r->info,
        .desc = (const char *)r->desc,
        .lid = zero.lid,
        .lmc = zero.lmc,
        .enhanced = mad_get_field(r->switch_info, 0, IB_SW_ENHANCED_PORT0_F) != 0,
    };
    int rc = observed_add_node(b->inv, &seen, &b->nodes[from], err);
    if (rc != PMIXFAB_OK)
        return rc;
    /* Chassis are numbered over the whole subnet: a switch with the same name is in the same chassis. */
    const struct fab_node *before = &b->last->nodes[from];
    struct fab_node *now = &b->inv->nodes[b->nodes[from]];
    if (now->system_guid != before->system_guid || now->vendor_id != before->vendor_id ||
        strcmp(fab_str(b->inv, now->desc), fab_str(b->last, before->desc)) != 0)
        return fab_fail(err, PMIXFAB_ERR_UNSUPPORTED, "ibnetdisc: a switch has another name");
    now->chassis = before->chassis;
    now->slot_type = before->slot_type;
    now->slot = before->slot;
    now->chip = before->chip;
    return PMIXFAB_OK;
}

static int build_add_host(struct build *b, struct host *host, struct fab_err *err)
{
    const struct observed_node seen = {.info = host->behind->info, .desc = (const char *)host->behind->desc};
    return observed_add_node(b->inv, &seen, &host->made, err);
}

static int add_nodes(struct build *b, struct fab_err *err)
{
    int rc = PMIXFAB_OK;
    for (uint32_t i = 0; i < b->last->n_nodes && rc == PMIXFAB_OK; i++) {
        const struct fab_node *node = &b->last->nodes[i];
        b->nodes[i] = FAB_NONE;
        if (node->kind == FAB_SWITCH) {
            rc = was_read(b, i) ? build_add_switch(b, i, err) : copy_node(b, i, err);
            continue;
        }
        struct host *host = build_find_host(b, node->guid);
        if (host != NULL) {
            rc = build_add_host(b, host, err);
            b->nodes[i] = host->made;
            continue;
        }
        /* gone, unless it has another connection; a node that never had a cable is not decided here */
        bool cabled = false, stays = false;
        for (uint32_t k = node->first_port; k < node->first_port + node->n_ports; k++) {
            cabled |= b->last->ports[k].peer != FAB_NONE;
            stays |= build_port_unchanged(b, k);
        }
        if (stays || !cabled)
            rc = copy_node(b, i, err);
    }
    for (uint32_t i = 0; i < b->n_hosts && rc == PMIXFAB_OK; i++)
        if (b->hosts[i].made == FAB_NONE)
            rc = build_add_host(b, &b->hosts[i], err);
    return rc;
}

/* ---- ports ---------------------------------------------------------------------------------------- */

static int build_add_port(struct build *b, const struct fab_port *port, uint32_t *made, struct fab_err *err)
{
    int rc = fab_inventory_add_port(b->inv, port, made);
    return rc == PMIXFAB_OK ? rc : fab_fail(err, rc, "ibnetdisc: port %u does not fit in", port->num);
}

static int copy_ports(struct build *b, struct fab_err *err)
{
    int rc = PMIXFAB_OK;
    for (uint32_t i = 0; i < b->last->n_ports && rc == PMIXFAB_OK; i++) {
        struct fab_port port = b->last->ports[i];
        b->ports[i] = FAB_NONE;
        const uint32_t node = port.node;
        if (b->nodes[node] == FAB_NONE || was_read(b, node))
            continue;
        const bool is_switch = b->last->nodes[node].kind == FAB_SWITCH;
        const bool is_fresh = build_find_host(b, b->last->nodes[node].guid) != NULL;
        if (!is_switch && !build_port_unchanged(b, i) && (is_fresh || port.peer != FAB_NONE))
            continue;
        port.node = b->nodes[node];
        port.peer = FAB_NONE;
        rc = build_add_port(b, &port, &b->ports[i], err);
    }
    return rc;
}

static void set_link(struct fab_port *port, const struct port_info *info)
{
    port->state = info->state;
    port->width = info->width;
    port->speed = info->speed;
}

/* Add the port of a switch that was read, and the host's port at its other end. */
static int add_read_port(struct build *b, const struct reread *r, unsigned num, struct fab_err *err)
{
    struct reread_port *from = &r->ports[num];
    struct behind *behind = &from->behind;
    struct port_info info;
    struct node_info other;
    from->made = behind->made = FAB_NONE;
    port_info_decode(from->info, r->ports[0].info, from->fdr10, &info);
    node_info_decode(behind->info, &other);
    const bool disabled = !behind->there && info.state == FAB_PORT_DISABLED;
    const bool looped = behind->there && other.node_guid == b->last->nodes[r->node].guid;
    if (!disabled && !behind->there)
        return PMIXFAB_OK;
    struct fab_port port = {
        .node = b->nodes[r->node], .num = (uint8_t)num, .subnet = b->last->ports[b->sweep->view.own].subnet};
    set_link(&port, &info);
    if (disabled || looped) { /* there is no link with a width */
        port.width = 0;
        port.speed = FAB_SPEED_UNKNOWN;
        if (looped)
            port.state = FAB_PORT_LOOPED;
        return build_add_port(b, &port, looped ? NULL : &from->made, err);
    }
    int rc = build_add_port(b, &port, &from->made, err);
    const struct host *host = other.type == NODE_TYPE_SWITCH ? NULL : build_find_host(b, other.node_guid);
    if (rc != PMIXFAB_OK || host == NULL)
        return rc;
    port_info_decode(behind->port_info, behind->port_info, behind->fdr10, &info);
    port.node = host->made;
    port.num = other.local_port;
    port.guid = other.port_guid;
    port.lid = info.lid;
    port.lmc = info.lmc;
    set_link(&port, &info);
    rc = build_add_port(b, &port, &behind->made, err);
    return rc == PMIXFAB_OK ? fab_inventory_link(b->inv, from->made, behind->made) : rc;
}

/* ---- cables --------------------------------------------------------------------------------------- */

/* Between two switches: each must see the other one. */
static int link_read_port(struct build *b, const struct reread *r, unsigned num)
{
    const struct reread_port *from = &r->ports[num];
    struct node_info other, back;
    node_info_decode(from->behind.info, &other);
    if (from->made == FAB_NONE || other.type != NODE_TYPE_SWITCH)
        return PMIXFAB_OK;
    const uint32_t node = fab_inventory_find(b->last, other.node_guid);
    if (was_read(b, node)) {
        const struct reread *far = &b->sweep->rereads[b->sweep->which[node]];
        if (other.local_port > far->num_ports)
            return PMIXFAB_ERR_CONFLICT;
        const struct reread_port *to = &far->ports[other.local_port];
        node_info_decode(to->behind.info, &back);
        if (to->made == FAB_NONE || !to->behind.there || back.node_guid != b->last->nodes[r->node].guid ||
            back.local_port != num)
            return PMIXFAB_ERR_CONFLICT;
        return from->made < to->made ? fab_inventory_link(b->inv, from->made, to->made) : PMIXFAB_OK;
    }
    const uint32_t port = fab_inventory_port(b->last, node, other.local_port);
    if (port == FAB_NONE || b->ports[port] == FAB_NONE)
        return PMIXFAB_ERR_CONFLICT;
    return fab_inventory_link(b->inv, from->made, b->ports[port]);
}

static int link_ports(struct build *b)
{
    int rc = PMIXFAB_OK;
    for (uint32_t i = 0; i < b->last->n_ports && rc == PMIXFAB_OK; i++) {
        const uint32_t peer = b->last->ports[i].peer;
        if (peer != FAB_NONE && peer > i && b->ports[i] != FAB_NONE && b->ports[peer] != FAB_NONE)
            rc = fab_inventory_link(b->inv, b->ports[i], b->ports[peer]);
    }
    for (uint32_t i = 0; i < b->sweep->n_rereads && rc == PMIXFAB_OK; i++) {
        const struct reread *r = &b->sweep->rereads[i];
        for (unsigned num = 1; num <= r->num_ports && rc == PMIXFAB_OK; num++)
            rc = link_read_port(b, r, num);
    }
    return rc;
}

int switches_build(struct reread_sweep *sweep, struct fab_inventory *inv, struct fab_err *err)
{
    struct build b = {.sweep = sweep, .last = sweep->last, .inv = inv};
    b.nodes = malloc((sweep->last->n_nodes + 1) * sizeof(*b.nodes));
    b.ports = malloc((sweep->last->n_ports + 1) * sizeof(*b.ports));
    int rc = b.nodes == NULL || b.ports == NULL ? PMIXFAB_ERR_NOMEM : PMIXFAB_OK;
    if (rc != PMIXFAB_OK)
        fab_fail(err, rc, "ibnetdisc: out of memory");
    inv->n_subnets = sweep->last->n_subnets;
    memcpy(inv->subnets, sweep->last->subnets, sizeof(inv->subnets));
    if (rc == PMIXFAB_OK)
        rc = collect_hosts(&b, err) ?: add_nodes(&b, err) ?: copy_ports(&b, err);
    for (uint32_t i = 0; i < sweep->n_rereads && rc == PMIXFAB_OK; i++)
        for (unsigned num = 1; num <= sweep->rereads[i].num_ports && rc == PMIXFAB_OK; num++)
            rc = add_read_port(&b, &sweep->rereads[i], num, err);
    if (rc == PMIXFAB_OK)
        rc = link_ports(&b) ?: fab_inventory_finish(inv, err);
    if (rc != PMIXFAB_OK && rc != PMIXFAB_ERR_NOMEM) /* it changed while it was read */
        rc = fab_fail(err, PMIXFAB_ERR_UNSUPPORTED, "ibnetdisc: the new data do not fit together");
    free(b.nodes);
    free(b.ports);
    free(b.hosts);
    return rc;
}
