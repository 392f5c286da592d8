/*
 * lldp.c - the probe `lldp`: the switches that this host's interfaces are cabled to, as lldpd heard them.
 *
 * LLDPD_SOCKET in the environment names lldpd's socket where it is not the usual one.
 */
#include "probes/lldp/lldp.h"

#include <stdio.h>
#include <stdlib.h>

#include "probes/core/record.h"

static int lldp_scan(const struct probe_config *config, const struct probe_sink *sink,
                     struct fab_report *report, struct fab_err *err)
{
    struct lldp_output output;
    int rc = config->arg != NULL ? record_file(config->arg, &output.text, &output.size, err)
                                 : lldp_ask(getenv("LLDPD_SOCKET"), LLDP_DEADLINE_MS, &output, err);
    if (rc == PMIXFAB_OK)
        rc = lldp_read(output.text, output.size, config->arg != NULL ? config->arg : "lldpctl", sink, report,
                       err);
    free(output.text);
    return rc;
}

static int lldp_available(char *text, size_t size)
{
    const struct probe_config config = {0};
    struct fab_report report;
    struct fab_err err = {{0}};
    fab_report_init(&report);
    int rc = lldp_scan(&config, NULL, &report, &err);
    if (rc == PMIXFAB_OK)
        snprintf(text, size, "lldpd answers, switches on %u interface%s", report.n_items,
                 report.n_items == 1 ? "" : "s");
    else
        snprintf(text, size, "%s", err.text);
    fab_report_destroy(&report);
    return rc;
}

__attribute__((visibility("default"))) const struct probe fabricd_probe = {
    .name = "lldp",
    .summary = "this host: the switches that its interfaces are cabled to, by lldpd; or FILE, a recorded "
               "machine or what `lldpctl -f json0` said",
    .scan = lldp_scan,
    .available = lldp_available,
};
