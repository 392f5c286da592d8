/* child_start.c - the start of a child: its pipes, its environment, its descriptors. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/signals.h"
#include "fabricd/process/child_state.h"
#include "fabricd/process/process.h"

extern char **environ;

/* The daemon's environment with the configured additions; an addition replaces what has its name. */
static char **child_environment(const struct config_list *extra)
{
    size_t n = 0;
    while (environ[n] != NULL)
        n++;
    char **env = calloc(n + extra->n + 1, sizeof(*env));
    if (env == NULL)
        return NULL;
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        bool replaced = false;
        for (unsigned k = 0; k < extra->n; k++) {
            size_t len = strcspn(extra->items[k], "=") + 1;
            replaced |= strncmp(environ[i], extra->items[k], len) == 0;
        }
        if (!replaced)
            env[kept++] = environ[i];
    }
    for (unsigned k = 0; k < extra->n; k++)
        env[kept++] = extra->items[k];
    return env;
}

/* The ends of the pipes that are the child's; -1: it has none of this kind. */
struct ends {
    int input, data, text;
};

/* The child has the pipe as descriptor 3, the text pipe as standard error, and nothing else open: the
 * simulator's library, for one, crashes a process that has many descriptors. */
static int spawn_child(struct child *child, const struct child_order *order, char **env, struct ends ends)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t none, defaults;
    short flags = POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attr);
    if (ends.input >= 0)
        posix_spawn_file_actions_adddup2(&actions, ends.input, STDIN_FILENO);
    else
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends.text, STDERR_FILENO);
    if (ends.data >= 0)
        posix_spawn_file_actions_adddup2(&actions, ends.data, 3);
    posix_spawn_file_actions_addclosefrom_np(&actions, ends.data >= 0 ? 4 : 3);
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setpgroup(&attr, 0);
    if (order->program != NULL && !order->ours) { /* a pipeline in it expects what programs usually get */
        signals_ignored(&defaults);
        posix_spawnattr_setsigdefault(&attr, &defaults);
        flags |= POSIX_SPAWN_SETSIGDEF;
    }
    posix_spawnattr_setflags(&attr, flags);
    const char *program = order->program != NULL ? order->program : "/proc/self/exe";
    int rc = posix_spawn(&child->pid, program, &actions, &attr, order->argv, env);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attr);
    if (rc == 0 && !order->many)
        process_descriptors_of_child(child->pid);
    return rc;
}

/* A pipe whose ends are ours and the child's. The child's has a high number, so that moving one of them to
 * descriptor 3 does not overwrite another. */
static int make_pipe(bool child_reads, int *ours, int *childs)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0)
        return -1;
    int theirs = child_reads ? fds[0] : fds[1];
    *ours = child_reads ? fds[1] : fds[0];
    *childs = fcntl(theirs, F_DUPFD_CLOEXEC, 16);
    close(theirs);
    evutil_make_socket_nonblocking(*ours);
    return *childs < 0 ? -1 : 0;
}

static int child_spawn(struct child *child, const struct child_order *order, struct fab_err *err)
{
    static const struct config_list nothing = {.n = 0};
    struct ends ends = {order->channel > 0 ? order->channel : -1, -1, -1};
    int rc = PMIXFAB_OK, failed;
    char **env = child_environment(order->env != NULL ? order->env : &nothing);
    if (env == NULL) {
        rc = fab_fail(err, PMIXFAB_ERR_NOMEM, "%s: out of memory", child->what);
    } else if (((order->program == NULL || order->ours) && make_pipe(false, &child->data_fd, &ends.data) != 0) ||
               make_pipe(false, &child->text_fd, &ends.text) != 0 ||
               (order->input != NULL && make_pipe(true, &child->input_fd, &ends.input) != 0)) {
        rc = fab_fail(err, PMIXFAB_ERR_IO, "%s: no pipe: %s", child->what, strerror(errno));
    } else if ((failed = spawn_child(child, order, env, ends)) != 0) {
        rc = fab_fail(err, PMIXFAB_ERR_IO, "%s: the child cannot be started: %s", child->what,
                      strerror(failed));
    }
    if (order->channel == 0)
        child_close(&ends.input);
    child_close(&ends.data);
    child_close(&ends.text);
    free(env);
    return rc;
}

int child_start(struct event_base *base, const struct child_order *order, struct child **out,
                struct fab_err *err)
{
    *out = NULL;
    struct child *child = calloc(1, sizeof(*child));
    if (child == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "%s: out of memory", order->what);
    snprintf(child->what, sizeof(child->what), "%s", order->what);
    child->data_fd = child->text_fd = child->input_fd = -1;
    child->order = *order;
    child->order.what = child->what;
    child->ended = order->program != NULL && !order->ours; /* it hands nothing over */
    child->start = clock_now(CLOCK_MONOTONIC);
    /* The handler for SIGCHLD stands before there is a child that could end. */
    if (child_watch(child, base) != PMIXFAB_OK) {
        child_free(child);
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "%s: no event", order->what);
    }
    int rc = child_spawn(child, order, err);
    if (rc != PMIXFAB_OK) {
        child_free(child);
        return rc;
    }
    if (child_listen(child, base) != PMIXFAB_OK) {
        child_cancel(child);
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "%s: no event", order->what);
    }
    *out = child;
    return PMIXFAB_OK;
}
