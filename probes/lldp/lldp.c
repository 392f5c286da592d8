/*
 * lldp.c - the probe `lldp`: the switches that this host's interfaces are cabled to, from lldpd.
 *
 * LLDPD_SOCKET in the environment names lldpd's socket if it is not the usual one. liblldpctl waits for lldpd
 * without a limit: the probing child has a deadline. The data come from an untrusted neighbour on the cable.
 */
#include <lldp-const.h>
#include <lldpctl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/core/facts.h"
#include "probes/core/record.h"

#define MAX_NEIGHBOURS 1024

/* The neighbour on an interface. */
struct lldp_neighbour {
    char interface[FAB_REPORT_MAX_TEXT + 1], name[FAB_REPORT_MAX_TEXT + 1];
    char id[FAB_REPORT_MAX_TEXT + 64], port[FAB_REPORT_MAX_TEXT + 64];
    bool lldp;    /* and not one of lldpd's older protocols */
    size_t place; /* in the original list */
};

struct lldp_survey {
    const struct probe_sink *sink;
    struct lldp_neighbour *list; /* room for MAX_NEIGHBOURS */
    size_t n;
};

static char lldp_complaint[256]; /* liblldpctl's last message */

static void lldp_keep_complaint(int severity, const char *message)
{
    (void)severity;
    snprintf(lldp_complaint, sizeof(lldp_complaint), "%s", message);
}

static const char *lldp_text(lldpctl_atom_t *atom, lldpctl_key_t key)
{
    const char *text = atom != NULL ? lldpctl_atom_get_str(atom, key) : NULL;
    return text != NULL ? text : "";
}

/* A switch bridges or routes; a neighbour that reports no capabilities may be one. */
static bool lldp_is_switch(lldpctl_atom_t *chassis)
{
    long can = lldpctl_atom_get_int(chassis, lldpctl_k_chassis_cap_available);
    long does = lldpctl_atom_get_int(chassis, lldpctl_k_chassis_cap_enabled);
    return can <= 0 || (does > 0 && (can & does & (LLDP_CAP_BRIDGE | LLDP_CAP_ROUTER)) != 0);
}

/* Write a chassis's id in the form of its kind: a MAC, or "ifname Ethernet12". */
static void lldp_chassis_id(lldpctl_atom_t *chassis, char *out, size_t size)
{
    const char *id = lldp_text(chassis, lldpctl_k_chassis_id);
    const char *type = lldp_text(chassis, lldpctl_k_chassis_id_subtype);
    if (lldpctl_atom_get_int(chassis, lldpctl_k_chassis_id_subtype) == LLDP_CHASSISID_SUBTYPE_LLADDR)
        snprintf(out, size, "%s", id);
    else
        snprintf(out, size, "%.32s %.*s", type, FAB_REPORT_MAX_TEXT, id);
}

/* Return false if it cannot be a switch. */
static bool lldp_read_chassis(lldpctl_atom_t *chassis, const struct probe_sink *sink,
                              struct lldp_neighbour *out)
{
    if (chassis != NULL)
        lldp_chassis_id(chassis, out->id, sizeof(out->id));
    if (fab_fact_check(FAB_FACT_SWITCH_ID, out->id, NULL) != PMIXFAB_OK) {
        probe_note(sink, PMIXFAB_LOG_WARNING, "lldp: %s: a neighbour without a chassis id is left out",
                   out->interface);
        return false;
    }
    if (!lldp_is_switch(chassis)) {
        probe_note(sink, PMIXFAB_LOG_DEBUG, "lldp: %s: the neighbour is not a switch", out->interface);
        return false;
    }
    snprintf(out->name, sizeof(out->name), "%s", lldp_text(chassis, lldpctl_k_chassis_name));
    return true;
}

static int lldp_read_neighbour(struct lldp_survey *s, const char *interface, lldpctl_atom_t *neighbour)
{
    struct lldp_neighbour n = {.place = s->n};
    if (lldpctl_atom_get_int(neighbour, lldpctl_k_port_hidden) >
        0) /* lldpd prefers another neighbour on this port */
        return PMIXFAB_OK;
    snprintf(n.interface, sizeof(n.interface), "%s", interface);
    if (fab_fact_check(FAB_FACT_INTERFACE, n.interface, NULL) != PMIXFAB_OK) {
        probe_note(s->sink, PMIXFAB_LOG_WARNING, "lldp: a neighbour without an interface is left out");
        return PMIXFAB_OK;
    }
    snprintf(n.port, sizeof(n.port), "%s", lldp_text(neighbour, lldpctl_k_port_id));
    n.lldp = strcmp(lldp_text(neighbour, lldpctl_k_port_protocol), "LLDP") == 0;
    lldpctl_atom_t *chassis = lldpctl_atom_get(neighbour, lldpctl_k_port_chassis);
    bool usable = lldp_read_chassis(chassis, s->sink, &n);
    if (chassis != NULL)
        lldpctl_atom_dec_ref(chassis);
    if (!usable)
        return PMIXFAB_OK;
    if (s->n == MAX_NEIGHBOURS)
        return PMIXFAB_ERR_RANGE;
    s->list[s->n++] = n;
    return PMIXFAB_OK;
}

