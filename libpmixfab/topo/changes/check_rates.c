/*
 * check_rates.c - links that are slower than their like.
 *
 * Like are the links of a plane between the same models: a card (vendor and device ID) on a switch, or two
 * switches. Of these a slower one is a finding, unless it is of a kind that was built so: links of hosts
 * whose names are alike, of the device of one name in such hosts, or split ports of one leaf that are as
 * slow. Such a kind, and a model that is slower as a whole, is one notice.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/changes/finding.h"

enum like { PLANE, MODEL, STEM, DEVICE, SPLIT, LIKES };

struct rate {
    uint32_t port; /* one end of the cable; of a host's the host's */
    uint32_t plane;
    bool host;
    uint64_t mbps;
    uint64_t kind[LIKES]; /* 0: there is no such kind */
    struct check_usual usual[LIKES];
};

struct rates {
    struct rate *list;
    uint32_t n;
    enum like counted;
};

/* Of the slower end; 0 where neither is known. */
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
    return check_hash((const char *)words, sizeof(words), 0);
}

static uint64_t model_of(const struct fab_node *node)
{
    return (uint64_t)node->vendor_id << 32 | node->device_id;
}

static void rate_find_kinds(const struct fab_inventory *inv, struct rate *rate, unsigned width)
{
    const struct fab_port *port = &inv->ports[rate->port];
    const struct fab_node *node = &inv->nodes[port->node], *far = &inv->nodes[inv->ports[port->peer].node];
    uint64_t a = model_of(node), b = model_of(far);
    rate->kind[PLANE] = 1 + rate->host;
    if (!rate->host && a > b) {
        a = b;
        b = model_of(node);
    }
    rate->kind[MODEL] = rate_hash(a, b, rate->host);
    if (!rate->host)
        return;
    const char *name = fab_str(inv, node->name);
    rate->kind[STEM] =
        node->unnamed ? 0 : rate_hash(rate->kind[MODEL], check_stem(fab_str(inv, node->host)), 1);
    rate->kind[DEVICE] =
        node->unnamed ? 0 : rate_hash(rate->kind[STEM], check_hash(name, strlen(name), 0), port->num);
    rate->kind[SPLIT] = width == 2 ? rate_hash(rate->kind[MODEL], far->guid, 2) : 0;
}

/* Append the links of a plane whose rates are known. What is no host and no switch has a link of its own
 * kind. */
static void rates_collect(struct check *c, uint32_t at, struct rates *rates)
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
        struct rate *rate = &rates->list[rates->n++];
        *rate = (struct rate){.port = kind == FAB_SWITCH && far == FAB_HCA ? a->peer : plane->cables[k].a,
                              .plane = at,
                              .host = kind == FAB_HCA || far == FAB_HCA,
                              .mbps = mbps};
        rate_find_kinds(inv, rate, slower->width);
    }
}

static void on_rate(struct check *c, const struct check_vote *vote, const struct check_usual *usual,
                    void *cbdata)
{
    const struct rates *rates = cbdata;
    (void)c;
    rates->list[vote->index].usual[rates->counted] = *usual;
}

static bool is_below(const struct rate *rate, enum like like)
{
    return check_is_usual(&rate->usual[like]) && rate->mbps < rate->usual[like].value;
}

/* The kind that was built so; LIKES: none, this link alone is slow. */
static enum like rate_is_built_so(const struct rate *rate)
{
    const struct check_usual *model = &rate->usual[MODEL];
    if (!is_below(rate, MODEL) && (check_is_usual(model) || model->n == model->of))
        return MODEL;
    for (enum like like = STEM; like < LIKES; like++) {
        const struct check_usual *usual = &rate->usual[like];
        const bool two = like == STEM && usual->of == 2 && usual->n == 2;
        if ((two || check_is_usual(usual)) && rate->mbps >= usual->value)
            return like;
    }
    return LIKES;
}

