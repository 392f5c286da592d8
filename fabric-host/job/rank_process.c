/* rank_process.c - one process of a job: its start, its environment, its standard input, its end. */
#include <errno.h>
#include <fcntl.h>
#include <pmix.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fabric-host/job/jobs.h"
#include "fabricd/base/log.h"
#include "fabricd/base/watch.h"
#include "fabricd/process/process.h"

#define MOST_INPUT ((size_t)16 << 20) /* waiting to be read */

/* ---- its end ------------------------------------------------------------------------------------ */

static void input_close(struct host_proc *proc)
{
    if (proc->writable != NULL) {
        const int fd = watch_fd(proc->writable);
        watch_free(proc->writable);
        close(fd);
    }
    proc->writable = NULL;
    if (proc->input != NULL)
        evbuffer_free(proc->input);
    proc->input = NULL;
}

static void process_send(pid_t to, int signo)
{
    if (kill(to, signo) != 0 && errno != ESRCH)
        log_debug("process %d: %s", (int)to, strerror(errno));
}

static void process_on_end(int fd, void *arg)
{
    struct host_proc *proc = arg;
    int status = 1 << 8; /* if another part has reaped it: not a success */
    /* Kill the rest of its group; the group's number cannot be reused until the process is reaped. */
    if (proc->group)
        process_send(-proc->pid, SIGKILL);
    if (waitpid(proc->pid, &status, WNOHANG) == 0)
        return;
    watch_free(proc->ended);
    close(fd);
    proc->ended = NULL;
    proc->pid = 0;
    input_close(proc);
    for (size_t i = 0; i < 2; i++)
        output_drain(&proc->out[i]);
    proc->on_end(proc, status);
}

void process_signal(const struct host_proc *proc, int signo)
{
    if (proc->pid != 0 && proc->group)
        process_send(-proc->pid, signo);
    if (proc->pid != 0 && (!proc->group || getpgid(proc->pid) != proc->pid)) /* it has left its group */
        process_send(proc->pid, signo);
}

void process_close(struct host_proc *proc)
{
    input_close(proc);
    for (size_t i = 0; i < 2; i++)
        output_close(&proc->out[i]);
    if (proc->ended != NULL) {
        const int fd = watch_fd(proc->ended);
        watch_free(proc->ended);
        close(fd);
    }
    proc->ended = NULL;
}

/* ---- its standard input ------------------------------------------------------------------------- */

static void input_on_writable(int fd, void *arg)
{
    struct host_proc *proc = arg;
    const bool reads =
        evbuffer_get_length(proc->input) == 0 || evbuffer_write(proc->input, fd) >= 0 || errno == EAGAIN;
    if (!reads || (proc->input_ends && evbuffer_get_length(proc->input) == 0))
        input_close(proc);
    else if (evbuffer_get_length(proc->input) == 0)
        watch_pause(proc->writable);
}

pmix_status_t process_input(struct host_proc *proc, const void *bytes, size_t size)
{
    if (proc->writable == NULL || proc->input_ends)
        return PMIX_ERR_NOT_AVAILABLE;
    if (evbuffer_get_length(proc->input) + size > MOST_INPUT || evbuffer_add(proc->input, bytes, size) != 0)
        return PMIX_ERR_OUT_OF_RESOURCE;
    proc->input_ends = size == 0;
    watch_resume(proc->writable);
    return PMIX_SUCCESS;
}

/* ---- its environment: a list that ends with NULL -------------------------------------------------- */

static void variables_free(char **env)
{
    for (char **at = env; at != NULL && *at != NULL; at++)
        free(*at);
    free(env);
}

/* Return the index of the variable with this name, or the end. */
static size_t variables_find(char *const *env, const char *name, size_t length)
{
    size_t n = 0;
    while (env[n] != NULL && (strncmp(env[n], name, length) != 0 || env[n][length] != '='))
        n++;
    return n;
}

static bool variables_put(char ***env, const char *variable)
{
    const size_t n = variables_find(*env, variable, strcspn(variable, "="));
    const bool is_new = (*env)[n] == NULL;
    char **larger = is_new ? reallocarray(*env, n + 2, sizeof(*larger)) : *env;
    char *copy = strdup(variable);
    if (larger != NULL)
        *env = larger;
    if (larger == NULL || copy == NULL) {
        free(copy);
        return false;
    }
    if (is_new)
        larger[n + 1] = NULL;
    else
        free(larger[n]);
    larger[n] = copy;
    return true;
}

