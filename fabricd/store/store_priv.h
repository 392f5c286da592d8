/*
 * store_priv.h - internals of the store: the handle, statements, transactions, and functions shared by its
 * files.
 */
#ifndef FABRICD_STORE_STORE_PRIV_H
#define FABRICD_STORE_STORE_PRIV_H

#include <sqlite3.h>
#include <stddef.h>
#include <sys/types.h>

#include "fabricd/store/store.h"
#include "fabricd/store/store_tables.h"

#define STORE_APPLICATION_ID 0x66616264 /* "fabd" */

/* How long to wait for the lock of another process (an operator's sqlite3, a backup). */
#define STORE_BUSY_MS 1000

/* Up to this size a database is checked completely at the open: tens of milliseconds. */
#define STORE_CHECK_MAX (64 << 20)

/*
 * The WAL is folded into the database at this number of pages. The number is large enough that not each
 * publication of a large fabric folds it. It is small enough that a start after a crash reads the WAL in
 * milliseconds.
 */
#define STORE_WAL_PAGES 4000

/* Up to this size a database without incremental vacuum is rebuilt with it at the open: some hundredths of a
 * second. */
#define STORE_VACUUM_MAX (16 << 20)

/* The advice for a broken database. */
#define STORE_RESTORE "restore it from a backup, or move it away and let fabricd create a new one"

#define STORE_STATEMENTS 256 /* a power of two, twice the number of statements */

struct store {
    sqlite3 *db;
    char *path;
    int lock_fd;
    int reading; /* why it is open for reading only, as returned by store_no_room(); 0: it is not */
    struct store_marks marks;

    struct {
        bool known;
        dev_t device;
        ino_t file;
        off_t size;
    } log; /* the log at the last write */
    void (*on_commit)(void *cbdata);
    void *on_commit_data;

    struct {
        const char *sql;
        sqlite3_stmt *stmt;
    } prepared[STORE_STATEMENTS]; /* by the address of their text */
};

/* The files of schema/, in order: entry i migrates a database from version i to i+1. Terminated by NULL. */
extern const char *const schema_sql[];

/* ---- store_sql.c: statements ---- */

/* A value of a parameter. A text that is NULL is SQL's NULL. */
struct store_value {
    int type; /* SQLITE_INTEGER, ...; 0 ends a list */
    int64_t number;
    const void *bytes; /* of the caller, until the statement has run */
    size_t size;
};
#define INT(value)         ((struct store_value){SQLITE_INTEGER, (int64_t)(value), NULL, 0})
#define TEXT(text)         ((struct store_value){SQLITE_TEXT, 0, (text), 0})
#define BLOB(data, length) ((struct store_value){SQLITE_BLOB, 0, (data), (length)})
#define NONE               ((struct store_value){SQLITE_NULL, 0, NULL, 0})
/* The values of the parameters ?1, ?2, ... */
#define VALUES(...) ((const struct store_value[]){__VA_ARGS__, {0}})

/*
 * All these functions take an SQL text at a constant address: its statement is prepared once per connection,
 * and kept. values NULL: there are no parameters. doing: the activity, for messages ("writing a node").
 */

/* Prepare a statement early, so that it cannot fail later without memory. */
int store_prepare(struct store *store, const char *sql, struct fab_err *err);

/* Run a statement, and ignore its rows. */
int store_run(struct store *store, const char *sql, const struct store_value *values, const char *doing,
              struct fab_err *err);

/* Run a statement that must affect exactly one row. PMIXFAB_ERR_CONFLICT: it affected none or several. */
int store_run_one(struct store *store, const char *sql, const struct store_value *values, const char *doing,
                  struct fab_err *err);

/* Return the first row: 1 there is one, 0 there is none, or negative. Call store_done(*row) in any case. */
int store_first(struct store *store, const char *sql, const struct store_value *values, const char *doing,
                sqlite3_stmt **row, struct fab_err *err);
/* Return the next row in the same way. */
int store_next(struct store *store, sqlite3_stmt *row, const char *doing, struct fab_err *err);
void store_done(sqlite3_stmt *row); /* NULL allowed */

/* Call fn for each row; a positive return value ends the walk, which is a success. */
typedef int (*store_row_fn)(struct store *store, sqlite3_stmt *row, void *cbdata, struct fab_err *err);
int store_each(struct store *store, const char *sql, const struct store_value *values, const char *doing,
               store_row_fn fn, void *cbdata, struct fab_err *err);

/* Return the first column of the first row of a query that is used once, as text. */
int store_ask(struct store *store, const char *sql, char *text, size_t size, const char *doing,
              struct fab_err *err);

/* Finalize all statements. */
void store_forget_statements(struct store *store);

/* Return a column as an unsigned number; *bad is set if it is not one or is larger than max. */
uint64_t store_number(sqlite3_stmt *row, int column, uint64_t max, bool *bad);
/* Return a column as text; "" and *bad if there is none, or it contains a byte 0. */
const char *store_text(sqlite3_stmt *row, int column, bool *bad);

/* Members of a struct that are columns of a table, in the same order. */
struct store_column {
    size_t offset, size;
    bool text;    /* const char *; else a number of `size` bytes */
    uint64_t max; /* of a number */
};
#define COLUMN_TO(type, member, most)                                                                             \
    {                                                                                                             \
        offsetof(struct type, member), sizeof(((struct type *)NULL)->member),                                   \
     _Generic(((struct type *)NULL)->member, const char *: true, char *: true, default: false), (most) \
    }
