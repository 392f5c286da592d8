/* publish_join.c - joining the reports with what was swept, and what that finds out of each host. */
#include <stdlib.h>
#include <string.h>

#include "fabricd/base/log.h"
#include "fabricd/engine/ethernet_planes.h"
#include "fabricd/engine/prior_owner.h"
#include "fabricd/engine/update.h"
#include "topo/base/natural.h"
#include "topo/base/search.h"
#include "topo/model/host_name.h"

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

/* ---- remarks --------------------------------------------------------------------------------------- */

/* Those of this joining, beside those of the last one: only what is new is said. */
struct remarks {
    const struct join_findings *before;
    struct join_findings *now;
};

static int compare_remarks(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool was_said(const struct join_findings *before, const char *line)
{
    return before->n_remarks > 0 &&
           bsearch(&line, before->remarks, before->n_remarks, sizeof(line), compare_remarks) != NULL;
}

static void on_remark(const char *line, void *cbdata)
{
    struct remarks *remarks = cbdata;
    struct join_findings *now = remarks->now;
    if (!was_said(remarks->before, line))
        log_warning("reports: %s", line);
    char *copy = strdup(line);
    char **larger = reallocarray(now->remarks, (size_t)now->n_remarks + 1, sizeof(char *));
    if (larger != NULL)
        now->remarks = larger;
    if (larger != NULL && copy != NULL)
        larger[now->n_remarks++] = copy;
    else
        free(copy); /* without memory it is said again next time */
}

/* ---- hosts ----------------------------------------------------------------------------------------- */

static int finding_compare_host(const void *a, const void *b)
{
    const struct joined_host *x = a, *y = b;
    return fab_natural_cmp(x->name, y->name);
}

/* The hosts that report, and what joining found of them. */
static int finding_list_hosts(struct join_findings *findings, const struct node_report *const *reports,
                              uint32_t n, const struct fab_joined *joined)
{
    findings->hosts = calloc((size_t)n + 1, sizeof(*findings->hosts));
    if (findings->hosts == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t i = 0; i < n; i++) {
        findings->hosts[i].name = strdup(reports[i]->report.host);
        if (findings->hosts[i].name == NULL)
            return PMIXFAB_ERR_NOMEM;
        findings->n_hosts++;
    }
    if (n > 1)
        qsort(findings->hosts, n, sizeof(*findings->hosts), finding_compare_host);
    for (uint32_t i = 0; i < n && i < joined->n_hosts; i++) {
        findings->hosts[i].devices = joined->hosts[i].devices;
        findings->hosts[i].unseen = joined->hosts[i].unseen;
    }
    return PMIXFAB_OK;
}

struct fab_host_choice publisher_choose_host(const struct publisher *publisher, const char *name)
{
    const struct fab_inventory *inv = &publisher->current;
    struct fab_host_choice choice = {0};
    for (uint32_t i = 0; i < inv->n_nodes; i++)
        if (inv->nodes[i].kind == FAB_HCA)
            fab_choose_host(&choice, name, fab_str(inv, inv->nodes[i].host));
    return choice;
}

bool publisher_joined(const struct publisher *publisher, const char *host, struct joined_host *out)
{
    const struct join_findings *findings = &publisher->found;
    const struct joined_host key = {.name = (char *)host}, *found = NULL;
    if (findings->n_hosts > 0)
        found = bsearch(&key, findings->hosts, findings->n_hosts, sizeof(key), finding_compare_host);
    for (uint32_t i = 0; found == NULL && i < findings->n_hosts; i++)
        if (fab_same_host(findings->hosts[i].name, host))
            found = &findings->hosts[i];
    if (found != NULL)
        *out = *found;
    return found != NULL;
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

/* ---- what was before ------------------------------------------------------------------------------ */

struct join_past {
    struct prior_owner prior; /* the first member */
    const struct publisher *publisher;
    const struct guids *elsewhere;
    const struct node_report *const *reports; /* natural order */
    uint32_t n;
};

/*
 * A card that was found at another place without a name may be another host's by now, whatever its host
 * said before. What is served remembers that: it is nobody's there. A report that is not the published one
 * was made after that.
 */
static bool is_old_word(void *cbdata, const char *host, uint64_t guid)
{
    const struct join_past *past = cbdata;
    const struct guids *elsewhere = past->elsewhere;
    uint32_t at = FAB_LOWER_BOUND(0, past->n, i, fab_natural_cmp(past->reports[i]->report.host, host) < 0);
    if (at == past->n || !publish_was_announced(past->publisher, host, past->reports[at]->digest))
        return false;
    at = elsewhere == NULL ? 0 : FAB_LOWER_BOUND(0, elsewhere->n, i, elsewhere->guids[i] < guid);
    if (elsewhere != NULL && at < elsewhere->n && elsewhere->guids[at] == guid)
        return true;
    const char *served = prior_owner_of(cbdata, FAB_FACT_NODE_GUID, guid, 0);
    return served != NULL && (fab_host_is_local(served) || strncmp(served, "0x", 2) == 0);
}

/* ---- joining --------------------------------------------------------------------------------------- */

static int publish_join_reports(struct publisher *publisher, const struct fab_inventory *swept,
                                const struct guids *elsewhere, const struct node_report *const *reports,
                                uint32_t n, struct remarks *remarks, struct fab_joined *out,
                                struct fab_err *err)
{
    struct ethernet_planes ethernet;
    struct join_past before = {.publisher = publisher, .elsewhere = elsewhere, .reports = reports, .n = n};
    const struct fab_prior_owners past = {prior_owner_of, &before, is_old_word};
    const struct fab_report **list = calloc((size_t)n + 1, sizeof(const struct fab_report *));
    prior_owner_open(&before.prior, publisher->served);
    uint64_t *digests = calloc((size_t)n + 1, sizeof(*digests));
    int rc = PMIXFAB_ERR_NOMEM;
    if (list == NULL || digests == NULL) {
        fab_fail(err, rc, "out of memory");
    } else {
        for (uint32_t i = 0; i < n; i++) {
            list[i] = &reports[i]->report;
            digests[i] = reports[i]->digest;
        }
        ethernet_planes(publisher->config, &ethernet);
        rc = fab_join(publisher->joins,
                      &(struct fab_join_input){.swept = swept,
                                               .reports = list,
                                               .digests = digests,
                                               .n_reports = n,
                                               .planes = ethernet.planes,
                                               .n_planes = ethernet.n,
                                               .past = &past,
                                               .remark = on_remark,
                                               .cbdata = remarks},
                      out, err);
    }
    prior_owner_close(&before.prior);
    free(list);
    free(digests);
    return rc;
}

/* Does any host tell of anything? */
static bool somebody_reports(const struct node_report *const *reports, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (reports[i]->report.n_items > 0)
            return true;
    return false;
}

/* Nobody does: what was swept is all that there is, and says of itself what would be a fact. */
static int join_nobody(const struct fab_inventory *swept, struct fab_joined *out, struct fab_err *err)
{
    memset(out, 0, sizeof(*out));
    int rc = fab_inventory_copy(&out->inv, swept);
    return rc == PMIXFAB_OK ? rc : fab_fail(err, rc, "out of memory");
}

int publish_join(struct publisher *publisher, const struct fab_inventory *swept,
                 const struct guids *elsewhere, const struct node_report *const *reports, uint32_t n,
                 struct fab_joined *out, struct fab_err *err)
{
    struct join_findings found = {0};
    struct remarks remarks = {.before = &publisher->found, .now = &found};
    int rc = somebody_reports(reports, n)
                 ? publish_join_reports(publisher, swept, elsewhere, reports, n, &remarks, out, err)
                 : join_nobody(swept, out, err);
    if (rc == PMIXFAB_OK && finding_list_hosts(&found, reports, n, out) != PMIXFAB_OK) {
        rc = fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
        fab_joined_destroy(out);
    }
    if (rc != PMIXFAB_OK) {
        join_findings_free(&found);
        return rc;
    }
    if (found.n_remarks > 1)
        qsort(found.remarks, found.n_remarks, sizeof(*found.remarks), compare_remarks);
    join_findings_free(&publisher->found);
    publisher->found = found;
    return PMIXFAB_OK;
}
