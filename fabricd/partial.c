/* partial.c - is what a sweep saw the whole fabric, or a part of it that must not shrink what is served? */
#include "fabricd/publish_priv.h"

static bool dangles(const struct fab_port *port)
{
    return port->peer == FAB_NONE && port->state >= FAB_PORT_INIT;
}

/*
 * Ports that are up and lead nowhere now but did not in what was published. One that always did (a cable to
 * something that never answers) says nothing about this sweep.
 */
static uint32_t count_dangling(const struct fab_inventory *inv, const struct fab_inventory *before)
{
    uint32_t count = 0;
    for (uint32_t i = 0; inv->n_dangling > 0 && i < inv->n_ports; i++) {
        if (!dangles(&inv->ports[i]))
            continue;
        uint32_t node = fab_inventory_find(before, inv->nodes[inv->ports[i].node].guid);
        uint32_t port = node == FAB_NONE ? FAB_NONE : fab_inventory_port(before, node, inv->ports[i].num);
        if (port == FAB_NONE || !dangles(&before->ports[port]))
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
            "the sweep is partial: %u ports are up and lead nowhere, and %u hosts, devices, switches "
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
    for (uint32_t i = 0; i < inv->n_nodes; i++)
        report->unnamed += inv->nodes[i].unnamed;
    for (uint32_t i = 0; i < inv->n_ports; i++)
        report->inactive += inv->ports[i].peer != FAB_NONE &&
                            (inv->ports[i].state == FAB_PORT_INIT || inv->ports[i].state == FAB_PORT_ARMED);
}
