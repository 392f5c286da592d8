/* join_details.c - facts of every port, from the sweep and from its host. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "topo/join_priv.h"

#define NAME_BYTES 63 /* of a name that is a fact */

/* The pool of texts, each once. */
struct texts {
    char *pool;
    uint32_t size, cap;
    struct slot {
        uint32_t hash, offset; /* offset 0: free */
    } * slots;
    uint32_t n, n_slots;      /* a power of two */
    uint64_t seed;            /* no report knows it, and offsets do not depend on it */
    uint32_t last[FAB_FACTS]; /* the text of this kind that was added last: mostly it comes again */
};

struct making {
    struct join *j;
    struct texts texts;
    struct join_heap heap;
    struct fab_detail *facts;
    uint32_t n_facts, cap_facts;
};

static int grow_slots(struct texts *t)
{
    uint32_t n_slots = t->n_slots == 0 ? 1024 : t->n_slots * 4;
    struct slot *slots = calloc(n_slots, sizeof(*slots));
    if (slots == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t i = 0; i < t->n_slots; i++) {
        uint32_t at = t->slots[i].hash & (n_slots - 1);
        while (t->slots[i].offset != 0 && slots[at].offset != 0)
            at = (at + 1) & (n_slots - 1);
        if (t->slots[i].offset != 0)
            slots[at] = t->slots[i];
    }
    free(t->slots);
    t->slots = slots;
    t->n_slots = n_slots;
    return PMIXFAB_OK;
}

static int append(struct texts *t, const char *text, size_t len, uint32_t *offset)
{
    if (t->size + len + 1 > t->cap) {
        uint64_t cap = t->cap == 0 ? 65536 : (uint64_t)t->cap * 2;
        if (cap > UINT32_MAX / 2)
            return PMIXFAB_ERR_RANGE;
        char *bigger = realloc(t->pool, cap);
        if (bigger == NULL)
            return PMIXFAB_ERR_NOMEM;
        t->pool = bigger;
        t->cap = (uint32_t)cap;
    }
    *offset = t->size;
    memcpy(t->pool + t->size, text, len + 1);
    t->size += (uint32_t)len + 1;
    return PMIXFAB_OK;
}

static int find_text(struct texts *t, const char *text, uint32_t *offset)
{
    size_t len = strlen(text);
    uint32_t hash = (uint32_t)XXH3_64bits_withSeed(text, len, t->seed);
    if (2 * (uint64_t)t->n >= t->n_slots && grow_slots(t) != PMIXFAB_OK)
        return PMIXFAB_ERR_NOMEM;
    uint32_t at = hash & (t->n_slots - 1);
    for (; t->slots[at].offset != 0; at = (at + 1) & (t->n_slots - 1)) {
        *offset = t->slots[at].offset;
        if (t->slots[at].hash == hash && strcmp(t->pool + *offset, text) == 0)
            return PMIXFAB_OK;
    }
    int rc = append(t, text, len, offset);
    if (rc == PMIXFAB_OK) {
        t->slots[at] = (struct slot){hash, *offset};
        t->n++;
    }
    return rc;
}

static int add_text(struct texts *t, unsigned kind, const char *text, uint32_t *offset)
{
    *offset = t->last[kind];
    if (*offset != 0 && strcmp(t->pool + *offset, text) == 0)
        return PMIXFAB_OK;
    int rc = find_text(t, text, offset);
    t->last[kind] = rc == PMIXFAB_OK ? *offset : 0;
    return rc;
}

/* "0x" and 16 digits. */
static const char *guid_text(uint64_t guid, char *buf)
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

/* What the sweep says of a port of its own; of a silent one only what it is. */
struct swept_texts {
    char node[20], system[20], guid[20], num[12], lid[12], speed[12];
};

static int add_swept(struct making *m, const struct fab_port *port, const struct fab_node *node, bool silent,
                     struct swept_texts *texts)
{
    const char *said[FAB_FACTS] = {NULL}, *name = fab_str(m->j->swept, node->name);
    uint32_t mbps = fab_rate_mbps(port->width, (enum fab_speed)port->speed);
    int rc = PMIXFAB_OK;
    said[FAB_FACT_NODE_GUID] = guid_text(node->guid, texts->node);
    if (node->system_guid != 0)
        said[FAB_FACT_SYSTEM_GUID] = guid_text(node->system_guid, texts->system);
    if (port->guid != 0)
        said[FAB_FACT_PORT_GUID] = guid_text(port->guid, texts->guid);
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
            rc = join_heap_add(&m->heap, FAB_FROM_SUBNET, kind, false, said[kind]);
    return rc;
}

/* That a way of using a device is software says nothing of the device: TCP runs on any card. */
static bool is_about_use(const struct fab_report_item *item, const struct fab_report_fact *fact)
{
    return fact->kind == FAB_FACT_SOFTWARE &&
           (item->source == FAB_FROM_LIBFABRIC || item->source == FAB_FROM_UCX);
}

static int add_reported(struct making *m, const struct join_dev *dev)
{
    const struct join_group *group = &m->j->groups.groups[dev->group];
    const struct fab_report *report = m->j->reports[dev->report];
    int rc = PMIXFAB_OK;
    for (uint32_t l = 0; l < group->n; l++) {
        const struct join_link *link = &m->j->groups.links[group->first + l];
        const struct fab_report_item *item = &report->items[link->item];
        for (uint32_t f = item->first; f < item->first + item->n && rc == PMIXFAB_OK; f++) {
            const struct fab_report_fact *fact = &report->facts[f];
            if ((!link->shared || !join_per_port((enum fab_fact)fact->kind)) && !is_about_use(item, fact))
                rc = join_heap_add(&m->heap, item->source, fact->kind, fact->estimate,
                                   report->pool + fact->text);
        }
    }
    return rc;
}

