/* A store that is refused stays as it is, byte for byte, with what is beside it. */
#include "test/unit/store_fixture.h"

#define FILES 3

static const char *const behind[FILES] = {"", "-wal", "-shm"};

struct content {
    char *bytes[FILES]; /* NULL: it is not there */
    size_t size[FILES];
};

static struct content content_of(const char *path)
{
    struct content content = {0};
    for (unsigned i = 0; i < FILES; i++) {
        const char *name = printed("%s%s", path, behind[i]);
        if (access(name, F_OK) == 0)
            content.bytes[i] = read_file(name, &content.size[i]);
    }
    return content;
}

static void content_free(struct content *content)
{
    for (unsigned i = 0; i < FILES; i++)
        free(content->bytes[i]);
}

static void must_be_same(const struct content *a, const struct content *b)
{
    for (unsigned i = 0; i < FILES; i++) {
        assert_int_equal(a->bytes[i] == NULL, b->bytes[i] == NULL);
        assert_int_equal(a->size[i], b->size[i]);
        if (a->bytes[i] != NULL)
            assert_memory_equal(a->bytes[i], b->bytes[i], a->size[i]);
    }
}

static void publish_one(const char *path)
{
    SCOPED(fab_inventory) none = empty_inventory();
    SCOPED(fab_inventory) inv = odd_inventory(5, 3, 0);
    char snapshot[30000] = "";
    struct store_plane plane = {
        .generation = 1, .name = "plane0", .snapshot = snapshot, .size = sizeof(snapshot)};
    const struct store_publication publication = {
        .generation = 1, .published = 1000, .before = &none, .after = &inv, .planes = &plane, .n_planes = 1};
    struct store *store = open_store(path);
    must_do(store_publish(store, &publication, fresh_err()));
    store_close(store);
}

/* A store that somebody has written to: closed (files 1), or crashed with a log (2), and with its index, too
 * (3). */
static void write_variant(const char *path, const char *sql, unsigned files)
{
    sqlite3 *db = NULL;
    publish_one(path);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "PRAGMA wal_autocheckpoint = 0", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    struct content crashed = content_of(path);
    sqlite3_close(db);
    for (unsigned i = 0; files > 1 && i < files; i++)
        write_file(printed("%s%s", path, behind[i]), crashed.bytes[i], crashed.size[i]);
    content_free(&crashed);
}

static void break_pages(const char *path)
{
    char bytes[3 * 4096];
    memset(bytes, 0xff, sizeof(bytes));
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, sizeof(bytes), 2 * 4096), sizeof(bytes));
    close(fd);
}

/* Closed, crashed, and crashed with an index. */
static void must_be_refused(const char *dir, const char *sql, bool broken, int code, const char *part)
{
    static unsigned n_stores;
    for (unsigned files = 1; files <= FILES; files++) {
        const char *path = printed("%s/%u.db", dir, n_stores++);
        struct store *store = NULL;
        write_variant(path, sql, files);
        if (broken)
            break_pages(path);
        struct content before = content_of(path);
        int rc = store_open(path, &store, fresh_err());
        if (rc == PMIXFAB_OK && files == 1) { /* a damaged row of a closed store is found when it is read */
            struct store_plane *planes = NULL;
            uint32_t n;
            rc = store_load_planes(store, &planes, &n, fresh_err());
            store_planes_free(planes, n);
        }
        must_refuse(rc, code, part);
        store_close(store);
        struct content after = content_of(path);
        must_be_same(&before, &after);
        content_free(&before);
        content_free(&after);
    }
}

TEST_IN(it_is_refused_and_stays, struct folder *folder, folder_setup, folder_teardown)
{
    static const struct {
        const char *sql;
        bool broken;
        int code;
        const char *part;
    } cases[] = {
        {"PRAGMA user_version = 1000", false, PMIXFAB_ERR_NEWER, "written by a newer fabricd (schema 1000"},
        {"PRAGMA application_id = 7", false, PMIXFAB_ERR_FOREIGN,
         "of another program (application id 0x00000007)"},
        {"UPDATE plane SET digest = digest + 1", false, PMIXFAB_ERR_CORRUPT, "does not match its digest"},
        {"UPDATE plane SET retired = 0", true, PMIXFAB_ERR_CORRUPT, "restore it from a backup"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        must_be_refused(folder->dir, cases[i].sql, cases[i].broken, cases[i].code, cases[i].part);
}
