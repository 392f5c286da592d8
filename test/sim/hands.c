/* hands.c - what hands do to the fabric of a simulated site. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/sim/played.h"
#include "test/sim/site.h"

/* Which end of the cable is in that port (0: any) of that node; -1: none. */
static int end_in(const struct site_cable *cable, uint32_t node, unsigned port)
{
    for (int end = 0; end < 2; end++)
        if (cable->node[end] == node && (port == 0 || cable->port[end] == port))
            return end;
    return -1;
}

static bool site_plug(struct site *site, const char *name, unsigned port, bool plugged)
{
    const uint32_t node = site_find(site, name);
    bool found = false;
    for (uint32_t i = 0; node != FAB_NONE && i < site->n_cables; i++) {
        struct site_cable *cable = &site->cables[i];
        if (end_in(cable, node, port) < 0 || cable->plugged == plugged)
            continue;
        cable->plugged = plugged;
        found = true;
    }
    site->version += found;
    return found;
}

bool sim_pull(struct sim *s, const char *node, unsigned port)
{
    sim_note(s, port == 0 ? "hand: pull all of %s" : "hand: pull %s port %u", node, port);
    return site_plug(sim_site(s), node, port, false);
}

bool sim_plug(struct sim *s, const char *node, unsigned port)
{
    sim_note(s, port == 0 ? "hand: plug all of %s" : "hand: plug %s port %u", node, port);
    return site_plug(sim_site(s), node, port, true);
}

static struct site_cable *cable_in(struct site *site, uint32_t node, unsigned port, int *end)
{
    for (uint32_t i = 0; node != FAB_NONE && i < site->n_cables; i++) {
        *end = end_in(&site->cables[i], node, port);
        if (*end >= 0 && site->cables[i].plugged)
            return &site->cables[i];
    }
    return NULL;
}

/* Cables that were in this port and are pulled are not put back there. */
static void forget_pulled(struct site *site, uint32_t node, unsigned port)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < site->n_cables; i++)
        if (site->cables[i].plugged || end_in(&site->cables[i], node, port) < 0)
            site->cables[kept++] = site->cables[i];
    site->n_cables = kept;
}

bool sim_move(struct sim *s, const char *node, unsigned port, const char *to, unsigned to_port)
{
    struct site *site = sim_site(s);
    const uint32_t there = site_find(site, to);
    int end;
    struct site_cable *cable = cable_in(site, site_find(site, node), port, &end);
    sim_note(s, "hand: move the far end of %s port %u to %s port %u", node, port, to, to_port);
    if (cable == NULL || there == FAB_NONE || cable_in(site, there, to_port, &(int){0}) != NULL)
        return false;
    forget_pulled(site, there, to_port);
    cable = cable_in(site, site_find(site, node), port, &end);
    cable->node[1 - end] = there;
    cable->port[1 - end] = (uint8_t)to_port;
    site->version++;
    return true;
}

bool sim_link(struct sim *s, const char *a, unsigned a_port, const char *b, unsigned b_port)
{
    struct site *site = sim_site(s);
    const uint32_t ends[2] = {site_find(site, a), site_find(site, b)};
    const unsigned ports[2] = {a_port, b_port};
    struct site_cable cable = {.state = FAB_PORT_ACTIVE, .plugged = true, .width = 4, .speed = FAB_HDR};
    sim_note(s, "hand: a cable from %s port %u to %s port %u", a, a_port, b, b_port);
    for (unsigned end = 0; end < 2; end++) {
        if (ends[end] == FAB_NONE || ports[end] == 0 || ports[end] >= SITE_PORTS ||
            ports[end] > site->nodes[ends[end]].node.num_ports ||
            cable_in(site, ends[end], ports[end], &(int){0}) != NULL)
            return false;
        const struct fab_port *known = &site->nodes[ends[end]].ports[ports[end]];
        if (known->width == 0)
            cable.speed = FAB_QDR; /* as ibsim has ports that never had a cable */
        cable.node[end] = ends[end];
        cable.port[end] = (uint8_t)ports[end];
    }
    for (unsigned end = 0; end < 2; end++)
        forget_pulled(site, ends[end], ports[end]);
    site_add_cable(site, &cable);
    site->version++;
    return true;
}

bool sim_enable(struct sim *s, const char *node, unsigned port, bool enabled)
{
    struct site *site = sim_site(s);
    const uint32_t at = site_find(site, node);
    sim_note(s, "hand: %s port %u is %s", node, port, enabled ? "enabled" : "disabled");
    if (at == FAB_NONE || port == 0 || port > site->nodes[at].node.num_ports || port >= SITE_PORTS)
        return false;
    site->nodes[at].disabled[port] = !enabled;
    site->version++;
    return true;
}

