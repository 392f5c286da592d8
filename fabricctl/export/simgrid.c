/* simgrid.c - a plane as a platform of SimGrid (DTD version 4.1, SimGrid 3.32 and later). */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fabricctl/export/export.h"

/*
 * Latencies in ns (docs/design/simulate.md has their sources). A path across h switches has h + 1 cables. Its
 * latency is that of two adapters, h switches and h + 1 cables: a cable between switches carries the latency
 * of one switch, and the cable of a host that of its adapter and half of a switch.
 */
#define ADAPTER_NS         300
#define CABLE_NS           20
#define SWITCH_NS          130
#define ETHERNET_SWITCH_NS 450

#define LOOPBACK_MBPS 800000 /* ranks of one host, if no cable of the plane is faster */

struct simgrid {
    FILE *out;
    const struct ctl_routes *r;
    bool *used; /* of each cable: a route has it */
    uint32_t n_unknown;
};

/* Write a text as the value of an attribute. */
static void simgrid_text(FILE *out, const char *text)
{
    char *clean = ctl_clean_copy(text);
    for (const char *c = clean != NULL ? clean : "?"; *c != '\0'; c++) {
        if (*c == '<')
            fputs("&lt;", out);
        else if (*c == '&')
            fputs("&amp;", out);
        else if (*c == '"')
            fputs("&quot;", out);
        else
            putc(*c, out);
    }
    free(clean);
}

static void simgrid_end(const struct simgrid *s, const struct pmixfab_end *end)
{
    struct pmixfab_switch sw;
    struct pmixfab_device device;
    if (end->is_switch != 0 && pmixfab_switch(s->r->fab, end->index, &sw) == 0) {
        simgrid_text(s->out, sw.name);
    } else if (end->is_switch == 0 && pmixfab_device(s->r->fab, end->index, &device) == 0) {
        simgrid_text(s->out, device.host);
        putc(':', s->out);
        simgrid_text(s->out, device.name);
    }
    fprintf(s->out, "/%u", end->port);
}

static void simgrid_cable(struct simgrid *s, uint32_t i, unsigned switch_ns)
{
    const struct pmixfab_link *cable = &s->r->cables[i];
    const bool of_host = cable->a.is_switch == 0 || cable->b.is_switch == 0;
    s->n_unknown += cable->mbps == 0;
    fprintf(s->out,
            "<link id=\"cable/%u\" bandwidth=\"%" PRIu64
            "Mbps\" latency=\"%uns\" sharing_policy=\"SPLITDUPLEX\"><prop id=\"a\" value=\"",
            i, cable->mbps > 0 ? cable->mbps : s->r->plane.fastest_mbps,
            CABLE_NS + (of_host ? ADAPTER_NS + switch_ns / 2 : switch_ns));
    simgrid_end(s, &cable->a);
    fputs("\"/><prop id=\"b\" value=\"", s->out);
    simgrid_end(s, &cable->b);
    fputs("\"/></link>\n", s->out);
}

/* Mark the cables that a route has. */
static void simgrid_mark(struct simgrid *s)
{
    const struct ctl_routes *r = s->r;
    for (uint32_t from = 0; from < r->n; from++) {
        s->used[r->hosts[from].cable] = true;
        for (uint32_t to = 0; (from == 0 || r->hosts[from].sw != r->hosts[from - 1].sw) && to < r->n; to++)
            for (uint32_t sw = r->hosts[from].sw; sw != r->hosts[to].sw;) {
                const uint32_t cable = r->next[(size_t)sw * r->n + to];
                s->used[cable] = true;
                sw = ctl_route_switch(r, sw, cable);
            }
    }
}

static void simgrid_cables(struct simgrid *s)
{
    struct pmixfab_device device;
    const uint64_t loopback =
        s->r->plane.fastest_mbps > LOOPBACK_MBPS ? s->r->plane.fastest_mbps : LOOPBACK_MBPS;
    const bool ethernet = pmixfab_device(s->r->fab, s->r->hosts[0].device, &device) == 0 &&
                          strncmp(device.id, "fab://", 6) != 0;
    fprintf(s->out,
            "<zone id=\"cables\" routing=\"None\">\n<link id=\"loopback\" bandwidth=\"%" PRIu64
            "Mbps\" latency=\"0ns\" sharing_policy=\"FATPIPE\"/>\n",
            loopback);
    for (uint32_t i = 0; i < s->r->plane.n_links; i++)
        if (s->used[i])
            simgrid_cable(s, i, ethernet ? ETHERNET_SWITCH_NS : SWITCH_NS);
    fputs("</zone>\n", s->out);
}

/* Write a cable of a route. forward: from end a to end b. */
static void simgrid_step(FILE *out, uint32_t cable, bool forward)
{
    fprintf(out, "<link_ctn id=\"cable/%u\" direction=\"%s\"/>", cable, forward ? "UP" : "DOWN");
}

/* Write the cable of a host, to the host or from it. */
static void simgrid_host_step(const struct simgrid *s, const struct ctl_routed_host *host, bool to)
{
    const bool a_is_switch = s->r->cables[host->cable].a.is_switch != 0;
    simgrid_step(s->out, host->cable, a_is_switch == to);
}

