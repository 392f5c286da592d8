/* publish_check.c - what looks wrong in what is served, looked for when somebody asks. */
#include "fabricd/publish_priv.h"

int publisher_check(struct publisher *publisher, const struct node_report *const *reports, uint32_t n,
                    const struct fab_findings **out, struct fab_err *err)
{
    struct fab_joined joined;
    *out = &publisher->findings;
    if (publisher->checked)
        return PMIXFAB_OK;
    int rc = publish_join(publisher, &publisher->current, reports, n, &joined, err);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = fab_check(&joined.inv, &joined.details, &publisher->findings);
    fab_joined_destroy(&joined);
    publisher->checked = rc == PMIXFAB_OK;
    return rc == PMIXFAB_OK ? rc : fab_fail(err, rc, "check: %s", pmixfab_strerror(rc));
}
