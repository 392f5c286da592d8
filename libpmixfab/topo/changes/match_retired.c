/* match_retired.c - which node that came is one that was lost, or is in its place. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "topo/base/order.h"
#include "topo/changes/correlation.h"

static int retired_compare_ends(const void *a, const void *b)
{
    const struct lost_end *x = a, *y = b;
    return FAB_ORDER(x->guid, y->guid) ?: FAB_ORDER(x->num, y->num)
           ?: FAB_ORDER(y->generation, x->generation);
}

bool correlation_prepare_lost(struct correlation *s)
{
    struct fab_retired *lost = s->lost;

    if (s->lost == NULL || s->out.rc != PMIXFAB_OK)
        return false;
    if (s->ends != NULL)
        return true;
    s->lost_after = malloc((lost->nodes.n + 1u) * sizeof(*s->lost_after));
    s->after_lost = malloc((s->after->n_nodes + 1u) * sizeof(*s->after_lost));
    s->ends = calloc(2 * (size_t)lost->cables.n + 1, sizeof(*s->ends));
    if (s->lost_after == NULL || s->after_lost == NULL || s->ends == NULL) {
        s->out.rc = PMIXFAB_ERR_NOMEM;
        return false;
    }
    for (uint32_t i = 0; i < lost->nodes.n; i++)
        s->lost_after[i] = FAB_NONE;
    for (uint32_t i = 0; i < s->after->n_nodes; i++)
        s->after_lost[i] = FAB_NONE;
    for (uint32_t i = 0; i < lost->cables.n; i++) {
        for (int k = 0; k < 2; k++)
            s->ends[s->n_ends++] =
                (struct lost_end){lost->cables.items[i].end[k].guid, lost->cables.items[i].generation,
                                  lost->cables.items[i].end[k].num, i, k};
    }
    qsort(s->ends, s->n_ends, sizeof(*s->ends), retired_compare_ends);
    return true;
}

/* ---- places, now and then -------------------------------------------------------------------------- */

uint32_t correlation_lost_ends(const struct correlation *s, uint64_t guid, uint32_t num)
{
    const struct lost_end *ends = s->ends;
    return FAB_LOWER_BOUND(0, s->n_ends, i, ends[i].guid != guid ? ends[i].guid < guid : ends[i].num < num);
}

const struct lost_end *correlation_lost_at(const struct correlation *s, uint64_t guid, uint32_t num)
{
    uint32_t at = correlation_lost_ends(s, guid, num);
    return at < s->n_ends && s->ends[at].guid == guid && s->ends[at].num == num ? &s->ends[at] : NULL;
}

uint32_t correlation_now(const struct correlation *s, uint64_t guid)
{
    uint32_t lost = fab_retired_find(s->lost, guid);
    if (lost != FAB_NONE && s->lost_after[lost] != FAB_NONE)
        return s->lost_after[lost];
    uint32_t before = fab_inventory_find(s->before, guid);
    return before == FAB_NONE ? FAB_NONE : s->to_after[before];
}

uint32_t correlation_end_now(const struct correlation *s, const struct fab_lost_item *cable, int side)
{
    uint32_t node = correlation_now(s, cable->end[side].guid);
    return node == FAB_NONE ? FAB_NONE : fab_inventory_port(s->after, node, cable->end[side].num);
}

uint64_t correlation_then(const struct correlation *s, uint32_t after)
{
    if (s->after_lost[after] != FAB_NONE)
        return s->lost->nodes.items[s->after_lost[after]].guid;
    uint32_t before = s->to_before[after];
    return before == FAB_NONE ? s->after->nodes[after].guid : s->before->nodes[before].guid;
}

bool correlation_is_new(const struct correlation *s, uint32_t after)
{
    return s->to_before[after] == FAB_NONE && s->after_lost[after] == FAB_NONE;
}

static void retired_match(struct correlation *s, uint32_t lost, uint32_t after)
{
    s->lost_after[lost] = after;
    s->after_lost[after] = lost;
}

/* ---- by GUID --------------------------------------------------------------------------------------- */

static bool retired_same_name(const struct correlation *s, uint32_t lost, uint32_t after)
{
    const struct fab_node *node = &s->after->nodes[after];
    return strcmp(s->lost->nodes.items[lost].host, fab_str(s->after, node->host)) == 0 &&
           strcmp(s->lost->nodes.items[lost].name, fab_str(s->after, node->name)) == 0;
}

