/*
 * run.c - the command `run`: find a host for each rank within a time limit, write the host file, start the
 * command.
 *
 * A child computes the answer: if a file system or the computation is slow, it is killed, and the command
 * starts unchanged.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fabricctl/run/run.h"

#define ORDER_MS   100   /* limit of the answer */
#define MAPPING_MS 10000 /* with --grid or --matrix */
#define MOST_HOSTS 4096  /* of a mapping, which has a matrix of costs */

/* ---- in the child: the answer ---- */

struct answer {
    const struct ctl *ctl;
    const struct run_hosts *job;
    const char *file;
    const struct pmixfab *fab;
    uint32_t *hosts; /* in the order of the fabric */
    uint32_t *at;    /* per host of this order: its place in the list of the job */
    uint32_t *slots; /* per host of this order; together, the number of ranks */
    uint32_t n;      /* hosts with ranks */
    uint32_t *host_of;
    char why[RUN_WHY];
};

static int answer_nomem(struct answer *a)
{
    return run_why(a->why, CTL_FAILED, "out of memory");
}

/* Find a host by its name, or by its name without the domain. */
static bool find_host(const struct pmixfab *fab, const char *name, uint32_t *host)
{
    char plain[256];
    if (pmixfab_find_host(fab, name, host) == 0)
        return true;
    snprintf(plain, sizeof plain, "%.*s", (int)strcspn(name, "."), name);
    return pmixfab_find_host(fab, plain, host) == 0;
}

/* Find the hosts in a plane. Return the place of the first one that is not there, or the number of hosts. */
static uint32_t find_all(struct answer *a, const struct pmixfab *fab)
{
    uint32_t i = 0;
    while (i < a->job->n && find_host(fab, a->job->names[i], &a->hosts[i]))
        i++;
    return i;
}

/* Take the first plane that has all hosts. */
static int find_job_plane(struct answer *a, const struct ctl_view *view)
{
    const char *missing = NULL, *other = NULL;
    struct pmixfab_plane plane;
    uint32_t host, found = 0;
    for (size_t p = 0; p < view->n; p++) {
        if (pmixfab_plane(view->planes[p], &plane) != 0 ||
            (a->ctl->plane != NULL && strcmp(plane.name, a->ctl->plane) != 0))
            continue;
        found = find_all(a, view->planes[p]);
        if (found == a->job->n) {
            a->fab = view->planes[p];
            return CTL_DONE;
        }
        missing = missing != NULL ? missing : a->job->names[found];
    }
    if (missing == NULL)
        return run_why(a->why, CTL_USAGE, "no plane %.200s", a->ctl->plane);
    for (size_t p = 0; p < view->n && a->ctl->plane == NULL; p++)
        if (find_host(view->planes[p], missing, &host) && pmixfab_plane(view->planes[p], &plane) == 0)
            other = plane.name;
    return other != NULL
               ? run_why(a->why, CTL_USAGE, "no plane has all hosts of the job: %.200s is in plane %.200s",
                         missing, other)
               : run_why(a->why, CTL_USAGE, "no host %.200s: `fabricctl devices` lists the hosts", missing);
}

/* Order the hosts, and give each its ranks: as many as it has slots, until none is left. */
static int order_hosts(struct answer *a)
{
    const struct run_hosts *job = a->job;
    struct pmixfab_plane plane;
    uint32_t *of = NULL, left = job->ranks;
    int status = CTL_DONE;
    if (pmixfab_plane(a->fab, &plane) != 0 || (of = calloc(plane.n_hosts + (size_t)1, sizeof *of)) == NULL)
        return answer_nomem(a);
    for (uint32_t i = 0; i < job->n && status == CTL_DONE; i++) {
        if (of[a->hosts[i]] != 0)
            status = run_why(a->why, CTL_USAGE, "two names of one host: %.200s and %.200s",
                             job->names[of[a->hosts[i]] - 1], job->names[i]);
        of[a->hosts[i]] = i + 1;
    }
    if (status == CTL_DONE && pmixfab_order(a->fab, a->hosts, job->n) != 0)
        status = answer_nomem(a);
    for (uint32_t i = 0; i < job->n && status == CTL_DONE; i++) {
        const uint32_t at = of[a->hosts[i]] - 1, n = job->slots[at] < left ? job->slots[at] : left;
        if (n == 0)
            continue;
        for (uint32_t k = 0; k < n; k++)
            a->host_of[job->ranks - left + k] = a->n;
        a->hosts[a->n] = a->hosts[i];
        a->at[a->n] = at;
        a->slots[a->n++] = n;
        left -= n;
    }
    free(of);
    return status;
}

