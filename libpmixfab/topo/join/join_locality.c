/*
 * join_locality.c - where in its host each device is, as small numbers.
 *
 * Card: PCI domain, bus and device; ports of one node are on one card (the first of theirs in natural order).
 * The numbers of one host begin at 1 in the natural order of what they stand for.
 */
#include <stdlib.h>
#include <string.h>

#include "topo/base/natural.h"
#include "topo/base/order.h"
#include "topo/join/join_state.h"

enum { CARD, SWITCH, NUMA, PACKAGE, DIMENSIONS };

/* A device of a report with what stands for its places; NULL: not known. */
struct spot {
    const char *text[DIMENSIONS]; /* a card "": that of the node, wherever it is */
    uint32_t port, node;
};

/* One dimension of it. */
struct mark {
    const char *text;
    uint32_t spot, node; /* node: of a card "" */
};

struct places {
    struct join *j;
    struct spot *spots; /* of one report */
    struct mark *marks;
    uint16_t (*next)[DIMENSIONS]; /* of each report that is the first of its host: the last number given */
    uint32_t *of_host;            /* of each report that is the first of its host: how many there are */
};

static const char *locality_chosen_text(const struct fab_details *details, uint32_t port, unsigned kind)
{
    for (uint32_t f = details->first[port]; f < details->first[port + 1]; f++)
        if (details->facts[f].kind == kind)
            return details->pool + details->facts[f].text;
    return NULL;
}

/* PCI addresses without the function. */
static int cmp_card(const char *a, const char *b)
{
    const char *end_a = strrchr(a, ':'), *end_b = strrchr(b, ':');
    size_t in_a = end_a == NULL ? strlen(a) : (size_t)(end_a - a);
    size_t in_b = end_b == NULL ? strlen(b) : (size_t)(end_b - b);
    return memcmp(a, b, in_a < in_b ? in_a : in_b) ?: FAB_ORDER(in_a, in_b);
}

static int cmp_card_mark(const void *va, const void *vb)
{
    const struct mark *a = va, *b = vb;
    return cmp_card(a->text, b->text) ?: FAB_ORDER(a->node, b->node);
}

static int cmp_mark(const void *va, const void *vb)
{
    const struct mark *a = va, *b = vb;
    return a->text == b->text ? 0 : fab_natural_cmp(a->text, b->text);
}

static int locality_cmp_node(const void *va, const void *vb)
{
    const struct spot *a = va, *b = vb;
    return FAB_ORDER(a->node, b->node) ?: FAB_ORDER(a->port, b->port);
}

/* Ports of one node: one card. Where none of several knows its address, the node stands for it. */
static void share_cards(struct spot *spots, uint32_t n)
{
    qsort(spots, n, sizeof(*spots), locality_cmp_node);
    for (uint32_t first = 0, end; first < n; first = end) {
        const char *card = NULL;
        for (end = first; end < n && spots[end].node == spots[first].node; end++)
            if (spots[end].text[CARD] != NULL && (card == NULL || cmp_card(spots[end].text[CARD], card) < 0))
                card = spots[end].text[CARD];
        if (card == NULL && end - first > 1)
            card = "";
        for (uint32_t i = first; i < end; i++)
            spots[i].text[CARD] = card;
    }
}

/* Numbers of one dimension for the devices of a report; *next is the last one of its host. */
static void locality_number(struct places *places, uint32_t n, unsigned dimension, uint16_t *next)
{
    struct fab_locality *out = places->j->out->details.places;
    int (*cmp)(const void *, const void *) = dimension == CARD ? cmp_card_mark : cmp_mark;
    uint32_t n_marks = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct spot *spot = &places->spots[i];
        const char *text = spot->text[dimension];
        if (text != NULL)
            places->marks[n_marks++] = (struct mark){text, i, text[0] == '\0' ? spot->node : 0};
    }
    qsort(places->marks, n_marks, sizeof(*places->marks), cmp);
    for (uint32_t i = 0; i < n_marks; i++) {
        const struct mark *mark = &places->marks[i];
        struct fab_locality *place = &out[places->spots[mark->spot].port];
        uint16_t *fields[DIMENSIONS] = {&place->card, &place->sw, &place->numa, &place->package};
        if (i == 0 || cmp(mark, mark - 1) != 0)
            *next += *next < UINT16_MAX;
        *fields[dimension] = *next;
    }
}

/* The places of a report's devices as they were: where it was its host's only one then as now, and its
 * devices are the same ports, with the same facts. */
static bool take_places(struct places *places, uint32_t first, uint32_t end)
{
    const struct join *j = places->j;
    const uint32_t report = j->devs[first].report;
    uint32_t n = 0;
    if (j->cache == NULL || j->before[report] == FAB_NONE || places->of_host[j->host_group[report]] != 1)
        return false;
    const struct join_cached_report *old = &j->cache->reports[j->before[report]];
    if (!old->alone)
        return false;
    for (uint32_t d = first; d < end; d++) {
        uint32_t port = j->devs[d].port;
        if (port != FAB_NONE && j->from[port] == FAB_NONE)
            return false;
        n += port != FAB_NONE;
    }
    if (n != old->n_joined)
        return false;
    for (uint32_t d = first; d < end; d++)
        if (j->devs[d].port != FAB_NONE)
            j->out->details.places[j->devs[d].port] = j->cache->places[j->from[j->devs[d].port]];
    return true;
}

/* The devices of the report that begins with `first`. Returns the first one of the next. */
static uint32_t number_report(struct places *places, uint32_t first)
{
    const struct join *j = places->j;
    const struct fab_details *details = &j->out->details;
    uint32_t n = 0, end = first;
    while (end < j->n_devs && j->devs[end].report == j->devs[first].report)
        end++;
    if (take_places(places, first, end))
        return end;
    for (uint32_t d = first; d < end; d++) {
        uint32_t port = j->devs[d].port;
        if (port == FAB_NONE)
            continue;
        places->spots[n++] = (struct spot){
            .text = {[CARD] = locality_chosen_text(details, port, FAB_FACT_PCI),
                     [SWITCH] = locality_chosen_text(details, port, FAB_FACT_SWITCH),
                     [NUMA] = locality_chosen_text(details, port, FAB_FACT_NUMA),
                     [PACKAGE] = locality_chosen_text(details, port, FAB_FACT_PACKAGE)},
            .port = port,
            .node = j->out->inv.ports[port].node,
        };
    }
    share_cards(places->spots, n);
    for (unsigned dimension = 0; dimension < DIMENSIONS; dimension++)
        locality_number(places, n, dimension, &places->next[j->host_group[j->devs[first].report]][dimension]);
    return end;
}

int join_places(struct join *j)
{
    struct places places = {.j = j,
                            .spots = join_temp(j, j->n_devs, sizeof(*places.spots)),
                            .marks = join_temp(j, j->n_devs, sizeof(*places.marks)),
                            .next = join_temp(j, j->n_reports, sizeof(*places.next)),
                            .of_host = join_temp(j, j->n_reports, sizeof(*places.of_host))};
    if (j->no_memory)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t r = 0; r < j->n_reports; r++)
        places.of_host[j->host_group[r]]++;
    for (uint32_t d = 0; d < j->n_devs;)
        d = number_report(&places, d);
    return PMIXFAB_OK;
}
