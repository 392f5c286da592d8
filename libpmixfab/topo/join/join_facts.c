/* join_facts.c - the facts of every port from the sweep and its host, and its place in the host. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "topo/base/array.h"
#include "topo/base/natural.h"
#include "topo/base/order.h"
#include "topo/join/join_state.h"

/* ---- places ---------------------------------------------------------------------------------------- */

/*
 * The place of each device in its host, as small numbers.
 *
 * A card is a PCI domain, bus and device. Ports of one node are on one card (their first card in natural
 * order). The numbers of one host begin at 1, in the natural order of the texts.
 */

enum { CARD, SWITCH, NUMA, PACKAGE, DIMENSIONS };

/* A device of a report with the texts of its places; NULL: unknown. */
struct spot {
    const char *text[DIMENSIONS]; /* a card "": that of the node, at an unknown address */
    uint32_t port, node;
};

static const char *locality_chosen_text(const struct fab_details *details, uint32_t port, unsigned kind)
{
    for (uint32_t f = details->first[port]; f < details->first[port + 1]; f++)
        if (details->facts[f].kind == kind)
            return details->pool + details->facts[f].text;
    return NULL;
}

/* Compare PCI addresses without the function. */
static int cmp_card(const char *a, const char *b)
{
    const char *end_a = strrchr(a, ':'), *end_b = strrchr(b, ':');
    size_t in_a = end_a == NULL ? strlen(a) : (size_t)(end_a - a);
    size_t in_b = end_b == NULL ? strlen(b) : (size_t)(end_b - b);
    return memcmp(a, b, in_a < in_b ? in_a : in_b) ?: FAB_ORDER(in_a, in_b);
}

/* Compare by a dimension; unknown places come last. */
static int cmp_spot(const void *va, const void *vb, void *of)
{
    const struct spot *a = va, *b = vb;
    const unsigned dimension = *(const unsigned *)of;
    const char *x = a->text[dimension], *y = b->text[dimension];
    if (x == NULL || y == NULL)
        return (x == NULL) - (y == NULL);
    if (dimension != CARD)
        return x == y ? 0 : fab_natural_cmp(x, y);
    return cmp_card(x, y) ?: (x[0] == '\0' ? FAB_ORDER(a->node, b->node) : 0);
}

static int cmp_spot_node(const void *va, const void *vb)
{
    const struct spot *a = va, *b = vb;
    return FAB_ORDER(a->node, b->node) ?: FAB_ORDER(a->port, b->port);
}

/* Give ports of one node one card. If none of several has an address, the node represents the card. */
static void share_cards(struct spot *spots, uint32_t n)
{
    qsort(spots, n, sizeof(*spots), cmp_spot_node);
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

/* Number the devices of a report in one dimension; *last is the last number of its host. */
static void number_dimension(struct spot *spots, uint32_t n, unsigned dimension, struct fab_locality *places,
                             uint16_t *last)
{
    qsort_r(spots, n, sizeof(*spots), cmp_spot, &dimension);
    for (uint32_t i = 0; i < n && spots[i].text[dimension] != NULL; i++) {
        struct fab_locality *place = &places[spots[i].port];
        uint16_t *fields[DIMENSIONS] = {&place->card, &place->sw, &place->numa, &place->package};
        if (i == 0 || cmp_spot(&spots[i - 1], &spots[i], &dimension) != 0)
            *last += *last < UINT16_MAX;
        *fields[dimension] = *last;
    }
}

/*
 * Take over the places of a report's devices from the last join, if the report was and is the only report of
 * its host, and its devices are the same ports with the same facts.
 */
static bool take_places(const struct join *j, uint32_t r)
{
    const struct join_cached_report *old = j->before[r] == FAB_NONE ? NULL : &j->cache->reports[j->before[r]];
    uint32_t n = 0;
    if (old == NULL || !old->alone || !j->alone[r])
        return false;
    for (uint32_t d = j->first_dev[r]; d < j->first_dev[r + 1]; d++) {
        uint32_t port = j->devs[d].port;
        if (port != FAB_NONE && j->from[port] == FAB_NONE)
            return false;
        n += port != FAB_NONE;
    }
    if (n != old->n_joined)
        return false;
    for (uint32_t d = j->first_dev[r]; d < j->first_dev[r + 1]; d++)
        if (j->devs[d].port != FAB_NONE)
            j->out->details.places[j->devs[d].port] = j->cache->places[j->from[j->devs[d].port]];
    return true;
}

/* Number the places of a report's devices. last: the last numbers of its host; spots: room for them. */
static void number_report(const struct join *j, uint32_t r, struct spot *spots, uint16_t last[DIMENSIONS])
{
    static const uint8_t kinds[DIMENSIONS] = {FAB_FACT_PCI, FAB_FACT_SWITCH, FAB_FACT_NUMA, FAB_FACT_PACKAGE};
    const struct fab_details *details = &j->out->details;
    uint32_t n = 0;
    for (uint32_t d = j->first_dev[r]; d < j->first_dev[r + 1]; d++) {
        const uint32_t port = j->devs[d].port;
        if (port == FAB_NONE)
            continue;
        struct spot *spot = &spots[n++];
        *spot = (struct spot){.port = port, .node = j->out->inv.ports[port].node};
        for (unsigned dimension = 0; dimension < DIMENSIONS; dimension++)
            spot->text[dimension] = locality_chosen_text(details, port, kinds[dimension]);
    }
    share_cards(spots, n);
    for (unsigned dimension = 0; dimension < DIMENSIONS; dimension++)
        number_dimension(spots, n, dimension, details->places, &last[dimension]);
}

static int join_places(struct join *j)
{
    uint16_t(*last)[DIMENSIONS] =
        join_temp(j, j->n_reports, sizeof(*last)); /* of the first report of a host */
    struct spot *spots = join_temp(j, j->n_devs, sizeof(*spots));
    if (j->no_memory)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t r = 0; r < j->n_reports; r++)
        if (!take_places(j, r))
            number_report(j, r, spots, last[j->host_group[r]]);
    return PMIXFAB_OK;
}

