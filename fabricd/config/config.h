/*
 * config.h - all settings and the source of each value. A value is from the command line, else from the
 * configuration file, else the default.
 */
#ifndef FABRICD_CONFIG_CONFIG_H
#define FABRICD_CONFIG_CONFIG_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "topo/plane/graph.h"
#include "topo/plane/groups.h"

#define CONFIG_MAX_LIST 32
/* fabricctl export FORMAT OPTIONS --if-changed -o FILE, and three options with values from settings */
#define CONFIG_EXPORT_WORDS (CONFIG_MAX_LIST - 11)
#define CONFIG_MAX_SETTINGS 80
#define CONFIG_NODES_PORT   7135     /* where the scheduler listens for nodes by default */
#define CONFIG_UNSET        UINT_MAX /* a number that config_check() sets */

#define CONFIG_MAX_MISTAKES 100 /* stored mistakes; further ones are only counted */

/* The source of a setting: line and column of the file, counted from 1, or no line. */
struct config_place {
    int line, column; /* column: in bytes */
};
enum { CONFIG_DEFAULT = 0, CONFIG_COMMAND_LINE = -1, CONFIG_RUN_TIME = -2 }; /* in place of a line */

struct config_mistake {
    struct config_place at;
    char *text; /* one line; begins with its place, if it has one */
};

struct config_mistakes {
    const char *file;             /* the file of the places; NULL: no file was read */
    struct config_mistake *items; /* in the order of the file, those without a line first */
    uint32_t n, room, more;       /* more: number of mistakes that are not stored */
};

/* A short list of allocated texts. */
struct config_list {
    char *items[CONFIG_MAX_LIST];
    struct config_place at[CONFIG_MAX_LIST]; /* the source of each text */
    unsigned n;
};

/* ROLE_HOST: fabric-host, which has the same PMIx server. */
enum config_role { ROLE_SCHEDULER, ROLE_NODE, ROLE_HOST };

/* Tools of other users than fabricd's own and root: FOREIGN_GROUP: those of members of its group. */
enum config_foreign { FOREIGN_YES, FOREIGN_NO, FOREIGN_GROUP };

