/*
 * ctl.h - what the parts of fabricctl share: the request as the operator typed it, and how failures are told.
 *
 * A command gets a filled-in `struct ctl`, writes its answer to standard output and returns an exit status.
 */
#ifndef FABRICCTL_CORE_CTL_H
#define FABRICCTL_CORE_CTL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pmixfab.h"

#define CTL_DEFAULT_RUNDIR "/run/fabricd"

/* Exit statuses. */
enum ctl_exit {
    CTL_DONE = 0,
    CTL_FAILED = 1, /* the answer is no, or the work failed */
    CTL_USAGE = 2,  /* bad usage */
    CTL_SAME = 3    /* export --if-changed: the file says the same already, and was left alone */
};

enum ctl_format { CTL_TEXT = 0, CTL_JSON, CTL_CSV };

/* What was asked. Strings belong to the command line. */
struct ctl {
    const char *rundir;
    const char *uri;   /* read over PMIx from there; NULL: from the run directory */
    const char *plane; /* NULL: all planes, or the default plane, as the command has it */
    enum ctl_format format;
    const char *output;      /* matrix -o, export -o */
    const char *host;        /* refresh --host */
    const char *sw;          /* refresh --switch */
    bool wait, no_wait;      /* refresh */
    bool replace, cancel;    /* expect */
    uint32_t seconds;        /* expect --for, ack --for; 0: not said */
    bool store;              /* check --store */
    bool check;              /* status --check */
    bool errors;             /* counters --errors */
    int severity;            /* check --severity: the least one that is shown, 0: all */
    bool accept_partial;     /* refresh */
    bool release;            /* refresh */
    bool longer;             /* --long */
    bool force;              /* backup --force */
    bool if_changed;         /* export */
    bool strict;             /* export */
    bool snapshots_only;     /* lists: the daemon is not asked for what they do not have */
    const char *block_sizes; /* export slurm-block; NULL: inferred */
    const char *interface;   /* export: patterns (topo/base/pattern.h); NULL: as the daemon has it */
    bool free;               /* endpoints --free */
    bool follow;
    bool once;           /* top */
    bool all;            /* history, check and counters --all */
    int64_t since;       /* history --since, seconds since 1970; 0: not said */
    bool down;           /* lists: only what is down */
    uint32_t port;       /* links: only what is in a port of this number; 0: any */
    const char *values;  /* --values, for completion */
    const char *columns; /* of tables; NULL: all */
    bool no_header;
    bool help, version;
    uint32_t limit;                         /* history --limit, place --nodes; 0: all */
    const char *from, *exclude, *objective; /* place */
    bool quiet;                             /* place, order */
    char *const *args;
    int n_args;
    bool *met; /* of each argument: something of that name was found */
    struct ctl_ports *ports;
};

/* What lists need beside the rows of a plane. */
struct ctl_ports {
    bool asked;
    struct json_t *answer; /* what the daemon has said of ports (fabric/ports.h), once it was asked */
    struct json_t *shared; /* of a text: names that several have (fabric/labels.h) */
};

struct ctl_command {
    const char *name;
    const char *args;    /* as the usage shows them */
    const char *summary; /* one line */
    const char *options; /* letters of the options that it takes beside the global ones */
    int min_args, max_args;
    enum ctl_exit (*run)(const struct ctl *ctl);
};

/* The whole program: what main() does. */
int ctl_main(int argc, char **argv);

/* One line to standard error, "fabricctl: " before it, nothing in it that a terminal would obey. CTL_FAILED.
 */
enum ctl_exit ctl_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The same, and CTL_USAGE. */
enum ctl_exit ctl_usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* "Out of memory", told. */
enum ctl_exit ctl_nomem(void);

/* Flush standard output and tell what went wrong with it, if anything did; else `status`. */
enum ctl_exit ctl_finish(enum ctl_exit status);

/* From here on SIGINT and SIGTERM end the work in an orderly way: ctl_interrupted() is true after one. */
void ctl_catch_interrupts(void);
bool ctl_interrupted(void);

#endif
