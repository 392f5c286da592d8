/* ibnetdisc_look.c - the cheap look: a question to each switch, and a few to some of them. */
#include "probes/ibnetdisc_look.h"

#include <stdlib.h>
#include <string.h>

#include "probes/ibnetdisc.h"
#include "probes/ibnetdisc_view.h"

/* A look is over soon, or it is worth nothing: one that is not answered is asked again at the next. */
#define LOOK_TIMEOUT_MS 200u
#define LOOK_RETRIES    1u
#define MUTE            3u /* after so many looks a subnet manager that does not answer is asked at some only */
#define PATIENCE        256u /* unanswered questions; then something large is broken */

struct probe_watch {
    struct view view;
    struct smp_port *port;
    umad_port_t at;
    struct smp *questions;
    uint32_t *who; /* which switch or edge a question is about */
    uint32_t *list;
    size_t room;
    bool known; /* of this host's port, what follows was read before */
    bool link_up;
    uint16_t lid, sm_lid;
    unsigned mute; /* looks that the subnet manager has not answered, one after the other */
};

void ibnetdisc_watch_close(struct probe_watch *watch)
{
    if (watch == NULL)
        return;
    smp_close(watch->port);
    view_free(&watch->view);
    umad_release_port(&watch->at);
    free(watch->questions);
    free(watch->who);
    free(watch->list);
    free(watch);
}

static int monitor_reserve(struct probe_watch *watch, struct fab_err *err)
{
    const struct view *view = &watch->view;
    /* One a switch, and the ports of those that are picked: the last of them may go beyond the budget. */
    watch->room = view->n_switches + 2u * view->budget + 3u * 256u + view->n_edges;
    watch->questions = calloc(watch->room, sizeof(*watch->questions));
    watch->who = calloc(watch->room, sizeof(*watch->who));
    watch->list = calloc(watch->room, sizeof(*watch->list));
    if (watch->questions == NULL || watch->who == NULL || watch->list == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "ibnetdisc: out of memory for %zu questions", watch->room);
    return PMIXFAB_OK;
}

static unsigned monitor_lower_limit(unsigned configured, unsigned own)
{
    return configured != 0 && configured < own ? configured : own;
}

int ibnetdisc_watch_open(const struct probe_config *config, const struct fab_inventory *inv,
                         struct probe_watch **out, struct fab_err *err)
{
    char ca[UMAD_CA_NAME_LEN], why[200];
    int num;
    int rc = ibnetdisc_target(config->arg, ca, &num, err);
    if (rc != PMIXFAB_OK)
        return rc;
    struct probe_watch *watch = calloc(1, sizeof(*watch));
    if (watch == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "ibnetdisc: out of memory");
    rc = ibnetdisc_port(ca, num, &watch->at, why, sizeof(why));
    if (rc != PMIXFAB_OK) {
        free(watch);
        return fab_fail(err, rc, "ibnetdisc: %s", why);
    }
    rc = ibnetdisc_usable(&watch->at, err);
    if (rc == PMIXFAB_OK)
        rc = view_new(inv, be64toh(watch->at.port_guid), &watch->view, err);
    if (rc == PMIXFAB_OK)
        rc = monitor_reserve(watch, err);
    if (rc == PMIXFAB_OK)
        rc = smp_open(&watch->at, config->max_smps != 0 ? config->max_smps : IBNETDISC_MAX_SMPS,
                      monitor_lower_limit(config->timeout_ms, LOOK_TIMEOUT_MS),
                      monitor_lower_limit(config->retries, LOOK_RETRIES), &watch->port, err);
    if (rc == PMIXFAB_OK)
        *out = watch;
    else
        ibnetdisc_watch_close(watch);
    return rc;
}

static int monitor_mark_dirty(struct probe_watch *watch, uint32_t at, struct probe_noticed *noticed,
                              struct fab_err *err)
{
    const struct view *view = &watch->view;
    return probe_noticed_add(noticed, view->inv->nodes[view->switches[at].node].guid, err);
}

/* ---- this host's port ----------------------------------------------------------------------------- */

