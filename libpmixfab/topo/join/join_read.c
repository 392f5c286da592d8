/* join_read.c - the devices of all reports, with what each says of itself. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "topo/join/join_state.h"

static void *join_block(struct join *j, struct join_block **list, size_t n, size_t size)
{
    struct join_block *block = calloc(1, sizeof(*block) + (n + 1) * size);
    if (block == NULL) {
        j->no_memory = true;
        return NULL;
    }
    block->next = *list;
    *list = block;
    return block->memory;
}

void *join_alloc(struct join *j, size_t n, size_t size)
{
    return join_block(j, &j->kept, n, size);
}

void *join_temp(struct join *j, size_t n, size_t size)
{
    return join_block(j, &j->temporary, n, size);
}

void join_free_blocks(struct join_block **list)
{
    while (*list != NULL) {
        struct join_block *block = *list;
        *list = block->next;
        free(block);
    }
}

uint64_t join_made_up(const char *kind, const char *a, const char *b, uint64_t number)
{
    uint64_t hash = XXH3_64bits_withSeed(kind, strlen(kind), number);
    if (a != NULL)
        hash = XXH3_64bits_withSeed(a, strlen(a), hash);
    if (b != NULL)
        hash = XXH3_64bits_withSeed(b, strlen(b), hash + 1);
    return FAB_ETHERNET_GUID | hash >> 16;
}

/* Kinds that decide where a device belongs. */
static const bool is_wanted[FAB_FACTS] = {
    [FAB_FACT_NAME] = true,        [FAB_FACT_PORT] = true,        [FAB_FACT_INTERFACE] = true,
    [FAB_FACT_NODE_GUID] = true,   [FAB_FACT_SYSTEM_GUID] = true, [FAB_FACT_PORT_GUID] = true,
    [FAB_FACT_MAC] = true,         [FAB_FACT_TYPE] = true,        [FAB_FACT_STATE] = true,
    [FAB_FACT_SPEED] = true,       [FAB_FACT_LID] = true,         [FAB_FACT_SWITCH_ID] = true,
    [FAB_FACT_SWITCH_NAME] = true, [FAB_FACT_SWITCH_PORT] = true, [FAB_FACT_PCI] = true,
};

static uint64_t join_parse_guid(const char *text)
{
    return text == NULL ? 0 : strtoull(text, NULL, 16);
}

static uint64_t join_parse_number(const char *text, uint64_t most)
{
    uint64_t n = text == NULL ? 0 : strtoull(text, NULL, 10);
    return n > most ? 0 : n;
}

uint64_t join_mac_value(const char *text)
{
    uint64_t mac = 0;
    if (text == NULL || strlen(text) != 17)
        return 0;
    for (unsigned i = 0; i < 17; i++) {
        const char *digit = text[i] == '\0' ? NULL : strchr("0123456789abcdef", text[i]);
        if (i % 3 == 2 ? text[i] != ':' : digit == NULL)
            return 0;
        if (i % 3 != 2)
            mac = mac << 4 | (uint64_t)(digit - "0123456789abcdef");
    }
    return mac;
}

static uint8_t join_parse_state(const char *text)
{
    if (text == NULL || (strcmp(text, "up") != 0 && strcmp(text, "down") != 0))
        return FAB_PORT_UNKNOWN;
    return text[0] == 'u' ? FAB_PORT_ACTIVE : FAB_PORT_DOWN;
}

/* Of each wanted kind the fact that is believed, without the sweep's, and which of the report's it is. */
static void join_choose_facts(const struct join *j, const struct join_group *group, struct join_fact *best,
                              uint32_t *which)
{
    const struct fab_report *report = j->reports[group->report];
    memset(best, 0, FAB_FACTS * sizeof(*best));
    memset(which, 0xff, FAB_FACTS * sizeof(*which));
    for (uint32_t l = 0; l < group->n; l++) {
        const struct join_link *link = &j->groups.links[group->first + l];
        const struct fab_report_item *item = &report->items[link->item];
        for (uint32_t f = item->first; f < item->first + item->n; f++) {
            const struct fab_report_fact *fact = &report->facts[f];
            if (!is_wanted[fact->kind] || (link->shared && join_per_port(fact->kind)))
                continue;
            const struct join_fact said = {.text = report->pool + fact->text,
                                           .source = item->source,
                                           .kind = fact->kind,
                                           .estimate = fact->estimate};
            if (!join_better(&said, &best[fact->kind]))
                continue;
            best[fact->kind] = said;
            which[fact->kind] = f;
        }
    }
}

