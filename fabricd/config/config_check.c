/* config_check.c - do the settings make sense together, and what follows from them. */
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabricd/config/config.h"
#include "probes/registry.h"
#include "topo/inventory/names.h"
#include "topo/report/report.h"

/* A node scans itself with the probes that are there. */
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

static int check_probes(struct config *config, struct fab_err *err)
{
    if (config->probes.n == 0 && default_probes(config) != PMIXFAB_OK)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    for (unsigned i = 0; i < config->probes.n; i++) {
        struct probe_config probe_config = {.max_smps = config->max_smps};
        const struct probe *probe = probe_find(config->probes.items[i], &probe_config.arg);
        if (probe == NULL)
            return fab_fail(err, PMIXFAB_ERR_NOTFOUND,
                            "probe \"%.80s\": there is none of this name (fabricd --help lists them)",
                            config->probes.items[i]);
        if (config->role == ROLE_NODE && !probe_is_local(probe))
            return fab_fail(err, PMIXFAB_ERR_CONFLICT,
                            "probe \"%.80s\" asks the fabric: that is for the role scheduler",
                            config->probes.items[i]);
        int rc = probe->check(&probe_config, err);
        if (rc != PMIXFAB_OK)
            return rc;
    }
    return PMIXFAB_OK;
}

/* What the role asks for, and what follows from it. */
static int check_role(struct config *config, struct fab_err *err)
{
    char name[256] = "";
    struct fab_report report;
    if (config->role == ROLE_NODE && config->scheduler == NULL)
        return fab_fail(
            err, PMIXFAB_ERR_SYNTAX,
            "the role node needs to know its scheduler: --scheduler URI, the line in fabricd.uri on "
            "the scheduler's host");
    if (config->role == ROLE_SCHEDULER && config->scheduler != NULL)
        return fab_fail(err, PMIXFAB_ERR_CONFLICT, "scheduler is for the role node: give --role node, too");
    if (config->role == ROLE_NODE && config->restore != NULL)
        return fab_fail(err, PMIXFAB_ERR_CONFLICT,
                        "--restore is for the role scheduler: a node has no store");
    if (config->interval == CONFIG_UNSET)
        config->interval = config->role == ROLE_NODE ? 3600 : 60;
    if (config->node_user != NULL && getpwnam(config->node_user) == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOTFOUND, "[nodes] user: there is no user \"%.60s\" on this host",
                        config->node_user);
    if (config->host == NULL &&
        (gethostname(name, sizeof(name) - 1) != 0 || config_text(&config->host, name) != 0))
        return fab_fail(err, PMIXFAB_ERR_IO, "the name of this host is not known: set host");
    fab_report_init(&report);
    int rc = fab_report_host(&report, config->host, err);
    fab_report_destroy(&report);
    return rc;
}

/* A hook that cannot be started would be noticed at the first change only, which may be months away. */
static int check_hook(const struct config *config, struct fab_err *err)
{
    struct stat st;
    if (config->hook.n == 0)
        return PMIXFAB_OK;
    const char *program = config->hook.items[0];
    if (program[0] != '/')
        return fab_fail(err, PMIXFAB_ERR_SYNTAX, "[changes] hook: \"%.200s\": give the program's whole path",
                        program);
    if (stat(program, &st) != 0 || !S_ISREG(st.st_mode) || access(program, X_OK) != 0)
        return fab_fail(err, PMIXFAB_ERR_NOTFOUND,
                        "[changes] hook: \"%.200s\": there is no such program, or fabricd may not run it",
                        program);
    return PMIXFAB_OK;
}

/* Callers on this host are told where the snapshots are; a relative path would be relative to their own
 * folder. */
static int make_absolute(char **path, struct fab_err *err)
{
    char *absolute;
    if ((*path)[0] == '/')
        return PMIXFAB_OK;
    char *cwd = getcwd(NULL, 0);
    if (cwd == NULL || asprintf(&absolute, "%s/%s", cwd, *path) < 0) {
        free(cwd);
        return fab_fail(err, PMIXFAB_ERR_IO, "%s: the current folder is not known: %s", *path,
                        strerror(errno));
    }
    free(cwd);
    free(*path);
    *path = absolute;
    return PMIXFAB_OK;
}

int config_check(struct config *config, struct fab_err *err)
{
    char **const paths[] = {&config->rundir, &config->store, &config->names_map, &config->metrics_file};
    int rc = check_role(config, err);
    if (rc == PMIXFAB_OK)
        rc = check_probes(config, err);
    for (size_t i = 0; rc == PMIXFAB_OK && i < sizeof(paths) / sizeof(paths[0]); i++)
        if (*paths[i] != NULL)
            rc = make_absolute(paths[i], err);
    if (rc == PMIXFAB_OK)
        rc = check_hook(config, err);
    if (rc != PMIXFAB_OK)
        return rc;
    struct fab_names *names = NULL;
    rc = fab_names_new(config->names_pattern, &names, err);
    fab_names_free(names);
    if (rc != PMIXFAB_OK)
        return rc;
    for (unsigned i = 0; i < config->admins.n; i++)
        if (getpwnam(config->admins.items[i]) == NULL)
            return fab_fail(err, PMIXFAB_ERR_NOTFOUND, "admins: there is no user \"%.60s\" on this host",
                            config->admins.items[i]);
    return PMIXFAB_OK;
}
