/* config_check.c - check that settings fit together and that the objects they name exist; fill in derived
 * values. */
#include "fabricd/config/config.h"

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
#include "probes/registry.h"
#include "topo/base/error.h"
#include "topo/base/pattern.h"
#include "topo/model/names.h"
#include "topo/model/report.h"

#define CONFIG_SERVICE_USER "fabricd" /* the user of the systemd unit */

struct checking {
    struct config *config;
    struct config_mistakes *mistakes;
    const struct passwd *user; /* the user of the service; NULL: this process's user */
};

/* Add a mistake of this setting. */
#define MISTAKE(c, setting, ...)                                                                             \
    config_mistake((c)->mistakes, config_at((c)->config, &(c)->config->setting), __VA_ARGS__)

/* ---- permissions of the daemon ---- */

/* Checked in a process of that user, so that groups, access lists and the folders above are considered. */
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

/* Return 0, or the errno of an access by the service's user. */
static int why_not(const struct checking *c, const char *path, int mode)
{
    if (c->user != NULL)
        return why_user_may_not(c->user, path, mode);
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

/* ---- files and folders ---- */

static void check_store(const struct checking *c)
{
    const char *store = c->config->store;
    char folder[4096];
    folder_of(store, folder);
    if (!is_folder(folder)) {
        MISTAKE(c, store, "store: there is no folder \"%.200s\": make it first", folder);
        return;
    }
    const char *path = folder;
    int why = why_not(c, folder, R_OK | W_OK | X_OK);
    if (why == 0 && access(store, F_OK) == 0)
        why = why_not(c, path = store, R_OK | W_OK);
    const struct passwd *user = c->user != NULL ? c->user : getpwuid(geteuid());
    if (why != 0)
        MISTAKE(c, store, "store: \"%.200s\" cannot be written by user %s: %s", path,
                user == NULL ? "of this process" : user->pw_name, strerror(why));
}

/* Otherwise a program that cannot be started is noticed only at the first change, perhaps months later. */
static void check_program(const struct checking *c, const char *what, const char *program,
                          struct config_place at)
{
    struct stat st;
    if (program[0] != '/')
        config_mistake(c->mistakes, at, "%s: \"%.200s\": give the program's whole path", what, program);
    else if (stat(program, &st) != 0 || !S_ISREG(st.st_mode) || why_not(c, program, X_OK) != 0)
        config_mistake(c->mistakes, at, "%s: \"%.200s\": there is no such program, or fabricd may not run it",
                       what, program);
}

/* Check that each command has a file and a program that can be started, and the file of levels. */
static void check_exports(const struct checking *c)
{
    const struct config_list *files = &c->config->exports, *commands = &c->config->export_commands;
    char text[4096];
    for (unsigned i = 0; i < commands->n; i++) {
        const char *command = strchr(commands->items[i], '=') + 1;
        snprintf(text, sizeof(text), "%.*s", (int)(command - 1 - commands->items[i]), commands->items[i]);
        if (config_pair(files, text) == NULL)
            config_mistake(c->mistakes, commands->at[i],
                           "[exports.commands] %.200s: there is no such file in [exports.files]", text);
        snprintf(text, sizeof(text), "%.*s", (int)strcspn(command, " \t"), command);
        check_program(c, "[exports.commands]", text, commands->at[i]);
    }
    const char *above = c->config->export_above;
    const int why = above != NULL && c->config->role == ROLE_SCHEDULER ? why_not(c, above, R_OK) : 0;
    if (why != 0)
        MISTAKE(c, export_above, "above: %.200s: cannot be read: %s", above, strerror(why));
}

/* Otherwise a file that can never be written is noticed only when it is needed. The run directory is
 * made at the start. */
static void check_metrics(const struct checking *c)
{
    const char *file = c->config->metrics_file;
    char folder[4096];
    if (file == NULL)
        return;
    if (file[0] != '/' || file[strlen(file) - 1] == '/') {
        MISTAKE(c, metrics_file, "file is \"%.200s\": give the file's whole path", file);
        return;
    }
    folder_of(file, folder);
    if (strcmp(folder, c->config->rundir) == 0)
        return;
    if (!is_folder(folder)) {
        MISTAKE(c, metrics_file, "file: there is no folder \"%.200s\": make it first", folder);
        return;
    }
    /* A start continues without the file, with a finding: the folder may be repaired while the daemon runs.
     */
    const int why = c->config->check_only ? why_not(c, folder, W_OK | X_OK) : 0;
    const struct passwd *user = c->user != NULL ? c->user : getpwuid(geteuid());
    const char *name = user == NULL ? "UID" : user->pw_name;
    if (why != 0)
        MISTAKE(c, metrics_file,
                "file: \"%.200s\" cannot be written by user %s: %s; permit it, as by setfacl -m u:%s:rwx, or "
                "set [metrics] listen instead",
                folder, name, strerror(why), name);
}

static void check_metrics_listen(const struct checking *c)
{
    char host[INET6_ADDRSTRLEN];
    uint16_t port;
    struct fab_err err = {""};
    const char *text = c->config->metrics_listen;
    if (text == NULL)
        return;
    int rc = address_parse(text, host, &port, &err);
    if (rc == PMIXFAB_OK && c->config->check_only)
        rc = address_try(text, false, &err); /* without the port: the running daemon may use it */
    if (rc != PMIXFAB_OK)
        MISTAKE(c, metrics_listen, "[metrics] listen: %s", err.text);
}

static void add_map_line(const char *line, void *cbdata)
{
    const struct checking *c = cbdata;
    config_mistake_there(c->mistakes, config_at(c->config, &c->config->names_map), line);
}

static void check_names(const struct checking *c)
{
    const struct config *config = c->config;
    struct fab_names *names = NULL;
    struct fab_err err = {""};
    char *text = NULL;
    size_t len = 0;
    if (fab_names_new(config->names_pattern, &names, &err) != PMIXFAB_OK)
        MISTAKE(c, names_pattern, "%s", err.text);
    else if (fab_names_switches(names, config->switch_pattern, &err) != PMIXFAB_OK)
        MISTAKE(c, switch_pattern, "%s", err.text);
    fab_names_free(names);
    if (config->names_map == NULL || config->role != ROLE_SCHEDULER)
        return;
    const int why = why_not(c, config->names_map, R_OK);
    if (why != 0)
        MISTAKE(c, names_map, "map: %.200s: cannot be read: %s", config->names_map, strerror(why));
    else if (file_text(config->names_map, &text, &len, &err) != PMIXFAB_OK)
        MISTAKE(c, names_map, "map: %s", err.text);
    else
        fab_names_map_check(config->names_map, text, len, add_map_line, (void *)c);
    free(text);
}

/* ---- combinations of settings ---- */

/* A node uses all probes that are available. */
static int default_probes(struct config *config)
{
    int rc = PMIXFAB_OK;
    if (config->role == ROLE_SCHEDULER)
        return config_append(&config->probes, "ibnetdisc");
    for (size_t i = 0; probe_registry[i]->name != NULL && rc == PMIXFAB_OK; i++)
        if (probe_is_local(probe_registry[i]))
            rc = config_append(&config->probes, probe_registry[i]->name);
    return rc;
}

static void check_probes(const struct checking *c)
{
    struct config *config = c->config;
    if (config->probes.n == 0 && default_probes(config) != PMIXFAB_OK)
        MISTAKE(c, probes, "out of memory");
    for (unsigned i = 0; i < config->probes.n; i++) {
        const struct config_place at = config->probes.at[i];
        const char *text = config->probes.items[i];
        struct probe_config probe_config = {.max_smps = config->max_smps};
        const struct probe *probe = probe_find(text, &probe_config.arg);
        struct fab_err err = {""};
        if (probe == NULL)
            config_mistake(c->mistakes, at,
                           "probe \"%.80s\": there is no probe of this name (fabricd --help lists them)",
                           text);
        else if (config->role == ROLE_NODE && !probe_is_local(probe))
            config_mistake(c->mistakes, at,
                           "probe \"%.80s\" reads the fabric: it is for the role scheduler only", text);
        else if (probe->check(&probe_config, &err) != PMIXFAB_OK)
            config_mistake(c->mistakes, at, "%s", err.text);
    }
}

static void config_check_user(const struct checking *c, const char *name, const char *what,
                              struct config_place at)
{
    if (getpwnam(name) == NULL)
        config_mistake(c->mistakes, at, "%s: there is no user \"%.60s\" on this host", what, name);
}

/* Check the scheduler's addresses on a node. Older versions had a PMIx URI or a run directory here. */
static void check_places(const struct checking *c)
{
    const char *text = c->config->scheduler;
    struct address_place places[ADDRESS_MOST_PLACES];
    struct fab_err err = {""};
    unsigned n;
    if (strchr(text, ';') != NULL || strchr(text, '/') != NULL)
        MISTAKE(c, scheduler,
                "scheduler: a URI of a PMIx server or a run directory is not accepted any more: give the "
                "scheduler's host, as scheduler = HOST or HOST:PORT");
    else if (address_places(text, CONFIG_NODES_PORT, places, &n, &err) != PMIXFAB_OK)
        MISTAKE(c, scheduler, "scheduler: %s", err.text);
}

/* Check the settings that the role needs, and derive others from it. */
static void check_role(const struct checking *c)
{
    struct config *config = c->config;
    if (config->role == ROLE_NODE && config->scheduler == NULL)
        MISTAKE(c, role, "the role node needs the host of its scheduler: give --scheduler HOST[:PORT]");
    if (config->role == ROLE_NODE && config->scheduler != NULL)
        check_places(c);
    if (config->role == ROLE_SCHEDULER && config->scheduler != NULL)
        MISTAKE(c, scheduler, "scheduler is for the role node: give --role node, too");
    if (config->role != ROLE_SCHEDULER && config->restore != NULL)
        MISTAKE(c, role, "--restore is for the role scheduler: a node has no store");
    if (config->role == ROLE_HOST)
        MISTAKE(c, role, "the role host is a program of its own: fabric-host, see fabric-host(1)");
    if (config->interval == CONFIG_UNSET)
        config->interval = config->role == ROLE_NODE ? 3600 : 60;
}

static void config_check_host(const struct checking *c)
{
    struct config *config = c->config;
    char name[256] = "";
    struct fab_report report;
    struct fab_err err = {""};
    if (config->host == NULL &&
        (gethostname(name, sizeof(name) - 1) != 0 || config_text(&config->host, name) != 0)) {
        MISTAKE(c, host, "the name of this host is not known: set host");
        return;
    }
    fab_report_init(&report);
    if (fab_report_host(&report, config->host, &err) != PMIXFAB_OK)
        MISTAKE(c, host, "%s", err.text);
    fab_report_destroy(&report);
}

/* The mistake is placed at the one of the two settings that comes later in the file. */
static void check_pair(const struct checking *c, const unsigned *low, const char *low_name,
                       const unsigned *high, const char *high_name)
{
    const struct config_place a = config_at(c->config, low), b = config_at(c->config, high);
    if (*low >= *high)
        return;
    config_mistake(c->mistakes, a.line > b.line ? a : b,
                   "%s is %u%s, less than %s, %u%s: raise the one or lower the other", low_name, *low,
                   a.line == CONFIG_DEFAULT ? " (the default)" : "", high_name, *high,
                   b.line == CONFIG_DEFAULT ? " (the default)" : "");
}

/* The endpoints of a plane of network interfaces are ports. */
static void check_pools(const struct checking *c)
{
    const struct config *config = c->config;
    for (unsigned i = 0; i < config->ethernet.n; i++) {
        char name[64];
        uint32_t first, last;
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(config->ethernet.items[i], "="),
                 config->ethernet.items[i]);
        if (config_pool(config, name, &first, &last) && last > UINT16_MAX)
            config_mistake(c->mistakes, config->ethernet.at[i],
                           "plane %s: its endpoints are ports, which are at most 65535: %u-%u", name, first,
                           last);
    }
}

