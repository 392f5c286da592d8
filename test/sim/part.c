/*
 * part.c - a sweep of a part of a simulated site: the switches that are asked for are read, and those that
 * their cables led or lead to; all else is what the last sweep saw. What a probe of hardware cannot know of,
 * this refuses, too.
 */
#include <stdlib.h>
#include <string.h>

#include "test/sim/played.h"
#include "test/sim/site.h"

typedef struct {
    uint32_t cable[SITE_PORTS]; /* by port, FAB_NONE: none that is up */
} at_ports;

struct part {
    const struct site *site;
    const struct fab_inventory *last;
    struct site *was; /* what the last sweep saw, with nodes in its order; in the end, what this one sees */
    bool *read;       /* by nodes of `was` */
    bool more;        /* there are switches to read that were not */
    at_ports *cables_of_site, *cables_of_was;
};

static at_ports *cables_by_port(const struct site *site)
{
    at_ports *at = malloc((site->n_nodes + 1) * sizeof(*at));
    if (at == NULL)
        sim_fail("out of memory");
    memset(at, 0xff, (site->n_nodes + 1) * sizeof(*at));
    for (uint32_t i = 0; i < site->n_cables; i++)
        for (unsigned end = 0; end < 2 && site_cable_is_up(site, &site->cables[i]); end++)
            at[site->cables[i].node[end]].cable[site->cables[i].port[end]] = i;
    return at;
}

/* The node and port at the other end of the cable in that port; FAB_NONE: none. */
static uint32_t far_end(const struct site *site, const at_ports *at, uint32_t node, unsigned port,
                        uint8_t *num)
{
    *num = 0;
    if (at[node].cable[port] == FAB_NONE)
        return FAB_NONE;
    const struct site_cable *cable = &site->cables[at[node].cable[port]];
    const unsigned end = cable->node[0] == node && cable->port[0] == port ? 1 : 0;
    *num = cable->port[end];
    return cable->node[end];
}

static void part_suspect(struct part *part, uint32_t node)
{
    if (node == FAB_NONE || part->was->nodes[node].node.kind != FAB_SWITCH || part->read[node])
        return;
    part->read[node] = part->more = true;
}

/* What the ports of a switch that is read say of other switches. */
static int part_read(struct part *part, uint32_t at, struct fab_err *err)
{
    const struct site *site = part->site, *was = part->was;
    const uint32_t there = site_find_guid(site, was->nodes[at].node.guid);
    bool reached = false;
    for (unsigned num = 1; there != FAB_NONE && num < SITE_PORTS; num++) {
        uint8_t before_num, after_num, other_num;
        const uint32_t before = far_end(was, part->cables_of_was, at, num, &before_num);
        const uint32_t after = far_end(site, part->cables_of_site, there, num, &after_num);
        const struct fab_node *node = after == FAB_NONE ? NULL : &site->nodes[after].node;
        const uint32_t known = node == NULL ? FAB_NONE : fab_inventory_find(part->last, node->guid);
        if (node != NULL && known == FAB_NONE && node->kind == FAB_SWITCH)
            return fab_fail(err, PMIXFAB_ERR_UNSUPPORTED, "there is a new switch");
        reached = reached || node != NULL;
        if (known == before && after_num == before_num)
            continue;
        part_suspect(part, before);
        part_suspect(part, known);
        if (known != FAB_NONE)
            part_suspect(part, far_end(was, part->cables_of_was, known, after_num, &other_num));
    }
    return reached ? PMIXFAB_OK
                   : fab_fail(err, PMIXFAB_ERR_UNSUPPORTED, "a switch is not in its former place");
}

/* Until no other switch turns out to have changed; *n: of how many. */
static int part_read_all(struct part *part, uint32_t *n, struct fab_err *err)
{
    bool *done = calloc(part->was->n_nodes + 1, sizeof(*done));
    int rc = done == NULL ? PMIXFAB_ERR_NOMEM : PMIXFAB_OK;
    *n = 0;
    for (part->more = true; rc == PMIXFAB_OK && part->more;) {
        part->more = false;
        for (uint32_t i = 0; rc == PMIXFAB_OK && i < part->was->n_nodes; i++) {
            if (!part->read[i] || done[i])
                continue;
            done[i] = true;
            *n += 1;
            rc = part_read(part, i, err);
        }
    }
    free(done);
    return rc;
}

/* Is that node of the site one that is read? */
static bool is_read(const struct part *part, const struct site_node *node)
{
    const uint32_t at =
        node->node.kind == FAB_SWITCH ? fab_inventory_find(part->last, node->node.guid) : FAB_NONE;
    return at != FAB_NONE && part->read[at];
}

/* The cables of what was read, as they are now, and what is at their ends. */
static void part_renew(struct part *part)
{
    struct site *was = part->was;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < was->n_cables; i++)
        if (!part->read[was->cables[i].node[0]] && !part->read[was->cables[i].node[1]])
            was->cables[kept++] = was->cables[i];
    was->n_cables = kept;
    for (uint32_t i = 0; i < part->site->n_nodes; i++)
        if (is_read(part, &part->site->nodes[i]))
            site_renew_node(was, &part->site->nodes[i]);
    for (uint32_t i = 0; i < part->site->n_cables; i++) {
        struct site_cable cable = part->site->cables[i];
        const struct site_node *ends[2] = {&part->site->nodes[cable.node[0]],
                                           &part->site->nodes[cable.node[1]]};
        if (!site_cable_is_up(part->site, &cable) || (!is_read(part, ends[0]) && !is_read(part, ends[1])))
            continue;
        for (unsigned end = 0; end < 2; end++)
            cable.node[end] = site_renew_node(was, ends[end]);
        site_add_cable(was, &cable);
    }
}

int site_part(const struct site *site, const struct fab_inventory *last, const uint64_t *switches, uint32_t n,
              struct fab_inventory *inv, uint32_t *n_read, struct fab_err *err)
{
    struct part part = {.site = site, .last = last, .was = site_of(last)};
    uint32_t there = 0, seen = 0;
    fab_inventory_init(inv);
    part.read = calloc(part.was->n_nodes + 1, sizeof(*part.read));
    int rc = part.read == NULL ? PMIXFAB_ERR_NOMEM : PMIXFAB_OK;
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < n; i++) {
        const uint32_t at = fab_inventory_find(last, switches[i]);
        if (at == FAB_NONE)
            rc = fab_fail(err, PMIXFAB_ERR_UNSUPPORTED, "a switch changed that is not in the last inventory");
        else
            part.read[at] = true;
    }
    if (site->home != FAB_NONE)
        part.was->home = fab_inventory_find(last, site->nodes[site->home].node.guid);
    part.cables_of_site = cables_by_port(site);
    part.cables_of_was = cables_by_port(part.was);
    if (rc == PMIXFAB_OK)
        rc = part_read_all(&part, n_read, err);
    if (rc == PMIXFAB_OK) {
        part_renew(&part);
        site_inventory(part.was, NULL, inv);
        for (uint32_t i = 0; i < part.was->n_nodes; i++)
            there += part.was->nodes[i].node.kind == FAB_SWITCH;
        for (uint32_t i = 0; i < inv->n_nodes; i++)
            seen += inv->nodes[i].kind == FAB_SWITCH;
        if (seen < there)
            rc = fab_fail(err, PMIXFAB_ERR_UNSUPPORTED, "a part of the subnet is no longer reached");
    }
    site_free(part.was);
    free(part.read);
    free(part.cables_of_site);
    free(part.cables_of_was);
    return rc;
}
