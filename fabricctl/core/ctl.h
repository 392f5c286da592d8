/*
 * ctl.h - what all parts of fabricctl share: the request, messages, the daemon's answers, planes, tables.
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

#include "pmixfab.h"

#define CTL_DEFAULT_RUNDIR "/run/fabricd"

#define CTL_COUNT(array) (sizeof(array) / sizeof((array)[0]))

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
    const char *command; /* its name */
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
    json_t *answer; /* the daemon's answer to `ports`, once it was asked */
    json_t *shared; /* of a text: names that several have (ctl_shared_names()) */
};

/* The whole program: what main() does. */
int ctl_main(int argc, char **argv);

/* ---- messages ---- */

/* Write one line to standard error, "fabricctl: " before it, nothing in it that a terminal would obey. Return
 * CTL_FAILED. */
enum ctl_exit ctl_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The same, and CTL_USAGE. */
enum ctl_exit ctl_usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
enum ctl_exit ctl_nomem(void);

/* Flush standard output. Return `status`, or CTL_FAILED with a message where a write has failed. */
enum ctl_exit ctl_finish(enum ctl_exit status);

/* From here on SIGINT and SIGTERM end the work in an orderly way: ctl_interrupted() is true after one. */
void ctl_catch_interrupts(void);
bool ctl_interrupted(void);

/* ---- clocks; a simulation has other ones (wait.c) ---- */

/* Seconds since 1970. */
int64_t ctl_now(void);
/* Milliseconds of a clock that never jumps. */
int64_t ctl_wait_now(void);
/* Wait for POLLIN or POLLOUT of the connection. 1: ready, 0: the deadline passed, -1: interrupted, or nobody
 * reads our output any more. deadline: by ctl_wait_now(), < 0: none. */
int ctl_wait(int fd, short what, int64_t deadline);

/* ---- text ---- */

/* Replace by '?', in place, what does not belong on a terminal or is not text (topo/base/text.h). The result
 * is valid UTF-8. */
void ctl_clean(char *text);
/* A cleaned copy; NULL without memory. */
char *ctl_clean_copy(const char *text);

/* One field of RFC 4180: in quotes where it needs them. What a spreadsheet would run as a formula, and is no
 * number, gets a ' before it, as spreadsheets mark a text. */
void ctl_csv_field(FILE *out, const char *text);

/* The names with `separator` between them; NULL: in the short form that schedulers use,
 * "node[0001-0004,7],login1". Free with free(); NULL without memory. */
char *ctl_join_names(const char *const *names, size_t n, const char *separator);

/* Is the name a GUID, which a host or a switch without a name goes by? */
bool ctl_guid_name(const char *name);

/* Microseconds since 1970 as ISO 8601 in UTC, to the microsecond; "" for what is no date. */
#define CTL_TIME_SIZE 40
const char *ctl_time(int64_t microseconds, char buf[static CTL_TIME_SIZE]);

/* A time of the daemon's for people: to the second unless `longer`, "-" for none. */
const char *ctl_shown_time(const char *time, bool longer, char buf[static CTL_TIME_SIZE]);

/* In place: "2026-11-20T08:00:00.123456Z" becomes "2026-11-20T08:00:00Z"; anything else stays. */
void ctl_cut_to_seconds(char *text);

/* ---- JSON ---- */

/* Rates have three decimals; doubles show their own noise with more digits than this. */
#define CTL_JSON_FLAGS (JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(10))

/* Write a value in the form that all commands use, and a newline. Takes the reference; NULL: no memory. */
enum ctl_exit ctl_json_print(FILE *out, json_t *value);
/* Gb/s: an integer where it is one. */
json_t *ctl_json_rate(uint64_t mbps);
/* Text, cleaned. NULL gives null. */
json_t *ctl_json_text(const char *text);

/* Members of an object. A text is NULL, a number 0, a truth false where there is none. */
const char *ctl_text_of(const json_t *object, const char *key);
json_int_t ctl_number_of(const json_t *object, const char *key);
bool ctl_is(const json_t *object, const char *key);

/* Write a text in which "{key}" stands for a scalar member in words: "yes" and "no", one decimal, "-" for
 * none; cleaned. */
void ctl_say(FILE *out, const json_t *object, const char *text);

/* ---- the daemon's control socket (docs/control.md) ---- */

#define CTL_WHY_SIZE       600
#define CTL_ANSWER_MAX     (64u << 20) /* bytes of one line */
#define CTL_ANSWER_SECONDS 30          /* for what the daemon knows already */

struct ctl_control;
typedef enum ctl_exit ctl_show_fn(const struct ctl *ctl, const json_t *answer);

/* The functions of a connection write no messages: what failed, where and what to do is in `why`. */
enum ctl_exit ctl_control_open(const char *rundir, struct ctl_control **out, char why[static CTL_WHY_SIZE]);
/* The same over a connected socket, which is taken over. */
enum ctl_exit ctl_control_adopt(int fd, const char *where, struct ctl_control **out,
                                char why[static CTL_WHY_SIZE]);
void ctl_control_close(struct ctl_control *control);

/* The next line, an object; *line is NULL on failure. Waits at most `seconds` (negative: without end, but
 * ends when standard output has no reader any more, or by an interrupt: CTL_DONE with *line NULL). */
enum ctl_exit ctl_control_next(struct ctl_control *control, int seconds, json_t **line,
                               char why[static CTL_WHY_SIZE]);

/* One question: connect, send (takes the reference), show progress lines and a refusal's mistakes, and wait
 * for the last line, at most `seconds` from one line to the next. An answer that is not `ok` is a failure. An
 * answer in pages is put together. */
