/*
 * check_host_ports.c - hosts with fewer or more cabled ports than their like.
 *
 * Like are hosts whose names differ by numbers only. Of those the hosts with the same models of cards are a
 * kind, and so are three or more of these that have as many ports more; what a kind has in common is one
 * notice.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/base/order.h"
#include "topo/changes/finding.h"
#include "topo/model/host_name.h"

enum like { STEM, MODELS, AS_MANY, LIKES };

/* A host, with its cabled ports that the sweep sees; those of one host are neighbours after sorting. */
struct counted {
    const char *host;
    uint32_t ports;
    uint32_t view;                  /* of several topologies of the same hosts */
    uint64_t card, least, greatest; /* a system GUID; models, of the cards */
    bool cards;                     /* it has several cards */
    struct check_usual usual[LIKES];
};

struct hosts {
    struct counted *list;
    uint32_t n;
    enum like counted;
};

static int check_compare_hosts(const void *x, const void *y)
{
    const struct counted *a = x, *b = y;
    return strcmp(a->host, b->host) ?: FAB_ORDER(a->view, b->view);
}

static void counted_add(struct counted *host, const struct counted *port)
{
    host->ports++;
    host->cards |= host->card != port->card;
    host->least = port->least < host->least ? port->least : host->least;
    host->greatest = port->greatest > host->greatest ? port->greatest : host->greatest;
}

/* Each host once in each topology; how many there are is n. */
static void hosts_collect(struct check *c, struct hosts *hosts)
{
    const struct fab_inventory *inv = c->inv;
    uint32_t n = 0;
    for (uint32_t p = 0; p < inv->n_ports; p++) {
        const struct fab_port *port = &inv->ports[p];
        const struct fab_node *node = &inv->nodes[port->node];
        if (!check_is_cabled_hca(c, port) || !check_is_swept(c, port) || node->unnamed ||
            fab_host_is_local(fab_str(inv, node->host)))
            continue;
        const uint64_t model = (uint64_t)node->vendor_id << 32 | node->device_id;
        hosts->list[n++] =
            (struct counted){.host = fab_str(inv, node->host),
                             .ports = 1,
                             .view = check_switch_view(&inv->nodes[inv->ports[port->peer].node]),
                             .card = node->system_guid != 0 ? node->system_guid : node->guid,
                             .least = model,
                             .greatest = model};
    }
    qsort(hosts->list, n, sizeof(*hosts->list), check_compare_hosts);
    for (uint32_t i = 0; i < n; i++) {
        if (hosts->n > 0 && check_compare_hosts(&hosts->list[hosts->n - 1], &hosts->list[i]) == 0)
            counted_add(&hosts->list[hosts->n - 1], &hosts->list[i]);
        else
            hosts->list[hosts->n++] = hosts->list[i];
    }
}

static uint64_t host_kind(const struct counted *host, enum like like)
{
    const uint64_t words[] = {check_stem(host->host),
                              like == STEM ? 0 : host->least,
                              like == STEM ? 0 : host->greatest,
                              like == AS_MANY ? host->ports : 0,
                              like,
                              host->view};
    return check_hash((const char *)words, sizeof(words), 0);
}

static void take_host_usual(struct check *c, const struct check_vote *vote, const struct check_usual *usual,
                            void *cbdata)
{
    const struct hosts *hosts = cbdata;
    (void)c;
    hosts->list[vote->index].usual[hosts->counted] = *usual;
}

static bool has_other(const struct counted *host, enum like like)
{
    return check_is_usual(&host->usual[like]) && host->ports != host->usual[like].value;
}

/* What most of its like have: of those with the same cards, or of all whose names are alike. */
static const struct check_usual *host_usual(const struct counted *host)
{
    return &host->usual[has_other(host, MODELS) ? MODELS : STEM];
}

/* As most with the same cards; or more than most are, as others, or on one card, which is of one host. */
static bool is_of_kind(const struct counted *host)
{
    if (host->ports > host_usual(host)->value && (!host->cards || host->usual[AS_MANY].of >= 3))
        return true;
    return !has_other(host, MODELS) && check_is_usual(&host->usual[MODELS]);
}

static void tell_host_ports(struct check *c, const struct counted *host)
{
    const struct check_usual *usual = host_usual(host);
    check_add(c, host->ports < usual->value ? FAB_CHECK_FEW_PORTS : FAB_CHECK_MANY_PORTS,
              check_about_state(fab_about_text(host->host), host->ports), host->host,
              "%u cabled port%s, %u of %u such hosts have %u", host->ports, host->ports == 1 ? "" : "s",
              usual->n, usual->of, (unsigned)usual->value);
}

static void hosts_tell(struct check *c, const struct hosts *hosts, struct check_vote *votes)
{
    const char **names = check_array(c, hosts->n, sizeof(*names));
    uint32_t n = 0;
    for (uint32_t i = 0; names != NULL && i < hosts->n; i++) {
        const struct counted *host = &hosts->list[i];
        if (!has_other(host, STEM) && !has_other(host, MODELS))
            continue;
        if (is_of_kind(host))
            votes[n++] = (struct check_vote){.group = host_kind(host, AS_MANY), .index = i};
        else
            tell_host_ports(c, host);
    }
    check_sort_votes(votes, n);
    for (uint32_t from = 0, to = 0; from < n; from = to) {
        const struct counted *host = &hosts->list[votes[from].index];
        const struct check_usual *usual = host_usual(host);
        char what[160];
        for (; to < n && votes[to].group == votes[from].group; to++)
            names[to - from] = hosts->list[votes[to].index].host;
        snprintf(what, sizeof(what), "%u cabled port%s each, %u of %u such hosts have %u", host->ports,
                 host->ports == 1 ? "" : "s", usual->n, usual->of, (unsigned)usual->value);
        check_kind(c, votes[from].group, names, to - from, host->ports, what);
    }
    free(names);
}

void check_host_ports(struct check *c)
{
    struct hosts hosts = {.list = check_array(c, c->inv->n_ports, sizeof(*hosts.list))};
    struct check_vote *votes = check_array(c, c->inv->n_ports, sizeof(*votes));
    if (votes != NULL)
        hosts_collect(c, &hosts);
    for (hosts.counted = STEM; votes != NULL && hosts.counted < LIKES; hosts.counted++) {
        for (uint32_t i = 0; i < hosts.n; i++)
            votes[i] = (struct check_vote){
                .group = host_kind(&hosts.list[i], hosts.counted), .value = hosts.list[i].ports, .index = i};
        check_count_all(c, votes, hosts.n, take_host_usual, &hosts);
    }
    if (votes != NULL)
        hosts_tell(c, &hosts, votes);
    free(votes);
    free(hosts.list);
}