static int lldp_read_interface(struct lldp_survey *s, lldpctl_conn_t *lldpd, lldpctl_atom_t *interface)
{
    int rc = PMIXFAB_OK;
    lldpctl_atom_t *neighbour, *port = lldpctl_get_port(interface);
    if (port == NULL) /* the interface may be removed after the list was made */
        return lldpctl_last_error(lldpd) == LLDPCTL_ERR_NOT_EXIST ? PMIXFAB_OK : PMIXFAB_ERR_IO;
    const char *name = lldp_text(interface, lldpctl_k_interface_name);
    lldpctl_atom_t *neighbours = lldpctl_atom_get(port, lldpctl_k_port_neighbors);
    if (neighbours != NULL) {
        lldpctl_atom_foreach(neighbours, neighbour)
        {
            if (rc == PMIXFAB_OK)
                rc = lldp_read_neighbour(s, name, neighbour);
        }
        lldpctl_atom_dec_ref(neighbours);
    }
    lldpctl_atom_dec_ref(port);
    return rc;
}

static int lldp_read_neighbours(struct lldp_survey *s, lldpctl_conn_t *lldpd, struct fab_err *err)
{
    int rc = PMIXFAB_OK;
    lldpctl_atom_t *interface, *interfaces = lldpctl_get_interfaces(lldpd);
    if (interfaces == NULL)
        return fab_fail(err, PMIXFAB_ERR_UNSUPPORTED,
                        "lldp: lldpd does not answer: %s; start it, and let this user use its socket",
                        lldp_complaint[0] != '\0' ? lldp_complaint : lldpctl_last_strerror(lldpd));
    lldpctl_atom_foreach(interfaces, interface)
    {
        if (rc == PMIXFAB_OK)
            rc = lldp_read_interface(s, lldpd, interface);
    }
    lldpctl_atom_dec_ref(interfaces);
    if (rc == PMIXFAB_ERR_RANGE)
        return fab_fail(err, rc, "lldp: more than %d neighbours", MAX_NEIGHBOURS);
    if (rc == PMIXFAB_ERR_IO)
        return fab_fail(err, rc, "lldp: lldpd: %s", lldpctl_last_strerror(lldpd));
    return rc;
}

/* Compare by interface; LLDP before lldpd's other protocols, which may report the same switch again. */
static int lldp_by_interface(const void *a, const void *b)
{
    const struct lldp_neighbour *x = a, *y = b;
    int order = strcmp(x->interface, y->interface);
    if (order == 0)
        order = (int)y->lldp - (int)x->lldp;
    return order != 0 ? order : (x->place > y->place) - (x->place < y->place);
}

static int lldp_add_neighbour(const struct lldp_neighbour *n, struct fab_report *report)
{
    struct probe_item item;
    probe_item_open(&item, FAB_FROM_LLDP, n->interface, NULL, report);
    fact_add(&item, FAB_FACT_INTERFACE, n->interface);
    fact_add(&item, FAB_FACT_SWITCH_ID, n->id);
    fact_add(&item, FAB_FACT_SWITCH_NAME, n->name);
    fact_add(&item, FAB_FACT_SWITCH_PORT, n->port);
    return item.rc;
}

/* Add an item for each interface with exactly one switch. */
static int lldp_add_neighbours(struct lldp_survey *s, struct fab_report *report)
{
    struct lldp_neighbour *list = s->list;
    int rc = PMIXFAB_OK;
    if (s->n > 1)
        qsort(list, s->n, sizeof(*list), lldp_by_interface);
    for (size_t i = 0, next; i < s->n && rc == PMIXFAB_OK; i = next) {
        bool several = false;
        for (next = i + 1; next < s->n && strcmp(list[next].interface, list[i].interface) == 0; next++)
            several = several || (list[next].lldp == list[i].lldp && strcmp(list[next].id, list[i].id) != 0);
        if (several)
            probe_note(s->sink, PMIXFAB_LOG_WARNING, "lldp: %s hears several switches; none of them is used",
                       list[i].interface);
        else
            rc = lldp_add_neighbour(&list[i], report);
    }
    return rc;
}

static int lldp_look(const struct probe_config *config, const struct probe_sink *sink,
                     struct fab_report *report, struct fab_err *err)
{
    if (config->arg != NULL)
        return record_scan(config->arg, FAB_FROM_LLDP, report, err);
    struct lldp_survey s = {.sink = sink, .list = calloc(MAX_NEIGHBOURS, sizeof(*s.list))};
    const char *socket = getenv("LLDPD_SOCKET");
    lldp_complaint[0] = '\0';
    lldpctl_log_callback(lldp_keep_complaint);
    lldpctl_conn_t *lldpd =
        lldpctl_new_name(socket != NULL ? socket : lldpctl_get_default_transport(), NULL, NULL, NULL);
    int rc = s.list == NULL || lldpd == NULL ? fab_fail(err, PMIXFAB_ERR_NOMEM, "lldp: out of memory")
                                             : lldp_read_neighbours(&s, lldpd, err);
    if (rc == PMIXFAB_OK) {
        rc = lldp_add_neighbours(&s, report);
        if (rc != PMIXFAB_OK)
            fab_fail(err, rc, "lldp: %s", pmixfab_strerror(rc));
    }
    if (lldpd != NULL)
        lldpctl_release(lldpd);
    free(s.list);
    return rc;
}

static int lldp_available(char *text, size_t size)
{
    return fact_available(lldp_look, "lldpd answers, switches on ", "interface", text, size);
}

__attribute__((visibility("default"))) const struct probe fabricd_probe = {
    .name = "lldp",
    .scan = lldp_look,
    .available = lldp_available,
};
