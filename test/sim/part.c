/*
 * part.c - a sweep of a part of a simulated site: the switches that are asked for are read, and those that
 * their cables led or lead to; all else is what the last sweep saw. What a probe of hardware cannot know of,
 * this refuses, too.
 */
#include <stdlib.h>

#include "test/sim/played.h"
#include "test/sim/site.h"

struct part {
    const struct site *site;
    struct site *was; /* what the last sweep saw; in the end, what this one sees */
    bool *read;       /* by nodes of `was` */
    bool more;        /* there are switches to read that were not */
};

/* The node and port at the other end of the cable in that port; FAB_NONE: none. */
static uint32_t far_end(const struct site *site, uint32_t node, unsigned port, uint8_t *num)
{
    for (uint32_t i = 0; i < site->n_cables; i++) {
        const struct site_cable *cable = &site->cables[i];
        for (unsigned end = 0; end < 2; end++)
            if (cable->node[end] == node && cable->port[end] == port && site_cable_is_up(site, cable)) {
                *num = cable->port[1 - end];
                return cable->node[1 - end];
            }
    }
    *num = 0;
    return FAB_NONE;
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
        const uint32_t before = far_end(was, at, num, &before_num);
        const uint32_t after = far_end(site, there, num, &after_num);
        const uint32_t known =
            after == FAB_NONE ? FAB_NONE : site_find_guid(was, site->nodes[after].node.guid);
        if (after != FAB_NONE && known == FAB_NONE && site->nodes[after].node.kind == FAB_SWITCH)
            return fab_fail(err, PMIXFAB_ERR_UNSUPPORTED, "there is a switch that was not there");
        reached = reached || after != FAB_NONE;
        if (known == before && after_num == before_num)
            continue;
        part_suspect(part, before);
        part_suspect(part, known);
        if (known != FAB_NONE)
            part_suspect(part, far_end(was, known, after_num, &other_num));
    }
    return reached ? PMIXFAB_OK : fab_fail(err, PMIXFAB_ERR_UNSUPPORTED, "a switch is not where it was");
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

static bool touches(const struct site_cable *cable, const bool *nodes, uint32_t n)
{
    return (cable->node[0] < n && nodes[cable->node[0]]) || (cable->node[1] < n && nodes[cable->node[1]]);
}

/* The cables of what was read, as they are now, and what is at their ends. */
static void part_renew(struct part *part)
{
    struct site *was = part->was;
    const uint32_t n = was->n_nodes;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < was->n_cables; i++)
        if (!touches(&was->cables[i], part->read, n))
            was->cables[kept++] = was->cables[i];
    was->n_cables = kept;
    for (uint32_t i = 0; i < part->site->n_nodes; i++) {
        const uint32_t at = site_find_guid(was, part->site->nodes[i].node.guid);
        if (at != FAB_NONE && at < n && part->read[at])
            site_renew_node(was, &part->site->nodes[i]);
    }
    for (uint32_t i = 0; i < part->site->n_cables; i++) {
        struct site_cable cable = part->site->cables[i];
        bool read = false;
        for (unsigned end = 0; end < 2; end++) {
            const uint32_t at = site_find_guid(was, part->site->nodes[cable.node[end]].node.guid);
            read = read || (at < n && part->read[at]);
        }
        if (!read || !site_cable_is_up(part->site, &cable))
            continue;
        for (unsigned end = 0; end < 2; end++)
            cable.node[end] = site_renew_node(was, &part->site->nodes[cable.node[end]]);
        site_add_cable(was, &cable);
    }
}

int site_part(const struct site *site, const struct fab_inventory *last, const uint64_t *switches, uint32_t n,
              struct fab_inventory *inv, uint32_t *n_read, struct fab_err *err)
{
    struct part part = {.site = site, .was = site_of(last)};
    uint32_t there = 0, seen = 0;
    fab_inventory_init(inv);
    part.read = calloc(part.was->n_nodes + 1, sizeof(*part.read));
    int rc = part.read == NULL ? PMIXFAB_ERR_NOMEM : PMIXFAB_OK;
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < n; i++) {
        const uint32_t at = site_find_guid(part.was, switches[i]);
        if (at == FAB_NONE)
            rc = fab_fail(err, PMIXFAB_ERR_UNSUPPORTED,
                          "a switch changed that the last inventory does not have");
        else
            part.read[at] = true;
    }
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
            rc = fab_fail(err, PMIXFAB_ERR_UNSUPPORTED, "a part of the subnet is not reached any more");
    }
    site_free(part.was);
    free(part.read);
    return rc;
}
