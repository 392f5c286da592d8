/*
 * join_cache.c - data that a join keeps for the next one.
 *
 * The devices of a report depend on that report only. The facts of a port depend on its device and on the
 * sweep's values for the port, struct join_source. So the devices are kept by report, and the facts by port
 * with their source. Each join computes again everything that depends on more than one host: owner of a
 * device, planes, numbers, names. The result is part of the source: the device of a port, and whether the
 * sweep has values for it.
 */
#include <stdlib.h>
#include <string.h>

#include "topo/base/natural.h"
#include "topo/join/join_state.h"

struct fab_join_cache *fab_join_cache_new(void)
{
    return calloc(1, sizeof(struct fab_join_cache));
}

void join_cache_clear(struct fab_join_cache *cache)
{
    free(cache->reports);
    free(cache->hosts);
    join_groups_free(&cache->groups);
    free(cache->words);
    free(cache->sources);
    free(cache->first);
    free(cache->facts);
    free(cache->places);
    fab_strings_destroy(&cache->texts);
    *cache = (struct fab_join_cache){0};
}

void fab_join_cache_free(struct fab_join_cache *cache)
{
    if (cache == NULL)
        return;
    join_cache_clear(cache);
    free(cache);
}

int join_cache_pair(struct join *j)
{
    const struct fab_join_cache *cache = j->cache;
    uint32_t at = 0;
    j->before = join_alloc(j, j->n_reports, sizeof(*j->before));
    if (j->no_memory)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t r = 0; r < j->n_reports; r++) {
        int order = -1;
        j->before[r] = FAB_NONE;
        for (; cache != NULL && at < cache->n_reports; at++) {
            order = fab_natural_cmp(cache->reports[at].host, j->reports[r]->host);
            if (order >= 0)
                break;
        }
        if (cache != NULL && at < cache->n_reports && order == 0 &&
            cache->reports[at].digest == j->digests[r])
            j->before[r] = at++;
    }
    return PMIXFAB_OK;
}

/* Copy the names of hosts: the reports may be freed before the next join. */
static int keep_reports(struct join *j, struct fab_join_cache *next)
{
    size_t size = 1;
    for (uint32_t r = 0; r < j->n_reports; r++)
        size += strlen(j->reports[r]->host) + 1;
    char *at = next->hosts = malloc(size);
    next->reports = calloc(j->n_reports + 1u, sizeof(*next->reports));
    next->n_reports = j->n_reports;
    if (at == NULL || next->reports == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t r = 0; r < j->n_reports; r++) {
        struct join_cached_report *report = &next->reports[r];
        const uint32_t first = j->first_dev[r], end = j->first_dev[r + 1];
        size_t len = strlen(j->reports[r]->host) + 1;
        *report = (struct join_cached_report){
            .host = at, .digest = j->digests[r], .first = first, .n = end - first, .alone = j->alone[r]};
        memcpy(at, j->reports[r]->host, len);
        at += len;
        for (uint32_t d = first; d < end; d++)
            report->n_joined += j->devs[d].port != FAB_NONE;
    }
    return PMIXFAB_OK;
}

static void *copy_of(const void *from, size_t n, size_t size)
{
    void *to = calloc(n + 1, size);
    if (to != NULL && n > 0)
        memcpy(to, from, n * size);
    return to;
}

static int keep_facts(const struct join *j, struct fab_join_cache *next)
{
    const struct fab_details *details = &j->out->details;
    const size_t n = next->n_ports = details->n_ports;
    next->first = copy_of(details->first, n + 1, sizeof(*details->first));
    next->facts = copy_of(details->facts, details->first[n], sizeof(*details->facts));
    next->places = copy_of(details->places, n, sizeof(*details->places));
    for (size_t p = 0; p < n; p++)
        next->taken += j->from[p] != FAB_NONE;
    return next->first == NULL || next->facts == NULL || next->places == NULL ? PMIXFAB_ERR_NOMEM
                                                                              : PMIXFAB_OK;
}

/* Move the used texts to a new pool. */
static int join_cache_compact(struct fab_join_cache *cache)
{
    struct fab_strings texts;
    uint32_t *moved = calloc(cache->texts.size + 1u, sizeof(*moved)), n = cache->first[cache->n_ports];
    if (moved == NULL)
        return PMIXFAB_ERR_NOMEM;
    fab_strings_init(&texts);
    for (uint32_t f = 0; f < n; f++) {
        uint32_t *text = &cache->facts[f].text;
        if (moved[*text] == 0)
            moved[*text] = fab_strings_add(&texts, cache->texts.text + *text);
        *text = moved[*text];
    }
    for (uint32_t p = 0; p < cache->n_ports; p++)
        cache->sources[p].name = moved[cache->sources[p].name]; /* also the text of a fact */
    free(moved);
    fab_strings_destroy(&cache->texts);
    cache->texts = texts;
    cache->tidy = texts.size;
    return texts.error;
}

#define UNTIDY 65536u /* unused bytes beyond twice the used ones */

void join_cache_keep(struct join *j)
{
    struct fab_join_cache *cache = j->cache, next = {.groups = j->groups,
                                                     .words = j->words,
                                                     .sources = j->sources,
                                                     .texts = cache->texts,
                                                     .tidy = cache->tidy};
    j->groups = (struct join_groups){0};
    j->words = NULL;
    j->sources = NULL;
    cache->texts = (struct fab_strings){0};
    join_cache_clear(cache);
    int rc = j->n_reports == 0 ? PMIXFAB_ERR_NOTFOUND : keep_reports(j, &next);
    if (rc == PMIXFAB_OK)
        rc = keep_facts(j, &next);
    if (rc == PMIXFAB_OK && next.tidy == 0)
        next.tidy = next.texts.size;
    if (rc == PMIXFAB_OK && next.texts.size > 2 * (uint64_t)next.tidy + UNTIDY)
        rc = join_cache_compact(&next);
    *cache = next;
    if (rc != PMIXFAB_OK)
        join_cache_clear(cache);
}
