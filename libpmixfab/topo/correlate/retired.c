/* lost.c - the list of what was lost. */
#include "topo/correlate/retired.h"

#include <stdlib.h>
#include <string.h>

void fab_retired_destroy(struct fab_retired *lost)
{
    for (uint32_t i = 0; i < lost->n_nodes; i++)
        free(lost->nodes[i].host);
    for (uint32_t i = 0; i < lost->n_cables; i++)
        free(lost->cables[i].text[0]);
    free(lost->nodes);
    free(lost->cables);
    *lost = (struct fab_retired){0};
}

/* Two texts in one piece of memory. */
static bool copy_texts(const char *a, const char *b, char **to_a, char **to_b)
{
    size_t n_a = strlen(a) + 1, n_b = strlen(b) + 1;
    *to_a = malloc(n_a + n_b);
    if (*to_a == NULL)
        return false;
    memcpy(*to_a, a, n_a);
    *to_b = memcpy(*to_a + n_a, b, n_b);
    return true;
}

/* Room for one more behind n: memory doubles where n is a power of two. */
static void *retired_grow(void *list, uint32_t n, size_t size)
{
    return n != 0 && (n & (n - 1)) != 0 ? list : reallocarray(list, n == 0 ? 1 : 2 * (size_t)n, size);
}

int fab_retired_add_node(struct fab_retired *lost, const struct fab_retired_node *node)
{
    struct fab_retired_node copy = *node;
    struct fab_retired_node *larger = retired_grow(lost->nodes, lost->n_nodes, sizeof(*larger));
    if (larger == NULL)
        return PMIXFAB_ERR_NOMEM;
    lost->nodes = larger;
    if (!copy_texts(node->host, node->name, &copy.host, &copy.name))
        return PMIXFAB_ERR_NOMEM;
    lost->nodes[lost->n_nodes++] = copy;
    return PMIXFAB_OK;
}

int fab_retired_add_cable(struct fab_retired *lost, const struct fab_retired_cable *cable)
{
    struct fab_retired_cable copy = *cable;
    bool swap = cable->end[0].guid > cable->end[1].guid ||
                (cable->end[0].guid == cable->end[1].guid && cable->end[0].num > cable->end[1].num);
    struct fab_retired_cable *larger = retired_grow(lost->cables, lost->n_cables, sizeof(*larger));
    if (larger == NULL)
        return PMIXFAB_ERR_NOMEM;
    lost->cables = larger;
    if (!copy_texts(cable->text[swap], cable->text[!swap], &copy.text[0], &copy.text[1]))
        return PMIXFAB_ERR_NOMEM;
    copy.end[0] = cable->end[swap];
    copy.end[1] = cable->end[!swap];
    lost->cables[lost->n_cables++] = copy;
    return PMIXFAB_OK;
}

/* ---- order ---------------------------------------------------------------------------------------- */

int fab_retired_order_nodes(const struct fab_retired_node *a, const struct fab_retired_node *b)
{
    return a->guid < b->guid ? -1 : a->guid > b->guid;
}

int fab_retired_order_cables(const struct fab_retired_cable *a, const struct fab_retired_cable *b)
{
    for (int i = 0; i < 2; i++) {
        if (a->end[i].guid != b->end[i].guid)
            return a->end[i].guid < b->end[i].guid ? -1 : 1;
        if (a->end[i].num != b->end[i].num)
            return a->end[i].num < b->end[i].num ? -1 : 1;
    }
    return 0;
}

/* Those lost last first. */
static int newest_node(const void *a, const void *b)
{
    const struct fab_retired_node *x = a, *y = b;
    if (x->generation != y->generation)
        return x->generation > y->generation ? -1 : 1;
    return fab_retired_order_nodes(x, y);
}

static int newest_cable(const void *a, const void *b)
{
    const struct fab_retired_cable *x = a, *y = b;
    if (x->generation != y->generation)
        return x->generation > y->generation ? -1 : 1;
    return fab_retired_order_cables(x, y);
}

/* The same, the one lost last first. */
static int retired_compare_nodes(const void *a, const void *b)
{
    int order = fab_retired_order_nodes(a, b);
    return order != 0 ? order : newest_node(a, b);
}

static int retired_compare_cables(const void *a, const void *b)
{
    int order = fab_retired_order_cables(a, b);
    return order != 0 ? order : newest_cable(a, b);
}

static void retired_sort(void *list, uint32_t n, size_t size, int (*compare)(const void *, const void *))
{
    if (n > 1)
        qsort(list, n, size, compare);
}

static void finish_nodes(struct fab_retired *lost)
{
    uint32_t n = 0;
    retired_sort(lost->nodes, lost->n_nodes, sizeof(*lost->nodes), retired_compare_nodes);
    for (uint32_t i = 0; i < lost->n_nodes; i++) {
        if (n > 0 && fab_retired_order_nodes(&lost->nodes[n - 1], &lost->nodes[i]) == 0)
            free(lost->nodes[i].host);
        else
            lost->nodes[n++] = lost->nodes[i];
    }
    lost->n_nodes = n;
    if (n <= FAB_RETIRED_MAX)
        return;
    retired_sort(lost->nodes, n, sizeof(*lost->nodes), newest_node);
    while (lost->n_nodes > FAB_RETIRED_MAX)
        free(lost->nodes[--lost->n_nodes].host);
    retired_sort(lost->nodes, lost->n_nodes, sizeof(*lost->nodes), retired_compare_nodes);
}

static void finish_cables(struct fab_retired *lost)
{
    uint32_t n = 0;
    retired_sort(lost->cables, lost->n_cables, sizeof(*lost->cables), retired_compare_cables);
    for (uint32_t i = 0; i < lost->n_cables; i++) {
        if (n > 0 && fab_retired_order_cables(&lost->cables[n - 1], &lost->cables[i]) == 0)
            free(lost->cables[i].text[0]);
        else
            lost->cables[n++] = lost->cables[i];
    }
    lost->n_cables = n;
    if (n <= FAB_RETIRED_MAX)
        return;
    retired_sort(lost->cables, n, sizeof(*lost->cables), newest_cable);
    while (lost->n_cables > FAB_RETIRED_MAX)
        free(lost->cables[--lost->n_cables].text[0]);
    retired_sort(lost->cables, lost->n_cables, sizeof(*lost->cables), retired_compare_cables);
}

void fab_retired_finish(struct fab_retired *lost)
{
    finish_nodes(lost);
    finish_cables(lost);
}

uint32_t fab_retired_find(const struct fab_retired *lost, uint64_t guid)
{
    uint32_t low = 0, high = lost->n_nodes;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (lost->nodes[mid].guid < guid)
            low = mid + 1;
        else
            high = mid;
    }
    return low < lost->n_nodes && lost->nodes[low].guid == guid ? low : FAB_NONE;
}
