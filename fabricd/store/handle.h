/*
 * handle.h - inside the store: the handle, and what its files share. A family of tables has a file each;
 * store_publish.c makes one transaction of them.
 */
#ifndef FABRICD_STORE_HANDLE_H
#define FABRICD_STORE_HANDLE_H

#include <sqlite3.h>
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

    sqlite3_stmt *bounds, *bounds_put, *bounds_count, *pages; /* the history as a whole */
    sqlite3_stmt *trim_next, *trim_oldest, *trim_subject, *trim_generations;

    sqlite3_stmt *reports, *report_put, *report_delete, *report_keep;
    sqlite3_stmt *announced, *announced_bytes, *announced_put,
        *announced_delete; /* what was published of the reports */
};

/* ---- store.c, store_lock.c, store_connect.c, store_migrate.c, store_examine.c ---- */

int store_connect(struct store *store, struct fab_err *err);
/* Statements and connection go. */
void store_disconnect(struct store *store);
int store_on_progress(void *store); /* of SQLite's, while the service manager waits */
/* All statements of all tables. */
int store_prepare_tables(struct store *store, struct fab_err *err);

/* A connection that reads what is there, and changes nothing in the file or beside it, also on a disk that is
 * full or read-only. The caller has the store's lock, or it cannot be taken. */
int store_connect_reading(struct store *store, struct fab_err *err);
/* Refuse what store_open() refuses; *version is the schema's, 0: there is no store yet. */
int store_examine(struct store *store, const char *const *steps, int *version, struct fab_err *err);

/* store_open() with a schema of the caller's: steps as schema_sql. */
int store_open_schema(const char *path, const char *const *steps, struct store **out, struct fab_err *err);

int store_lock(struct store *store, struct fab_err *err);
void store_unlock(struct store *store);

/* Refuse a database of another program or of a newer fabricd. *version is the schema's. Reads only. */
int store_identify(struct store *store, const char *const *steps, int *version, struct fab_err *err);

/* store_open() of a copy that is not in use yet: nothing is kept beside it. */
int store_open_copy(const char *path, struct store **out, struct fab_err *err);

int store_count_steps(const char *const *steps);

/* Apply the steps that are missing, all in one transaction. Requires foreign keys to be off: steps may
 * rebuild tables. */
int store_migrate(struct store *store, const char *const *steps, struct fab_err *err);

/* ---- store_kept.c ---- */

/* What a store of this schema is kept as, beside itself. PMIXFAB_ERR_RANGE. */
int store_name_before(char *kept, size_t size, const char *path, int version);

/* The newest that was kept beside a store and has no newer schema than this; false: there is none. */
bool store_kept_for(const char *path, int known, char *kept, size_t size);

/* ---- store_undo.c ---- */

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

/* ---- the tables: each prepares its own statements ---- */

int store_inventory_prepare(struct store *store, struct fab_err *err);
int store_rows_prepare(struct store *store, struct fab_err *err);
int store_planes_prepare(struct store *store, struct fab_err *err);
int store_history_prepare(struct store *store, struct fab_err *err);
int store_reports_prepare(struct store *store, struct fab_err *err);
int store_trim_prepare(struct store *store, struct fab_err *err);

/* The numbers among the columns of a node and of a port, which are called as the members are; and all
 * columns, the others first. What is added here is written, compared and read. */
// clang-format off
#define STORE_NODE_NUMBERS(X) \
    X(system_guid) X(kind) X(unnamed) X(vendor_id) X(device_id) X(num_ports) X(enhanced) X(lid) X(lmc) \
    X(chassis) X(slot_type) X(slot) X(chip) X(missing)
#define STORE_PORT_NUMBERS(X) X(lid) X(lmc) X(state) X(width) X(speed) X(subnet) X(missing)
// clang-format on
#define STORE_NAME(number) ", " #number
#define STORE_NODE_COLUMNS "guid, description, host, name" STORE_NODE_NUMBERS(STORE_NAME)
#define STORE_PORT_COLUMNS "node, num, guid" STORE_PORT_NUMBERS(STORE_NAME)

/* ---- requires that we are in a transaction ---- */

/* Bring the tables from before to after. PMIXFAB_ERR_CONFLICT where they do not hold `before`. */
int store_write_inventory(struct store *store, const struct fab_inventory *before,
                          const struct fab_inventory *after, struct fab_err *err);
int store_write_plane(struct store *store, const struct store_plane *plane, struct fab_err *err);
int store_write_generation(struct store *store, const struct store_publication *publication,
                           struct fab_err *err);
/* So many changes more. */
int store_count_changes(struct store *store, uint32_t n, struct fab_err *err);
int store_write_announced(struct store *store, const struct store_report *announced, struct fab_err *err);

/* The digest of the stored inventory; *found is false where none was stored. */
int store_read_digest(struct store *store, uint64_t *digest, bool *found, struct fab_err *err);

/* A number that differs when a finished inventory says anything else (lines aside); of a row. */
uint64_t store_inventory_digest(const struct fab_inventory *inv);
uint64_t store_plane_digest(const struct store_plane *plane);
uint64_t store_report_checksum(const struct store_report *report);
uint64_t store_announced_checksum(const struct store_report *announced); /* host and digest */

#endif