static int map_ranks(struct answer *a)
{
    const char *grid = a->ctl->grid, *matrix = a->ctl->traffic;
    struct run_traffic traffic = {0};
    uint16_t *costs = NULL;
    int rc = grid != NULL ? run_traffic_grid(grid, a->job->ranks, &traffic, a->why)
                          : run_traffic_read(matrix, a->job->ranks, &traffic, a->why);
    int status = rc == 0 ? CTL_DONE : rc == PMIXFAB_ERR_NOMEM ? CTL_FAILED : CTL_USAGE;
    if (status == CTL_DONE && a->n > MOST_HOSTS)
        status =
            run_why(a->why, CTL_FAILED, "a mapping has %d hosts at most: the job has %u", MOST_HOSTS, a->n);
    if (status == CTL_DONE) {
        costs = malloc((size_t)a->n * a->n * sizeof *costs);
        if (costs == NULL || pmixfab_host_costs(a->fab, a->hosts, a->n, costs) != 0 ||
            run_map(&traffic, costs, a->slots, a->n, run_scotch(), a->host_of) != 0)
            status = answer_nomem(a);
    }
    free(costs);
    run_traffic_free(&traffic);
    return status;
}

/* Write the host of each rank, one a line: to the file of -o, or to the launcher's. */
static int write_rank_hosts(struct answer *a)
{
    FILE *out = strcmp(a->file, "-") == 0 ? stdout : fopen(a->file, "we");
    for (uint32_t r = 0; out != NULL && r < a->job->ranks; r++)
        fprintf(out, "%s\n", a->job->names[a->at[a->host_of[r]]]);
    const bool failed = out == NULL || fflush(out) != 0 || ferror(out) != 0;
    if (failed || fclose(out) != 0)
        return run_why(a->why, CTL_FAILED, "cannot write %.300s: %s", a->file, strerror(errno));
    return CTL_DONE;
}

static int answer_view(struct answer *a, const struct ctl_view *view)
{
    int status;
    a->hosts = calloc(a->job->n + (size_t)1, sizeof *a->hosts);
    a->at = calloc(a->job->n + (size_t)1, sizeof *a->at);
    a->slots = calloc(a->job->n + (size_t)1, sizeof *a->slots);
    a->host_of = calloc(a->job->ranks + (size_t)1, sizeof *a->host_of);
    if (a->hosts == NULL || a->at == NULL || a->slots == NULL || a->host_of == NULL)
        return answer_nomem(a);
    status = find_job_plane(a, view);
    if (status == CTL_DONE)
        status = order_hosts(a);
    if (status == CTL_DONE && (a->ctl->grid != NULL || a->ctl->traffic != NULL))
        status = map_ranks(a);
    return status == CTL_DONE ? write_rank_hosts(a) : status;
}

/* Compute the answer and write its status and message to the pipe. The process ends: nothing is freed. */
static _Noreturn void answer_in_child(const struct ctl *ctl, const struct run_hosts *job, const char *file,
                                      int out)
{
    struct answer a = {.ctl = ctl, .job = job, .file = file};
    struct ctl_view view;
    char reason[CTL_REASON_SIZE];
    const int silent = open("/dev/null", O_WRONLY | O_CLOEXEC);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (silent >= 0)
        dup2(silent, STDERR_FILENO); /* a warning of another plane */
    int status = (int)ctl_view_any(ctl, &view, reason);
    if (status == CTL_DONE && view.n == 0)
        status = run_why(a.why, CTL_FAILED, "no snapshot: %.400s", reason);
    else if (status == CTL_DONE)
        status = answer_view(&a, &view);
    if (status != CTL_DONE && a.why[0] == '\0')
        run_why(a.why, status, "no snapshot: %.400s", ctl_source_location(ctl));
    ssize_t ignored = write(out, a.why, strlen(a.why));
    (void)ignored;
    _exit(status);
}

/* ---- in fabricctl: the limit, the file, the command ---- */

/* Fill in the signals that end fabricctl. */
static void stop_signals(sigset_t *stop)
{
    sigemptyset(stop);
    sigaddset(stop, SIGHUP);
    sigaddset(stop, SIGINT);
    sigaddset(stop, SIGQUIT);
    sigaddset(stop, SIGTERM);
}