bool sim_count(struct sim *s, const char *node, unsigned port, unsigned counter, uint64_t value)
{
    struct site *site = sim_site(s);
    const uint32_t at = site_find(site, node);
    if (at == FAB_NONE || port >= SITE_PORTS || counter >= PROBE_COUNTERS)
        return false;
    struct site_node *of = &site->nodes[at];
    if (of->counters == NULL)
        of->counters = calloc((size_t)SITE_PORTS * PROBE_COUNTERS, sizeof(*of->counters));
    if (of->counters == NULL)
        sim_fail("out of memory");
    of->counters[port * PROBE_COUNTERS + counter] = value;
    return true;
}

bool sim_home(struct sim *s, const char *node)
{
    struct site *site = sim_site(s);
    site->home = node == NULL ? FAB_NONE : site_find(site, node);
    sim_note(s, "hand: sweeps are made from %s", node == NULL ? "anywhere" : node);
    site->version++;
    return node == NULL || site->home != FAB_NONE;
}

void sim_room(struct sim *s, unsigned ports)
{
    site_room(sim_site(s), ports);
}

bool sim_second_port(struct sim *s, const char *node, const char *other)
{
    struct site *site = sim_site(s);
    const uint32_t to = site_find(site, node), from = site_find(site, other);
    int end;
    struct site_cable *cable = cable_in(site, from, 1, &end);
    sim_note(s, "hand: %s has the cable of %s in its port 2", node, other);
    if (to == FAB_NONE || cable == NULL)
        return false;
    struct site_node *of = &site->nodes[to];
    of->node.num_ports = 2;
    of->ports[2] = of->ports[1];
    of->ports[2].num = 2;
    of->ports[2].guid++;
    of->ports[2].lid = site->nodes[from].ports[1].lid;
    cable->node[end] = to;
    cable->port[end] = 2;
    site->nodes[from].there = false;
    site->version++;
    return true;
}

bool sim_replace(struct sim *s, const char *name, uint64_t guid)
{
    struct site *site = sim_site(s);
    const uint32_t at = site_find(site, name);
    sim_note(s, "hand: replace %s, the new GUID is 0x%" PRIx64, name, guid);
    if (at == FAB_NONE)
        return false;
    struct site_node *node = &site->nodes[at];
    for (unsigned num = 0; num < SITE_PORTS; num++)
        if (node->ports[num].guid != 0)
            node->ports[num].guid += guid - node->node.guid;
    if (node->node.system_guid == node->node.guid)
        node->node.system_guid = guid;
    node->node.guid = guid;
    site->version++;
    return true;
}

bool sim_lose(struct sim *s, const char *name)
{
    struct site *site = sim_site(s);
    const uint32_t at = site_find(site, name);
    sim_note(s, "hand: take %s away", name);
    if (at == FAB_NONE || !site->nodes[at].there)
        return false;
    site->nodes[at].there = false;
    site->version++;
    return true;
}

bool sim_rename(struct sim *s, const char *name, const char *description)
{
    struct site *site = sim_site(s);
    const uint32_t at = site_find(site, name);
    sim_note(s, "hand: %s calls itself \"%s\"", name, description);
    if (at == FAB_NONE)
        return false;
    snprintf(site->nodes[at].description, sizeof(site->nodes[at].description), "%s", description);
    site->version++;
    return true;
}

bool sim_rate(struct sim *s, const char *node, unsigned port, unsigned width, const char *speed)
{
    struct site *site = sim_site(s);
    int end;
    struct site_cable *cable = cable_in(site, site_find(site, node), port, &end);
    sim_note(s, "hand: %s port %u runs at %ux%s", node, port, width, speed);
    if (cable == NULL)
        return false;
    cable->width = (uint8_t)width;
    cable->speed = (uint8_t)fab_speed_parse(speed, strlen(speed));
    site->version++;
    return true;
}

bool sim_state(struct sim *s, const char *node, unsigned port, unsigned state)
{
    struct site *site = sim_site(s);
    int end;
    struct site_cable *cable = cable_in(site, site_find(site, node), port, &end);
    sim_note(s, "hand: %s port %u is in state %u", node, port, state);
    if (cable == NULL)
        return false;
    cable->state = (uint8_t)state;
    site->version++;
    return true;
}

unsigned sim_cable(struct sim *s, const char *a, const char *b)
{
    const struct site *site = sim_site(s);
    const uint32_t from = site_find(site, a), to = site_find(site, b);
    unsigned first = 0;
    for (uint32_t i = 0; from != FAB_NONE && to != FAB_NONE && i < site->n_cables; i++) {
        const struct site_cable *cable = &site->cables[i];
        for (unsigned end = 0; end < 2; end++)
            if (cable->plugged && cable->node[end] == from && cable->node[1 - end] == to &&
                (first == 0 || cable->port[end] < first))
                first = cable->port[end];
    }
    return first;
}
