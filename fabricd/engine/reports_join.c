/*
 * reports_join.c - the reports' part of a publication: their changes, and the join with the sweep.
 *
 * The store records the last published report of each host, in the transaction that publishes it. So the
 * history gets each change of a report exactly once, at whatever moment the process dies.
 */
#include <stdlib.h>
#include <string.h>

#include "fabricd/base/log.h"
#include "fabricd/engine/publisher.h"
#include "topo/base/array.h"
#include "topo/base/natural.h"
#include "topo/base/order.h"
#include "topo/base/search.h"
#include "topo/changes/changes.h"
#include "topo/model/host_name.h"
#include "topo/snapshot/reader.h"

/* ---- the last published reports -------------------------------------------------------------------- */

void published_reports_free(struct published_reports *list)
{
    for (uint32_t i = 0; i < list->n; i++)
        free(list->reports[i].host);
    free(list->reports);
    *list = (struct published_reports){0};
}

static int compare_published(const void *a, const void *b)
{
    const struct published_report *x = a, *y = b;
    return strcmp(x->host, y->host);
}

static void sort_published(struct published_reports *list)
{
    if (list->n > 1)
        qsort(list->reports, list->n, sizeof(*list->reports), compare_published);
}

static struct published_report *find_published(const struct published_reports *list, const char *host)
{
    const struct published_report key = {.host = (char *)host};
    return list->n == 0 ? NULL : bsearch(&key, list->reports, list->n, sizeof(key), compare_published);
}

static int append_published(struct published_reports *list, const char *host, uint64_t digest,
                            int64_t received)
{
    char *copy = FAB_ARRAY_ROOM(&list->reports, &list->room, list->n + 1) ? strdup(host) : NULL;
    if (copy == NULL)
        return PMIXFAB_ERR_NOMEM;
    list->reports[list->n++] =
        (struct published_report){.host = copy, .digest = digest, .received = received};
    return PMIXFAB_OK;
}

static int add_stored(const struct store_report *report, void *cbdata)
{
    struct published_reports *list = cbdata;
    list->failed |= append_published(list, report->host, report->digest, report->received) != PMIXFAB_OK;
    return list->failed;
}

int reports_load(struct publisher *publisher, struct fab_err *err)
{
    struct published_reports *list = &publisher->reports;
    int rc = store_reports_published(publisher->store, add_stored, list, err);
    if (rc == PMIXFAB_OK && list->failed)
        rc = no_memory(err);
    sort_published(list);
    return rc;
}

/* ---- changes of reports ---------------------------------------------------------------------------- */

void announced_free(struct announced *announced)
{
    published_reports_free(&announced->next);
    free(announced->rows);
    *announced = (struct announced){0};
}

/* Read the last published report. A report that cannot be read any more (from another version of fabricd)
 * counts as none. */
static int read_published(struct publisher *publisher, const char *host, struct fab_report *out,
                          struct fab_err *err)
{
    struct fab_err why = {""};
    void *bytes;
    size_t size;
    int rc = store_report_published(publisher->store, host, &bytes, &size, err);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = fab_report_decode(bytes, size, out, &why);
    free(bytes);
    if (rc == PMIXFAB_ERR_NOMEM)
        return no_memory(err);
    if (rc != PMIXFAB_OK)
        log_warning("store: cannot compare the published report of %s: %s", host, why.text);
    return PMIXFAB_OK;
}

/* Report the changes of a host whose report differs from the last published one. NULL: there was none, or is
 * none any more. */
static int announce_one(struct publisher *publisher, const struct published_report *before,
                        const struct node_report *after, struct announced *announced, struct fab_diff *diff,
                        struct fab_err *err)
{
    struct fab_report old;
    struct fab_diff changes = {0};
    fab_report_init(&old);
    announced->rows[announced->n++] =
        (struct store_report){.host = after == NULL ? before->host : after->report.host,
                              .digest = after == NULL ? 0 : after->digest};
    int rc = before == NULL ? PMIXFAB_OK : read_published(publisher, before->host, &old, err);
    if (rc != PMIXFAB_OK)
        goto cleanup;
    const struct fab_report *from = old.finished ? &old : NULL, *to = after == NULL ? NULL : &after->report;
    if (from != NULL || to != NULL)
        rc = fab_report_changes(from, to, &changes);
    publish_stamp(&changes, after == NULL ? 0 : after->received, before == NULL ? 0 : before->received);
    if (rc != PMIXFAB_OK || fab_diff_move(diff, &changes) != PMIXFAB_OK)
        rc = no_memory(err);
cleanup:
    fab_diff_destroy(&changes);
    fab_report_destroy(&old);
    return rc;
}

