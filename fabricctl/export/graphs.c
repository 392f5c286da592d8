/* graphs.c - planes as pictures and graphs: Graphviz' dot, and GraphML. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fabricctl/core/ctl.h"
#include "fabricctl/export/export.h"
#include "topo/base/array.h"
#include "topo/base/hostlist.h"
#include "topo/base/order.h"

/*
 * ---- a plane as a picture for Graphviz. Hosts with the same switches are one box: so a picture of a
 * thousand hosts stays readable.
 */

#define LINE_WIDTH 28 /* characters of a line in a box of hosts */

/* A host and its switches, each once, in order. */
struct dot_host {
    const char *name;
    const uint32_t *switches;
    uint32_t n;
    uint32_t index; /* natural order */
};

/* Cables between two switches that are drawn as one line. */
struct dot_edge {
    uint32_t above, below, cables, missing;
    uint64_t mbps; /* of the slowest cable */
};

struct dot_plane {
    FILE *out;
    const struct pmixfab *fab;
    struct pmixfab_plane plane;
    uint32_t top; /* the highest level of a switch */
    struct dot_host *hosts;
    uint32_t *switches; /* storage for the hosts' switches */
    struct dot_edge *edges;
    uint32_t n_edges;
};

/* Write a text in double quotes. */
static void dot_text(FILE *out, const char *text)
{
    char *clean = ctl_clean_copy(text);
    putc('"', out);
    for (const char *c = clean != NULL ? clean : "?"; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\')
            putc('\\', out);
        putc(*c, out);
    }
    putc('"', out);
    free(clean);
}

/* ---- switches ---- */

static uint32_t level_of(const struct dot_plane *p, uint32_t index)
{
    struct pmixfab_switch sw;
    return pmixfab_switch(p->fab, index, &sw) == 0 ? sw.level : 0;
}

static void dot_switches(const struct dot_plane *p)
{
    static const char *const colours[] = {"#dbe9f6", "#c6dbef", "#a6c8e4", "#8ab6da"};
    struct pmixfab_switch sw;
    for (uint32_t level = 0; level <= p->top; level++) {
        fprintf(p->out, "  {%s node [fillcolor=\"%s\"]\n", p->top > 0 ? " rank=same;" : "",
                colours[level < 4 ? level : 3]);
        for (uint32_t i = 0; i < p->plane.n_switches && pmixfab_switch(p->fab, i, &sw) == 0; i++) {
            if (sw.level != level)
                continue;
            fprintf(p->out, "    s%u [label=", i);
            dot_text(p->out, sw.name);
            fputs(sw.missing != 0 ? ", style=\"rounded,dashed\"];\n" : "];\n", p->out);
        }
        fputs("  }\n", p->out);
    }
}

/* ---- cables between switches ---- */

static int compare_edges(const void *a, const void *b)
{
    const struct dot_edge *x = a, *y = b;
    return FAB_ORDER(x->above, y->above) ?: FAB_ORDER(x->below, y->below);
}

static bool dot_gather_edges(struct dot_plane *p)
{
    struct pmixfab_link link;
    uint32_t n = 0;
    p->edges = malloc((p->plane.n_links + (size_t)1) * sizeof *p->edges);
    for (uint32_t i = 0; p->edges != NULL && i < p->plane.n_links && pmixfab_link(p->fab, i, &link) == 0;
         i++) {
        struct dot_edge edge = {link.a.index, link.b.index, 1, link.missing != 0, link.mbps};
        if (link.a.is_switch == 0 || link.b.is_switch == 0)
            continue;
        if (level_of(p, edge.above) < level_of(p, edge.below) ||
            (level_of(p, edge.above) == level_of(p, edge.below) && edge.above > edge.below)) {
            edge.above = link.b.index;
            edge.below = link.a.index;
        }
        p->edges[n++] = edge;
    }
    if (p->edges == NULL)
        return false;
    qsort(p->edges, n, sizeof *p->edges, compare_edges);
    for (uint32_t i = 0; i < n; i++) {
        struct dot_edge *last = &p->edges[p->n_edges - (p->n_edges > 0)];
        if (p->n_edges > 0 && compare_edges(last, &p->edges[i]) == 0) {
            last->cables++;
            last->missing += p->edges[i].missing;
            if (p->edges[i].mbps < last->mbps)
                last->mbps = p->edges[i].mbps;
        } else {
            p->edges[p->n_edges++] = p->edges[i];
        }
    }
    return true;
}

