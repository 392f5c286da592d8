/* rails.c - rail-optimised fabrics: each host of a unit has an HCA on each leaf of the unit. */
#include <string.h>

#include "test/fabrics/build.h"

#define MOST_PORTS 250

struct rails {
    struct build b;
    unsigned units, rails, hosts, spines;
    uint64_t dice; /* 0: all hosts and cards are alike */
};

static unsigned rails_roll(struct rails *r, unsigned sides)
{
    return r->dice == 0 ? sides : (unsigned)(fabric_random_next(&r->dice) % sides);
}

/* Before a host's service has told its cards a name. */
static void rails_default_name(struct build *b, uint32_t hca)
{
    static const char said[] = "MT4129 ConnectX7   Mellanox Technologies";
    struct fab_node *node = &b->inv->nodes[hca];
    char text[24];
    snprintf(text, sizeof(text), "0x%016llx", (unsigned long long)node->guid);
    node->unnamed = 1;
    node->desc = fab_inventory_string(b->inv, said, strlen(said));
    node->host = fab_inventory_string(b->inv, text, strlen(text));
    node->name = fab_inventory_string(b->inv, "HCA-1", 5);
}

/* As other drivers count. */
static void rails_driver_name(struct build *b, uint32_t hca, unsigned rail)
{
    struct fab_node *node = &b->inv->nodes[hca];
    char text[16], said[64];
    snprintf(text, sizeof(text), "mlx5_%u", rail);
    snprintf(said, sizeof(said), "%s %s", fab_str(b->inv, node->host), text);
    node->desc = fab_inventory_string(b->inv, said, strlen(said));
    node->name = fab_inventory_string(b->inv, text, strlen(text));
}

static void rails_host(struct rails *r, unsigned unit, unsigned place, unsigned dead)
{
    struct build *b = &r->b;
    unsigned host = build_host(b), nameless = rails_roll(r, 10);
    for (unsigned k = 0; k < r->rails && b->rc == PMIXFAB_OK; k++) {
        bool lost = rails_roll(r, 24) == 0;
        bool unnamed = nameless == 0 || (nameless == 1 && rails_roll(r, 2) == 0);
        if (k == dead || lost)
            continue;
        uint32_t hca = build_hca(b, host, k + 1, r->rails, 1);
        build_cable(b, unit * r->rails + k, place + 1, hca, 1, 4, FAB_HDR);
        if (b->rc == PMIXFAB_OK && unnamed)
            rails_default_name(b, hca);
        else if (b->rc == PMIXFAB_OK && r->dice != 0 && unit % 2 == 1)
            rails_driver_name(b, hca, k);
    }
}

/* Each leaf to each spine; where a spine has not so many ports, each rail has spines of its own, and cores
 * join these. */
static void rails_cable_up(struct rails *r)
{
    struct build *b = &r->b;
    unsigned leaves = r->units * r->rails, first = leaves;
    bool cores = leaves > MOST_PORTS;
    unsigned groups = cores ? r->rails : 1, ports = cores ? r->units + 1 : leaves;
    for (unsigned s = 0; s < groups * r->spines && b->rc == PMIXFAB_OK; s++)
        build_switch(b, ports, "spine%u", s + 1);
    for (unsigned s = 0; cores && s < r->spines && b->rc == PMIXFAB_OK; s++)
        build_switch(b, r->rails, "core%u", s + 1);
    for (unsigned l = 0; l < leaves && b->rc == PMIXFAB_OK; l++) {
        unsigned rail = cores ? l % r->rails : 0, at = cores ? l / r->rails : l;
        for (unsigned s = 0; s < r->spines; s++)
            build_cable(b, l, r->hosts + s + 1, first + rail * r->spines + s, at + 1, 4, FAB_HDR);
    }
    for (unsigned s = 0; cores && s < groups * r->spines && b->rc == PMIXFAB_OK; s++)
        build_cable(b, first + s, ports, first + groups * r->spines + s % r->spines, s / r->spines + 1, 4,
                    FAB_HDR);
}

int fabric_rails(struct fab_inventory *inv, unsigned units, unsigned rails, unsigned hosts, unsigned spines,
                 uint64_t seed)
{
    struct rails r = {.units = units, .rails = rails, .hosts = hosts, .spines = spines, .dice = seed};
    build_begin(&r.b, inv);
    if (units == 0 || units >= MOST_PORTS || rails == 0 || rails > BUILD_MOST_HCAS ||
        hosts + spines > MOST_PORTS || hosts == 0 || spines == 0)
        r.b.rc = PMIXFAB_ERR_RANGE;
    for (unsigned l = 0; l < units * rails && r.b.rc == PMIXFAB_OK; l++)
        build_switch(&r.b, hosts + spines, "leaf%u-%u", l / rails + 1, l % rails + 1);
    if (r.b.rc == PMIXFAB_OK)
        rails_cable_up(&r);
    for (unsigned u = 0; u < units && r.b.rc == PMIXFAB_OK; u++) {
        unsigned dead = u > 1 && rails_roll(&r, 3) == 0 ? rails_roll(&r, rails) : rails;
        for (unsigned h = 0; h < hosts && r.b.rc == PMIXFAB_OK; h++)
            rails_host(&r, u, h, dead);
    }
    return build_end(&r.b);
}
