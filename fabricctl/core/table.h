/*
 * table.h - rows with named columns, written as JSON objects, as CSV, or as an aligned table for people.
 *
 * JSON and CSV rows go out as they are finished; a text table is laid out at the end. Failures are kept and
 * told by ctl_table_close().
 */
#ifndef FABRICCTL_CORE_TABLE_H
#define FABRICCTL_CORE_TABLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "fabricctl/core/ctl.h"

#define CTL_COUNT(array) (sizeof(array) / sizeof((array)[0]))

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
 * Begin a table on `out`. With `into` (an array; JSON only) the rows are appended to it instead of written.
 * NULL without memory. The columns must outlive the table.
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
void ctl_put_bool(struct ctl_table *table, bool value);
void ctl_put_null(struct ctl_table *table);
void ctl_put_guid(struct ctl_table *table, uint64_t guid); /* 0: null */
void ctl_put_rate(struct ctl_table *table, uint64_t mbps); /* in Gb/s; 0: null */
void ctl_put_seconds(struct ctl_table *table, double seconds);
void ctl_put_time(struct ctl_table *table, int64_t microseconds);                 /* ISO 8601 */
void ctl_put_numbers(struct ctl_table *table, const uint32_t *numbers, size_t n); /* an array */
void ctl_put_hosts(struct ctl_table *table, const char *const *names,
                   size_t n); /* an array; folded for people */

/* A member of the daemon's: an array of strings, a number, or a text; null for anything else. */
void ctl_put_member(struct ctl_table *table, const json_t *row, const char *key);

/* A row of such members, by the columns' keys. False when nothing more can be written. */
bool ctl_put_members(struct ctl_table *table, const json_t *row);

/* An array of strings as it came from the daemon; of anything else an empty one. */
void ctl_put_list(struct ctl_table *table, const json_t *strings);
/* A value that only JSON has (in a column without head): takes the reference. NULL: no memory. */
void ctl_put_json(struct ctl_table *table, json_t *value);

/* The row is complete. False when nothing more can be written. */
bool ctl_table_row(struct ctl_table *table);

/* Write what is left and free; `table` may be NULL (no memory). */
enum ctl_exit ctl_table_close(struct ctl_table *table);

/* Objects of the daemon's on standard output, their members by the columns' keys; with `into` appended to it.
 */
enum ctl_exit ctl_rows_table(const struct ctl *ctl, const struct ctl_column *columns, size_t n_columns,
                             const json_t *rows, json_t *into);

/* A JSON value in the form that all commands use, and a newline. Takes the reference; NULL: no memory. */
enum ctl_exit ctl_json_print(FILE *out, json_t *value);

/* Rates have three decimals; doubles show their own noise with more digits than this. */
#define CTL_JSON_FLAGS (JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(10))

/* Gb/s as JSON: an integer where it is one. */
json_t *ctl_json_rate(uint64_t mbps);
/* Text as JSON, cleaned. NULL gives null. */
json_t *ctl_json_text(const char *text);

#endif
