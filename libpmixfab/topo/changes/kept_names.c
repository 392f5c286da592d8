/* kept_names.c - keep the names of HCAs that do not send them. */
#include <stdio.h>
#include <stdlib.h>

#include "topo/base/search.h"
#include "topo/base/text.h"
#include "topo/changes/changes_private.h"
#include "topo/model/host_name.h"

/* Keeping names, in progress. */
struct naming_past {
    struct fab_scratch scratch;
    const struct fab_names_known *known;
    struct fab_inventory *inv;
    uint32_t at;                    /* position in the nodes of before */
    uint32_t *to_after, *to_before; /* the matching of switches; NULL: not needed yet */
};

/* The former name of a GUID. */
struct former_name {
    char host[FAB_NODE_TEXT], desc[2 * FAB_NODE_TEXT], what[FAB_NODE_TEXT];
    uint32_t before; /* the node; FAB_NONE: it was lost */
};

/* ---- HCAs that had a name and do not send it ---------------------------------------------------------- */

/* Return whether `now` is the beginning of `then`, up to a blank. */
static bool says_less(const char *now, const char *then)
{
    size_t n = strlen(now);
    return n > 0 && strncmp(now, then, n) == 0 && then[n] == ' ';
}

/* Return whether the HCA's name is missing, or is not the former one and may come later. */
static bool is_unsaid(const struct fab_inventory *inv, const struct fab_node *node, const char *host)
{
    return node->unnamed || (fab_host_is_local(fab_str(inv, node->host)) && !fab_host_is_local(host));
}

/* Find the former name. Return false if the HCA has only its present name. */
static bool find_former(struct naming_past *past, uint32_t node, struct former_name *out)
{
    const struct fab_inventory *inv = past->inv, *before = past->known->before;
    const struct fab_node *now = &inv->nodes[node];
    uint32_t at = fab_inventory_find_next(before, now->guid, &past->at);
    out->before = at;
    if (at != FAB_NONE) {
        const struct fab_node *then = &before->nodes[at];
        const char *host = fab_str(before, then->host), *desc = fab_str(before, then->desc);
        if (then->kind != FAB_HCA || then->unnamed || desc[0] == '\0' ||
            strcmp(fab_str(inv, now->desc), desc) == 0 || /* most of them: the description is unchanged */
            (!is_unsaid(inv, now, host) && !says_less(fab_str(inv, now->desc), desc)))
            return false;
        snprintf(out->host, sizeof(out->host), "%s", host);
        snprintf(out->desc, sizeof(out->desc), "%s", desc);
        fab_node_text(before, then, out->what);
        return true;
    }
    at = past->known->lost == NULL || (!now->unnamed && !fab_host_is_local(fab_str(inv, now->host)))
             ? FAB_NONE
             : fab_lost_find(past->known->lost, now->guid);
    const struct fab_lost_item *lost = at == FAB_NONE ? NULL : &past->known->lost->nodes.items[at];
    if (lost == NULL || lost->kind != FAB_HCA || !is_unsaid(inv, now, lost->host))
        return false;
    snprintf(out->host, sizeof(out->host), "%s", lost->host);
    snprintf(out->desc, sizeof(out->desc), "%s%s%s", lost->host, lost->name[0] == '\0' ? "" : " ",
             lost->name);
    fab_name_text(FAB_HCA, lost->guid, lost->host, lost->name, out->what);
    return strncmp(lost->host, "0x", 2) != 0;
}

/* ---- places ------------------------------------------------------------------------------------------- */

/* Match the switches: by GUID, then by the votes of the ports around them. Return false without memory. */
static bool need_pairs(struct naming_past *past)
{
    const struct fab_inventory *before = past->known->before, *inv = past->inv;
    if (past->to_after != NULL)
        return true;
    FAB_SCRATCH(&past->scratch, &past->to_after, before->n_nodes);
    FAB_SCRATCH(&past->scratch, &past->to_before, inv->n_nodes);
    if (past->scratch.failed)
        return false;
    memset(past->to_before, 0xff, inv->n_nodes * sizeof(*past->to_before));
    for (uint32_t b = 0, at = 0; b < before->n_nodes; b++) {
        past->to_after[b] = fab_inventory_find_next(inv, before->nodes[b].guid, &at);
        if (past->to_after[b] != FAB_NONE)
            past->to_before[past->to_after[b]] = b;
    }
    pairing_switches(&(struct pairing){before, inv, past->to_after, past->to_before});
    return true;
}