/* ---- facts ----------------------------------------------------------------------------------------- */

#define NAME_BYTES 63 /* of a name used as a fact */

struct making {
    struct join *j;
    struct fab_strings *texts; /* the cache's, or of this join only */
    uint32_t last[FAB_FACTS];  /* the text added last for this kind: mostly it is repeated */
    struct join_heap heap;
    struct fab_detail *facts;
    uint32_t n_facts, cap_facts;
};

/* Write "0x" and 16 digits. */
static const char *join_guid_text(uint64_t guid, char *buf)
{
    buf[0] = '0';
    buf[1] = 'x';
    for (unsigned i = 0; i < 16; i++)
        buf[2 + i] = "0123456789abcdef"[guid >> (60 - 4 * i) & 15];
    buf[18] = '\0';
    return buf;
}

static const char *number_text(uint32_t n, char buf[12])
{
    char *at = buf + 11;
    *at = '\0';
    do {
        *--at = (char)('0' + n % 10);
        n /= 10;
    } while (n > 0);
    return at;
}

/* The sweep's values for a port; for a silent one only its identity. */
struct swept_texts {
    char node[20], system[20], guid[20], num[12], lid[12], speed[12];
};

static int add_swept(struct making *m, const struct fab_port *port, const struct fab_node *node, bool silent,
                     struct swept_texts *texts)
{
    const char *said[FAB_FACTS] = {NULL}, *name = fab_str(m->j->swept, node->name);
    uint32_t mbps = fab_rate_mbps(port->width, (enum fab_speed)port->speed);
    int rc = PMIXFAB_OK;
    said[FAB_FACT_NODE_GUID] = join_guid_text(node->guid, texts->node);
    if (node->system_guid != 0)
        said[FAB_FACT_SYSTEM_GUID] = join_guid_text(node->system_guid, texts->system);
    if (port->guid != 0)
        said[FAB_FACT_PORT_GUID] = join_guid_text(port->guid, texts->guid);
    said[FAB_FACT_PORT] = number_text(port->num, texts->num);
    if (name[0] != '\0' && strlen(name) <= NAME_BYTES)
        said[FAB_FACT_NAME] = name;
    if (!silent) {
        said[FAB_FACT_TYPE] = "InfiniBand";
        if (port->state != FAB_PORT_UNKNOWN)
            said[FAB_FACT_STATE] = port->state == FAB_PORT_ACTIVE ? "up" : "down";
        if (mbps != 0)
            said[FAB_FACT_SPEED] = number_text(mbps, texts->speed);
        if (port->lid != 0)
            said[FAB_FACT_LID] = number_text(port->lid, texts->lid);
    }
    for (unsigned kind = 1; kind < FAB_FACTS && rc == PMIXFAB_OK; kind++)
        if (said[kind] != NULL)
            rc = join_heap_add(
                &m->heap, &(struct join_fact){.text = said[kind], .source = FAB_FROM_SUBNET, .kind = kind});
    return rc;
}

