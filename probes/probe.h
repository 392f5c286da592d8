/*
 * probe.h - a probe asks one source and reports what it sees.
 *
 * It never exits, never prints, never writes a store. It runs in the sweeping child, so it may hang or crash
 * without harm to the daemon; it must still return an error for everything that it can notice.
 */
#ifndef FAB_PROBE_H
#define FAB_PROBE_H

#include "topo/inventory.h"

/* Where a probe's remarks go: one line, no newline. */
struct probe_sink {
    void (*note)(enum pmixfab_level level, const char *line, void *cbdata);
    void *cbdata;
};

struct probe_config {
    const char *arg;     /* what follows the probe's name and a colon; NULL: nothing */
    unsigned max_smps;   /* requests in flight, ibnetdisc (default 32) */
    unsigned timeout_ms; /* of one request; 0: the library's default */
    unsigned retries;
};

struct probe {
    const char *name;
    const char *summary; /* for --help: what it asks, and its argument */
    /* Is the argument one that run() could take? No I/O. */
    int (*check)(const struct probe_config *config, struct fab_err *err);
    /* Look, and add to inv (initialised, empty). On success inv is finished, not named. On error the contents
     * of inv are of no use. */
    int (*run)(const struct probe_config *config, const struct probe_sink *sink, struct fab_inventory *inv,
               struct fab_err *err);
    /* One line on whether this probe could work on this host (for `./dev run --real`): what it found or not.
     */
    int (*available)(char *text, size_t size);
};

/* All probes that are built in, ended by an entry with a NULL name. */
extern const struct probe *const probe_registry[];

/* By name; NULL. `spec` is "name" or "name:arg": *arg becomes the part behind the colon or NULL. */
const struct probe *probe_find(const char *spec, const char **arg);

#endif