int reports_announce(struct publisher *publisher, const struct publish_request *input, struct fab_diff *diff,
                     struct announced *announced, struct fab_err *err)
{
    const struct published_reports *before = &publisher->reports;
    const uint32_t n = input->n_reports;
    int rc = PMIXFAB_OK;
    *announced = (struct announced){.rows = calloc((size_t)n + before->n + 1, sizeof(*announced->rows))};
    if (announced->rows == NULL)
        return no_memory(err);
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < n; i++) {
        const struct node_report *report = input->reports[i];
        const struct published_report *old = find_published(before, report->report.host);
        if (append_published(&announced->next, report->report.host, report->digest, report->received) !=
            PMIXFAB_OK)
            rc = no_memory(err);
        else if (old == NULL || old->digest != report->digest)
            rc = announce_one(publisher, old, report, announced, diff, err);
    }
    sort_published(&announced->next); /* they come in natural order */
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < before->n; i++)
        if (find_published(&announced->next, before->reports[i].host) == NULL)
            rc = announce_one(publisher, &before->reports[i], NULL, announced, diff, err);
    fab_diff_sort(diff);
    return rc;
}

void reports_accept(struct publisher *publisher, struct announced *announced)
{
    struct published_reports old = publisher->reports;
    publisher->reports = announced->next;
    announced->next = old; /* the rows reference names in it */
}

/* ---- owners of GUIDs and MACs in the served state -------------------------------------------------- */

void prior_owner_open(struct prior_owner *prior, struct served *served)
{
    *prior = (struct prior_owner){.served = served_get(served)};
}

void prior_owner_close(struct prior_owner *prior)
{
    served_set_put(prior->served);
    free(prior->macs.entries);
    free(prior->ids.entries);
    *prior = (struct prior_owner){0};
}

static int compare_owners(const void *a, const void *b)
{
    const struct prior_owner_entry *x = a, *y = b;
    return FAB_ORDER(x->value, y->value) ?: FAB_ORDER(x->node, y->node) ?: FAB_ORDER(x->place, y->place);
}

static void collect_owners(const struct served_set *served, enum fab_fact kind,
                           struct prior_owner_table *table)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < served->n; i++)
        most += served->planes[i]->fab->meta->n_devices;
    table->collected = true;
    table->entries = calloc((size_t)most + 1, sizeof(*table->entries));
    if (table->entries == NULL)
        return;
    for (uint32_t i = 0; i < served->n; i++) {
        const struct pmixfab *fab = served->planes[i]->fab;
        for (uint32_t d = 0; d < fab->meta->n_devices; d++) {
            uint64_t node, value = fab_reader_said(fab, d, kind, &node);
            if (value == 0)
                continue;
            table->entries[table->n] =
                (struct prior_owner_entry){value, node, fab_reader_host(fab, fab->costs.host[d]), table->n};
            table->n++;
        }
    }
    qsort(table->entries, table->n, sizeof(*table->entries), compare_owners);
}

const char *prior_owner_of(void *cbdata, enum fab_fact kind, uint64_t value, uint64_t node)
{
    struct prior_owner *prior = cbdata;
    struct prior_owner_table *table = kind == FAB_FACT_MAC ? &prior->macs : &prior->ids;
    if (prior->served == NULL)
        return NULL;
    for (uint32_t i = 0; kind != FAB_FACT_MAC && i < prior->served->n; i++) {
        const char *host = fab_reader_holder(prior->served->planes[i]->fab, kind, value, node);
        if (host != NULL)
            return host;
    }
    if (kind != FAB_FACT_MAC && kind != FAB_FACT_SYSTEM_GUID)
        return NULL;
    if (!table->collected)
        collect_owners(prior->served, kind, table);
    const struct prior_owner_entry wanted = {.value = value, .node = node};
    uint32_t at = FAB_LOWER_BOUND(0, table->n, i, compare_owners(&table->entries[i], &wanted) < 0);
    const struct prior_owner_entry *found = at < table->n ? &table->entries[at] : NULL;
    return found != NULL && found->value == value && found->node == node ? found->host : NULL;
}

