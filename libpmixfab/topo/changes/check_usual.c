/*
 * check_usual.c - compare things with similar ones: rates of links, ports of hosts, firmware.
 *
 * Links of a plane are similar if they join the same models: a card (vendor and device ID) and a switch, or
 * two switches. A slower link is a finding, unless its whole kind was built that way. Such a kind is one of
 * these:
 * - the links of hosts with similar names
 * - the links of the devices with one name in such hosts
 * - equally slow split ports of one leaf.
 *
 * Such a kind gives one notice. A model that is slower as a whole gives one notice, too.
 *
 * Hosts are similar if their names differ by numbers only. Similar hosts with the same models of cards are a
 * kind, and so are three or more with equally many additional ports. A difference that a whole kind has is
 * one notice.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "topo/base/hostlist.h"
#include "topo/base/natural.h"
#include "topo/base/order.h"
#include "topo/changes/changes_private.h"
#include "topo/model/host_name.h"

#define PEERS 3 /* a smaller group has no usual value */

/* ---- the usual value ------------------------------------------------------------------------------ */

uint64_t check_stem(const char *host)
{
    char stem[FAB_HOST_MAX + 1];
    size_t n = 0;
    for (const char *s = host; *s != '\0' && n < sizeof(stem); s++) {
        bool digit = isdigit((unsigned char)*s) != 0;
        if (!digit)
            stem[n++] = *s;
        else if (n == 0 || stem[n - 1] != '#')
            stem[n++] = '#';
    }
    return check_hash(stem, n, 0);
}

const char *check_rate_text(uint64_t mbps, char text[CHECK_RATE_TEXT])
{
    snprintf(text, CHECK_RATE_TEXT, "%g Gb/s", (double)mbps / 1000);
    return text;
}

static int compare_votes(const void *x, const void *y)
{
    const struct check_vote *a = x, *b = y;
    return FAB_ORDER(a->group, b->group) ?: FAB_ORDER(a->value, b->value) ?: FAB_ORDER(a->index, b->index);
}

static void sort_votes(struct check_vote *votes, uint32_t n)
{
    if (n > 1)
        qsort(votes, n, sizeof(*votes), compare_votes);
}

/* If more than half of a group share a value, the middle one has it. */
void check_count(struct check_vote *votes, uint32_t n)
{
    sort_votes(votes, n);
    for (uint32_t from = 0, to = 0; from < n; from = to) {
        while (to < n && votes[to].group == votes[from].group)
            to++;
        struct check_usual usual = {.value = votes[from + (to - from) / 2].value, .of = to - from};
        for (uint32_t i = from; i < to; i++)
            usual.n += votes[i].value == usual.value;
        for (uint32_t i = from; i < to; i++)
            votes[i].usual = usual;
    }
}

/* Return whether more than half of a group of at least three have the value. */
static bool check_is_usual(const struct check_usual *usual)
{
    return usual->of >= PEERS && usual->n > usual->of / 2;
}

bool check_is_odd(const struct check_vote *vote)
{
    return check_is_usual(&vote->usual) && vote->value != vote->usual.value;
}

static int compare_kind_names(const void *x, const void *y)
{
    const char *const *a = x, *const *b = y;
    return fab_natural_cmp(*a, *b);
}

/*
 * Add the one notice about a whole kind of hosts. identity: the same at any time. names: of n hosts or
 * switches, which are sorted here.
 */
static void add_kind(struct check *c, uint64_t identity, const char **names, uint32_t n, uint64_t state,
                     const char *what)
{
    char where[256], text[32];
    uint32_t kept = 0;
    qsort(names, n, sizeof(*names), compare_kind_names);
    for (uint32_t i = 0; i < n; i++)
        if (kept == 0 || strcmp(names[kept - 1], names[i]) != 0)
            names[kept++] = names[i];
    char *list = fab_hostlist_fold(names, kept);
    if (list == NULL) {
        c->rc = PMIXFAB_ERR_NOMEM;
        return;
    }
    snprintf(where, sizeof(where), "%.240s%s", list, strlen(list) > 240 ? " ..." : "");
    snprintf(text, sizeof(text), "%016" PRIx64, identity);
    check_add(c, FAB_CHECK_OTHER_KIND, check_at_name(text, where, state), "%s", what);
    free(list);
}

