/*
 * config.h - everything that can be configured: defaults, then the configuration file, then the command line;
 * and where each value comes from.
 */
#ifndef FABRICD_CONFIG_CONFIG_H
#define FABRICD_CONFIG_CONFIG_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "topo/plane/graph.h"
#include "topo/plane/groups.h"

#define CONFIG_MAX_LIST     32
#define CONFIG_EXPORT_WORDS (CONFIG_MAX_LIST - 5) /* fabricctl export FORMAT OPTIONS --if-changed -o FILE */
#define CONFIG_MAX_SETTINGS 72
#define CONFIG_NODES_PORT   7135     /* where nodes connect, unless it is configured */
#define CONFIG_UNSET        UINT_MAX /* a number that config_check() finds */

#define CONFIG_MAX_MISTAKES 100 /* that are told; of more only how many there are */

/* Where a setting comes from: line and column of the file, from 1; or no line. */
struct config_place {
    int line, column; /* column: in bytes */
};
enum { CONFIG_DEFAULT = 0, CONFIG_COMMAND_LINE = -1, CONFIG_RUN_TIME = -2 }; /* instead of a line */

struct config_mistake {
    struct config_place at;
    char *text; /* one line, with its place where it has one */
};

struct config_mistakes {
    const char *file;             /* that places are of; NULL: none was read */
    struct config_mistake *items; /* in the order of the file; without a line first */
    uint32_t n, room, more;       /* more: that are not kept */
};

/* A short list of texts, each of its own memory. */
struct config_list {
    char *items[CONFIG_MAX_LIST];
    struct config_place at[CONFIG_MAX_LIST]; /* where each was configured */
    unsigned n;
};

/* ROLE_HOST: fabric-host, which has a server of the same kind. */
enum config_role { ROLE_SCHEDULER, ROLE_NODE, ROLE_HOST };

struct config {
    enum config_role role;
    char *scheduler; /* role node: HOST[:PORT], ...: where the scheduler's fabricd is; host: run directory */
    char *host;      /* this host's name, as nodes report it; set by config_check() where it is not given */
    char *scheduler_user; /* role node: beside root, whom the scheduler may run as; NULL: fabricd, if there is
                             one */
    char *node_user;      /* beside root, who may deliver what nodes report; NULL: nobody */
    char *nodes_listen;   /* where nodes connect: "*", or an interface, network or address; NULL: as `remote`
                             says */
    unsigned nodes_port;  /* 0: the system's choice */
    unsigned debounce_ms; /* how long it must be quiet when several nodes report */
    unsigned mirror_delay_ms;    /* role node: up to this long, at random, until a new snapshot is fetched */
    bool node_serve;             /* role node: have a PMIx server for the programs of this host */
    struct config_list ethernet; /* NAME=CIDR: planes of network interfaces */
    char *rundir;
    char *store;
    struct config_list probes; /* NAME[:ARG] */
    unsigned interval;         /* seconds between sweeps; 0: only when asked */
    unsigned deadline;         /* seconds a sweep may take */
    enum pmixfab_level log;
    enum fab_cost_model cost_model;
    enum fab_group_by groups;
    char *default_plane; /* NULL: the one that is it, at first the one with most devices */
    char *vendor;        /* NULL: as the fabric's vendor ids say */
    char *compute;       /* patterns (topo/base/pattern.h): what jobs use; NULL: all devices */
    char *names_pattern;
    char *switch_pattern;
    char *names_map; /* path of a node-name-map */
    unsigned max_smps, timeout_ms, retries;
    struct config_list sweep_env; /* KEY=VALUE for the sweeping child */
    struct config_list admins;    /* user names that may change things */
    unsigned light_sweep;         /* seconds between light sweeps; 0: none */
    unsigned debounce;            /* seconds it must be quiet when several changes are noticed */
    unsigned debounce_max;        /* seconds the first of them waits at most */
    unsigned counters;            /* seconds between readings of counters of changed links; 0: none */
    struct config_list hook;      /* program and arguments that are told of each generation; n 0: none */
    unsigned hook_deadline;       /* seconds it may take */
    struct config_list exports;   /* NAME=FORMAT OPTIONS: files for other programs that are kept right */
    struct config_list export_commands; /* NAME=PROGRAM ARGUMENTS: who is told of such a file that is new */
    char *export_folder;                /* of those whose name is no path */
    unsigned export_pace;               /* seconds between attempts, at least */
    unsigned export_deadline;           /* seconds that each program of an attempt may take */
    unsigned retain_seconds; /* seconds that what is missing keeps its place; 0: it is lost at once */
    unsigned flap_count;     /* so many changes of a cable within flap_window seconds are too many */
    unsigned flap_window;
    unsigned suppress, suppress_max; /* seconds that it is taken as down then */
    unsigned inactive_seconds;       /* what is inactive for longer is graver; 0: never */
    unsigned capture_seconds;        /* what stands for the fabric is not to be older; 0: it may */
    unsigned counters_round;         /* seconds for a round over all ports' counters, at least; 0: none */
    unsigned counters_rate;          /* ports a second, at most, that a round reads */
    char *metrics_file;              /* NULL: none is written */
    char *metrics_listen;            /* ADDRESS:PORT where metrics are served over HTTP; NULL: nowhere */
    unsigned history_days;           /* so long changes are kept; 0: for ever */
    unsigned history_changes;        /* so many at most; 0: any number */
    unsigned store_keep_days;        /* so long a store of an older schema is kept; 0: for ever */
    struct config_list pools;        /* PLANE=FIRST-LAST: numbers of endpoints that are handed out */
    unsigned endpoints_quota;        /* so many a user may have, beside root and the daemon's own */
    bool remote;                     /* accept PMIx connections from other hosts (munge is then required) */
    char *pmix_listen;  /* interface, network or address of the PMIx server; NULL: the library's choice */
    unsigned pmix_port; /* of the PMIx server; 0: the system's choice */
    bool pmix_start;    /* start fabricd-pmix, the PMIx server; else a service manager may */