/* Callers on this host get the paths of the snapshots; a relative path would refer to their own folder. */
static void make_absolute(const struct checking *c, char **path)
{
    char *absolute;
    if (*path == NULL || (*path)[0] == '/')
        return;
    char *cwd = getcwd(NULL, 0);
    if (cwd == NULL || asprintf(&absolute, "%s/%s", cwd, *path) < 0) {
        config_mistake(c->mistakes, config_at(c->config, path), "%s: the current folder is not known: %s",
                       *path, strerror(errno));
        free(cwd);
        return;
    }
    free(cwd);
    free(*path);
    *path = absolute;
}

/* For probes that read recordings. (The argument of ibnetdisc is not a path.) */
static void make_probes_absolute(const struct checking *c)
{
    for (unsigned i = 0; i < c->config->probes.n; i++) {
        char **item = &c->config->probes.items[i], *whole = NULL;
        char *path = strchr(*item, ':') == NULL ? NULL : strdup(strchr(*item, ':') + 1);
        const bool records = strncmp(*item, "ibnetdisc:", 10) != 0;
        if (path == NULL || path[0] == '\0' || path[0] == '/' || !records) {
            free(path);
            continue;
        }
        make_absolute(c, &path);
        if (asprintf(&whole, "%.*s%s", (int)(strchr(*item, ':') + 1 - *item), *item, path) >= 0) {
            free(*item);
            *item = whole;
        }
        free(path);
    }
}

