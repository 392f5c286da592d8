/* file_links.c - the cables of a capture: each is told twice, from both ends. */
#include <inttypes.h>
#include <stdlib.h>

#include "probes/capture/file_capture.h"

#define REMARKS 10 /* of cables whose ends tell different rates */

static int same_guid(const void *a, const void *b)
{
    const struct capture_node *x = a, *y = b;
    return x->guid < y->guid ? -1 : x->guid > y->guid;
}

static int capture_compare_guid(const void *a, const void *b)
{
    const struct capture_node *x = a, *y = b;
    int order = same_guid(a, b);
    return order != 0 ? order : x->index < y->index ? -1 : x->index > y->index;
}

static const struct capture_node *capture_find_node(const struct capture *c, uint64_t guid)
{
    const struct capture_node key = {.guid = guid};
    return bsearch(&key, c->nodes, c->inv->n_nodes, sizeof(key), same_guid);
}

static uint32_t capture_find_port(const struct capture *c, const struct capture_node *node, uint8_t num)
{
    for (uint32_t i = node->first_port; i < node->first_port + node->n_ports; i++)
        if (c->inv->ports[i].num == num)
            return i;
    return FAB_NONE;
}

static int capture_check_names(const struct capture *c)
{
    for (uint32_t i = 1; i < c->inv->n_nodes; i++) {
        const struct capture_node *node = &c->nodes[i];
        if (node->guid == node[-1].guid)
            return fab_fail(c->err, PMIXFAB_ERR_CONFLICT,
                            "%s:%" PRIu32 ":%u: a second record of node 0x%016" PRIx64
                            ", the first is in line %" PRIu32 "; remove one",
                            c->file, c->inv->nodes[node->index].line, node->column, node->guid,
                            c->inv->nodes[node[-1].index].line);
    }
    return PMIXFAB_OK;
}

/* The far end has no line of its own. */
static int check_missing(const struct capture *c, uint32_t i, const struct capture_node *far)
{
    const struct capture_peer *peer = &c->peers[i];
    if (far == NULL || far->index + 1 != c->inv->n_nodes)
        return PMIXFAB_OK;
    return fab_fail(c->err, PMIXFAB_ERR_TRUNCATED,
                    "%s:%" PRIu32 ":%u: port %u of node 0x%016" PRIx64
                    " is missing from its record in line %" PRIu32 ", where the file ends: it was cut; "
                    "record it again",
                    c->file, c->inv->ports[i].line, peer->column, peer->port, peer->guid,
                    c->inv->nodes[far->index].line);
}

/* Both ends have lines: do they name each other? */
static int check_ends(const struct capture *c, uint32_t i, uint32_t j)
{
    const struct fab_port *near = &c->inv->ports[i], *far = &c->inv->ports[j];
    const struct fab_node *far_node = &c->inv->nodes[far->node];
    const struct capture_peer *there = &c->peers[i], *back = &c->peers[j];
    const char *what = NULL;
    if (back->guid != c->inv->nodes[near->node].guid || back->port != near->num)
        what = "port";
    else if (there->port_guid != 0 && far->guid != 0 && there->port_guid != far->guid)
        what = "port GUID";
    else if ((far_node->kind == FAB_SWITCH) != (there->is_switch != 0))
        what = "kind of node";
    if (what == NULL)
        return PMIXFAB_OK;
    return fab_fail(c->err, PMIXFAB_ERR_CONFLICT,
                    "%s:%" PRIu32 ":%u: this cable leads to port %u of node 0x%016" PRIx64 ", but %s:%" PRIu32
                    " tells it differently (%s); record the file again",
                    c->file, near->line, there->column, there->port, there->guid, c->file, far->line, what);
}

/* A capture that was put together of two, or made while a link came up. */
static void compare_rates(struct capture *c, const struct fab_port *near, const struct fab_port *far)
{
    if (near->speed == FAB_SPEED_UNKNOWN || far->speed == FAB_SPEED_UNKNOWN || near->width == 0 ||
        far->width == 0 || (near->speed == far->speed && near->width == far->width))
        return;
    if (c->n_rates++ < REMARKS)
        probe_note(c->sink, PMIXFAB_LOG_INFO,
                   "%s:%" PRIu32 " and %s:%" PRIu32
                   ": the two ends of this cable tell different rates: %ux%s and %ux%s",
                   c->file, near->line, c->file, far->line, near->width, fab_speed_name(near->speed),
                   far->width, fab_speed_name(far->speed));
}

static int capture_connect(struct capture *c, uint32_t i)
{
    const struct fab_port *port = &c->inv->ports[i];
    const struct capture_peer *peer = &c->peers[i];
    if (port->state == FAB_PORT_LOOPED)
        return PMIXFAB_OK;
    const struct capture_node *far = capture_find_node(c, peer->guid);
    if (far != NULL && peer->port > c->inv->nodes[far->index].num_ports)
        return fab_fail(c->err, PMIXFAB_ERR_RANGE,
                        "%s:%" PRIu32 ":%u: node 0x%016" PRIx64
                        " has no port %u, it has 1 to %u (line %" PRIu32 "); record the file again",
                        c->file, port->line, peer->column, peer->guid, peer->port,
                        c->inv->nodes[far->index].num_ports, c->inv->nodes[far->index].line);
    uint32_t other = far != NULL ? capture_find_port(c, far, peer->port) : FAB_NONE;
    if (other == FAB_NONE)
        return check_missing(c, i, far);
    int rc = check_ends(c, i, other);
    if (rc == PMIXFAB_OK && other > i)
        rc = fab_inventory_link(c->inv, i, other);
    if (rc == PMIXFAB_OK && other > i)
        compare_rates(c, port, &c->inv->ports[other]);
    return rc;
}

int capture_join(struct capture *c)
{
    qsort(c->nodes, c->inv->n_nodes, sizeof(*c->nodes), capture_compare_guid);
    int rc = capture_check_names(c);
    for (uint32_t i = 0; i < c->inv->n_ports && rc == PMIXFAB_OK; i++)
        rc = capture_connect(c, i);
    if (rc == PMIXFAB_OK && c->n_rates > REMARKS)
        probe_note(c->sink, PMIXFAB_LOG_INFO, "%s: so do the ends of %" PRIu32 " more cables", c->file,
                   c->n_rates - REMARKS);
    if (rc == PMIXFAB_OK && c->n_loops > 0)
        probe_note(c->sink, PMIXFAB_LOG_INFO, "%s:%" PRIu32 ": %u port%s cabled to %s own node: left out",
                   c->file, c->loop_line, c->n_loops, c->n_loops == 1 ? " is" : "s are",
                   c->n_loops == 1 ? "its" : "their");
    return rc;
}
