/*
 * publish_reports.c - the reports' part of a publication: what is new in them, and joining them with the
 * sweep.
 *
 * Which report of each host was published last stands in the store, written in the transaction that publishes
 * it; so whatever moment the process dies at, the history gets each change of a report once.
 */
#include <stdlib.h>
#include <string.h>

#include "fabricd/base/log.h"
#include "fabricd/engine/update.h"
#include "topo/base/array.h"
#include "topo/changes/changes.h"

static int published_nomem(struct fab_err *err)
{
    return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
}

void published_reports_free(struct published_reports *list)
{
    for (uint32_t i = 0; i < list->n; i++)
        free(list->reports[i].host);
    free(list->reports);
    *list = (struct published_reports){0};
}

static int published_compare_host(const void *a, const void *b)
{
    const struct published_report *x = a, *y = b;
    return strcmp(x->host, y->host);
}

static struct published_report *published_find(const struct published_reports *list, const char *host)
{
    struct published_report key = {.host = (char *)host};
    return list->n == 0 ? NULL : bsearch(&key, list->reports, list->n, sizeof(key), published_compare_host);
}

static int published_append(struct published_reports *list, const char *host, uint64_t digest,
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
    list->failed |= published_append(list, report->host, report->digest, report->received) != PMIXFAB_OK;
    return list->failed;
}

int publisher_read_reports(struct publisher *publisher, struct fab_err *err)
{
    struct published_reports *list = &publisher->reports;
    int rc = store_reports_published(publisher->store, add_stored, list, err);
    if (rc == PMIXFAB_OK && list->failed)
        rc = published_nomem(err);
    if (list->n > 1)
        qsort(list->reports, list->n, sizeof(*list->reports), published_compare_host);
    return rc;
}

void announced_free(struct announced *announced)
{
    published_reports_free(&announced->next);
    free(announced->rows);
    *announced = (struct announced){0};
}

/* The report that was published last. One that cannot be read any more (it is of another version of fabricd)
 * counts as none. */
static int read_published(struct publisher *publisher, const char *host, struct fab_report *out,
                          struct fab_err *err)
{
    struct fab_err why = {""};
    void *bytes;
    size_t size;
    fab_report_init(out);
    int rc = store_report_published(publisher->store, host, &bytes, &size, err);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = fab_report_decode(bytes, size, out, &why);
    free(bytes);
    if (rc == PMIXFAB_ERR_NOMEM)
        return published_nomem(err);
    if (rc != PMIXFAB_OK)
        log_warning("store: what was published of %s cannot be compared: %s", host, why.text);
    return PMIXFAB_OK;
}

/* One host whose report is another than the one published last. NULL: there was none, or is none any more. */
static int tell_one(struct publisher *publisher, const struct published_report *before,
                    const struct node_report *after, struct announced *announced, struct fab_diff *diff,
                    struct fab_err *err)
{
    struct fab_report old;
    struct fab_diff changes = {0};
    fab_report_init(&old);
    int rc = before == NULL ? PMIXFAB_OK : read_published(publisher, before->host, &old, err);
    const struct fab_report *from = old.finished ? &old : NULL, *to = after == NULL ? NULL : &after->report;
    if (rc == PMIXFAB_OK && (from != NULL || to != NULL) &&
        fab_report_changes(from, to, &changes) != PMIXFAB_OK)
        rc = published_nomem(err);
    publish_stamp(&changes, after == NULL ? 0 : after->received, before == NULL ? 0 : before->received);
    if (rc == PMIXFAB_OK && fab_diff_move(diff, &changes) != PMIXFAB_OK)
        rc = published_nomem(err);
    fab_diff_destroy(&changes);
    fab_report_destroy(&old);
    announced->rows[announced->n++] =
        (struct store_report){.host = after == NULL ? before->host : after->report.host,
                              .digest = after == NULL ? 0 : after->digest};
    return rc;
}

int publish_tell(struct publisher *publisher, const struct node_report *const *reports, uint32_t n,
                 struct fab_diff *diff, struct announced *announced, struct fab_err *err)
{
    const struct published_reports *before = &publisher->reports;
    int rc = PMIXFAB_OK;
    *announced = (struct announced){.rows = calloc((size_t)n + before->n + 1, sizeof(*announced->rows))};
    if (announced->rows == NULL)
        return published_nomem(err);
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < n; i++) {
        const struct published_report *old = published_find(before, reports[i]->report.host);
        if (published_append(&announced->next, reports[i]->report.host, reports[i]->digest,
                             reports[i]->received) != PMIXFAB_OK)
            rc = published_nomem(err);
        else if (old == NULL || old->digest != reports[i]->digest)
            rc = tell_one(publisher, old, reports[i], announced, diff, err);
    }
    if (announced->next.n > 1) /* they come in natural order */
        qsort(announced->next.reports, announced->next.n, sizeof(*announced->next.reports),
              published_compare_host);
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < before->n; i++)
        if (published_find(&announced->next, before->reports[i].host) == NULL)
            rc = tell_one(publisher, &before->reports[i], NULL, announced, diff, err);
    fab_diff_sort(diff);
    return rc;
}

bool publish_was_announced(const struct publisher *publisher, const char *host, uint64_t digest)
{
    const struct published_report *published = published_find(&publisher->reports, host);
    return published != NULL && published->digest == digest;
}

void publish_announced(struct publisher *publisher, struct announced *announced)
{
    struct published_reports old = publisher->reports;
    publisher->reports = announced->next;
    announced->next = old; /* the rows point at names in it */
}
