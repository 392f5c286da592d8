/*
 * probe.h - a probe reads one source and reports its data. The room core has the common parts of all probes.
 *
 * A probe never exits, never prints, never writes a store. It runs in the sweeping child, so it may hang or
 * crash without harm to the daemon. But it must return an error for every failure that it detects.
 */
#ifndef FAB_PROBES_CORE_PROBE_H
#define FAB_PROBES_CORE_PROBE_H

#include <stdbool.h>
#include <stdio.h>

#include "topo/model/inventory.h"
#include "topo/model/report.h"

/* ---- counters of a port, from its performance management ---- */

enum probe_counter {
    COUNTER_SYMBOL_ERRORS,
    COUNTER_LINK_RECOVERIES,
    COUNTER_LINK_DOWNED,
    COUNTER_RECEIVE_ERRORS,
    COUNTER_LOCAL_INTEGRITY,
    COUNTER_BUFFER_OVERRUNS,
    COUNTER_REMOTE_ERRORS,
    COUNTER_DISCARDS,
    COUNTER_SENT_WORDS, /* of 4 bytes */
    COUNTER_RECEIVED_WORDS,
    COUNTER_SENT_PACKETS,
    COUNTER_RECEIVED_PACKETS,
    PROBE_COUNTERS
};

struct probe_counter_kind {
    const char *key;   /* in JSON */
    const char *words; /* description */
    uint64_t max;      /* maximum, where the counter stops */
    bool error;        /* growth indicates a bad link */
    unsigned usual;    /* threshold of ibqueryerrors; 0: any number is good */
};
extern const struct probe_counter_kind probe_counter_kinds[PROBE_COUNTERS];

enum probe_reading_state {
    READING_NONE, /* no probe has the port */
    READING_GOOD,
    READING_SILENT, /* no answer */
    READING_REFUSED /* the device has no performance management, or not for this port */
};

/* A port, by its node's GUID and its number, with its counters. */
struct probe_reading {
    uint64_t guid;
    uint32_t num, state; /* enum probe_reading_state */
    uint64_t value[PROBE_COUNTERS];
};

/* ---- a probe ---- */

/* Receiver of a probe's remarks: one line, no newline. */
struct probe_sink {
    void (*note)(enum pmixfab_level level, const char *line, void *cbdata);
    void *cbdata;
};

/* Send a remark to a sink that may be NULL. */
void probe_note(const struct probe_sink *sink, enum pmixfab_level level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

struct probe_config {
    const char *arg;     /* the text after the probe's name and a colon; NULL: none */
    unsigned max_smps;   /* requests in flight, ibnetdisc (default 32) */
    unsigned timeout_ms; /* of one request; 0: the library's default */
    unsigned retries;
};

/* The result of a light sweep: switches whose ports have changed, or that did not answer in time. */
struct dirty_switches {
    uint64_t *guids; /* of nodes, each once */
    uint32_t n, cap;
    uint64_t requests; /* number of packets sent */
    bool all;          /* everything may have changed */
    /* set by the caller: the probes that reported it, one bit each in the order of the configuration */
    uint32_t probes;
};
/* Add a switch if it is not in the list yet. PMIXFAB_ERR_NOMEM. */
int dirty_switches_add(struct dirty_switches *dirty, uint64_t guid, struct fab_err *err);
void dirty_switches_free(struct dirty_switches *dirty); /* leaves it empty */

struct probe_monitor; /* private to a probe */

/* The subnet manager, as of the last light sweep. */
struct probe_manager {
    uint64_t guid; /* of its port; 0: it did not answer */
    uint16_t lid;  /* its address in the subnet; 0: none */
    uint8_t priority;
    bool asked;  /* in that light sweep; else the rest is unknown */
    bool master; /* it answered as master */
};

/* A probe of the fabric has run(), a probe of this host scan(). */
struct probe {
    const char *name;
    const char *summary; /* for --help: the source, and the argument */
    /* A probe whose library must not be loaded into other processes is a module, a shared object that
     * exports `const struct probe fabricd_probe`. Its entry in the registry has the name, the summary (which
     * the module does not need), this mark, and no function but check(). */
    bool module;
    bool file; /* its argument is the path of a file that describes the fabric */
    /* Check the argument for run() or scan(). No I/O. */
    int (*check)(const struct probe_config *config, struct fab_err *err);
    /* Read the fabric into inv (initialised, empty). On success inv is finished, not named. On error inv
     * can only be destroyed. */
    int (*run)(const struct probe_config *config, const struct probe_sink *sink, struct fab_inventory *inv,
               struct fab_err *err);
    /*
     * Scan this host, or the recorded host that the argument names, and add its devices to the report. The
     * report is initialised, not finished, and all of one source. A device that fails is skipped with a
     * note. PMIXFAB_ERR_UNSUPPORTED: the source has nothing on this host. This is not a failure.
     */
    int (*scan)(const struct probe_config *config, const struct probe_sink *sink, struct fab_report *report,
                struct fab_err *err);
    /*
     * All of these or none: light sweeps between two runs of a fabric's probe. monitor_open() begins from the
     * last inventory (finished, borrowed; it outlives the monitor). monitor_poll() adds the changes since
     * then or since the last light sweep: each change is reported once. An error ends the monitor: close it,
     * and open another one later. PMIXFAB_ERR_UNSUPPORTED from monitor_open(): this inventory cannot be
     * monitored.
     */
    int (*monitor_open)(const struct probe_config *config, const struct fab_inventory *inv,
                        struct probe_monitor **out, struct fab_err *err);
    int (*monitor_poll)(struct probe_monitor *monitor, struct dirty_switches *dirty, struct fab_err *err);
    void (*monitor_close)(struct probe_monitor *monitor); /* NULL is allowed */
    /* Of a monitor that has polled; NULL for a source without a subnet manager. */
    void (*monitor_manager)(const struct probe_monitor *monitor, struct probe_manager *out);
    /* Sweep only the dirty switches and take the rest from the last inventory: inv (initialised, empty)
     * becomes what run() would return, finished. `last` may hold more than this probe's subnet, and so does
     * inv. PMIXFAB_ERR_UNSUPPORTED: a run() is necessary. */
    int (*sweep_switches)(const struct probe_config *config, const struct probe_sink *sink,
                          const struct fab_inventory *last, const struct dirty_switches *dirty,
                          struct fab_inventory *inv, struct fab_err *err);
    /* Read the counters of the ports in the list that are not read yet and are in the last inventory.
     * NULL: no device of this source has counters. */
    int (*counters)(const struct probe_config *config, const struct fab_inventory *last,
                    struct probe_reading *list, uint32_t n, struct fab_err *err);
    /* Write one line about whether this probe can work on this host (for `./dev run --real`). */
    int (*available)(char *text, size_t size);
};

/*
 * Return the probe with its functions. It is the probe itself, or the probe of its module. This loads
 * libraries, so only a probing process calls it. NULL: the module or a library that it needs is missing, and
 * err names it.
 */
const struct probe *probe_load(const struct probe *probe, struct fab_err *err);

/*
 * Write a finished report as a recorded machine, which every local probe accepts as its argument (the form is
 * in record.h). A report that is read back is equal. PMIXFAB_ERR_INVAL (not finished), _NOMEM, _IO.
 */
int probe_record(const struct fab_report *report, FILE *out);

#endif
