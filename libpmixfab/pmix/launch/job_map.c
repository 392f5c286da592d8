/*
 * job_map.c - find the hosts of the ranks of a job: in the PMIx library's data, or in the maps of a launcher.
 */

#include "pmix/launch/job_map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Without memory a name is not found; by default the macros would end the process. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "topo/base/array.h"
#include "topo/model/host_name.h"
#include "topo/model/model.h"

#define MAP_NAME 1024 /* bytes of a node's name */

struct map_list {
    char **texts;
    uint32_t n, room;
    bool failed;
};

static void map_text_append(struct map_list *list, const char *text, size_t length)
{
    char *copy = NULL;
    if (length > 0 && list->n < FAB_MAP_NODES &&
        FAB_ARRAY_ROOM(&list->texts, &list->room, (uint64_t)list->n + 2))
        copy = strndup(text, length);
    if (copy == NULL) {
        list->failed = true;
        return;
    }
    list->texts[list->n++] = copy;
    list->texts[list->n] = NULL;
}

void fab_map_free(char **list)
{
    for (size_t i = 0; list != NULL && list[i] != NULL; i++)
        free(list[i]);
    free(list);
}

/* Return the whole list, or nothing. */
static char **map_done(struct map_list *list)
{
    if (!list->failed && list->n > 0)
        return list->texts;
    fab_map_free(list->texts);
    return NULL;
}

/* Return the content of "pmix[...]" or "raw:", or a bare list as a whole. */
static const char *map_inside(const char *text, size_t *length)
{
    text += strncmp(text, "raw:", 4) == 0 ? 4 : 0;
    *length = strlen(text);
    if (strncmp(text, "pmix[", 5) != 0)
        return text;
    if (text[*length - 1] != ']')
        return NULL;
    *length -= 6;
    return text + 5;
}

/* Read a number of at most nine digits and move *at past it. Return false if there is none. */
static bool map_number(const char **at, const char *end, uint32_t *out)
{
    const char *first = *at;
    *out = 0;
    while (*at < end && **at >= '0' && **at <= '9' && *at - first < 9)
        *out = *out * 10 + (uint32_t)(*(*at)++ - '0');
    return *at > first;
}

/* Expand "PREFIX[DIGITS:1-3,7]SUFFIX" to a name for each number. */
static void map_numbered(struct map_list *list, const char *item, const char *open, const char *close,
                         const char *end)
{
    const char *at = open + 1;
    char name[MAP_NAME];
    uint32_t digits, first, last;
    if (!map_number(&at, close, &digits) || at == close || *at++ != ':' || digits > 9) {
        list->failed = true;
        return;
    }
    for (bool more = true; more && !list->failed;) {
        if (!map_number(&at, close, &first)) {
            list->failed = true;
            return;
        }
        last = first;
        list->failed |= at < close && *at == '-' && (at++, !map_number(&at, close, &last) || last < first);
        for (uint32_t k = first; !list->failed && k <= last; k++) {
            int n = snprintf(name, sizeof(name), "%.*s%0*u%.*s", (int)(open - item), item, (int)digits, k,
                             (int)(end - close - 1), close + 1);
            list->failed |= n >= MAP_NAME;
            map_text_append(list, name, (size_t)n);
        }
        more = at < close && *at == ',';
        at += more;
    }
    list->failed |= at != close;
}

char **fab_map_nodes(const char *text)
{
    struct map_list list = {.texts = NULL};
    size_t length;
    const char *at = map_inside(text, &length), *end = at == NULL ? NULL : at + length;
    for (bool more = at != NULL; more && !list.failed; at++) {
        const char *item = at, *open = NULL, *close = NULL;
        for (; at < end && (*at != ',' || (open != NULL && close == NULL)); at++) {
            list.failed |= (*at == '[' && open != NULL) || (*at == ']' && (open == NULL || close != NULL));
            open = *at == '[' ? at : open;
            close = *at == ']' ? at : close;
        }
        if (list.failed || (open != NULL && close == NULL))
            list.failed = true;
        else if (open != NULL)
            map_numbered(&list, item, open, close, at);
        else
            map_text_append(&list, item, (size_t)(at - item));
        more = at < end;
    }
    return map_done(&list);
}

