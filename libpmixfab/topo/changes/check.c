#include "topo/changes/check.h"

#include "topo/changes/finding.h"

int fab_check(const struct fab_inventory *inv, const struct fab_details *details,
              const struct fab_lost *lost, struct fab_findings *out)
{
    struct fab_inventory whole;
    struct check c = {.inv = inv, .details = details, .out = out};
    *out = (struct fab_findings){0};
    if (!inv->finished || (details != NULL && details->n_ports != inv->n_ports))
        return PMIXFAB_ERR_INVAL;
    c.rc = check_put_back(inv, lost, &whole);
    c.whole = whole.finished ? &whole : inv;
    if (c.rc == PMIXFAB_OK)
        c.rc = fab_planes_build(inv, FAB_COST_HOPS, &c.planes, NULL);
    if (c.rc != PMIXFAB_OK)
        goto cleanup;
    check_links(&c);
    check_rates(&c);
    check_uplinks(&c);
    check_rails(&c);
    check_hosts(&c);
    check_names(&c);
    check_host_ports(&c);
    check_facts(&c);
    check_claims(&c);
cleanup:
    fab_planes_destroy(&c.planes);
    fab_inventory_destroy(&whole);
    if (c.rc != PMIXFAB_OK)
        fab_findings_destroy(out);
    else
        fab_findings_sort(out);
    return c.rc;
}
