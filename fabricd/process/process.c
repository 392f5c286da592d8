/* process.c - fabricd as a process: its run directory and lock, its URI file, the background. */
#include "fabricd/process/process.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabricd/base/file_io.h"
#include "fabricd/base/log.h"
#include "fabricd/base/notify.h"
#include "fabricd/config/config.h"

#define WRITE_OF_OTHERS (S_IWGRP | S_IWOTH)

struct process_lock {
    int fd;
};

static int ready_fd = -1; /* the child's end of the pipe to the waiting parent */
static enum pmixfab_level background_level;

static bool is_ours(uid_t owner)
{
    return owner == 0 || owner == geteuid();
}

/* Return why others could replace an entry of this folder; NULL: nobody else can. */
static const char *who_replaces(const struct stat *st)
{
    const bool sticky = (st->st_mode & S_ISVTX) != 0;
    if (!is_ours(st->st_uid))
        return "another user owns it";
    if ((st->st_mode & S_IWOTH) != 0 && !sticky)
        return "all users may write to it";
    if ((st->st_mode & S_IWGRP) != 0 && !sticky && st->st_gid != 0 && st->st_gid != getegid())
        return "a group may write to it";
    return NULL;
}

/* Return why others could create files in this folder, sticky or not; NULL: nobody else can. */
static const char *who_writes(const struct stat *st)
{
    if (!is_ours(st->st_uid))
        return "another user owns it";
    return (st->st_mode & (S_IWGRP | S_IWOTH)) != 0 ? "others may write to it" : NULL;
}

/*
 * Return PMIXFAB_ERR_PERM if a user other than root and this process's user may write to the folder, or may
 * rename it or a folder above it. A folder above may be writable for all users only if it is sticky, as /tmp
 * is. It may be writable for a group only if it is sticky, or if the group is that of root or of this
 * process. Links are followed.
 */
static int check_private(const char *what, const char *path, struct fab_err *err)
{
    char real[PATH_MAX];
    struct stat st;
    const char *why = NULL;
    if (realpath(path, real) == NULL || stat(real, &st) != 0)
        return fab_fail(err, PMIXFAB_ERR_IO, "%s %s: %s", what, path, strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return fab_fail(err, PMIXFAB_ERR_IO, "%s %s: not a folder", what, path);
    why = who_writes(&st);
    for (char *end = strrchr(real, '/'); why == NULL && end != NULL && real[1] != '\0';
         end = strrchr(real, '/')) {
        end[end == real] = '\0';
        if (stat(real, &st) != 0)
            return fab_fail(err, PMIXFAB_ERR_IO, "%s %s: %s: %s", what, path, real, strerror(errno));
        why = who_replaces(&st);
    }
    if (why == NULL)
        return PMIXFAB_OK;
    return fab_fail(err, PMIXFAB_ERR_PERM,
                    "%s %s: %s: %s: only fabricd's user and root may (chmod go-w, chown)", what, path, real,
                    why);
}

/* Make the run directory readable for all, whatever the umask is; leave the mode of an existing one alone. */
static int make_rundir(const char *rundir, struct fab_err *err)
{
    bool made = mkdir(rundir, 0755) == 0;
    if (made ? chmod(rundir, 0755) != 0 : errno != EEXIST)
        return fab_fail(err, PMIXFAB_ERR_IO, "run directory %s: cannot be created: %s", rundir,
                        strerror(errno));
    return check_private("run directory", rundir, err);
}

/* Reject a file with several hard links: it may belong to another user's file. */
static int open_lock(const char *path, struct fab_err *err)
{
    struct stat st;
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0640);
    if (fd < 0)
        return fab_fail(err, PMIXFAB_ERR_IO, "%s: cannot be written: %s", path, strerror(errno));
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1)
        return fd;
    close(fd);
    return fab_fail(err, PMIXFAB_ERR_PERM, "%s: not a file of fabricd's own: remove it", path);
}

