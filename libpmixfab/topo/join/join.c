/* join.c - the passes of a join, and remarks about reports that do not fit. */
#include "topo/join/join.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/base/natural.h"
#include "topo/join/join_state.h"

/* ---- remarks about reports ------------------------------------------------------------------------ */

/* Write a remark about n things of a host, of which the first `told` are named; none for n = 0. */
__attribute__((format(printf, 5, 6))) static void say(const struct fab_join_input *to, const char *host,
                                                      uint32_t n, uint32_t told, const char *fmt, ...)
{
    char line[1200];
    va_list args;
    if (n == 0)
        return;
    const size_t at = (size_t)snprintf(line, sizeof(line), "%s: ", host);
    va_start(args, fmt);
    const int len = vsnprintf(line + at, sizeof(line) - at, fmt, args);
    va_end(args);
    const size_t end = at + (size_t)(len < 0 ? 0 : len);
    if (n > told && end < sizeof(line))
        snprintf(line + end, sizeof(line) - end, " (and %" PRIu32 " more)", n - told);
    to->remark(line, to->cbdata);
}

static const char *kind_text(enum fab_fact kind)
{
    return kind == FAB_FACT_MAC ? "MAC" : kind == FAB_FACT_PORT_GUID ? "port GUID" : "node GUID";
}

static void join_report_troubles(const struct join *j, const struct fab_join_input *to)
{
    for (uint32_t r = 0; r < j->n_reports && to->remark != NULL; r++) {
        const struct join_trouble *t = &j->trouble[r];
        const char *host = j->reports[r]->host, *other = t->other == NULL ? "" : t->other;
        say(to, host, t->refused, t->refused, "%" PRIu32 " %s not joined: the devices belong to %.255s",
            t->refused, t->refused == 1 ? "item is" : "items are", other[0] == '\0' ? "no host" : other);
        say(to, host, t->odd, t->odd,
            "%" PRIu32 " %s left out: contradiction to the fabric or to other items", t->odd,
            t->odd == 1 ? "item is" : "items are");
        say(to, host, t->yielded.n, 1, "the %s of %.64s is also that of a device of %.255s, which keeps it",
            kind_text(t->yielded.kind), t->yielded.of, t->yielded.host);
        say(to, host, t->open.host == NULL ? 0 : t->open.n, 1,
            "the %s of %.64s is also claimed by %.255s; it belongs to no host", kind_text(t->open.kind),
            t->open.of, t->open.host);
        say(to, host, t->open.host != NULL ? 0 : t->open.n, 1,
            "the %s of %.64s was claimed by others again and again; it belongs to no host for now",
            kind_text(t->open.kind), t->open.of);
        say(to, host, t->kept.n, 1, "the %s of %.64s is also claimed by %.255s", kind_text(t->kept.kind),
            t->kept.of, t->kept.host);
        say(to, host, t->two_planes, 1,
            "%.64s has addresses in planes %.64s and %.64s; it is placed in %.64s", t->two_planes_of,
            t->first_plane, t->second_plane, t->first_plane);
        say(to, host, t->same_mac, 1, "%.64s is left out of plane %.64s: its MAC is that of a device of %s",
            t->mac_of, t->mac_plane, t->mac_host);
    }
}

/* ---- all passes ------------------------------------------------------------------------------------ */

/* A report and the values that identify it. */
struct known_report {
    const struct fab_report *report;
    uint64_t digest;
};

static int cmp_report(const void *va, const void *vb)
{
    const struct known_report *a = va, *b = vb;
    return fab_natural_cmp(a->report->host, b->report->host);
}

/* Sort reports by host: the first one decides some things, and the caller's order must not matter. */
static int sort_reports(struct join *j)
{
    bool sorted = true;
    struct known_report *list = join_temp(j, j->n_reports, sizeof(*list));
    const struct fab_report **reports = join_alloc(j, j->n_reports, sizeof(const struct fab_report *));
    uint64_t *digests = join_alloc(j, j->n_reports, sizeof(*digests));
    if (j->no_memory)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t r = 0; r < j->n_reports; r++) {
        list[r] = (struct known_report){j->reports[r], j->digests == NULL ? 0 : j->digests[r]};
        sorted = sorted && (r == 0 || cmp_report(&list[r - 1], &list[r]) <= 0);
    }
    if (!sorted)
        qsort(list, j->n_reports, sizeof(*list), cmp_report);
    for (uint32_t r = 0; r < j->n_reports; r++) {
        reports[r] = list[r].report;
        digests[r] = list[r].digest;
    }
    j->reports = reports;
    j->digests = digests;
    return PMIXFAB_OK;
}

