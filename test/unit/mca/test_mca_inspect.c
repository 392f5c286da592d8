/* The child that looks at a host: what it may do wrong, and what is left of it then. */

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "mca/pnet/inventory_child.h"
#include "test/unit/delivered.h"

/* The time of the deadlines: a second of it can be less; and once a child is killed, it stands still until
 * that child has ended, however late that is. */
static int64_t faster;
static struct timespec stopped;

int kill(pid_t pid, int signo)
{
    if (faster > 1)
        clock_gettime(CLOCK_MONOTONIC, &stopped);
    return (int)syscall(SYS_kill, pid, signo);
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
    if (stopped.tv_sec != 0) {
        *t = stopped;
        return 0;
    }
    const int rc = (int)syscall(SYS_clock_gettime, clock, t);
    if (faster > 1) {
        const int64_t ns = faster * (t->tv_sec * 1000000000 + t->tv_nsec);
        *t = (struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    }
    return rc;
}

/* The only option that is set: how long a child may not read. */
int setsockopt(int fd, int level, int option, const void *value, socklen_t size)
{
    const struct timeval soon = {.tv_usec = 50000};
    assert_true(level == SOL_SOCKET && option == SO_SNDTIMEO && value != NULL);
    return (int)syscall(SYS_setsockopt, fd, level, option, &soon, size);
}

/* Scripts in the place of fabricd, and a delivery that they may write. */
struct place {
    char dir[64], program[96];
    void *good;
    size_t size;
};

static void put_in(const struct place *p, const char *name, const void *bytes, size_t size)
{
    write_file(printed("%s/%s", p->dir, name), bytes, size);
}

static int setup(void **state)
{
    struct place *p = calloc(1, sizeof(*p));
    faster = 1;
    stopped = (struct timespec){0};
    strcpy(p->dir, "/tmp/pmixfab-inspect-XXXXXX");
    assert_non_null(mkdtemp(p->dir));
    snprintf(p->program, sizeof(p->program), "%s/fabricd", p->dir);
    p->good = delivery_of("node1", "eth0", 0, &p->size);
    put_in(p, "good", p->good, p->size);
    put_in(p, "short", p->good, p->size - 1);
    size_t size;
    OWNED(free) void *other = delivery_of("node2", "eth0", 0, &size);
    put_in(p, "other", other, size);
    *state = p;
    return 0;
}

static int teardown(void **state)
{
    OWNED(free) struct place *p = *state;
    free(p->good);
    return remove_folder(p->dir);
}

static void expect_file(const struct place *p, const char *name, const void *bytes, size_t size)
{
    size_t n;
    OWNED(free) char *got = read_file(printed("%s/%s", p->dir, name), &n);
    assert_int_equal(n, size);
    assert_memory_equal(got, bytes, size);
}

static unsigned descriptors(void)
{
    unsigned n = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (readdir(dir) != NULL)
        n++;
    closedir(dir);
    return n;
}

static void put_program(const struct place *p, const char *script)
{
    const char *text = printed("#!/bin/sh\ncd %s\n%s\n", p->dir, script);
    write_file(p->program, text, strlen(text));
    assert_int_equal(chmod(p->program, 0755), 0);
}

/* A script that begins in the place's folder. What it leaves behind: no child, no descriptor. */
static int inspect_with(struct place *p, const char *script, const char *probes, unsigned limit,
                        struct fab_err *err)
{
    const struct pnet_inventory_params wanted = {
        .program = p->program, .host = "node1", .probes = probes, .seconds = (int)limit};
    void *bytes;
    size_t size;
    unsigned before = descriptors();
    put_program(p, script);
    stopped = (struct timespec){0};
    err->text[0] = '\0';
    int rc = pnet_inspect(&wanted, &bytes, &size, err);
    if (rc == PMIXFAB_OK) {
        assert_int_equal(size, p->size);
        assert_memory_equal(bytes, p->good, size);
        free(bytes);
    } else {
        assert_null(bytes);
        assert_true(err->text[0] != '\0');
    }
    assert_int_equal(descriptors(), before);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left, not even an ended one */
    return rc;
}

static int inspect(struct place *p, const char *script, struct fab_err *err)
{
    return inspect_with(p, script, NULL, 20, err);
}

TEST_IN(test_good, struct place *p, setup, teardown)
{
    assert_int_equal(inspect(p, "cat good >&3", fresh_err()), 0);
    /* In pieces, with remarks, and an end that takes a moment. */
    assert_int_equal(inspect(p,
                             "echo remark >&2; head -c 9 good >&3; echo more >&2; tail -c +10 good >&3;"
                             "exec 3>&-; sleep 0.1",
                             fresh_err()),
                     0);
}

TEST_IN(test_arguments, struct place *p, setup, teardown)
{
    assert_int_equal(
        inspect_with(p, "echo \"$@\" >args; echo $PPID >>args; ls /proc/self/fd | wc -l >>args; cat good >&3",
                     "verbs:/a b,hwloc,", 7, fresh_err()),
        0);
    /* ls has the folder open beside 0 to 3 */
    const char *wanted =
        printed("--inventory-child %d node1 6 verbs:/a b hwloc\n%d\n5\n", (int)getpid(), (int)getpid());
    expect_file(p, "args", wanted, strlen(wanted));

    char many[200] = "a";
    for (int i = 0; i < 40; i++)
        strcat(many, ",a");
    assert_int_equal(inspect_with(p, "cat good >&3", many, 7, fresh_err()), PMIXFAB_ERR_INVAL);
}

TEST_IN(test_failures, struct place *p, setup, teardown)
{
    struct fab_err err;
    assert_int_equal(inspect(p, "echo '<0>there is nothing' >&2; exit 3", &err), PMIXFAB_ERR_UNSUPPORTED);
    assert_int_equal(inspect(p, "echo '<0>it is broken' >&2; cat good >&3; exit 1", &err), PMIXFAB_ERR_IO);
    assert_int_equal(inspect(p, "exit 0", &err), PMIXFAB_ERR_IO);
    assert_int_equal(inspect(p, "cat good >&3; kill -SEGV $$", &err), PMIXFAB_ERR_IO);
    assert_int_equal(inspect(p, "cat short >&3", &err), PMIXFAB_ERR_TRUNCATED);
    assert_int_equal(inspect(p, "cat good good >&3", &err), PMIXFAB_ERR_CORRUPT);
    must_fail(inspect(p, "cat other >&3", &err), PMIXFAB_ERR_CORRUPT, &err, "node2");
    assert_int_not_equal(inspect(p, "echo garbage of some length, which is no delivery at all >&3", &err), 0);
    assert_int_equal(inspect(p, "exec cat /dev/zero >&3", &err), PMIXFAB_ERR_IO);

    const struct pnet_inventory_params nowhere = {
        .program = "/nonexistent/fabricd", .host = "node1", .seconds = 5};
    void *bytes;
    size_t size;
    must_fail(pnet_inspect(&nowhere, &bytes, &size, &err), PMIXFAB_ERR_IO, &err, "/nonexistent/fabricd");
}

TEST_IN(test_deadline, struct place *p, setup, teardown)
{
    faster = 20;
    /* With its own children, and what was written before is not believed. */
    assert_int_equal(inspect_with(p, "sleep 60 & cat good >&3; sleep 60", NULL, 1, fresh_err()),
                     PMIXFAB_ERR_TIMEOUT);
    assert_int_equal(inspect_with(p, "trap '' TERM INT HUP; while :; do sleep 1; done", NULL, 1, fresh_err()),
                     PMIXFAB_ERR_TIMEOUT);
    assert_int_equal(inspect_with(p, "exec cat /dev/zero >&2", NULL, 1, fresh_err()), PMIXFAB_ERR_TIMEOUT);
}

/* What it writes into stays open in a process that left the group: it has ended all the same. */
TEST_IN(test_file_in_other_hands, struct place *p, setup, teardown)
{
    assert_int_equal(inspect(p, "cat good >&3; setsid sleep 30 </dev/null & sleep 0.05", fresh_err()), 0);
}

static volatile sig_atomic_t reaped;

static void reap(int signo)
{
    int before = errno; /* NOLINT(bugprone-signal-handler): put back below */
    (void)signo;
    while (waitpid(-1, NULL, WNOHANG) > 0)
        reaped++;
    errno = before;
}

/* Hosts that ignore SIGCHLD, or wait for every child themselves. */
TEST_IN(test_hosts_own_ways, struct place *p, setup, teardown)
{
    signal(SIGCHLD, SIG_IGN);
    assert_int_equal(inspect(p, "cat good >&3", fresh_err()), 0);
    assert_int_not_equal(inspect(p, "exit 1", fresh_err()), 0);
    faster = 20;
    assert_int_equal(inspect_with(p, "sleep 60", NULL, 1, fresh_err()), PMIXFAB_ERR_TIMEOUT);
    faster = 1;
    signal(SIGCHLD, reap);
    for (int i = 0; i < 10; i++)
        assert_int_equal(inspect(p, "cat good >&3", fresh_err()), 0);
    assert_int_not_equal(inspect(p, "exit 1", fresh_err()), 0);
    faster = 20;
    assert_int_equal(inspect_with(p, "sleep 60", NULL, 1, fresh_err()), PMIXFAB_ERR_TIMEOUT);
    assert_true(reaped > 0);
    signal(SIGCHLD, SIG_DFL);
}

/* The host's mask and handlers are not the child's. (The C library keeps two real-time signals for itself.)
 */
TEST_IN(test_signals_of_the_child, struct place *p, setup, teardown)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    signal(SIGUSR1, SIG_IGN);
    assert_int_equal(
        inspect(
            p,
            "grep -E '^Sig(Blk|Ign):.0*(180000000)?$' /proc/self/status | wc -l | grep -q 2 && cat good >&3",
            fresh_err()),
        0);
    signal(SIGUSR1, SIG_DFL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* ---- the child that delivers -------------------------------------------------------------------- */

static struct pnet_sender sender_of(const struct place *p)
{
    static struct pnet_inventory_params params;
    params = (struct pnet_inventory_params){.program = p->program, .rundir = "/run of/it"};
    return (struct pnet_sender){.params = &params, .fd = -1};
}

/* One child gets everything, each behind its size, and the end. */
TEST_IN(test_send, struct place *p, setup, teardown)
{
    struct pnet_sender sender = sender_of(p);
    struct fab_err err;
    char wanted[64];
    const unsigned before = descriptors();
    put_program(p, "echo $$ \"$@\" >>args; ls /proc/self/fd | wc -l >>args; cat >in");
    pnet_send_stop(&sender); /* there is none */
    assert_int_equal(pnet_send(&sender, "first", 5, &err), 0);
    assert_int_equal(pnet_send(&sender, "", 0, &err), 0);
    assert_int_equal(pnet_send(&sender, "2nd", 3, &err), 0);
    assert_int_equal(pnet_send(&sender, "too long", FAB_DELIVERY_MAX + 1, &err), PMIXFAB_ERR_RANGE);
    /* ls has the folder open beside 0 to 2 */
    int len = snprintf(wanted, sizeof(wanted), "%d --deliver-child /run of/it\n4\n", (int)sender.pid);
    pnet_send_stop(&sender);
    expect_file(p, "args", wanted, (size_t)len);
    expect_file(p, "in",
                "\5\0\0\0first\0\0\0\0\3\0\0\0"
                "2nd",
                20);
    assert_int_equal(descriptors(), before);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

TEST_IN(test_send_to_another_child, struct place *p, setup, teardown)
{
    struct pnet_sender sender = sender_of(p);
    put_program(p, "cat >>in");
    assert_int_equal(pnet_send(&sender, "first", 5, fresh_err()), 0);
    kill(sender.pid, SIGKILL);
    siginfo_t ended;
    assert_int_equal(waitid(P_PID, (id_t)sender.pid, &ended, WEXITED | WNOWAIT), 0);
    assert_int_equal(pnet_send(&sender, "2nd", 3, fresh_err()), 0);
    pnet_send_stop(&sender);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

/* No program, one that does not read, and one that does not end. */
TEST_IN(test_send_to_nobody, struct place *p, setup, teardown)
{
    static char big[FAB_DELIVERY_MAX];
    struct pnet_sender sender = sender_of(p);
    struct fab_err err;
    struct pnet_inventory_params params = *sender.params;
    params.program = "/nonexistent/fabricd";
    sender.params = &params;
    must_fail(pnet_send(&sender, "first", 5, &err), PMIXFAB_ERR_IO, &err, "/nonexistent/fabricd");
    params.program = p->program;
    put_program(p, "sleep 60 & wait");
    int rc = PMIXFAB_OK;
    for (int i = 0; i < 10 && rc == PMIXFAB_OK; i++)
        rc = pnet_send(&sender, big, sizeof(big), &err);
    assert_int_equal(rc, PMIXFAB_ERR_IO);
    assert_int_equal(sender.fd, -1);
    assert_int_equal(pnet_send(&sender, "x", 1, &err), 0);
    faster = 20;
    pnet_send_stop(&sender);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}