/* The PMIx server of a node or of fabric-host accepts connections of its own host only. */
static void check_listen(const struct checking *c)
{
    const struct config *config = c->config;
    struct fab_err err = {""};
    char address[INET_ADDRSTRLEN];
    if (config->pmix_listen == NULL)
        return;
    if (!config->remote || config->role != ROLE_SCHEDULER)
        MISTAKE(c, pmix_listen,
                "[pmix] listen is for connections of other hosts: set [security] remote = yes on the "
                "scheduler's host, or leave it out");
    else if (interface_check(config->pmix_listen, &err) != PMIXFAB_OK ||
             (config->check_only && interface_find(config->pmix_listen, address, &err) != PMIXFAB_OK))
        MISTAKE(c, pmix_listen, "[pmix] listen: %s", err.text);
}

/* Check where the scheduler listens for nodes. */
static void check_nodes_listen(const struct checking *c)
{
    const struct config *config = c->config;
    struct fab_err err = {""};
    char address[INET_ADDRSTRLEN];
    if (config->nodes_listen == NULL || strcmp(config->nodes_listen, "*") == 0)
        return;
    if (interface_check(config->nodes_listen, &err) != PMIXFAB_OK ||
        (config->check_only && interface_find(config->nodes_listen, address, &err) != PMIXFAB_OK))
        MISTAKE(c, nodes_listen, "[nodes] listen: %s", err.text);
}