char **fab_map_ranks(const char *text)
{
    struct map_list list = {.texts = NULL};
    size_t length;
    const char *at = map_inside(text, &length), *end = at == NULL ? NULL : at + length;
    for (bool more = at != NULL; more && !list.failed; at++) {
        const char *item = at;
        while (at < end && *at != ';')
            at++;
        map_text_append(&list, item, (size_t)(at - item));
        more = at < end;
    }
    return map_done(&list);
}

#define MAX_RANKS (16u << 20)
/* After this many ranks without a host, or without a binding, the other ranks are not looked up. */
#define MAX_WITHOUT 4096u

/* A host of the job. */
struct job_host {
    uint32_t index;
    char *name;
    UT_hash_handle hh;
};

/* Takes the name over. FAB_NONE without memory. */
static uint32_t job_map_host(struct fab_job_map *map, char *name)
{
    struct job_host *host;
    HASH_FIND_STR(map->table, name, host);
    if (host != NULL) {
        free(name);
        return host->index;
    }
    host = calloc(1, sizeof(*host));
    if (host == NULL || !FAB_ARRAY_ROOM(&map->hosts, &map->room, map->n_hosts + 1)) {
        free(host);
        free(name);
        return FAB_NONE;
    }
    host->index = map->n_hosts;
    host->name = name;
    map->hosts[map->n_hosts++] = name;
    HASH_ADD_KEYPTR(hh, map->table, name, strlen(name), host);
    if (host->hh.tbl == NULL) { /* no memory */
        map->n_hosts--;
        free(host);
        free(name);
        return FAB_NONE;
    }
    return host->index;
}

void fab_job_map_free(struct fab_job_map *map)
{
    struct job_host *host, *next;
    HASH_ITER(hh, map->table, host, next)
    {
        HASH_DEL(map->table, host); /* NOLINT(clang-analyzer-unix.Malloc): nothing links to a freed one */
        free(host->name);
        free(host);
    }
    free(map->hosts);
    free(map->host_of);
}

/* Set the other ranks of a host if the launcher lists them together: so most ranks need no look-up. */
static void job_map_peers(struct fab_job_map *map, fab_job_told_fn told, const void *job, uint32_t host)
{
    char *peers = told(job, PMIX_RANK_UNDEF, PMIX_LOCAL_PEERS, map->hosts[host]), *at = peers;
    while (at != NULL && *at >= '0' && *at <= '9') {
        unsigned long rank = strtoul(at, &at, 10);
        if (rank < map->n_ranks && map->host_of[rank] == FAB_NONE)
            map->host_of[rank] = host;
        at += *at == ',';
    }
    free(peers);
}

static uint32_t job_map_here(const struct fab_job_map *map, const char *here)
{
    struct fab_host_choice choice = {0};
    struct job_host *host = NULL;
    for (uint32_t h = 0; !choice.exact && h < map->n_hosts; h++)
        fab_choose_host(&choice, here, map->hosts[h]);
    if (choice.host != NULL && !choice.several)
        HASH_FIND_STR(map->table, choice.host, host);
    return host != NULL ? host->index : FAB_NONE;
}

bool fab_job_map_read(fab_job_told_fn told, const void *job, uint32_t n_ranks, const char *here,
                      struct fab_job_map *map)
{
    uint32_t without = 0;
    *map = (struct fab_job_map){.n_ranks = n_ranks <= MAX_RANKS ? n_ranks : 0, .here = FAB_NONE};
    map->host_of = malloc(((size_t)map->n_ranks + 1) * sizeof(*map->host_of));
    if (map->host_of == NULL)
        return false;
    memset(map->host_of, 0xff, ((size_t)map->n_ranks + 1) * sizeof(*map->host_of)); /* FAB_NONE */
    for (uint32_t r = 0; r < map->n_ranks && without < MAX_WITHOUT; r++) {
        if (map->host_of[r] != FAB_NONE)
            continue;
        uint32_t known = map->n_hosts;
        char *host = told(job, r, PMIX_HOSTNAME, NULL);
        without += host == NULL;
        map->host_of[r] = host != NULL ? job_map_host(map, host) : FAB_NONE;
        if (map->n_hosts > known)
            job_map_peers(map, told, job, known);
    }
    map->here = job_map_here(map, here);
    return true;
}

/* ---- from maps -------------------------------------------------------------------------------------- */