int process_lock(const struct config *config, struct process_lock **out, struct fab_err *err)
{
    char path[4096], pid[32] = "";
    *out = NULL;
    int rc = make_rundir(config->rundir, err);
    if (rc != PMIXFAB_OK)
        return rc;
    snprintf(path, sizeof(path), "%s/lock", config->rundir);
    int fd = open_lock(path, err);
    if (fd < 0)
        return fd;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        ssize_t n = read(fd, pid, sizeof(pid) - 1);
        pid[n > 0 ? n : 0] = '\0';
        pid[strcspn(pid, "\n")] = '\0';
        close(fd);
        return fab_fail(err, PMIXFAB_ERR_BUSY,
                        "run directory %s: another fabricd (process %s) uses it: stop that one, or choose "
                        "another --rundir",
                        config->rundir, pid[0] != '\0' ? pid : "unknown");
    }
    file_hide(path);
    int len = snprintf(pid, sizeof(pid), "%d\n", (int)getpid());
    if (pwrite(fd, pid, (size_t)len, 0) != len ||
        ftruncate(fd, len) != 0) /* the lock holds without the number, too */
        log_warning("%s: the process number cannot be written: %s", path, strerror(errno));
    struct process_lock *lock = *out = malloc(sizeof(*lock));
    if (lock == NULL) {
        close(fd);
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    }
    lock->fd = fd;
    return PMIXFAB_OK;
}

void process_unlock(struct process_lock *lock)
{
    if (lock == NULL)
        return;
    close(lock->fd);
    free(lock);
}

bool process_lost(const struct config *config, const struct process_lock *lock)
{
    char path[4096];
    struct stat held, there;
    snprintf(path, sizeof(path), "%s/lock", config->rundir);
    return lock != NULL && fstat(lock->fd, &held) == 0 &&
           (stat(path, &there) != 0 || there.st_ino != held.st_ino || there.st_dev != held.st_dev);
}

int process_write_uri(const struct config *config, const char *uri, struct fab_err *err)
{
    char path[4096], beside[4096 + 8], line[1024];
    snprintf(path, sizeof(path), "%s/fabricd.uri", config->rundir);
    snprintf(beside, sizeof(beside), "%s.new", path);
    snprintf(line, sizeof(line), "%s\n", uri);
    int failed = file_replace(path, beside, line, strlen(line));
    return failed == 0 ? PMIXFAB_OK
                       : fab_fail(err, PMIXFAB_ERR_IO, "%s: cannot be written: %s", path, strerror(failed));
}

void process_remove_uri(const struct config *config, const struct process_lock *lock)
{
    char path[4096];
    if (lock == NULL)
        return; /* the run directory is another fabricd's now */
    snprintf(path, sizeof(path), "%s/fabricd.uri", config->rundir);
    unlink(path);
}

static struct rlimit usual; /* rlim_max 0: not changed */

void process_descriptors(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max)
        return;
    usual = limit;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) {
        log_warning("cannot raise the limit of %llu descriptors: %s", (unsigned long long)usual.rlim_cur,
                    strerror(errno));
        usual.rlim_max = 0;
    }
}

/* The child runs already, but cannot have opened that many descriptors yet. */
void process_descriptors_of_child(pid_t pid)
{
    if (usual.rlim_max != 0 && prlimit(pid, RLIMIT_NOFILE, &usual, NULL) != 0)
        log_debug("child %d keeps our limit of descriptors: %s", (int)pid, strerror(errno));
}

int process_daemonize(const struct config *config)
{
    int fds[2];
    background_level = config->log;
    if (pipe2(fds, O_CLOEXEC) != 0) {
        log_error("no pipe: %s", strerror(errno));
        return PMIXFAB_ERR_IO;
    }
    pid_t pid = fork();
    if (pid < 0) {
        log_error("fork: %s", strerror(errno));
        return PMIXFAB_ERR_IO;
    }
    if (pid > 0) {
        char ok = 0;
        close(fds[1]);
        ssize_t n = read(fds[0], &ok, 1); /* end of file if the child dies */
        _exit(n == 1 && ok == 1 ? 0 : 1);
    }
    close(fds[0]);
    ready_fd = fds[1];
    setsid();
    umask(umask(WRITE_OF_OTHERS) |
          WRITE_OF_OTHERS); /* whatever the caller's umask is, others may not write files of fabricd */
    if (chdir("/") != 0)    /* so that no file system is kept busy */
        log_debug("the working directory stays that of the start: %s", strerror(errno));
    return PMIXFAB_OK;
}