/* ---- results of the join --------------------------------------------------------------------------- */

void join_findings_free(struct join_findings *findings)
{
    for (uint32_t i = 0; i < findings->n_remarks; i++)
        free(findings->remarks[i]);
    free(findings->remarks);
    for (uint32_t i = 0; i < findings->n_hosts; i++)
        free(findings->hosts[i].name);
    free(findings->hosts);
    *findings = (struct join_findings){0};
}

static int compare_remarks(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* List the hosts that report, in natural order, with the results of the join. */
static int list_hosts(struct join_findings *findings, const struct node_report *const *reports, uint32_t n,
                      const struct fab_joined *joined)
{
    findings->hosts = calloc((size_t)n + 1, sizeof(*findings->hosts));
    if (findings->hosts == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t i = 0; i < n; i++) {
        struct joined_host *host = &findings->hosts[i];
        host->name = strdup(reports[i]->report.host);
        if (host->name == NULL)
            return PMIXFAB_ERR_NOMEM;
        findings->n_hosts++;
        host->devices = i < joined->n_hosts ? joined->hosts[i].devices : 0;
        host->unseen = i < joined->n_hosts ? joined->hosts[i].unseen : 0;
    }
    return PMIXFAB_OK;
}

/* ---- joining --------------------------------------------------------------------------------------- */

struct joining {
    struct prior_owner prior; /* the first member */
    const struct publisher *publisher;
    const struct guids *elsewhere;
    const struct node_report *const *reports; /* natural order */
    uint32_t n;
    struct join_findings found; /* its results; only new remarks are logged */
};

static void on_remark(const char *line, void *cbdata)
{
    struct joining *joining = cbdata;
    struct join_findings *now = &joining->found;
    const struct join_findings *before = &joining->publisher->found;
    if (before->n_remarks == 0 ||
        bsearch(&line, before->remarks, before->n_remarks, sizeof(line), compare_remarks) == NULL)
        log_warning("reports: %s", line);
    char *copy = FAB_ARRAY_ROOM(&now->remarks, &now->room, now->n_remarks + 1) ? strdup(line) : NULL;
    if (copy != NULL) /* without memory the remark is logged again next time */
        now->remarks[now->n_remarks++] = copy;
}

/* Return whether the served state has a device of this host that claims to be that node without success. Then
 * no host has the node because several claim it, not because it was found elsewhere. */
static bool claims_in_vain(const struct served_set *served, const char *host, uint64_t guid)
{
    for (uint32_t i = 0; served != NULL && i < served->n; i++)
        if (fab_reader_disowned(served->planes[i]->fab, host, guid))
            return true;
    return false;
}

/*
 * Return whether the host's claim is outdated. A card that was found at another place without a name may
 * belong to another host by now. The served state records that: no host has the card. A report other than the
 * published one is newer than that.
 */
static bool is_old_word(void *cbdata, const char *host, uint64_t guid)
{
    const struct joining *joining = cbdata;
    const struct guids *elsewhere = joining->elsewhere;
    uint32_t at =
        FAB_LOWER_BOUND(0, joining->n, i, fab_natural_cmp(joining->reports[i]->report.host, host) < 0);
    const struct published_report *published = find_published(&joining->publisher->reports, host);
    if (at == joining->n || published == NULL || published->digest != joining->reports[at]->digest)
        return false;
    at = elsewhere == NULL ? 0 : FAB_LOWER_BOUND(0, elsewhere->n, i, elsewhere->guids[i] < guid);
    if (elsewhere != NULL && at < elsewhere->n && elsewhere->guids[at] == guid)
        return true;
    const char *served = prior_owner_of(cbdata, FAB_FACT_NODE_GUID, guid, 0);
    return served != NULL && (fab_host_is_local(served) || strncmp(served, "0x", 2) == 0) &&
           !claims_in_vain(joining->prior.served, host, guid);
}

/* Return whether the claims to it are flapping. */
static bool came_and_went(void *cbdata, uint64_t guid)
{
    const struct joining *joining = cbdata;
    const struct damping_key key = damping_switch(guid);
    return damping_find(joining->publisher->claims, &key) != NULL;
}

static int join_reports(struct joining *joining, const struct fab_inventory *swept, struct fab_joined *out,
                        struct fab_err *err)
{
    const struct publisher *publisher = joining->publisher;
    const struct fab_prior_owners past = {prior_owner_of, joining, is_old_word, came_and_went};
    struct ethernet_planes ethernet;
    int rc = PMIXFAB_ERR_NOMEM;
    const struct fab_report **list = calloc((size_t)joining->n + 1, sizeof(const struct fab_report *));
    uint64_t *digests = calloc((size_t)joining->n + 1, sizeof(*digests));
    prior_owner_open(&joining->prior, publisher->served);
    if (list == NULL || digests == NULL) {
        no_memory(err);
        goto cleanup;
    }
    for (uint32_t i = 0; i < joining->n; i++) {
        list[i] = &joining->reports[i]->report;
        digests[i] = joining->reports[i]->digest;
    }
    ethernet_planes(publisher->config, &ethernet);
    rc = fab_join(publisher->joins,
                  &(struct fab_join_input){.swept = swept,
                                           .reports = list,
                                           .digests = digests,
                                           .n_reports = joining->n,
                                           .planes = ethernet.planes,
                                           .n_planes = ethernet.n,
                                           .past = &past,
                                           .remark = on_remark,
                                           .cbdata = joining},
                  out, err);
cleanup:
    prior_owner_close(&joining->prior);
    free(list);
    free(digests);
    return rc;
}

int reports_join(struct publisher *publisher, const struct fab_inventory *swept,
                 const struct guids *elsewhere, const struct node_report *const *reports, uint32_t n,
                 struct fab_joined *out, struct fab_err *err)
{
    struct joining joining = {.publisher = publisher, .elsewhere = elsewhere, .reports = reports, .n = n};
    bool any = false;
    int rc;
    for (uint32_t i = 0; i < n; i++)
        any |= reports[i]->report.n_items > 0;
    if (any) {
        rc = join_reports(&joining, swept, out, err);
    } else { /* the swept inventory is complete, and already has what reports would add */
        memset(out, 0, sizeof(*out));
        rc = fab_inventory_copy(&out->inv, swept) == PMIXFAB_OK ? PMIXFAB_OK : no_memory(err);
    }
    if (rc == PMIXFAB_OK && list_hosts(&joining.found, reports, n, out) != PMIXFAB_OK) {
        rc = no_memory(err);
        fab_joined_destroy(out);
    }
    if (rc != PMIXFAB_OK) {
        join_findings_free(&joining.found);
        return rc;
    }
    if (joining.found.n_remarks > 1)
        qsort(joining.found.remarks, joining.found.n_remarks, sizeof(*joining.found.remarks),
              compare_remarks);
    join_findings_free(&publisher->found);
    publisher->found = joining.found;
    return PMIXFAB_OK;
}

/* ---- queries --------------------------------------------------------------------------------------- */

bool publisher_joined(const struct publisher *publisher, const char *host, struct joined_host *out)
{
    const struct join_findings *found = &publisher->found;
    uint32_t at = FAB_LOWER_BOUND(0, found->n_hosts, i, fab_natural_cmp(found->hosts[i].name, host) < 0);
    if (at == found->n_hosts || fab_natural_cmp(found->hosts[at].name, host) != 0)
        for (at = 0; at < found->n_hosts && !fab_same_host(found->hosts[at].name, host);)
            at++;
    if (at < found->n_hosts)
        *out = found->hosts[at];
    return at < found->n_hosts;
}

const char *publisher_remark(const struct publisher *publisher, const char *host, uint32_t *from)
{
    const struct join_findings *found = &publisher->found;
    const size_t len = strlen(host);
    if (*from == 0)
        *from = FAB_LOWER_BOUND(0, found->n_remarks, i, strncmp(found->remarks[i], host, len) < 0);
    while (*from < found->n_remarks && strncmp(found->remarks[*from], host, len) == 0) {
        const char *line = found->remarks[(*from)++];
        if (strncmp(line + len, ": ", 2) == 0)
            return line + len + 2;
    }
    return NULL;
}
