/*
 * ibnetdiscover.c - planes in the format of ibnetdiscover(8), for programs that read it.
 *
 * Values that a snapshot does not have are written as readers expect unknown values. Vendors, devices and
 * LIDs are 0. The system image GUID of a switch is its own GUID. The number of lanes is the usual number for
 * the rate. Missing objects are not written.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fabricctl/core/ctl.h"
#include "fabricctl/export/export.h"
#include "topo/base/array.h"
#include "topo/base/order.h"
#include "topo/base/search.h"
#include "topo/model/model.h"

#define MOST_DESCRIPTION 64 /* bytes of an InfiniBand node description */

struct ib_node {
    uint64_t guid, system_guid;
    uint32_t place; /* its place in the order of arrival */
    uint32_t n_ports;
    char letter; /* S, H, R */
    char desc[600];
};

/* One end of a cable, and its far end. */
struct ib_port {
    uint64_t guid, port_guid, to_guid, to_port_guid, mbps;
    uint32_t port, to_port;
};

struct ib_subnet {
    struct ctl_export *x;
    struct ib_node *nodes;
    uint32_t n_nodes, nodes_room;
    struct ib_port *ports;
    uint32_t n_ports, ports_room;
    bool failed;
};

/* ---- gathering ---- */

static struct ib_node *ib_add_node(struct ib_subnet *s, char letter, uint64_t guid)
{
    if (!FAB_ARRAY_ROOM(&s->nodes, &s->nodes_room, s->n_nodes + UINT64_C(1))) {
        s->failed = true;
        return NULL;
    }
    s->nodes[s->n_nodes] = (struct ib_node){
        .guid = guid, .system_guid = guid, .place = s->n_nodes, .n_ports = 1, .letter = letter};
    return &s->nodes[s->n_nodes++];
}

static void ib_describe(struct ib_subnet *s, struct ib_node *node, const char *first, const char *second)
{
    snprintf(node->desc, sizeof node->desc, "%s%s%s", first, *second != '\0' ? " " : "", second);
    ctl_clean(node->desc);
    if (strlen(node->desc) > MOST_DESCRIPTION)
        ctl_export_lost(
            s->x,
            "\"%s\" is longer than the %d bytes of a node's description, and readers may ignore the rest",
            node->desc, MOST_DESCRIPTION);
}

static void ib_add_switches(struct ib_subnet *s, const struct pmixfab *fab, const struct pmixfab_plane *plane)
{
    struct pmixfab_switch sw;
    for (uint32_t i = 0; i < plane->n_switches && pmixfab_switch(fab, i, &sw) == 0; i++) {
        struct ib_node *node = sw.missing != 0 ? NULL : ib_add_node(s, 'S', sw.guid);
        if (node == NULL)
            continue;
        node->n_ports = sw.n_ports;
        ib_describe(s, node, sw.name, "");
    }
}

/* Add HCAs. Devices are their ports, and some ports may be in another plane. */
static void ib_add_hcas(struct ib_subnet *s, const struct pmixfab *fab, const struct pmixfab_plane *plane)
{
    struct pmixfab_device device;
    for (uint32_t i = 0; i < plane->n_devices && pmixfab_device(fab, i, &device) == 0; i++) {
        struct ib_node *node =
            (device.seen & PMIXFAB_SEEN_MISSING) != 0 ? NULL : ib_add_node(s, 'H', device.node_guid);
        if (node == NULL)
            continue;
        if (!ctl_plain_name(device.host, MOST_DESCRIPTION))
            ctl_export_lost(s->x, "a reader does not take \"%s\" for the name of a host", device.host);
        node->n_ports = device.port;
        if (device.system_guid != 0)
            node->system_guid = device.system_guid;
        ib_describe(s, node, device.host, device.name);
    }
}

static void ib_add_end(struct ib_subnet *s, const struct pmixfab_end *end)
{
    const bool router = end->kind == PMIXFAB_END_ROUTER;
    struct ib_node *node;
    if (end->is_switch != 0 || end->kind == PMIXFAB_END_DEVICE || end->guid == 0)
        return;
    node = ib_add_node(s, router ? 'R' : 'H', end->guid);
    if (node == NULL)
        return;
    node->n_ports = end->port;
    snprintf(node->desc, sizeof node->desc, "%s", router ? "router" : "Aggregation Node");
}

static uint64_t ib_port_guid(const struct pmixfab *fab, const struct pmixfab_end *end)
{
    struct pmixfab_device device;
    return end->kind == PMIXFAB_END_DEVICE && pmixfab_device(fab, end->index, &device) == 0 ? device.port_guid
                                                                                            : 0;
}

static void ib_add_port(struct ib_subnet *s, const struct pmixfab *fab, const struct pmixfab_link *link,
                        bool forth)
{
    const struct pmixfab_end *from = forth ? &link->a : &link->b, *to = forth ? &link->b : &link->a;
    if (!FAB_ARRAY_ROOM(&s->ports, &s->ports_room, s->n_ports + UINT64_C(1)))
        s->failed = true;
    else
        s->ports[s->n_ports++] = (struct ib_port){.guid = from->guid,
                                                  .port_guid = ib_port_guid(fab, from),
                                                  .to_guid = to->guid,
                                                  .to_port_guid = ib_port_guid(fab, to),
                                                  .mbps = link->mbps,
                                                  .port = from->port,
                                                  .to_port = to->port};
}

