/* join_read.c - the devices of all reports, with what each says of itself. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "topo/join_priv.h"

void *join_alloc(size_t n, size_t size)
{
    return calloc(n + 1, size);
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
    [FAB_FACT_SWITCH_NAME] = true, [FAB_FACT_SWITCH_PORT] = true,
};

static uint64_t guid_of(const char *text)
{
    return text == NULL ? 0 : strtoull(text, NULL, 16);
}

static uint64_t number_of(const char *text, uint64_t most)
{
    uint64_t n = text == NULL ? 0 : strtoull(text, NULL, 10);
    return n > most ? 0 : n;
}

static uint64_t mac_of(const char *text)
{
    uint64_t mac = 0;
    for (; text != NULL && *text != '\0'; text++) {
        const char *digits = "0123456789abcdef", *digit = *text == ':' ? NULL : strchr(digits, *text);
        if (digit != NULL)
            mac = mac << 4 | (uint64_t)(digit - digits);
    }
    return mac & UINT64_C(0xffffffffffff);
}

static uint8_t state_of(const char *text)
{
    if (text == NULL || (strcmp(text, "up") != 0 && strcmp(text, "down") != 0))
        return FAB_PORT_UNKNOWN;
    return text[0] == 'u' ? FAB_PORT_ACTIVE : FAB_PORT_DOWN;
}

/* Of each wanted kind the fact that is believed, without the sweep's. */
static void believe(const struct join *j, const struct join_group *group, struct join_fact *best)
{
    const struct fab_report *report = j->reports[group->report];
    memset(best, 0, FAB_FACTS * sizeof(*best));
    for (uint32_t l = 0; l < group->n; l++) {
        const struct join_link *link = &j->groups.links[group->first + l];
        const struct fab_report_item *item = &report->items[link->item];
        for (uint32_t f = item->first; f < item->first + item->n; f++) {
            const struct fab_report_fact *fact = &report->facts[f];
            if (!is_wanted[fact->kind] || (link->shared && join_per_port(fact->kind)))
                continue;
            struct join_fact said = {report->pool + fact->text, item->source, fact->kind, fact->estimate};
            if (join_better(&said, &best[fact->kind]))
                best[fact->kind] = said;
        }
    }
}

static void read_device(struct join *j, uint32_t g)
{
    struct join_fact best[FAB_FACTS];
    const struct join_group *group = &j->groups.groups[g];
    believe(j, group, best);
    const char *type = best[FAB_FACT_TYPE].text;
    j->devs[g] = (struct join_dev){
        .port_guid = guid_of(best[FAB_FACT_PORT_GUID].text),
        .node_guid = guid_of(best[FAB_FACT_NODE_GUID].text),
        .system_guid = guid_of(best[FAB_FACT_SYSTEM_GUID].text),
        .mac = mac_of(best[FAB_FACT_MAC].text),
        .name = best[FAB_FACT_NAME].text,
        .interface = best[FAB_FACT_INTERFACE].text,
        .switch_id = best[FAB_FACT_SWITCH_ID].text,
        .switch_name = best[FAB_FACT_SWITCH_NAME].text,
        .switch_port = best[FAB_FACT_SWITCH_PORT].text,
        .mbps = number_of(best[FAB_FACT_SPEED].text, UINT64_MAX),
        .group = g,
        .report = group->report,
        .swept_port = FAB_NONE,
        .swept_node = FAB_NONE,
        .node = FAB_NONE,
        .plane = FAB_NONE,
        .port = FAB_NONE,
        .lid = (uint16_t)number_of(best[FAB_FACT_LID].text, UINT16_MAX),
        .num = (uint8_t)number_of(best[FAB_FACT_PORT].text, 254),
        .state = state_of(best[FAB_FACT_STATE].text),
        .infiniband = type != NULL && strcmp(type, "InfiniBand") == 0,
        .rdma = group->rdma,
    };
}

int join_read(struct join *j)
{
    struct join_scratch *scratch = NULL;
    int rc = PMIXFAB_OK;
    for (uint32_t r = 0; r < j->n_reports && rc == PMIXFAB_OK; r++)
        rc = join_group_report(j->reports[r], r, &j->groups, &scratch);
    join_scratch_free(scratch);
    if (rc != PMIXFAB_OK)
        return rc;
    j->n_devs = j->groups.n;
    j->devs = join_alloc(j->n_devs, sizeof(*j->devs));
    if (j->devs == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t g = 0; g < j->n_devs; g++)
        read_device(j, g);
    return PMIXFAB_OK;
}