struct config {
    enum config_role role;
    char *scheduler; /* role node: HOST[:PORT], ...: addresses of the scheduler's fabricd; host: run directory
                      */
    char *host;      /* this host's name in reports; config_check() sets it if it is not configured */
    char *scheduler_user; /* role node: user of the scheduler beside root; NULL: fabricd, if it exists */
    char *node_user;      /* user beside root who may deliver reports of nodes; NULL: nobody */
    char *nodes_listen;  /* where to listen for nodes: "*", or an interface, network or address; NULL: depends
                            on `remote` */
    unsigned nodes_port; /* 0: the system's choice */
    unsigned debounce_ms;        /* quiet time before reports of several nodes are published */
    unsigned mirror_delay_ms;    /* role node: bound of the random delay before a new snapshot is fetched */
    bool node_serve;             /* role node: run a PMIx server for programs of this host */
    struct config_list ethernet; /* NAME=CIDR: planes of network interfaces */
    char *rundir;
    char *store;
    struct config_list probes; /* NAME[:ARG] */
    unsigned interval;         /* seconds between sweeps; 0: only on request */
    unsigned deadline;         /* seconds; timeout of a sweep */
    enum pmixfab_level log;
    enum fab_cost_model cost_model;
    enum fab_group_by groups;
    char *default_plane; /* NULL: the current default plane, at first the one with most devices */
    char *vendor;        /* NULL: derived from the fabric's vendor ids */
    char *compute;       /* patterns (topo/base/pattern.h) of the devices that jobs use; NULL: all devices */
    char *names_pattern;
    char *switch_pattern;
    char *names_map; /* path of a node-name-map */
    unsigned max_smps, timeout_ms, retries;
    struct config_list sweep_env; /* KEY=VALUE for the sweeping child */
    struct config_list admins;    /* names of users who may change things */
    unsigned light_sweep;         /* seconds between light sweeps; 0: none */
    unsigned debounce;            /* seconds of quiet before a sweep, when several changes are noticed */
    unsigned debounce_max;        /* seconds that the first of them waits at most */
    unsigned counters;            /* seconds between readings of the counters of changed links; 0: none */
    struct config_list hook;      /* program and arguments, run for each generation; n 0: none */
    unsigned hook_deadline;       /* seconds; timeout of the hook */
    struct config_list exports;   /* NAME=FORMAT OPTIONS: files for other programs, kept up to date */
    struct config_list export_commands; /* NAME=PROGRAM ARGUMENTS: run when such a file has changed */
    char *export_folder;                /* folder of the files whose name is not a path */
    unsigned export_pace;               /* least seconds between attempts */
    unsigned export_deadline;           /* seconds; timeout of each program of an attempt */
    unsigned export_max_shrink;         /* percentage of its hosts that may leave a file; 100: any */
    char *export_above;                 /* file with levels above the trees of exports; NULL: none */
    char *slurm_topologies;             /* topologies of a topology.yaml; NULL: a tree for each plane */
    unsigned slurm_round;    /* seconds between comparisons of Slurm with its exported files; 0: none */
    bool slurm_apply;        /* bring Slurm to the files */
    bool slurm_repair;       /* with slurm_apply: also if somebody changed Slurm */
    unsigned retain_seconds; /* seconds that a missing device keeps its place; 0: it is lost at once */
    unsigned flap_count;     /* changes of a cable within flap_window seconds from which on it is flapping */
    unsigned flap_window;
    unsigned suppress, suppress_max; /* seconds that a flapping cable counts as down */
    unsigned inactive_seconds;       /* seconds after which an inactive port is a graver finding; 0: never */
    unsigned capture_seconds;        /* greatest age of a file that replaces a sweep; 0: no limit */
    unsigned counters_round;  /* least seconds for a round over the counters of all ports; 0: no rounds */
    unsigned counters_rate;   /* ports a second that a round reads at most */
    char *metrics_file;       /* NULL: no file */
    char *metrics_listen;     /* ADDRESS:PORT of the HTTP server for metrics; NULL: none */
    unsigned history_days;    /* days that changes are kept; 0: for ever */
    unsigned history_changes; /* number of changes that are kept; 0: any number */
    unsigned store_keep_days; /* days that a store of an older schema is kept; 0: for ever */
    struct config_list pools; /* PLANE=FIRST-LAST: endpoint numbers for jobs */
    unsigned endpoints_quota; /* endpoints that a user may hold, except root and the daemon's own user */
    bool remote;              /* accept PMIx connections from other hosts (requires munge) */
    char *pmix_listen;  /* interface, network or address of the PMIx server; NULL: the library's choice */
    unsigned pmix_port; /* port of the PMIx server; 0: the system's choice */
    enum config_foreign foreign_tools;
    bool pmix_start; /* start the PMIx server fabricd-pmix; otherwise a service manager may start it */

    struct config_place at[CONFIG_MAX_SETTINGS]; /* the source of each setting, in the order of the table */
    /* Fields that only fabricd-pmix has: the members of the group, for FOREIGN_GROUP. */
    uid_t *tool_users;
    size_t n_tool_users;
    /* Fields that only the command line sets. */
    int argc;
    char **argv;
    const char *file;    /* the file that was read; NULL: none */
    const char *restore; /* --restore: path of the backup */
    const char *record;  /* --record: path of the recording */
    bool foreground, once, check_only;
};

void config_init(struct config *config); /* sets the defaults */
void config_destroy(struct config *config);

/* Read a file into the configuration. Its errors are added to the mistakes. */
void config_read(struct config *config, const char *path, struct config_mistakes *mistakes);

/* One setting, from a file or from the command line. */
struct config_line {
    const char *section, *name, *value;
    struct config_place name_at, value_at;
};
/* Set one setting. PMIXFAB_OK, or an error that was added to the mistakes. */
int config_put(struct config *config, const struct config_line *line, struct config_mistakes *mistakes);

/* Check that the settings fit together and that the files, programs and users that they name exist. Fills in
 * values that follow from others, such as a default probe. */
