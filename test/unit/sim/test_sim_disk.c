/*
 * The disk of test/sim below plain SQLite: a run commits transactions, and at each call that changes or syncs
 * something the images of a power cut are opened. They hold the transactions that were committed: what SQLite
 * promises, and less where it promises less. Faults: test_sim_store_fault.
 */
#include "test/unit/test.h"

#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/sim/disk.h"

#define COMMITS 8
#define TORN    2 /* images of each call */

/* A way of SQLite's to write, and a run of it. */
struct trial {
    const char *synchronous; /* with a log (WAL) */
    char folder[100], image[120];
    struct disk *disk;
    unsigned committed;            /* COMMIT has returned this often */
    bool committing;               /* the next COMMIT is under way */
    unsigned images, lost, broken; /* lost: less than committed */
};

/* ---- the content ------------------------------------------------------------------------------------ */

/* Row n of the table has so many bytes, all n. */
static int row_size(unsigned n)
{
    return (int)(n * 2477 % 9001) + 1;
}

static int run_sql(sqlite3 *db, const char *sql)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

/* The first number of a query; -1: it fails. */
static int64_t ask_number(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *stmt = NULL;
    int64_t number = -1;
    if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW)
        number = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    return number;
}

/* So many transactions, each whole; -1: something else. */
static int64_t rows_found(sqlite3 *db)
{
    if (ask_number(db, "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'") != 1)
        return -1;
    if (ask_number(db, "SELECT count(*) FROM sqlite_schema") == 0)
        return 0;
    const int64_t n = ask_number(db, "SELECT value FROM newest");
    if (ask_number(db, "SELECT count(*) FROM row") != n ||
        ask_number(db, "SELECT count(*) FROM row WHERE length(fill) != n * 2477 % 9001 + 1") != 0 ||
        ask_number(db, "SELECT count(*) FROM row WHERE n > (SELECT value FROM newest)") != 0 ||
        ask_number(db, "SELECT count(*) FROM row WHERE replace(hex(fill), printf('%02X', n), '') != ''") != 0)
        return -1;
    return n;
}

static int64_t rows_in(const char *path)
{
    sqlite3 *db = NULL;
    int64_t n = sqlite3_open(path, &db) == SQLITE_OK ? rows_found(db) : -1;
    sqlite3_close(db);
    return n;
}

/* Quicker than a shell for each of thousands. */
static void remove_database(const char *folder)
{
    static const char *const names[] = {"a.db", "a.db-wal", "a.db-shm", "a.db-journal"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        unlink(printed("%s/%s", folder, names[i]));
    assert_int_equal(rmdir(folder), 0);
}

/* ---- what a run does -------------------------------------------------------------------------------- */

static int insert_row(sqlite3 *db, unsigned n)
{
    uint8_t fill[9001];
    sqlite3_stmt *stmt = NULL;
    memset(fill, (int)n, sizeof(fill));
    int rc = sqlite3_prepare_v2(db, "INSERT INTO row VALUES (?1, ?2)", -1, &stmt, NULL);
    if (rc == SQLITE_OK) {
        sqlite3_bind_int(stmt, 1, (int)n);
        sqlite3_bind_blob(stmt, 2, fill, row_size(n), SQLITE_STATIC);
        sqlite3_step(stmt);
        rc = sqlite3_finalize(stmt);
    }
    return rc;
}

/* One transaction. It is committed where SQLite says so. */
static void commit_row(struct trial *trial, sqlite3 *db)
{
    const unsigned n = trial->committed + 1;
    assert_int_equal(run_sql(db, "BEGIN IMMEDIATE"), SQLITE_OK);
    if (n == 1)
        assert_int_equal(run_sql(db, "CREATE TABLE row (n INTEGER PRIMARY KEY, fill BLOB);"
                                     "CREATE TABLE newest (value INTEGER); INSERT INTO newest VALUES (0)"),
                         SQLITE_OK);
    assert_int_equal(insert_row(db, n), SQLITE_OK);
    assert_int_equal(run_sql(db, "UPDATE newest SET value = value + 1"), SQLITE_OK);
    trial->committing = true;
    assert_int_equal(run_sql(db, "COMMIT"), SQLITE_OK);
    trial->committed++;
    trial->committing = false;
}

static sqlite3 *open_trial(const struct trial *trial)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(printed("%s/a.db", trial->folder), &db), SQLITE_OK);
    assert_int_equal(run_sql(db, "PRAGMA journal_mode = WAL; PRAGMA cache_size = 8"), SQLITE_OK);
    assert_int_equal(run_sql(db, printed("PRAGMA synchronous = %s", trial->synchronous)), SQLITE_OK);
    assert_int_equal(sqlite3_wal_autocheckpoint(db, 0), SQLITE_OK);
    return db;
}

