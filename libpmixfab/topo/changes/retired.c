/* retired.c - the list of what was lost. */
#include "topo/changes/retired.h"

#include <stdlib.h>

#include "topo/base/array.h"
#include "topo/base/order.h"
#include "topo/base/search.h"

/* Its items from `first` on. */
static void lost_cut_list(struct fab_lost_list *list, uint32_t first)
{
    while (list->n > first)
        free(list->items[--list->n].text[0]);
}

void fab_retired_destroy(struct fab_retired *lost)
{
    lost_cut_list(&lost->nodes, 0);
    lost_cut_list(&lost->cables, 0);
    free(lost->nodes.items);
    free(lost->cables.items);
    *lost = (struct fab_retired){0};
}

/* Two texts in one piece of memory. */
static bool copy_texts(const char *a, const char *b, char *to[2])
{
    size_t n_a = strlen(a) + 1, n_b = strlen(b) + 1;
    to[0] = malloc(n_a + n_b);
    if (to[0] == NULL)
        return false;
    memcpy(to[0], a, n_a);
    to[1] = memcpy(to[0] + n_a, b, n_b);
    return true;
}

static int lost_order_ends(const struct fab_lost_item *a, int side, const struct fab_lost_item *b, int other)
{
    return FAB_ORDER(a->end[side].guid, b->end[other].guid) ?: FAB_ORDER(a->end[side].num, b->end[other].num);
}

int fab_lost_add(struct fab_retired *lost, const struct fab_lost_item *item)
{
    struct fab_lost_list *list = item->kind == 0 ? &lost->cables : &lost->nodes;
    const bool swap = item->kind == 0 && lost_order_ends(item, 0, item, 1) > 0;
    if (!FAB_ARRAY_ROOM(&list->items, &list->cap, list->n + 1))
        return PMIXFAB_ERR_NOMEM;
    struct fab_lost_item *to = &list->items[list->n];
    *to = *item;
    if (item->kind != 0) {
        memset(to->end, 0, sizeof(to->end));
        to->guid = item->guid;
    } else if (swap) {
        to->end[0] = item->end[1];
        to->end[1] = item->end[0];
    }
    if (!copy_texts(item->text[swap], item->text[!swap], to->text))
        return PMIXFAB_ERR_NOMEM;
    list->n++;
    return PMIXFAB_OK;
}

/* ---- order ---------------------------------------------------------------------------------------- */

int fab_lost_order(const struct fab_lost_item *a, const struct fab_lost_item *b)
{
    return lost_order_ends(a, 0, b, 0) ?: lost_order_ends(a, 1, b, 1);
}

/* Those lost last first. */
static int lost_compare_newest(const void *a, const void *b)
{
    const struct fab_lost_item *x = a, *y = b;
    return FAB_ORDER(y->generation, x->generation) ?: fab_lost_order(x, y);
}

/* Of the same ones the one lost last first. */
static int lost_compare_items(const void *a, const void *b)
{
    return fab_lost_order(a, b) ?: lost_compare_newest(a, b);
}

static void retired_sort(struct fab_lost_list *list, int (*compare)(const void *, const void *))
{
    if (list->n > 1)
        qsort(list->items, list->n, sizeof(*list->items), compare);
}

static void lost_finish_list(struct fab_lost_list *list)
{
    uint32_t n = 0;
    retired_sort(list, lost_compare_items);
    for (uint32_t i = 0; i < list->n; i++) {
        if (n > 0 && fab_lost_order(&list->items[n - 1], &list->items[i]) == 0)
            free(list->items[i].text[0]);
        else
            list->items[n++] = list->items[i];
    }
    list->n = n;
    if (n <= FAB_RETIRED_MAX)
        return;
    retired_sort(list, lost_compare_newest);
    lost_cut_list(list, FAB_RETIRED_MAX);
    retired_sort(list, lost_compare_items);
}

void fab_retired_finish(struct fab_retired *lost)
{
    lost_finish_list(&lost->nodes);
    lost_finish_list(&lost->cables);
}

uint32_t fab_retired_find(const struct fab_retired *lost, uint64_t guid)
{
    const struct fab_lost_list *nodes = &lost->nodes;
    uint32_t at = FAB_LOWER_BOUND(0, nodes->n, i, nodes->items[i].guid < guid);
    return at < nodes->n && nodes->items[at].guid == guid ? at : FAB_NONE;
}
