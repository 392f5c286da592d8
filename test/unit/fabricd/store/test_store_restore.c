/* A restore that is killed, before whichever change it makes, leaves the old store or the new one, whole, and
 * no generation's number is given out twice. */
#include "test/unit/store_fixture.h"

#include <dirent.h>

#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "fabricd/base/clock.h"
#include "fabricd/store/store.h"

#define OLD 5 /* newest generation of the store, and of the backup */
#define NEW 2

static struct fab_inventory inventories[OLD + 1];

static char *path_of(const struct folder *folder, const char *name)
{
    static char paths[8][PATH_SIZE];
    static unsigned at;
    char *path = paths[at++ % 8];
    snprintf(path, PATH_SIZE, "%s/%s", folder->dir, name);
    return path;
}

static void publish_up_to(const char *path, uint64_t from, uint64_t to, bool die)
{
    OWNED(store_close) struct store *store = open_store(path);
    for (uint64_t generation = from; generation <= to; generation++)
        must_publish(store, generation, &inventories[generation - 1], &inventories[generation]);
    if (die)
        _exit(0); /* the last generations are in the log alone */
}

/* "template" and its log, which is the old store, and "backup". */
static void make_files(const struct folder *folder)
{
    uint64_t bytes;
    int status;
    publish_up_to(path_of(folder, "template"), 1, NEW, false);
    const struct store_copy order = {.from = path_of(folder, "template"), .to = path_of(folder, "backup")};
    must_do(store_copy(&order, &bytes, fresh_err()));
    pid_t child = fork();
    if (child == 0)
        publish_up_to(path_of(folder, "template"), NEW + 1, OLD, true);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(access(path_of(folder, "template-wal"), F_OK), 0);
}

static void lay_out(const struct folder *folder)
{
    static const char *const gone[] = {"fabric.db-shm",
                                       "fabric.db.before-restore",
                                       "fabric.db.before-restore-wal",
                                       "fabric.db.before-restore-shm",
                                       "fabric.db.before-restore.lock",
                                       "fabric.db.before-restore.2"};
    for (size_t i = 0; i < sizeof(gone) / sizeof(gone[0]); i++)
        unlink(path_of(folder, gone[i]));
    copy_file(path_of(folder, "template"), folder->db);
    copy_file(path_of(folder, "template-wal"), path_of(folder, "fabric.db-wal"));
}

/* Somebody who looks into the store with another program: then its log is not folded in. */
static pid_t begin_reading(const char *path)
{
    int ends[2];
    char byte;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        sqlite3 *db;
        if (sqlite3_open(path, &db) != SQLITE_OK ||
            sqlite3_exec(db, "SELECT count(*) FROM generation", NULL, NULL, NULL) != SQLITE_OK ||
            write(ends[1], "x", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    close(ends[0]);
    return child;
}

static void end_child(pid_t child)
{
    int status;
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
}

/* As fabricd --restore does it. */
static int restore_backup(const struct folder *folder, char kept[PATH_SIZE], struct fab_err *err)
{
    int fd = open(path_of(folder, "backup"), O_RDONLY | O_CLOEXEC);
    assert_true(fd > 0);
    int rc = store_restore(folder->db, path_of(folder, "backup"), fd, kept, PATH_SIZE, err);
    close(fd);
    return rc;
}

/* System calls that a kill can come before or after with another result: they change files. */
static bool is_change(pid_t child)
{
    static const long calls[] = {SYS_openat,    SYS_write,     SYS_pwrite64,
#ifdef SYS_rename
                                 SYS_open,      SYS_rename,    SYS_link,     SYS_unlink,
#endif
                                 SYS_ftruncate, SYS_fallocate, SYS_renameat, SYS_renameat2,
                                 SYS_linkat,    SYS_unlinkat};
    struct __ptrace_syscall_info info = {0};
    if (ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof(info), &info) <= 0 ||
        info.op != PTRACE_SYSCALL_INFO_ENTRY)
        return false;
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        if ((long)info.entry.nr == calls[i])
            return true;
    return false;
}

/* Restore, and die before the change of this number is made. False: it was done before. */
static bool restore_and_die(const struct folder *folder, unsigned changes)
{
    char kept[PATH_SIZE];
    int status;
    pid_t child = fork();
    if (child == 0) {
        struct fab_err err;
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0 || raise(SIGSTOP) != 0)
            _exit(9);
        _exit(restore_backup(folder, kept, &err) == PMIXFAB_OK ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 9) {
        print_message("nothing can be traced here\n");
        skip();
    }
    assert_int_equal(ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_TRACESYSGOOD), 0);
    for (unsigned n = 0; n < changes; n += is_change(child)) {
        assert_int_equal(ptrace(PTRACE_SYSCALL, child, NULL, NULL), 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        if (WIFEXITED(status)) {
            assert_int_equal(WEXITSTATUS(status), 0);
            return false;
        }
        assert_true(WIFSTOPPED(status));
    }
    end_child(child);
    return true;
}

/* Nothing is beside it that does not belong there. */
static void must_be_tidy(const struct folder *folder, bool restored)
{
    DIR *dir = opendir(folder->dir);
    struct stat st;
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (strstr(entry->d_name, ".restoring") != NULL ||
            (strstr(entry->d_name, "before-restore") != NULL && !restored))
            fail_msg("%s is left", entry->d_name);
    }
    closedir(dir);
    assert_int_equal(stat(folder->db, &st), 0);
    assert_int_equal(st.st_nlink, 1);
}

