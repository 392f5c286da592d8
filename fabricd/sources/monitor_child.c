/* monitor_child.c - the child that makes light sweeps: all probes that can, at one pace, with a few lines of
 * output for each light sweep. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fabricd/base/clock.h"
#include "fabricd/process/child.h"
#include "fabricd/sources/monitor.h"
#include "fabricd/sources/sweep.h"
#include "probes/registry.h"

struct monitor {
    const struct probe *probe;
    struct probe_monitor *monitor;
    unsigned index; /* among the probes of the fabric */
};

struct light_sweeps {
    struct sweep_parts parts; /* each probe's last inventory, which the monitors read */
    struct monitor monitors[CONFIG_MAX_LIST];
    unsigned n;
};

/* Print the subnet manager of each probe that has queried one. */
static void print_managers(FILE *out, const struct monitor *monitors, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct probe_manager manager = {0};
        if (monitors[i].probe->monitor_manager != NULL)
            monitors[i].probe->monitor_manager(monitors[i].monitor, &manager);
        if (manager.asked)
            fprintf(out, "manager %u %u %u 0x%016" PRIx64 " %u\n", monitors[i].index, (unsigned)manager.lid,
                    (unsigned)manager.priority, manager.guid, (unsigned)manager.master);
    }
}

/* Write the result of a light sweep in one write, so that the daemon wakes up once. */
static int monitor_send(const struct monitor *monitors, unsigned n, const struct dirty_switches *dirty,
                        int64_t took)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (unsigned i = 0; i < CONFIG_MAX_LIST; i++)
        if ((dirty->probes >> i & 1) != 0)
            fprintf(out, "all %u\n", i);
    for (uint32_t i = 0; i < dirty->n; i++)
        fprintf(out, "node 0x%016" PRIx64 "\n", dirty->guids[i]);
    print_managers(out, monitors, n);
    fprintf(out, "poll %" PRId64 " %" PRIu64 "\n", took, dirty->requests);
    int rc = fclose(out) == 0 ? child_write(text, size) : PMIXFAB_ERR_NOMEM;
    free(text);
    return rc;
}

int light_sweeps_look(struct light_sweeps *sweeps, struct fab_err *err)
{
    struct dirty_switches dirty = {0};
    const int64_t start = clock_now(CLOCK_MONOTONIC);
    int rc = PMIXFAB_OK;
    for (unsigned i = 0; i < sweeps->n && rc == PMIXFAB_OK; i++) {
        const struct monitor *monitor = &sweeps->monitors[i];
        dirty.all = false;
        rc = monitor->probe->monitor_poll(monitor->monitor, &dirty, err);
        if (dirty.all)
            dirty.probes |= 1u << monitor->index;
    }
    if (rc == PMIXFAB_OK)
        rc = monitor_send(sweeps->monitors, sweeps->n, &dirty, clock_now(CLOCK_MONOTONIC) - start);
    dirty_switches_free(&dirty);
    return rc;
}

/* Open the probes that can monitor, each with its own last inventory. */
static int monitor_open_all(struct light_sweeps *sweeps, char **specs, unsigned n,
                            struct probe_config *config, struct fab_err *err)
{
    if (sweeps->parts.n != n)
        return fab_fail(err, PMIXFAB_ERR_CORRUPT, "%u probes, and %u inventories of them", n,
                        sweeps->parts.n);
    for (unsigned i = 0; i < n; i++) {
        struct monitor *to = &sweeps->monitors[sweeps->n];
        to->probe = probe_find(specs[i], &config->arg);
        to->index = i;
        if (to->probe == NULL || to->probe->monitor_open == NULL)
            continue;
        int opened = to->probe->monitor_open(config, &sweeps->parts.inv[i], &to->monitor, err);
        if (opened == PMIXFAB_OK)
            sweeps->n++;
        else if (opened != PMIXFAB_ERR_UNSUPPORTED)
            return opened;
    }
    return sweeps->n > 0 ? PMIXFAB_OK : PMIXFAB_ERR_UNSUPPORTED;
}

int light_sweeps_open(char **argv, unsigned n_specs, struct light_sweeps **out, struct fab_err *err)
{
    struct light_sweeps *sweeps = *out = calloc(1, sizeof(*sweeps));
    struct probe_config config = {.max_smps = (unsigned)strtoul(argv[4], NULL, 10),
                                  .timeout_ms = (unsigned)strtoul(argv[5], NULL, 10),
                                  .retries = (unsigned)strtoul(argv[6], NULL, 10)};
    void *bytes = NULL;
    size_t size = 0;
    int rc = sweeps == NULL ? PMIXFAB_ERR_NOMEM : child_read(&bytes, &size, SWEEP_ANSWER_MAX);
    if (rc == PMIXFAB_OK)
        rc = sweep_parts_decode(bytes, size, &sweeps->parts, err);
    free(bytes);
    if (rc == PMIXFAB_OK)
        rc = monitor_open_all(sweeps, argv + 7, n_specs, &config, err);
    return rc;
}

void light_sweeps_close(struct light_sweeps *sweeps)
{
    if (sweeps == NULL)
        return;
    for (unsigned i = 0; i < sweeps->n; i++)
        sweeps->monitors[i].probe->monitor_close(sweeps->monitors[i].monitor);
    sweep_parts_destroy(&sweeps->parts);
    free(sweeps);
}

/* The daemon has another inventory: end in order, so that opened devices are closed. */
static volatile sig_atomic_t stop;

static void on_term(int signo)
{
    (void)signo;
    stop = 1;
}

/* Wait for the next multiple of `pace` microseconds; skip missed ones. */
static void monitor_wait(int64_t *next, int64_t pace)
{
    const int64_t now = clock_now(CLOCK_MONOTONIC);
    *next = now >= *next + 2 * pace ? now : *next + pace;
    while (!stop && clock_sleep_until(*next) == EINTR)
        ;
}

/* argv: fabricd --monitor-child PID_OF_THE_DAEMON SECONDS MAX_SMPS TIMEOUT_MS RETRIES PROBE... */
int monitor_child(int argc, char **argv)
{
    struct fab_err err = {""};
    struct light_sweeps *sweeps = NULL;
    if (argc < 8 || argc - 7 > CONFIG_MAX_LIST)
        return 2;
    if (!child_begin(argv[2]))
        return 1;
    sigaction(SIGTERM, &(struct sigaction){.sa_handler = on_term}, NULL);
    const unsigned pace = (unsigned)strtoul(argv[3], NULL, 10);
    int rc = light_sweeps_open(argv, (unsigned)argc - 7, &sweeps, &err);
    int64_t next = clock_now(CLOCK_MONOTONIC);
    while (rc == PMIXFAB_OK && !stop) {
        rc = light_sweeps_look(sweeps, &err);
        if (rc == PMIXFAB_OK)
            monitor_wait(&next, (pace > 0 ? pace : 1) * 1000000ll);
    }
    if (!stop)
        child_note(PMIXFAB_LOG_ERROR, err.text[0] != '\0' ? err.text : pmixfab_strerror(rc), NULL);
    light_sweeps_close(sweeps);
    return rc == PMIXFAB_ERR_UNSUPPORTED ? CHILD_NOTHING : 1;
}