/* One that has neither its name nor its place may be another host's now: `sure` leaves it. */
static void retired_match_guids(struct correlation *s, bool sure)
{
    for (uint32_t i = 0; i < s->lost->nodes.n; i++) {
        const struct fab_lost_item *node = &s->lost->nodes.items[i];
        uint32_t a = fab_inventory_find(s->after, node->guid);
        if (a != FAB_NONE && s->lost_after[i] == FAB_NONE && is_kind(s->after, a, node->kind) &&
            correlation_is_new(s, a) && (!sure || node->kind == FAB_SWITCH || retired_same_name(s, i, a)))
            retired_match(s, i, a);
    }
}

/* ---- HCAs by name ---------------------------------------------------------------------------------- */

static void retired_match_names(struct correlation *s)
{
    struct correlation_named *lost = malloc((s->lost->nodes.n + 1u) * sizeof(*lost));
    uint32_t n_lost = 0, n_came;
    struct correlation_named *came = correlation_list_named(s->after, s->to_before, s->after_lost, &n_came);

    for (uint32_t i = 0; lost != NULL && i < s->lost->nodes.n; i++) {
        const struct fab_lost_item *node = &s->lost->nodes.items[i];
        if (node->kind == FAB_HCA && s->lost_after[i] == FAB_NONE)
            lost[n_lost++] = (struct correlation_named){node->host, node->name, i};
    }
    if (n_lost > 1)
        qsort(lost, n_lost, sizeof(*lost), correlation_compare_named);
    if (lost == NULL || came == NULL)
        s->out.rc = PMIXFAB_ERR_NOMEM;
    else
        correlation_pair_names(s, lost, n_lost, came, n_came, retired_match);
    free(lost);
    free(came);
}

/* ---- switches by their neighbours ------------------------------------------------------------------ */

/* Where the ports that led to a lost switch lead now. */
static uint32_t vote_now(const struct correlation *s, uint64_t guid)
{
    struct majority votes = {.n = 0};

    for (uint32_t i = correlation_lost_ends(s, guid, 0); i < s->n_ends && s->ends[i].guid == guid; i++) {
        const struct lost_end *end = &s->ends[i];
        uint32_t far = correlation_end_now(s, correlation_cable(s, end), !end->side);
        uint32_t near = far == FAB_NONE ? FAB_NONE : s->after->ports[far].peer;
        if (near != FAB_NONE)
            majority_add(&votes, s->after->ports[near].node);
    }
    uint64_t whom;
    return majority_elected(&votes, &whom) ? (uint32_t)whom : FAB_NONE;
}

/* Which switch (by its GUID then) the ports that lead to this one led to last; 0: none. */
static uint64_t vote_then(const struct correlation *s, uint32_t after)
{
    struct majority votes = {.n = 0};
    uint64_t whom;

    for (uint32_t i = 0; i < s->after->nodes[after].n_ports; i++) {
        uint32_t far = peer_of(s->after, after, i);
        if (far == FAB_NONE)
            continue;
        uint32_t before = correlation_port_before(s, far);
        const struct fab_port *port = &s->after->ports[far];
        const struct lost_end *end = correlation_lost_at(s, correlation_then(s, port->node), port->num);
        if (before != FAB_NONE && s->before->ports[before].peer != FAB_NONE)
            majority_add(&votes, s->before->nodes[s->before->ports[s->before->ports[before].peer].node].guid);
        else if (end != NULL)
            majority_add(&votes, correlation_cable(s, end)->end[!end->side].guid);
    }
    return majority_elected(&votes, &whom) ? whom : 0;
}

/* As pairing_switches(): one that is found says more about its neighbours. */
static void match_switches(struct correlation *s)
{
    bool found = true;

    while (found) {
        found = false;
        for (uint32_t i = 0; i < s->lost->nodes.n; i++) {
            const struct fab_lost_item *node = &s->lost->nodes.items[i];
            if (node->kind != FAB_SWITCH || s->lost_after[i] != FAB_NONE)
                continue;
            uint32_t a = vote_now(s, node->guid);
            if (a == FAB_NONE || !is_kind(s->after, a, FAB_SWITCH) || !correlation_is_new(s, a) ||
                vote_then(s, a) != node->guid)
                continue;
            retired_match(s, i, a);
            found = true;
        }
    }
}

/* ---- HCAs by place --------------------------------------------------------------------------------- */