static void dot_edges(const struct dot_plane *p)
{
    for (uint32_t i = 0; i < p->n_edges; i++) {
        const struct dot_edge *edge = &p->edges[i];
        fprintf(p->out, "  s%u -- s%u [", edge->above, edge->below);
        if (edge->cables > 1)
            fprintf(p->out, "penwidth=%u, label=\"%u\", ", edge->cables < 4 ? 1 + edge->cables : 5,
                    edge->cables);
        if (edge->missing > 0)
            fputs("style=dashed, color=\"#c0392b\"", p->out);
        else if (edge->mbps != 0 && edge->mbps < p->plane.fastest_mbps)
            fputs("color=\"#e08e0b\"", p->out);
        fputs("];\n", p->out);
    }
}

/* ---- hosts ---- */

static int compare_dot_hosts(const void *a, const void *b)
{
    const struct dot_host *x = a, *y = b;
    int order = 0;
    for (uint32_t i = 0; order == 0 && i < x->n && i < y->n; i++)
        order = FAB_ORDER(x->switches[i], y->switches[i]);
    return order ?: FAB_ORDER(x->n, y->n) ?: FAB_ORDER(x->index, y->index);
}

static bool dot_gather_hosts(struct dot_plane *p)
{
    uint32_t used = 0, first, n;
    p->hosts = calloc(p->plane.n_hosts + (size_t)1, sizeof *p->hosts);
    p->switches = calloc(p->plane.n_devices + (size_t)1, sizeof *p->switches);
    if (p->hosts == NULL || p->switches == NULL)
        return false;
    for (uint32_t h = 0; h < p->plane.n_hosts; h++) {
        struct dot_host *host = &p->hosts[h];
        uint32_t *const at = p->switches + used;
        if (pmixfab_host(p->fab, h, &host->name, &first, &n) != 0)
            return false;
        host->index = h;
        host->switches = at;
        for (uint32_t d = first; d < first + n; d++) {
            struct pmixfab_device device;
            uint32_t k = 0;
            if (pmixfab_device(p->fab, d, &device) != 0 || device.switch_index == UINT32_MAX)
                continue;
            while (k < host->n && at[k] < device.switch_index)
                k++;
            if (k < host->n && at[k] == device.switch_index)
                continue;
            memmove(at + k + 1, at + k, (host->n - k) * sizeof *at);
            at[k] = device.switch_index;
            host->n++;
        }
        used += host->n;
    }
    return true;
}

/* Write the list with line breaks after commas, so that a box is not as wide as the page. */
static void dot_hosts_label(FILE *out, const char *list, uint32_t n)
{
    size_t width = 0;
    putc('"', out);
    for (const char *c = list; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\')
            putc('\\', out);
        putc(*c, out);
        width++;
        if (*c == ',' && width >= LINE_WIDTH) {
            fputs("\\n", out);
            width = 0;
        }
    }
    if (n > 1)
        fprintf(out, "\\n%u hosts", n);
    putc('"', out);
}

