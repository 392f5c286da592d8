#include "fabricd/config/config_files.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fabricd/base/address.h"
#include "fabricd/base/file_io.h"
#include "topo/base/error.h"
#include "topo/model/names.h"

struct files {
    const struct config *config;
    struct config_mistakes *mistakes;
    const struct passwd *user; /* that the service runs as; NULL: as this process */
};

/* ---- may the daemon? -------------------------------------------------------------------------------- */

/* Asked by a process that is this user, so that groups, access lists and the folders above count. */
static int why_user_may_not(const struct passwd *user, const char *path, int mode)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        if (initgroups(user->pw_name, user->pw_gid) != 0 || setgid(user->pw_gid) != 0 ||
            setuid(user->pw_uid) != 0)
            _exit(errno);
        _exit(access(path, mode) == 0 ? 0 : errno);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return errno;
    return WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}

/* 0, or the errno that it would get. */
static int why_not(const struct files *f, const char *path, int mode)
{
    if (f->user != NULL)
        return why_user_may_not(f->user, path, mode);
    return faccessat(AT_FDCWD, path, mode, AT_EACCESS) == 0 ? 0 : errno;
}

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static void folder_of(const char *path, char folder[static 4096])
{
    const char *slash = strrchr(path, '/');
    snprintf(folder, 4096, "%.*s", slash == path ? 1 : (int)(slash - path), path);
}

/* ---- each of them ------------------------------------------------------------------------------------ */

static void check_store(const struct files *f)
{
    const char *store = f->config->store;
    const struct config_place at = config_at(f->config, &f->config->store);
    char folder[4096];
    folder_of(store, folder);
    if (!is_folder(folder)) {
        config_mistake(f->mistakes, PMIXFAB_ERR_NOTFOUND, at,
                       "store: there is no folder \"%.200s\": make it first", folder);
        return;
    }
    const char *path = folder;
    int why = why_not(f, folder, R_OK | W_OK | X_OK);
    if (why == 0 && access(store, F_OK) == 0)
        why = why_not(f, path = store, R_OK | W_OK);
    if (why == 0)
        return;
    const struct passwd *user = f->user != NULL ? f->user : getpwuid(geteuid());
    config_mistake(f->mistakes, PMIXFAB_ERR_PERM, at, "store: \"%.200s\" cannot be written by user %s: %s",
                   path, user == NULL ? "of this process" : user->pw_name, strerror(why));
}

/* One that cannot be started would be noticed at the first change only, which may be months away. */
static void check_program(const struct files *f, const char *what, const char *program,
                          struct config_place at)
{
    struct stat st;
    if (program[0] != '/')
        config_mistake(f->mistakes, PMIXFAB_ERR_SYNTAX, at, "%s: \"%.200s\": give the program's whole path",
                       what, program);
    else if (stat(program, &st) != 0 || !S_ISREG(st.st_mode) || why_not(f, program, X_OK) != 0)
        config_mistake(f->mistakes, PMIXFAB_ERR_NOTFOUND, at,
                       "%s: \"%.200s\": there is no such program, or fabricd may not run it", what, program);
}

static void check_hook(const struct files *f)
{
    const struct config_list *hook = &f->config->hook;
    if (hook->n > 0)
        check_program(f, "[changes] hook", hook->items[0], hook->at[0]);
}

/* Files that are kept right, and who is told of them. */
static void check_exports(const struct files *f)
{
    const struct config_list *files = &f->config->exports, *commands = &f->config->export_commands;
    char text[4096];
    for (unsigned i = 0; i < commands->n; i++) {
        const char *command = strchr(commands->items[i], '=') + 1;
        snprintf(text, sizeof(text), "%.*s", (int)(command - 1 - commands->items[i]), commands->items[i]);
        if (config_pair(files, text) == NULL)
            config_mistake(f->mistakes, PMIXFAB_ERR_NOTFOUND, commands->at[i],
                           "[exports.commands] %.200s: there is no such file in [exports.files]", text);
        snprintf(text, sizeof(text), "%.*s", (int)strcspn(command, " \t"), command);
        check_program(f, "[exports.commands]", text, commands->at[i]);
    }
}

/* A file that can never be written would be noticed only when it is missed. The run directory is made at the
 * start. */