static void variables_remove(char **env, const char *name)
{
    size_t n = variables_find(env, name, strlen(name));
    if (env[n] == NULL)
        return;
    free(env[n]);
    do
        env[n] = env[n + 1];
    while (env[n++] != NULL);
}

/* Put "NAME=FIRST", or with both parts "NAME=FIRST:SECOND". */
static bool variables_join(char ***env, const char *name, const char *first, char separator,
                           const char *second)
{
    char *text;
    const int length = second == NULL ? asprintf(&text, "%s=%s", name, first)
                                      : asprintf(&text, "%s=%s%c%s", name, first, separator, second);
    const bool good = length >= 0 && variables_put(env, text);
    if (length >= 0)
        free(text);
    return good;
}

static bool is_envar(const pmix_info_t *info, const char *key)
{
    return PMIX_CHECK_KEY(info, key) && info->value.type == PMIX_ENVAR &&
           info->value.data.envar.envar != NULL && info->value.data.envar.value != NULL;
}

static bool is_unset(const pmix_info_t *info)
{
    return PMIX_CHECK_KEY(info, PMIX_UNSET_ENVAR) && info->value.type == PMIX_STRING &&
           info->value.data.string != NULL;
}

bool variables_is_directive(const pmix_info_t *info)
{
    return is_unset(info) || is_envar(info, PMIX_SET_ENVAR) || is_envar(info, PMIX_ADD_ENVAR) ||
           is_envar(info, PMIX_PREPEND_ENVAR) || is_envar(info, PMIX_APPEND_ENVAR);
}

static bool variables_follow(char ***env, const pmix_info_t *info)
{
    if (is_unset(info)) {
        variables_remove(*env, info->value.data.string);
        return true;
    }
    const pmix_envar_t *to = &info->value.data.envar;
    const size_t length = strlen(to->envar);
    const char *old = (*env)[variables_find(*env, to->envar, length)];
    if (old != NULL)
        old += length + 1;
    if (old != NULL && PMIX_CHECK_KEY(info, PMIX_ADD_ENVAR))
        return true;
    if (old != NULL && PMIX_CHECK_KEY(info, PMIX_APPEND_ENVAR))
        return variables_join(env, to->envar, old, to->separator, to->value);
    return variables_join(env, to->envar, to->value, to->separator,
                          PMIX_CHECK_KEY(info, PMIX_PREPEND_ENVAR) ? old : NULL);
}

static bool variables_direct(char ***env, const pmix_info_t *info, size_t n)
{
    bool good = true;
    for (size_t i = 0; good && i < n; i++)
        good = !variables_is_directive(&info[i]) || variables_follow(env, &info[i]);
    return good;
}

/* ---- its start ---------------------------------------------------------------------------------- */

/* Both ends of its streams; the first of each pair is the process's end. -1: none. */
struct ends {
    int in[2], out[2], err[2];
};

static void ends_close(const struct ends *ends, bool ours)
{
    const int *const all[] = {ends->in, ends->out, ends->err};
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < (ours ? 2 : 1); k++)
            if (all[i][k] > STDERR_FILENO)
                close(all[i][k]);
}

static bool ends_open(bool inherits, bool input, struct ends *ends)
{
    int pipe_fds[2];
    *ends = (struct ends){{-1, -1}, {-1, -1}, {-1, -1}};
    if (pipe2(pipe_fds, O_CLOEXEC) != 0)
        return false;
    ends->out[0] = pipe_fds[1], ends->out[1] = pipe_fds[0];
    if (pipe2(pipe_fds, O_CLOEXEC) != 0)
        return false;
    ends->err[0] = pipe_fds[1], ends->err[1] = pipe_fds[0];
    if (input && !inherits) {
        if (pipe2(ends->in, O_CLOEXEC) != 0)
            return false;
    } else {
        ends->in[0] = inherits ? STDIN_FILENO : open("/dev/null", O_RDONLY | O_CLOEXEC);
    }
    for (size_t i = 0; i < 3; i++) {
        const int fd = (const int[]){ends->in[1], ends->out[1], ends->err[1]}[i];
        if (fd >= 0 && fcntl(fd, F_SETFL, O_NONBLOCK) != 0)
            return false;
    }
    return ends->in[0] >= 0;
}

/* Build the environment: ours, overridden by the application and the directives, and the library's variables.
 * variables_free() it. */
