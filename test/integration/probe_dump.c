/*
 * probe_dump PROBE[:ARG] [--compare PROBE[:ARG]]: run a probe in this process and print what it saw,
 * canonically: a line a subnet, a node, a port. With --compare, say nothing and end with status 0 where both
 * saw the same.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "probes/probe.h"
#include "topo/names.h"

static void print_note(enum pmixfab_level level, const char *line, void *cbdata)
{
    (void)cbdata;
    fprintf(stderr, "%s: %s\n", level <= PMIXFAB_LOG_WARNING ? "warning" : "note", line);
}

static int look(const char *spec, struct fab_inventory *inv)
{
    const struct probe_sink sink = {print_note, NULL};
    struct probe_config config = {0};
    struct fab_err err = {{0}};
    struct fab_names *names = NULL;
    const struct probe *probe = probe_find(spec, &config.arg);
    fab_inventory_init(inv);
    if (probe == NULL) {
        fprintf(stderr, "%s: no such probe\n", spec);
        return PMIXFAB_ERR_NOTFOUND;
    }
    int rc = probe->check(&config, &err);
    if (rc == PMIXFAB_OK)
        rc = probe->run(&config, &sink, inv, &err);
    if (rc == PMIXFAB_OK)
        rc = fab_names_new(NULL, &names, &err);
    if (rc == PMIXFAB_OK)
        rc = fab_names_apply(names, inv, &err);
    fab_names_free(names);
    if (rc != PMIXFAB_OK)
        fprintf(stderr, "%s (%s)\n", err.text, pmixfab_strerror(rc));
    return rc;
}

static void print_node(const struct fab_inventory *inv, const struct fab_node *node)
{
    static const char *const kinds[] = {"?", "switch", "hca", "router", "aggregator"};
    printf("%s 0x%016" PRIx64 " \"%s\" host=\"%s\" name=\"%s\"%s system=0x%" PRIx64
           " vendor=0x%x device=0x%x "
           "ports=%u lid=%u lmc=%u%s chassis=%u slot=%u/%u/%u\n",
           kinds[node->kind <= FAB_AGGREGATOR ? node->kind : 0], node->guid, fab_str(inv, node->desc),
           fab_str(inv, node->host), fab_str(inv, node->name), node->unnamed ? " unnamed" : "",
           node->system_guid, node->vendor_id, node->device_id, node->num_ports, node->lid, node->lmc,
           node->enhanced ? " enhanced" : "", node->chassis, node->slot_type, node->slot, node->chip);
}

static void print_port(const struct fab_inventory *inv, const struct fab_port *port)
{
    static const char *const states[] = {"?", "down", "init", "armed", "active"};
    printf("  [%u] guid=0x%" PRIx64 " lid=%u lmc=%u %s %ux%s", port->num, port->guid, port->lid, port->lmc,
           states[port->state <= FAB_PORT_ACTIVE ? port->state : 0], port->width,
           fab_speed_name((enum fab_speed)port->speed));
    if (port->peer != FAB_NONE)
        printf(" -> 0x%016" PRIx64 "[%u]\n", inv->nodes[inv->ports[port->peer].node].guid,
               inv->ports[port->peer].num);
    else
        printf(" -> nowhere\n");
}

static void print(const struct fab_inventory *inv)
{
    for (uint32_t i = 0; i < inv->n_subnets; i++)
        printf("subnet 0x%016" PRIx64 "\n", inv->subnets[i].prefix);
    for (uint32_t i = 0; i < inv->n_nodes; i++) {
        const struct fab_node *node = &inv->nodes[i];
        print_node(inv, node);
        for (uint32_t p = node->first_port; p < node->first_port + node->n_ports; p++)
            print_port(inv, &inv->ports[p]);
    }
    printf("dangling %u\n", inv->n_dangling);
}

int main(int argc, char **argv)
{
    struct fab_inventory inv, other;
    int status = 1;
    if (argc != 2 && (argc != 4 || strcmp(argv[2], "--compare") != 0)) {
        fprintf(stderr, "usage: probe_dump PROBE[:ARG] [--compare PROBE[:ARG]]\n");
        return 2;
    }
    fab_inventory_init(&other);
    if (look(argv[1], &inv) != PMIXFAB_OK)
        goto cleanup;
    if (argc == 2) {
        print(&inv);
        status = 0;
    } else if (look(argv[3], &other) == PMIXFAB_OK) {
        status = fab_inventory_equal(&inv, &other) ? 0 : 1;
    }

cleanup:
    fab_inventory_destroy(&inv);
    fab_inventory_destroy(&other);
    return status;
}
