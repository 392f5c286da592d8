/* check_claims.c - devices that two hosts say are theirs: one of the reports is wrong, and no sweep says
 * which. */
#include <stdlib.h>
#include <string.h>

#include "topo/changes/finding.h"

#define MOST 256 /* claims that are compared; more are a few hosts' lies, which have been told by then */

/* A GUID or MAC that a device says of itself, as another host's does. */
struct claim {
    uint32_t node;
    enum fab_fact kind;
    const char *text;
};

struct claims {
    struct claim kept[MOST], yielded[MOST];
    uint32_t n_kept, n_yielded;
};

static void claims_put(struct claim *list, uint32_t *n, const struct claim *claim)
{
    const struct claim *last = *n > 0 ? &list[*n - 1] : NULL;
    const bool again = last != NULL && last->node == claim->node && last->kind == claim->kind &&
                       strcmp(last->text, claim->text) == 0; /* another port of it */
    if (!again && *n < MOST)
        list[(*n)++] = *claim;
}

static void claims_collect(const struct check *c, struct claims *claims)
{
    const struct fab_details *details = c->details;
    const unsigned disputed = FAB_DETAIL_CHOSEN | FAB_DETAIL_CONFLICT;
    for (uint32_t p = 0; p < c->inv->n_ports; p++)
        for (uint32_t f = details->first[p]; f < details->first[p + 1]; f++) {
            const struct fab_detail *fact = &details->facts[f];
            const struct claim claim = {c->inv->ports[p].node, fact->kind, details->pool + fact->text};
            if ((fact->kind != FAB_FACT_NODE_GUID && fact->kind != FAB_FACT_MAC) ||
                (fact->flags & disputed) != disputed)
                continue;
            if ((fact->flags & FAB_DETAIL_OUTRANKED) != 0)
                claims_put(claims->yielded, &claims->n_yielded, &claim);
            else
                claims_put(claims->kept, &claims->n_kept, &claim);
        }
}

/* The device that goes by it; NULL: none of another host. */
static const struct claim *claims_find(const struct check *c, const struct claims *claims,
                                       const struct claim *yielded)
{
    const struct fab_inventory *inv = c->inv;
    for (uint32_t i = 0; i < claims->n_kept; i++) {
        const struct claim *kept = &claims->kept[i];
        if (kept->kind == yielded->kind && strcmp(kept->text, yielded->text) == 0 &&
            strcmp(fab_str(inv, inv->nodes[kept->node].host), fab_str(inv, inv->nodes[yielded->node].host)) !=
                0)
            return kept;
    }
    return NULL;
}

void check_claims(struct check *c)
{
    const struct fab_inventory *inv = c->inv;
    if (c->details == NULL || c->rc != PMIXFAB_OK)
        return;
    struct claims *claims = check_array(c, 1, sizeof(*claims));
    if (claims == NULL)
        return;
    claims_collect(c, claims);
    for (uint32_t i = 0; i < claims->n_yielded; i++) {
        const struct claim *kept = claims_find(c, claims, &claims->yielded[i]);
        char where[FAB_NODE_TEXT];
        if (kept == NULL)
            continue;
        const char *host = fab_str(inv, inv->nodes[kept->node].host);
        const char *other = fab_str(inv, inv->nodes[claims->yielded[i].node].host);
        struct fab_about about = fab_about_node(&inv->nodes[kept->node]);
        about.text = other;
        fab_node_text(inv, &inv->nodes[kept->node], where);
        check_add(c, FAB_CHECK_CLAIMED_TWICE, about, where,
                  "%.100s and %.100s both report it as theirs (%s %.40s); %.100s has it, as the first", host,
                  other, fab_fact_name(kept->kind), kept->text, host);
    }
    free(claims);
}
