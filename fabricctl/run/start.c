/* start.c - start a command in place of fabricctl, or wait for it and pass signals on. */
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fabricctl/run/run.h"

extern char **environ;

/* Signals that another process sends to a launcher. The kernel sends those of a terminal to the command
 * itself. */
static const int passed_on[] = {SIGHUP,  SIGINT,  SIGQUIT,  SIGTERM, SIGUSR1,
                                SIGUSR2, SIGALRM, SIGWINCH, SIGXCPU};

static enum ctl_exit cannot_start(const char *name, int error)
{
    return ctl_error("cannot start %s: %s", name, strerror(error));
}

enum ctl_exit run_exec(char *const *words)
{
    signal(SIGPIPE, SIG_DFL); /* fabricctl ignores them */
    signal(SIGXFSZ, SIG_DFL);
    execvp(words[0], words);
    return cannot_start(words[0], errno);
}

static int start_command(char *const *words, const sigset_t *mask, pid_t *pid)
{
    posix_spawnattr_t attributes;
    sigset_t defaults;
    int rc = posix_spawnattr_init(&attributes);
    if (rc != 0)
        return rc;
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    sigaddset(&defaults, SIGXFSZ);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(&attributes, mask);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    rc = posix_spawnp(pid, words[0], NULL, &attributes, words, environ);
    posix_spawnattr_destroy(&attributes);
    return rc;
}

static int wait_for(pid_t pid, const sigset_t *signals)
{
    int status;
    siginfo_t info;
    for (;;) {
        const int number = sigwaitinfo(signals, &info);
        if (number == SIGCHLD) {
            if (waitpid(pid, &status, WNOHANG) == pid)
                return status;
        } else if (number > 0 && info.si_code != SI_KERNEL) {
            kill(pid, number);
        }
    }
}

enum ctl_exit run_and_wait(char *const *words)
{
    sigset_t signals, before;
    pid_t pid;
    int status, rc;
    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    for (size_t i = 0; i < CTL_COUNT(passed_on); i++)
        sigaddset(&signals, passed_on[i]);
    signal(SIGCHLD, SIG_DFL); /* a parent may have ignored it */
    sigprocmask(SIG_BLOCK, &signals, &before);
    rc = start_command(words, &before, &pid);
    status = rc == 0 ? wait_for(pid, &signals) : 0;
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (rc != 0)
        return cannot_start(words[0], rc);
    if (WIFEXITED(status))
        return (enum ctl_exit)WEXITSTATUS(status);
    return (enum ctl_exit)(128 + WTERMSIG(status)); /* as a shell */
}
