/* publisher_query.c - what looks wrong in what is served, looked for when somebody asks. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "fabricd/publish/update.h"
#include "topo/inventory/host_name.h"

/* "2026-11-21T18:30:00Z" */
static void time_text(int64_t microseconds, char *text, size_t size)
{
    struct tm utc;
    const time_t seconds = (time_t)(microseconds / 1000000);
    gmtime_r(&seconds, &utc);
    strftime(text, size, "%Y-%m-%dT%H:%M:%SZ", &utc);
}

/* What is suppressed now, which changes without anything being published. */
static int tell_suppressed(struct publisher *publisher)
{
    struct publisher_suppressed suppressed;
    int rc = PMIXFAB_OK;
    fab_findings_drop(&publisher->findings, FAB_CHECK_FLAPPING);
    for (uint32_t at = 0; rc == PMIXFAB_OK && publisher_next_suppressed(publisher, &at, &suppressed);) {
        char where[24], since[32], until[32], what[160];
        snprintf(where, sizeof(where), "0x%016" PRIx64, suppressed.guid);
        time_text(suppressed.since, since, sizeof(since));
        time_text(suppressed.until, until, sizeof(until));
        snprintf(what, sizeof(what), "it came or went %u times since %s; suppressed until %s",
                 suppressed.changes, since, until);
        rc = fab_findings_add(&publisher->findings, FAB_CHECK_FLAPPING,
                              suppressed.what[0] != '\0' ? suppressed.what : where, what);
    }
    return rc;
}

/* What the last sweep said, if it was not good. */
static int tell_doubts(struct publisher *publisher, const struct publish_doubts *doubts)
{
    struct fab_findings *list = &publisher->findings;
    int rc = PMIXFAB_OK;
    fab_findings_drop(list, FAB_CHECK_STALE);
    fab_findings_drop(list, FAB_CHECK_PARTIAL);
    if (doubts->stale != NULL)
        rc = fab_findings_add(list, FAB_CHECK_STALE, "sweep", doubts->stale);
    const uint32_t n = doubts->partial == NULL ? 0 : doubts->partial->dangling;
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < n && i < PUBLISH_NAMED; i++) {
        const struct publish_nowhere *named = &doubts->partial->named[i];
        char what[200], more[48] = "";
        if (n > PUBLISH_NAMED && i == PUBLISH_NAMED - 1)
            snprintf(more, sizeof(more), "; and %u more", (unsigned)(n - PUBLISH_NAMED));
        snprintf(what, sizeof(what), "leads nowhere now, or did not answer%s%s%s",
                 named->was[0] != '\0' ? "; served as leading to " : "", named->was, more);
        rc = fab_findings_add(list, FAB_CHECK_PARTIAL, named->port, what);
    }
    return rc;
}

static int tell_now(struct publisher *publisher, const struct publish_doubts *doubts, struct fab_err *err)
{
    int rc = tell_doubts(publisher, doubts);
    if (rc == PMIXFAB_OK)
        rc = tell_suppressed(publisher);
    if (rc != PMIXFAB_OK)
        return fab_fail(err, rc, "out of memory");
    fab_findings_sort(&publisher->findings);
    return rc;
}

int publisher_check(struct publisher *publisher, const struct node_report *const *reports, uint32_t n,
                    const struct publish_doubts *doubts, const struct fab_findings **out, struct fab_err *err)
{
    struct fab_joined joined;
    *out = &publisher->findings;
    if (publisher->checked)
        return tell_now(publisher, doubts, err);
    int rc = publish_join(publisher, &publisher->current, reports, n, &joined, err);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = fab_check(&joined.inv, joined.details.n_ports > 0 ? &joined.details : NULL, &publisher->findings);
    fab_joined_destroy(&joined);
    publisher->checked = rc == PMIXFAB_OK;
    return rc == PMIXFAB_OK ? tell_now(publisher, doubts, err)
                            : fab_fail(err, rc, "check: %s", pmixfab_strerror(rc));
}

uint64_t publisher_generation(const struct publisher *publisher)
{
    return publisher->generation;
}

bool publisher_next_switch(const struct publisher *publisher, const char *name, uint32_t *at, uint64_t *guid)
{
    const struct fab_inventory *inv = &publisher->current;
    char text[24];
    while (*at < inv->n_nodes) {
        const struct fab_node *node = &inv->nodes[(*at)++];
        *guid = node->guid;
        snprintf(text, sizeof(text), "0x%016" PRIx64, node->guid);
        if (node->kind == FAB_SWITCH &&
            (strcmp(fab_str(inv, node->name), name) == 0 || strcmp(text, name) == 0))
            return true;
    }
    return false;
}

bool publisher_has_switch(const struct publisher *publisher, const char *name)
{
    uint32_t at = 0;
    uint64_t guid;
    return publisher_next_switch(publisher, name, &at, &guid);
}

bool publisher_has_host(const struct publisher *publisher, const char *name)
{
    const struct fab_inventory *inv = &publisher->current;
    for (uint32_t i = 0; i < inv->n_nodes; i++)
        if (inv->nodes[i].kind == FAB_HCA && fab_same_host(fab_str(inv, inv->nodes[i].host), name))
            return true;
    return publisher_joined(publisher, name, &(struct joined_host){0});
}

bool publisher_port_text(const struct publisher *publisher, uint64_t guid, char text[FAB_PORT_TEXT])
{
    const struct fab_inventory *inv = &publisher->current;
    for (uint32_t i = 0; i < inv->n_ports; i++)
        if (guid != 0 && inv->ports[i].guid == guid) {
            fab_port_text(inv, &inv->ports[i], text);
            return true;
        }
    const uint32_t node = fab_inventory_find(inv, guid); /* a switch's own port has its GUID */
    if (node == FAB_NONE)
        return false;
    fab_node_text(inv, &inv->nodes[node], text);
    return true;
}
