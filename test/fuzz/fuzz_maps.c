/*
 * What a starter gives as the maps of its job: the map of nodes, a newline, the map of processes. A map that
 * is taken has each rank once, on a node that is there.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pmix/launch/job_map.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void maps_try(char **nodes, char **ranks)
{
    struct fab_job_map map;
    if (fab_job_map_parse(nodes, ranks, &map, NULL) == PMIXFAB_OK)
        for (uint32_t r = 0; r < map.n_ranks; r++)
            if (map.host_of[r] >= map.n_hosts || map.hosts[map.host_of[r]][0] == '\0')
                abort();
    fab_job_map_free(&map);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    if (text == NULL)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    char *rest = strchr(text, '\n');
    if (rest != NULL)
        *rest++ = '\0';
    char **nodes = fab_map_nodes(text), **ranks = rest == NULL ? NULL : fab_map_ranks(rest);
    if (nodes != NULL && ranks != NULL)
        maps_try(nodes, ranks);
    fab_map_free(nodes);
    fab_map_free(ranks);
    free(text);
    return 0;
}
