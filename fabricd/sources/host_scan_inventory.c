/*
 * host_scan_inventory.c - write the report of the local probes as a delivery. It is for a PMIx server of this
 * host without a node daemon. The component in that server starts this program
 * (libpmixfab/mca/pnet/inventory_child.h).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/base/log.h"
#include "fabricd/process/child.h"
#include "fabricd/sources/host_scan.h"
#include "probes/registry.h"
#include "topo/model/delivery.h"

#define MAX_SECONDS 3600

struct inventory {
    struct event_base *base;
    struct fab_err err;
    int code;
};

static int scan_result_encode(const struct host_scan_result *result, void **bytes, size_t *size)
{
    void *body = NULL;
    const struct fab_report *report = &result->report;
    struct fab_delivery delivery = {
        .digest = fab_report_digest(report), .failed = result->failed_sources, .unknown = result->unknown};
    memcpy(delivery.host, report->host, sizeof(delivery.host));
    int rc = fab_report_encode(report, &body, &delivery.size);
    delivery.body = body;
    if (rc == PMIXFAB_OK)
        rc = fab_delivery_encode(&delivery, bytes, size);
    free(body);
    return rc;
}

static void inventory_on_scan(struct host_scan_result *result, void *arg)
{
    struct inventory *inventory = arg;
    void *bytes = NULL;
    size_t size = 0;
    event_base_loopbreak(inventory->base);
    if (result->report.n_items == 0 && result->failed > 0) {
        inventory->err = result->err;
        inventory->code = PMIXFAB_ERR_IO;
        return;
    }
    if (result->report.n_items == 0) {
        inventory->code = fab_fail(&inventory->err, PMIXFAB_ERR_UNSUPPORTED,
                                   "the probes found no device of %s", result->report.host);
        return;
    }
    inventory->code = scan_result_encode(result, &bytes, &size);
    if (inventory->code == PMIXFAB_OK)
        inventory->code = child_write(bytes, size);
    free(bytes);
}

/* argv: fabricd --inventory-child PID HOST SECONDS [PROBE...] */
static int inventory_configure(struct config *config, int argc, char **argv, struct fab_err *err)
{
    char *end;
    unsigned long seconds = strtoul(argv[4], &end, 10);
    if (end == argv[4] || *end != '\0' || seconds < 1 || seconds > MAX_SECONDS)
        return fab_fail(err, PMIXFAB_ERR_SYNTAX, "%.40s: not a number of seconds", argv[4]);
    config->deadline = (unsigned)seconds;
    int rc = config_text(&config->host, argv[3]);
    for (int i = 5; i < argc && rc == PMIXFAB_OK; i++) {
        struct probe_config probe_config = {.arg = NULL};
        const struct probe *probe = probe_find(argv[i], &probe_config.arg);
        if (probe == NULL || !probe_is_local(probe))
            return fab_fail(err, PMIXFAB_ERR_NOTFOUND, "there is no probe %.80s of this host", argv[i]);
        rc = probe->check(&probe_config, err);
        if (rc == PMIXFAB_OK)
            rc = config_append(&config->probes, argv[i]);
    }
    return rc == PMIXFAB_OK && argc == 5 ? host_scan_default_probes(config) : rc;
}

static int inventory_child_scan(int argc, char **argv, struct inventory *inventory)
{
    struct config config;
    struct host_scan *scanning = NULL;
    config_init(&config);
    config_clear(&config.probes);
    int rc = inventory_configure(&config, argc, argv, &inventory->err);
    if (rc == PMIXFAB_OK && (inventory->base = event_base_new()) == NULL)
        rc = PMIXFAB_ERR_NOMEM;
    if (rc == PMIXFAB_OK)
        rc = host_scan_start(inventory->base, &config, NULL, 0, inventory_on_scan, inventory, &scanning,
                             &inventory->err);
    if (rc == PMIXFAB_OK) {
        event_base_dispatch(inventory->base);
        rc = inventory->code;
    }
    if (inventory->base != NULL)
        event_base_free(inventory->base);
    config_destroy(&config);
    return rc;
}

int host_scan_inventory_child(int argc, char **argv)
{
    struct inventory inventory = {.code = PMIXFAB_ERR_IO};
    if (argc < 5)
        return 2;
    if (!child_begin(argv[2]))
        return 1;
    log_open(PMIXFAB_LOG_INFO, 0);
    log_as("pnet:fabricd");
    int rc = inventory_child_scan(argc, argv, &inventory);
    if (rc != PMIXFAB_OK)
        log_error("inventory: %s", inventory.err.text[0] != '\0' ? inventory.err.text : pmixfab_strerror(rc));
    fflush(stderr);
    return rc == PMIXFAB_OK ? 0 : rc == PMIXFAB_ERR_UNSUPPORTED ? CHILD_NOTHING : 1;
}
