/* slurm_ask.c - calls of scontrol, and the nodes and version that it reports. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fabricctl/slurm/slurm.h"
#include "topo/base/array.h"

extern char **environ;

/* ---- one call ---- */

/* A running scontrol: its process and the pipes of its standard output and standard error. */
struct call {
    pid_t pid;
    int out, err;
    char said[4096]; /* begin of standard error */
    size_t n_said;
};

static const char *call_program(void)
{
    const char *program = getenv("FABRICD_SCONTROL");
    return program != NULL && program[0] != '\0' ? program : "scontrol";
}

/* Variables that change the form of scontrol's output, or its length. */
static bool changes_output(const char *variable)
{
    static const char *const names[] = {
        "SLURM_TOPO_LEN=", "SLURM_BITSTR_LEN=", "SLURM_TIME_FORMAT=", "SCONTROL_ALL=",
        "SLURM_CLUSTERS=", "SLURM_JSON=",       "SLURM_YAML="};
    for (size_t i = 0; i < CTL_COUNT(names); i++)
        if (strncmp(variable, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

static char **call_environment(void)
{
    size_t n = 0, kept = 0;
    char **variables;
    while (environ[n] != NULL)
        n++;
    variables = malloc((n + 1) * sizeof *variables);
    for (size_t i = 0; variables != NULL && i < n; i++)
        if (!changes_output(environ[i]))
            variables[kept++] = environ[i];
    if (variables != NULL)
        variables[kept] = NULL;
    return variables;
}

/* Start scontrol. Return 0 or an error number. */
static int call_start(struct call *call, char *const *argv)
{
    char **variables = call_environment();
    int out[2] = {-1, -1}, err[2] = {-1, -1}, rc = variables != NULL ? 0 : ENOMEM;
    if (rc == 0 && (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0))
        rc = errno;
    if (rc == 0)
        rc = ctl_spawn(&call->pid, argv, variables, out[1], err[1], NULL);
    free(variables);
    for (int side = 0; side < 2; side++)
        if (side == 1 || rc != 0) {
            if (out[side] >= 0)
                close(out[side]);
            if (err[side] >= 0)
                close(err[side]);
        }
    call->out = rc == 0 ? out[0] : -1;
    call->err = rc == 0 ? err[0] : -1;
    return rc;
}

/* Read what is there; close the pipe at its end. Return false if the output is too large or memory lacks. */
static bool call_read(struct call *call, struct slurm_answer *answer, size_t *room)
{
    ssize_t n;
    if (answer->size + 65536 > *room) {
        char *larger = *room < CTL_ANSWER_MAX ? realloc(answer->text, 2 * *room + 131072) : NULL;
        if (larger == NULL)
            return false;
        answer->text = larger;
        *room = 2 * *room + 131072;
    }
    n = read(call->out, answer->text + answer->size, 65535);
    if (n > 0)
        answer->size += (size_t)n;
    else if (n == 0 || errno != EINTR) {
        close(call->out);
        call->out = -1;
    }
    return true;
}

static void call_read_said(struct call *call)
{
    char rest[512];
    const size_t room = sizeof call->said - 1 - call->n_said;
    const ssize_t n =
        room > 0 ? read(call->err, call->said + call->n_said, room) : read(call->err, rest, sizeof rest);
    if (n > 0 && room > 0)
        call->n_said += (size_t)n;
    if (n == 0 || (n < 0 && errno != EINTR)) {
        close(call->err);
        call->err = -1;
    }
}

/* Read both pipes to their ends. Return the reason of a failure; NULL: all was read. */
static const char *call_wait(struct call *call, unsigned seconds, struct slurm_answer *answer)
{
    const int64_t deadline = ctl_wait_now() + seconds * INT64_C(1000);
    size_t room = 0;
    while (call->out >= 0 || call->err >= 0) {
        struct pollfd fds[2] = {{call->out, POLLIN, 0}, {call->err, POLLIN, 0}};
        const int64_t left = deadline - ctl_wait_now();
        const int n = left > 0 ? poll(fds, 2, (int)left) : 0;
        if (n == 0)
            return "no answer in time";
        if (n < 0)
            continue;
        if (fds[0].revents != 0 && !call_read(call, answer, &room))
            return "the answer is too large";
        if (fds[1].revents != 0)
            call_read_said(call);
    }
    return NULL;
}

/* End the call and return its wait status. */
static int call_end(struct call *call, bool failed)
{
    int status = 0;
    if (failed)
        kill(call->pid, SIGKILL);
    if (call->out >= 0)
        close(call->out);
    if (call->err >= 0)
        close(call->err);
    while (waitpid(call->pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

/*
 * Return the line of standard error that explains a failure: the first one that is no line of a log, else the
 * last one. Warnings about slurm.conf are lines of a log, and come first.
 */
static char *call_reason(char *said)
{
    static const char log[] = "scontrol: ";
    char *rest = NULL, *reason = said + strlen(said);
    bool logged = true;
    for (char *line = strtok_r(said, "\n", &rest); logged && line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        logged = strncmp(line, log, strlen(log)) == 0;
        reason = line;
    }
    ctl_clean(reason);
    return reason;
}

/* Return whether the call asks for an answer. Other calls print nothing if they succeed. */
static bool call_shows(const char *const *words)
{
    bool shows = false;
    for (; *words != NULL; words++)
        shows |= strcmp(*words, "show") == 0 || strcmp(*words, "--version") == 0;
    return shows;
}

/* Write "scontrol show topology: WHY: ADVICE". */
static enum ctl_exit call_failed(struct slurm_answer *answer, const char *const *words, const char *why,
                                 const char *advice)
{
    size_t used = 0;
    char call[200] = "";
    for (; *words != NULL && used < sizeof call; words++)
        used += (size_t)snprintf(call + used, sizeof call - used, " %s", *words);
    snprintf(answer->why, sizeof answer->why, "scontrol%s: %s%s%s", call, why, *advice != '\0' ? ": " : "",
             advice);
    free(answer->text);
    answer->text = NULL;
    answer->size = 0;
    return CTL_FAILED;
}

enum ctl_exit slurm_ask(const char *const *words, unsigned seconds, struct slurm_answer *answer)
{
    struct call call = {.pid = -1};
    char *argv[SLURM_WORDS + 2] = {(char *)call_program()};
    const char *why, *reason;
    char status_text[60];
    int rc, status;
    *answer = (struct slurm_answer){.text = NULL};
    for (size_t i = 0; i < SLURM_WORDS && words[i] != NULL; i++)
        argv[i + 1] = (char *)words[i];
    rc = call_start(&call, argv);
    if (rc != 0)
        return call_failed(answer, words, strerror(rc),
                           rc == ENOENT ? "install Slurm's commands, or set FABRICD_SCONTROL" : "");
    why = call_wait(&call, seconds, answer);
    status = call_end(&call, why != NULL);
    if (why != NULL)
        return call_failed(answer, words, why, "see whether slurmctld runs: scontrol ping");
    if (answer->text == NULL && (answer->text = malloc(1)) == NULL)
        return call_failed(answer, words, strerror(ENOMEM), "");
    answer->text[answer->size] = '\0';
    reason = call_reason(call.said);
    /* "scontrol show" reports some failures on standard error only */
    if (status == 0 && (answer->size > 0 || *reason == '\0' || !call_shows(words)))
        return CTL_DONE;
    snprintf(status_text, sizeof status_text, WIFSIGNALED(status) ? "ended by signal %d" : "exit status %d",
             WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    return call_failed(answer, words, *reason != '\0' ? reason : status_text, "");
}

void slurm_answer_free(struct slurm_answer *answer)
{
    free(answer->text);
    answer->text = NULL;
    answer->size = 0;
}

/* ---- version and nodes ---- */

/* Read the version after this text of the answer; 0: there is none. */
static unsigned version_after(const char *text, const char *before)
{
    const char *at = strstr(text, before);
    unsigned year = 0, month = 0;
    if (at == NULL)
        return 0;
    at += strlen(before);
    at += strspn(at, " =");
    return sscanf(at, "%2u.%2u", &year, &month) == 2 && month <= 12 ? year * 100 + month : 0;
}

unsigned slurm_version(struct slurm_answer *answer)
{
    static const char *const of_scontrol[] = {"--version", NULL};
    static const char *const of_slurmctld[] = {"show", "config", NULL};
    unsigned own = 0, other = 0;
    if (slurm_ask(of_scontrol, CTL_ANSWER_SECONDS, answer) != CTL_DONE)
        return 0;
    own = version_after(answer->text, " "); /* "slurm 24.11.5", or "slurm-wlm 24.11.5" */
    if (own == 0) {
        call_failed(answer, of_scontrol, "no version in its answer", "check that this scontrol is Slurm's");
        return 0;
    }
    slurm_answer_free(answer);
    if (slurm_ask(of_slurmctld, CTL_ANSWER_SECONDS, answer) != CTL_DONE)
        return 0;
    other = version_after(answer->text, "SLURM_VERSION");
    if (other == 0)
        call_failed(answer, of_slurmctld, "no SLURM_VERSION in its answer", "check slurmctld");
    else
        slurm_answer_free(answer);
    return own < other ? own : other;
}

/* Return whether a list with commas has this word. */
static bool has_word(const char *list, size_t size, const char *word)
{
    const size_t len = strlen(word);
    for (size_t at = 0; at < size;) {
        size_t n = 0;
        while (at + n < size && list[at + n] != ',')
            n++;
        if (n == len && strncmp(list + at, word, len) == 0)
            return true;
        at += n + 1;
    }
    return false;
}

/* Return the value of " KEY=" in a line, and its length. NULL: the line has none. */
static const char *line_value(const char *line, size_t size, const char *key, size_t *len)
{
    const size_t n = strlen(key);
    for (size_t at = 0; at + n < size; at++)
        if ((at == 0 || line[at - 1] == ' ') && strncmp(line + at, key, n) == 0) {
            const char *value = line + at + n;
            *len = strcspn(value, " \n");
            return value;
        }
    return NULL;
}

enum ctl_exit slurm_nodes(const char *feature, struct fab_hostlist *nodes, struct slurm_answer *answer)
{
    /* --all: also the nodes of hidden partitions, for users who are no operators of Slurm */
    static const char *const words[] = {"--oneliner", "--all", "show", "nodes", NULL};
    enum ctl_exit status = slurm_ask(words, CTL_ANSWER_SECONDS, answer);
    *nodes = (struct fab_hostlist){0};
    /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): the text ends with a 0 */
    for (const char *line = status == CTL_DONE ? answer->text : ""; status == CTL_DONE && *line != '\0';) {
        const size_t size = strcspn(line, "\n");
        size_t len = 0, n = 0;
        const char *name = line_value(line, size, "NodeName=", &len);
        const char *features = line_value(line, size, "AvailableFeatures=", &n);
        if (line[size] != '\n')
            status =
                call_failed(answer, words, "the answer was cut", "see whether slurmctld runs: scontrol ping");
        else if (name == line + strlen("NodeName=") && len > 0 &&
                 (feature == NULL || (features != NULL && has_word(features, n, feature)))) {
            char *copy = strndup(name, len);
            if (copy == NULL || !FAB_ARRAY_ROOM(&nodes->names, &nodes->room, nodes->n + UINT64_C(1))) {
                free(copy);
                status = call_failed(answer, words, strerror(ENOMEM), "");
            } else
                nodes->names[nodes->n++] = copy;
        }
        line += size + 1;
    }
    if (status != CTL_DONE)
        fab_hostlist_free(nodes);
    slurm_answer_free(answer);
    return status;
}
