/*
 * ibnetdisc.h - private parts of the probe `ibnetdisc`, which sweeps a live subnet and makes light sweeps
 * between.
 */
#ifndef FAB_PROBES_IBNETDISC_IBNETDISC_H
#define FAB_PROBES_IBNETDISC_IBNETDISC_H

#include <infiniband/ibnetdisc.h>
#include <infiniband/mad.h>
#include <infiniband/umad.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probes/fabric/observed.h"

extern const struct probe probe_ibnetdisc;

/*
 * Make raw observations of libibnetdisc's results; they point into the fabric. Free them with
 * observed_free().
 */
int ibnetdisc_observe(const ibnd_fabric_t *fabric, struct observed *seen, struct fab_err *err);

/* Parse "CA", "CA:PORT"; an empty CA and port 0 mean the library's choice. arg may be NULL. */
int ibnetdisc_target(const char *arg, char ca[UMAD_CA_NAME_LEN], int *port, struct fab_err *err);

/* Find the port to use; release it. PMIXFAB_ERR_NOTFOUND, and `why` lists the ports that exist. */
int ibnetdisc_port(const char *ca, int num, umad_port_t *port, char *why, size_t size);

/* Return "no state", "down", "init", "armed", "active". */
const char *ibnetdisc_state_name(unsigned state);

/*
 * Find the configured port, which a subnet manager must have brought up; release it. PMIXFAB_ERR_INVAL,
 * _NOTFOUND.
 */
int ibnetdisc_usable(const struct probe_config *config, umad_port_t *port, struct fab_err *err);

/* Requests in flight: 32 is about ten times as fast as the library's 2, and more is no faster. */
#define IBNETDISC_MAX_SMPS   32u
#define IBNETDISC_TIMEOUT_MS 1000u
#define IBNETDISC_RETRIES    3u

/* Hide all system image GUIDs from libibnetdisc in this thread: this avoids its search for chassis. */
void ibnetdisc_hide_systems(bool hide);

/* ---- between two discoveries ---- */

/* The functions of struct probe with these names. */
int ibnetdisc_monitor_open(const struct probe_config *config, const struct fab_inventory *inv,
                           struct probe_monitor **out, struct fab_err *err);
int ibnetdisc_monitor_poll(struct probe_monitor *monitor, struct dirty_switches *dirty, struct fab_err *err);
void ibnetdisc_monitor_close(struct probe_monitor *monitor);
void ibnetdisc_monitor_manager(const struct probe_monitor *monitor, struct probe_manager *out);
int ibnetdisc_counters(const struct probe_config *config, const struct fab_inventory *last,
                       struct probe_reading *list, uint32_t n, struct fab_err *err);
int ibnetdisc_switches(const struct probe_config *config, const struct probe_sink *sink,
                       const struct fab_inventory *last, const struct dirty_switches *dirty,
                       struct fab_inventory *inv, struct fab_err *err);

/*
 * ---- many requests to the subnet's nodes at once, by directed route or LID ----
 *
 * libibnetdisc can only discover everything. These requests go to the node at the end of a path of port
 * numbers, so they need no subnet manager and no forwarding table.
 */

/* From this host's port outwards: p[0] is its number, then the exit ports of the switches. */
struct smp_path {
    uint8_t n;
    uint8_t p[IB_SUBNET_PATH_HOPS_MAX - 2];
};

/* Add one step. Return false if the directed route would be too long. */
bool smp_path_extend(struct smp_path *path, unsigned num);

struct smp {
    struct smp_path path;
    uint16_t lid;       /* of the performance class: the destination instead of the path; 0: do not send */
    uint16_t attribute; /* IB_ATTR_... */
    uint32_t modifier;
    bool answered;
    bool refused;                 /* there is an answer, but to another request */
    uint8_t data[ATTRIBUTE_SIZE]; /* the answer */
};

struct smp_port;

/*
 * Open this port of this host for a management class: IB_SMI_DIRECT_CLASS, which uses paths, or
 * IB_PERFORMANCE_CLASS, which uses LIDs, with the port number as modifier. At most `flight` requests are in
 * flight; one without an answer within timeout_ms is repeated `retries` times. PMIXFAB_ERR_IO, _NOMEM.
 */
int smp_open(const umad_port_t *port, int class, unsigned flight, unsigned timeout_ms, unsigned retries,
             struct smp_port **out, struct fab_err *err);
void smp_close(struct smp_port *port); /* NULL is allowed */

/*
 * Send them all and fill in the answers. When more than `patience` got no answer, the unsent ones are skipped
 * (a cut cable near this host silences thousands). PMIXFAB_ERR_IO: the port itself does not work.
 */
int smp_ask(struct smp_port *port, struct smp *questions, size_t n, size_t patience, struct fab_err *err);

/* Return the number of packets sent since the opening. */
uint64_t smp_sent(const struct smp_port *port);

/*
 * ---- the expectations of a light sweep, and its next requests ----
 *
 * This part only decides. Its input is answers. Its output is requests and differences from the last
 * inventory. Three things are checked:
 * - The bit PortStateChange. A switch sets the bit when the state of a port changes. The subnet manager
 *   clears it after its sweep, so a light sweep may come too late.
 * - The states of all switch ports. They are read in turns within a budget. In a small subnet each light
 *   sweep reads all of them. In a large subnet it reads a few switches, and switches with the bit set come
 *   first.
 * - Ports that the subnet manager is about to bring up. They are read until they are up.
 */

