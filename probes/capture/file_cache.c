/*
 * file_cache.c - libibnetdisc's cache of a fabric (ibnetdiscover --cache).
 *
 * Little-endian, no padding, version 1: a head, the nodes, the ports. A node lists the keys (port GUID,
 * number) of its ports; a port names its node and the key of the port at the other end. There is no checksum,
 * but many values are stored twice, and all of them must agree.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/capture/capture_file.h"
#include "probes/fabric/observed.h"

#define CACHE_MAGIC   0x8fe7832bu
#define CACHE_VERSION 1u
#define HEAD_SIZE     28u
#define NODE_SIZE     (15u + 3 * ATTRIBUTE_SIZE) /* followed by its keys */
#define KEY_SIZE      9u
#define PORT_SIZE     (31u + ATTRIBUTE_SIZE)

struct key {
    uint64_t guid;
    uint8_t num;
};

/* A port's record. */
struct record {
    struct key key, peer;
    uint64_t node_guid;
    const uint8_t *info;
    size_t place;  /* in the file */
    uint32_t seen; /* its index in the observations; FAB_NONE: not claimed by a node */
    uint16_t lid;
    uint8_t lmc;
    bool has_peer;
};

struct cache {
    const char *file;
    const uint8_t *bytes;
    size_t len, at;
    struct fab_err *err;
    uint32_t n_nodes, n_ports;
    uint64_t from_guid;
    size_t nodes_at;
    struct record *records; /* sorted by key */
    struct observed seen;
    struct record **of_port; /* the record of each observed port */
};

static uint64_t cache_le(const uint8_t *p, unsigned bytes)
{
    uint64_t v = 0;
    for (unsigned i = bytes; i > 0; i--)
        v = v << 8 | p[i - 1];
    return v;
}

