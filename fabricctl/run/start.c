/* start.c - start a command in place of fabricctl, or wait for it and pass signals on. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fabricctl/run/run.h"

/* Signals that another process sends to a launcher. The kernel sends those of a terminal to the command
 * itself. */
static const int passed_on[] = {SIGHUP,  SIGINT,  SIGQUIT,  SIGTERM, SIGUSR1,
                                SIGUSR2, SIGALRM, SIGWINCH, SIGXCPU};

enum ctl_exit run_exec(char *const *words)
{
    signal(SIGPIPE, SIG_DFL); /* fabricctl ignores them */
    signal(SIGXFSZ, SIG_DFL);
    execvp(words[0], words);
    return ctl_error("cannot start %s: %s", words[0], strerror(errno));
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
    int status = 0;
    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    for (size_t i = 0; i < CTL_COUNT(passed_on); i++)
        sigaddset(&signals, passed_on[i]);
    sigprocmask(SIG_BLOCK, &signals, &before);
    pid = fork();
    if (pid == 0) {
        sigprocmask(SIG_SETMASK, &before, NULL);
        _exit((int)run_exec(words));
    }
    if (pid > 0)
        status = wait_for(pid, &signals);
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (pid < 0)
        return ctl_error("cannot start %s: %s", words[0], strerror(errno));
    return (enum ctl_exit)(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status)); /* as a shell */
}