struct view_switch {
    uint32_t node;
    uint32_t first_sign; /* of its port 0 */
    uint8_t bit;         /* PortStateChange: 0, 1, or VIEW_UNKNOWN before the first light sweep */
    bool silent;         /* it did not answer the last light sweep */
    bool unsettled;      /* one of its ports is being brought up */
    bool suspect;        /* read its ports next */
    bool avoid;          /* it does not answer now: no route leads through it */
};
#define VIEW_UNKNOWN 2

/* An HCA's port, or another one at the edge, that a subnet manager has not brought up completely. */
struct view_edge {
    uint32_t port;
    uint16_t lid;
    uint8_t state;
};

struct view {
    const struct fab_inventory *inv; /* borrowed */
    struct view_switch *switches;
    struct view_edge *edges;
    uint32_t *signs; /* of each switch port the relevant part of its state; 0: no link */
    uint32_t *at;    /* node: its switch here, FAB_NONE */
    uint32_t *up;    /* node: its neighbour's port towards it; FAB_NONE: unreached */
    uint32_t *queue;
    uint32_t n_switches, n_edges;
    uint32_t own;         /* this host's port */
    uint32_t next;        /* the next switch in turn */
    uint32_t next_edge;   /* and the next edge */
    uint32_t budget;      /* requests of a light sweep in addition to one for each switch */
    uint32_t acted_last;  /* the subnet manager's count of its packets, at the last light sweep */
    uint32_t acted;       /* number of packets since it began */
    bool manager;         /* a count was read before */
    bool busy, explained; /* it is working; and a change was noticed that explains it */
    bool dirty;           /* there was a change in the last light sweep */
    bool moved;           /* a link went or came: routes have changed */
};

/*
 * Make a view of a finished inventory that has the port with this GUID. PMIXFAB_ERR_UNSUPPORTED: the
 * inventory does not have it; _NOMEM.
 */
int view_new(const struct fab_inventory *inv, uint64_t own_guid, struct view *view, struct fab_err *err);
void view_free(struct view *view);

/* Return the approximate number of requests of a discovery of this inventory. */
uint32_t view_sweep_cost(const struct fab_inventory *inv);

/* Find the shortest routes to all switches over links that are up. */
void view_route(struct view *view);
/* Find the path to a node. Return false if it is not reached, or too far. */
bool view_path(const struct view *view, uint32_t node, struct smp_path *path);

/* Record that a switch answered, or did not. Return whether anything changed. */
bool view_answered(struct view *view, uint32_t at, bool bit);
bool view_link_down(struct view *view, uint32_t at);

/* Compare the PortInfo of its port `num`. Return whether it has changed. */
bool view_port(struct view *view, uint32_t at, unsigned num, const uint8_t info[ATTRIBUTE_SIZE]);
/* As above, for an edge. */
bool view_edge(struct view *view, uint32_t edge, const uint8_t info[ATTRIBUTE_SIZE]);

/*
 * Compare the subnet manager's count of packets. The subnet manager sweeps the subnet after a change. If it
 * has swept, but no change was noticed, a light sweep cannot notice the change, for example a host that was
 * swapped within one light sweep. Then the result is true. dirty: there was a change in this light sweep.
 */
bool view_manager(struct view *view, uint32_t count, bool dirty);
/* Find the path to the subnet manager with this LID. Return false if it is not in the inventory. */
bool view_manager_path(const struct view *view, uint16_t lid, struct smp_path *path);

/*
 * List the switches whose ports are read now, at least one and at most as many as the budget allows. Suspects
 * come first. If the others are wanted, unsettled switches follow, then switches with the bit set, then the
 * rest in turn. *list has room for all switches.
 */
uint32_t view_pick(struct view *view, bool others, uint32_t *list);
/* List the edges that are read now; as above. */
uint32_t view_pick_edges(struct view *view, uint32_t *list);

/* ---- reading a few switches again ---- */

/* The node at the other end of a switch's port. */
struct behind {
    bool there;
    bool fdr10;
    uint8_t info[ATTRIBUTE_SIZE];      /* NodeInfo */
    uint8_t desc[ATTRIBUTE_SIZE];      /* of a node that is not a switch */
    uint8_t port_info[ATTRIBUTE_SIZE]; /* likewise */
    uint32_t made;                     /* its port in the new inventory */
};

/* A port of a switch that is read again. */
struct reread_port {
    uint8_t info[ATTRIBUTE_SIZE]; /* PortInfo */
    bool fdr10;
    struct behind behind;
    uint32_t made;
};

struct reread {
    uint32_t node; /* in the last inventory */
    bool found, read;
    struct smp_path path;
    uint8_t info[ATTRIBUTE_SIZE], desc[ATTRIBUTE_SIZE], switch_info[ATTRIBUTE_SIZE];
    struct reread_port *ports; /* from port 0 on */
    unsigned num_ports;
};

struct reread_sweep {
    const struct fab_inventory *last;
    struct view view; /* for routes: ports of switches that are not read yet count as down */
    struct smp_port *port;
    struct reread *rereads; /* room for all switches */
    uint32_t n_rereads;
    uint32_t *which; /* node of the last inventory: its reread; FAB_NONE */
};

/* Return whether it was found and not read yet. */
static inline bool switches_fresh(const struct reread *reread)
{
    return reread->found && !reread->read;
}

/* Build the inventory of a sweep. */
int switches_build(struct reread_sweep *sweep, struct fab_inventory *inv, struct fab_err *err);

#endif