/*
 * Write a leaf: a zone of the switch and the zones of its hosts. Each host has a zone because only zones can
 * be the ends of the routes below.
 */
static void simgrid_leaf(const struct simgrid *s, uint32_t first, uint32_t end)
{
    const uint32_t sw = s->r->hosts[first].sw;
    fprintf(s->out,
            "<zone id=\"leaf/%u\" routing=\"Floyd\">\n<zone id=\"at/switch/%u\" routing=\"None\"><router "
            "id=\"switch/%u\"/></zone>\n",
            sw, sw, sw);
    for (uint32_t i = first; i < end; i++) {
        const char *name = s->r->hosts[i].name;
        fprintf(s->out,
                "<zone id=\"at/%s\" routing=\"Full\"><host id=\"%s\" speed=\"1Gf\"/><route src=\"%s\" "
                "dst=\"%s\"><link_ctn id=\"loopback\"/></route></zone>\n",
                name, name, name, name);
    }
    for (uint32_t i = first; i < end; i++) {
        const char *name = s->r->hosts[i].name;
        fprintf(s->out,
                "<zoneRoute src=\"at/%s\" dst=\"at/switch/%u\" gw_src=\"%s\" gw_dst=\"switch/%u\" "
                "symmetrical=\"NO\">",
                name, sw, name, sw);
        simgrid_host_step(s, &s->r->hosts[i], false);
        fprintf(s->out,
                "</zoneRoute>\n<zoneRoute src=\"at/switch/%u\" dst=\"at/%s\" gw_src=\"switch/%u\" "
                "gw_dst=\"%s\" symmetrical=\"NO\">",
                sw, name, sw, name);
        simgrid_host_step(s, &s->r->hosts[i], true);
        fputs("</zoneRoute>\n", s->out);
    }
    fputs("</zone>\n", s->out);
}

/* Write the routes from a leaf to all hosts of other leaves. */
static void simgrid_routes(const struct simgrid *s, uint32_t leaf)
{
    const struct ctl_routes *r = s->r;
    for (uint32_t to = 0; to < r->n; to++) {
        if (r->hosts[to].sw == leaf)
            continue;
        fprintf(s->out, "<bypassZoneRoute src=\"leaf/%u\" dst=\"at/%s\" gw_src=\"switch/%u\" gw_dst=\"%s\">",
                leaf, r->hosts[to].name, leaf, r->hosts[to].name);
        for (uint32_t sw = leaf; sw != r->hosts[to].sw;) {
            const uint32_t cable = r->next[(size_t)sw * r->n + to];
            const struct pmixfab_link *link = &r->cables[cable];
            simgrid_step(s->out, cable, link->a.index == sw);
            sw = ctl_route_switch(r, sw, cable);
        }
        simgrid_host_step(s, &r->hosts[to], true);
        fputs("</bypassZoneRoute>\n", s->out);
    }
}

enum ctl_exit ctl_simgrid_write(struct ctl_export *x, const struct ctl_routes *r)
{
    struct simgrid s = {.out = x->out, .r = r};
    if (r->plane.fastest_mbps == 0)
        return ctl_error("nothing to write: plane %s: no cable has a known rate", r->plane.name);
    s.used = calloc(r->plane.n_links + (size_t)1, sizeof *s.used);
    if (s.used == NULL)
        return ctl_nomem();
    simgrid_mark(&s);
    fputs("<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
          "<!-- by fabricctl export simgrid; run with cfg=network/model:CM02 cfg=network/TCP-gamma:0 -->\n"
          "<platform version=\"4.1\">\n<zone id=\"plane\" routing=\"None\">\n",
          s.out);
    simgrid_cables(&s);
    for (uint32_t first = 0, end; first < r->n; first = end) {
        for (end = first; end < r->n && r->hosts[end].sw == r->hosts[first].sw; end++)
            ;
        simgrid_leaf(&s, first, end);
    }
    for (uint32_t i = 0; i < r->n; i++)
        if (i == 0 || r->hosts[i].sw != r->hosts[i - 1].sw)
            simgrid_routes(&s, r->hosts[i].sw);
    fputs("</zone>\n</platform>\n", s.out);
    if (s.n_unknown > 0)
        ctl_export_lost(x, "%u cable%s no known rate: written with the fastest of plane %s", s.n_unknown,
                        s.n_unknown == 1 ? " has" : "s have", r->plane.name);
    free(s.used);
    return CTL_DONE;
}

enum ctl_exit ctl_export_simgrid(struct ctl_export *x)
{
    const char *text = x->ctl->n_args > 1 ? x->ctl->args[1] : NULL;
    struct fab_hostlist list = {0};
    struct fab_err err = {{0}};
    struct ctl_routes routes = {.n = 0};
    enum ctl_exit status = CTL_DONE;
    if (text != NULL && fab_hostlist_parse(text, &list, &err) != 0)
        status = ctl_error("%s: %.200s", err.text, text);
    if (status == CTL_DONE)
        status = ctl_routes_make(x, text != NULL ? &list : NULL, &routes);
    if (status == CTL_DONE)
        status = ctl_simgrid_write(x, &routes);
    ctl_routes_free(&routes);
    fab_hostlist_free(&list);
    return status;
}
