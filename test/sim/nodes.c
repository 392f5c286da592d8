/* nodes.c - the role node on hosts of the site: fabricd/node with played devices; tcp.c connects them. */
#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <utlist.h>

#include "fabricd/base/loop.h"
#include "fabricd/config/config.h"
#include "fabricd/node/node.h"
#include "fabricd/node/node_netlink.h"
#include "test/sim/nodes.h"

struct sim_node {
    struct sim_node *prev, *next;
    struct sim *sim;
    char host[64], folder[160], rundir[176], conf[176];
    struct settings settings;
    struct config config;
    char *argv[5];
    struct node *role; /* NULL: it does not run */
    struct devices *devices;
    bool cut, munge_hangs;
};

struct devices {
    void (*changed)(void *cbdata);
    void *cbdata;
};

static struct {
    struct sim *sim;
    struct sim_node *all, *running; /* running: begins, ends or hears its callers */
} nodes;

/* That several event loops wait for signals is well: none comes. */
static void say_nothing(int severity, const char *text)
{
    if (severity == EVENT_LOG_ERR)
        sim_fail("libevent: %s", text);
}

void nodes_begin(struct sim *s)
{
    event_set_log_callback(say_nothing);
    nodes.sim = s;
    nodes.all = nodes.running = NULL;
}

struct sim_node *node_running(void)
{
    struct sim_node *node;
    if (nodes.running != NULL || seam_base() == NULL)
        return nodes.running;
    DL_FOREACH(nodes.all, node)
    {
        if (node->role != NULL && node_loop(node->role)->base == seam_base())
            return node;
    }
    return NULL;
}

const char *node_host(const struct sim_node *node)
{
    return node->host;
}

bool node_is_cut(const struct sim_node *node)
{
    return node->cut;
}

bool node_munge_hangs(const struct sim_node *node)
{
    return node->munge_hangs;
}

/* ---- devices, as the kernel tells of them
 * ------------------------------------------------------------------------------- */

int devices_new(struct event_base *base, void (*changed)(void *cbdata), void *cbdata, struct devices **out,
                struct fab_err *err)
{
    struct devices *devices = *out = calloc(1, sizeof(*devices));
    (void)base, (void)err;
    if (devices == NULL)
        sim_fail("out of memory");
    *devices = (struct devices){changed, cbdata};
    node_running()->devices = devices;
    return PMIXFAB_OK;
}

void devices_free(struct devices *devices)
{
    if (devices != NULL)
        node_running()->devices = NULL;
    free(devices);
}

void netlink_scanned(struct devices *devices, bool found)
{
    (void)devices, (void)found;
}

void sim_node_device(struct sim_node *node)
{
    sim_note(node->sim, "hand: a device of %s changes", node->host);
    struct sim_node *before = nodes.running;
    nodes.running = node;
    node->devices->changed(node->devices->cbdata);
    nodes.running = before;
    sim_run_until_idle(node->sim);
}

/* ---- life
 * ---------------------------------------------------------------------------------------------------------------
 */

struct sim_node *sim_node_new(struct sim *s, const char *host)
{
    struct sim_node *node = calloc(1, sizeof(*node));
    if (node == NULL)
        sim_fail("out of memory");
    node->sim = s;
    snprintf(node->host, sizeof(node->host), "%s", host);
    snprintf(node->folder, sizeof(node->folder), "%s.%s", sim_folder(s), host);
    snprintf(node->rundir, sizeof(node->rundir), "%s/run", node->folder);
    snprintf(node->conf, sizeof(node->conf), "%s/conf", node->folder);
    if (mkdir(node->folder, 0755) != 0)
        sim_fail("%s: %s", node->folder, strerror(errno));
    settings_set(&node->settings, "fabricd", "role", "node");
    settings_set(&node->settings, "fabricd", "scheduler", "scheduler");
    settings_set(&node->settings, "fabricd", "rundir", node->rundir);
    settings_set(&node->settings, "fabricd", "host", host);
    settings_set(&node->settings, "fabricd", "interval", "0");
    settings_set(&node->settings, "fabricd", "probe", "verbs");
    DL_APPEND(nodes.all, node);
    return node;
}

void sim_node_configure(struct sim_node *node, const char *section, const char *key, const char *value)
{
    settings_set(&node->settings, section, key, value);
}

const char *sim_node_rundir(const struct sim_node *node)
{
    return node->rundir;
}

int sim_node_start(struct sim_node *node)
{
    memcpy(node->argv, (char *[]){"fabricd", "--config", node->conf, "--foreground", NULL},
           sizeof(node->argv));
    settings_write(&node->settings, node->conf);
    config_init(&node->config);
    nodes.running = node;
    int rc = options_parse(4, node->argv, &node->config);
    if (rc == PMIXFAB_OK)
        rc = node_begin(&node->config, &node->role);
    nodes.running = NULL;
    if (rc != PMIXFAB_OK) {
        node->role = NULL;
        config_destroy(&node->config);
        return rc;
    }
    sim_run_until_idle(node->sim);
    return PMIXFAB_OK;
}

void sim_node_stop(struct sim_node *node)
{
    if (node->role == NULL)
        return;
    nodes.running = node;
    node_end(node->role);
    nodes.running = NULL;
    node->role = NULL;
    config_destroy(&node->config);
}

/* As SIGKILL. An end in order writes nothing more into its folder, and takes away its socket only. */
void sim_node_kill(struct sim_node *node)
{
    sim_note(node->sim, "hand: SIGKILL for the node %s", node->host);
    sim_node_stop(node);
}

bool sim_node_runs(const struct sim_node *node)
{
    return node->role != NULL;
}

void sim_node_reload(struct sim_node *node)
{
    settings_write(&node->settings, node->conf);
    nodes.running = node;
    node_loop(node->role)->on_hangup(node_loop(node->role)->cbdata);
    nodes.running = NULL;
    sim_run_until_idle(node->sim);
}

void nodes_end(void)
{
    struct sim_node *node, *next;
    DL_FOREACH_SAFE(nodes.all, node, next)
    {
        sim_node_stop(node);
        sim_remove(node->folder);
        settings_free(&node->settings);
        DL_DELETE(nodes.all, node);
        free(node);
    }
}

void nodes_look(void)
{
    struct sim_node *node, *before = nodes.running;
    DL_FOREACH(nodes.all, node)
    {
        if (node->role == NULL)
            continue;
        nodes.running = node;
        event_base_loop(node_loop(node->role)->base, EVLOOP_NONBLOCK);
        node_loop(node->role)->on_turn(node_loop(node->role)->cbdata);
    }
    nodes.running = before;
}

/* ---- what happens to it
 * ------------------------------------------------------------------------------------------------- */

void sim_node_cut(struct sim_node *node, bool cut)
{
    sim_note(node->sim, "hand: the way of %s to the scheduler is %s", node->host, cut ? "cut" : "whole");
    node->cut = cut;
    tcp_check();
}

void sim_node_munge(struct sim_node *node, bool hangs)
{
    sim_note(node->sim, "hand: munged of %s %s", node->host, hangs ? "hangs" : "goes on");
    node->munge_hangs = hangs;
    seam_release();
}