/* What was chosen, behind what is there. */
static int append_facts(struct making *m)
{
    if (m->n_facts + (uint64_t)m->heap.n_said > m->cap_facts) {
        uint64_t cap = m->cap_facts == 0 ? 1024 : (uint64_t)m->cap_facts * 2;
        while (cap < m->n_facts + (uint64_t)m->heap.n_said)
            cap *= 2;
        struct fab_detail *bigger = cap > UINT32_MAX / 2 ? NULL : realloc(m->facts, cap * sizeof(*bigger));
        if (bigger == NULL)
            return PMIXFAB_ERR_NOMEM;
        m->facts = bigger;
        m->cap_facts = (uint32_t)cap;
    }
    for (uint32_t i = 0; i < m->heap.n_said; i++) {
        const struct join_said *said = &m->heap.said[i];
        struct fab_detail *detail = &m->facts[m->n_facts];
        *detail = (struct fab_detail){0, said->sources, said->fact.kind, said->flags};
        int rc = add_text(&m->texts, said->fact.kind, said->fact.text, &detail->text);
        if (rc != PMIXFAB_OK)
            return rc;
        m->n_facts++;
    }
    return PMIXFAB_OK;
}

/* Facts of port p, which is the sweep's port `swept` (FAB_NONE: none of its) and a report's device. */
static int make_port(struct making *m, uint32_t p, uint32_t swept, const struct join_dev *dev)
{
    const struct fab_inventory *inv = m->j->swept;
    struct fab_details *details = &m->j->out->details;
    bool silent = dev != NULL && dev->silent, is_switch = true;
    struct swept_texts texts;
    int rc = PMIXFAB_OK;
    if (swept != FAB_NONE) {
        const struct fab_node *node = &inv->nodes[inv->ports[swept].node];
        is_switch = node->kind != FAB_HCA;
        if (!is_switch)
            rc = add_swept(m, &inv->ports[swept], node, silent, &texts);
    }
    if (rc == PMIXFAB_OK && dev != NULL)
        rc = add_reported(m, dev);
    details->seen[p] = (uint8_t)((swept != FAB_NONE && !silent ? FAB_SEEN_SUBNET : 0u) |
                                 (dev != NULL || swept == FAB_NONE ? FAB_SEEN_NODE : 0u));
    if (details->seen[p] & FAB_SEEN_SUBNET && inv->nodes[inv->ports[swept].node].missing)
        details->seen[p] |= FAB_SEEN_MISSING;
    if (rc == PMIXFAB_OK)
        rc = join_choose(&m->heap);
    return rc == PMIXFAB_OK ? append_facts(m) : rc;
}

/* The sweep's port for each port of the joined inventory: both are by node GUID and number. */
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

static int make_details(struct making *m, const uint32_t *swept, const uint32_t *dev_of)
{
    struct join *j = m->j;
    struct fab_details *details = &j->out->details;
    uint32_t none;
    int rc = grow_slots(&m->texts);
    if (rc == PMIXFAB_OK)
        rc = append(&m->texts, "", 0, &none);
    for (uint32_t p = 0; p < details->n_ports && rc == PMIXFAB_OK; p++) {
        details->first[p] = m->n_facts;
        rc = make_port(m, p, swept[p], dev_of[p] == FAB_NONE ? NULL : &j->devs[dev_of[p]]);
    }
    details->first[details->n_ports] = m->n_facts;
    details->facts = m->facts;
    details->pool = m->texts.pool;
    details->pool_size = m->texts.size;
    return rc;
}

int join_details(struct join *j)
{
    const uint32_t n = j->out->inv.n_ports;
    struct fab_details *details = &j->out->details;
    struct making m = {.j = j};
    uint32_t *swept = join_alloc(n, sizeof(*swept)), *dev_of = join_alloc(n, sizeof(*dev_of));
    int rc = swept == NULL || dev_of == NULL ? PMIXFAB_ERR_NOMEM : PMIXFAB_OK;
    details->n_ports = n;
    details->first = join_alloc(n, sizeof(*details->first));
    details->places = join_alloc(n, sizeof(*details->places));
    details->seen = join_alloc(n, sizeof(*details->seen));
    if (details->first == NULL || details->places == NULL || details->seen == NULL)
        rc = PMIXFAB_ERR_NOMEM;
    if (rc == PMIXFAB_OK) {
        m.texts.seed = (uint64_t)(uintptr_t)swept * UINT64_C(0x9e3779b97f4a7c15);
        pair_ports(j, swept);
        for (uint32_t p = 0; p < n; p++)
            dev_of[p] = FAB_NONE;
        for (uint32_t d = 0; d < j->n_devs; d++)
            if (j->devs[d].port != FAB_NONE)
                dev_of[j->devs[d].port] = d;
        rc = make_details(&m, swept, dev_of);
    }
    join_heap_free(&m.heap);
    free(m.texts.slots);
    free(swept);
    free(dev_of);
    return rc == PMIXFAB_OK ? join_places(j) : rc;
}