void process_ready(bool ok)
{
    if (ok)
        notify_send("READY=1");
    if (ready_fd < 0)
        return;
    const char byte = ok;
    if (write(ready_fd, &byte, 1) != 1)
        log_debug("the parent is gone");
    close(ready_fd);
    ready_fd = -1;
    if (!ok)
        return;
    log_open(background_level, 1);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; null >= 0 && fd < 3; fd++)
        dup2(null, fd);
    if (null > 2)
        close(null);
}

/* Return the strings that the process was given at its start. NULL: not available. */
static char **read_texts(const char *path)
{
    enum { LIMIT = 4 << 20 };
    char *bytes = NULL, **texts;
    size_t size = 0, n = 0;
    FILE *file = fopen(path, "re");
    if (file != NULL && (bytes = calloc(LIMIT + 1, 1)) != NULL)
        size = fread(bytes, 1, LIMIT, file);
    if (file != NULL)
        fclose(file);
    for (size_t i = 0; i < size; i++)
        n += bytes[i] == '\0';
    texts = size > 0 ? calloc(n + 2, sizeof(*texts)) : NULL;
    n = 0;
    for (size_t i = 0; texts != NULL && i < size; i += strlen(bytes + i) + 1)
        texts[n++] = bytes + i;
    return texts;
}

/* NOLINTBEGIN(clang-analyzer-unix.Malloc): the next program owns the strings, or the process ends */
int process_again(void)
{
    char program[PATH_MAX] = "";
    char **arguments = read_texts("/proc/self/cmdline"), **variables = read_texts("/proc/self/environ");
    if (arguments == NULL)
        return PMIXFAB_ERR_IO;
    if (usual.rlim_max != 0)
        setrlimit(RLIMIT_NOFILE, &usual);
    close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
    options_go_back();
    if (readlink("/proc/self/exe", program, sizeof(program) - 1) > 0)
        execve(program, arguments, variables != NULL ? variables : environ);
    execve("/proc/self/exe", arguments, variables != NULL ? variables : environ); /* it was replaced */
    return PMIXFAB_ERR_IO;
}
/* NOLINTEND(clang-analyzer-unix.Malloc) */

int process_become_owner(const char *path, struct fab_err *err)
{
    char folder[PATH_MAX];
    struct stat st;
    snprintf(folder, sizeof(folder), "%s", path);
    char *end = strrchr(folder, '/');
    if (end != NULL)
        end[end == folder] = '\0';
    if (geteuid() != 0 || (stat(path, &st) != 0 && stat(end != NULL ? folder : ".", &st) != 0) ||
        st.st_uid == 0)
        return PMIXFAB_OK;
    if (setgroups(0, NULL) != 0 || setgid(st.st_gid) != 0 || setuid(st.st_uid) != 0)
        return fab_fail(err, PMIXFAB_ERR_PERM, "%s: cannot change to its owner, uid %u: %s", path,
                        (unsigned)st.st_uid, strerror(errno));
    return PMIXFAB_OK;
}

void signals_ignored(sigset_t *out)
{
    static const int meaningless[] = {SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF,  SIGXFSZ,
                                      SIGXCPU, SIGIO,   SIGPWR,  SIGPIPE,   SIGSTKFLT};
    sigemptyset(out);
    for (size_t i = 0; i < sizeof(meaningless) / sizeof(meaningless[0]); i++)
        sigaddset(out, meaningless[i]);
    for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
        sigaddset(out, number);
}

void signals_ignore(void)
{
    sigset_t ignored;
    signals_ignored(&ignored);
    for (int number = 1; number <= SIGRTMAX; number++)
        if (sigismember(&ignored, number) == 1)
            signal(number, SIG_IGN);
}
