/*
 * diff_hosts.c - hosts that came or went.
 *
 * A host is the set of HCAs with its name and a cabled port. It can only have come or gone where such a
 * device did, or was renamed: those names are noted first, and all others are never looked at.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/base/array.h"
#include "topo/base/search.h"
#include "topo/base/text.h"
#include "topo/changes/text_sizes.h"

/* A noted host: how many devices it has on either side, and the node with the lowest GUID. */
struct noted {
    const char *name;
    uint32_t n_before, n_after;
    uint64_t guid_before, guid_after;
};

void diff_note_host(struct diff_walk *w, const char *name)
{
    if (w->rc == 0 && !FAB_ARRAY_ROOM(&w->hosts, &w->cap_hosts, w->n_hosts + 1))
        w->rc = PMIXFAB_ERR_NOMEM;
    if (w->rc == 0)
        w->hosts[w->n_hosts++] = name;
}

static int diff_compare_host_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static struct noted *find_noted(struct noted *list, uint32_t n, const char *name)
{
    uint32_t at = FAB_LOWER_BOUND(0, n, i, strcmp(list[i].name, name) < 0);
    return at < n && strcmp(list[at].name, name) == 0 ? &list[at] : NULL;
}

static void diff_count_devices(const struct fab_inventory *inv, struct noted *list, uint32_t n, bool is_after)
{
    for (uint32_t i = 0; i < inv->n_nodes; i++) {
        const struct fab_node *node = &inv->nodes[i];
        if (node->kind != FAB_HCA)
            continue;
        uint32_t cabled = 0;
        for (uint32_t p = 0; p < node->n_ports; p++)
            cabled += inv->ports[node->first_port + p].peer != FAB_NONE;
        struct noted *host = cabled == 0 ? NULL : find_noted(list, n, fab_str(inv, node->host));
        if (host == NULL)
            continue;
        uint32_t *count = is_after ? &host->n_after : &host->n_before;
        if (*count == 0) /* nodes are in the order of their GUIDs */
            *(is_after ? &host->guid_after : &host->guid_before) = node->guid;
        *count += cabled;
    }
}

void diff_hosts(struct diff_walk *w)
{
    uint32_t n = 0;
    char what[FAB_NODE_TEXT], devices[32];

    if (w->rc != 0 || w->n_hosts == 0)
        return;
    struct noted *list = calloc(w->n_hosts, sizeof(*list));
    if (list == NULL) {
        w->rc = PMIXFAB_ERR_NOMEM;
        return;
    }
    qsort(w->hosts, w->n_hosts, sizeof(*w->hosts), diff_compare_host_names);
    for (uint32_t i = 0; i < w->n_hosts; i++) {
        if (n == 0 || strcmp(list[n - 1].name, w->hosts[i]) != 0)
            list[n++].name = w->hosts[i];
    }
    diff_count_devices(w->before, list, n, false);
    diff_count_devices(w->after, list, n, true);
    for (uint32_t i = 0; i < n; i++) {
        const struct noted *host = &list[i];
        if ((host->n_before == 0) == (host->n_after == 0))
            continue;
        bool added = host->n_after > 0;
        uint32_t count = added ? host->n_after : host->n_before;
        fab_text_clean(what, sizeof(what), host->name, strlen(host->name), NULL);
        snprintf(devices, sizeof(devices), "%" PRIu32 " device%s", count, count == 1 ? "" : "s");
        diff_add(w, added ? FAB_CHANGE_HOST_ADDED : FAB_CHANGE_HOST_LOST,
                 added ? host->guid_after : host->guid_before, 0, what, added ? "" : devices,
                 added ? devices : "");
    }
    free(list);
}
