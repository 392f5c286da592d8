/*
 * store_priv.h - inside the store: the handle, statements, transactions, and what its files offer each other.
 */
#ifndef FABRICD_STORE_STORE_PRIV_H
#define FABRICD_STORE_STORE_PRIV_H

#include <sqlite3.h>
#include <stddef.h>
#include <sys/types.h>

#include "fabricd/store/store.h"
#include "fabricd/store/store_tables.h"

#define STORE_APPLICATION_ID 0x66616264 /* "fabd" */

/* How long another process's lock (an operator's sqlite3, a backup) is waited for. */
#define STORE_BUSY_MS 1000

/* Up to this size a database is checked wholly when it is opened: tens of milliseconds. */
#define STORE_CHECK_MAX (64 << 20)

/* The WAL is folded into the database when it has this many pages: not at every publication of a large
 * fabric, yet small enough to be read in milliseconds at a start after a crash. */
#define STORE_WAL_PAGES 4000

/* Up to this size a database that was made without the means to become smaller is made anew with them when it
 * is opened: some hundredths of a second. */
#define STORE_VACUUM_MAX (16 << 20)

/* What to do about a broken database. */
#define STORE_RESTORE "restore it from a backup, or move it away and let fabricd begin anew"

#define STORE_STATEMENTS 256 /* a power of two, twice as many as there are */

struct store {
    sqlite3 *db;
    char *path;
    int lock_fd;
    int reading; /* why it is only read, as store_no_room() says; 0: it is not */
    struct store_marks marks;

    struct {
        bool known;
        dev_t device;
        ino_t file;
        off_t size;
    } log; /* when it was written to last */
    void (*on_commit)(void *cbdata);
    void *on_commit_data;

    struct {
        const char *sql;
        sqlite3_stmt *stmt;
    } prepared[STORE_STATEMENTS]; /* by the address of their text */
};

/* The files of schema/, in order: entry i brings a database from version i to i+1. NULL ends it. */
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
/* Of the parameters ?1, ?2, ... */
#define VALUES(...) ((const struct store_value[]){__VA_ARGS__, {0}})

/*
 * All of these take a text of SQL that stays where it is: its statement is prepared once a connection, and
 * kept. `values` NULL: there are no parameters. `doing` is for errors ("writing a node").
 */

/* A statement that is not to fail later for want of memory. */
int store_prepare(struct store *store, const char *sql, struct fab_err *err);

/* Run a statement, whose rows are left alone. */
int store_run(struct store *store, const char *sql, const struct store_value *values, const char *doing,
              struct fab_err *err);

/* As above for a statement that must have met exactly one row: PMIXFAB_ERR_CONFLICT where it has not. */
int store_run_one(struct store *store, const char *sql, const struct store_value *values, const char *doing,
                  struct fab_err *err);

/* The first row: 1 there is one, 0 there is none, or negative. store_done(*row) in any case. */
int store_first(struct store *store, const char *sql, const struct store_value *values, const char *doing,
                sqlite3_stmt **row, struct fab_err *err);
/* The next one, likewise. */
int store_next(struct store *store, sqlite3_stmt *row, const char *doing, struct fab_err *err);
void store_done(sqlite3_stmt *row); /* NULL allowed */

/* fn for each row; a positive number of fn's ends the walk, which is a success. */
typedef int (*store_row_fn)(struct store *store, sqlite3_stmt *row, void *cbdata, struct fab_err *err);
int store_each(struct store *store, const char *sql, const struct store_value *values, const char *doing,
               store_row_fn fn, void *cbdata, struct fab_err *err);

/* The first column of the first row of a query that is asked once, as a text. */
int store_ask(struct store *store, const char *sql, char *text, size_t size, const char *doing,
              struct fab_err *err);

/* All statements go. */
void store_forget_statements(struct store *store);

/* A column as an unsigned number; *bad is set where it is none or larger than max. */
uint64_t store_number(sqlite3_stmt *row, int column, uint64_t max, bool *bad);
/* As a text, "" and *bad where there is none, or a byte 0 is in it. */
const char *store_text(sqlite3_stmt *row, int column, bool *bad);

/* Members of a struct that are columns of a table, in one order. */
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
/* False where a column is none that was written. Texts are the statement's, until its next step. */
bool store_read_columns(sqlite3_stmt *row, const struct store_column *columns, int n, void *out);
void store_column_values(const struct store_column *columns, int n, const void *from,
                         struct store_value values[STORE_COLUMNS_MAX + 1]);