static void check_metrics(const struct files *f)
{
    const char *file = f->config->metrics_file;
    const struct config_place at = config_at(f->config, &f->config->metrics_file);
    char folder[4096];
    if (file == NULL)
        return;
    if (file[0] != '/' || file[strlen(file) - 1] == '/') {
        config_mistake(f->mistakes, PMIXFAB_ERR_SYNTAX, at, "file is \"%.200s\": give the file's whole path",
                       file);
        return;
    }
    folder_of(file, folder);
    if (strcmp(folder, f->config->rundir) == 0)
        return;
    if (!is_folder(folder)) {
        config_mistake(f->mistakes, PMIXFAB_ERR_NOTFOUND, at,
                       "file: there is no folder \"%.200s\": make it first", folder);
        return;
    }
    /* A start goes on without, and says so as a finding: it may be put right while the daemon runs. */
    const int why = f->config->check_only ? why_not(f, folder, W_OK | X_OK) : 0;
    const struct passwd *user = f->user != NULL ? f->user : getpwuid(geteuid());
    const char *name = user == NULL ? "UID" : user->pw_name;
    if (why != 0)
        config_mistake(
            f->mistakes, PMIXFAB_ERR_PERM, at,
            "file: no file can be made in \"%.200s\" by user %s: %s; let that user write there, as by "
            "setfacl -m u:%s:rwx, or set [metrics] listen instead",
            folder, name, strerror(why), name);
}

static void check_metrics_listen(const struct files *f)
{
    char host[INET6_ADDRSTRLEN];
    uint16_t port;
    struct fab_err err = {""};
    const char *text = f->config->metrics_listen;
    if (text == NULL)
        return;
    int rc = address_parse(text, host, &port, &err);
    if (rc == PMIXFAB_OK && f->config->check_only)
        rc = address_try(text, false, &err); /* at the port there may be the daemon that runs */
    if (rc != PMIXFAB_OK)
        config_mistake(f->mistakes, rc, config_at(f->config, &f->config->metrics_listen),
                       "[metrics] listen: %s", err.text);
}

static void add_map_line(const char *line, void *cbdata)
{
    const struct files *f = cbdata;
    config_mistake_there(f->mistakes, config_at(f->config, &f->config->names_map), line);
}

static void check_names(struct files *f)
{
    const struct config *config = f->config;
    struct fab_names *names = NULL;
    struct fab_err err = {""};
    char *text = NULL;
    size_t len = 0;
    if (fab_names_new(config->names_pattern, &names, &err) != PMIXFAB_OK)
        config_mistake(f->mistakes, PMIXFAB_ERR_SYNTAX, config_at(config, &config->names_pattern), "%s",
                       err.text);
    else if (fab_names_switches(names, config->switch_pattern, &err) != PMIXFAB_OK)
        config_mistake(f->mistakes, PMIXFAB_ERR_SYNTAX, config_at(config, &config->switch_pattern), "%s",
                       err.text);
    fab_names_free(names);
    if (config->names_map == NULL || config->role != ROLE_SCHEDULER)
        return;
    const int why = why_not(f, config->names_map, R_OK);
    if (why != 0)
        config_mistake(f->mistakes, PMIXFAB_ERR_IO, config_at(config, &config->names_map),
                       "map: %.200s: cannot be read: %s", config->names_map, strerror(why));
    else if (file_text(config->names_map, &text, &len, &err) != PMIXFAB_OK)
        config_mistake(f->mistakes, PMIXFAB_ERR_IO, config_at(config, &config->names_map), "map: %s",
                       err.text);
    else
        fab_names_map_check(config->names_map, text, len, add_map_line, f);
    free(text);
}

void config_check_files(const struct config *config, struct config_mistakes *mistakes)
{
    struct files files = {.config = config, .mistakes = mistakes};
    if (config->check_only && geteuid() == 0 && config->role == ROLE_SCHEDULER)
        files.user = getpwnam(CONFIG_SERVICE_USER);
    if (config->check_only &&
        config->role == ROLE_SCHEDULER) /* a start says what it cannot open, and may be tried again */
        check_store(&files);
    check_hook(&files);
    check_exports(&files);
    check_metrics(&files);
    check_metrics_listen(&files);
    check_names(&files);
}
