/*
 * ctl.h - parts that all of fabricctl uses: the request, messages, the daemon's answers, planes, tables.
 *
 * A command gets a filled-in `struct ctl`, writes its answer to standard output and returns an exit status. A
 * function that returns enum ctl_exit has written the message of its failure, unless it fills in `why`.
 */
#ifndef FABRICCTL_CORE_CTL_H
#define FABRICCTL_CORE_CTL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "pmixfab.h"

#define CTL_DEFAULT_RUNDIR "/run/fabricd"
#define CTL_HOLD_FILE      "exports.hold" /* beside exported files: an operator holds them (export --hold) */

#define CTL_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Exit statuses. */
enum ctl_exit {
    CTL_DONE = 0,
    CTL_FAILED = 1, /* the answer is no, or the work failed */
    CTL_USAGE = 2,  /* bad usage */
    CTL_SAME = 3 /* export --if-changed: the file has the same meaning already, and stays; slurm diff --quiet:
                    Slurm agrees, with a remark */
};

enum ctl_format { CTL_TEXT = 0, CTL_JSON, CTL_CSV };

/* The request: the command line as it was read. Strings belong to the command line. */
struct ctl {
    const char *command; /* its name */
    const char *rundir;
    const char *uri;   /* read over PMIx from this server; NULL: from the run directory */
    const char *plane; /* NULL: all planes, or the default plane, depending on the command */
    enum ctl_format format;
    const char *output;      /* matrix -o, export -o */
    const char *host;        /* refresh --host */
    const char *sw;          /* refresh --switch */
    bool wait, no_wait;      /* refresh */
    bool replace, cancel;    /* expect */
    uint32_t seconds;        /* expect --for, ack --for; 0: not given */
    bool store;              /* check --store */
    bool check;              /* status --check */
    bool errors;             /* counters --errors */
    int severity;            /* check --severity: the least one to show, 0: all */
    bool accept_partial;     /* refresh */
    bool release;            /* refresh */
    bool longer;             /* --long */
    bool force;              /* backup --force */
    bool if_changed;         /* export */
    bool strict;             /* export */
    bool repair;             /* slurm apply */
    const char *hold;        /* export --hold: the reason; NULL: none */
    bool snapshots_only;     /* lists: do not ask the daemon for facts that no snapshot has */
    const char *block_sizes; /* export slurm-block; NULL: inferred */
    const char *interface;   /* export: patterns (topo/base/pattern.h); NULL: those of the daemon */
    const char *nodes;       /* export: only these hosts: a list, "slurm", "slurm:FEATURE"; NULL: all */
    const char *above;       /* export: a file with levels above the tree; NULL: none */
    const char *topologies;  /* export slurm-yaml: NAME=KIND:PLANE...; NULL: a tree for each plane */
    unsigned slurm;          /* export slurm-block: for this version, as 2411; 0: the newest */
    uint32_t spare;          /* export: blocks without hosts for leaves that come later */
    uint32_t max_shrink;     /* export: percentage of the hosts that may leave the file; 100: any */
    bool free;               /* endpoints --free */
    bool follow;
    bool once;           /* top */
    bool all;            /* history, check and counters --all */
    int64_t since;       /* history --since, seconds since 1970; 0: not given */
    bool down;           /* lists: only rows that are down */
    uint32_t port;       /* links: only cables in a port of this number; 0: any */
    const char *values;  /* --values, for completion */
    const char *columns; /* of tables, with commas between; NULL: all */
    bool no_header;
    bool help, version;
    uint32_t limit; /* history --limit, place --nodes; 0: all; slurm --rate; simulate -n */
    const char *from, *exclude, *objective; /* place */
    const char *purpose;                    /* --for: a time, or a pattern of place and order */
    bool alone, shared;                     /* place and order --for */
    bool quiet;                             /* place, order, run */
    bool order;                             /* run --order */
    const char *grid, *traffic;             /* run --grid, --matrix */
    const char *hosts, *pattern;            /* simulate */
    uint64_t bytes;                         /* simulate; 0: the default */
    char *const *args;
    int n_args;
    bool *met; /* for each argument: an object with that name was found */
    struct ctl_ports *ports;
};

/* Facts for lists that the rows of a plane do not have. */
struct ctl_ports {
    bool asked;
    json_t *answer; /* the daemon's answer to `ports`, after the first request */
    json_t *shared; /* for text: names that several objects have (ctl_shared_names()) */
};

/* Run the whole program: main() calls only this. */
int ctl_main(int argc, char **argv);

/* ---- messages ---- */

/*
 * Write one line to standard error, after "fabricctl: " and without bytes that a terminal would interpret.
 */
