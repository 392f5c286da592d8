/* check_names.c - hosts whose names nobody can write, or that something else has, too. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/base/radix.h"
#include "topo/changes/finding.h"
#include "topo/model/host_name.h"

static uint64_t name_hash(const char *name)
{
    return check_hash(name, strlen(name), 0);
}

/* As a list of hosts of a workload manager has them. */
static bool is_writable(const char *host)
{
    static const char most[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    return host[strspn(host, most)] == '\0';
}

/* Keys of nodes of one kind that are named, by their host or name, sorted; returns how many. `keys` has room
 * for twice as many as there are nodes. */
static uint32_t check_sort_names(const struct fab_inventory *inv, enum fab_node_kind kind,
                                 struct fab_key *keys)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < inv->n_nodes; i++) {
        const struct fab_node *node = &inv->nodes[i];
        if (node->kind == kind && !node->unnamed)
            keys[n++] =
                (struct fab_key){name_hash(fab_str(inv, kind == FAB_HCA ? node->host : node->name)), i};
    }
    if (n > 0)
        fab_radix_sort(keys, keys + n, n);
    return n;
}

static void check_host_name(struct check *c, const char *host, const struct fab_key *switches, uint32_t n)
{
    const uint32_t at = fab_radix_find(switches, n, name_hash(host));
    if (at != UINT32_MAX && strcmp(fab_str(c->inv, c->inv->nodes[at].name), host) == 0)
        check_add(c, FAB_CHECK_SAME_NAME, fab_about_text(host), host,
                  "a host and the switch 0x%016" PRIx64
                  " have this name: where both stand in one file, one is taken for the other",
                  c->inv->nodes[at].guid);
    char which[FAB_NODE_TEXT]; /* it may be told of for its case, too */
    snprintf(which, sizeof(which), "characters of %s", host);
    if (!is_writable(host))
        check_add(
            c, FAB_CHECK_CONFUSING_NAME, fab_about_text(which), host,
            "its name has other characters than letters, digits, '.', '_' and '-': exports leave it out");
}

void check_names(struct check *c)
{
    const struct fab_inventory *inv = c->inv;
    struct fab_key *hosts = check_array(c, 4 * (size_t)inv->n_nodes, sizeof(*hosts));
    if (hosts == NULL)
        return;
    struct fab_key *switches = hosts + 2 * (size_t)inv->n_nodes;
    const uint32_t n_hosts = check_sort_names(inv, FAB_HCA, hosts),
                   n_switches = check_sort_names(inv, FAB_SWITCH, switches);
    for (uint32_t i = 0; i < n_hosts; i++)
        if (i == 0 || hosts[i].value != hosts[i - 1].value)
            check_host_name(c, fab_str(inv, inv->nodes[hosts[i].index].host), switches, n_switches);
    free(hosts);
}

int fab_check_plane_name(const struct fab_inventory *inv, const char *plane, struct fab_findings *out)
{
    for (uint32_t i = 0; i < inv->n_nodes; i++)
        if (inv->nodes[i].kind == FAB_HCA && strcmp(fab_str(inv, inv->nodes[i].host), plane) == 0)
            return fab_findings_add(
                out, FAB_CHECK_SAME_NAME, fab_about_text(plane), plane,
                "a host and a plane have this name: exports call the top of the plane so");
    return PMIXFAB_OK;
}
