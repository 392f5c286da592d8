/* config_check.c - do the settings make sense together, is there what they name, and what follows from them.
 */
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabricd/base/address.h"
#include "fabricd/base/interface.h"
#include "fabricd/config/config.h"
#include "fabricd/config/config_files.h"
#include "probes/registry.h"
#include "topo/base/error.h"
#include "topo/base/pattern.h"
#include "topo/model/report.h"

struct checking {
    struct config *config;
    struct config_mistakes *mistakes;
};

static struct config_place setting_place(const struct checking *c, const void *field)
{
    return config_at(c->config, field);
}

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

static void check_probes(const struct checking *c)
{
    struct config *config = c->config;
    if (config->probes.n == 0 && default_probes(config) != PMIXFAB_OK)
        config_mistake(c->mistakes, PMIXFAB_ERR_NOMEM, setting_place(c, &config->probes), "out of memory");
    for (unsigned i = 0; i < config->probes.n; i++) {
        const struct config_place at = config->probes.at[i];
        const char *text = config->probes.items[i];
        struct probe_config probe_config = {.max_smps = config->max_smps};
        const struct probe *probe = probe_find(text, &probe_config.arg);
        struct fab_err err = {""};
        if (probe == NULL)
            config_mistake(c->mistakes, PMIXFAB_ERR_NOTFOUND, at,
                           "probe \"%.80s\": there is none of this name (fabricd --help lists them)", text);
        else if (config->role == ROLE_NODE && !probe_is_local(probe))
            config_mistake(c->mistakes, PMIXFAB_ERR_CONFLICT, at,
                           "probe \"%.80s\" asks the fabric: that is for the role scheduler", text);
        else if (probe->check(&probe_config, &err) != PMIXFAB_OK)
            config_mistake(c->mistakes, PMIXFAB_ERR_SYNTAX, at, "%s", err.text);
    }
}

static void config_check_user(const struct checking *c, const char *name, const char *what,
                              struct config_place at)
{
    if (getpwnam(name) == NULL)
        config_mistake(c->mistakes, PMIXFAB_ERR_NOTFOUND, at, "%s: there is no user \"%.60s\" on this host",
                       what, name);
}

/* Where a node finds its scheduler. Up to the last version that was a URI of PMIx, or a run directory. */
static void check_places(const struct checking *c)
{
    const char *text = c->config->scheduler;
    const struct config_place at = setting_place(c, &c->config->scheduler);
    struct address_place places[ADDRESS_MOST_PLACES];
    struct fab_err err = {""};
    unsigned n;
    if (strchr(text, ';') != NULL || strchr(text, '/') != NULL)
        config_mistake(c->mistakes, PMIXFAB_ERR_SYNTAX, at,
                       "scheduler: nodes connect neither by the URI of fabricd's PMIx server nor by its run "
                       "directory any more: give the scheduler's host, as scheduler = HOST or HOST:PORT");
    else if (address_places(text, CONFIG_NODES_PORT, places, &n, &err) != PMIXFAB_OK)
        config_mistake(c->mistakes, PMIXFAB_ERR_SYNTAX, at, "scheduler: %s", err.text);
}

/* What the role asks for, and what follows from it. */
static void check_role(const struct checking *c)
{
    struct config *config = c->config;
    if (config->role == ROLE_NODE && config->scheduler == NULL)
        config_mistake(c->mistakes, PMIXFAB_ERR_SYNTAX, setting_place(c, &config->role),
                       "the role node needs to know its scheduler: --scheduler HOST[:PORT], the host that it "
                       "runs on");
    if (config->role == ROLE_NODE && config->scheduler != NULL)
        check_places(c);
    if (config->role == ROLE_SCHEDULER && config->scheduler != NULL)
        config_mistake(c->mistakes, PMIXFAB_ERR_CONFLICT, setting_place(c, &config->scheduler),
                       "scheduler is for the role node: give --role node, too");
    if (config->role != ROLE_SCHEDULER && config->restore != NULL)
        config_mistake(c->mistakes, PMIXFAB_ERR_CONFLICT, setting_place(c, &config->role),
                       "--restore is for the role scheduler: a node has no store");
    if (config->role == ROLE_HOST)
        config_mistake(c->mistakes, PMIXFAB_ERR_UNSUPPORTED, setting_place(c, &config->role),
                       "the role host is a program of its own: fabric-host, see fabric-host(1)");
    if (config->interval == CONFIG_UNSET)
        config->interval = config->role == ROLE_NODE ? 3600 : 60;
}

static void config_check_host(const struct checking *c)
{
    struct config *config = c->config;
    const struct config_place at = setting_place(c, &config->host);
    char name[256] = "";
    struct fab_report report;
    struct fab_err err = {""};
    if (config->host == NULL &&
        (gethostname(name, sizeof(name) - 1) != 0 || config_text(&config->host, name) != 0)) {
        config_mistake(c->mistakes, PMIXFAB_ERR_IO, at, "the name of this host is not known: set host");
        return;
    }
    fab_report_init(&report);
    if (fab_report_host(&report, config->host, &err) != PMIXFAB_OK)
        config_mistake(c->mistakes, PMIXFAB_ERR_SYNTAX, at, "%s", err.text);
    fab_report_destroy(&report);
}