enum ctl_exit ctl_control_ask(const char *rundir, json_t *request, int seconds, json_t **answer,
                              char why[static CTL_WHY_SIZE]);
/* The same over a connection. fd: the descriptor for a daemon that asks for one; -1: none. */
enum ctl_exit ctl_control_give(struct ctl_control *control, json_t *request, int fd, int seconds,
                               json_t **answer, char why[static CTL_WHY_SIZE]);

/* CTL_USAGE with --uri: the daemon cannot be asked over PMIx. */
enum ctl_exit ctl_control_only(const struct ctl *ctl, const char *command);

/* Ask the daemon; takes the request, whose "op" is called as the command. NULL: a name of it is not UTF-8. */
enum ctl_exit ctl_ask(const struct ctl *ctl, json_t *request, int seconds, json_t **answer);
enum ctl_exit ctl_ask_show(const struct ctl *ctl, json_t *request, int seconds, ctl_show_fn *show);
/* The same of an operation without members, within CTL_ANSWER_SECONDS. */
enum ctl_exit ctl_ask_op(const struct ctl *ctl, const char *op, ctl_show_fn *show);

/* Ask for what goes on: *control is open behind the first answer, and ctl_control_next() has the lines behind
 * it. From here on interrupts end the work. Takes the request; on failure *control is NULL. */
enum ctl_exit ctl_ask_stream(const struct ctl *ctl, json_t *request, struct ctl_control **control,
                             json_t **first);

/* ---- planes: the snapshots in a run directory, or of a PMIx server ---- */

#define CTL_REASON_SIZE 600

/* Open snapshots. */
struct ctl_view {
    struct pmixfab **planes;
    size_t n;
};

/* That of --plane, or all, the default plane first. */
enum ctl_exit ctl_view_all(const struct ctl *ctl, struct ctl_view *view);
/* That of --plane, or the default one. */
enum ctl_exit ctl_view_one(const struct ctl *ctl, struct ctl_view *view);
/* All planes, for `status`: nothing readable at all is CTL_DONE with none, and `reason` says why. */
enum ctl_exit ctl_view_any(const struct ctl *ctl, struct ctl_view *view, char reason[static CTL_REASON_SIZE]);
void ctl_view_close(struct ctl_view *view);

/* What is read, for messages. */
const char *ctl_source_location(const struct ctl *ctl);
/* Take the library's log lines: they explain the next failure; a plane that was passed over is a warning. */
void ctl_source_log(void);
/* End the PMIx connection, where there is one. */
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

/* Call fn with each name of these kinds that is served; a name may come again. */
void ctl_each_name(const struct ctl *ctl, unsigned kinds, void (*fn)(const char *name, void *cbdata),
                   void *cbdata);

/* "; did you mean leaf1?", of the served names of these kinds; "" where none is near, or one is the word. */
#define CTL_SUGGESTION 160
const char *ctl_suggest(const struct ctl *ctl, const char *word, unsigned kinds,
                        char text[static CTL_SUGGESTION]);

/* ---- tables: JSON objects, CSV, or aligned columns for people ---- */

#define CTL_SPARE 2
struct ctl_column {
    const char *key;  /* in JSON and CSV */
    const char *head; /* over the text table's column; NULL: not for people */
    int how;          /* true: a number, on the right; CTL_SPARE: a text that is cut before the others */
};

struct ctl_table;

/* How JSON rows stand. */
enum ctl_json {
    CTL_JSON_ARRAY, /* one array of rows */
    CTL_JSON_LINES  /* a row a line, each written through at once; CSV likewise */
};

/*
 * Begin a table on `out`. JSON and CSV rows are written as they are finished, a text table at the end. With
 * `into` (an array; JSON only) the rows are appended to it instead of written. NULL without memory. The
 * columns must outlive the table.
 */
struct ctl_table *ctl_table_open(FILE *out, enum ctl_format format, enum ctl_json json, json_t *into,
                                 const struct ctl_column *columns, size_t n_columns);

/* Of all tables on standard output: --columns, --no-header and --long. A column that is only for programs can
 * be asked for, too. Without --long a table is as wide as the terminal, and times are to the second. none:
 * the line in place of a table for people without rows; NULL: no line. */
void ctl_table_layout(const struct ctl *ctl, const char *none);

/* The cells of a row, in the order of the columns. NULL and empty arguments are null, "" and "-". */
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
/* An array of strings of the daemon's; of anything else an empty one. */
void ctl_put_list(struct ctl_table *table, const json_t *strings);
/* A value that only JSON has (in a column without head): takes the reference. NULL: no memory. */
void ctl_put_json(struct ctl_table *table, json_t *value);

/* A member of the daemon's: an array of strings, a number, or a text; null for anything else. */
void ctl_put_member(struct ctl_table *table, const json_t *row, const char *key);
/* A row of such members, by the columns' keys. False when nothing more can be written. */
bool ctl_put_members(struct ctl_table *table, const json_t *row);

/* The row is complete. False when nothing more can be written. */
bool ctl_table_row(struct ctl_table *table);
/* Write what is left and free; `table` may be NULL (no memory). */
enum ctl_exit ctl_table_close(struct ctl_table *table);

/* Rows of members on standard output; with `into` appended to it. */
enum ctl_exit ctl_rows_table(const struct ctl *ctl, const struct ctl_column *columns, size_t n_columns,
                             const json_t *rows, json_t *into);
/* One such row, a line of its own. Takes the reference; NULL: no memory. */
enum ctl_exit ctl_row_print(const struct ctl *ctl, const struct ctl_column *columns, size_t n_columns,
                            json_t *row);

#endif