static void tell_slow_link(struct check *c, const struct rate *rate)
{
    const struct fab_inventory *inv = c->inv;
    const struct check_usual *usual = &rate->usual[is_below(rate, MODEL) ? MODEL : PLANE];
    const char *whose = rate->host ? "hosts" : "switches";
    const struct fab_port *slower, *port = &inv->ports[rate->port];
    char where[FAB_LINK_TEXT], text[32], has[32], should[32];
    cable_rate(inv, rate->port, &slower);
    fab_link_text(inv, port, where);
    fab_rate_text(slower, text);
    check_rate_text(rate->mbps, has);
    check_rate_text(usual->value, should);
    check_add(c, FAB_CHECK_SLOW_LINK, check_about_state(fab_about_cable(inv, port), rate->mbps), where,
              "%s (%s); %u of %u links of %s %s have %s", text, has, usual->n, usual->of, whose,
              usual->of == rate->usual[PLANE].of ? "there" : "of these models", should);
}

/* n votes of one kind, which may be in several planes. */
static void tell_slow_kind(struct check *c, const struct rates *rates, const struct check_vote *votes,
                           uint32_t n, const char **names)
{
    const struct fab_inventory *inv = c->inv;
    const struct rate *first = &rates->list[votes[0].index];
    const struct check_usual *plane = &first->usual[is_below(first, PLANE) ? PLANE : MODEL];
    char has[32], should[32], what[200];
    uint32_t n_names = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct fab_port *port = &inv->ports[rates->list[votes[i].index].port];
        names[n_names++] = fab_node_known_as(inv, &inv->nodes[port->node]);
        if (!first->host) /* either may be the slower model */
            names[n_names++] = fab_node_known_as(inv, &inv->nodes[inv->ports[port->peer].node]);
    }
    check_rate_text(first->mbps, has);
    check_rate_text(plane->value, should);
    snprintf(what, sizeof(what), "%u link%s %s, as %s of this kind; %u of %u links of %s there have %s", n,
             n == 1 ? " has" : "s have", has, n == 1 ? "the only one" : "most", plane->n, plane->of,
             first->host ? "hosts" : "switches", should);
    check_kind(c, rate_hash(votes[0].group, first->mbps, 0), names, n_names, first->mbps, what);
}

static void rates_tell(struct check *c, const struct rates *rates, struct check_vote *votes,
                       const char **names)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < rates->n; i++) {
        const struct rate *rate = &rates->list[i];
        if (!is_below(rate, MODEL) && !is_below(rate, PLANE))
            continue;
        const enum like like = rate_is_built_so(rate);
        if (like == LIKES)
            tell_slow_link(c, rate);
        else
            votes[n++] = (struct check_vote){.group = rate->kind[like], .value = rate->mbps, .index = i};
    }
    check_sort_votes(votes, n);
    for (uint32_t from = 0, to = 0; from < n; from = to) {
        while (to < n && votes[to].group == votes[from].group && votes[to].value == votes[from].value)
            to++;
        tell_slow_kind(c, rates, votes + from, to - from, names);
    }
}

void check_rates(struct check *c)
{
    struct rates rates = {.list = check_array(c, c->inv->n_ports / 2, sizeof(*rates.list))};
    struct check_vote *votes = check_array(c, c->inv->n_ports / 2, sizeof(*votes));
    const char **names = check_array(c, c->inv->n_ports, sizeof(*names));
    for (uint32_t i = 0; i < c->planes.n && c->rc == PMIXFAB_OK; i++)
        rates_collect(c, i, &rates);
    for (rates.counted = PLANE; rates.counted < LIKES; rates.counted++) {
        uint32_t n = 0;
        for (uint32_t k = 0; k < rates.n; k++) {
            const struct rate *rate = &rates.list[k];
            if (rate->kind[rates.counted] != 0)
                votes[n++] =
                    (struct check_vote){.group = rate_hash(rate->kind[rates.counted], rate->plane, 0),
                                        .value = rate->mbps,
                                        .index = k};
        }
        check_count_all(c, votes, n, on_rate, &rates);
    }
    if (c->rc == PMIXFAB_OK)
        rates_tell(c, &rates, votes, names);
    free(rates.list);
    free(votes);
    free(names);
}
