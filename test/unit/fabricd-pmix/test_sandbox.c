/* What fabricd-pmix cannot do any more, tried by a child that has forbidden itself as much. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fabricd-pmix/sandbox.h"
#include "test/unit/test.h"

enum { NOT_HERE = 250, SURPRISE };

/* As it is installed: the store is not beside the run directory. */
static struct {
    char base[32], site[40], run[48], own[56], snapshot[64], lib[40], store[56];
    int listener;
    struct sockaddr_in address;
} place;

FIXTURE(make_place)
{
    socklen_t size = sizeof(place.address);
    strcpy(place.base, "/tmp/test_sandbox.XXXXXX");
    assert_non_null(mkdtemp(place.base));
    snprintf(place.site, sizeof(place.site), "%s/site", place.base);
    snprintf(place.run, sizeof(place.run), "%s/run", place.site);
    snprintf(place.own, sizeof(place.own), "%s/pmix", place.run);
    snprintf(place.lib, sizeof(place.lib), "%s/lib", place.base);
    snprintf(place.snapshot, sizeof(place.snapshot), "%s/ib0.snap", place.run);
    snprintf(place.store, sizeof(place.store), "%s/fabricd.db", place.lib);
    const char *const folders[] = {place.site, place.run, place.own, place.lib};
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(mkdir(folders[i], 0755), 0);
    write_file(place.snapshot, "x", 1);
    write_file(place.store, "x", 1);
    place.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    place.address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(bind(place.listener, (struct sockaddr *)&place.address, sizeof(place.address)), 0);
    assert_int_equal(listen(place.listener, 8), 0);
    assert_int_equal(getsockname(place.listener, (struct sockaddr *)&place.address, &size), 0);
    return 0;
}

FIXTURE(remove_place)
{
    char command[128];
    close(place.listener);
    snprintf(command, sizeof(command), "rm -r %s", place.base);
    return system(command);
}

TEST_GROUP(make_place, remove_place)

