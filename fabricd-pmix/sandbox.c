#include "fabricd-pmix/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <link.h>
#include <linux/netlink.h>
#include <sched.h>
#include <seccomp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fabricd/base/log.h"

/* Snapshots do not count: they are mapped. */
#define MAX_DATA ((rlim_t)1280 << 20)

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define BOUNDED false /* their shadow memory is larger than any bound */
#else
#define BOUNDED true
#endif

/* ---- system calls ----------------------------------------------------------------------------------- */

/*
 * The calls of the PMIx library, libevent, libc with its user look-ups, and this program. All others return
 * ENOSYS: libraries then act as on an older kernel, while an EPERM would end them. Names that this machine or
 * its libseccomp does not have are skipped.
 */
static const char allowed[] =
    /* memory */
    "brk madvise membarrier mincore mmap mmap2 mprotect mremap munmap "
    /* files */
    "_llseek access close close_range dup dup2 dup3 faccessat faccessat2 fallocate fcntl fcntl64 flock "
    "fstat fstat64 fstatat64 fstatfs fstatfs64 getcwd getdents getdents64 ioctl lseek lstat "
    "lstat64 newfstatat open openat pread64 preadv pwrite64 read readlink readlinkat readv stat stat64 "
    "statfs statfs64 statx umask write writev "
    /* for the library's files; Landlock restricts the folders */
    "chmod fchmod fchmodat ftruncate mkdir mkdirat rmdir unlink unlinkat "
    /* connections; the address families are restricted below */
    "accept accept4 bind connect getpeername getsockname getsockopt listen recvfrom recvmmsg "
    "recvmsg sendmmsg sendmsg sendto setsockopt shutdown socketpair "
    /* waiting */
    "epoll_create epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 epoll_wait eventfd2 pipe pipe2 "
    "inotify_add_watch inotify_init1 inotify_rm_watch poll ppoll ppoll_time64 pselect6 pselect6_time64 "
    "select timerfd_create timerfd_gettime "
    "timerfd_settime "
    /* threads; clone is restricted below */
    "exit exit_group futex futex_time64 get_robust_list rseq sched_getaffinity sched_getparam "
    "sched_getscheduler sched_yield set_robust_list set_tid_address "
    /* signals */
    "restart_syscall rt_sigaction rt_sigprocmask rt_sigreturn sigaltstack sigreturn "
    /* time */
    "clock_getres clock_gettime clock_gettime64 clock_nanosleep clock_nanosleep_time64 "
    "gettimeofday nanosleep time "
    /* more of this kind */
    "seccomp "
    /* identity of process and host */
    "arch_prctl getcpu getegid getegid32 geteuid geteuid32 getgid getgid32 getgroups getgroups32 "
    "getpgrp getpid getppid getrandom getresgid getresuid getrlimit getrusage getsid gettid "
    "getuid getuid32 prctl prlimit64 sysinfo times uname";

/* Calls of an attacker who has taken the process over: these return EPERM. */
static const char forbidden[] =
    "execve execveat ptrace process_vm_readv process_vm_writev kill fork vfork mount umount2 "
    "chroot pivot_root unshare setns bpf keyctl perf_event_open io_uring_setup userfaultfd "
    "init_module finit_module kexec_load reboot rename renameat renameat2 link linkat symlink "
    "symlinkat mknod mknodat chown fchown lchown fchownat setuid setresuid setgid setresgid";

/* Calls that are not needed once the server runs. */
static const char done_with[] = "chmod fchmod fchmodat ftruncate listen mkdir mkdirat";

static int filter_add_names(scmp_filter_ctx filter, uint32_t action, const char *names)
{
    int rc = 0;
    char name[32];
    for (const char *at = names; rc == 0 && *at != '\0'; at += strspn(at, " ")) {
        const size_t size = strcspn(at, " ");
        snprintf(name, sizeof(name), "%.*s", (int)size, at);
        const int call = seccomp_syscall_resolve_name(name);
        if (call >= 0) /* less than 0: a call of another architecture */
            rc = seccomp_rule_add(filter, action, call, 0);
        at += size;
    }
    return rc;
}

/* Compare an argument of a call: equal to a; or, masked with a, equal to b. */
static struct scmp_arg_cmp filter_value(unsigned argument, enum scmp_compare how, scmp_datum_t a,
                                        scmp_datum_t b)
{
    return (struct scmp_arg_cmp){.arg = argument, .op = how, .datum_a = a, .datum_b = b};
}

static int filter_add_details(scmp_filter_ctx filter)
{
    static const int families[] = {AF_UNIX, AF_INET, AF_INET6};
    static const int netlink[] = {NETLINK_ROUTE, NETLINK_SOCK_DIAG}; /* interfaces; owners of connections */
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < 3; i++)
        rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1,
                              filter_value(0, SCMP_CMP_EQ, (scmp_datum_t)families[i], 0));
    for (size_t i = 0; rc == 0 && i < 2; i++)
        rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 2,
                              filter_value(0, SCMP_CMP_EQ, AF_NETLINK, 0),
                              filter_value(2, SCMP_CMP_EQ, (scmp_datum_t)netlink[i], 0));
    if (rc == 0) /* clone3 fails, whose flags a filter cannot see, and libc uses clone instead */
        rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
                              filter_value(0, SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD));
    if (rc == 0) /* abort() */
        rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1,
                              filter_value(0, SCMP_CMP_EQ, (scmp_datum_t)getpid(), 0));
    return rc;
}