void config_check(struct config *config, struct config_mistakes *mistakes);

/* Return the value of a NAME=VALUE; NULL: there is none. */
const char *config_pair(const struct config_list *list, const char *name);

/* Find the endpoint numbers of a plane. False: it has no pool. */
bool config_pool(const struct config *config, const char *plane, uint32_t *first, uint32_t *last);

/* Replace *text by a copy of value. The second function appends to a list. */
int config_text(char **text, const char *value);
int config_append(struct config_list *list, const char *value);
void config_clear(struct config_list *list);

/* ---- mistakes ---- */

/* Add a mistake: "FILE:LINE:COLUMN: reason", or the reason alone if it has no line. Returns
 * PMIXFAB_ERR_SYNTAX. */
int config_mistake(struct config_mistakes *mistakes, struct config_place at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Add a mistake whose text begins with a place in another file, which the setting names. */
void config_mistake_there(struct config_mistakes *mistakes, struct config_place at, const char *text);

/* Return the number of mistakes, including mistakes that are not stored. */
uint32_t config_mistakes_count(const struct config_mistakes *mistakes);

/* Call `tell` for each stored mistake, then for the number of those not stored. */
void config_mistakes_tell(const struct config_mistakes *mistakes,
                          void (*tell)(const char *line, void *cbdata), void *cbdata);

void config_mistakes_log(const struct config_mistakes *mistakes); /* as errors */

void config_mistakes_destroy(struct config_mistakes *mistakes);

/* ---- the values in force ---- */

/* A value and its source; value NULL: not set. */
struct config_value {
    const char *section, *name, *value;
    struct config_place at;
};
/* Call `tell` for each value; for a list, for each item. PMIXFAB_ERR_NOMEM. */
int config_tell(const struct config *config, void (*tell)(const struct config_value *value, void *cbdata),
                void *cbdata);

/* Return the source of a field's value. */
struct config_place config_at(const struct config *config, const void *field);

/* ---- reload of the configuration while the daemon runs ---- */

struct setting; /* setting.h */

/*
 * The result of a reload. If there are mistakes, nothing has changed. Otherwise the result lists the
 * changed settings, and settings that differ but need a restart.
 */
struct config_reload {
    struct config_mistakes mistakes;
    const struct setting *changed[CONFIG_MAX_SETTINGS], *restart[CONFIG_MAX_SETTINGS];
    unsigned n_changed, n_restart;
};

/* Read the command line's file again. Only on the loop: a live setting may be freed while another part holds
 * a pointer to its text. */
int config_reload(struct config *config, struct config_reload *out);
void config_reload_destroy(struct config_reload *reload);

/* Return whether a start with this command line would accept its configuration now; otherwise err has the
 * first mistake. */
int config_can_start(const struct config *config, struct fab_err *err);

/* Return whether this setting has changed. name NULL: the section that is a list. */
bool config_reload_has(const struct config_reload *reload, const char *section, const char *name);

/* Write the names of the settings: "[fabricd] interval, [sweep.env]". */
#define CONFIG_NAMES_SIZE 1600
void config_names_text(const struct setting *const *settings, unsigned n,
                       char text[static CONFIG_NAMES_SIZE]);

/* Write a setting's name: "[fabricd] interval". */
#define CONFIG_NAME_SIZE 48
void config_name_text(const struct setting *setting, char text[static CONFIG_NAME_SIZE]);

/* ---- the command line over the file ---- */

/*
 * Read the command line and the configuration file that it names (by default /etc/fabricd.conf, if it
 * exists). PMIXFAB_OK, or PMIXFAB_ERR_INVAL: bad usage or mistakes, printed on standard error. --help and
 * --version exit.
 */
int options_parse(int argc, char **argv, struct config *config);

/* Change to the folder where fabricd was started, which relative names refer to; a background process has
 * left it. */
void options_go_back(void);

/* The same, without printing the mistakes. config: as config_init() leaves it. */
int options_read(int argc, char **argv, struct config *config, struct config_mistakes *mistakes);

#endif