/* Errno of the act in a child that has forbidden itself what it can, 0 where it can be done; or NOT_HERE. */
static int tried(unsigned needed, bool closed, int (*act)(void))
{
    int status;
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if ((sandbox_enter(place.run, place.own) & needed) != needed)
            _exit(NOT_HERE);
        if (closed && !sandbox_close())
            _exit(NOT_HERE);
        errno = 0;
        _exit(act() == -1 ? errno : 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : SURPRISE;
}

struct act {
    const char *what;
    int (*act)(void);
    int expected;
};

static void try_all(unsigned needed, bool closed, const struct act *acts)
{
    for (; acts->what != NULL; acts++) {
        const int got = tried(needed, closed, acts->act);
        if (got == NOT_HERE)
            skip(); /* this kernel cannot forbid it */
        if (got != acts->expected)
            fail_msg("%s: %s, and not %s", acts->what, strerror(got), strerror(acts->expected));
    }
}

/* ---- system calls ---------------------------------------------------------------------------------- */

static int act_execute(void)
{
    return execl("/bin/true", "true", NULL);
}

static int act_fork(void)
{
    return fork();
}

static int act_trace(void)
{
    return (int)ptrace(PTRACE_SEIZE, getppid(), 0, 0);
}

static int act_read_another(void)
{
    char byte;
    struct iovec here = {&byte, 1}, there = {place.base, 1};
    return (int)process_vm_readv(getppid(), &here, 1, &there, 1, 0);
}

static int act_signal(void)
{
    return kill(getppid(), 0);
}

static int act_mount(void)
{
    return mount("none", place.own, "tmpfs", 0, NULL);
}

static int act_packets(void)
{
    return socket(AF_PACKET, SOCK_RAW, 0);
}

static int act_audit(void)
{
    return socket(AF_NETLINK, SOCK_RAW, 9);
}

static int act_become_root(void)
{
    return setuid(0);
}

static int act_rename(void)
{
    char to[160];
    snprintf(to, sizeof(to), "%s.new", place.snapshot);
    return rename(place.snapshot, to);
}

TEST(system_calls_that_it_has_no_use_for)
{
    static const struct act acts[] = {
        {"execute", act_execute, EPERM},
        {"fork", act_fork, ENOSYS},
        {"ptrace", act_trace, EPERM},
        {"read another's memory", act_read_another, EPERM},
        {"signal", act_signal, EPERM},
        {"mount", act_mount, EPERM},
        {"AF_PACKET", act_packets, ENOSYS},
        {"the kernel's audit", act_audit, ENOSYS},
        {"setuid", act_become_root, EPERM},
        {"rename", act_rename, EPERM},
        {NULL, NULL, 0},
    };
    try_all(SANDBOX_FILTERED, false, acts);
    try_all(SANDBOX_FILTERED, true, acts);
}

/* ---- files ----------------------------------------------------------------------------------------- */

static int act_read_store(void)
{
    return open(place.store, O_RDONLY);
}

static int act_write_store(void)
{
    return open(place.store, O_RDWR);
}

static int act_read_snapshot(void)
{
    return open(place.snapshot, O_RDONLY);
}

static int act_write_snapshot(void)
{
    return open(place.snapshot, O_WRONLY);
}

static int act_remove_snapshot(void)
{
    return unlink(place.snapshot);
}

static int make_in(const char *folder)
{
    char path[160];
    snprintf(path, sizeof(path), "%s/made", folder);
    const int fd = open(path, O_WRONLY | O_CREAT, 0644);
    return fd < 0 || unlink(path) != 0 ? -1 : 0;
}

static int act_make_in_run(void)
{
    return make_in(place.run);
}

static int act_make_in_own(void)
{
    return make_in(place.own);
}

static int act_connect(void)
{
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    return connect(fd, (struct sockaddr *)&place.address, sizeof(place.address));
}

TEST(files_that_are_none_of_its_own)
{
    static const struct act acts[] = {
        {"read the store", act_read_store, EACCES},
        {"write the store", act_write_store, EACCES},
        {"read a snapshot", act_read_snapshot, 0},
        {"write a snapshot", act_write_snapshot, EACCES},
        {"remove a snapshot", act_remove_snapshot, EACCES},
        {"make a file beside them", act_make_in_run, EACCES},
        {"make one in its own folder", act_make_in_own, 0},
        {NULL, NULL, 0},
    };
    try_all(SANDBOX_CONFINED, false, acts);
}

TEST(where_it_serves_it_writes_no_file)
{
    static const struct act acts[] = {
        {"read a snapshot", act_read_snapshot, 0},
        {"write a snapshot", act_write_snapshot, EPERM},
        {"make a file in its own folder", act_make_in_own, EPERM},
        {NULL, NULL, 0},
    };
    try_all(SANDBOX_FILTERED, true, acts);
}

TEST(it_connects_to_no_tcp_port)
{
    static const struct act acts[] = {{"connect", act_connect, EACCES}, {NULL, NULL, 0}};
    if (syscall(SYS_landlock_create_ruleset, NULL, 0, 1) < 4) /* before Linux 6.7 */
        skip();
    try_all(SANDBOX_CONFINED, true, acts);
}

/* ---- memory ---------------------------------------------------------------------------------------- */

static int act_much_memory(void)
{
    void *volatile much = malloc((size_t)2 << 30);
    const int got = much == NULL ? -1 : 0;
    free(much);
    return got;
}

TEST(memory_is_bounded)
{
    static const struct act acts[] = {{"2 GiB", act_much_memory, ENOMEM}, {NULL, NULL, 0}};
    try_all(SANDBOX_BOUNDED, false, acts);
}

/* ---- what goes on ---------------------------------------------------------------------------------- */

static void *thread_of_it(void *arg)
{
    *(int *)arg = getpid();
    return NULL;
}

static int act_as_ever(void)
{
    pthread_t thread;
    int told = 0;
    if (pthread_create(&thread, NULL, thread_of_it, &told) != 0 || pthread_join(thread, NULL) != 0)
        return -1;
    errno = 0;
    return told == getpid() && getpwuid(0) != NULL ? 0 : -1;
}

TEST(threads_and_users_names_are_as_ever)
{
    static const struct act acts[] = {{"a thread, and who root is", act_as_ever, 0}, {NULL, NULL, 0}};
    try_all(0, true, acts);
}

static int gate[2];

static void *wait_and_make(void *arg)
{
    char byte;
    *(int *)arg = read(gate[0], &byte, 1) == 1 && make_in(place.own) == -1 ? errno : 0;
    return NULL;
}

/* The library's threads are there before the last door closes. */
TEST(a_thread_that_was_there_before)
{
    int status;
    const pid_t pid = fork();
    if (pid == 0) {
        pthread_t thread;
        int found = 0;
        if ((sandbox_enter(place.run, place.own) & SANDBOX_FILTERED) == 0 || pipe(gate) != 0 ||
            pthread_create(&thread, NULL, wait_and_make, &found) != 0 || !sandbox_close())
            _exit(NOT_HERE);
        _exit(write(gate[1], "x", 1) == 1 && pthread_join(thread, NULL) == 0 ? found : SURPRISE);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == NOT_HERE)
        skip();
    assert_int_equal(WEXITSTATUS(status), EPERM);
}