/* Explain SQLite's code rc, which came of `doing`; returns the code of pmixfab.h. */
int store_fail(struct store *store, int rc, const char *doing, struct fab_err *err);
int store_nomem(const struct store *store, struct fab_err *err);
/* "..., and what to do": PMIXFAB_ERR_CORRUPT. */
int store_corrupt(const struct store *store, struct fab_err *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- store_transaction.c ---- */

/* Begin to write. PMIXFAB_ERR_IO where the file is not in its place any more. */
int store_begin(struct store *store, struct fab_err *err);
/* Commit where rc is PMIXFAB_OK, else take everything back. Returns rc, or why it could not be committed. */
int store_end(struct store *store, int rc, struct fab_err *err);

/* The log as it is now: later it has to be the same file, and not shorter. */
void store_log_know(struct store *store);

/* ---- store_lock.c ---- */

int store_lock(struct store *store, struct fab_err *err);
void store_unlock(struct store *store);
void store_mark_newest(struct store *store, uint64_t generation);

/* ---- store_schema.c ---- */

int store_count_steps(const char *const *steps);

/* What a store of this schema is kept as, beside itself. PMIXFAB_ERR_RANGE. */
int store_name_before(char *kept, size_t size, const char *path, int version);

/* Refuse a database of another program or of a newer fabricd. *version is the schema's. Reads only. */
int store_identify(struct store *store, const char *const *steps, int *version, struct fab_err *err);

/* Apply the steps that are missing, all in one transaction. Requires foreign keys to be off: steps may
 * rebuild tables. */
int store_migrate(struct store *store, const char *const *steps, struct fab_err *err);

/* What the schema of a database says is not trusted: each connection but one in memory. */
void store_harden(sqlite3 *db);

/*
 * Refuse a schema that is not the version's, word by word: _CORRUPT where a part is missing or different,
 * _FOREIGN where it has another trigger, view or the like. strict: or another table or index, which is
 * harmless.
 */
int store_check_schema(struct store *store, const char *const *steps, int version, bool strict,
                       struct fab_err *err);

/* ---- store.c ---- */

/* store_open() with a schema of the caller's: steps as schema_sql. keep: a store of an older schema is kept
 * beside it. */
int store_open_schema(const char *path, const char *const *steps, bool keep, struct store **out,
                      struct fab_err *err);

/* ---- store_copy.c ---- */

#define STORE_KEPT      ".before-restore" /* behind the name of the store that was */
#define STORE_COPY      ".restoring"      /* behind the name of a copy that will be the store */
#define STORE_MOST_KEPT 100

extern const char *const store_beside[2]; /* files of SQLite's, behind the name of a store */

/* The i-th store that was kept, from 1. PMIXFAB_ERR_RANGE. */
int store_kept_name(char *kept, size_t size, const char *path, unsigned i);

/*
 * Take back what a restore that was killed has left: half a copy, or a second name of the store. Whoever has
 * the store's lock calls it before the store is opened.
 */
void store_undo_restore(const char *path);

/* ---- the tables; who writes is in a transaction ---- */

/* Bring the tables from before to after. PMIXFAB_ERR_CONFLICT where they do not hold `before`. */
int store_write_inventory(struct store *store, const struct fab_inventory *before,
                          const struct fab_inventory *after, struct fab_err *err);
/* A number that differs when a finished inventory says anything else (lines aside). */
uint64_t store_inventory_digest(const struct fab_inventory *inv);
/* Likewise, of a row; the numbers are spoilt. */
uint64_t store_row_digest(uint64_t *numbers, size_t n, const char *text, const void *bytes, size_t size);

int store_write_announced(struct store *store, const struct store_report *announced, struct fab_err *err);

/* From one state to the next: what is missing, and (of what was lost, and where `lost`) rows that differ. */
int store_write_absent(struct store *store, const struct absent *before, const struct absent *after,
                       bool lost, struct fab_err *err);

int store_write_generation(struct store *store, const struct store_publication *publication,
                           struct fab_err *err);
int store_write_history_digest(struct store *store, uint64_t generation, struct fab_err *err);
/* So many changes more. */
int store_count_changes(struct store *store, uint32_t n, struct fab_err *err);

/* The next generation is above this one. PMIXFAB_ERR_RANGE. */
int store_raise(struct store *store, uint64_t above, struct fab_err *err);

/*
 * Compare each generation with its digest, to the newest, which has to be there. PMIXFAB_ERR_CORRUPT: err
 * names the first one that is not as it was. progress is called now and then; false gives up (_TIMEOUT).
 */
int store_history_check(struct store *store, uint64_t newest, bool (*progress)(uint64_t done, void *cbdata),
                        void *cbdata, struct store_history_checked *out, struct fab_err *err);

/* Endpoints of the database at this path in place of those here, where it has the table: it is newer. */
int store_endpoints_take_over(struct store *store, const char *path, struct fab_err *err);

#endif
