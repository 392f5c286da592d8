#include "fabricd/findings/findings.h"

#include <stdlib.h>

struct findings {
    struct fab_findings otherwise[FAB_CHECK_KINDS]; /* known of each kind, not by the inventory */
};

struct findings *findings_new(void)
{
    return calloc(1, sizeof(struct findings));
}

void findings_free(struct findings *findings)
{
    if (findings == NULL)
        return;
    for (int kind = 0; kind < FAB_CHECK_KINDS; kind++)
        fab_findings_destroy(&findings->otherwise[kind]);
    free(findings);
}

void findings_replace(struct findings *findings, enum fab_check_kind kind, struct fab_findings *list)
{
    fab_findings_destroy(&findings->otherwise[kind]);
    findings->otherwise[kind] = *list;
    *list = (struct fab_findings){0};
}

int findings_now(const struct findings *findings, const struct fab_findings *served, struct fab_findings *out)
{
    *out = (struct fab_findings){0};
    int rc = fab_findings_copy(out, served);
    for (int kind = 0; rc == PMIXFAB_OK && kind < FAB_CHECK_KINDS; kind++)
        rc = fab_findings_copy(out, &findings->otherwise[kind]);
    if (rc == PMIXFAB_OK)
        fab_findings_sort(out);
    else
        fab_findings_destroy(out);
    return rc;
}