/* Whichever of two settings that do not fit comes later in the file. */
static void check_pair(const struct checking *c, const unsigned *low, const char *low_name,
                       const unsigned *high, const char *high_name)
{
    const struct config_place a = setting_place(c, low), b = setting_place(c, high);
    if (*low >= *high)
        return;
    config_mistake(c->mistakes, PMIXFAB_ERR_CONFLICT, a.line > b.line ? a : b,
                   "%s is %u%s, less than %s, %u%s: raise the one or lower the other", low_name, *low,
                   a.line == CONFIG_DEFAULT ? " (the default)" : "", high_name, *high,
                   b.line == CONFIG_DEFAULT ? " (the default)" : "");
}

/* Of a plane of network interfaces the numbers are ports. */
static void check_pools(const struct checking *c)
{
    const struct config *config = c->config;
    for (unsigned i = 0; i < config->ethernet.n; i++) {
        char name[64];
        uint32_t first, last;
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(config->ethernet.items[i], "="),
                 config->ethernet.items[i]);
        if (config_pool(config, name, &first, &last) && last > UINT16_MAX)
            config_mistake(c->mistakes, PMIXFAB_ERR_RANGE, config->ethernet.at[i],
                           "plane %s: its endpoints are ports, and there is none above 65535: %u-%u", name,
                           first, last);
    }
}

/* Callers on this host are told where the snapshots are; a relative path would be relative to their own
 * folder. */
static void make_absolute(const struct checking *c, char **path)
{
    char *absolute;
    if (*path == NULL || (*path)[0] == '/')
        return;
    char *cwd = getcwd(NULL, 0);
    if (cwd == NULL || asprintf(&absolute, "%s/%s", cwd, *path) < 0) {
        config_mistake(c->mistakes, PMIXFAB_ERR_IO, setting_place(c, path),
                       "%s: the current folder is not known: %s", *path, strerror(errno));
        free(cwd);
        return;
    }
    free(cwd);
    free(*path);
    *path = absolute;
}

/* Of probes that read what was recorded. (That of ibnetdisc is no path.) */
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

/* The server of a node and of a user's host takes connections of its own host only. */
static void check_listen(const struct checking *c)
{
    const struct config *config = c->config;
    const struct config_place at = setting_place(c, &config->pmix_listen);
    struct fab_err err = {""};
    char address[INET_ADDRSTRLEN];
    if (config->pmix_listen == NULL)
        return;
    if (!config->remote || config->role != ROLE_SCHEDULER)
        config_mistake(c->mistakes, PMIXFAB_ERR_CONFLICT, at,
                       "[pmix] listen is for connections of other hosts: set [security] remote = yes on the "
                       "scheduler's host, or leave it out");
    else if (interface_check(config->pmix_listen, &err) != PMIXFAB_OK ||
             (config->check_only && interface_find(config->pmix_listen, address, &err) != PMIXFAB_OK))
        config_mistake(c->mistakes, PMIXFAB_ERR_SYNTAX, at, "[pmix] listen: %s", err.text);
}

/* Where the scheduler takes its nodes' connections. */
static void check_nodes_listen(const struct checking *c)
{
    const struct config *config = c->config;
    const struct config_place at = setting_place(c, &config->nodes_listen);
    struct fab_err err = {""};
    char address[INET_ADDRSTRLEN];
    if (config->nodes_listen == NULL || strcmp(config->nodes_listen, "*") == 0)
        return;
    if (interface_check(config->nodes_listen, &err) != PMIXFAB_OK ||
        (config->check_only && interface_find(config->nodes_listen, address, &err) != PMIXFAB_OK))
        config_mistake(c->mistakes, PMIXFAB_ERR_SYNTAX, at, "[nodes] listen: %s", err.text);
}

void config_check(struct config *config, struct config_mistakes *mistakes)
{
    const struct checking c = {config, mistakes};
    check_role(&c);
    config_check_host(&c);
    check_probes(&c);
    check_pair(&c, &config->debounce_max, "debounce_max", &config->debounce, "debounce");
    check_pair(&c, &config->suppress_max, "suppress_max", &config->suppress, "suppress");
    if (config->node_user != NULL)
        config_check_user(&c, config->node_user, "[nodes] user", setting_place(&c, &config->node_user));
    for (unsigned i = 0; i < config->admins.n; i++)
        config_check_user(&c, config->admins.items[i], "admins", config->admins.at[i]);
    if (config->compute != NULL && !fab_pattern_ok(config->compute))
        config_mistake(c.mistakes, PMIXFAB_ERR_SYNTAX, setting_place(&c, &config->compute),
                       "[fabric] compute: expected patterns with commas between them, as mlx5_0,leaf-c*");
    check_pools(&c);
    check_listen(&c);
    check_nodes_listen(&c);
    make_absolute(&c, &config->rundir);
    make_absolute(&c, &config->store);
    make_absolute(&c, &config->names_map);
    make_absolute(&c, &config->export_folder);
    if (config->role == ROLE_HOST && access(config->scheduler, F_OK) == 0)
        make_absolute(&c, &config->scheduler);
    make_probes_absolute(&c);
    config_check_files(config, mistakes);
}
