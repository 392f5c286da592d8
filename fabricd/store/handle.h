/*
 * handle.h - inside the store: the handle, statements and transactions. What its files share beside that:
 * file/file_priv.h, tables/tables_priv.h.
 */
#ifndef FABRICD_STORE_HANDLE_H
#define FABRICD_STORE_HANDLE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "fabricd/store/store.h"

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

/* So many instructions of SQLite's machine take some milliseconds. */
#define STORE_PROGRESS 100000

/* What to do about a broken database. */
#define STORE_RESTORE "restore it from a backup, or move it away and let fabricd begin anew"

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

    sqlite3_stmt *begin, *commit, *rollback;

    sqlite3_stmt *subnets, *nodes, *ports, *links; /* whole tables, in the order of their keys */
    sqlite3_stmt *subnet_put, *subnet_cut;
    sqlite3_stmt *node_insert, *node_update, *node_delete;
    sqlite3_stmt *port_insert, *port_update, *port_delete;
    sqlite3_stmt *link_insert, *link_delete;
    sqlite3_stmt *digest, *digest_put;

    sqlite3_stmt *planes, *plane_insert, *plane_update, *plane_move;

    sqlite3_stmt *newest, *generation_insert;
    sqlite3_stmt *change_insert, *subject_insert, *subject_known;
    sqlite3_stmt *changes, *changes_newest, *changes_about; /* all, the newest, of one subject, */
    sqlite3_stmt *changes_line;                             /* of one under all its names */
    sqlite3_stmt *changes_behind;                           /* which one is so many before an end */

    sqlite3_stmt *digest_head, *digest_changes, *digest_before, *digest_keep; /* of the history */

    sqlite3_stmt *bounds, *bounds_put, *bounds_count, *pages; /* the history as a whole */
    sqlite3_stmt *trim_next, *trim_oldest, *trim_subject, *trim_generations, *trim_digest;

    sqlite3_stmt *reports, *report_put, *report_delete, *report_keep;
    sqlite3_stmt *announced, *announced_bytes, *announced_put,
        *announced_delete; /* what was published of the reports */
};

/* ---- store_marks.c: of whoever has the lock ---- */

void store_marks_read(struct store *store);
void store_marks_write(struct store *store, long pid);

/* ---- store_log.c ---- */

/* The log as it is now: later it has to be the same file, and not shorter. */
void store_log_know(struct store *store);
/* PMIXFAB_ERR_IO where it is not. */
int store_log_check(struct store *store, struct fab_err *err);

/* ---- store_sql.c ---- */

struct store_sql {
    sqlite3_stmt **stmt;
    const char *sql;
};

/* Prepare a list. */
int store_prepare(struct store *store, const struct store_sql *list, size_t n, struct fab_err *err);

/* One that is rarely run: the caller finalizes it. NULL on error. */
int store_prepare_one(struct store *store, const char *sql, sqlite3_stmt **stmt, struct fab_err *err);

/* Explain SQLite's code rc, which came of `doing` ("writing a node"); returns the code of pmixfab.h. */
int store_fail(struct store *store, int rc, const char *doing, struct fab_err *err);

/* Run a statement without rows and make it ready for its next use. `bound` is the OR of the codes of its
 * sqlite3_bind calls. */
int store_run(struct store *store, sqlite3_stmt *stmt, int bound, const char *doing, struct fab_err *err);

/* As above for a statement that must have met exactly one row: PMIXFAB_ERR_CONFLICT otherwise. */
int store_run_one(struct store *store, sqlite3_stmt *stmt, int bound, const char *doing, struct fab_err *err);

/* Next row: 1 there is one, 0 the end, or negative. The caller resets the statement in any case. */
int store_step(struct store *store, sqlite3_stmt *stmt, const char *doing, struct fab_err *err);

/* The first column of the first row of a query that is asked once, as a text. */
int store_ask(struct store *store, const char *sql, char *text, size_t size, const char *doing,
              struct fab_err *err);

/* Text of known length; no byte of it is interpreted. */
int store_bind_text(sqlite3_stmt *stmt, int column, const char *text);

/* A column as an unsigned number; *bad is set where it is none or larger than max. */
uint64_t store_number(sqlite3_stmt *stmt, int column, uint64_t max, bool *bad);

/* ---- store_transaction.c ---- */

/* Begin to write. PMIXFAB_ERR_IO where the file is not in its place any more. */
int store_begin(struct store *store, struct fab_err *err);

/* Commit where rc is PMIXFAB_OK, else take everything back. Returns rc, or why it could not be committed. */
int store_end(struct store *store, int rc, struct fab_err *err);

#endif