#define COLUMN(type, member)                                                                                 \
    COLUMN_TO(type, member, UINT64_MAX >> (64 - 8 * sizeof(((struct type *)NULL)->member)))

#define STORE_COLUMNS_MAX 16
/* Read the columns of a row. False: a column has a value that was never written. Texts belong to the
 * statement, until its next step. */
bool store_read_columns(sqlite3_stmt *row, const struct store_column *columns, int n, void *out);
void store_column_values(const struct store_column *columns, int n, const void *from,
                         struct store_value values[STORE_COLUMNS_MAX + 1]);

/* Explain SQLite's code rc of the activity `doing`; returns the code of pmixfab.h. */
int store_fail(struct store *store, int rc, const char *doing, struct fab_err *err);
int store_nomem(const struct store *store, struct fab_err *err);
/* Set "..., and the advice"; returns PMIXFAB_ERR_CORRUPT. */
int store_corrupt(const struct store *store, struct fab_err *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- store_transaction.c ---- */

/* Begin a write transaction. PMIXFAB_ERR_IO: the file is not in its place any more. */
int store_begin(struct store *store, struct fab_err *err);
/* Commit if rc is PMIXFAB_OK, else roll back. Returns rc, or the error of the commit. */
int store_end(struct store *store, int rc, struct fab_err *err);

/* Note the present log: later it must be the same file, and not shorter. */
void store_log_know(struct store *store);

/* ---- store_lock.c ---- */

int store_lock(struct store *store, struct fab_err *err);
void store_unlock(struct store *store);
void store_mark_newest(struct store *store, uint64_t generation);

/* ---- store_schema.c ---- */

int store_count_steps(const char *const *steps);

/* Return the name under which a store of this schema is kept beside the new one. PMIXFAB_ERR_RANGE. */
int store_name_before(char *kept, size_t size, const char *path, int version);

/* Reject a database of another program or of a newer fabricd. *version is the schema's. Reads only. */
int store_identify(struct store *store, const char *const *steps, int *version, struct fab_err *err);

/* Apply the missing steps in one transaction. Foreign keys must be off, since steps may rebuild tables. */
int store_migrate(struct store *store, const char *const *steps, struct fab_err *err);

/* Do not trust the schema of a database; for each connection except one in memory. */
void store_harden(sqlite3 *db);

/*
 * Compare the schema with the schema of the version, word by word. _CORRUPT: a part is missing or different.
 * _FOREIGN: the schema has an additional trigger, view or similar. strict: also reject an additional table or
 * index, which is harmless.
 */
int store_check_schema(struct store *store, const char *const *steps, int version, bool strict,
                       struct fab_err *err);

/* ---- store.c ---- */

/* Do the same as store_open() with another schema: steps as schema_sql. keep: a store of an older schema is
 * kept beside the new one. */
int store_open_schema(const char *path, const char *const *steps, bool keep, struct store **out,
                      struct fab_err *err);

/* ---- store_copy.c ---- */

#define STORE_KEPT      ".before-restore" /* suffix of a replaced store's name */
#define STORE_COPY      ".restoring"      /* suffix of a copy that will be the store */
#define STORE_MOST_KEPT 100

extern const char *const store_beside[2]; /* suffixes of SQLite's files */

/* Return the name of the i-th store that was kept, from 1. PMIXFAB_ERR_RANGE. */
int store_kept_name(char *kept, size_t size, const char *path, unsigned i);

/*
 * Undo a restore that was killed: remove an incomplete copy, or a second name of the store. The owner of the
 * store's lock calls it before the store is opened.
 */
void store_undo_restore(const char *path);

/* ---- the tables; writers are in a transaction ---- */

/* Bring the tables from `before` to `after`. PMIXFAB_ERR_CONFLICT: they do not have `before`. */
int store_write_inventory(struct store *store, const struct fab_inventory *before,
                          const struct fab_inventory *after, struct fab_err *err);
/* Return a digest of a finished inventory that covers all its data (except lines). */
uint64_t store_inventory_digest(const struct fab_inventory *inv);
/* The same for a row; the numbers are overwritten. */
uint64_t store_row_digest(uint64_t *numbers, size_t n, const char *text, const void *bytes, size_t size);

int store_write_announced(struct store *store, const struct store_report *announced, struct fab_err *err);

/* Write the change from one state to the next: missing objects and, if `lost`, the rows of lost ones that
 * differ. */
int store_write_absent(struct store *store, const struct absent *before, const struct absent *after,
                       bool lost, struct fab_err *err);

int store_write_generation(struct store *store, const struct store_publication *publication,
                           struct fab_err *err);
int store_write_history_digest(struct store *store, uint64_t generation, struct fab_err *err);
/* Add n to the stored number of changes. */
int store_count_changes(struct store *store, uint32_t n, struct fab_err *err);

/* Make the next generation larger than this one. PMIXFAB_ERR_RANGE. */
int store_raise(struct store *store, uint64_t above, struct fab_err *err);

/*
 * Compare each generation with its digest, up to the newest, which must exist. PMIXFAB_ERR_CORRUPT: err names
 * the first one that differs. progress is called repeatedly; false cancels (_TIMEOUT).
 */
int store_history_check(struct store *store, uint64_t newest, bool (*progress)(uint64_t done, void *cbdata),
                        void *cbdata, struct store_history_checked *out, struct fab_err *err);

/* Replace the endpoints by those of the database at this path, if it has the table: they are newer. */
int store_endpoints_take_over(struct store *store, const char *path, struct fab_err *err);

#endif