/* ---- rates ------------------------------------------------------------------------------------------ */

enum rate_like { PLANE, MODEL, STEM, DEVICE, SPLIT, RATE_LIKES };

struct rate {
    uint32_t port; /* one end of the cable; the host's end if it has one */
    uint32_t plane;
    bool host;
    uint64_t mbps;
    uint64_t kind[RATE_LIKES]; /* 0: no such kind */
    struct check_usual usual[RATE_LIKES];
};

/* Return the rate of the slower end; 0 if neither is known. */
static uint32_t cable_rate(const struct fab_inventory *inv, uint32_t p, const struct fab_port **slower)
{
    const struct fab_port *a = &inv->ports[p], *b = &inv->ports[a->peer];
    uint32_t rate_a = fab_rate_mbps(a->width, a->speed), rate_b = fab_rate_mbps(b->width, b->speed);
    *slower = rate_b != 0 && (rate_a == 0 || rate_b < rate_a) ? b : a;
    return *slower == b ? rate_b : rate_a;
}

static uint64_t rate_hash(uint64_t a, uint64_t b, uint64_t c)
{
    const uint64_t words[] = {a, b, c};
    return check_hash(words, sizeof(words), 0);
}

static uint64_t model_of(const struct fab_node *node)
{
    return (uint64_t)node->vendor_id << 32 | node->device_id;
}

static void rate_find_kinds(const struct fab_inventory *inv, struct rate *rate, unsigned width)
{
    const struct fab_port *port = &inv->ports[rate->port];
    const struct fab_node *node = &inv->nodes[port->node], *far = &inv->nodes[peer_node(inv, rate->port)];
    const uint64_t a = model_of(node), b = model_of(far);
    const bool turned = !rate->host && a > b;
    rate->kind[PLANE] = 1 + rate->host;
    rate->kind[MODEL] = rate_hash(turned ? b : a, turned ? a : b, rate->host);
    if (!rate->host)
        return;
    if (width == 2)
        rate->kind[SPLIT] = rate_hash(rate->kind[MODEL], far->guid, 2);
    if (node->unnamed)
        return;
    const char *name = fab_str(inv, node->name);
    rate->kind[STEM] = rate_hash(rate->kind[MODEL], check_stem(fab_str(inv, node->host)), 1);
    rate->kind[DEVICE] = rate_hash(rate->kind[STEM], check_hash(name, strlen(name), 0), port->num);
}

/*
 * Append the links of a plane with known rates. Routers and aggregation nodes have links of their own kind.
 */
static void rates_collect(const struct check *c, uint32_t at, struct rate *rates, uint32_t *n)
{
    const struct fab_inventory *inv = c->inv;
    const struct fab_plane *plane = &c->planes.planes[at];
    for (uint32_t k = 0; k < plane->n_cables; k++) {
        const struct fab_port *slower, *a = &inv->ports[plane->cables[k].a];
        const unsigned kind = inv->nodes[a->node].kind, far = inv->nodes[inv->ports[a->peer].node].kind;
        const uint32_t mbps = cable_rate(inv, plane->cables[k].a, &slower);
        if (mbps == 0 || a->state == FAB_PORT_DOWN || fab_port_is_missing(inv, a) || kind > FAB_HCA ||
            far > FAB_HCA)
            continue;
        struct rate *rate = &rates[(*n)++];
        *rate = (struct rate){.port = kind == FAB_SWITCH && far == FAB_HCA ? a->peer : plane->cables[k].a,
                              .plane = at,
                              .host = kind == FAB_HCA || far == FAB_HCA,
                              .mbps = mbps};
        rate_find_kinds(inv, rate, slower->width);
    }
}

static bool rate_is_below(const struct rate *rate, enum rate_like like)
{
    return check_is_usual(&rate->usual[like]) && rate->mbps < rate->usual[like].value;
}

/* Return the kind that was built this way; RATE_LIKES: none, only this link is slow. */
static enum rate_like rate_is_built_so(const struct rate *rate)
{
    const struct check_usual *model = &rate->usual[MODEL];
    if (!rate_is_below(rate, MODEL) && (check_is_usual(model) || model->n == model->of))
        return MODEL;
    for (enum rate_like like = STEM; like < RATE_LIKES; like++) {
        const struct check_usual *usual = &rate->usual[like];
        const bool two = like == STEM && usual->of == 2 && usual->n == 2;
        if ((two || check_is_usual(usual)) && rate->mbps >= usual->value)
            return like;
    }
    return RATE_LIKES;
}

