/* replay.c - runs of SimGrid: its programs, a private folder for their files, and the times that they report.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fabricctl/simulate/simulate.h"

extern char **environ;

/* ---- SimGrid's programs ---- */

/* Return the path of smpirun, from malloc(). NULL: it is not installed. */
static char *smpirun_path(void)
{
    const char *given = getenv("FABRICD_SMPIRUN"), *path = getenv("PATH");
    if (given != NULL && given[0] != '\0')
        return strdup(given);
    for (const char *at = path != NULL ? path : "/usr/bin"; *at != '\0'; at += strspn(at, ":")) {
        char *name;
        if (asprintf(&name, "%.*s/smpirun", (int)strcspn(at, ":"), at) < 0)
            return NULL;
        if (access(name, X_OK) == 0)
            return name;
        free(name);
        at += strcspn(at, ":");
    }
    return NULL;
}

/* Return the absolute path in double quotes that ends with /NAME, from malloc(). NULL: the text has none. */
static char *quoted_path(const char *text, const char *name)
{
    for (const char *at = strstr(text, name); at != NULL; at = strstr(at + 1, name)) {
        const char *end = at + strlen(name), *begin = at;
        while (begin > text && begin[-1] != '"' && begin[-1] != '\n')
            begin--;
        if (*end == '"' && begin > text && begin[-1] == '"' && begin[0] == '/' && begin < at && at[-1] == '/')
            return strndup(begin, (size_t)(end - begin));
    }
    return NULL;
}

enum ctl_exit sim_programs_find(struct sim_programs *programs)
{
    char *smpirun = smpirun_path(), *text = NULL;
    enum ctl_exit status = CTL_DONE;
    size_t size;
    *programs = (struct sim_programs){.main = NULL};
    if (smpirun == NULL)
        return ctl_error(
            "no SimGrid: no smpirun in PATH: install SimGrid 3.32 or later (Debian: libsimgrid-dev)");
    /* smpirun is a script, which has the paths of the two programs; without it no shell is needed */
    text = ctl_target_read(smpirun, &size);
    if (text != NULL) {
        programs->main = quoted_path(text, "smpimain");
        programs->replay = quoted_path(text, "smpireplaymain");
    }
    if (text == NULL)
        status = ctl_error("no SimGrid: cannot read %s", smpirun);
    else if (programs->main == NULL || programs->replay == NULL || access(programs->main, X_OK) != 0 ||
             access(programs->replay, R_OK) != 0)
        status = ctl_error("no SimGrid: %s names no smpimain and smpireplaymain that can be run", smpirun);
    free(text);
    free(smpirun);
    return status;
}

void sim_programs_free(struct sim_programs *programs)
{
    free(programs->main);
    free(programs->replay);
    *programs = (struct sim_programs){.main = NULL};
}

/* ---- the folder ---- */

enum ctl_exit sim_folder_make(char path[static SIM_FOLDER])
{
    const char *base = getenv("TMPDIR");
    const int n = snprintf(path, SIM_FOLDER, "%s/fabricctl-simulate-XXXXXX",
                           base != NULL && base[0] == '/' ? base : "/tmp");
    if (n < SIM_FOLDER - 20 && mkdtemp(path) != NULL)
        return CTL_DONE;
    path[0] = '\0';
    return ctl_error("cannot make a folder in %.200s: %s: set TMPDIR",
                     base != NULL && base[0] == '/' ? base : "/tmp",
                     n < SIM_FOLDER - 20 ? strerror(errno) : "its name is too long");
}

FILE *sim_folder_file(const char *folder, const char *name)
{
    char path[SIM_FOLDER];
    FILE *file;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "we");
    if (file == NULL)
        ctl_error("cannot write %s: %s", path, strerror(errno));
    return file;
}

bool sim_folder_close(FILE *file, const char *folder, const char *name)
{
    const bool failed = ferror(file) != 0;
    if (fclose(file) == 0 && !failed)
        return true;
    ctl_error("cannot write %s/%s: %s: set TMPDIR to a folder with more room", folder, name, strerror(errno));
    return false;
}

void sim_folder_remove(const char *folder)
{
    DIR *open = folder[0] != '\0' ? opendir(folder) : NULL;
    /* all files, since a SimGrid that aborts may leave a core */
    for (const struct dirent *entry; open != NULL && (entry = readdir(open)) != NULL;)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            (void)unlinkat(dirfd(open), entry->d_name, 0);
    if (open != NULL)
        closedir(open);
    if (folder[0] != '\0' && rmdir(folder) != 0)
        ctl_error("cannot remove %s: %s", folder, strerror(errno));
}