/* Return whether there was such a cable among the lost ones. */
static bool was_cabled(const struct fab_lost *lost, uint64_t guid, uint32_t num, uint64_t far,
                       uint32_t far_num)
{
    const bool swap = far < guid;
    const struct fab_lost_item key = {
        .end = {{swap ? far : guid, swap ? far_num : num}, {swap ? guid : far, swap ? num : far_num}}};
    if (lost == NULL)
        return false;
    uint32_t at = FAB_LOWER_BOUND(0, lost->cables.n, i, fab_lost_order(&lost->cables.items[i], &key) < 0);
    return at < lost->cables.n && fab_lost_order(&lost->cables.items[at], &key) == 0;
}

/* Return whether one of its cables is in its former place. `before` FAB_NONE: the HCA was lost. */
static bool is_at_home(const struct naming_past *past, uint32_t node, uint32_t before)
{
    const struct fab_inventory *inv = past->inv, *old = past->known->before;
    const struct fab_node *now = &inv->nodes[node];
    for (uint32_t p = now->first_port; p < now->first_port + now->n_ports; p++) {
        if (inv->ports[p].peer == FAB_NONE)
            continue;
        const struct fab_port *far = &inv->ports[inv->ports[p].peer];
        if (was_cabled(past->known->lost, now->guid, inv->ports[p].num, inv->nodes[far->node].guid, far->num))
            return true;
        uint32_t then = before == FAB_NONE ? FAB_NONE : fab_inventory_port(old, before, inv->ports[p].num);
        uint32_t was = then == FAB_NONE ? FAB_NONE : old->ports[then].peer;
        if (was != FAB_NONE && old->ports[was].num == far->num &&
            past->to_after[old->ports[was].node] == far->node)
            return true;
    }
    return false;
}

/* ---- reporting --------------------------------------------------------------------------------------- */

static void say_former(const struct naming_past *past, uint32_t node, const struct former_name *former,
                       bool kept)
{
    const struct fab_inventory *inv = past->inv;
    const struct fab_node *now = &inv->nodes[node];
    char says[FAB_NODE_TEXT], at[FAB_PORT_TEXT] = "", text[2 * FAB_NODE_TEXT + FAB_PORT_TEXT];
    if (past->known->told == NULL)
        return;
    fab_text_clean(says, sizeof(says), fab_str(inv, now->desc), strlen(fab_str(inv, now->desc)), NULL);
    for (uint32_t p = now->first_port; p < now->first_port + now->n_ports && at[0] == '\0'; p++)
        if (inv->ports[p].peer != FAB_NONE)
            fab_port_text(inv, &inv->ports[inv->ports[p].peer], at);
    snprintf(text, sizeof(text), "its description is \"%.80s\": %s%s", says,
             kept ? "it keeps the former name of its GUID"
                  : "it is not at the place where it had that name, ",
             kept ? "" : at);
    past->known->told(now, former->what, text, kept, past->known->cbdata);
}

/* ---- all HCAs ------------------------------------------------------------------------------------------ */

static int keep_one(struct naming_past *past, uint32_t node, uint32_t *n_kept)
{
    struct former_name former;
    if (!find_former(past, node, &former))
        return PMIXFAB_OK;
    if (!need_pairs(past))
        return PMIXFAB_ERR_NOMEM;
    const bool kept = is_at_home(past, node, former.before);
    if (kept || is_unsaid(past->inv, &past->inv->nodes[node], former.host))
        say_former(past, node, &former, kept);
    if (!kept)
        return PMIXFAB_OK;
    uint32_t desc = fab_inventory_string(past->inv, former.desc, strlen(former.desc));
    if (desc == FAB_NONE)
        return PMIXFAB_ERR_NOMEM;
    past->inv->nodes[node].desc = desc;
    ++*n_kept;
    return PMIXFAB_OK;
}

int fab_keep_names(const struct fab_names_known *known, struct fab_inventory *inv, uint32_t *n_kept)
{
    struct naming_past past = {.known = known, .inv = inv};
    int rc = PMIXFAB_OK;
    *n_kept = 0;
    for (uint32_t i = 0; i < inv->n_nodes && rc == PMIXFAB_OK; i++)
        if (inv->nodes[i].kind == FAB_HCA)
            rc = keep_one(&past, i, n_kept);
    fab_scratch_free(&past.scratch);
    return rc;
}
