/*
 * graphml.c - planes as a graph for programs that compute with graphs: a node for each switch, device, router
 * and aggregation node, an edge for each cable.
 */
#include "fabricctl/export/export.h"

#include <inttypes.h>
#include <stdlib.h>

#include "fabricctl/core/ctl_text.h"
#include "topo/base/array.h"
#include "topo/base/order.h"

/* Ends of cables that are neither switches nor devices. */
struct graph_others {
    struct pmixfab_end *ends;
    uint32_t n, room;
};

static const struct {
    const char *key, *of, *type;
} graph_keys[] = {
    {"kind", "node", "string"},  {"name", "node", "string"}, {"host", "node", "string"},
    {"plane", "node", "string"}, {"guid", "node", "string"}, {"level", "node", "int"},
    {"plane", "edge", "string"}, {"a_port", "edge", "int"},  {"b_port", "edge", "int"},
    {"mbps", "edge", "long"},    {"cost", "edge", "int"},    {"missing", "edge", "boolean"},
};

static void graph_text(FILE *out, const char *key, const char *text)
{
    char *clean = ctl_clean_copy(text);

    fprintf(out, "<data key=\"%s\">", key);
    for (const char *c = clean != NULL ? clean : ""; *c != '\0'; c++) {
        if (*c == '<')
            fputs("&lt;", out);
        else if (*c == '>')
            fputs("&gt;", out);
        else if (*c == '&')
            fputs("&amp;", out);
        else
            putc(*c, out);
    }
    fputs("</data>", out);
    free(clean);
}

static void graph_node(FILE *out, const char *kind, uint64_t guid, const char *plane)
{
    fprintf(out, "<data key=\"node_kind\">%s</data><data key=\"node_guid\">0x%016" PRIx64 "</data>", kind,
            guid);
    graph_text(out, "node_plane", plane);
}

/* A switch goes by its GUID, a device by its HCA's and its port. */
static void graph_id(FILE *out, const struct pmixfab_end *end)
{
    fprintf(out, "\"0x%016" PRIx64, end->guid);
    if (end->kind == PMIXFAB_END_DEVICE)
        fprintf(out, ":%u", end->port);
    putc('"', out);
}

static void graph_devices(FILE *out, const struct pmixfab *fab, const struct pmixfab_plane *plane)
{
    struct pmixfab_switch sw;
    struct pmixfab_device device;

    for (uint32_t i = 0; i < plane->n_switches && pmixfab_switch(fab, i, &sw) == 0; i++) {
        fprintf(out, "<node id=\"0x%016" PRIx64 "\">", sw.guid);
        graph_node(out, "switch", sw.guid, plane->name);
        graph_text(out, "node_name", sw.name);
        fprintf(out, "<data key=\"node_level\">%u</data></node>\n", sw.level);
    }
    for (uint32_t i = 0; i < plane->n_devices && pmixfab_device(fab, i, &device) == 0; i++) {
        fprintf(out, "<node id=\"0x%016" PRIx64 ":%u\">", device.node_guid, device.port);
        graph_node(out, "device", device.node_guid, plane->name);
        graph_text(out, "node_name", device.name);
        graph_text(out, "node_host", device.host);
        fputs("</node>\n", out);
    }
}

static int compare_ends(const void *a, const void *b)
{
    return FAB_ORDER(((const struct pmixfab_end *)a)->guid, ((const struct pmixfab_end *)b)->guid);
}

static bool graph_others(FILE *out, const struct pmixfab *fab, const struct pmixfab_plane *plane)
{
    struct graph_others others = {0};
    struct pmixfab_link link;
    bool good = true;

    for (uint32_t i = 0; good && i < plane->n_links && pmixfab_link(fab, i, &link) == 0; i++)
        for (unsigned side = 0; good && side < 2; side++) {
            const struct pmixfab_end *end = side == 0 ? &link.a : &link.b;

            if (end->is_switch != 0 || end->kind == PMIXFAB_END_DEVICE)
                continue;
            good = FAB_ARRAY_ROOM(&others.ends, &others.room, others.n + UINT64_C(1));
            if (good)
                others.ends[others.n++] = *end;
        }
    if (others.n > 0)
        qsort(others.ends, others.n, sizeof *others.ends, compare_ends);
    for (uint32_t i = 0; good && i < others.n; i++) {
        if (i > 0 && others.ends[i].guid == others.ends[i - 1].guid)
            continue;
        fputs("<node id=", out);
        graph_id(out, &others.ends[i]);
        putc('>', out);
        graph_node(out,
                   others.ends[i].kind == PMIXFAB_END_ROUTER        ? "router"
                   : others.ends[i].kind == PMIXFAB_END_AGGREGATION ? "aggregation node"
                                                                    : "other",
                   others.ends[i].guid, plane->name);
        fputs("</node>\n", out);
    }
    free(others.ends);
    return good;
}

static void graph_edges(FILE *out, const struct pmixfab *fab, const struct pmixfab_plane *plane)
{
    struct pmixfab_link link;

    for (uint32_t i = 0; i < plane->n_links && pmixfab_link(fab, i, &link) == 0; i++) {
        fprintf(out, "<edge id=\"%u.%u\" source=", plane->index, i);
        graph_id(out, &link.a);
        fputs(" target=", out);
        graph_id(out, &link.b);
        putc('>', out);
        graph_text(out, "edge_plane", plane->name);
        fprintf(out,
                "<data key=\"edge_a_port\">%u</data><data key=\"edge_b_port\">%u</data><data "
                "key=\"edge_mbps\">%" PRIu64
                "</data><data key=\"edge_cost\">%u</data><data key=\"edge_missing\">%s</data></edge>\n",
                link.a.port, link.b.port, link.mbps, link.cost, link.missing != 0 ? "true" : "false");
    }
}

enum ctl_exit ctl_export_graphml(struct ctl_export *x)
{
    bool good = true;

    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<graphml "
          "xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n",
          x->out);
    for (size_t i = 0; i < sizeof graph_keys / sizeof graph_keys[0]; i++)
        fprintf(x->out, "<key id=\"%s_%s\" for=\"%s\" attr.name=\"%s\" attr.type=\"%s\"/>\n",
                graph_keys[i].of, graph_keys[i].key, graph_keys[i].of, graph_keys[i].key, graph_keys[i].type);
    fputs("<graph id=\"fabric\" edgedefault=\"undirected\">\n", x->out);
    for (size_t i = 0; good && i < x->view->n; i++) {
        struct pmixfab_plane plane;

        good = pmixfab_plane(x->view->planes[i], &plane) == 0;
        if (!good)
            continue;
        graph_devices(x->out, x->view->planes[i], &plane);
        good = graph_others(x->out, x->view->planes[i], &plane);
        graph_edges(x->out, x->view->planes[i], &plane);
    }
    fputs("</graph>\n</graphml>\n", x->out);
    return good ? CTL_DONE : ctl_nomem();
}