void config_check(struct config *config, struct config_mistakes *mistakes)
{
    struct checking c = {config, mistakes, NULL};
    check_role(&c);
    config_check_host(&c);
    check_probes(&c);
    check_pair(&c, &config->debounce_max, "debounce_max", &config->debounce, "debounce");
    check_pair(&c, &config->suppress_max, "suppress_max", &config->suppress, "suppress");
    if (config->node_user != NULL)
        config_check_user(&c, config->node_user, "[nodes] user", config_at(config, &config->node_user));
    for (unsigned i = 0; i < config->admins.n; i++)
        config_check_user(&c, config->admins.items[i], "admins", config->admins.at[i]);
    if (config->compute != NULL && !fab_pattern_ok(config->compute))
        MISTAKE(&c, compute,
                "[fabric] compute: expected patterns with commas between them, as mlx5_0,leaf-c*");
    check_pools(&c);
    check_listen(&c);
    check_nodes_listen(&c);
    make_absolute(&c, &config->rundir);
    make_absolute(&c, &config->store);
    make_absolute(&c, &config->names_map);
    make_absolute(&c, &config->export_folder);
    make_absolute(&c, &config->export_above);
    if (config->role == ROLE_HOST && access(config->scheduler, F_OK) == 0)
        make_absolute(&c, &config->scheduler);
    make_probes_absolute(&c);
    /* Check for the user of this process; with --check-config as root for the service's user, if it exists.
     */
    if (config->check_only && geteuid() == 0 && config->role == ROLE_SCHEDULER)
        c.user = getpwnam(CONFIG_SERVICE_USER);
    if (config->check_only && config->role == ROLE_SCHEDULER)
        check_store(&c); /* not at a start: that reports what it cannot open, and may be retried */
    if (config->hook.n > 0)
        check_program(&c, "[changes] hook", config->hook.items[0], config->hook.at[0]);
    check_exports(&c);
    check_metrics(&c);
    check_metrics_listen(&c);
    check_names(&c);
}
