/*
 * kv.c - store published values until they are unpublished or expire, and lookups that wait for them. A small
 * database stores values that outlive the host.
 */
#include "fabric-host/data/kv.h"

#include <pmix.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <uthash.h>
#include <utlist.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/log.h"
#include "fabricd/base/timer.h"
#include "pmix/relay/thread.h"

#define KV_NAME_SIZE (PMIX_MAX_KEYLEN + PMIX_MAX_NSLEN + 32)

/* A published value, and its name: the range, the identity of the range, and the key. */
struct kv_entry {
    UT_hash_handle hh;
    char name[KV_NAME_SIZE];
    const char *key; /* part of the name */
    pmix_proc_t publisher;
    uint8_t persistence;
    pmix_value_t value;
    size_t size; /* packed */
};

/* Return whether the process is `of`, or one of all with PMIX_RANK_WILDCARD. PMIX_CHECK_PROCID() would match
 * an empty name with any. */
static bool kv_is_of(const pmix_proc_t *proc, const pmix_proc_t *of)
{
    return strcmp(proc->nspace, of->nspace) == 0 &&
           (of->rank == PMIX_RANK_WILDCARD || proc->rank == of->rank);
}

/* ---- values that outlive the host: SQLite, one row per entry ------------------------------------------ */

#define KV_APPLICATION_ID 1717662828 /* "fabl" */
#define KV_TEXT(number)   KV_TEXT_OF(number)
#define KV_TEXT_OF(text)  #text

static sqlite3 *kv_db;
static sqlite3_stmt *kv_begin, *kv_commit, *kv_rollback, *kv_put, *kv_delete;

/* Exclusive: no other process uses it, so WAL needs neither locks nor shared memory. */
static const char kv_schema[] =
    "PRAGMA locking_mode = EXCLUSIVE;"
    "PRAGMA journal_mode = WAL;"
    "PRAGMA synchronous = NORMAL;"
    "PRAGMA application_id = " KV_TEXT(
        KV_APPLICATION_ID) ";"
                           "CREATE TABLE IF NOT EXISTS published ("
                           " name TEXT PRIMARY KEY, nspace TEXT NOT NULL, rank INTEGER NOT NULL,"
                           " persistence INTEGER NOT NULL, value BLOB NOT NULL) WITHOUT ROWID";

static bool kv_run(sqlite3_stmt *stmt, int bound)
{
    const int rc = bound == SQLITE_OK ? sqlite3_step(stmt) : bound;
    if (rc != SQLITE_DONE)
        log_error("store of published data: %s", sqlite3_errmsg(kv_db));
    sqlite3_reset(stmt);
    sqlite3_clear_bindings(stmt);
    return rc == SQLITE_DONE;
}

/* Begin a transaction before the first of several changes. */
static bool kv_store_changes(void)
{
    return kv_db != NULL && (!sqlite3_get_autocommit(kv_db) || kv_run(kv_begin, SQLITE_OK));
}

static bool kv_store_end(bool good)
{
    if (kv_db == NULL || sqlite3_get_autocommit(kv_db))
        return true; /* no changes */
    if (good && kv_run(kv_commit, SQLITE_OK))
        return true;
    if (!sqlite3_get_autocommit(kv_db))
        kv_run(kv_rollback, SQLITE_OK);
    return false;
}

/* Changes are committed together, at the end, if all succeeded. */
static bool kv_store_put(const struct kv_entry *entry, const void *packed)
{
    return kv_store_changes() &&
           kv_run(kv_put, sqlite3_bind_text(kv_put, 1, entry->name, -1, SQLITE_STATIC) |
                              sqlite3_bind_text(kv_put, 2, entry->publisher.nspace, -1, SQLITE_STATIC) |
                              sqlite3_bind_int64(kv_put, 3, entry->publisher.rank) |
                              sqlite3_bind_int(kv_put, 4, entry->persistence) |
                              sqlite3_bind_blob64(kv_put, 5, packed, entry->size, SQLITE_STATIC));
}

static bool kv_store_delete(const struct kv_entry *entry)
{
    return kv_store_changes() &&
           kv_run(kv_delete, sqlite3_bind_text(kv_delete, 1, entry->name, -1, SQLITE_STATIC));
}

