#include "fabricd/main/fabricd_main.h"

#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fabricd/base/log.h"
#include "fabricd/base/metrics.h"
#include "fabricd/base/notify.h"
#include "fabricd/config/config.h"
#include "fabricd/node/deliver_child.h"
#include "fabricd/node/node.h"
#include "fabricd/process/process.h"
#include "fabricd/sources/host_scan.h"
#include "fabricd/sources/monitor.h"
#include "fabricd/sources/port_counters.h"
#include "fabricd/sources/sweep.h"

static int role_run(struct config *config)
{
    return config->role == ROLE_NODE ? node_run(config) : scheduler_run(config);
}

int fabricd_main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], SWEEP_CHILD_OPTION) == 0)
        return sweep_child(argc, argv);
    if (argc > 1 && strcmp(argv[1], HOST_SCAN_CHILD_OPTION) == 0)
        _exit(host_scan_child(argc, argv)); /* exit handlers of the libraries of a probe may crash */
    if (argc > 1 && strcmp(argv[1], MONITOR_CHILD_OPTION) == 0)
        return monitor_child(argc, argv);
    if (argc > 1 && strcmp(argv[1], COUNTERS_CHILD_OPTION) == 0)
        return counters_child(argc, argv);
    if (argc > 1 && strcmp(argv[1], INVENTORY_CHILD_OPTION) == 0)
        return host_scan_inventory_child(argc, argv);
    if (argc > 1 && strcmp(argv[1], DELIVER_CHILD_OPTION) == 0)
        return deliver_child(argc, argv);
    struct config config;
    config_init(&config);
    int status = 2;
    notify_open();
    log_open(PMIXFAB_LOG_INFO, 0);
    log_as("fabricd");
    int rc = options_parse(argc, argv, &config);
    log_as(NULL);
    if (rc == PMIXFAB_OK) {
        log_open(config.log, 0);
        if (config.check_only) {
            printf("the configuration is good\n");
            status = 0;
        } else if (config.record != NULL) {
            status = host_scan_record(&config);
        } else if (config.restore != NULL) {
            status = restore_run(&config);
        } else if (config.foreground || process_daemonize(&config) == PMIXFAB_OK) {
            process_descriptors();
            mallopt(M_ARENA_MAX, 1); /* one arena: malloc_trim() then covers memory that threads freed */
            metrics_started();
            status = role_run(&config);
        } else {
            status = 1;
        }
    }
    config_destroy(&config);
    return status;
}
