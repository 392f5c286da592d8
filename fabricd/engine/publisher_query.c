/* publisher_query.c - what looks wrong in what is served, looked for when somebody asks. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "fabricd/engine/update.h"
#include "topo/model/host_name.h"

int publisher_check(struct publisher *publisher, const struct node_report *const *reports, uint32_t n,
                    const struct fab_findings **out, struct fab_err *err)
{
    struct fab_joined joined;
    *out = &publisher->findings;
    if (publisher->checked)
        return PMIXFAB_OK;
    int rc = publish_join(publisher, &publisher->current, NULL, reports, n, &joined, err);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = fab_check(&joined.inv, joined.details.n_ports > 0 ? &joined.details : NULL, &publisher->absent.lost,
                   &publisher->findings);
    if (rc == PMIXFAB_OK)
        rc = fab_check_lost(&joined.inv, &publisher->absent.lost, &publisher->findings);
    struct served_set *set = served_get(publisher->served);
    for (uint32_t i = 0; rc == PMIXFAB_OK && set != NULL && i < set->n; i++)
        rc = fab_check_plane_name(&joined.inv, set->planes[i]->info.name, &publisher->findings);
    served_set_put(set);
    fab_joined_destroy(&joined);
    publisher->checked = rc == PMIXFAB_OK;
    if (rc != PMIXFAB_OK)
        fab_findings_destroy(&publisher->findings);
    return rc == PMIXFAB_OK ? rc : fab_fail(err, rc, "check: %s", pmixfab_strerror(rc));
}

const struct fab_lost *publisher_lost(const struct publisher *publisher)
{
    return &publisher->absent.lost;
}

int publisher_find_causes(struct publisher *publisher, struct fab_findings *flapping)
{
    return fab_check_causes(&publisher->current, &publisher->absent.lost, &publisher->findings, flapping);
}

const struct fab_inventory *publisher_inventory(const struct publisher *publisher)
{
    return &publisher->current;
}

const char *publisher_names_fault(const struct publisher *publisher)
{
    return publisher->names_fault.text;
}

uint64_t publisher_generation(const struct publisher *publisher)
{
    return publisher->generation;
}

bool publisher_next_switch(const struct publisher *publisher, const char *name, uint32_t *at, uint64_t *guid)
{
    const struct fab_inventory *inv = &publisher->current;
    char text[24];
    while (*at < inv->n_nodes) {
        const struct fab_node *node = &inv->nodes[(*at)++];
        *guid = node->guid;
        snprintf(text, sizeof(text), "0x%016" PRIx64, node->guid);
        if (node->kind == FAB_SWITCH &&
            (strcmp(fab_str(inv, node->name), name) == 0 || strcmp(text, name) == 0))
            return true;
    }
    return false;
}

bool publisher_has_switch(const struct publisher *publisher, const char *name)
{
    uint32_t at = 0;
    uint64_t guid;
    return publisher_next_switch(publisher, name, &at, &guid);
}

bool publisher_has_host(const struct publisher *publisher, const char *name)
{
    const struct fab_inventory *inv = &publisher->current;
    for (uint32_t i = 0; i < inv->n_nodes; i++)
        if (inv->nodes[i].kind == FAB_HCA && fab_same_host(fab_str(inv, inv->nodes[i].host), name))
            return true;
    return publisher_joined(publisher, name, &(struct joined_host){0});
}

bool publisher_port_text(const struct publisher *publisher, uint64_t guid, char text[FAB_PORT_TEXT])
{
    const struct fab_inventory *inv = &publisher->current;
    for (uint32_t i = 0; i < inv->n_ports; i++)
        if (guid != 0 && inv->ports[i].guid == guid) {
            fab_port_text(inv, &inv->ports[i], text);
            return true;
        }
    const uint32_t node = fab_inventory_find(inv, guid); /* a switch's own port has its GUID */
    if (node == FAB_NONE)
        return false;
    fab_node_text(inv, &inv->nodes[node], text);
    return true;
}
