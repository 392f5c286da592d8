/* Without memory uthash would end the process, which is not ours. */
#define HASH_NONFATAL_OOM 1
#include "mca/pnet/inventory_queue.h"

#include <stdlib.h>
#include <string.h>

static struct pnet_waiting *queue_find(const struct pnet_queue *queue, const char *host)
{
    struct pnet_waiting *found;
    HASH_FIND_STR(queue->hosts, host, found);
    return found;
}

static bool has_room(const struct pnet_queue *queue, size_t bytes_before, size_t size)
{
    size_t max = queue->max_bytes > 0 ? queue->max_bytes : PNET_QUEUE_MAX_BYTES;
    return size <= max && queue->bytes - bytes_before <= max - size;
}

static int queue_add_host(struct pnet_queue *queue, const char *host, void *bytes, size_t size)
{
    size_t max = queue->max_hosts > 0 ? queue->max_hosts : PNET_QUEUE_MAX_HOSTS, len = strlen(host);
    if (pnet_queue_count(queue) >= max || len > FAB_HOST_MAX)
        return PMIXFAB_ERR_RANGE;
    struct pnet_waiting *waiting = calloc(1, sizeof(*waiting));
    if (waiting == NULL)
        return PMIXFAB_ERR_NOMEM;
    memcpy(waiting->host, host, len + 1);
    waiting->bytes = bytes;
    waiting->size = size;
    HASH_ADD_STR(queue->hosts, host, waiting);
    if (waiting->hh.tbl != NULL)
        return PMIXFAB_OK;
    free(waiting);
    return PMIXFAB_ERR_NOMEM;
}

int pnet_queue_add(struct pnet_queue *queue, const char *host, const void *bytes, size_t size)
{
    struct pnet_waiting *older = queue_find(queue, host);
    size_t before = older == NULL ? 0 : older->size;
    if (!has_room(queue, before, size))
        return PMIXFAB_ERR_RANGE;
    void *copy = malloc(size > 0 ? size : 1);
    if (copy == NULL)
        return PMIXFAB_ERR_NOMEM;
    memcpy(copy, bytes, size);
    if (older != NULL) {
        free(older->bytes);
        older->bytes = copy;
        older->size = size;
    } else {
        int rc = queue_add_host(queue, host, copy, size);
        if (rc != PMIXFAB_OK) {
            free(copy);
            return rc;
        }
    }
    queue->bytes = queue->bytes - before + size;
    return PMIXFAB_OK;
}

struct pnet_waiting *pnet_queue_take(struct pnet_queue *queue)
{
    struct pnet_waiting *first = queue->hosts; /* uthash keeps the order in which they were added */
    if (first == NULL)
        return NULL;
    HASH_DEL(queue->hosts, first); /* NOLINT(clang-analyzer-unix.Malloc): nothing links to a freed one */
    queue->bytes -= first->size;
    return first;
}

void pnet_queue_return(struct pnet_queue *queue, struct pnet_waiting *waiting)
{
    if (queue_find(queue, waiting->host) != NULL) {
        pnet_waiting_free(waiting);
        return;
    }
    /* It had its place before: no bound is asked. */
    HASH_ADD_STR(queue->hosts, host, waiting);
    if (waiting->hh.tbl == NULL)
        pnet_waiting_free(waiting);
    else
        queue->bytes += waiting->size;
}

size_t pnet_queue_count(const struct pnet_queue *queue)
{
    return HASH_COUNT(queue->hosts);
}

void pnet_queue_clear(struct pnet_queue *queue)
{
    struct pnet_waiting *waiting;
    while ((waiting = pnet_queue_take(queue)) != NULL)
        pnet_waiting_free(waiting);
}

void pnet_waiting_free(struct pnet_waiting *waiting)
{
    if (waiting == NULL)
        return;
    free(waiting->bytes);
    free(waiting);
}
