#include "fabricd/engine/flap_count.h"

#include <stdlib.h>

#include "topo/base/search.h"

/* A node with a cable that came or went. */
struct concerned {
    uint64_t guid;
    uint32_t before, after; /* cables */
    bool is_switch;
    bool itself; /* one of these cables led to something that is there before and after */
};

struct counting {
    struct damping *damping;
    int64_t when;
    const struct transition_calls *calls;
    const struct transition_cable **went, **came;
    uint32_t n_went, n_came;
    struct concerned *nodes; /* by GUID */
    uint32_t n_nodes;
};

void sweep_links_free(struct sweep_links *seen)
{
    free(seen->cables);
    *seen = (struct sweep_links){0};
}

static void find_changes(struct counting *c, const struct sweep_links *before, const struct sweep_links *now)
{
    for (uint32_t i = 0, k = 0; i < before->n || k < now->n;) {
        int order = i == before->n ? 1
                    : k == now->n  ? -1
                                   : damping_compare(&before->cables[i].key, &now->cables[k].key);
        if (order < 0)
            c->went[c->n_went++] = &before->cables[i];
        else if (order > 0)
            c->came[c->n_came++] = &now->cables[k];
        i += order <= 0;
        k += order >= 0;
    }
}

static int transition_compare_guid(const void *a, const void *b)
{
    const struct concerned *x = a, *y = b;
    return (x->guid > y->guid) - (x->guid < y->guid);
}

/* Asked for both ends of all cables: no bsearch(), which would take several times as long. */
static struct concerned *find_node(const struct counting *c, uint64_t guid)
{
    uint32_t at = FAB_LOWER_BOUND(0, c->n_nodes, i, c->nodes[i].guid < guid);
    return at < c->n_nodes && c->nodes[at].guid == guid ? &c->nodes[at] : NULL;
}

static void note_nodes(struct counting *c, const struct transition_cable *cable)
{
    c->nodes[c->n_nodes++] =
        (struct concerned){.guid = cable->key.end.guid, .is_switch = cable->end_is_switch};
    c->nodes[c->n_nodes++] =
        (struct concerned){.guid = cable->key.far.guid, .is_switch = cable->far_is_switch};
}

/* What went comes first, then what came. */
static const struct damping_key *changed_key(const struct counting *c, uint32_t i)
{
    return i < c->n_went ? &c->went[i]->key : &c->came[i - c->n_went]->key;
}

/* Those that the concerned had; and from what came and went, those that they have. */
static void transition_count_cables(const struct counting *c, const struct sweep_links *before)
{
    for (uint32_t i = 0; i < before->n; i++) {
        const struct damping_key *key = &before->cables[i].key;
        struct concerned *end = find_node(c, key->end.guid), *far = find_node(c, key->far.guid);
        if (end != NULL)
            end->after = ++end->before;
        if (far != NULL)
            far->after = ++far->before;
    }
    for (uint32_t i = 0; i < c->n_went + c->n_came; i++) {
        const struct damping_key *key = changed_key(c, i);
        const int more = i < c->n_went ? -1 : 1;
        find_node(c, key->end.guid)->after += (uint32_t)more;
        find_node(c, key->far.guid)->after += (uint32_t)more;
    }
}

/* Both ends of a cable that came or went are concerned. */
static void find_causes(const struct counting *c)
{
    for (uint32_t i = 0; i < c->n_went + c->n_came; i++) {
        const bool is_went = i < c->n_went;
        const struct damping_key *key = changed_key(c, i);
        struct concerned *end = find_node(c, key->end.guid), *far = find_node(c, key->far.guid);
        end->itself |= is_went ? far->after > 0 : far->before > 0;
        far->itself |= is_went ? end->after > 0 : end->before > 0;
    }
}