static pmix_status_t process_environment(const struct host_proc *proc, const struct job_order *order,
                                         char ***env)
{
    const pmix_app_t *app = &order->apps[proc->app];
    char **const all[] = {environ, app->env};
    pmix_proc_t name;
    bool good = (*env = calloc(1, sizeof(**env))) != NULL;
    for (size_t i = 0; i < 2; i++)
        for (char **at = all[i]; good && at != NULL && *at != NULL; at++)
            good = strchr(*at, '=') == NULL || variables_put(env, *at);
    good = good && variables_direct(env, order->info, order->n_info) &&
           variables_direct(env, app->info, app->ninfo);
    PMIX_LOAD_PROCID(&name, proc->job->nspace, proc->rank);
    return good ? PMIx_server_setup_fork(&name, env) : PMIX_ERR_NOMEM;
}

/* Return the standard's error for a program that does not start. */
static pmix_status_t process_error(int error, const pmix_app_t *app)
{
    log_warning("%s cannot be started: %s", app->cmd, strerror(error));
    if (app->cwd != NULL && access(app->cwd, X_OK) != 0)
        return PMIX_ERR_JOB_WDIR_NOT_FOUND;
    switch (error) {
    case ENOENT:
    case ENOTDIR:
        return PMIX_ERR_JOB_EXE_NOT_FOUND;
    case EACCES:
    case ENOEXEC:
        return PMIX_ERR_JOB_APP_NOT_EXECUTABLE;
    default:
        return PMIX_ERR_JOB_FAILED_TO_LAUNCH;
    }
}

/* Return 0 if it runs, else errno. */
static int process_spawn(struct host_proc *proc, const pmix_app_t *app, char **env, const struct ends *ends)
{
    char *const alone[] = {app->cmd, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t signals;
    short flags = POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_adddup2(&actions, ends->in[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends->out[0], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends->err[0], STDERR_FILENO);
    posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
    if (app->cwd != NULL)
        posix_spawn_file_actions_addchdir_np(&actions, app->cwd);
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(&attributes, &signals);
    signals_ignored(&signals);
    posix_spawnattr_setsigdefault(&attributes, &signals);
    /* A process that reads our terminal must stay in the foreground group. */
    proc->group = ends->in[0] != STDIN_FILENO;
    if (proc->group)
        flags |= POSIX_SPAWN_SETPGROUP;
    posix_spawnattr_setflags(&attributes, flags);
    int rc =
        posix_spawnp(&proc->pid, app->cmd, &actions, &attributes, app->argv == NULL ? alone : app->argv, env);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    if (rc != 0)
        proc->pid = 0;
    return rc;
}

/* Watch the started process and its output. */
static pmix_status_t process_watch(struct event_base *base, struct host_proc *proc, const struct ends *ends)
{
    const int fd = (int)syscall(SYS_pidfd_open, proc->pid, 0);
    bool good = fd >= 0 && (proc->ended = watch_new(base, fd, WATCH_READ, process_on_end, proc)) != NULL;
    if (!good && fd >= 0 && proc->ended == NULL)
        close(fd);
    good = output_open(base, &proc->out[0], proc, PMIX_FWD_STDOUT_CHANNEL, ends->out[1]) && good;
    good = output_open(base, &proc->out[1], proc, PMIX_FWD_STDERR_CHANNEL, ends->err[1]) && good;
    if (ends->in[1] >= 0) {
        proc->input = evbuffer_new();
        proc->writable = watch_new(base, ends->in[1], WATCH_WRITE, input_on_writable, proc);
        if (proc->writable != NULL)
            watch_pause(proc->writable);
        good = good && proc->input != NULL && proc->writable != NULL;
    }
    process_descriptors_of_child(proc->pid);
    proc->state = PMIX_PROC_STATE_RUNNING;
    return good ? PMIX_SUCCESS : PMIX_ERR_JOB_SYS_OP_FAILED;
}

pmix_status_t process_start(struct event_base *base, struct host_proc *proc, const struct job_order *order)
{
    const pmix_app_t *app = &order->apps[proc->app];
    const bool input = order->input_to == PMIX_RANK_WILDCARD || order->input_to == proc->rank;
    char **env = NULL;
    struct ends ends;
    if (!ends_open(order->inherits && proc->rank == 0, input, &ends)) {
        log_warning("%s cannot be started: %s", app->cmd, strerror(errno));
        ends_close(&ends, true);
        return PMIX_ERR_JOB_SYS_OP_FAILED;
    }
    pmix_status_t rc = process_environment(proc, order, &env);
    if (rc == PMIX_SUCCESS) {
        const int error = process_spawn(proc, app, env, &ends);
        rc = error == 0 ? PMIX_SUCCESS : process_error(error, app);
    }
    variables_free(env);
    ends_close(&ends, rc != PMIX_SUCCESS);
    return rc == PMIX_SUCCESS ? process_watch(base, proc, &ends) : rc;
}
