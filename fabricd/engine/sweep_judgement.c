/*
 * sweep_judgement.c - process a sweep before it is published: name its nodes, reject a partial sweep, cut
 * flapping cables out, and keep the places of missing devices. A comparison does the same without publishing.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/log.h"
#include "fabricd/engine/publisher.h"
#include "topo/base/array.h"
#include "topo/base/text.h"
#include "topo/changes/changes.h"
#include "topo/model/retain.h"

void swept_fabric_destroy(struct swept_fabric *sweep)
{
    fab_inventory_destroy(&sweep->inv);
    free(sweep->elsewhere.guids);
}

/* ---- comparison: differences between served state and sweep that are not changes ------------------- */

struct comparison {
    struct fab_diff diff;
    struct fab_inventory uncut; /* the sweep with its suppressed cables */
};

/* Add a difference of this node of an inventory, or of the cable of this port. */
static int compare_add(struct swept_fabric *sweep, enum fab_change_kind kind, const struct fab_inventory *inv,
                       uint32_t node, uint32_t port, const char *const words[3])
{
    struct fab_told_end end = {inv->nodes[node].guid, 0}, far = {0, 0};
    if (port != FAB_NONE) {
        const struct fab_port *peer = &inv->ports[inv->ports[port].peer];
        end.port = inv->ports[port].num;
        far = (struct fab_told_end){inv->nodes[peer->node].guid, peer->num};
    }
    return fab_diff_append(&sweep->comparison->diff, kind, &inv, 1, end, far, words[0], words[1], words[2]);
}

/* Add a difference: the node of this GUID has a name that it does not report. */
static int compare_name(struct swept_fabric *sweep, uint64_t guid, const char *why)
{
    const char *const words[] = {"kept", "not said", why};
    const struct fab_inventory *before = &sweep->publisher->current;
    const uint32_t node = fab_inventory_find(before, guid);
    if (sweep->comparison == NULL || node == FAB_NONE) /* a lost node is reported as returned */
        return PMIXFAB_OK;
    return compare_add(sweep, FAB_CHANGE_NAME, before, node, FAB_NONE, words);
}

/* Add the cables that are about to be cut. */
static int compare_cut(struct swept_fabric *sweep)
{
    struct damping *damping = sweep->publisher->damping;
    static const char *const words[] = {
        "down", "there", "the sweep sees the cable; it is served as pulled because it is suppressed"};
    const struct fab_inventory *inv = &sweep->inv;
    if (sweep->comparison == NULL)
        return PMIXFAB_OK;
    int rc = fab_inventory_copy(&sweep->comparison->uncut, inv);
    for (uint32_t p = 0; p < inv->n_ports && rc == PMIXFAB_OK; p++)
        if (p < inv->ports[p].peer && inv->ports[p].peer != FAB_NONE &&
            (flapping_is_cut(inv, p, damping) || flapping_is_cut(inv, inv->ports[p].peer, damping)))
            rc = compare_add(sweep, FAB_CHANGE_FLAPPING, inv, inv->ports[p].node, p, words);
    return rc;
}

/* Return the texts for a missing object: the sweep does not see it, or sees it only by suppressed cables. */
static const char *const *words_for(const struct swept_fabric *sweep, uint64_t guid, unsigned num)
{
    static const char *const unseen[] = {"missing", "not seen", "no sweep sees it; its place is kept"};
    static const char *const cut[] = {
        "missing", "there", "the sweep sees it; it is served as missing because its cables are suppressed"};
    const struct fab_inventory *uncut = &sweep->comparison->uncut;
    const uint32_t node = fab_inventory_find(uncut, guid);
    const uint32_t port = node == FAB_NONE || num == 0 ? FAB_NONE : fab_inventory_port(uncut, node, num);
    if (num == 0)
        return node != FAB_NONE && fab_node_is_cabled(uncut, &uncut->nodes[node]) ? cut : unseen;
    return port != FAB_NONE && uncut->ports[port].peer != FAB_NONE ? cut : unseen;
}