/* Read the next "3" or "3-5" of a list; return false at its end, or if it is invalid: then **at is not 0. */
static bool map_range(const char **at, uint32_t *first, uint32_t *last)
{
    char *end;
    if (**at < '0' || **at > '9')
        return false;
    unsigned long a = strtoul(*at, &end, 10), b = a;
    if (*end == '-' && end[1] >= '0' && end[1] <= '9')
        b = strtoul(end + 1, &end, 10);
    if (a > b || b >= MAX_RANKS || (*end != '\0' && (*end != ',' || end[1] == '\0')))
        return false;
    *at = end + (*end == ',');
    *first = (uint32_t)a;
    *last = (uint32_t)b;
    return true;
}

/* Return the number of ranks of a node, 0 for an invalid list. */
static uint64_t map_count(const char *ranks)
{
    uint32_t first, last;
    uint64_t n = 0;
    while (map_range(&ranks, &first, &last))
        n += last - first + 1;
    return *ranks == '\0' ? n : 0;
}

static int map_fill(struct fab_job_map *map, char *const *nodes, char *const *ranks, struct fab_err *err)
{
    for (uint32_t h = 0; nodes[h] != NULL; h++) {
        const char *at = ranks[h];
        uint32_t first, last;
        char *name = strdup(nodes[h]);
        if (name == NULL || job_map_host(map, name) == FAB_NONE)
            return fab_fail(err, PMIXFAB_ERR_NOMEM, "no memory for the maps of a job");
        if (map->n_hosts != h + 1)
            return fab_fail(err, PMIXFAB_ERR_INVAL, "the map of nodes lists a node twice");
        while (map_range(&at, &first, &last))
            for (uint32_t r = first; r <= last; r++) {
                if (r >= map->n_ranks || map->host_of[r] != FAB_NONE)
                    return fab_fail(err, PMIXFAB_ERR_INVAL,
                                    "the map of processes lists rank %u twice, or not all lower ranks", r);
                map->host_of[r] = h;
            }
    }
    return PMIXFAB_OK;
}

int fab_job_map_parse(char *const *nodes, char *const *ranks, struct fab_job_map *map, struct fab_err *err)
{
    uint64_t n = 0;
    *map = (struct fab_job_map){.here = FAB_NONE};
    for (size_t h = 0; nodes[h] != NULL || ranks[h] != NULL; h++) {
        const uint64_t of_node = nodes[h] != NULL && ranks[h] != NULL ? map_count(ranks[h]) : 0;
        n += of_node;
        if (of_node == 0 || n > MAX_RANKS)
            return fab_fail(
                err, PMIXFAB_ERR_INVAL,
                "the maps of nodes and of processes disagree at node %zu, or there are too many ranks",
                h + 1);
    }
    map->n_ranks = (uint32_t)n;
    map->host_of = malloc((n + 1) * sizeof(*map->host_of));
    if (map->host_of == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "no memory for the maps of a job");
    memset(map->host_of, 0xff, (n + 1) * sizeof(*map->host_of)); /* FAB_NONE */
    return map_fill(map, nodes, ranks, err);
}

/* ---- ranks on this host ------------------------------------------------------------------------------- */

bool fab_job_here_read(fab_job_told_fn told, const void *job, const struct fab_job_map *map,
                       struct fab_job_here *here)
{
    uint32_t n = 0, without = 0, at = map->here;
    for (uint32_t r = 0; at != FAB_NONE && r < map->n_ranks; r++)
        n += map->host_of[r] == at;
    *here = (struct fab_job_here){.ranks = calloc((size_t)n + 1, sizeof(*here->ranks)),
                                  .cpus = calloc((size_t)n + 1, sizeof(*here->cpus)),
                                  .nearest = calloc((size_t)n + 1, sizeof(*here->nearest)),
                                  .n = n};
    if (here->ranks == NULL || here->cpus == NULL || here->nearest == NULL)
        return false;
    for (uint32_t r = 0, k = 0; k < n; r++) {
        if (map->host_of[r] != at)
            continue;
        here->ranks[k] = r;
        if (without < MAX_WITHOUT)
            here->cpus[k] = told(job, r, PMIX_CPUSET, NULL);
        without += here->cpus[k++] == NULL;
    }
    return true;
}

void fab_job_here_free(struct fab_job_here *here)
{
    for (uint32_t i = 0; here->cpus != NULL && i < here->n; i++)
        free(here->cpus[i]);
    free(here->cpus);
    free(here->ranks);
    free(here->nearest);
    *here = (struct fab_job_here){0};
}