/* Other LIDs come with another subnet manager, and without any bit. */
static int look_home(struct probe_watch *watch, struct probe_noticed *noticed, struct fab_err *err)
{
    struct smp *question = watch->questions;
    struct port_info info;
    *question =
        (struct smp){.attribute = IB_ATTR_PORT_INFO, .modifier = watch->view.inv->ports[watch->view.own].num};
    int rc = smp_ask(watch->port, question, 1, 1, err);
    if (rc != PMIXFAB_OK)
        return rc;
    if (!question->answered)
        return fab_fail(err, PMIXFAB_ERR_IO, "ibnetdisc:%s:%d: the port does not answer", watch->at.ca_name,
                        watch->at.portnum);
    port_info_decode(question->data, NULL, false, &info);
    const uint16_t sm_lid = (uint16_t)mad_get_field(question->data, 0, IB_PORT_SMLID_F);
    if (watch->known && (info.lid != watch->lid || sm_lid != watch->sm_lid || info.link_up != watch->link_up))
        noticed->all = true;
    watch->known = true;
    watch->link_up = info.link_up;
    watch->lid = info.lid;
    watch->sm_lid = sm_lid;
    return PMIXFAB_OK;
}

/* What the subnet manager does, as a sign of what a look cannot see. */
static int look_at_manager(struct probe_watch *watch, struct probe_noticed *noticed, bool any,
                           struct fab_err *err)
{
    struct smp *question = watch->questions;
    *question = (struct smp){.attribute = IB_ATTR_SMINFO};
    if (watch->mute >= MUTE && watch->mute++ % 16 != 0)
        return PMIXFAB_OK;
    if (!view_manager_path(&watch->view, watch->sm_lid, &question->path))
        return PMIXFAB_OK;
    int rc = smp_ask(watch->port, question, 1, 1, err);
    if (rc != PMIXFAB_OK)
        return rc;
    watch->mute = question->answered ? 0 : watch->mute < MUTE ? watch->mute + 1 : watch->mute;
    if (question->answered &&
        view_manager(&watch->view, mad_get_field(question->data, 0, IB_SMINFO_ACT_F), any))
        noticed->all = true;
    return PMIXFAB_OK;
}

/* ---- switches ------------------------------------------------------------------------------------- */

/* Ask these for their SwitchInfo. Those that say nothing are the new list; *n becomes their number. */
static int ask_switches(struct probe_watch *watch, uint32_t *list, uint32_t *n, struct probe_noticed *noticed,
                        struct fab_err *err)
{
    struct view *view = &watch->view;
    uint32_t asked = 0, silent = 0;
    for (uint32_t i = 0; i < *n; i++) {
        struct smp *question = &watch->questions[asked];
        *question = (struct smp){.attribute = IB_ATTR_SWITCH_INFO};
        if (view_path(view, view->switches[list[i]].node, &question->path))
            watch->who[asked++] = list[i];
        else
            list[silent++] = list[i];
    }
    int rc = smp_ask(watch->port, watch->questions, asked, PATIENCE, err);
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < asked; i++) {
        struct smp *question = &watch->questions[i];
        if (!question->answered)
            list[silent++] = watch->who[i];
        else if (view_answered(view, watch->who[i],
                               mad_get_field(question->data, 0, IB_SW_STATE_CHANGE_F) != 0))
            rc = monitor_mark_dirty(watch, watch->who[i], noticed, err);
    }
    *n = silent;
    return rc;
}

/* Read the ports of the switches whose turn it is. */
static int monitor_read_ports(struct probe_watch *watch, bool others, struct probe_noticed *noticed,
                              struct fab_err *err)
{
    struct view *view = &watch->view;
    uint32_t n_picked = view_pick(view, others, watch->list), asked = 0;
    for (uint32_t i = 0; i < n_picked; i++) {
        const uint32_t node = view->switches[watch->list[i]].node;
        struct smp_path path;
        const unsigned n_ports = view->inv->nodes[node].num_ports;
        if (!view_path(view, node, &path) || asked + n_ports > watch->room)
            continue;
        for (unsigned num = 1; num <= n_ports; num++, asked++) {
            watch->questions[asked] =
                (struct smp){.path = path, .attribute = IB_ATTR_PORT_INFO, .modifier = num};
            watch->who[asked] = watch->list[i];
        }
    }
    int rc = smp_ask(watch->port, watch->questions, asked, PATIENCE, err);
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < asked; i++) {
        const struct smp *question = &watch->questions[i];
        if (question->answered && view_port(view, watch->who[i], question->modifier, question->data))
            rc = monitor_mark_dirty(watch, watch->who[i], noticed, err);
    }
    return rc;
}