/* ---- a run ---- */

/* The output of a run, line by line. */
struct replayed {
    uint32_t ranks;
    double *ends;
    char line[400]; /* the beginning of a line that has not ended */
    size_t used;
    char said[300]; /* the first line that is not of a rank: an error */
};

/* Take "TIME ACTOR TEXT". Actors are ranks, or SimGrid itself. */
static void replayed_line(struct replayed *out)
{
    char *text = out->line, *end;
    const double time = strtod(text, &end);
    unsigned long rank;
    out->line[out->used < sizeof out->line ? out->used : sizeof out->line - 1] = '\0';
    if (end == text || *end != ' ') {
        /* a line of a library */
    } else if (end[1] >= '0' && end[1] <= '9') {
        rank = strtoul(end + 1, &text, 10);
        if (rank < out->ranks && time > out->ends[rank])
            out->ends[rank] = time;
        return;
    } else {
        text = strchr(end + 1, ' ') != NULL ? strchr(end + 1, ' ') + 1 : text;
    }
    if (out->said[0] == '\0')
        snprintf(out->said, sizeof out->said, "%.*s", (int)sizeof out->said - 1, text);
}

static void replayed_bytes(struct replayed *out, const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] == '\n') {
            replayed_line(out);
            out->used = 0;
        } else if (out->used < sizeof out->line - 1) {
            out->line[out->used++] = bytes[i];
        }
    }
}

/* Start the run in the folder. Return 0 or an error number. */
static int replay_start(const struct sim_programs *programs, const char *folder, uint32_t ranks, int out,
                        pid_t *pid)
{
    char np[40];
    snprintf(np, sizeof np, "--cfg=smpi/np:%u", ranks);
    char *argv[] = {programs->main, programs->replay, np, "--cfg=smpi/hostfile:hosts",
                    "--cfg=smpi/replay:traces", "--cfg=smpi/privatization:no",
                    /* the line rate is the rate, and the latency is the latency */
                    "--cfg=network/model:CM02", "--cfg=network/bandwidth-factor:1",
                    "--cfg=network/latency-factor:1", "--cfg=network/weight-S:0", "--cfg=network/TCP-gamma:0",
                    "--cfg=network/crosstraffic:no",
                    /* its other ways to update flows put more on a link than its rate (SimGrid 3.32) */
                    "--cfg=network/optim:Full", "--cfg=surf/precision:1e-12", "--log=xbt_cfg.thresh:error",
                    "--log=smpi_config.thresh:error", "--log=smpi_replay.thresh:verbose",
                    "--log=root.fmt:%.12r%e%a%e%m%n", "platform.xml", NULL};
    return ctl_spawn(pid, argv, environ, out, out, folder);
}

/* Read all output. Return false after an interrupt. */
static bool replay_read(int fd, struct replayed *out)
{
    char bytes[16384];
    for (;;) {
        struct pollfd ready = {fd, POLLIN, 0};
        ssize_t n;
        if (ctl_interrupted())
            return false;
        if (poll(&ready, 1, 200) <= 0) /* an interrupt before poll() is seen after this time */
            continue;
        n = read(fd, bytes, sizeof bytes);
        if (n == 0 || (n < 0 && errno != EINTR))
            return true;
        if (n > 0)
            replayed_bytes(out, bytes, (size_t)n);
    }
}

enum ctl_exit sim_replay(const struct sim_programs *programs, const char *folder, uint32_t ranks,
                         double *ends)
{
    struct replayed out = {.ranks = ranks, .ends = ends};
    int pipes[2], status = 0, rc;
    pid_t pid = -1;
    bool whole;
    for (uint32_t rank = 0; rank < ranks; rank++)
        ends[rank] = 0;
    if (pipe2(pipes, O_CLOEXEC) != 0)
        return ctl_error("cannot make a pipe: %s", strerror(errno));
    rc = replay_start(programs, folder, ranks, pipes[1], &pid);
    close(pipes[1]);
    whole = rc == 0 && replay_read(pipes[0], &out);
    close(pipes[0]);
    if (rc != 0)
        return ctl_error("cannot run %s: %s", programs->main, strerror(rc));
    if (!whole)
        kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (!whole || ctl_interrupted())
        return ctl_error("interrupted");
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return CTL_DONE;
    ctl_clean(out.said);
    return ctl_error("SimGrid failed: %s: %s", programs->main,
                     out.said[0] != '\0' ? out.said : "it reported no reason");
}