/*
 * Return whether the item describes a software way to use a device. Such an item has no information about the
 * device: TCP runs on any card.
 */
static bool is_soft_use(const struct fab_report *report, uint32_t item)
{
    unsigned source = report->items[item].source;
    return (source == FAB_FROM_LIBFABRIC || source == FAB_FROM_UCX) &&
           fab_report_text(report, item, FAB_FACT_SOFTWARE) != NULL;
}

static bool is_way(unsigned kind)
{
    return kind == FAB_FACT_PROVIDER || kind == FAB_FACT_PROTOCOL || kind == FAB_FACT_TRANSPORT;
}

static int add_reported(struct making *m, const struct join_dev *dev)
{
    const struct join_group *group = &m->j->groups.groups[dev->group];
    const struct fab_report *report = m->j->reports[dev->report];
    int rc = PMIXFAB_OK;
    for (uint32_t l = 0; l < group->n; l++) {
        const struct join_link *link = &m->j->groups.links[group->first + l];
        const struct fab_report_item *item = &report->items[link->item];
        bool soft = is_soft_use(report, link->item);
        for (uint32_t f = item->first; f < item->first + item->n && rc == PMIXFAB_OK; f++) {
            const struct fab_report_fact *fact = &report->facts[f];
            const struct join_fact said = {.text = report->pool + fact->text,
                                           .source = item->source,
                                           .kind = fact->kind,
                                           .estimate = fact->estimate,
                                           .software = soft && is_way(fact->kind)};
            if ((!link->shared || !join_per_port((enum fab_fact)fact->kind)) &&
                !(soft && fact->kind == FAB_FACT_SOFTWARE))
                rc = join_heap_add(&m->heap, &said);
        }
    }
    return rc;
}

/* Make room for n more facts. */
static int join_facts_reserve(struct making *m, uint32_t n)
{
    return FAB_ARRAY_ROOM(&m->facts, &m->cap_facts, m->n_facts + (uint64_t)n) ? PMIXFAB_OK
                                                                              : PMIXFAB_ERR_NOMEM;
}

/* Append the chosen facts. */
static int append_facts(struct making *m)
{
    if (join_facts_reserve(m, m->heap.n_said) != PMIXFAB_OK)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t i = 0; i < m->heap.n_said; i++) {
        const struct join_said *said = &m->heap.said[i];
        uint32_t *text = &m->last[said->fact.kind];
        if (*text == 0 || strcmp(m->texts->text + *text, said->fact.text) != 0)
            *text = fab_strings_add(m->texts, said->fact.text);
        m->facts[m->n_facts++] = (struct fab_detail){*text, said->sources, said->fact.kind, said->flags};
    }
    return m->texts->error;
}

static uint8_t who_saw(const struct join *j, uint32_t swept, const struct join_dev *dev)
{
    bool by_subnet = swept != FAB_NONE && (dev == NULL || !dev->silent);
    bool by_node = dev != NULL || swept == FAB_NONE;
    bool missing = by_subnet && fab_port_is_missing(j->swept, &j->swept->ports[swept]);
    return (uint8_t)((by_subnet ? FAB_SEEN_SUBNET : 0u) | (by_node ? FAB_SEEN_NODE : 0u) |
                     (missing ? FAB_SEEN_MISSING : 0u));
}

/* Mark the values that devices of other hosts, or other devices of its host, report, too. */
static void mark_disputed(struct join_heap *heap, const struct join_dev *dev)
{
    for (uint32_t i = 0; i < heap->n_said; i++) {
        struct join_said *said = &heap->said[i];
        unsigned bit = said->fact.kind == FAB_FACT_NODE_GUID   ? JOIN_NODE_GUID
                       : said->fact.kind == FAB_FACT_PORT_GUID ? JOIN_PORT_GUID
                       : said->fact.kind == FAB_FACT_MAC       ? JOIN_MAC
                                                               : 0;
        if ((said->flags & FAB_DETAIL_CHOSEN) == 0 || (dev->disputed & bit) == 0)
            continue;
        said->flags |= FAB_DETAIL_CONFLICT;
        if ((dev->yielded & bit) != 0)
            said->flags |= FAB_DETAIL_OUTRANKED;
    }
}

