/* partial.c - is what a sweep saw the whole fabric, or a part of it that must not shrink what is served? */
#include <string.h>

#include "fabricd/publish_priv.h"

/*
 * Ports that are up and lead nowhere, or that nothing is known of, now but did not in what was published. One
 * that always did (a cable to something that never answers) says nothing about this sweep.
 */
static uint32_t count_dangling(const struct fab_inventory *inv, const struct fab_inventory *before)
{
    uint32_t count = 0;
    for (uint32_t i = 0; inv->n_dangling > 0 && i < inv->n_ports; i++) {
        if (!fab_port_dangles(inv, &inv->ports[i]))
            continue;
        uint32_t node = fab_inventory_find(before, inv->nodes[inv->ports[i].node].guid);
        uint32_t port = node == FAB_NONE ? FAB_NONE : fab_inventory_port(before, node, inv->ports[i].num);
        if (port == FAB_NONE || !fab_port_dangles(before, &before->ports[port]))
            count++;
    }
    return count;
}

static bool has_cables(const struct fab_inventory *inv)
{
    for (uint32_t i = 0; i < inv->n_ports; i++)
        if (inv->ports[i].peer != FAB_NONE)
            return true;
    return false;
}

int publish_check_whole(const struct publisher *publisher, const struct fab_inventory *inv,
                        const struct publish_report *report, struct fab_err *err)
{
    unsigned long long serving = publisher->generation;
    if (publisher->generation == 0 || report->lost == 0)
        return PMIXFAB_OK;
    if (report->dangling > 0)
        return fab_fail(
            err, PMIXFAB_ERR_PARTIAL,
            "the sweep is partial: %u ports lead nowhere or did not answer, and %u hosts, devices, switches "
            "and links are missing; still serving generation %llu (fabricctl refresh "
            "--accept-partial takes it as it is)",
            report->dangling, report->lost, serving);
    if (!has_cables(inv) && has_cables(&publisher->current))
        return fab_fail(
            err, PMIXFAB_ERR_PARTIAL,
            "the sweep sees not one cable: is this host's own cable out? Still serving generation %llu "
            "(fabricctl refresh --accept-partial takes it as it is)",
            serving);
    return PMIXFAB_OK;
}

void publish_fill_report(const struct publisher *publisher, const struct fab_inventory *inv,
                         const struct fab_diff *diff, struct publish_report *report)
{
    *report = (struct publish_report){.lost = diff->n_lost};
    report->dangling = count_dangling(inv, &publisher->current);
    report->nowhere = inv->n_dangling;
    for (uint32_t i = 0; i < inv->n_nodes; i++)
        report->unnamed += inv->nodes[i].unnamed;
    for (uint32_t i = 0; i < inv->n_ports; i++)
        report->inactive += inv->ports[i].peer != FAB_NONE &&
                            (inv->ports[i].state == FAB_PORT_INIT || inv->ports[i].state == FAB_PORT_ARMED);
}

int publish_fill_gaps(const struct publisher *publisher, struct fab_inventory *inv)
{
    const struct fab_inventory *before = &publisher->current;
    for (uint32_t i = 0; i < inv->n_nodes; i++) {
        uint32_t known = inv->nodes[i].desc != 0 ? FAB_NONE : fab_inventory_find(before, inv->nodes[i].guid);
        const char *desc = known == FAB_NONE ? "" : fab_str(before, before->nodes[known].desc);
        if (desc[0] == '\0')
            continue;
        uint32_t copy = fab_inventory_string(inv, desc, strlen(desc));
        if (copy == FAB_NONE)
            return PMIXFAB_ERR_NOMEM;
        inv->nodes[i].desc = copy;
    }
    return PMIXFAB_OK;
}