static void add_slow_link(struct check *c, const struct rate *rate)
{
    const struct check_usual *usual = &rate->usual[rate_is_below(rate, MODEL) ? MODEL : PLANE];
    const struct fab_port *slower;
    char text[32], has[CHECK_RATE_TEXT], should[CHECK_RATE_TEXT];
    cable_rate(c->inv, rate->port, &slower);
    fab_rate_text(slower, text);
    check_add(c, FAB_CHECK_SLOW_LINK, check_at_cable(c->inv, rate->port, rate->mbps),
              "%s (%s); %u of %u links of %s %s have %s", text, check_rate_text(rate->mbps, has), usual->n,
              usual->of, rate->host ? "hosts" : "switches",
              usual->of == rate->usual[PLANE].of ? "there" : "of these models",
              check_rate_text(usual->value, should));
}

/* Add a notice for n votes of one kind, which may be in several planes. */
static void add_slow_kind(struct check *c, const struct rate *rates, const struct check_vote *votes,
                          uint32_t n, const char **names)
{
    const struct fab_inventory *inv = c->inv;
    const struct rate *first = &rates[votes[0].index];
    const struct check_usual *plane = &first->usual[rate_is_below(first, PLANE) ? PLANE : MODEL];
    char has[CHECK_RATE_TEXT], should[CHECK_RATE_TEXT], what[200];
    uint32_t n_names = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t port = rates[votes[i].index].port;
        names[n_names++] = fab_node_known_as(inv, &inv->nodes[inv->ports[port].node]);
        if (!first->host) /* either end may be the slower model */
            names[n_names++] = fab_node_known_as(inv, &inv->nodes[peer_node(inv, port)]);
    }
    snprintf(what, sizeof(what), "%u link%s %s, as %s of this kind; %u of %u links of %s there have %s", n,
             n == 1 ? " has" : "s have", check_rate_text(first->mbps, has), n == 1 ? "the only one" : "most",
             plane->n, plane->of, first->host ? "hosts" : "switches", check_rate_text(plane->value, should));
    add_kind(c, rate_hash(votes[0].group, first->mbps, 0), names, n_names, first->mbps, what);
}

void check_rates(struct check *c)
{
    struct rate *rates = check_array(c, c->inv->n_ports / 2, sizeof(*rates));
    struct check_vote *votes = check_array(c, c->inv->n_ports / 2, sizeof(*votes));
    const char **names = check_array(c, c->inv->n_ports, sizeof(*names));
    uint32_t n_rates = 0, n = 0;
    if (c->rc != PMIXFAB_OK)
        return;
    for (uint32_t i = 0; i < c->planes.n; i++)
        rates_collect(c, i, rates, &n_rates);
    for (enum rate_like like = PLANE; like < RATE_LIKES; like++) {
        n = 0;
        for (uint32_t k = 0; k < n_rates; k++)
            if (rates[k].kind[like] != 0)
                votes[n++] = (struct check_vote){.group = rate_hash(rates[k].kind[like], rates[k].plane, 0),
                                                 .value = rates[k].mbps,
                                                 .index = k};
        check_count(votes, n);
        for (uint32_t i = 0; i < n; i++)
            rates[votes[i].index].usual[like] = votes[i].usual;
    }
    n = 0;
    for (uint32_t i = 0; i < n_rates; i++) {
        const struct rate *rate = &rates[i];
        if (!rate_is_below(rate, MODEL) && !rate_is_below(rate, PLANE))
            continue;
        const enum rate_like like = rate_is_built_so(rate);
        if (like == RATE_LIKES)
            add_slow_link(c, rate);
        else
            votes[n++] = (struct check_vote){.group = rate->kind[like], .value = rate->mbps, .index = i};
    }
    sort_votes(votes, n);
    for (uint32_t from = 0, to = 0; from < n && c->rc == PMIXFAB_OK; from = to) {
        while (to < n && votes[to].group == votes[from].group && votes[to].value == votes[from].value)
            to++;
        add_slow_kind(c, rates, votes + from, to - from, names);
    }
}