/* Count the devices of each report, which are neighbours. */
static int join_count_devices(struct join *j)
{
    struct fab_joined *out = j->out;
    uint32_t *counted =
        join_temp(j, out->inv.n_ports, sizeof(*counted)); /* the last report that counted it, from 1 */
    out->hosts = calloc(j->n_reports + 1u, sizeof(*out->hosts));
    if (counted == NULL || out->hosts == NULL)
        return PMIXFAB_ERR_NOMEM;
    out->n_hosts = j->n_reports;
    for (uint32_t d = 0; d < j->n_devs; d++) {
        const struct join_dev *dev = &j->devs[d];
        struct fab_joined_host *host = &out->hosts[dev->report];
        if (dev->port == FAB_NONE || counted[dev->port] == dev->report + 1 ||
            (out->details.seen[dev->port] & FAB_SEEN_NODE) == 0)
            continue;
        counted[dev->port] = dev->report + 1;
        host->devices++;
        host->unseen +=
            out->inv.ports[dev->port].sibling == 0 &&
            (out->details.seen[dev->port] & (FAB_SEEN_SUBNET | FAB_SEEN_MISSING)) != FAB_SEEN_SUBNET;
    }
    return PMIXFAB_OK;
}

static int join_run(struct join *j, const struct fab_ethernet_plane *planes, uint32_t n_planes)
{
    j->trouble = join_alloc(j, j->n_reports, sizeof(*j->trouble));
    int rc = j->no_memory ? PMIXFAB_ERR_NOMEM : join_planes_read(j, planes, n_planes);
    int (*const passes[])(struct join *) = {
        sort_reports,  join_cache_pair,   join_read,  join_hosts, join_match,   join_ethernet,     join_nodes,
        join_switches, join_number_guids, join_build, join_names, join_details, join_count_devices};
    for (size_t i = 0; i < sizeof(passes) / sizeof(passes[0]) && rc == PMIXFAB_OK; i++) {
        rc = passes[i](j);
        join_free_blocks(&j->temporary);
    }
    return rc;
}

static void join_release(struct join *j)
{
    join_groups_free(&j->groups);
    free(j->words);
    free(j->switches);
    free(j->sources);
    join_free_blocks(&j->kept);
    join_free_blocks(&j->temporary);
}

static int join_with_cache(struct fab_join_cache *cache, const struct fab_join_input *input,
                           struct fab_joined *out, struct fab_err *err)
{
    const struct fab_inventory *swept = input->swept;
    if (out == NULL)
        return PMIXFAB_ERR_INVAL;
    memset(out, 0, sizeof(*out));
    if (err != NULL)
        err->text[0] = '\0';
    if (swept == NULL || !swept->finished)
        return fab_fail(err, PMIXFAB_ERR_INVAL, "joining: the sweep's inventory is not finished");
    for (uint32_t r = 0; r < input->n_reports; r++)
        if (input->reports[r] == NULL || !input->reports[r]->finished)
            return fab_fail(err, PMIXFAB_ERR_INVAL, "joining: a host's report is not finished");
    struct join j = {.swept = swept,
                     .reports = input->reports,
                     .n_reports = input->n_reports,
                     .past = input->past,
                     .cache = cache,
                     .digests = cache == NULL ? NULL : input->digests,
                     .err = err,
                     .unattached = FAB_NONE,
                     .out = out};
    int rc = join_run(&j, input->planes, input->n_planes);
    out->n_refused = j.n_refused;
    if (rc == PMIXFAB_OK)
        join_report_troubles(&j, input);
    else
        fab_joined_destroy(out);
    if (rc == PMIXFAB_OK && cache != NULL)
        join_cache_keep(&j);
    join_release(&j);
    if (rc != PMIXFAB_OK && (err == NULL || err->text[0] == '\0'))
        fab_fail(err, rc, "joining %" PRIu32 " reports to a fabric of %" PRIu32 " nodes: %s",
                 input->n_reports, swept->n_nodes, pmixfab_strerror(rc));
    return rc;
}

int fab_join(struct fab_join_cache *cache, const struct fab_join_input *input, struct fab_joined *out,
             struct fab_err *err)
{
    if (input->digests == NULL)
        cache = NULL;
    int rc = join_with_cache(cache, input, out, err);
    if (cache == NULL || (rc != PMIXFAB_ERR_NOMEM && rc != PMIXFAB_ERR_RANGE))
        return rc;
    join_cache_clear(cache); /* retry without it: there may be memory then */
    return join_with_cache(NULL, input, out, err);
}

void fab_joined_destroy(struct fab_joined *joined)
{
    if (joined == NULL)
        return;
    fab_inventory_destroy(&joined->inv);
    free(joined->details.first);
    free(joined->details.facts);
    free(joined->details.places);
    free(joined->details.seen);
    free(joined->details.pool);
    free(joined->hosts);
    free(joined->contested);
    memset(joined, 0, sizeof(*joined));
}