/* Ports at the edge that a subnet manager is bringing up. */
static int read_edges(struct probe_watch *watch, struct probe_noticed *noticed, struct fab_err *err)
{
    struct view *view = &watch->view;
    const struct fab_inventory *inv = view->inv;
    uint32_t n_picked = view_pick_edges(view, watch->list), asked = 0;
    for (uint32_t i = 0; i < n_picked; i++) {
        const struct fab_port *port = &inv->ports[view->edges[watch->list[i]].port];
        struct smp *question = &watch->questions[asked];
        *question = (struct smp){.attribute = IB_ATTR_PORT_INFO, .modifier = port->num};
        if (view_path(view, inv->ports[port->peer].node, &question->path) &&
            smp_path_extend(&question->path, inv->ports[port->peer].num))
            watch->who[asked++] = watch->list[i];
    }
    int rc = smp_ask(watch->port, watch->questions, asked, PATIENCE, err);
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < asked; i++) {
        const struct smp *question = &watch->questions[i];
        const uint32_t port = view->edges[watch->who[i]].port;
        if (question->answered && view_edge(view, watch->who[i], question->data))
            rc = monitor_mark_dirty(watch, view->at[inv->ports[inv->ports[port].peer].node], noticed, err);
    }
    return rc;
}

/*
 * What was silent may have been so because the way to it is cut, or leads through one that is broken. Ask by
 * routes through those that answer, until no more of them do.
 */
static int ask_the_silent(struct probe_watch *watch, uint32_t *list, uint32_t n,
                          struct probe_noticed *noticed, struct fab_err *err)
{
    struct view *view = &watch->view;
    int rc = PMIXFAB_OK;
    for (uint32_t i = 0; i < n; i++) {
        view->switches[list[i]].suspect = true; /* its ports could not be read either */
        view->switches[list[i]].avoid = true;
    }
    for (uint32_t before = n + 1; rc == PMIXFAB_OK && n > 0 && n < before;) {
        before = n;
        view_route(view);
        rc = ask_switches(watch, list, &n, noticed, err);
    }
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < n; i++)
        if (view_silent(view, list[i]))
            rc = monitor_mark_dirty(watch, list[i], noticed, err);
    return rc == PMIXFAB_OK ? monitor_read_ports(watch, false, noticed, err) : rc;
}

int ibnetdisc_watch_look(struct probe_watch *watch, struct probe_noticed *noticed, struct fab_err *err)
{
    struct view *view = &watch->view;
    const uint64_t before = smp_sent(watch->port);
    const uint32_t noticed_before = noticed->n;
    uint32_t *list = calloc(view->n_switches + 1, sizeof(*list)), n = view->n_switches;
    if (list == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "ibnetdisc: out of memory");
    for (uint32_t i = 0; i < n; i++)
        list[i] = i;
    int rc = look_home(watch, noticed, err);
    if (rc == PMIXFAB_OK)
        rc = ask_switches(watch, list, &n, noticed, err);
    if (rc == PMIXFAB_OK)
        rc = monitor_read_ports(watch, true, noticed, err);
    if (rc == PMIXFAB_OK && view->moved)
        view_route(view);
    if (rc == PMIXFAB_OK && n > 0)
        rc = ask_the_silent(watch, list, n, noticed, err);
    if (rc == PMIXFAB_OK)
        rc = read_edges(watch, noticed, err);
    if (rc == PMIXFAB_OK)
        rc = look_at_manager(watch, noticed, noticed->all || noticed->n > noticed_before, err);
    noticed->requests += smp_sent(watch->port) - before;
    free(list);
    return rc;
}