void ctl_error_line(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* As above, and return CTL_FAILED, or CTL_USAGE. A caller's analyser sees that the status is no success. */
#define ctl_error(...)                                                                                       \
    __extension__({                                                                                          \
        ctl_error_line(__VA_ARGS__);                                                                         \
        CTL_FAILED;                                                                                          \
    })
#define ctl_usage(...)                                                                                       \
    __extension__({                                                                                          \
        ctl_error_line(__VA_ARGS__);                                                                         \
        CTL_USAGE;                                                                                           \
    })
static inline enum ctl_exit ctl_nomem(void)
{
    return ctl_error("out of memory: this process: ask for less, or raise its limit");
}

/* Flush standard output. Return `status`, or CTL_FAILED with a message if a write failed. */
enum ctl_exit ctl_finish(enum ctl_exit status);

/* From this call on, SIGINT and SIGTERM do not end the process: ctl_interrupted() becomes true instead. */
void ctl_catch_interrupts(void);
bool ctl_interrupted(void);

/* ---- clocks; a simulation replaces them (wait.c) ---- */

/* Return the time in seconds since 1970. */
int64_t ctl_now(void);
/* Return milliseconds of a monotonic clock. */
int64_t ctl_wait_now(void);
/*
 * Wait for POLLIN or POLLOUT of the connection until ctl_wait_now() reaches `deadline` (< 0: no deadline).
 * Return 1 if the connection is ready, and 0 after the deadline. Return -1 after an interrupt, or if standard
 * output has no reader any more.
 */
int ctl_wait(int fd, short what, int64_t deadline);

/* ---- other programs ---- */

/*
 * Start a program, searched in PATH, with /dev/null as its standard input and two descriptors as its outputs,
 * in a folder (NULL: the present one). It gets the signals that fabricctl ignores. Return 0 or an error
 * number.
 */
int ctl_spawn(pid_t *pid, char *const *argv, char *const *environment, int out, int err, const char *folder);

/* ---- text ---- */

/*
 * Replace in place, by '?', characters that are not text or that a terminal would interpret
 * (topo/base/text.h). The result is valid UTF-8.
 */
void ctl_clean(char *text);
/* Return a cleaned copy; NULL without memory. */
char *ctl_clean_copy(const char *text);

/*
 * Write one field of RFC 4180, in quotes where necessary. A field that a spreadsheet would evaluate as a
 * formula, and that is no number, gets a ' in front: spreadsheets mark text like this.
 */
void ctl_csv_field(FILE *out, const char *text);

/*
 * Join the names with `separator` between them. With NULL, join them in the short form of schedulers,
 * "node[0001-0004,7],login1". The caller frees the result with free(). NULL without memory.
 */
char *ctl_join_names(const char *const *names, size_t n, const char *separator);

/* Return whether the name is a GUID, which replaces a missing name of a host or a switch. */
bool ctl_guid_name(const char *name);

/* Format microseconds since 1970 as ISO 8601 in UTC, to the microsecond; "" for a number that is no date. */
#define CTL_TIME_SIZE 40
const char *ctl_time(int64_t microseconds, char buf[static CTL_TIME_SIZE]);

/* Format a time of the daemon's for people: to the second unless `longer`, "-" for none. */
const char *ctl_shown_time(const char *time, bool longer, char buf[static CTL_TIME_SIZE]);

/* Shorten a time in place. "2026-11-20T08:00:00.123456Z" becomes "2026-11-20T08:00:00Z". Other texts stay. */
void ctl_cut_to_seconds(char *text);

/* ---- JSON ---- */

/* Rates have three decimals; with more digits than this, doubles show rounding errors. */
#define CTL_JSON_FLAGS (JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(10))

/*
 * Write a value in the form that all commands use, and a newline. The function takes the reference. NULL
 * stands for a lack of memory.
 */
enum ctl_exit ctl_json_print(FILE *out, json_t *value);
/* Return the rate in Gb/s: an integer if it is whole. */
json_t *ctl_json_rate(uint64_t mbps);
/* Return the text, cleaned. NULL gives null. */
json_t *ctl_json_text(const char *text);

/* Return a member of an object. A missing text is NULL, a missing number 0, a missing truth value false. */
const char *ctl_text_of(const json_t *object, const char *key);
json_int_t ctl_number_of(const json_t *object, const char *key);
bool ctl_is(const json_t *object, const char *key);

/*
 * Write a text and replace each "{key}" by that scalar member in words. The words are cleaned: "yes" or "no",
 * a number with one decimal, "-" for none.
 */
void ctl_say(FILE *out, const json_t *object, const char *text);

/* ---- the daemon's control socket (docs/control.md) ---- */

#define CTL_WHY_SIZE       600
#define CTL_ANSWER_MAX     (64u << 20) /* bytes of one line */
#define CTL_ANSWER_SECONDS 30          /* for answers that need no sweep and no file */

struct ctl_control;
typedef enum ctl_exit ctl_show_fn(const struct ctl *ctl, const json_t *answer);

/*
 * Open a connection. The functions of a connection write no message: on failure `why` holds the failure, its
 * place and the advice.
 */
enum ctl_exit ctl_control_open(const char *rundir, struct ctl_control **out, char why[static CTL_WHY_SIZE]);
/* As above, for a connected socket; the connection owns it. */
enum ctl_exit ctl_control_adopt(int fd, const char *where, struct ctl_control **out,
                                char why[static CTL_WHY_SIZE]);
void ctl_control_close(struct ctl_control *control);

/*
 * Read the next line, which is an object; *line is NULL on failure. Wait at most `seconds`. A negative number
 * means no limit. The wait then ends with CTL_DONE and *line NULL if standard output has no reader any more,
 * or after an interrupt.
 */
enum ctl_exit ctl_control_next(struct ctl_control *control, int seconds, json_t **line,
                               char why[static CTL_WHY_SIZE]);

/*
 * Send one request and return its answer. The function takes the reference. It connects, sends, shows
 * progress lines and the mistakes of a rejection, and waits for the last line. Each wait for a line takes
 * `seconds` at most. An answer that is not `ok` is a failure. The pages of an answer are joined.
 */
enum ctl_exit ctl_control_ask(const char *rundir, json_t *request, int seconds, json_t **answer,
                              char why[static CTL_WHY_SIZE]);
/* As above, on an open connection. fd: the descriptor to send if the daemon requests one; -1: none. */
enum ctl_exit ctl_control_give(struct ctl_control *control, json_t *request, int fd, int seconds,
                               json_t **answer, char why[static CTL_WHY_SIZE]);

/* Return CTL_USAGE with --uri, since the daemon's commands do not work over PMIx. */
enum ctl_exit ctl_control_only(const struct ctl *ctl, const char *command);

/*
 * Send a request to the daemon; takes the reference. Its "op" is the name of the command. NULL: a name in it
 * is not UTF-8.
 */
enum ctl_exit ctl_ask(const struct ctl *ctl, json_t *request, int seconds, json_t **answer);
enum ctl_exit ctl_ask_show(const struct ctl *ctl, json_t *request, int seconds, ctl_show_fn *show);
/* As above, for an operation without members, with CTL_ANSWER_SECONDS. */
enum ctl_exit ctl_ask_op(const struct ctl *ctl, const char *op, ctl_show_fn *show);

/*
 * Request a stream: *first is the first answer, and ctl_control_next() reads the lines after it from
 * *control. From this call on, interrupts end the wait. The function takes the request; on failure *control
 * is NULL.
 */
enum ctl_exit ctl_ask_stream(const struct ctl *ctl, json_t *request, struct ctl_control **control,
                             json_t **first);

/* ---- files that appear whole or not at all ---- */

/*
 * A target file. A regular file is written under another name in the same folder; a pipe, a device and
 * standard output are written directly.
 */
struct ctl_target {
    const char *shown; /* as the operator gave it */
    char *path;        /* its final path; NULL: written directly */
    char *temporary;   /* NULL: none, or not any more */
    int fd;
    bool close;
};

/* Open a target; `path` "-" is standard output. Close it in any case. */
enum ctl_exit ctl_target_open(const char *path, struct ctl_target *t);
enum ctl_exit ctl_target_write(const struct ctl_target *t, const void *bytes, size_t size);
/* Report the error of errno with `what` and the path. Return CTL_FAILED. */
enum ctl_exit ctl_target_failed(const struct ctl_target *t, const char *what);
/*
 * Close the target. With CTL_DONE the finished file replaces the existing one; with `keep`, the existing one
 * is renamed to PATH.old. On failure the written data is removed, and the existing file stays. Return
 * `status`, or the failure at the end.
 */
enum ctl_exit ctl_target_close(struct ctl_target *t, bool keep, enum ctl_exit status);

/* Return a whole existing file with a 0 after it; free with free(). NULL: it cannot be read. */
char *ctl_target_read(const char *path, size_t *size);

/* ---- planes: the snapshots in a run directory, or of a PMIx server ---- */

#define CTL_REASON_SIZE 600

/* Open snapshots. */
struct ctl_view {
    struct pmixfab **planes;
    size_t n;
};

/* Open the plane of --plane, or all, the default plane first. */
enum ctl_exit ctl_view_all(const struct ctl *ctl, struct ctl_view *view);
/* Open the plane of --plane, or the default one. */
enum ctl_exit ctl_view_one(const struct ctl *ctl, struct ctl_view *view);
/*
 * Open all planes, for `status`: if none can be read, return CTL_DONE with none, and the cause in `reason`.
 */
enum ctl_exit ctl_view_any(const struct ctl *ctl, struct ctl_view *view, char reason[static CTL_REASON_SIZE]);
void ctl_view_close(struct ctl_view *view);

/* Return the place that is read, for messages: the URI or the run directory. */
const char *ctl_source_location(const struct ctl *ctl);
/*
 * Receive the library's log lines: they explain the next failure. A plane that the library skipped gives a
 * warning.
 */
void ctl_source_log(void);
/* End the PMIx connection, if there is one. */
void ctl_source_end(void);

/* Kinds of names, bits. */
enum ctl_names {
    CTL_HOSTS = 1,
    CTL_SWITCHES = 2,
    CTL_DEVICES = 4,
    CTL_GROUPS = 8,
    CTL_PLANES = 16,
    CTL_RAILS = 32
};

/* Call fn with each served name of these kinds; a name may come more than once. */
void ctl_each_name(const struct ctl *ctl, unsigned kinds, void (*fn)(const char *name, void *cbdata),
                   void *cbdata);

/*
 * Write "; did you mean leaf1?" with the nearest served name of these kinds. Write "" if no name is near, or
 * if a name equals the word.
 */
#define CTL_SUGGESTION 160
const char *ctl_suggest(const struct ctl *ctl, const char *word, unsigned kinds,
                        char text[static CTL_SUGGESTION]);

/* ---- tables: JSON objects, CSV, or aligned columns for people ---- */

#define CTL_SPARE 2
struct ctl_column {
    const char *key;  /* name in JSON and CSV */
    const char *head; /* head of the column in a text table; NULL: not for people */
    /* true: a number, right-aligned; CTL_SPARE: a text that is shortened before the others */
    int how;
};

struct ctl_table;

/* Form of JSON rows. */
enum ctl_json {
    CTL_JSON_ARRAY, /* one array of all rows */
    CTL_JSON_LINES  /* one row a line, each flushed at once; the same for CSV */
};

/*
 * Begin a table on `out`. JSON and CSV rows are written row by row, a text table at the end. With `into` (an
 * array; JSON only) the rows are appended to it instead. Return NULL without memory. The columns must outlive
 * the table.
 */
struct ctl_table *ctl_table_open(FILE *out, enum ctl_format format, enum ctl_json json, json_t *into,
                                 const struct ctl_column *columns, size_t n_columns);

/*
 * Set the layout of all tables on standard output from --columns, --no-header and --long. --columns may also
 * name columns that only programs get. Without --long a table is as wide as the terminal, and times are
 * shortened to seconds. none: the line that replaces a text table without rows; NULL: no line.
 */
void ctl_table_layout(const struct ctl *ctl, const char *none);

/* Add the cells of a row, in the order of the columns. NULL and empty arguments become null, "" and "-". */
void ctl_put_text(struct ctl_table *table, const char *text);
void ctl_put_number(struct ctl_table *table, int64_t number);
void ctl_put_index(struct ctl_table *table, uint32_t number); /* UINT32_MAX: null */
void ctl_put_bool(struct ctl_table *table, bool value);
void ctl_put_null(struct ctl_table *table);
void ctl_put_guid(struct ctl_table *table, uint64_t guid);                        /* 0: null */
void ctl_put_rate(struct ctl_table *table, uint64_t mbps);                        /* in Gb/s; 0: null */
void ctl_put_time(struct ctl_table *table, int64_t microseconds);                 /* ISO 8601 */
void ctl_put_numbers(struct ctl_table *table, const uint32_t *numbers, size_t n); /* an array */
void ctl_put_hosts(struct ctl_table *table, const char *const *names, size_t n);  /* folded for people */
/* Add an array of the daemon's strings; any other value gives an empty array. */
void ctl_put_list(struct ctl_table *table, const json_t *strings);
/* Add a value for JSON only (in a column without a head); takes the reference. NULL: no memory. */
void ctl_put_json(struct ctl_table *table, json_t *value);

/*
 * Add a member of the daemon's answer: an array of strings, a number, or a text. Any other type becomes null.
 */
void ctl_put_member(struct ctl_table *table, const json_t *row, const char *key);
/* Add a whole row of such members, by the columns' keys. Return false when nothing more can be written. */
bool ctl_put_members(struct ctl_table *table, const json_t *row);

/* End the row. Return false when nothing more can be written. */
bool ctl_table_row(struct ctl_table *table);
/* Write the remaining rows and free the table, which may be NULL (no memory). */
enum ctl_exit ctl_table_close(struct ctl_table *table);

/* Write rows of members to standard output; with `into`, append them to it. */
enum ctl_exit ctl_rows_table(const struct ctl *ctl, const struct ctl_column *columns, size_t n_columns,
                             const json_t *rows, json_t *into);
/*
 * Write one such row as a line of its own. The function takes the reference. NULL stands for a lack of
 * memory.
 */
enum ctl_exit ctl_row_print(const struct ctl *ctl, const struct ctl_column *columns, size_t n_columns,
                            json_t *row);

#endif