static void read_words(const struct join *j, const struct join_group *group, struct join_words *out)
{
    struct join_fact best[FAB_FACTS];
    uint32_t which[FAB_FACTS];
    join_choose_facts(j, group, best, which);
    const char *type = best[FAB_FACT_TYPE].text;
    *out = (struct join_words){
        .port_guid = join_parse_guid(best[FAB_FACT_PORT_GUID].text),
        .node_guid = join_parse_guid(best[FAB_FACT_NODE_GUID].text),
        .system_guid = join_parse_guid(best[FAB_FACT_SYSTEM_GUID].text),
        .mac = join_mac_value(best[FAB_FACT_MAC].text),
        .mbps = join_parse_number(best[FAB_FACT_SPEED].text, UINT64_MAX),
        .text = {[JOIN_NAME] = which[FAB_FACT_NAME],
                 [JOIN_INTERFACE] = which[FAB_FACT_INTERFACE],
                 [JOIN_PCI] = which[FAB_FACT_PCI],
                 [JOIN_SWITCH_ID] = which[FAB_FACT_SWITCH_ID],
                 [JOIN_SWITCH_NAME] = which[FAB_FACT_SWITCH_NAME],
                 [JOIN_SWITCH_PORT] = which[FAB_FACT_SWITCH_PORT]},
        .lid = (uint16_t)join_parse_number(best[FAB_FACT_LID].text, UINT16_MAX),
        .num = (uint8_t)join_parse_number(best[FAB_FACT_PORT].text, 254),
        .state = join_parse_state(best[FAB_FACT_STATE].text),
        .infiniband = type != NULL && strcmp(type, "InfiniBand") == 0,
    };
}

static const char *join_fact_text(const struct fab_report *report, const struct join_words *words,
                                  unsigned which)
{
    uint32_t fact = words->text[which];
    return fact == FAB_NONE ? NULL : report->pool + report->facts[fact].text;
}

static void make_device(struct join *j, uint32_t g, uint32_t before)
{
    const struct join_group *group = &j->groups.groups[g];
    const struct fab_report *report = j->reports[group->report];
    const struct join_words *words = &j->words[g];
    j->devs[g] = (struct join_dev){
        .port_guid = words->port_guid,
        .node_guid = words->node_guid,
        .system_guid = words->system_guid,
        .mac = words->mac,
        .name = join_fact_text(report, words, JOIN_NAME),
        .interface = join_fact_text(report, words, JOIN_INTERFACE),
        .pci = join_fact_text(report, words, JOIN_PCI),
        .node_name = join_fact_text(report, words, JOIN_NAME),
        .switch_id = join_fact_text(report, words, JOIN_SWITCH_ID),
        .switch_name = join_fact_text(report, words, JOIN_SWITCH_NAME),
        .switch_port = join_fact_text(report, words, JOIN_SWITCH_PORT),
        .mbps = words->mbps,
        .group = g,
        .report = group->report,
        .before = before,
        .swept_port = FAB_NONE,
        .swept_node = FAB_NONE,
        .node = FAB_NONE,
        .plane = FAB_NONE,
        .port = FAB_NONE,
        .sibling = FAB_NONE,
        .lid = words->lid,
        .num = words->num,
        .state = words->state,
        .infiniband = words->infiniband,
        .rdma = group->rdma,
    };
}

int join_read(struct join *j)
{
    struct join_scratch *scratch = NULL;
    int rc = PMIXFAB_OK;
    for (uint32_t r = 0; r < j->n_reports && rc == PMIXFAB_OK; r++) {
        const struct join_cached_report *old =
            j->before[r] == FAB_NONE ? NULL : &j->cache->reports[j->before[r]];
        rc = old == NULL ? join_group_report(j->reports[r], r, &j->groups, &scratch)
                         : join_groups_copy(&j->cache->groups, old->first, old->n, r, &j->groups);
    }
    join_scratch_free(scratch);
    if (rc != PMIXFAB_OK)
        return rc;
    j->n_devs = j->groups.n;
    j->devs = join_alloc(j, j->n_devs, sizeof(*j->devs));
    j->words = calloc(j->n_devs + 1u, sizeof(*j->words));
    if (j->no_memory || j->words == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t g = 0, first = 0; g < j->n_devs; g++) {
        uint32_t r = j->groups.groups[g].report;
        if (r != j->groups.groups[first].report)
            first = g;
        uint32_t before =
            j->before[r] == FAB_NONE ? FAB_NONE : j->cache->reports[j->before[r]].first + g - first;
        if (before == FAB_NONE)
            read_words(j, &j->groups.groups[g], &j->words[g]);
        else
            j->words[g] = j->cache->words[before];
        make_device(j, g, before);
    }
    return PMIXFAB_OK;
}