static bool dot_hosts(struct dot_plane *p)
{
    const char **names = malloc((p->plane.n_hosts + (size_t)1) * sizeof *names);
    struct dot_host *hosts = p->hosts;
    bool good = names != NULL;
    qsort(hosts, p->plane.n_hosts, sizeof *hosts, compare_dot_hosts);
    for (uint32_t first = 0, end; good && first < p->plane.n_hosts; first = end) {
        char *list, *clean;
        for (end = first; end < p->plane.n_hosts && hosts[end].n == hosts[first].n &&
                          (hosts[end].n == 0 || memcmp(hosts[end].switches, hosts[first].switches,
                                                       hosts[end].n * sizeof *hosts[end].switches) == 0);
             end++)
            names[end - first] = hosts[end].name;
        list = fab_hostlist_fold(names, end - first);
        clean = list != NULL ? ctl_clean_copy(list) : NULL;
        good = clean != NULL;
        if (good) {
            fprintf(p->out,
                    "  h%u [shape=box, style=filled, fillcolor=\"#f4f4f4\", color=\"#999999\", label=",
                    hosts[first].index);
            dot_hosts_label(p->out, clean, end - first);
            fputs("];\n", p->out);
        }
        for (uint32_t i = 0; good && i < hosts[first].n; i++)
            fprintf(p->out, "  s%u -- h%u [color=\"#999999\", weight=8, len=0.7];\n",
                    hosts[first].switches[i], hosts[first].index);
        free(list);
        free(clean);
    }
    free(names);
    return good;
}

/* ---- the plane ---- */

/*
 * Choose the layout. Trees are drawn by levels. If all switches are of one level, the layout is a spring
 * model.
 */
static void dot_begin(const struct dot_plane *p)
{
    char title[300];
    snprintf(title, sizeof title, "%s: %s, %u hosts, %u switches", p->plane.name, p->plane.kind,
             p->plane.n_hosts, p->plane.n_switches);
    fputs("graph ", p->out);
    dot_text(p->out, p->plane.name);
    fputs(" {\n  graph [label=", p->out);
    dot_text(p->out, title);
    fprintf(p->out, ", labelloc=t, fontname=\"Helvetica\", fontsize=20, pad=0.3, %s];\n",
            p->top > 0 ? "splines=line, nodesep=0.2, ranksep=1.6, outputorder=edgesfirst"
                       : "layout=neato, overlap=prism, splines=line, "
                         "outputorder=edgesfirst");
    fputs("  node [shape=box, style=\"rounded,filled\", color=\"#4a6785\", fontname=\"Helvetica\", "
          "fontsize=11, "
          "height=0.3, width=0.5, margin=\"0.08,0.04\"];\n"
          "  edge [color=\"#7f95ab\", len=2.2, fontname=\"Helvetica\", fontsize=9];\n"
          "  // orange: slower than the fastest cables; dashed: missing; a number: so many cables\n",
          p->out);
}

enum ctl_exit ctl_export_dot(struct ctl_export *x)
{
    struct dot_plane p = {.out = x->out, .fab = x->view->planes[0]};
    bool good = pmixfab_plane(p.fab, &p.plane) == 0;
    if (!good)
        return ctl_error("no picture: the snapshot contradicts itself");
    for (uint32_t i = 0; i < p.plane.n_switches; i++)
        p.top = level_of(&p, i) > p.top ? level_of(&p, i) : p.top;
    good = dot_gather_edges(&p) && dot_gather_hosts(&p);
    if (good) {
        dot_begin(&p);
        dot_switches(&p);
        dot_edges(&p);
        good = dot_hosts(&p);
        fputs("}\n", p.out);
    }
    free(p.edges);
    free(p.hosts);
    free(p.switches);
    return good ? CTL_DONE : ctl_nomem();
}

/*
 * ---- planes as a graph for programs: a node for each switch, device, router and aggregation node, an edge
 * for each cable.
 */

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

/* Write the id of a node: a switch's GUID, or a device's HCA and port. */
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

static int compare_end_guids(const void *a, const void *b)
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
        qsort(others.ends, others.n, sizeof *others.ends, compare_end_guids);
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
    for (size_t i = 0; i < CTL_COUNT(graph_keys); i++)
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
