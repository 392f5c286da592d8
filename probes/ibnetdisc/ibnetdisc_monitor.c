/*
 * ibnetdisc_monitor.c - the light sweep. It sends one request to each switch, and a few more to some
 * switches.
 */
#include "probes/ibnetdisc/ibnetdisc.h"

#include <stdlib.h>
#include <string.h>

/* A poll must end soon: a request without an answer is repeated in the next poll. */
#define POLL_TIMEOUT_MS 200u
#define POLL_RETRIES    1u
/* After this number of polls without an answer of the subnet manager, request it in some polls only. */
#define MUTE      3u
#define MUTE_TURN 4u   /* one poll in so many, because a missing answer delays the poll */
#define SM_MASTER 3u   /* the master's state in SMInfo */
#define PATIENCE  256u /* unanswered requests; more mean a large failure */

struct probe_monitor {
    struct view view;
    struct smp_port *port;
    umad_port_t at;
    struct smp *questions;
    uint32_t *who; /* the switch or edge of a request */
    uint32_t *list;
    size_t room;
    bool known; /* of this host's port, the following was read before */
    bool link_up;
    uint16_t lid, sm_lid;
    unsigned mute; /* consecutive light sweeps without an answer of the subnet manager */
    struct probe_manager manager;
};

void ibnetdisc_monitor_close(struct probe_monitor *monitor)
{
    if (monitor == NULL)
        return;
    smp_close(monitor->port);
    view_free(&monitor->view);
    umad_release_port(&monitor->at);
    free(monitor->questions);
    free(monitor->who);
    free(monitor->list);
    free(monitor);
}

static int monitor_reserve(struct probe_monitor *monitor, struct fab_err *err)
{
    const struct view *view = &monitor->view;
    /* one for each switch, and the ports of the selected ones: the last of them may exceed the budget */
    monitor->room = view->n_switches + 2u * view->budget + 3u * 256u + view->n_edges;
    monitor->questions = calloc(monitor->room, sizeof(*monitor->questions));
    monitor->who = calloc(monitor->room, sizeof(*monitor->who));
    monitor->list = calloc(monitor->room, sizeof(*monitor->list));
    if (monitor->questions == NULL || monitor->who == NULL || monitor->list == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "ibnetdisc: out of memory for %zu questions", monitor->room);
    return PMIXFAB_OK;
}

static unsigned monitor_lower_limit(unsigned configured, unsigned own)
{
    return configured != 0 && configured < own ? configured : own;
}

int ibnetdisc_monitor_open(const struct probe_config *config, const struct fab_inventory *inv,
                           struct probe_monitor **out, struct fab_err *err)
{
    struct probe_monitor *monitor = calloc(1, sizeof(*monitor));
    if (monitor == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "ibnetdisc: out of memory");
    int rc = ibnetdisc_usable(config, &monitor->at, err);
    if (rc != PMIXFAB_OK) {
        free(monitor);
        return rc;
    }
    rc = view_new(inv, be64toh(monitor->at.port_guid), &monitor->view, err)
             ?: monitor_reserve(monitor, err)
             ?: smp_open(&monitor->at, IB_SMI_DIRECT_CLASS,
                         config->max_smps != 0 ? config->max_smps : IBNETDISC_MAX_SMPS,
                         monitor_lower_limit(config->timeout_ms, POLL_TIMEOUT_MS),
                         monitor_lower_limit(config->retries, POLL_RETRIES), &monitor->port, err);
    if (rc == PMIXFAB_OK)
        *out = monitor;
    else
        ibnetdisc_monitor_close(monitor);
    return rc;
}

static int monitor_mark_dirty(struct probe_monitor *monitor, uint32_t at, struct dirty_switches *dirty,
                              struct fab_err *err)
{
    const struct view *view = &monitor->view;
    return dirty_switches_add(dirty, view->inv->nodes[view->switches[at].node].guid, err);
}

/* ---- this host's port ----------------------------------------------------------------------------- */