/* Add objects that are missing in the served state and in the sweep's result. */
static int compare_missing(struct swept_fabric *sweep)
{
    const struct fab_inventory *inv = &sweep->inv, *before = &sweep->publisher->current;
    int rc = PMIXFAB_OK;
    for (uint32_t i = 0; i < inv->n_nodes && rc == PMIXFAB_OK; i++) {
        const struct fab_node *node = &inv->nodes[i];
        const uint32_t was = node->missing ? fab_inventory_find(before, node->guid) : FAB_NONE;
        if (was != FAB_NONE && before->nodes[was].missing)
            rc = compare_add(sweep,
                             node->kind == FAB_SWITCH ? FAB_CHANGE_SWITCH_MISSING : FAB_CHANGE_HOST_MISSING,
                             inv, i, FAB_NONE, words_for(sweep, node->guid, 0));
    }
    for (uint32_t p = 0; p < inv->n_ports && rc == PMIXFAB_OK; p++) {
        const struct fab_port *port = &inv->ports[p];
        const uint64_t guid = inv->nodes[port->node].guid;
        const uint32_t node =
            port->missing && port->peer != FAB_NONE ? fab_inventory_find(before, guid) : FAB_NONE;
        const uint32_t was = node == FAB_NONE ? FAB_NONE : fab_inventory_port(before, node, port->num);
        if (was != FAB_NONE && before->ports[was].missing)
            rc = compare_add(sweep, FAB_CHANGE_PORT_MISSING, inv, port->node, p,
                             words_for(sweep, guid, port->num));
    }
    return rc;
}

/* ---- names ----------------------------------------------------------------------------------------- */

int sweep_fill_gaps(const struct publisher *publisher, struct fab_inventory *inv)
{
    const struct fab_inventory *before = &publisher->current;
    for (uint32_t i = 0; i < inv->n_nodes; i++) {
        uint32_t known = inv->nodes[i].desc != 0 ? FAB_NONE : fab_inventory_find(before, inv->nodes[i].guid);
        const char *desc = known == FAB_NONE ? "" : fab_str(before, before->nodes[known].desc);
        if (desc[0] == '\0')
            continue;
        uint32_t copy = fab_inventory_string(inv, desc, strlen(desc));
        if (copy == FAB_NONE)
            return PMIXFAB_ERR_NOMEM;
        inv->nodes[i].desc = copy;
    }
    return PMIXFAB_OK;
}

static void on_late_name(const struct fab_node *node, const char *what, const char *text, bool kept,
                         void *cbdata)
{
    struct swept_fabric *sweep = cbdata;
    struct guids *elsewhere = &sweep->elsewhere;
    if (kept) {
        elsewhere->failed |= compare_name(sweep, node->guid, text) != PMIXFAB_OK;
        return;
    }
    if (sweep->comparison == NULL)
        log_warning("names: %s %s; its host is unknown until its description or a new report names it", what,
                    text);
    if (FAB_ARRAY_ROOM(&elsewhere->guids, &elsewhere->room, elsewhere->n + 1))
        elsewhere->guids[elsewhere->n++] = node->guid;
    else
        elsewhere->failed = true;
}

/* Name the nodes by their descriptions; where these are not available yet, by the earlier ones. */
static int sweep_name(struct swept_fabric *sweep, struct fab_err *err)
{
    struct publisher *publisher = sweep->publisher;
    const struct fab_names_known known = {.before = &publisher->current,
                                          .lost = &publisher->absent.lost,
                                          .told = on_late_name,
                                          .cbdata = sweep};
    uint32_t n_kept = 0;
    if (sweep_fill_gaps(publisher, &sweep->inv) != PMIXFAB_OK)
        return no_memory(err);
    int rc = fab_names_apply(publisher->names, &sweep->inv, err);
    if (rc != PMIXFAB_OK || publisher->current.n_nodes == 0)
        return rc;
    rc = fab_keep_names(&known, &sweep->inv, &n_kept);
    if (rc != PMIXFAB_OK || sweep->elsewhere.failed)
        return no_memory(err);
    return n_kept == 0 ? PMIXFAB_OK : fab_names_apply(publisher->names, &sweep->inv, err);
}

/* ---- a whole fabric, or a partial one that must not shrink the served state ------------------------ */

/* "leaf1[8]", "node1 HCA-1[1]"; truncated if too long. */
static void port_text(const struct fab_inventory *inv, const struct fab_port *port, char *text, size_t size)
{
    char whole[FAB_PORT_TEXT];
    fab_port_text(inv, port, whole);
    fab_text_clean(text, size, whole, strlen(whole), NULL);
}