static bool filter_calls(void)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
    if (filter == NULL)
        return false;
    int rc = filter_add_names(filter, SCMP_ACT_ALLOW, allowed);
    if (rc == 0)
        rc = filter_add_names(filter, SCMP_ACT_ERRNO(EPERM), forbidden);
    if (rc == 0)
        rc = filter_add_details(filter);
    if (rc == 0)
        rc = seccomp_load(filter);
    seccomp_release(filter);
    if (rc != 0)
        log_warning("cannot filter the system calls of fabricd-pmix: %s", strerror(-rc));
    return rc == 0;
}

/* ---- files ---------------------------------------------------------------------------------------- */

/* The build machine's linux/landlock.h may be older than the kernel. These numbers are part of the ABI. */
#define READ_FILE       (UINT64_C(1) << 2)
#define READ_DIR        (UINT64_C(1) << 3)
#define READ            (READ_FILE | READ_DIR)
#define ALL_OF(version) ((UINT64_C(1) << (version)) - 1)
#define CONNECT_TCP     (UINT64_C(1) << 1)
#define SCOPE_SIGNAL    (UINT64_C(1) << 1)
#define BENEATH         1
#define ASK_VERSION     1u

struct landlock_handled {
    uint64_t files, net, scoped;
};

struct landlock_beneath {
    uint64_t allowed;
    int32_t folder;
} __attribute__((packed));

/* The file rights of each version of the interface; version 1 has the first 13 bits. */
static uint64_t known_rights(long version)
{
    static const unsigned bits[] = {13, 14, 15, 15, 16};
    return ALL_OF(bits[version <= 5 ? version - 1 : 4]);
}

static void landlock_allow(int rules, const char *path, int flags, uint64_t rights)
{
    struct landlock_beneath beneath = {rights, open(path, O_PATH | O_CLOEXEC | flags)};
    if (beneath.folder < 0)
        return;
    (void)!syscall(SYS_landlock_add_rule, rules, BENEATH, &beneath, 0);
    close(beneath.folder);
}

static void allow_folder_of(int rules, const char *path)
{
    char copy[PATH_MAX];
    if (strlen(path) >= sizeof(copy) || path[0] != '/')
        return;
    strcpy(copy, path);
    landlock_allow(rules, dirname(copy), 0, READ);
}

/* Allow the folder of each library, since its modules may be loaded later. */
static int allow_library(struct dl_phdr_info *library, size_t size, void *rules)
{
    (void)size;
    allow_folder_of(*(int *)rules, library->dlpi_name);
    return 0;
}

/* Folders separated by colons. */
static void allow_list(int rules, const char *list)
{
    char folder[PATH_MAX];
    for (const char *at = list; at != NULL && *at != '\0'; at += strspn(at, ":")) {
        const size_t size = strcspn(at, ":");
        if (size < sizeof(folder)) {
            memcpy(folder, at, size);
            folder[size] = '\0';
            landlock_allow(rules, folder, 0, READ);
        }
        at += size;
    }
}

/* Restrict the files that this process can access (Linux 5.13). False: the kernel does not support it. */
static bool landlock_enter(const char *rundir, const char *own)
{
    static const char *const readable[] = {"/usr", "/lib", "/lib64", "/etc",        "/proc",
                                           "/sys", "/dev", "/run",   "/var/lib/sss"};
    const long version = syscall(SYS_landlock_create_ruleset, NULL, 0, ASK_VERSION);
    if (version < 1)
        return false;
    const struct landlock_handled handled = {.files = known_rights(version),
                                             .net = version >= 4 ? CONNECT_TCP : 0,
                                             .scoped = version >= 6 ? SCOPE_SIGNAL : 0};
    const size_t size = version >= 6 ? 24 : version >= 4 ? 16 : 8;
    int rules = (int)syscall(SYS_landlock_create_ruleset, &handled, size, 0);
    if (rules < 0)
        return false;
    for (size_t i = 0; i < sizeof(readable) / sizeof(readable[0]); i++)
        landlock_allow(rules, readable[i], 0, READ);
    dl_iterate_phdr(allow_library, &rules);
    allow_list(rules, getenv("PMIX_MCA_mca_base_component_path"));
    allow_folder_of(rules, rundir); /* the run directory may be removed and made again */
    landlock_allow(rules, own, O_NOFOLLOW | O_DIRECTORY,
                   handled.files & ~UINT64_C(1)); /* all except execute */
    const bool done = syscall(SYS_landlock_restrict_self, rules, 0) == 0;
    close(rules);
    return done;
}

/* ---- the whole sandbox ------------------------------------------------------------------------------ */

unsigned sandbox_enter(const char *rundir, const char *own)
{
    const struct rlimit data = {MAX_DATA, MAX_DATA}, no_core = {0, 0};
    unsigned holds = 0;
    setrlimit(RLIMIT_CORE, &no_core);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return 0;
    if (BOUNDED && setrlimit(RLIMIT_DATA, &data) == 0)
        holds |= SANDBOX_BOUNDED;
    if (landlock_enter(rundir, own))
        holds |= SANDBOX_CONFINED;
    if (filter_calls())
        holds |= SANDBOX_FILTERED;
    return holds;
}

bool sandbox_close(void)
{
    static const int modes[] = {O_WRONLY, O_RDWR};
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    int rc = filter == NULL ? -ENOMEM : seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
    for (size_t i = 0; rc == 0 && i < 2; i++) {
        rc = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(openat), 1,
                              filter_value(2, SCMP_CMP_MASKED_EQ, O_ACCMODE, (scmp_datum_t)modes[i]));
        if (rc == 0)
            rc = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(open), 1,
                                  filter_value(1, SCMP_CMP_MASKED_EQ, O_ACCMODE, (scmp_datum_t)modes[i]));
    }
    if (rc == 0)
        rc = filter_add_names(filter, SCMP_ACT_ERRNO(EPERM), done_with);
    if (rc == 0)
        rc = seccomp_load(filter);
    if (filter != NULL)
        seccomp_release(filter);
    return rc == 0;
}