__attribute__((format(printf, 4, 5))) static int damaged_at(const struct cache *c, size_t place, int code,
                                                            const char *fmt, ...)
{
    char text[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return fab_fail(c->err, code, "%s:byte %zu: %s; record the cache again", c->file, place, text);
}

/* Return the next `size` bytes, or NULL. */
static const uint8_t *cache_next(struct cache *c, size_t size)
{
    if (c->len - c->at < size)
        return NULL;
    const uint8_t *p = c->bytes + c->at;
    c->at += size;
    return p;
}

static int cache_truncated(const struct cache *c)
{
    return damaged_at(c, c->len, PMIXFAB_ERR_TRUNCATED,
                      "the cache ends too early: its head promises %" PRIu32 " nodes and %" PRIu32 " ports",
                      c->n_nodes, c->n_ports);
}

bool cache_is(const void *bytes, size_t len)
{
    return len >= 4 && cache_le(bytes, 4) == CACHE_MAGIC;
}

static int cache_read_head(struct cache *c)
{
    const uint8_t *p = cache_next(c, HEAD_SIZE);
    if (p == NULL)
        return damaged_at(c, c->len, PMIXFAB_ERR_TRUNCATED, "the cache ends inside its head");
    if (cache_le(p, 4) != CACHE_MAGIC)
        return damaged_at(c, 0, PMIXFAB_ERR_FOREIGN, "this is not a libibnetdisc cache");
    uint32_t version = (uint32_t)cache_le(p + 4, 4);
    if (version != CACHE_VERSION)
        return damaged_at(c, 4, version < CACHE_VERSION ? PMIXFAB_ERR_OLDER : PMIXFAB_ERR_NEWER,
                          "version %" PRIu32 " of libibnetdisc's cache; only %u is supported", version,
                          CACHE_VERSION);
    c->n_nodes = (uint32_t)cache_le(p + 8, 4);
    c->n_ports = (uint32_t)cache_le(p + 12, 4);
    c->from_guid = cache_le(p + 16, 8);
    if (c->n_nodes == 0)
        return damaged_at(c, 8, PMIXFAB_ERR_CORRUPT, "a cache without a node: it was not written completely");
    if ((uint64_t)c->n_nodes * NODE_SIZE + (uint64_t)c->n_ports * PORT_SIZE > c->len - c->at)
        return cache_truncated(c);
    c->nodes_at = c->at;
    return PMIXFAB_OK;
}

/* ---- nodes ---- */

/* The fields of a node's record that NodeInfo also has must be equal. */
static int check_node(const struct cache *c, size_t place, const uint8_t *p, unsigned n_keys)
{
    struct node_info info;
    uint64_t guid = cache_le(p + 68, 8);
    node_info_decode(p + 78, &info);
    if (guid == 0 || info.node_guid != guid)
        return damaged_at(c, place, PMIXFAB_ERR_CORRUPT,
                          "node 0x%016" PRIx64 " has the GUID 0x%016" PRIx64 " in its NodeInfo", guid,
                          info.node_guid);
    if (info.type != p[76] || info.type < NODE_TYPE_CA || info.type > NODE_TYPE_ROUTER)
        return damaged_at(c, place, PMIXFAB_ERR_CORRUPT,
                          "node 0x%016" PRIx64 " has type %u, and %u in its NodeInfo", guid, p[76],
                          info.type);
    if (info.num_ports != p[77] || info.num_ports < 1 || info.num_ports > 254)
        return damaged_at(c, place, PMIXFAB_ERR_CORRUPT,
                          "node 0x%016" PRIx64 " has %u ports, and %u in its NodeInfo; 1 to 254 are possible",
                          guid, p[77], info.num_ports);
    if (n_keys > info.num_ports + 1u)
        return damaged_at(c, place, PMIXFAB_ERR_CORRUPT, "node 0x%016" PRIx64 " has %u ports and lists %u",
                          guid, info.num_ports, n_keys);
    return PMIXFAB_OK;
}

static int read_nodes(struct cache *c)
{
    c->seen.nodes = calloc((size_t)c->n_nodes + 1, sizeof(*c->seen.nodes));
    if (c->seen.nodes == NULL)
        return fab_fail(c->err, PMIXFAB_ERR_NOMEM, "%s: out of memory for %" PRIu32 " nodes", c->file,
                        c->n_nodes);
    for (uint32_t i = 0; i < c->n_nodes; i++) {
        size_t place = c->at;
        const uint8_t *p = cache_next(c, NODE_SIZE);
        unsigned n_keys = p != NULL ? p[NODE_SIZE - 1] : 0;
        if (p == NULL || cache_next(c, (size_t)n_keys * KEY_SIZE) == NULL)
            return cache_truncated(c);
        int rc = check_node(c, place, p, n_keys);
        if (rc != PMIXFAB_OK)
            return rc;
        c->seen.nodes[i] = (struct observed_node){
            .info = p + 78,
            .desc = (const char *)p + 142,
            .lid = (uint16_t)cache_le(p, 2),
            .lmc = p[2],
            .enhanced = p[3],
        };
    }
    c->seen.n_nodes = c->n_nodes;
    return PMIXFAB_OK;
}

/* ---- ports ---- */

static int cache_compare_key(const struct key *x, const struct key *y)
{
    if (x->guid != y->guid)
        return x->guid < y->guid ? -1 : 1;
    return (int)x->num - (int)y->num;
}

static int by_key(const void *a, const void *b)
{
    const struct record *x = a, *y = b;
    return cache_compare_key(&x->key, &y->key);
}

static struct record *cache_find(const struct cache *c, struct key key)
{
    struct record wanted = {.key = key};
    return bsearch(&wanted, c->records, c->n_ports, sizeof(*c->records), by_key);
}

static int cache_read_ports(struct cache *c)
{
    c->records = calloc((size_t)c->n_ports + 1, sizeof(*c->records));
    if (c->records == NULL)
        return fab_fail(c->err, PMIXFAB_ERR_NOMEM, "%s: out of memory for %" PRIu32 " ports", c->file,
                        c->n_ports);
    for (uint32_t i = 0; i < c->n_ports; i++) {
        size_t place = c->at;
        const uint8_t *p = cache_next(c, PORT_SIZE);
        if (p == NULL)
            return cache_truncated(c);
        if (p[85] > 1)
            return damaged_at(c, place + 85, PMIXFAB_ERR_CORRUPT, "a flag that is neither 0 nor 1");
        c->records[i] = (struct record){
            .key = {cache_le(p, 8), p[8]},
            .lid = (uint16_t)cache_le(p + 10, 2),
            .lmc = p[12],
            .info = p + 13,
            .node_guid = cache_le(p + 77, 8),
            .has_peer = p[85] != 0,
            .peer = {cache_le(p + 86, 8), p[94]},
            .place = place,
            .seen = FAB_NONE,
        };
    }
    if (c->at != c->len)
        return damaged_at(c, c->at, PMIXFAB_ERR_CORRUPT, "%zu bytes more than its head promises",
                          c->len - c->at);
    qsort(c->records, c->n_ports, sizeof(*c->records), by_key);
    for (uint32_t i = 1; i < c->n_ports; i++)
        if (by_key(&c->records[i - 1], &c->records[i]) == 0)
            return damaged_at(c, c->records[i].place, PMIXFAB_ERR_CONFLICT,
                              "a second port %u with GUID 0x%016" PRIx64, c->records[i].key.num,
                              c->records[i].key.guid);
    return PMIXFAB_OK;
}

/*
 * Check an HCA's port. LID and LMC are in the record and in the PortInfo of the port. The ports of a switch
 * have those of port 0.
 */
static int cache_check_port(const struct cache *c, const struct record *r, const struct node_info *node,
                            const struct observed_node *owner)
{
    struct port_info info;
    port_info_decode(r->info, r->info, false, &info);
    bool is_switch = node->type == NODE_TYPE_SWITCH;
    uint16_t lid = is_switch ? owner->lid : info.lid;
    uint8_t lmc = is_switch ? owner->lmc : info.lmc;
    if (r->node_guid != node->node_guid)
        return damaged_at(c, r->place, PMIXFAB_ERR_CORRUPT,
                          "a port of node 0x%016" PRIx64 " that names 0x%016" PRIx64 " as its node",
                          node->node_guid, r->node_guid);
    if (r->key.num > node->num_ports || (r->key.num == 0 && !is_switch))
        return damaged_at(c, r->place, PMIXFAB_ERR_RANGE,
                          "port %u of node 0x%016" PRIx64 ", which has 1 to %u", r->key.num, node->node_guid,
                          node->num_ports);
    if (r->lid != lid || r->lmc != lmc)
        return damaged_at(c, r->place, PMIXFAB_ERR_CORRUPT,
                          "port %u of node 0x%016" PRIx64
                          " has LID %u and LMC %u, and %u and %u in its PortInfo",
                          r->key.num, node->node_guid, r->lid, r->lmc, lid, lmc);
    return PMIXFAB_OK;
}

/* Claim the ports that a node lists. Those without a record (they never answered) are not observed. */
static int claim_ports(struct cache *c, uint32_t index, const uint8_t *keys, unsigned n_keys)
{
    struct observed_node *owner = &c->seen.nodes[index];
    const uint8_t *port0 = NULL;
    struct node_info node;
    node_info_decode(owner->info, &node);
    owner->first_port = c->seen.n_ports;
    for (unsigned i = 0; i < n_keys; i++) {
        struct key key = {cache_le(keys + (size_t)i * KEY_SIZE, 8), keys[(size_t)i * KEY_SIZE + 8]};
        struct record *r = cache_find(c, key);
        if (r == NULL)
            continue;
        int rc = cache_check_port(c, r, &node, owner);
        if (rc != PMIXFAB_OK)
            return rc;
        if (r->seen != FAB_NONE)
            return damaged_at(c, r->place, PMIXFAB_ERR_CONFLICT,
                              "port %u of node 0x%016" PRIx64 " is listed twice", r->key.num, r->node_guid);
        r->seen = c->seen.n_ports;
        if (key.num == 0) {
            port0 = r->info;
            r->seen = FAB_NONE - 1; /* claimed, but not one of the ports that can be cabled */
            continue;
        }
        c->of_port[c->seen.n_ports] = r;
        c->seen.ports[c->seen.n_ports++] = (struct observed_port){
            .info = r->info, .guid = key.guid, .node = index, .num = key.num, .peer = FAB_NONE};
    }
    owner->n_ports = c->seen.n_ports - owner->first_port;
    for (uint32_t i = owner->first_port; i < c->seen.n_ports; i++)
        c->seen.ports[i].capabilities = node.type == NODE_TYPE_SWITCH ? port0 : c->seen.ports[i].info;
    return PMIXFAB_OK;
}

static int assign_ports(struct cache *c)
{
    c->seen.ports = calloc((size_t)c->n_ports + 1, sizeof(*c->seen.ports));
    c->of_port = calloc((size_t)c->n_ports + 1, sizeof(struct record *));
    if (c->seen.ports == NULL || c->of_port == NULL)
        return fab_fail(c->err, PMIXFAB_ERR_NOMEM, "%s: out of memory for %" PRIu32 " ports", c->file,
                        c->n_ports);
    const uint8_t *p = c->bytes + c->nodes_at;
    for (uint32_t i = 0; i < c->n_nodes; i++) {
        unsigned n_keys = p[NODE_SIZE - 1];
        int rc = claim_ports(c, i, p + NODE_SIZE, n_keys);
        if (rc != PMIXFAB_OK)
            return rc;
        p += NODE_SIZE + (size_t)n_keys * KEY_SIZE;
    }
    for (uint32_t i = 0; i < c->n_ports; i++)
        if (c->records[i].seen == FAB_NONE)
            return damaged_at(c, c->records[i].place, PMIXFAB_ERR_CORRUPT,
                              "port %u of node 0x%016" PRIx64 " is not listed by its node",
                              c->records[i].key.num, c->records[i].node_guid);
    return PMIXFAB_OK;
}

/* Both ends of a cable must agree. A cable to a port without a record leads nowhere. */
static int join_ports(struct cache *c)
{
    for (uint32_t i = 0; i < c->seen.n_ports; i++) {
        const struct record *r = c->of_port[i];
        const struct record *far = r->has_peer ? cache_find(c, r->peer) : NULL;
        if (far == NULL)
            continue;
        if (far->seen >= c->seen.n_ports || !far->has_peer || cache_compare_key(&far->peer, &r->key) != 0)
            return damaged_at(c, r->place, PMIXFAB_ERR_CONFLICT,
                              "port %u of node 0x%016" PRIx64 " leads to port %u of node 0x%016" PRIx64
                              ", which does not lead back",
                              r->key.num, r->node_guid, far->key.num, far->node_guid);
        c->seen.ports[i].peer = far->seen;
    }
    return PMIXFAB_OK;
}

int cache_parse(const char *file, const void *bytes, size_t len, const struct probe_sink *sink,
                struct fab_inventory *inv, struct fab_err *err)
{
    struct cache c = {.file = file, .bytes = bytes, .len = len, .err = err};
    struct fab_err why = {{0}};
    int rc = cache_read_head(&c)
             ?: read_nodes(&c)
             ?: cache_read_ports(&c)
             ?: assign_ports(&c)
             ?: join_ports(&c);
    if (rc == PMIXFAB_OK) {
        /* the subnet's prefix, as of the node that recorded the cache */
        for (uint32_t i = 0; i < c.n_ports && c.seen.prefix == 0; i++) {
            struct port_info info;
            port_info_decode(c.records[i].info, NULL, false, &info);
            if (c.records[i].node_guid == c.from_guid)
                c.seen.prefix = info.prefix;
        }
        rc = observed_inventory(&c.seen, sink, inv, &why);
        if (rc != PMIXFAB_OK)
            fab_fail(err, rc, "%s: %.300s; record the cache again", file, why.text);
    }
    observed_free(&c.seen);
    free(c.records);
    free(c.of_port);
    return rc;
}