/*
 * Count the ports that are up and lead nowhere, or have no data, and did not so in the published state. A
 * port that always did (a cable to a device that never answers) is not a sign of a partial sweep.
 */
static void count_dangling(const struct fab_inventory *inv, const struct fab_inventory *before,
                           struct sweep_findings *report)
{
    for (uint32_t i = 0; inv->n_dangling > 0 && i < inv->n_ports; i++) {
        if (!fab_port_dangles(inv, &inv->ports[i]))
            continue;
        uint32_t node = fab_inventory_find(before, inv->nodes[inv->ports[i].node].guid);
        uint32_t port = node == FAB_NONE ? FAB_NONE : fab_inventory_port(before, node, inv->ports[i].num);
        if (port != FAB_NONE && fab_port_dangles(before, &before->ports[port]))
            continue;
        if (report->dangling++ >= PUBLISH_NAMED)
            continue;
        struct publish_nowhere *named = &report->named[report->dangling - 1];
        port_text(inv, &inv->ports[i], named->port, sizeof(named->port));
        if (port != FAB_NONE && before->ports[port].peer != FAB_NONE)
            port_text(before, &before->ports[before->ports[port].peer], named->was, sizeof(named->was));
    }
}

/* "leaf1[8] (node1 HCA-1[1]), leaf2[1], ...": as many as fit into a message. */
static void list_named(const struct sweep_findings *report, char *text, size_t size)
{
    const uint32_t most = report->dangling < 3 ? report->dangling : 3;
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < most && used + 1 < size; i++) {
        const struct publish_nowhere *named = &report->named[i];
        const bool was = named->was[0] != '\0';
        used += (size_t)snprintf(text + used, size - used, "%s%.60s%s%.60s%s", i == 0 ? "" : ", ",
                                 named->port, was ? " (to " : "", named->was, was ? ")" : "");
    }
    if (report->dangling > most && used + 6 < size)
        snprintf(text + used, size - used, ", ...");
}

static bool has_cables(const struct fab_inventory *inv)
{
    for (uint32_t i = 0; i < inv->n_ports; i++)
        if (inv->ports[i].peer != FAB_NONE)
            return true;
    return false;
}

bool publisher_sees_no_cable(const struct publisher *publisher)
{
    return publisher->current.n_nodes > 0 && !has_cables(&publisher->current);
}

static int compute_diff(const struct fab_inventory *before, const struct fab_inventory *after,
                        struct fab_diff *diff, struct fab_err *err)
{
    int rc = fab_diff_compute(before, after, diff);
    return rc == PMIXFAB_OK ? rc
                            : fab_fail(err, rc, "cannot compute the difference: %s", pmixfab_strerror(rc));
}

/* Count hosts, devices, switches and links that are published as present and are not in this inventory;
 * missing ones do not count again. */
static int count_lost(const struct publisher *publisher, const struct fab_inventory *inv, uint32_t *lost,
                      struct fab_err *err)
{
    struct fab_inventory seen;
    struct fab_diff diff = {0};
    int rc = fab_inventory_seen(&publisher->current, &seen, err);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = compute_diff(&seen, inv, &diff, err);
    *lost = diff.n_lost;
    fab_diff_destroy(&diff);
    fab_inventory_destroy(&seen);
    return rc;
}

int sweep_judge(const struct publisher *publisher, const struct fab_inventory *inv, bool accept_partial,
                struct sweep_findings *report, struct fab_err *err)
{
    const unsigned long long serving = publisher->generation;
    char named[300];
    uint32_t lost = 0;
    *report = (struct sweep_findings){.nowhere = inv->n_dangling};
    count_dangling(inv, &publisher->current, report);
    for (uint32_t i = 0; i < inv->n_nodes; i++)
        report->unnamed += inv->nodes[i].unnamed;
    for (uint32_t i = 0; i < inv->n_ports; i++)
        report->inactive += inv->ports[i].peer != FAB_NONE &&
                            (inv->ports[i].state == FAB_PORT_INIT || inv->ports[i].state == FAB_PORT_ARMED);
    if (accept_partial || serving == 0 ||
        (report->dangling == 0 && (has_cables(inv) || !has_cables(&publisher->current))))
        return PMIXFAB_OK;
    int rc = count_lost(publisher, inv, &lost, err);
    if (rc != PMIXFAB_OK || lost == 0)
        return rc;
    if (report->dangling == 0)
        return fab_fail(err, PMIXFAB_ERR_PARTIAL,
                        "the sweep found no cable: check this host's own cable; still serving generation "
                        "%llu (fabricctl refresh --accept-partial accepts the sweep)",
                        serving);
    list_named(report, named, sizeof(named));
    return fab_fail(err, PMIXFAB_ERR_PARTIAL,
                    "the sweep is partial: %u port%s nowhere or did not answer (%.220s), and %u hosts, "
                    "devices, switches and links are not seen; still serving generation %llu (fabricctl "
                    "refresh --accept-partial accepts the sweep)",
                    report->dangling, report->dangling == 1 ? " leads" : "s lead", named, lost, serving);
}

