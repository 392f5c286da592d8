/*
 * probe.h - a probe asks one source and reports what it sees. The room core is what all probes are made of.
 *
 * It never exits, never prints, never writes a store. It runs in the sweeping child, so it may hang or crash
 * without harm to the daemon; it must still return an error for everything that it can notice.
 */
#ifndef FAB_PROBES_CORE_PROBE_H
#define FAB_PROBES_CORE_PROBE_H

#include <stdbool.h>
#include <stdio.h>

#include "topo/model/inventory.h"
#include "topo/model/report.h"

/* ---- what a port counts of itself, as its performance management reports it ---- */

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
    const char *words; /* for people */
    uint64_t max;      /* where it stays */
    bool error;        /* that it grows says that this link is bad */
    unsigned usual;    /* more is too much, by the thresholds of ibqueryerrors; 0: any number is good */
};
extern const struct probe_counter_kind probe_counter_kinds[PROBE_COUNTERS];

enum probe_reading_state {
    READING_NONE, /* no probe knows the port */
    READING_GOOD,
    READING_SILENT, /* no answer */
    READING_REFUSED /* the device has no performance management, or not of this port */
};

/* A port, by its node's GUID and its number; and what it said. */
struct probe_reading {
    uint64_t guid;
    uint32_t num, state; /* enum probe_reading_state */
    uint64_t value[PROBE_COUNTERS];
};

/* ---- a probe ---- */

/* Where a probe's remarks go: one line, no newline. */
struct probe_sink {
    void (*note)(enum pmixfab_level level, const char *line, void *cbdata);
    void *cbdata;
};

/* A remark through a sink that may be NULL. */
void probe_note(const struct probe_sink *sink, enum pmixfab_level level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

struct probe_config {
    const char *arg;     /* what follows the probe's name and a colon; NULL: nothing */
    unsigned max_smps;   /* requests in flight, ibnetdisc (default 32) */
    unsigned timeout_ms; /* of one request; 0: the library's default */
    unsigned retries;
};

/* What a light sweep noticed: switches whose ports are not as they were, or that a few words do not say it.
 */
struct dirty_switches {
    uint64_t *guids; /* of nodes, each once */
    uint32_t n, cap;
    uint64_t requests; /* packets that were sent for it */
    bool all;          /* everything is to be looked at */
    uint32_t probes;   /* not a probe's: which ones said so, a bit each in the order of the configuration */
};
/* PMIXFAB_ERR_NOMEM. What is there already is not added again. */
int dirty_switches_add(struct dirty_switches *dirty, uint64_t guid, struct fab_err *err);
void dirty_switches_free(struct dirty_switches *dirty); /* leaves it empty */

struct probe_monitor; /* a probe's own */

/* The subnet manager, as the last light sweep found it. */
struct probe_manager {
    uint64_t guid; /* of its port; 0: it did not answer */
    uint16_t lid;  /* where the subnet says that it is; 0: nowhere */
    uint8_t priority;
    bool asked;  /* in that light sweep; else nothing of this is known */
    bool master; /* it answered, as the one that manages */
};

/* A probe of the fabric has run(), a probe of this host scan(). */
struct probe {
    const char *name;
    const char *summary; /* for --help: what it asks, and its argument */
    /*
     * A probe whose library is not to be loaded by anybody else is a module, a shared object of its own that
     * exports `const struct probe fabricd_probe`; its entry in the registry has the name, the summary, which
     * the module does without, and this mark, and no functions but check().
     */
    bool module;
    bool file; /* its argument is the path of a file that stands for the fabric */
    /* Is the argument one that run() or scan() could take? No I/O. */
    int (*check)(const struct probe_config *config, struct fab_err *err);
    /* Look, and add to inv (initialised, empty). On success inv is finished, not named. On error the contents
     * of inv are of no use. */
    int (*run)(const struct probe_config *config, const struct probe_sink *sink, struct fab_inventory *inv,
               struct fab_err *err);
    /*
     * Look at this host, or at the recorded one that the argument names, and add what is seen to the report
     * (initialised, not finished, all of one source). A device that cannot be asked is left out, with a note.
     * PMIXFAB_ERR_UNSUPPORTED: this host has nothing that the source could know of; that is no failure.
     */
    int (*scan)(const struct probe_config *config, const struct probe_sink *sink, struct fab_report *report,
                struct fab_err *err);
    /*
     * Between two runs of a fabric's probe, all of these or none of them: a light sweep tells that something
     * changed. monitor_open() begins from the last inventory (finished; it stays the caller's and outlives
     * the monitor), monitor_poll() adds what is not any more as it was at the open or at the light sweep
     * before: each change is told once. An error ends the monitor: close it, open another one later.
     * PMIXFAB_ERR_UNSUPPORTED from monitor_open(): this inventory cannot be monitored.
     */
    int (*monitor_open)(const struct probe_config *config, const struct fab_inventory *inv,
                        struct probe_monitor **out, struct fab_err *err);
    int (*monitor_poll)(struct probe_monitor *monitor, struct dirty_switches *dirty, struct fab_err *err);
    void (*monitor_close)(struct probe_monitor *monitor); /* NULL allowed */
    /* Of a monitor that has polled; NULL where there is no such thing as a subnet manager. */
    void (*monitor_manager)(const struct probe_monitor *monitor, struct probe_manager *out);
    /*
     * A run that asks only about what is dirty and takes the rest from the last inventory: inv
     * (initialised, empty) becomes what run() would give, finished. `last` may hold more than this probe's
     * subnet, and so does inv. PMIXFAB_ERR_UNSUPPORTED: it takes a run() to know.
     */
    int (*sweep_switches)(const struct probe_config *config, const struct probe_sink *sink,
                          const struct fab_inventory *last, const struct dirty_switches *dirty,
                          struct fab_inventory *inv, struct fab_err *err);
    /*
     * Fill in what ports count, of those of the list that nothing was read of yet and that are in the last
     * inventory. NULL: no device that the probe asks counts anything.
     */
    int (*counters)(const struct probe_config *config, const struct fab_inventory *last,
                    struct probe_reading *list, uint32_t n, struct fab_err *err);
    /* One line on whether this probe could work on this host (for `./dev run --real`): what it found or not.
     */
    int (*available)(char *text, size_t size);
};

/*
 * The probe with its functions: itself, or what its module holds. Loads libraries, so only a process that is
 * there to probe calls it. NULL: the module or a library that it needs is not there; err says which.
 */
const struct probe *probe_load(const struct probe *probe, struct fab_err *err);

/*
 * Write a finished report as a recorded machine, which every local probe takes as its argument (record.h says
 * the form). A report that is read back is equal to it. PMIXFAB_ERR_INVAL (not finished), _NOMEM, _IO.
 */
int probe_record(const struct fab_report *report, FILE *out);

#endif