/* Another subnet manager may assign other LIDs without any bit. */
static int poll_home(struct probe_monitor *monitor, struct dirty_switches *dirty, struct fab_err *err)
{
    struct smp *question = monitor->questions;
    struct port_info info;
    *question = (struct smp){.attribute = IB_ATTR_PORT_INFO,
                             .modifier = monitor->view.inv->ports[monitor->view.own].num};
    int rc = smp_ask(monitor->port, question, 1, 1, err);
    if (rc != PMIXFAB_OK)
        return rc;
    if (!question->answered)
        return fab_fail(err, PMIXFAB_ERR_IO, "ibnetdisc:%s:%d: the port does not answer", monitor->at.ca_name,
                        monitor->at.portnum);
    port_info_decode(question->data, NULL, false, &info);
    const uint16_t sm_lid = (uint16_t)mad_get_field(question->data, 0, IB_PORT_SMLID_F);
    if (monitor->known &&
        (info.lid != monitor->lid || sm_lid != monitor->sm_lid || info.link_up != monitor->link_up))
        dirty->all = true;
    if (monitor->known && sm_lid != monitor->sm_lid)
        monitor->mute = 0; /* another one: send at once */
    monitor->known = true;
    monitor->link_up = info.link_up;
    monitor->lid = info.lid;
    monitor->sm_lid = sm_lid;
    return PMIXFAB_OK;
}

/* Read the subnet manager's activity, as a sign of changes that a scan cannot see; and whether it answers. */
static int poll_manager(struct probe_monitor *monitor, struct dirty_switches *dirty, bool any,
                        struct fab_err *err)
{
    struct smp *question = monitor->questions;
    struct probe_manager *manager = &monitor->manager;
    *question = (struct smp){.attribute = IB_ATTR_SMINFO};
    *manager = (struct probe_manager){.lid = monitor->sm_lid};
    if (monitor->mute >= MUTE && monitor->mute++ % MUTE_TURN != 0)
        return PMIXFAB_OK;
    manager->asked = true;
    if (view_manager_path(&monitor->view, monitor->sm_lid, &question->path)) {
        int rc = smp_ask(monitor->port, question, 1, 1, err);
        if (rc != PMIXFAB_OK)
            return rc;
    }
    monitor->mute = question->answered ? 0 : monitor->mute < MUTE ? monitor->mute + 1 : monitor->mute;
    if (!question->answered)
        return PMIXFAB_OK;
    manager->guid = mad_get_field64(question->data, 0, IB_SMINFO_GUID_F);
    manager->priority = (uint8_t)mad_get_field(question->data, 0, IB_SMINFO_PRIO_F);
    manager->master = mad_get_field(question->data, 0, IB_SMINFO_STATE_F) == SM_MASTER;
    if (view_manager(&monitor->view, mad_get_field(question->data, 0, IB_SMINFO_ACT_F), any))
        dirty->all = true;
    return PMIXFAB_OK;
}

void ibnetdisc_monitor_manager(const struct probe_monitor *monitor, struct probe_manager *out)
{
    *out = monitor->manager;
}

/* ---- switches ------------------------------------------------------------------------------------- */

/* Request the SwitchInfo of these. The list becomes those that did not answer; *n becomes their number. */
static int ask_switches(struct probe_monitor *monitor, uint32_t *list, uint32_t *n,
                        struct dirty_switches *dirty, struct fab_err *err)
{
    struct view *view = &monitor->view;
    uint32_t asked = 0, silent = 0;
    for (uint32_t i = 0; i < *n; i++) {
        struct smp *question = &monitor->questions[asked];
        *question = (struct smp){.attribute = IB_ATTR_SWITCH_INFO};
        if (view_path(view, view->switches[list[i]].node, &question->path))
            monitor->who[asked++] = list[i];
        else
            list[silent++] = list[i];
    }
    int rc = smp_ask(monitor->port, monitor->questions, asked, PATIENCE, err);
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < asked; i++) {
        struct smp *question = &monitor->questions[i];
        if (!question->answered)
            list[silent++] = monitor->who[i];
        else if (view_answered(view, monitor->who[i],
                               mad_get_field(question->data, 0, IB_SW_STATE_CHANGE_F) != 0))
            rc = monitor_mark_dirty(monitor, monitor->who[i], dirty, err);
    }
    *n = silent;
    return rc;
}