/* Read an entry. NULL: out of memory, or the value is invalid. */
static struct kv_entry *kv_row(sqlite3_stmt *rows)
{
    struct kv_entry *entry = calloc(1, sizeof(*entry));
    const void *blob = sqlite3_column_blob(rows, 4);
    const char *name = (const char *)sqlite3_column_text(rows, 0);
    const char *nspace = (const char *)sqlite3_column_text(rows, 1);
    pmix_data_buffer_t buffer;
    int32_t one = 1;
    if (entry == NULL || blob == NULL || name == NULL || nspace == NULL || strlen(name) >= KV_NAME_SIZE) {
        free(entry);
        return NULL;
    }
    memcpy(entry->name, name, strlen(name));
    PMIX_LOAD_PROCID(&entry->publisher, nspace, (pmix_rank_t)sqlite3_column_int64(rows, 2));
    entry->persistence = (uint8_t)sqlite3_column_int(rows, 3);
    entry->size = (size_t)sqlite3_column_bytes(rows, 4);
    buffer = (pmix_data_buffer_t){.base_ptr = (char *)blob,
                                  .pack_ptr = (char *)blob + entry->size,
                                  .unpack_ptr = (char *)blob,
                                  .bytes_allocated = entry->size,
                                  .bytes_used = entry->size};
    if (PMIx_Data_unpack(NULL, &buffer, &entry->value, &one, PMIX_VALUE) == PMIX_SUCCESS)
        return entry;
    free(entry);
    return NULL;
}

static int64_t kv_number(const char *sql)
{
    sqlite3_stmt *stmt = NULL;
    int64_t number = 0;
    if (sqlite3_prepare_v2(kv_db, sql, -1, &stmt, NULL) == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW)
        number = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    return number;
}

