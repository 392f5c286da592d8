/* completeness.c - is what a sweep saw the whole fabric, or a part that must not shrink what is served? */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "fabricd/engine/update.h"
#include "topo/base/text.h"

/* "leaf1[8]", "node1 HCA-1[1]"; cut where it is too long. */
static void port_text(const struct fab_inventory *inv, const struct fab_port *port, char *text, size_t size)
{
    char whole[FAB_PORT_TEXT];
    fab_port_text(inv, port, whole);
    fab_text_clean(text, size, whole, strlen(whole), NULL);
}

/*
 * Ports that are up and lead nowhere, or that nothing is known of, now but did not in what was published. One
 * that always did (a cable to something that never answers) says nothing about this sweep.
 */
static void count_dangling(const struct fab_inventory *inv, const struct fab_inventory *before,
                           struct sweep_findings *report)
{
    for (uint32_t i = 0; inv->n_dangling > 0 && i < inv->n_ports; i++) {
        if (!fab_port_dangles(inv, &inv->ports[i]))
            continue;
        uint32_t node = fab_inventory_find(before, inv->nodes[inv->ports[i].node].guid);
        uint32_t port = node == FAB_NONE ? FAB_NONE : fab_inventory_port(before, node, inv->ports[i].num);
        if (port != FAB_NONE && fab_port_dangles(before, &before->ports[port]))
            continue;
        if (report->dangling++ >= PUBLISH_NAMED)
            continue;
        struct publish_nowhere *named = &report->named[report->dangling - 1];
        port_text(inv, &inv->ports[i], named->port, sizeof(named->port));
        if (port != FAB_NONE && before->ports[port].peer != FAB_NONE)
            port_text(before, &before->ports[before->ports[port].peer], named->was, sizeof(named->was));
    }
}

/* "leaf1[8] (node1 HCA-1[1]), leaf2[1], ...": as many as a message has room for. */
static void list_named(const struct sweep_findings *report, char *text, size_t size)
{
    const uint32_t most = report->dangling < 3 ? report->dangling : 3;
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < most && used + 1 < size; i++) {
        const struct publish_nowhere *named = &report->named[i];
        const bool was = named->was[0] != '\0';
        used += (size_t)snprintf(text + used, size - used, "%s%.60s%s%.60s%s", i == 0 ? "" : ", ",
                                 named->port, was ? " (to " : "", named->was, was ? ")" : "");
    }
    if (report->dangling > most && used + 6 < size)
        snprintf(text + used, size - used, ", ...");
}

static bool has_cables(const struct fab_inventory *inv)
{
    for (uint32_t i = 0; i < inv->n_ports; i++)
        if (inv->ports[i].peer != FAB_NONE)
            return true;
    return false;
}

bool publisher_sees_no_cable(const struct publisher *publisher)
{
    return publisher->current.n_nodes > 0 && !has_cables(&publisher->current);
}

int check_complete(const struct publisher *publisher, const struct fab_inventory *inv,
                   const struct sweep_findings *report, struct fab_err *err)
{
    unsigned long long serving = publisher->generation;
    if (publisher->generation == 0 || report->lost == 0)
        return PMIXFAB_OK;
    if (report->dangling > 0) {
        char named[300];
        list_named(report, named, sizeof(named));
        return fab_fail(
            err, PMIXFAB_ERR_PARTIAL,
            "the sweep is partial: %u port%s nowhere or did not answer (%.220s), and of hosts, devices, "
            "switches and links %u less are seen; still serving generation %llu (fabricctl refresh "
            "--accept-partial takes it as it is)",
            report->dangling, report->dangling == 1 ? " leads" : "s lead", named, report->lost, serving);
    }
    if (!has_cables(inv) && has_cables(&publisher->current))
        return fab_fail(
            err, PMIXFAB_ERR_PARTIAL,
            "the sweep sees not one cable: is this host's own cable out? Still serving generation %llu "
            "(fabricctl refresh --accept-partial takes it as it is)",
            serving);
    return PMIXFAB_OK;
}

void publish_fill_report(const struct publisher *publisher, const struct fab_inventory *inv,
                         const struct fab_diff *diff, struct sweep_findings *report)
{
    *report = (struct sweep_findings){.lost = diff->n_lost};
    count_dangling(inv, &publisher->current, report);
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
