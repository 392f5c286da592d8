/*
 * file_priv.h - what the files share that open the store, bring it up to its schema, and copy it.
 */
#ifndef FABRICD_STORE_FILE_PRIV_H
#define FABRICD_STORE_FILE_PRIV_H

#include "fabricd/store/handle.h"
#include "fabricd/store/store_file.h"

/* ---- store.c, store_lock.c, store_connect.c, store_migrate.c, store_examine.c ---- */

/* A lock and a log belong to a file, not to one of its names. free() it; NULL: no memory. */
char *store_canonical_path(const char *path);
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

/* ---- store_schema.c ---- */

/* What the schema of a database says is not trusted: each connection but one in memory. */
void store_harden(sqlite3 *db);

/*
 * Refuse a schema that is not the version's, word by word: _CORRUPT where a part is missing or different,
 * _FOREIGN where it has another trigger, view or the like. strict: or another table or index, which is
 * harmless.
 */
int store_check_schema(struct store *store, const char *const *steps, int version, bool strict,
                       struct fab_err *err);

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

#endif