/* ---- ports of hosts ----------------------------------------------------------------------------------- */

enum host_like { BY_STEM, BY_MODELS, AS_MANY, HOST_LIKES };

/* A host with its cabled ports that the sweep sees; entries of one host are neighbours after sorting. */
struct counted {
    const char *host;
    uint32_t ports;
    uint32_t view;                  /* number of the topology, if a file has several of the same hosts */
    uint64_t card, least, greatest; /* a system GUID; models of the cards */
    bool cards;                     /* it has several cards */
    struct check_usual usual[HOST_LIKES];
};

static int compare_counted(const void *x, const void *y)
{
    const struct counted *a = x, *b = y;
    return strcmp(a->host, b->host) ?: FAB_ORDER(a->view, b->view);
}

/* List each host once in each topology; return the number of entries. */
static uint32_t hosts_collect(const struct check *c, struct counted *list)
{
    const struct fab_inventory *inv = c->inv;
    uint32_t n = 0, n_hosts = 0;
    for (uint32_t p = 0; p < inv->n_ports; p++) {
        const struct fab_port *port = &inv->ports[p];
        const struct fab_node *node = &inv->nodes[port->node];
        const char *host = fab_str(inv, node->host);
        if (port->peer == FAB_NONE || node->kind != FAB_HCA || !check_is_swept(c, port) || node->unnamed ||
            fab_host_is_local(host))
            continue;
        list[n++] = (struct counted){.host = host,
                                     .ports = 1,
                                     .view = check_switch_view(&inv->nodes[peer_node(inv, p)]),
                                     .card = node->system_guid != 0 ? node->system_guid : node->guid,
                                     .least = model_of(node),
                                     .greatest = model_of(node)};
    }
    qsort(list, n, sizeof(*list), compare_counted);
    for (uint32_t i = 0; i < n; i++) {
        struct counted *host = n_hosts == 0 ? NULL : &list[n_hosts - 1];
        if (host == NULL || compare_counted(host, &list[i]) != 0) {
            list[n_hosts++] = list[i];
            continue;
        }
        host->ports++;
        host->cards |= host->card != list[i].card;
        host->least = list[i].least < host->least ? list[i].least : host->least;
        host->greatest = list[i].greatest > host->greatest ? list[i].greatest : host->greatest;
    }
    return n_hosts;
}

static uint64_t host_kind(const struct counted *host, enum host_like like)
{
    const uint64_t words[] = {check_stem(host->host),
                              like == BY_STEM ? 0 : host->least,
                              like == BY_STEM ? 0 : host->greatest,
                              like == AS_MANY ? host->ports : 0,
                              like,
                              host->view};
    return check_hash(words, sizeof(words), 0);
}

static bool host_has_other(const struct counted *host, enum host_like like)
{
    return check_is_usual(&host->usual[like]) && host->ports != host->usual[like].value;
}

/* Return the usual value of similar hosts: of those with the same cards, else of all with similar names. */
static const struct check_usual *host_usual(const struct counted *host)
{
    return &host->usual[host_has_other(host, BY_MODELS) ? BY_MODELS : BY_STEM];
}

/*
 * Return whether the host is like most hosts with the same cards. It may also have more ports than most
 * hosts, if other hosts have as many, or if the ports are on one card, which belongs to one host.
 */
static bool host_is_of_kind(const struct counted *host)
{
    if (host->ports > host_usual(host)->value && (!host->cards || host->usual[AS_MANY].of >= 3))
        return true;
    return !host_has_other(host, BY_MODELS) && check_is_usual(&host->usual[BY_MODELS]);
}

/* each: for the text of a kind. */
static void ports_text(const struct counted *host, const char *each, char text[160])
{
    const struct check_usual *usual = host_usual(host);
    snprintf(text, 160, "%u cabled port%s%s, %u of %u such hosts have %u", host->ports,
             host->ports == 1 ? "" : "s", each, usual->n, usual->of, (unsigned)usual->value);
}