/* Transactions, one that is taken back, checkpoints of both kinds, and a close in the middle. */
static void play_trial(struct trial *trial)
{
    sqlite3 *db = open_trial(trial);
    for (unsigned i = 1; i <= COMMITS; i++) {
        commit_row(trial, db);
        if (i == 4)
            assert_int_equal(run_sql(db, "BEGIN; UPDATE row SET fill = zeroblob(9000); ROLLBACK"), SQLITE_OK);
        if (i % 3 == 0)
            run_sql(db, i == 3 ? "PRAGMA wal_checkpoint(TRUNCATE)" : "PRAGMA wal_checkpoint");
        if (i == 6) {
            sqlite3_close(db);
            db = open_trial(trial);
        }
    }
    sqlite3_close(db);
}

/* ---- power cuts ------------------------------------------------------------------------------------- */

static void look_at_image(struct trial *trial, enum disk_loss how, uint64_t seed)
{
    assert_int_equal(mkdir(trial->image, 0700), 0);
    assert_int_equal(disk_image(trial->disk, how, seed, trial->image), 0);
    const int64_t found = rows_in(printed("%s/a.db", trial->image));
    remove_database(trial->image);
    trial->images++;
    trial->broken += found < 0;
    trial->lost += found >= 0 && found < trial->committed;
    if (how == DISK_KEEPS && (found < trial->committed || found > trial->committed + trial->committing))
        fail_msg("%lld of %u transactions after a kill", (long long)found, trial->committed);
    if (found > (int64_t)trial->committed + trial->committing)
        fail_msg("a transaction that was not committed is there after a power cut");
}

static int on_call(void *arg, const struct disk_call *call)
{
    struct trial *trial = arg;
    if (call->op == DISK_READ)
        return 0;
    look_at_image(trial, DISK_KEEPS, 0);
    look_at_image(trial, DISK_LOSES, 0);
    for (uint64_t i = 0; i < TORN; i++)
        look_at_image(trial, DISK_TORN, call->number * TORN + i);
    return 0;
}

static void begin_trial(struct trial *trial)
{
    const char *place = getenv("TMPDIR");
    snprintf(trial->folder, sizeof(trial->folder), "%s/fabdisk.XXXXXX", place != NULL ? place : "/tmp");
    assert_non_null(mkdtemp(trial->folder));
    snprintf(trial->image, sizeof(trial->image), "%s.image", trial->folder);
    trial->disk = disk_new(trial->folder);
    assert_non_null(trial->disk);
}

static void end_trial(struct trial *trial)
{
    disk_free(trial->disk);
    remove_database(trial->folder);
}

static void cut_everywhere(struct trial *trial)
{
    begin_trial(trial);
    disk_on_call(trial->disk, on_call, trial);
    play_trial(trial);
    look_at_image(trial, DISK_LOSES, 0);
    print_message("%s: %llu calls, %u images, %u with less than was committed, %u broken\n",
                  trial->synchronous, (unsigned long long)disk_calls(trial->disk), trial->images, trial->lost,
                  trial->broken);
    end_trial(trial);
}

TEST(a_log_that_is_synced_loses_nothing)
{
    struct trial trial = {.synchronous = "FULL"};
    cut_everywhere(&trial);
    assert_true(trial.images > 400);
    assert_int_equal(trial.broken, 0);
    assert_int_equal(trial.lost, 0);
}

/* SQLite's documents: with NORMAL a transaction may be lost by a power cut, and the database is whole. */
TEST(a_log_that_is_synced_by_checkpoints_only_loses_transactions)
{
    struct trial trial = {.synchronous = "NORMAL"};
    cut_everywhere(&trial);
    assert_int_equal(trial.broken, 0);
    assert_true(trial.lost > 0);
}

TEST(without_syncs_a_power_cut_is_seen)
{
    struct trial trial = {.synchronous = "OFF"};
    cut_everywhere(&trial);
    assert_true(trial.lost > 0);
    assert_true(trial.broken > 0);
}

/* ---- numbers and time ------------------------------------------------------------------------------- */

static int64_t a_day(void *arg)
{
    return *(int64_t *)arg;
}

/* The random numbers of a run: of its log's salt, and of SQL; and its time. */
static const char *drawn(uint64_t seed)
{
    struct trial trial = {.synchronous = "FULL"};
    int64_t day = 1000000000000000;
    begin_trial(&trial);
    disk_set_seed(trial.disk, seed);
    disk_set_clock(trial.disk, a_day, &day);
    sqlite3 *db = open_trial(&trial);
    assert_int_equal(ask_number(db, "SELECT unixepoch()"), 1000000000);
    commit_row(&trial, db);
    OWNED(free) char *log = read_file(printed("%s/a.db-wal", trial.folder), NULL);
    const char *said =
        printed("%08x %lld", *(unsigned *)(log + 16), (long long)ask_number(db, "SELECT random()"));
    sqlite3_close(db);
    end_trial(&trial);
    return said;
}

TEST(a_seed_repeats_random_numbers_and_the_clock_is_played)
{
    assert_string_equal(drawn(7), drawn(7));
    assert_string_not_equal(drawn(7), drawn(8));
}
