/*
 * tree_names.c - what a tree's vertices are called: the same name whatever else is there.
 */
#include "fabricctl/export/tree_names.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "topo/base/order.h"

#define LETTERS_DIGITS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

bool ctl_plain_name(const char *name, size_t most)
{
    const size_t len = strlen(name);

    return len > 0 && len <= most && strspn(name, LETTERS_DIGITS "._-") == len &&
           strspn(name, LETTERS_DIGITS) > 0 && strchr("._-", name[len - 1]) == NULL;
}

bool ctl_reserved_name(const char *list, const char *name)
{
    const size_t len = strlen(name);

    for (; list != NULL && len > 0; list = *list == ',' ? list + 1 : NULL) {
        const size_t n = strcspn(list, ",");

        if (n == len && strncasecmp(list, name, len) == 0)
            return true;
        list += n;
    }
    return false;
}

void ctl_switch_name(char out[static CTL_VERTEX_NAME], const char *name, uint64_t guid)
{
    if (ctl_plain_name(name, CTL_NAME_MOST) && !ctl_reserved_name(CTL_SLURM_WORDS, name))
        snprintf(out, CTL_VERTEX_NAME, "%s", name);
    else
        snprintf(out, CTL_VERTEX_NAME, "s%" PRIx64, guid);
}

const char *ctl_plane_name(const struct pmixfab_plane *plane, char name[static CTL_VERTEX_NAME])
{
    if (ctl_plain_name(plane->name, CTL_NAME_MOST / 2) && !ctl_reserved_name(CTL_SLURM_WORDS, plane->name))
        return plane->name;
    snprintf(name, CTL_VERTEX_NAME, "plane%u", plane->index);
    return name;
}

/* What was called so, inner vertices, then by GUID: the first of a name keeps it. */
static int compare_vertices(const void *a, const void *b)
{
    const struct ctl_vertex *x = *(struct ctl_vertex *const *)a, *y = *(struct ctl_vertex *const *)b;

    return strcmp(x->name, y->name) ?: FAB_ORDER(y->kept, x->kept) ?: FAB_ORDER(y->height > 0, x->height > 0) ?: FAB_ORDER(x->guid, y->guid);
}

/* One time through all; false: there was nothing to do. */
static bool names_once_apart(struct ctl_vertex **order, uint32_t n)
{
    char kept[CTL_VERTEX_NAME] = "";
    bool renamed = false;

    qsort(order, n, sizeof(struct ctl_vertex *), compare_vertices);
    for (uint32_t i = 0; i < n; i++) {
        struct ctl_vertex *v = order[i];

        if (strcmp(v->name, kept) != 0) {
            memcpy(kept, v->name, sizeof kept);
            continue;
        }
        snprintf(v->name + strlen(v->name), sizeof v->name - strlen(v->name), "-s%" PRIx64, v->guid);
        ctl_error("two switches are called %s: the one %s GUID 0x%016" PRIx64 " is written as %s", kept,
                  v->height > 0 ? "over" : "with", v->guid, v->name);
        renamed = true;
    }
    return renamed;
}

enum ctl_exit ctl_names_apart(struct ctl_tree *tree)
{
    struct ctl_vertex **order = malloc((tree->n + (size_t)1) * sizeof *order);
    enum ctl_exit status = CTL_DONE;
    unsigned times = 0;

    if (order == NULL)
        return ctl_nomem();
    for (uint32_t v = 0; v < tree->n; v++)
        order[v] = &tree->vertices[v];
    /* what a name became may be the name of another switch */
    while (status == CTL_DONE && names_once_apart(order, tree->n))
        if (++times == 3)
            status = ctl_error("not written: switches still have one name: give them names of their own");
    free(order);
    return status;
}

void ctl_tree_mapping(FILE *out, const struct ctl_tree *tree)
{
    fputs("# Switches with hosts: name above, GUID, name in the fabric\n", out);
    for (uint32_t i = 0; i < tree->n_edges; i++)
        fprintf(out, "# %s 0x%016" PRIx64 " %s\n", tree->vertices[tree->edges[i].vertex].name,
                tree->edges[i].guid, tree->edges[i].name);
}
