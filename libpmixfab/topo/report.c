#include "topo/report.h"

#include <stdlib.h>
#include <string.h>

void fab_report_init(struct fab_report *report)
{
    memset(report, 0, sizeof(*report));
}

void fab_report_destroy(struct fab_report *report)
{
    free(report->items);
    free(report->facts);
    free(report->owner);
    free(report->pool);
    fab_report_init(report);
}

int fab_report_host(struct fab_report *report, const char *host, struct fab_err *err)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
    size_t len = strlen(host);
    if (len == 0 || len > FAB_HOST_MAX || strspn(host, allowed) != len || host[0] == '.' || host[0] == '-')
        return fab_fail(err, PMIXFAB_ERR_SYNTAX,
                        "\"%.60s\" is no name of a host: letters, digits, dots, dashes, at most %d", host,
                        FAB_HOST_MAX);
    memcpy(report->host, host, len + 1);
    report->finished = false;
    return PMIXFAB_OK;
}