/* ---- the whole processing -------------------------------------------------------------------------- */

int sweep_diff(const struct swept_fabric *sweep, bool unmanaged, struct fab_diff *diff, struct fab_err *err)
{
    struct publisher *publisher = sweep->publisher;
    int rc = compute_diff(&publisher->current, &sweep->inv, diff, err);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = fab_diff_correlate_with(&publisher->current, &sweep->inv, &publisher->absent.lost, diff);
    if (rc != PMIXFAB_OK)
        return fab_fail(err, rc, "cannot interpret the difference: %s", pmixfab_strerror(rc));
    publish_stamp(diff, sweep->seen, publisher_seen_last(publisher));
    retention_correct_seen(publisher, diff);
    if (unmanaged)
        fab_diff_mark_inactive(&sweep->inv, diff);
    return PMIXFAB_OK;
}

/* Count changes, and take suppressed cables as pulled. */
static int sweep_suppress(struct swept_fabric *sweep, struct fab_err *err)
{
    struct damping *damping = sweep->publisher->damping;
    struct fab_inventory rest;
    if (sweep->publisher->config->flap_count == 0)
        return PMIXFAB_OK;
    if (flapping_count(sweep) != PMIXFAB_OK)
        return no_memory(err);
    if (damping_count(damping).next == 0)
        return PMIXFAB_OK;
    if (compare_cut(sweep) != PMIXFAB_OK)
        return no_memory(err);
    int rc = fab_inventory_cut(&sweep->inv, flapping_is_cut, damping, &rest, err);
    if (rc != PMIXFAB_OK)
        return rc;
    fab_inventory_destroy(&sweep->inv);
    sweep->inv = rest;
    return PMIXFAB_OK;
}

int sweep_take(struct swept_fabric *sweep, const struct publish_request *input, struct sweep_findings *report,
               struct fab_diff *diff, struct fab_err *err)
{
    int rc = sweep_name(sweep, err)
                 ?: sweep_judge(sweep->publisher, &sweep->inv, input->accept_partial, report, err);
    if (rc == PMIXFAB_OK && input->accept_partial)
        publisher_release_now(sweep->publisher, NULL); /* otherwise the next sweep would remove it again */
    else if (rc == PMIXFAB_OK)
        rc = sweep_suppress(sweep, err) ?: sweep_retain(sweep, err);
    return rc ?: sweep_diff(sweep, input->unmanaged, diff, err);
}

int publish_verify(struct publisher *publisher, const struct publish_request *input, struct fab_diff *diff,
                   struct fab_err *err)
{
    struct sweep_findings report;
    struct comparison comparison = {0};
    struct swept_fabric sweep = {.publisher = publisher,
                                 .inv = *input->inv,
                                 .comparison = &comparison,
                                 .seen = clock_now(CLOCK_REALTIME)};
    fab_inventory_init(input->inv);
    *diff = (struct fab_diff){0};
    int rc = sweep_take(&sweep, input, &report, diff, err);
    if (rc == PMIXFAB_OK) {
        planned_mark(publisher->planned, diff, sweep.seen);
        rc = compare_missing(&sweep) ?: fab_diff_move(diff, &comparison.diff);
        if (rc != PMIXFAB_OK)
            fab_fail(err, rc, "out of memory");
        fab_diff_sort(diff);
    }
    fab_diff_destroy(&comparison.diff);
    fab_inventory_destroy(&comparison.uncut);
    swept_fabric_destroy(&sweep);
    return rc;
}