/* Have a child write the file of hosts. CTL_FAILED: there is no answer, or not within the limit. */
static int ask_in_time(const struct ctl *ctl, const struct run_hosts *job, const char *file,
                       char why[static RUN_WHY])
{
    const int limit = ctl->grid != NULL || ctl->traffic != NULL ? MAPPING_MS : ORDER_MS;
    const struct timespec time = {limit / 1000, limit % 1000 * 1000000L};
    sigset_t child, before;
    int ends[2], ended = 0;
    pid_t pid = -1;
    stop_signals(&child);
    sigaddset(&child, SIGCHLD);
    signal(SIGCHLD, SIG_DFL); /* a parent may have ignored it */
    sigprocmask(SIG_BLOCK, &child, &before);
    if (pipe2(ends, O_CLOEXEC) == 0) {
        pid = fork();
        if (pid == 0)
            answer_in_child(ctl, job, file, ends[1]);
        close(ends[1]);
    }
    if (pid > 0) {
        const int number = sigtimedwait(&child, NULL, &time);
        if (number != SIGCHLD)
            kill(pid, SIGKILL);
        if (number > 0 && number != SIGCHLD)
            raise(number); /* for the caller, where they are blocked */
        waitpid(pid, &ended, 0);
        const ssize_t size = read(ends[0], why, RUN_WHY - 1);
        why[size > 0 ? size : 0] = '\0';
        if (!WIFEXITED(ended))
            run_why(why, 0, number < 0 ? "no answer within %d ms" : "the order of the hosts failed", limit);
    } else {
        run_why(why, 0, "no process: %s", strerror(errno));
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (pid >= 0)
        close(ends[0]);
    return pid > 0 && WIFEXITED(ended) ? WEXITSTATUS(ended) : CTL_FAILED;
}

/*
 * Start the command with a host file in a private folder. CTL_FAILED with `why`: it was not started, and has
 * to start unchanged.
 */
static int start_ordered(const struct ctl *ctl, const struct run_command *command,
                         const struct run_hosts *job, bool *started, char why[static RUN_WHY])
{
    const char *tmp = getenv("TMPDIR");
    sigset_t stop, before, pending;
    char folder[PATH_MAX - 8], file[PATH_MAX], *option = NULL, **words = NULL;
    stop_signals(&stop);
    sigprocmask(SIG_BLOCK, &stop, &before); /* while there is a folder without a command */
    snprintf(folder, sizeof folder, "%s/fabricctl-run.XXXXXX", tmp != NULL && tmp[0] == '/' ? tmp : "/tmp");
    if (mkdtemp(folder) == NULL) {
        run_why(why, 0, "no temporary folder: %.300s: %s", folder, strerror(errno));
        sigprocmask(SIG_SETMASK, &before, NULL);
        return CTL_FAILED;
    }
    snprintf(file, sizeof file, "%s/hosts", folder);
    int status = ask_in_time(ctl, job, file, why);
    sigpending(&pending);
    sigandset(&pending, &pending, &stop);
    if (status == CTL_DONE && sigisemptyset(&pending)) {
        sigprocmask(SIG_SETMASK, &before, NULL);
        words = run_command_words(command, file, job->ranks, &option);
        *started = words != NULL;
        status = words != NULL ? (int)run_and_wait(words) : (int)ctl_nomem();
    }
    unlink(file);
    rmdir(folder);
    sigprocmask(SIG_SETMASK, &before, NULL);
    free(words);
    free(option);
    return status;
}

enum ctl_exit ctl_run_job(const struct ctl *ctl)
{
    struct run_command command;
    struct run_hosts job = {0};
    char why[RUN_WHY] = "out of memory";
    int status = CTL_FAILED;
    bool started = false;
    if ((ctl->grid != NULL) + (ctl->traffic != NULL) + ctl->order > 1)
        return ctl_usage("one or the other: --order, --grid and --matrix");
    if (ctl->grid != NULL && !run_is_grid(ctl->grid))
        return ctl_usage("not a grid: --grid %s: give up to %d numbers, as 8x8x4", ctl->grid, RUN_DIMS);
    if (ctl->uri != NULL)
        return ctl_usage("not an option of run: --uri: run reads the run directory of this host");
    if (!run_command_read(ctl->args, ctl->n_args, &command, why) || !run_hosts_find(&command, &job, why))
        status = CTL_FAILED;
    else if (ctl->output != NULL)
        status = ask_in_time(ctl, &job, ctl->output, why);
    else
        status = start_ordered(ctl, &command, &job, &started, why);
    run_hosts_free(&job);
    run_command_free(&command);
    if (started || status == CTL_DONE)
        return (enum ctl_exit)status;
    if (status == CTL_USAGE)
        return ctl_usage("%s; the command is not started", why);
    if (ctl->output != NULL)
        return ctl_error("no order: %s", why);
    if (!ctl->quiet)
        ctl_error("the command starts unchanged: %s", why);
    return run_exec(ctl->args);
}