static void find_nodes(struct counting *c, const struct sweep_links *before)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < c->n_went; i++)
        note_nodes(c, c->went[i]);
    for (uint32_t i = 0; i < c->n_came; i++)
        note_nodes(c, c->came[i]);
    qsort(c->nodes, c->n_nodes, sizeof(*c->nodes), transition_compare_guid);
    for (uint32_t i = 0; i < c->n_nodes; i++)
        if (kept == 0 || c->nodes[kept - 1].guid != c->nodes[i].guid)
            c->nodes[kept++] = c->nodes[i];
    c->n_nodes = kept;
    transition_count_cables(c, before);
    find_causes(c);
}

static bool has_gone(const struct concerned *sw)
{
    return sw->is_switch && sw->before >= 2 && sw->after == 0;
}

static bool has_come(const struct concerned *sw)
{
    return sw->is_switch && sw->before == 0 && sw->after >= 2;
}

static void transition_add(const struct counting *c, const struct damping_key *key, bool came)
{
    if (damping_change(c->damping, key, came, c->when))
        c->calls->on_suppressed(key, c->calls->cbdata);
}

static bool transition_is_planned(const struct counting *c, uint64_t guid)
{
    return c->calls->is_planned(guid, c->calls->cbdata);
}

/* Because of its switch, or by an operator's hand. */
static bool goes_along(const struct counting *c, const struct damping_key *key)
{
    const struct concerned *ends[2] = {find_node(c, key->end.guid), find_node(c, key->far.guid)};
    for (int e = 0; e < 2; e++)
        if (ends[e] != NULL && (has_gone(ends[e]) || has_come(ends[e])))
            return true;
    return transition_is_planned(c, key->end.guid) || transition_is_planned(c, key->far.guid);
}

static void count_all(const struct counting *c)
{
    for (uint32_t i = 0; i < c->n_nodes; i++) {
        const struct concerned *sw = &c->nodes[i];
        const struct damping_key key = damping_switch(sw->guid);
        if (has_gone(sw))
            damping_ignore_all(c->damping, sw->guid, c->when);
        if ((has_gone(sw) || has_come(sw)) && sw->itself && !transition_is_planned(c, sw->guid))
            transition_add(c, &key, has_come(sw));
    }
    for (uint32_t i = 0; i < c->n_went; i++) {
        if (goes_along(c, &c->went[i]->key))
            damping_ignore(c->damping, &c->went[i]->key, c->when);
        else
            transition_add(c, &c->went[i]->key, false);
    }
    for (uint32_t i = 0; i < c->n_came; i++) {
        if (goes_along(c, &c->came[i]->key))
            damping_ignore(c->damping, &c->came[i]->key, c->when);
        transition_add(c, &c->came[i]->key, true);
    }
}

int transition_count(struct damping *damping, struct sweep_links *before, struct sweep_links *now,
                     int64_t when, const struct transition_calls *calls)
{
    struct counting c = {.damping = damping, .when = when, .calls = calls};
    const size_t most = (size_t)before->n + now->n + 1;
    int rc = PMIXFAB_OK;
    if (before->known) {
        c.went = calloc(most, sizeof(struct transition_cable *));
        c.came = calloc(most, sizeof(struct transition_cable *));
        rc = c.went == NULL || c.came == NULL ? PMIXFAB_ERR_NOMEM : PMIXFAB_OK;
        if (rc == PMIXFAB_OK)
            find_changes(&c, before, now);
    }
    if (rc == PMIXFAB_OK && c.n_went + c.n_came > 0) {
        c.nodes = calloc(2 * ((size_t)c.n_went + c.n_came), sizeof(*c.nodes));
        rc = c.nodes == NULL ? PMIXFAB_ERR_NOMEM : PMIXFAB_OK;
        if (rc == PMIXFAB_OK) {
            find_nodes(&c, before);
            count_all(&c);
        }
    }
    free(c.went);
    free(c.came);
    free(c.nodes);
    if (rc == PMIXFAB_OK) {
        sweep_links_free(before);
        *before = *now;
        *now = (struct sweep_links){0};
    }
    return rc;
}