/* Read the ports of the switches in turn. */
static int monitor_read_ports(struct probe_monitor *monitor, bool others, struct dirty_switches *dirty,
                              struct fab_err *err)
{
    struct view *view = &monitor->view;
    uint32_t n_picked = view_pick(view, others, monitor->list), asked = 0;
    for (uint32_t i = 0; i < n_picked; i++) {
        const uint32_t node = view->switches[monitor->list[i]].node;
        struct smp_path path;
        const unsigned n_ports = view->inv->nodes[node].num_ports;
        if (!view_path(view, node, &path) || asked + n_ports > monitor->room)
            continue;
        for (unsigned num = 1; num <= n_ports; num++, asked++) {
            monitor->questions[asked] =
                (struct smp){.path = path, .attribute = IB_ATTR_PORT_INFO, .modifier = num};
            monitor->who[asked] = monitor->list[i];
        }
    }
    int rc = smp_ask(monitor->port, monitor->questions, asked, PATIENCE, err);
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < asked; i++) {
        const struct smp *question = &monitor->questions[i];
        if (question->answered && view_port(view, monitor->who[i], question->modifier, question->data))
            rc = monitor_mark_dirty(monitor, monitor->who[i], dirty, err);
    }
    return rc;
}

/* Read ports at the edge that a subnet manager is bringing up. */
static int read_edges(struct probe_monitor *monitor, struct dirty_switches *dirty, struct fab_err *err)
{
    struct view *view = &monitor->view;
    const struct fab_inventory *inv = view->inv;
    uint32_t n_picked = view_pick_edges(view, monitor->list), asked = 0;
    for (uint32_t i = 0; i < n_picked; i++) {
        const struct fab_port *port = &inv->ports[view->edges[monitor->list[i]].port];
        struct smp *question = &monitor->questions[asked];
        *question = (struct smp){.attribute = IB_ATTR_PORT_INFO, .modifier = port->num};
        if (view_path(view, inv->ports[port->peer].node, &question->path) &&
            smp_path_extend(&question->path, inv->ports[port->peer].num))
            monitor->who[asked++] = monitor->list[i];
    }
    int rc = smp_ask(monitor->port, monitor->questions, asked, PATIENCE, err);
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < asked; i++) {
        const struct smp *question = &monitor->questions[i];
        const uint32_t port = view->edges[monitor->who[i]].port;
        if (question->answered && view_edge(view, monitor->who[i], question->data))
            rc = monitor_mark_dirty(monitor, view->at[inv->ports[inv->ports[port].peer].node], dirty, err);
    }
    return rc;
}

/*
 * A silent switch may be behind a cut cable or a broken switch. Request by routes through those that answer,
 * until no more of them do.
 */
static int ask_the_silent(struct probe_monitor *monitor, uint32_t *list, uint32_t n,
                          struct dirty_switches *dirty, struct fab_err *err)
{
    struct view *view = &monitor->view;
    int rc = PMIXFAB_OK;
    for (uint32_t i = 0; i < n; i++) {
        view->switches[list[i]].suspect = true; /* its ports could not be read either */
        view->switches[list[i]].avoid = true;
    }
    for (uint32_t before = n + 1; rc == PMIXFAB_OK && n > 0 && n < before;) {
        before = n;
        view_route(view);
        rc = ask_switches(monitor, list, &n, dirty, err);
    }
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < n; i++)
        if (view_link_down(view, list[i]))
            rc = monitor_mark_dirty(monitor, list[i], dirty, err);
    return rc == PMIXFAB_OK ? monitor_read_ports(monitor, false, dirty, err) : rc;
}

int ibnetdisc_monitor_poll(struct probe_monitor *monitor, struct dirty_switches *dirty, struct fab_err *err)
{
    struct view *view = &monitor->view;
    const uint64_t before = smp_sent(monitor->port);
    const uint32_t dirty_before = dirty->n;
    uint32_t *list = calloc(view->n_switches + 1, sizeof(*list)), n = view->n_switches;
    if (list == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "ibnetdisc: out of memory");
    for (uint32_t i = 0; i < n; i++)
        list[i] = i;
    int rc = poll_home(monitor, dirty, err) ?: ask_switches(monitor, list, &n, dirty, err)
             ?: monitor_read_ports(monitor, true, dirty, err);
    if (rc == PMIXFAB_OK && view->moved)
        view_route(view);
    if (rc == PMIXFAB_OK && n > 0)
        rc = ask_the_silent(monitor, list, n, dirty, err);
    if (rc == PMIXFAB_OK)
        rc = read_edges(monitor, dirty, err)
                 ?: poll_manager(monitor, dirty, dirty->all || dirty->n > dirty_before, err);
    dirty->requests += smp_sent(monitor->port) - before;
    free(list);
    return rc;
}