/* Create or open the database. SQLITE_NOTADB also for another program's database. */
static int kv_make(const char *path)
{
    const mode_t mask = umask(077); /* published values are readable for their user only */
    int rc =
        sqlite3_open_v2(path, &kv_db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
    if (rc == SQLITE_OK && kv_number("SELECT count(*) FROM sqlite_schema") > 0 &&
        kv_number("PRAGMA application_id") != KV_APPLICATION_ID)
        rc = SQLITE_NOTADB;
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(kv_db, kv_schema, NULL, NULL, NULL);
    umask(mask);
    return rc;
}

static void kv_store_close(void)
{
    sqlite3_stmt *stmt;
    while (kv_db != NULL && (stmt = sqlite3_next_stmt(kv_db, NULL)) != NULL)
        sqlite3_finalize(stmt);
    sqlite3_close(kv_db);
    kv_db = NULL;
}

static int kv_store_open(const char *path, void (*found)(struct kv_entry *entry), struct fab_err *err)
{
    const struct {
        sqlite3_stmt **stmt;
        const char *sql;
    } list[] = {
        {&kv_begin, "BEGIN IMMEDIATE"},
        {&kv_commit, "COMMIT"},
        {&kv_rollback, "ROLLBACK"},
        {&kv_put, "INSERT OR REPLACE INTO published VALUES (?, ?, ?, ?, ?)"},
        {&kv_delete, "DELETE FROM published WHERE name = ?"},
    };
    sqlite3_stmt *rows = NULL;
    int rc = kv_make(path);
    for (size_t i = 0; rc == SQLITE_OK && i < sizeof(list) / sizeof(list[0]); i++)
        rc = sqlite3_prepare_v3(kv_db, list[i].sql, -1, SQLITE_PREPARE_PERSISTENT, list[i].stmt, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_prepare_v2(kv_db, "SELECT * FROM published", -1, &rows, NULL);
    while (rc == SQLITE_OK && (rc = sqlite3_step(rows)) == SQLITE_ROW) {
        struct kv_entry *entry = kv_row(rows);
        if (entry != NULL)
            found(entry);
        else
            log_error("store of published data: skipped a value: it is damaged, or there is no memory");
        rc = SQLITE_OK;
    }
    sqlite3_finalize(rows);
    if (rc == SQLITE_OK || rc == SQLITE_DONE)
        return PMIXFAB_OK;
    fab_fail(err, PMIXFAB_ERR_IO, "store %s: %s: give another --store, or move it away", path,
             rc == SQLITE_NOTADB ? "not a store of fabric-host"
             : kv_db == NULL     ? sqlite3_errstr(rc)
                                 : sqlite3_errmsg(kv_db));
    kv_store_close();
    return PMIXFAB_ERR_IO;
}

/* ---- entries by name: on the library's thread -------------------------------------------------------- */

#define MOST_ENTRIES 262144
#define MOST_BYTES   ((size_t)256 << 20) /* of all values */

static struct kv_entry *kv_entries;
static size_t kv_bytes;

/* ---- names -------------------------------------------------------------------------------------- */

static bool kv_is_data(const pmix_info_t *info)
{
    return strncmp(info->key, "pmix", 4) != 0;
}

/* An unknown directive is an error, since it may restrict the access. */
static pmix_status_t kv_range(const pmix_info_t info[], size_t n, uint8_t *range)
{
    *range = PMIX_RANGE_SESSION;
    for (size_t i = 0; i < n; i++) {
        if (!PMIX_CHECK_KEY(&info[i], PMIX_RANGE))
            continue;
        if (info[i].value.type != PMIX_DATA_RANGE)
            return PMIX_ERR_BAD_PARAM;
        *range = info[i].value.data.range;
    }
    return PMIX_SUCCESS;
}

static pmix_status_t kv_persistence(const pmix_info_t info[], size_t n, uint8_t *persistence)
{
    *persistence = PMIX_PERSIST_APP;
    for (size_t i = 0; i < n; i++) {
        if (!PMIX_CHECK_KEY(&info[i], PMIX_PERSISTENCE))
            continue;
        if (info[i].value.type != PMIX_PERSIST || info[i].value.data.persist > PMIX_PERSIST_SESSION)
            return PMIX_ERR_BAD_PARAM;
        *persistence = info[i].value.data.persist;
    }
    return PMIX_SUCCESS;
}

/* Build the name: only a process in the same range that asks for this range finds it. With one host and one
 * user, the ranges local, session and global all mean all processes. */
static pmix_status_t kv_name(uint8_t range, const pmix_proc_t *proc, const char *key, char name[KV_NAME_SIZE],
                             size_t *key_at)
{
    int len;
    switch (range) {
    case PMIX_RANGE_LOCAL:
    case PMIX_RANGE_SESSION:
    case PMIX_RANGE_GLOBAL:
        len = snprintf(name, KV_NAME_SIZE, "%u\n", range);
        break;
    case PMIX_RANGE_NAMESPACE:
        len = snprintf(name, KV_NAME_SIZE, "%u %s\n", range, proc->nspace);
        break;
    case PMIX_RANGE_PROC_LOCAL:
        len = snprintf(name, KV_NAME_SIZE, "%u %s %u\n", range, proc->nspace, proc->rank);
        break;
    default:
        return PMIX_ERR_NOT_SUPPORTED;
    }
    *key_at = (size_t)len;
    snprintf(name + len, KV_NAME_SIZE - (size_t)len, "%s", key);
    return PMIX_SUCCESS;
}

static struct kv_entry *kv_find(uint8_t range, const pmix_proc_t *proc, const char *key)
{
    char name[KV_NAME_SIZE];
    size_t key_at;
    struct kv_entry *entry = NULL;
    if (kv_name(range, proc, key, name, &key_at) == PMIX_SUCCESS)
        HASH_FIND_STR(kv_entries, name, entry);
    return entry;
}

/* ---- entries ------------------------------------------------------------------------------------ */

static bool kv_is_durable(const struct kv_entry *entry)
{
    return entry->persistence == PMIX_PERSIST_APP || entry->persistence == PMIX_PERSIST_SESSION ||
           entry->persistence == PMIX_PERSIST_INDEF;
}

static void kv_free(struct kv_entry *entry)
{
    PMIX_VALUE_DESTRUCT(&entry->value);
    free(entry);
}

static void kv_add(struct kv_entry *entry)
{
    entry->key = strchr(entry->name, '\n');
    entry->key = entry->key == NULL ? entry->name : entry->key + 1;
    kv_bytes += entry->size;
    HASH_ADD_STR(kv_entries, name, entry); /* NOLINT(clang-analyzer-*): the table keeps it */
}

static void kv_remove(struct kv_entry *entry, bool stored)
{
    if (stored && kv_is_durable(entry))
        kv_store_delete(entry);
    kv_bytes -= entry->size;
    HASH_DEL(kv_entries, entry); /* NOLINT(clang-analyzer-unix.Malloc): no link to the freed entry is left */
    kv_free(entry);
}

struct kv_question {
    pmix_proc_t proc;
    uint8_t range;
    char **keys;   /* owned by the library, until the answer */
    size_t wanted; /* number of keys to wait for, 0: all */
    pmix_lookup_cbfunc_t cbfunc;
    void *cbdata;
};

/* ---- lookup ------------------------------------------------------------------------------------- */

/* Answer with the values that exist. False: fewer than wanted. */
static bool kv_answer(const struct kv_question *question, bool enough)
{
    size_t n = 0, found = 0;
    while (question->keys[n] != NULL)
        n++;
    pmix_pdata_t *data = calloc(n + 1, sizeof(*data));
    struct kv_entry **entries = calloc(n + 1, sizeof(struct kv_entry *));
    for (size_t i = 0; data != NULL && entries != NULL && i < n; i++) {
        struct kv_entry *entry = kv_find(question->range, &question->proc, question->keys[i]);
        if (entry == NULL)
            continue;
        data[found].proc = entry->publisher;
        PMIX_LOAD_KEY(data[found].key, entry->key);
        data[found].value = entry->value; /* lent: it is packed before the call returns */
        entries[found++] = entry;
    }
    const size_t wanted = question->wanted == 0 || question->wanted > n ? n : question->wanted;
    const bool answers = enough || found >= wanted;
    if (answers)
        question->cbfunc(data == NULL || entries == NULL ? PMIX_ERR_NOMEM
                         : found == 0                    ? PMIX_ERR_NOT_FOUND
                                                         : PMIX_SUCCESS,
                         data, found, question->cbdata);
    for (size_t i = 0; answers && i < found; i++) {
        bool again = false;
        for (size_t k = 0; k < i; k++)
            again |= entries[k] == entries[i];
        if (!again && entries[i]->persistence == PMIX_PERSIST_FIRST_READ)
            kv_remove(entries[i], false);
    }
    free(data);
    free(entries);
    return answers;
}

/* ---- waiting lookups --------------------------------------------------------------------------------- */

#define MOST_KV_WAITERS 16384

struct kv_waiter {
    struct kv_waiter *prev, *next;
    int64_t until; /* microseconds, 0: no timeout */
    struct kv_question question;
};

static struct timer *waiters_timer; /* for the earliest timeout of all */
static int64_t waiters_soonest;     /* 0: none */
static struct kv_waiter *kv_waiters;
static unsigned n_kv_waiters;

static void waiter_free(struct kv_waiter *waiter)
{
    DL_DELETE(kv_waiters, waiter); /* NOLINT(clang-analyzer-core.NullDereference): it is in the list */
    n_kv_waiters--;
    free(waiter);
}

static void waiters_wake(int64_t until, int64_t now)
{
    if (waiters_soonest != 0 && until >= waiters_soonest)
        return;
    waiters_soonest = until;
    timer_after_us(waiters_timer, until > now ? until - now : 0);
}

static void waiters_on_time(pmix_status_t status, void *cbdata)
{
    const int64_t now = clock_now(CLOCK_MONOTONIC);
    struct kv_waiter *waiter, *next;
    (void)status, (void)cbdata;
    waiters_soonest = 0;
    DL_FOREACH_SAFE(kv_waiters, waiter, next)
    {
        if (waiter->until == 0)
            continue;
        if (waiter->until > now) {
            waiters_wake(waiter->until, now);
            continue;
        }
        waiter->question.cbfunc(PMIX_ERR_TIMEOUT, NULL, 0, waiter->question.cbdata);
        waiter_free(waiter);
    }
}

static void waiters_on_timer(void *arg)
{
    fab_on_pmix_thread(waiters_on_time, arg);
}

static int kv_waiters_start(struct event_base *base)
{
    waiters_timer = timer_new(base, waiters_on_timer, NULL);
    return waiters_timer == NULL ? PMIXFAB_ERR_NOMEM : PMIXFAB_OK;
}

static pmix_status_t kv_waiters_add(const struct kv_question *question, int seconds)
{
    const int64_t now = clock_now(CLOCK_MONOTONIC);
    struct kv_waiter *waiter = n_kv_waiters < MOST_KV_WAITERS ? calloc(1, sizeof(*waiter)) : NULL;
    if (waiter == NULL)
        return PMIX_ERR_OUT_OF_RESOURCE;
    waiter->question = *question;
    waiter->until = seconds > 0 ? now + (int64_t)seconds * 1000000 : 0;
    if (seconds > 0)
        waiters_wake(waiter->until, now);
    DL_APPEND(kv_waiters, waiter);
    n_kv_waiters++;
    return PMIX_SUCCESS;
}

static void kv_waiters_look(void)
{
    struct kv_waiter *waiter, *next;
    DL_FOREACH_SAFE(kv_waiters, waiter, next)
    {
        if (kv_answer(&waiter->question, false))
            waiter_free(waiter);
    }
}

static void kv_waiters_ended(const pmix_proc_t *proc)
{
    struct kv_waiter *waiter, *next;
    DL_FOREACH_SAFE(kv_waiters, waiter, next)
    {
        if (!kv_is_of(&waiter->question.proc, proc))
            continue;
        waiter->question.cbfunc(PMIX_ERR_LOST_CONNECTION, NULL, 0, waiter->question.cbdata);
        waiter_free(waiter);
    }
}

static void kv_waiters_stop(void)
{
    struct kv_waiter *waiter, *next;
    DL_FOREACH_SAFE(kv_waiters, waiter, next)
    {
        waiter_free(waiter);
    }
    if (waiters_timer != NULL)
        timer_free(waiters_timer);
    waiters_timer = NULL;
    waiters_soonest = 0;
}

pmix_status_t kv_lookup(const pmix_proc_t *proc, char **keys, const pmix_info_t info[], size_t n,
                        pmix_lookup_cbfunc_t cbfunc, void *cbdata)
{
    struct kv_question question = {.proc = *proc, .keys = keys, .cbfunc = cbfunc, .cbdata = cbdata};
    char name[KV_NAME_SIZE];
    size_t key_at;
    bool waits = false;
    int seconds = 0;
    if (keys == NULL || keys[0] == NULL)
        return PMIX_ERR_BAD_PARAM;
    pmix_status_t rc = kv_range(info, n, &question.range);
    if (rc == PMIX_SUCCESS)
        rc = kv_name(question.range, proc, keys[0], name, &key_at);
    for (size_t i = 0; rc == PMIX_SUCCESS && i < n; i++) {
        if (PMIX_CHECK_KEY(&info[i], PMIX_WAIT)) {
            waits = true;
            PMIX_VALUE_GET_NUMBER(rc, &info[i].value, question.wanted, size_t);
        } else if (PMIX_CHECK_KEY(&info[i], PMIX_TIMEOUT)) {
            PMIX_VALUE_GET_NUMBER(rc, &info[i].value, seconds, int);
        }
    }
    if (rc != PMIX_SUCCESS)
        return rc;
    if (kv_answer(&question, !waits))
        return PMIX_SUCCESS;
    return kv_waiters_add(&question, seconds);
}

/* ---- publish ------------------------------------------------------------------------------------ */

static pmix_status_t kv_publish_one(const pmix_proc_t *proc, const pmix_info_t *info, uint8_t range,
                                    uint8_t persistence)
{
    struct kv_entry *entry = calloc(1, sizeof(*entry));
    pmix_data_buffer_t packed;
    size_t key_at;
    if (entry == NULL)
        return PMIX_ERR_NOMEM;
    PMIX_DATA_BUFFER_CONSTRUCT(&packed);
    entry->publisher = *proc;
    entry->persistence = persistence;
    pmix_status_t rc = kv_name(range, proc, info->key, entry->name, &key_at);
    if (rc == PMIX_SUCCESS)
        rc = PMIx_Data_pack(NULL, &packed, (void *)&info->value, 1, PMIX_VALUE);
    entry->size = packed.bytes_used;
    if (rc == PMIX_SUCCESS && kv_find(range, proc, info->key) != NULL)
        rc = PMIX_ERR_DUPLICATE_KEY;
    if (rc == PMIX_SUCCESS && (HASH_COUNT(kv_entries) >= MOST_ENTRIES || kv_bytes + entry->size > MOST_BYTES))
        rc = PMIX_ERR_OUT_OF_RESOURCE;
    if (rc == PMIX_SUCCESS)
        rc = PMIx_Value_xfer(&entry->value, &info->value);
    if (rc == PMIX_SUCCESS && kv_is_durable(entry) && !kv_store_put(entry, packed.base_ptr))
        rc = PMIX_ERR_OUT_OF_RESOURCE;
    PMIX_DATA_BUFFER_DESTRUCT(&packed);
    if (rc == PMIX_SUCCESS)
        kv_add(entry);
    else
        kv_free(entry);
    return rc;
}

/* Publish all values, or none. */
pmix_status_t kv_publish(const pmix_proc_t *proc, const pmix_info_t info[], size_t n, pmix_op_cbfunc_t cbfunc,
                         void *cbdata)
{
    uint8_t range, persistence;
    size_t done = 0, values = 0;
    pmix_status_t rc = kv_range(info, n, &range);
    if (rc == PMIX_SUCCESS)
        rc = kv_persistence(info, n, &persistence);
    for (; rc == PMIX_SUCCESS && done < n; done++) {
        if (!kv_is_data(&info[done]))
            continue;
        rc = kv_publish_one(proc, &info[done], range, persistence);
        values++;
    }
    if (rc == PMIX_SUCCESS && values == 0)
        rc = PMIX_ERR_BAD_PARAM; /* names that begin with "pmix" are reserved for the standard */
    if (!kv_store_end(rc == PMIX_SUCCESS) && rc == PMIX_SUCCESS)
        rc = PMIX_ERR_OUT_OF_RESOURCE, done++;
    for (size_t i = 0; rc != PMIX_SUCCESS && i + 1 < done; i++)
        if (kv_is_data(&info[i]))
            kv_remove(kv_find(range, proc, info[i].key), false);
    if (rc != PMIX_SUCCESS)
        return rc;
    cbfunc(PMIX_SUCCESS, cbdata);
    kv_waiters_look();
    return PMIX_SUCCESS;
}

/* ---- unpublish, and the end of processes -------------------------------------------------------- */

/* keys NULL: all values of the publisher, of any range. */
pmix_status_t kv_unpublish(const pmix_proc_t *proc, char **keys, const pmix_info_t info[], size_t n,
                           pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    uint8_t range;
    struct kv_entry *entry, *next;
    pmix_status_t rc = kv_range(info, n, &range);
    if (rc != PMIX_SUCCESS)
        return rc;
    for (size_t i = 0; keys != NULL && keys[i] != NULL; i++) {
        entry = kv_find(range, proc, keys[i]);
        if (entry == NULL)
            rc = PMIX_ERR_NOT_FOUND;
        else if (!kv_is_of(&entry->publisher, proc))
            rc = PMIX_ERR_NO_PERMISSIONS;
        else
            kv_remove(entry, true);
    }
    HASH_ITER(hh, kv_entries, entry, next)
    {
        if (keys == NULL && kv_is_of(&entry->publisher, proc))
            kv_remove(entry, true);
    }
    if (!kv_store_end(true))
        rc = PMIX_ERR_OUT_OF_RESOURCE;
    if (rc == PMIX_SUCCESS)
        cbfunc(PMIX_SUCCESS, cbdata);
    return rc;
}

/* Runs on the library's thread, also while a process of the library ends, when it must not be called back. */
void kv_left(const pmix_proc_t *proc)
{
    struct kv_entry *entry, *next;
    kv_waiters_ended(proc);
    const bool all = proc->rank == PMIX_RANK_WILDCARD;
    HASH_ITER(hh, kv_entries, entry, next)
    {
        if (kv_is_of(&entry->publisher, proc) &&
            (entry->persistence == PMIX_PERSIST_PROC || (all && entry->persistence == PMIX_PERSIST_APP)))
            kv_remove(entry, true);
    }
    kv_store_end(true);
}

static void kv_on_ended(pmix_status_t status, void *cbdata)
{
    (void)status;
    kv_left(cbdata);
    free(cbdata);
}

void kv_ended(const pmix_proc_t *proc)
{
    pmix_proc_t *copy = malloc(sizeof(*copy));
    if (copy == NULL)
        return;
    *copy = *proc;
    fab_on_pmix_thread(kv_on_ended, copy);
}

struct opening {
    const char *store;
    struct fab_err *err;
    int rc;
};

static void kv_open(pmix_status_t status, void *cbdata)
{
    struct opening *opening = cbdata;
    (void)status;
    opening->rc = kv_store_open(opening->store, kv_add, opening->err);
}

int kv_start(struct event_base *base, const char *store, struct fab_err *err)
{
    struct opening opening = {.store = store, .err = err};
    int rc = kv_waiters_start(base);
    if (rc != PMIXFAB_OK)
        return fab_fail(err, rc, "cannot create a timer: out of memory");
    fab_on_pmix_thread(kv_open, &opening);
    fab_wait_for_pmix_thread();
    return opening.rc;
}

void kv_stop(void)
{
    struct kv_entry *entry, *next;
    kv_waiters_stop();
    HASH_ITER(hh, kv_entries, entry, next)
    {
        kv_remove(entry, false);
    }
    kv_store_close();
}