void check_host_ports(struct check *c)
{
    struct counted *hosts = check_array(c, c->inv->n_ports, sizeof(*hosts));
    struct check_vote *votes = check_array(c, c->inv->n_ports, sizeof(*votes));
    const char **names = check_array(c, c->inv->n_ports, sizeof(*names));
    const uint32_t n_hosts = c->rc == PMIXFAB_OK ? hosts_collect(c, hosts) : 0;
    uint32_t n = 0;
    char what[160];
    for (enum host_like like = BY_STEM; n_hosts > 0 && like < HOST_LIKES; like++) {
        for (uint32_t i = 0; i < n_hosts; i++)
            votes[i] =
                (struct check_vote){.group = host_kind(&hosts[i], like), .value = hosts[i].ports, .index = i};
        check_count(votes, n_hosts);
        for (uint32_t i = 0; i < n_hosts; i++)
            hosts[votes[i].index].usual[like] = votes[i].usual;
    }
    for (uint32_t i = 0; i < n_hosts; i++) {
        const struct counted *host = &hosts[i];
        const bool few = host->ports < host_usual(host)->value;
        if (!host_has_other(host, BY_STEM) && !host_has_other(host, BY_MODELS))
            continue;
        if (host_is_of_kind(host)) {
            votes[n++] = (struct check_vote){.group = host_kind(host, AS_MANY), .index = i};
            continue;
        }
        ports_text(host, "", what);
        check_add(c, few ? FAB_CHECK_FEW_PORTS : FAB_CHECK_MANY_PORTS,
                  check_at_name(host->host, host->host, host->ports), "%s", what);
    }
    sort_votes(votes, n);
    for (uint32_t from = 0, to = 0; from < n && c->rc == PMIXFAB_OK; from = to) {
        const struct counted *host = &hosts[votes[from].index];
        for (; to < n && votes[to].group == votes[from].group; to++)
            names[to - from] = hosts[votes[to].index].host;
        ports_text(host, " each", what);
        add_kind(c, votes[from].group, names, to - from, host->ports, what);
    }
}

/* ---- firmware -------------------------------------------------------------------------------------- */

/* The pool holds each text once: equal offsets mean equal texts. */
static bool vote_firmware(const struct check *c, uint32_t p, struct check_vote *vote)
{
    const struct fab_detail *firmware = check_fact(c, p, FAB_FACT_FIRMWARE);
    const struct fab_detail *part = check_fact(c, p, FAB_FACT_PART_ID);
    const struct fab_detail *vendor = check_fact(c, p, FAB_FACT_VENDOR_ID);
    const struct fab_detail *name = check_fact(c, p, FAB_FACT_PART);
    if (firmware == NULL || (part == NULL && name == NULL))
        return false;
    const uint32_t key[3] = {vendor == NULL ? 0 : vendor->text, part == NULL ? 0 : part->text,
                             name == NULL ? 0 : name->text};
    *vote =
        (struct check_vote){.group = check_hash(key, sizeof(key), 1), .value = firmware->text, .index = p};
    return true;
}

/* Vote once for each card. */
void check_firmware(struct check *c)
{
    const struct fab_inventory *inv = c->inv;
    struct check_vote *votes = c->details == NULL ? NULL : check_array(c, inv->n_nodes, sizeof(*votes));
    uint32_t n = 0;
    for (uint32_t i = 0; votes != NULL && i < inv->n_nodes; i++) {
        const struct fab_node *node = &inv->nodes[i];
        bool voted = false;
        for (uint32_t p = node->first_port;
             node->kind == FAB_HCA && !voted && p < node->first_port + node->n_ports; p++)
            voted = vote_firmware(c, p, &votes[n]);
        n += voted;
    }
    check_count(votes, n);
    for (uint32_t i = 0; i < n; i++) {
        const char *part = check_fact_text(c, votes[i].index, FAB_FACT_PART);
        const char *firmware = check_fact_text(c, votes[i].index, FAB_FACT_FIRMWARE);
        const struct check_usual *usual = &votes[i].usual;
        if (!check_is_odd(&votes[i]))
            continue;
        check_add(
            c, FAB_CHECK_FIRMWARE,
            check_at_node(inv, inv->ports[votes[i].index].node, check_hash(firmware, strlen(firmware), 0)),
            "%s; %u of %u %s have %s", firmware, usual->n, usual->of, part != NULL ? part : "of its part",
            c->details->pool + usual->value);
    }
}
