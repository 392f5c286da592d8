/*
 * config.h - everything that can be configured: defaults, then the configuration file, then the command line.
 */
#ifndef FABRICD_CONFIG_CONFIG_H
#define FABRICD_CONFIG_CONFIG_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "topo/geometry/groups.h"
#include "topo/graph/graph.h"

#define CONFIG_MAX_LIST 32
#define CONFIG_UNSET    UINT_MAX /* a number that config_check() finds */

/* A short list of texts, each of its own memory. */
struct config_list {
    char *items[CONFIG_MAX_LIST];
    unsigned n;
};

enum config_role { ROLE_SCHEDULER, ROLE_NODE };

struct config {
    enum config_role role;
    char *scheduler; /* role node: URI or run directory of the scheduler's fabricd */
    char *host;      /* this host's name, as nodes report it; set by config_check() where it is not given */
    char *node_user; /* beside root, who may deliver what nodes report; NULL: nobody */
    unsigned debounce_ms;        /* how long it must be quiet when several nodes report */
    unsigned mirror_delay_ms;    /* role node: up to this long, at random, until a new snapshot is fetched */
    struct config_list ethernet; /* NAME=CIDR: planes of network interfaces */
    char *rundir;
    char *store;
    struct config_list probes; /* NAME[:ARG] */
    unsigned interval;         /* seconds between sweeps; 0: only when asked */
    unsigned deadline;         /* seconds a sweep may take */
    enum pmixfab_level log;
    enum fab_cost_model cost_model;
    enum fab_group_by groups;
    char *default_plane; /* NULL: the one with most devices */
    char *vendor;        /* NULL: as the fabric's vendor ids say */
    char *names_pattern;
    char *names_map; /* path of a node-name-map */
    unsigned max_smps, timeout_ms, retries;
    struct config_list sweep_env; /* KEY=VALUE for the sweeping child */
    struct config_list admins;    /* user names that may change things */
    unsigned light_sweep;         /* seconds between light sweeps; 0: none */
    unsigned debounce;            /* seconds it must be quiet when several changes are noticed */
    unsigned debounce_max;        /* seconds the first of them waits at most */
    struct config_list hook;      /* program and arguments that are told of each generation; n 0: none */
    unsigned hook_deadline;       /* seconds it may take */
    unsigned retain_seconds;      /* seconds that what is missing keeps its place; 0: it is lost at once */
    unsigned flap_count;          /* so many changes of a cable within flap_window seconds are too many */
    unsigned flap_window;
    unsigned suppress, suppress_max; /* seconds that it is taken as down then */
    char *metrics_file;              /* NULL: none is written */
    unsigned history_days;           /* so long changes are kept; 0: for ever */
    unsigned history_changes;        /* so many at most; 0: any number */
    unsigned store_keep_days;        /* so long a store of an older schema is kept; 0: for ever */
    const char *restore;             /* --restore: the backup; the command line's own text */
    bool remote;                     /* accept PMIx connections from other hosts (munge is then required) */
    const char *record;              /* --record: where to; the command line's own text */
    bool foreground, once, check_only;
};

void config_init(struct config *config); /* the defaults */
void config_destroy(struct config *config);

/* Read a file over what is there. Errors are file:line:column: reason. */
int config_read(struct config *config, const char *path, struct fab_err *err);

/* One setting, as in the file; also what command-line options go through. */
int config_set(struct config *config, const char *section, const char *name, const char *value,
               struct fab_err *err);

/* Do the settings make sense together; fill in what follows from others (a default probe). */
int config_check(struct config *config, struct fab_err *err);

/* Replace *text by a copy of value; append to a list. */
int config_text(char **text, const char *value);
int config_append(struct config_list *list, const char *value);
void config_clear(struct config_list *list);

#endif