/* At a switch port where one that was lost was last. */
static void retired_match_places(struct correlation *s)
{
    for (uint32_t a = 0; a < s->after->n_nodes; a++) {
        for (uint32_t i = 0; is_kind(s->after, a, FAB_HCA) && i < s->after->nodes[a].n_ports; i++) {
            uint32_t far = peer_of(s->after, a, i);
            if (far == FAB_NONE || !correlation_is_new(s, a))
                continue;
            const struct fab_port *port = &s->after->ports[far];
            uint32_t before = correlation_port_before(s, far);
            const struct lost_end *end = correlation_lost_at(s, correlation_then(s, port->node), port->num);
            if (end == NULL || (before != FAB_NONE && s->before->ports[before].peer != FAB_NONE))
                continue;
            uint32_t lost = fab_retired_find(s->lost, correlation_cable(s, end)->end[!end->side].guid);
            if (lost != FAB_NONE && s->lost->nodes.items[lost].kind == FAB_HCA &&
                s->lost_after[lost] == FAB_NONE)
                retired_match(s, lost, a);
        }
    }
}

/* Did anything come that could have been lost? */
static bool anything_came(const struct correlation *s)
{
    for (uint32_t i = 0; i < s->raw->n; i++) {
        if (came(s->raw->changes[i].kind))
            return true;
    }
    return false;
}

bool correlation_match_lost(struct correlation *s)
{
    if (s->lost == NULL || s->lost->nodes.n + s->lost->cables.n == 0 || !anything_came(s))
        return false;
    if (!correlation_prepare_lost(s))
        return false;
    retired_match_guids(s, true);
    retired_match_names(s);
    retired_match_guids(s, false);
    match_switches(s);
    retired_match_places(s);
    return s->out.rc == 0;
}

/* ---- what is said of a cable ----------------------------------------------------------------------- */

void correlation_lost_text(uint64_t generation, int64_t seen, char text[DIFF_LOST_TEXT])
{
    int n = snprintf(text, DIFF_LOST_TEXT, "lost in generation %" PRIu64, generation);
    time_t seconds = (time_t)(seen / 1000000);
    struct tm tm;

    if (seen > 0 && n > 0 && n < DIFF_LOST_TEXT && gmtime_r(&seconds, &tm) != NULL)
        strftime(text + n, (size_t)(DIFF_LOST_TEXT - n), ", last seen %Y-%m-%dT%H:%M:%SZ", &tm);
}

uint32_t correlation_back_at(const struct correlation *s, const struct fab_lost_item *cable, int side)
{
    uint32_t near = correlation_end_now(s, cable, side), far = correlation_end_now(s, cable, !side);
    return near != FAB_NONE && far != FAB_NONE && s->after->ports[near].peer == far ? near : FAB_NONE;
}

void correlation_cables_text(uint32_t back, uint32_t n, char text[DIFF_WHY_TEXT])
{
    if (n == 1)
        snprintf(text, DIFF_WHY_TEXT, "its cable leads to another switch now");
    else
        snprintf(text, DIFF_WHY_TEXT, "%" PRIu32 " of its %" PRIu32 " cables lead%s to another switch now",
                 back, n, back == 1 ? "s" : "");
}

void correlation_append_rate(char text[DIFF_VALUE_TEXT], unsigned width, unsigned speed)
{
    const struct fab_port port = {.width = (uint8_t)width, .speed = (uint8_t)speed};
    char rate[32];
    size_t used = strlen(text);

    fab_rate_text(&port, rate);
    if (used < DIFF_VALUE_TEXT)
        snprintf(text + used, DIFF_VALUE_TEXT - used, ", %s", rate);
}

void correlation_end_text(const struct fab_inventory *inv, uint32_t port, bool with_rate,
                          char text[DIFF_VALUE_TEXT])
{
    char end[FAB_PORT_TEXT];

    fab_port_text(inv, &inv->ports[port], end);
    snprintf(text, DIFF_VALUE_TEXT, "%.220s", end);
    if (with_rate)
        correlation_append_rate(text, inv->ports[port].width, inv->ports[port].speed);
}

void correlation_end_texts(const struct correlation *s, const struct fab_lost_item *cable, int side,
                           uint32_t port, char before[DIFF_VALUE_TEXT], char after[DIFF_VALUE_TEXT])
{
    const bool same_rate = correlation_same_rate(cable, &s->after->ports[port]);

    snprintf(before, DIFF_VALUE_TEXT, "%.220s", cable->text[side]);
    if (!same_rate)
        correlation_append_rate(before, cable->width, cable->speed);
    correlation_end_text(s->after, port, !same_rate, after);
}