/* Make the facts of a port, which is the sweep's port `swept` (FAB_NONE: none) and a report's device. */
static int make_port(struct making *m, uint32_t swept, const struct join_dev *dev)
{
    const struct fab_inventory *inv = m->j->swept;
    struct swept_texts texts;
    int rc = PMIXFAB_OK;
    if (swept != FAB_NONE) {
        const struct fab_node *node = &inv->nodes[inv->ports[swept].node];
        if (node->kind == FAB_HCA)
            rc = add_swept(m, &inv->ports[swept], node, dev != NULL && dev->silent, &texts);
    }
    if (rc == PMIXFAB_OK && dev != NULL)
        rc = add_reported(m, dev);
    if (rc == PMIXFAB_OK)
        rc = join_choose(&m->heap);
    if (rc == PMIXFAB_OK && dev != NULL && dev->disputed != 0)
        mark_disputed(&m->heap, dev);
    return rc == PMIXFAB_OK ? append_facts(m) : rc;
}

/* Find the sweep's port for each port of the joined inventory: both are by node GUID and number. */
static void pair_ports(const struct join *j, uint32_t *swept)
{
    const struct fab_inventory *inv = &j->out->inv, *old = j->swept;
    uint32_t at = 0;
    for (uint32_t p = 0; p < inv->n_ports; p++) {
        uint64_t guid = inv->nodes[inv->ports[p].node].guid;
        unsigned num = inv->ports[p].num;
        swept[p] = FAB_NONE;
        if (at < old->n_ports && old->nodes[old->ports[at].node].guid == guid && old->ports[at].num == num)
            swept[p] = at++;
    }
}

/* ---- taking over facts ------------------------------------------------------------------------------ */

/* Return the sweep's name for a node if it is a fact, else "". */
static const char *swept_name(const struct join *j, uint32_t swept)
{
    const struct fab_inventory *inv = j->swept;
    const char *name = fab_str(inv, inv->nodes[inv->ports[swept].node].name);
    return strlen(name) <= NAME_BYTES ? name : "";
}

/* Find the source of the facts of port p, without the sweep's name. */
static void find_source(const struct join *j, uint32_t p, uint32_t swept, uint32_t dev,
                        struct join_source *out)
{
    const struct fab_inventory *inv = &j->out->inv;
    *out = (struct join_source){
        .node_guid = inv->nodes[inv->ports[p].node].guid, .num = inv->ports[p].num, .dev = dev};
    if (dev != FAB_NONE) {
        out->disputed = j->devs[dev].disputed;
        out->yielded = j->devs[dev].yielded;
    }
    if (swept == FAB_NONE || j->swept->nodes[j->swept->ports[swept].node].kind != FAB_HCA)
        return;
    const struct fab_port *port = &j->swept->ports[swept];
    out->swept = true;
    out->silent = dev != FAB_NONE && j->devs[dev].silent;
    out->system_guid = j->swept->nodes[port->node].system_guid;
    out->port_guid = port->guid;
    if (out->silent)
        return;
    out->mbps = fab_rate_mbps(port->width, (enum fab_speed)port->speed);
    out->lid = port->lid;
    out->state = port->state;
}

static bool same_source(const struct join *j, const struct join_source *now, const struct join_source *old,
                        uint32_t swept)
{
    uint32_t before = now->dev == FAB_NONE ? FAB_NONE : j->devs[now->dev].before;
    return (now->dev == FAB_NONE || before != FAB_NONE) && old->dev == before &&
           memcmp(now, old, offsetof(struct join_source, dev)) == 0 && /* there is no padding before dev */
           (!now->swept || strcmp(j->cache->texts.text + old->name, swept_name(j, swept)) == 0);
}

/*
 * Return the port of the cache whose facts port p can take over, or FAB_NONE. *at: start of the next search.
 */
static uint32_t find_before(const struct join *j, const struct join_source *now, uint32_t swept, uint32_t *at)
{
    const struct fab_join_cache *cache = j->cache;
    for (; *at < cache->n_ports; ++*at) {
        const struct join_source *old = &cache->sources[*at];
        if (old->node_guid == now->node_guid && old->num == now->num)
            return same_source(j, now, old, swept) ? *at : FAB_NONE;
        if (old->node_guid > now->node_guid || (old->node_guid == now->node_guid && old->num > now->num))
            break;
    }
    return FAB_NONE;
}

static int take_facts(struct making *m, uint32_t before)
{
    const struct fab_join_cache *cache = m->j->cache;
    uint32_t n = cache->first[before + 1] - cache->first[before];
    int rc = join_facts_reserve(m, n);
    if (rc == PMIXFAB_OK && n > 0)
        memcpy(m->facts + m->n_facts, cache->facts + cache->first[before], n * sizeof(*m->facts));
    m->n_facts += rc == PMIXFAB_OK ? n : 0;
    return rc;
}