/* What the next start finds. Returns whether it is the new store. */
static bool must_be_one_of_both(const struct folder *folder)
{
    struct store *store = open_store(folder->db);
    uint64_t generation, next = 0;
    int64_t published;
    must_do(store_generation(store, &generation, &published, fresh_err()));
    assert_true(generation == OLD || generation == NEW);
    must_hold(store, generation, &inventories[generation]);
    assert_int_equal(store_next_generation(store, &next, fresh_err()), PMIXFAB_OK);
    assert_true(next > OLD);
    store_close(store);
    must_be_tidy(folder, generation == NEW);
    if (generation == NEW) {
        store = open_store(path_of(folder, "fabric.db.before-restore"));
        must_hold(store, OLD, &inventories[OLD]);
        store_close(store);
    }
    return generation == NEW;
}

static void kill_everywhere(const struct folder *folder, bool is_read)
{
    char kept[PATH_SIZE];
    unsigned outcomes[2] = {0};
    bool died = true;
    for (unsigned changes = 1; died; changes++) {
        lay_out(folder);
        pid_t reader = is_read ? begin_reading(folder->db) : 0;
        died = restore_and_die(folder, changes);
        if (is_read)
            end_child(reader);
        const bool new = must_be_one_of_both(folder);
        assert_true(died || new);
        outcomes[new]++;
        if (new || changes % 10 != 0)
            continue;
        must_do(restore_backup(folder, kept, fresh_err()));
        assert_true(must_be_one_of_both(folder));
    }
    assert_true(outcomes[0] > 30 && outcomes[1] > 1);
}

static int setup(void **state)
{
    if (folder_setup(state) != 0)
        return -1;
    inventories[0] = empty_inventory();
    for (unsigned i = 1; i <= OLD; i++)
        inventories[i] = odd_inventory(8, 3, i);
    make_files(*state);
    return 0;
}

static int teardown(void **state)
{
    for (unsigned i = 0; i <= OLD; i++)
        fab_inventory_destroy(&inventories[i]);
    return folder_teardown(state);
}

TEST_WITH(killed_before_any_of_its_changes, setup, teardown)
{
    kill_everywhere(*state, false);
}

TEST_WITH(killed_while_another_program_reads_the_store, setup, teardown)
{
    kill_everywhere(*state, true);
}

/* Whatever has the copy's name and is none stays, and a restore says so. */
TEST_IN(what_is_not_ours_stays, const struct folder *folder, setup, teardown)
{
    char kept[PATH_SIZE];
    struct fab_err err = {{0}};
    lay_out(folder);
    write_file(path_of(folder, "fabric.db.restoring"), "somebody's notes", 16);
    copy_file(path_of(folder, "backup"), path_of(folder, "fabric.db.before-restore"));
    struct store *store = open_store(folder->db);
    store_close(store);
    assert_int_equal(restore_backup(folder, kept, &err), PMIXFAB_ERR_IO);
    check_line(&err, "fabric.db.restoring: cannot be created");
    assert_int_equal(access(path_of(folder, "fabric.db.restoring"), F_OK), 0);
    assert_int_equal(access(path_of(folder, "fabric.db.before-restore"), F_OK), 0);
    assert_int_equal(unlink(path_of(folder, "fabric.db.restoring")), 0);
    must_do(restore_backup(folder, kept, &err));
    assert_non_null(strstr(kept, "before-restore.2"));
}

static uint64_t next_of(const struct folder *folder)
{
    OWNED(store_close) struct store *store = open_store(folder->db);
    uint64_t next = 0;
    must_do(store_next_generation(store, &next, fresh_err()));
    return next;
}

/* A copy of some of a store's files would be one of some of its content. */
TEST_IN(a_store_in_use_is_no_backup, const struct folder *folder, setup, teardown)
{
    char kept[PATH_SIZE];
    struct fab_err err = {{0}};
    lay_out(folder);
    copy_file(path_of(folder, "template-wal"), path_of(folder, "backup-wal"));
    assert_int_equal(restore_backup(folder, kept, &err), PMIXFAB_ERR_CONFLICT);
    check_line(&err, "it is a store in use");
    unlink(path_of(folder, "backup-wal"));
    assert_true(next_of(folder) == OLD + 1);
}