    struct config_place at[CONFIG_MAX_SETTINGS]; /* of each setting, in the order of their table */
    /* The command line's own texts. */
    int argc;
    char **argv;
    const char *file;    /* that was read; NULL: none */
    const char *restore; /* --restore: the backup */
    const char *record;  /* --record: where to */
    bool foreground, once, check_only;
};

void config_init(struct config *config); /* the defaults */
void config_destroy(struct config *config);

/* Read a file over what is there. All that is wrong with it is added to the mistakes. */
void config_read(struct config *config, const char *path, struct config_mistakes *mistakes);

/* One setting, as it stands in a file or on the command line. */
struct config_line {
    const char *section, *name, *value;
    struct config_place name_at, value_at;
};
/* PMIXFAB_OK; or an error, and the mistake is added. */
int config_put(struct config *config, const struct config_line *line, struct config_mistakes *mistakes);

/* Do the settings make sense together, and is there what they name? What follows from others (a default
 * probe) is filled in. */
void config_check(struct config *config, struct config_mistakes *mistakes);

/* The value of a NAME=VALUE; NULL: there is none. */
const char *config_pair(const struct config_list *list, const char *name);

/* The numbers that may be handed out of a plane. False: none. */
bool config_pool(const struct config *config, const char *plane, uint32_t *first, uint32_t *last);

/* Replace *text by a copy of value; append to a list. */
int config_text(char **text, const char *value);
int config_append(struct config_list *list, const char *value);
void config_clear(struct config_list *list);

/* ---- mistakes ---- */

/* Add one: "FILE:LINE:COLUMN: reason", or the reason alone where there is no line. PMIXFAB_ERR_SYNTAX. */
int config_mistake(struct config_mistakes *mistakes, struct config_place at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The same of a reason that has a place of its own, in another file that the setting names. */
void config_mistake_there(struct config_mistakes *mistakes, struct config_place at, const char *text);

/* How many there are, also of those that are not kept. */
uint32_t config_mistakes_count(const struct config_mistakes *mistakes);

/* Tell each, and then how many are not told. */
void config_mistakes_tell(const struct config_mistakes *mistakes,
                          void (*tell)(const char *line, void *cbdata), void *cbdata);

void config_mistakes_log(const struct config_mistakes *mistakes); /* each is an error */

void config_mistakes_destroy(struct config_mistakes *mistakes);

/* ---- what is in force ---- */

/* One value and where it comes from; value NULL: none. */
struct config_value {
    const char *section, *name, *value;
    struct config_place at;
};
/* Tell each value; of a list each of its items. PMIXFAB_ERR_NOMEM. */
int config_tell(const struct config *config, void (*tell)(const struct config_value *value, void *cbdata),
                void *cbdata);

/* Where a field's value comes from. */
struct config_place config_at(const struct config *config, const void *field);

/* ---- the configuration is read again while the daemon runs ---- */

struct setting; /* setting.h */

/* What came of it. Either mistakes, and nothing has changed; or what has changed, and what would have if that
 * could change at run time. */
struct config_reload {
    struct config_mistakes mistakes;
    const struct setting *changed[CONFIG_MAX_SETTINGS], *restart[CONFIG_MAX_SETTINGS];
    unsigned n_changed, n_restart;
};

/* Read the command line's file again. On the loop: what is live may change under those who keep a pointer to
 * its text. */
int config_reload(struct config *config, struct config_reload *out);
void config_reload_destroy(struct config_reload *reload);

/* Would a start with this command line take its configuration now? Else err has the first mistake. */
int config_can_start(const struct config *config, struct fab_err *err);

/* Has the setting of this name changed? name NULL: the section that is a list. */
bool config_reload_has(const struct config_reload *reload, const char *section, const char *name);

/* "[fabricd] interval, [sweep.env]" */
#define CONFIG_NAMES_SIZE 1600
void config_names_text(const struct setting *const *settings, unsigned n,
                       char text[static CONFIG_NAMES_SIZE]);

/* One setting's name: "[fabricd] interval". */
#define CONFIG_NAME_SIZE 48
void config_name_text(const struct setting *setting, char text[static CONFIG_NAME_SIZE]);

/* ---- the command line over the file ---- */

/*
 * Read the command line and the configuration file that it names (or /etc/fabricd.conf where that is there).
 * PMIXFAB_OK, or PMIXFAB_ERR_INVAL: bad usage or mistakes, told on standard error. --help and --version exit.
 */
int options_parse(int argc, char **argv, struct config *config);

/* To the folder of the first reading, in which relative names are meant: in the background the process leaves
 * it. */
void options_go_back(void);

/* The same, and the mistakes are the caller's to tell. config: as config_init() leaves it. */
int options_read(int argc, char **argv, struct config *config, struct config_mistakes *mistakes);

#endif