/* Return the offset of the sweep's name in the pool once the facts of a port are there; 0: none. */
static uint32_t name_in_pool(const struct fab_detail *facts, uint32_t n)
{
    for (uint32_t f = 0; f < n && facts[f].kind <= FAB_FACT_NAME; f++)
        if ((facts[f].sources & 1u << FAB_FROM_SUBNET) != 0)
            return facts[f].text;
    return 0;
}

/* ---- all ports ------------------------------------------------------------------------------------- */

static int make_details(struct making *m, const uint32_t *swept, const uint32_t *dev_of)
{
    struct join *j = m->j;
    struct fab_details *details = &j->out->details;
    uint32_t at = 0;
    int rc = m->texts->text == NULL ? fab_strings_init(m->texts) : PMIXFAB_OK;
    if (rc == PMIXFAB_OK && j->cache != NULL && j->cache->n_ports > 0)
        rc = join_facts_reserve(m, j->cache->first[j->cache->n_ports]);
    for (uint32_t p = 0; p < details->n_ports && rc == PMIXFAB_OK; p++) {
        uint32_t before = FAB_NONE, first = m->n_facts;
        details->first[p] = first;
        if (j->cache != NULL) {
            find_source(j, p, swept[p], dev_of[p], &j->sources[p]);
            before = j->from[p] = find_before(j, &j->sources[p], swept[p], &at);
        }
        const struct join_dev *dev = dev_of[p] == FAB_NONE ? NULL : &j->devs[dev_of[p]];
        details->seen[p] = who_saw(j, swept[p], dev);
        rc = before == FAB_NONE ? make_port(m, swept[p], dev) : take_facts(m, before);
        if (j->cache != NULL)
            j->sources[p].name = name_in_pool(m->facts + first, m->n_facts - first);
    }
    details->first[details->n_ports] = m->n_facts;
    details->facts = m->facts;
    return rc;
}

/* Hand out the pool: a copy of the cache's, or this join's own. */
static int hand_out_texts(struct join *j, struct fab_strings *texts)
{
    struct fab_details *details = &j->out->details;
    details->pool_size = texts->size;
    if (j->cache == NULL) {
        details->pool = texts->text;
        texts->text = NULL;
        return PMIXFAB_OK;
    }
    details->pool = malloc((size_t)texts->size + 1);
    if (details->pool == NULL)
        return PMIXFAB_ERR_NOMEM;
    memcpy(details->pool, texts->text, texts->size);
    return PMIXFAB_OK;
}

static int join_facts_alloc(struct join *j)
{
    struct fab_details *details = &j->out->details;
    const uint32_t n = details->n_ports = j->out->inv.n_ports;
    details->first = calloc(n + 1u, sizeof(*details->first));
    details->places = calloc(n + 1u, sizeof(*details->places));
    details->seen = calloc(n + 1u, sizeof(*details->seen));
    j->from = join_alloc(j, n, sizeof(*j->from));
    j->sources = calloc(j->cache == NULL ? 1 : n + 1u, sizeof(*j->sources));
    return details->first == NULL || details->places == NULL || details->seen == NULL || j->no_memory ||
                   j->sources == NULL
               ? PMIXFAB_ERR_NOMEM
               : PMIXFAB_OK;
}

int join_details(struct join *j)
{
    const uint32_t n = j->out->inv.n_ports;
    struct fab_strings own = {0};
    struct making m = {.j = j, .texts = j->cache == NULL ? &own : &j->cache->texts};
    uint32_t *swept = join_temp(j, n, sizeof(*swept)), *dev_of = join_temp(j, n, sizeof(*dev_of));
    int rc = join_facts_alloc(j);
    if (rc != PMIXFAB_OK)
        goto cleanup;
    pair_ports(j, swept);
    for (uint32_t p = 0; p < n; p++)
        dev_of[p] = j->from[p] = FAB_NONE;
    for (uint32_t d = 0; d < j->n_devs; d++)
        if (j->devs[d].port != FAB_NONE)
            dev_of[j->devs[d].port] = d;
    rc = make_details(&m, swept, dev_of) ?: hand_out_texts(j, m.texts) ?: join_places(j);
cleanup:
    join_heap_free(&m.heap);
    fab_strings_destroy(&own);
    return rc;
}