static void ib_add_plane(struct ib_subnet *s, const struct pmixfab *fab)
{
    struct pmixfab_plane plane;
    struct pmixfab_link link;
    if (pmixfab_plane(fab, &plane) != 0 || strcmp(plane.kind, "unattached") == 0)
        return;
    ib_add_switches(s, fab, &plane);
    ib_add_hcas(s, fab, &plane);
    for (uint32_t i = 0; i < plane.n_links && pmixfab_link(fab, i, &link) == 0; i++) {
        if (link.missing != 0)
            continue;
        ib_add_end(s, &link.a);
        ib_add_end(s, &link.b);
        ib_add_port(s, fab, &link, true);
        ib_add_port(s, fab, &link, false);
    }
}

/* ---- in order ---- */

static int compare_ib_nodes(const void *a, const void *b)
{
    const struct ib_node *x = a, *y = b;
    return FAB_ORDER(x->guid, y->guid) ?: FAB_ORDER(x->place, y->place);
}

/* Sort switches first, then by arrival. */
static int compare_ib_places(const void *a, const void *b)
{
    const struct ib_node *x = *(struct ib_node *const *)a, *y = *(struct ib_node *const *)b;
    return FAB_ORDER(x->letter != 'S', y->letter != 'S') ?: FAB_ORDER(x->place, y->place);
}

static int compare_ib_ports(const void *a, const void *b)
{
    const struct ib_port *x = a, *y = b;
    return FAB_ORDER(x->guid, y->guid) ?: FAB_ORDER(x->port, y->port);
}

static const struct ib_node *ib_find(const struct ib_subnet *s, uint64_t guid)
{
    const uint32_t place = FAB_LOWER_BOUND(0, s->n_nodes, at, s->nodes[at].guid < guid);
    return place < s->n_nodes && s->nodes[place].guid == guid ? &s->nodes[place] : NULL;
}

/* ---- writing ---- */

static void ib_write_port(const struct ib_subnet *s, const struct ib_node *node, const struct ib_port *port)
{
    FILE *out = s->x->out;
    const struct ib_node *to = ib_find(s, port->to_guid);
    if (to == NULL)
        return;
    fprintf(out, "[%u]", port->port);
    if (node->letter != 'S' && port->port_guid != 0)
        fprintf(out, "(%" PRIx64 ") ", port->port_guid);
    fprintf(out, "\t\"%c-%016" PRIx64 "\"[%u]", to->letter, to->guid, port->to_port);
    if (to->letter != 'S' && port->to_port_guid != 0)
        fprintf(out, "(%" PRIx64 ") ", port->to_port_guid);
    fprintf(out, "\t\t# %s\"%s\" lid 0 ", node->letter != 'S' ? "lid 0 lmc 0 " : "", to->desc);
    unsigned width;
    enum fab_speed speed;
    if (fab_rate_parse(port->mbps, &width, &speed))
        fprintf(out, "%ux%s", width, fab_speed_name(speed));
    else
        fputs("?x???", out);
    putc('\n', out);
}

static void ib_write_node(const struct ib_subnet *s, const struct ib_node *node, const struct ib_port *ports,
                          const struct ib_port *end)
{
    static const char *const keys[] = {"switchguid", "caguid", "rtguid"}, *const kinds[] = {"Switch", "Ca",
                                                                                            "Rt"};
    const unsigned kind = node->letter == 'S' ? 0 : node->letter == 'H' ? 1 : 2;
    FILE *out = s->x->out;
    fprintf(out, "\nvendid=0x0\ndevid=0x0\nsysimgguid=0x%" PRIx64 "\n%s=0x%" PRIx64, node->system_guid,
            keys[kind], node->guid);
    if (kind == 0)
        fprintf(out, "(%" PRIx64 ")", node->guid);
    fprintf(out, "\n%s\t%u \"%c-%016" PRIx64 "\"\t\t# \"%s\"%s\n", kinds[kind], node->n_ports, node->letter,
            node->guid, node->desc, kind == 0 ? " base port 0 lid 0 lmc 0" : "");
    for (; ports < end && ports->guid == node->guid; ports++)
        ib_write_port(s, node, ports);
}

static bool ib_write(const struct ib_subnet *s)
{
    const struct ib_node **order = malloc((s->n_nodes + (size_t)1) * sizeof *order);
    if (order == NULL)
        return false;
    for (uint32_t i = 0; i < s->n_nodes; i++)
        order[i] = &s->nodes[i];
    qsort(order, s->n_nodes, sizeof(struct ib_node *), compare_ib_places);
    for (uint32_t i = 0; i < s->n_nodes; i++) {
        const uint32_t first = FAB_LOWER_BOUND(0, s->n_ports, at, s->ports[at].guid < order[i]->guid);
        ib_write_node(s, order[i], s->ports + first, s->ports + s->n_ports);
    }
    free(order);
    return true;
}

enum ctl_exit ctl_export_ibnetdiscover(struct ctl_export *x)
{
    struct ib_subnet s = {.x = x};
    bool good;
    for (size_t i = 0; i < x->view->n; i++)
        ib_add_plane(&s, x->view->planes[i]);
    /* By GUID, each once: the first record gives the kind, all of them give the number of ports. */
    uint32_t n = 0;
    if (s.n_nodes > 0)
        qsort(s.nodes, s.n_nodes, sizeof *s.nodes, compare_ib_nodes);
    for (uint32_t i = 0; i < s.n_nodes; i++) {
        if (n == 0 || s.nodes[n - 1].guid != s.nodes[i].guid)
            s.nodes[n++] = s.nodes[i];
        else if (s.nodes[n - 1].n_ports < s.nodes[i].n_ports)
            s.nodes[n - 1].n_ports = s.nodes[i].n_ports;
    }
    s.n_nodes = n;
    if (s.n_ports > 0)
        qsort(s.ports, s.n_ports, sizeof *s.ports, compare_ib_ports);
    good = !s.failed && ib_write(&s);
    free(s.nodes);
    free(s.ports);
    return good ? CTL_DONE : ctl_nomem();
}
