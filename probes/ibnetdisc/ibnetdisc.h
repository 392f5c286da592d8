/*
 * ibnetdisc.h - inside of the probe `ibnetdisc`, which sweeps a live subnet and looks between the sweeps.
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

/* What libibnetdisc found, as raw observations, which point into the fabric. Free with observed_free(). */
int ibnetdisc_observe(const ibnd_fabric_t *fabric, struct observed *seen, struct fab_err *err);

/* "CA", "CA:PORT"; a CA of no letters and port 0 mean the library's choice. arg may be NULL. */
int ibnetdisc_target(const char *arg, char ca[UMAD_CA_NAME_LEN], int *port, struct fab_err *err);

/* The port to ask through; release it. PMIXFAB_ERR_NOTFOUND, and `why` says what there is instead. */
int ibnetdisc_port(const char *ca, int num, umad_port_t *port, char *why, size_t size);

/* "no state", "down", "init", "armed", "active" */
const char *ibnetdisc_state_name(unsigned state);

/* The port that is configured, which a subnet manager has brought up; release it. PMIXFAB_ERR_INVAL,
 * _NOTFOUND. */
int ibnetdisc_usable(const struct probe_config *config, umad_port_t *port, struct fab_err *err);

/* Requests in flight: 32 is about ten times as fast as the library's 2, and more gains nothing. */
#define IBNETDISC_MAX_SMPS   32u
#define IBNETDISC_TIMEOUT_MS 1000u
#define IBNETDISC_RETRIES    3u

/* Let libibnetdisc, in this thread, find no system image GUIDs: that spares it its search for chassis. */
void ibnetdisc_hide_systems(bool hide);

/* ---- between two discoveries ---- */

/* As struct probe's functions of these names. */
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
 * ---- many questions to the subnet's nodes at once, by directed route or LID ----
 *
 * libibnetdisc can only ask everything. A question goes to the node that a path of port numbers leads to, so
 * it needs no subnet manager and no forwarding table.
 */

/* From this host's port outwards: p[0] is its number, then the ports by which the switches are left. */
struct smp_path {
    uint8_t n;
    uint8_t p[IB_SUBNET_PATH_HOPS_MAX - 2];
};

/* One step more. False: no directed route is that long. */
bool smp_path_extend(struct smp_path *path, unsigned num);

struct smp {
    struct smp_path path;
    uint16_t lid;       /* to which it goes instead, of the performance class; 0: it is not sent */
    uint16_t attribute; /* IB_ATTR_... */
    uint32_t modifier;
    bool answered;
    bool refused;                 /* there is an answer, to another question */
    uint8_t data[ATTRIBUTE_SIZE]; /* the answer */
};

struct smp_port;

/*
 * Through this port of this host, of this management class: IB_SMI_DIRECT_CLASS, which goes by paths, or
 * IB_PERFORMANCE_CLASS, which goes by LIDs, and the modifier is the port that is meant. At most `flight`
 * questions are out at a time; one that gets no answer within timeout_ms is asked `retries` times more.
 * PMIXFAB_ERR_IO, _NOMEM.
 */
int smp_open(const umad_port_t *port, int class, unsigned flight, unsigned timeout_ms, unsigned retries,
             struct smp_port **out, struct fab_err *err);
void smp_close(struct smp_port *port); /* NULL allowed */

/*
 * Ask them all and fill in the answers. When more than `patience` got none, those that were not sent are
 * left unanswered (a cut cable near by silences thousands). PMIXFAB_ERR_IO: the port itself does not work.
 */
int smp_ask(struct smp_port *port, struct smp *questions, size_t n, size_t patience, struct fab_err *err);

/* How many were sent since the opening. */
uint64_t smp_sent(const struct smp_port *port);

/*
 * ---- what a light sweep of a subnet expects, and what it should ask next ----
 *
 * Decisions only: questions and answers come in, differences from the last inventory go out. Three things are
 * looked at. A switch sets the bit PortStateChange when a port's state changes; the subnet manager clears it
 * when it has swept, so that a light sweep may come too late for it. So the states of all switch ports are
 * read, too, in turns within a budget: of a small subnet all of them at each light sweep, of a large one a
 * few switches, those first whose bit is set. And ports that the subnet manager is about to bring up are
 * asked until they are.
 */

struct view_switch {
    uint32_t node;
    uint32_t first_sign; /* of its port 0 */
    uint8_t bit;         /* PortStateChange: 0, 1, or VIEW_UNKNOWN before the first light sweep */
    bool silent;         /* it did not answer the last light sweep */
    bool unsettled;      /* one of its ports is being brought up */
    bool suspect;        /* its ports are to be read next */
    bool avoid;          /* it does not answer now: no route leads through it */
};
#define VIEW_UNKNOWN 2

/* An HCA's port, or another one at the edge, that no subnet manager has brought up entirely. */
struct view_edge {
    uint32_t port;
    uint16_t lid;
    uint8_t state;
};

struct view {
    const struct fab_inventory *inv; /* the caller's */
    struct view_switch *switches;
    struct view_edge *edges;
    uint32_t *signs; /* of each switch port what counts of its state; 0: no link */
    uint32_t *at;    /* node: its switch here, FAB_NONE */
    uint32_t *up;    /* node: the port of its neighbour that leads to it, FAB_NONE: unreached */
    uint32_t *queue;
    uint32_t n_switches, n_edges;
    uint32_t own;         /* this host's port */
    uint32_t next;        /* the switch whose turn it is */
    uint32_t next_edge;   /* and the edge */
    uint32_t budget;      /* questions a light sweep may cost beside one a switch */
    uint32_t acted_last;  /* the subnet manager's count of its packets, at the last light sweep */
    uint32_t acted;       /* how many it has sent since it began to */
    bool manager;         /* it has told that count before */
    bool busy, explained; /* it is at work; and something was noticed that it does so for */
    bool dirty;           /* something was at the last light sweep */
    bool moved;           /* a link went or came: routes are not what they were */
};

/* Of a finished inventory that has the port with this GUID. PMIXFAB_ERR_UNSUPPORTED: it does not; _NOMEM. */
int view_new(const struct fab_inventory *inv, uint64_t own_guid, struct view *view, struct fab_err *err);
void view_free(struct view *view);

/* How many questions a discovery of this inventory asks, about. */
uint32_t view_sweep_cost(const struct fab_inventory *inv);

/* Shortest routes to all switches over links that are up. */
void view_route(struct view *view);
/* False: the node is not reached, or too far. */
bool view_path(const struct view *view, uint32_t node, struct smp_path *path);

/* A switch answered, or did not. True: something is new. */
bool view_answered(struct view *view, uint32_t at, bool bit);
bool view_link_down(struct view *view, uint32_t at);

/* The PortInfo of its port `num`. True: it is not as it was. */
bool view_port(struct view *view, uint32_t at, unsigned num, const uint8_t info[ATTRIBUTE_SIZE]);
/* The PortInfo of an edge. */
bool view_edge(struct view *view, uint32_t edge, const uint8_t info[ATTRIBUTE_SIZE]);

/*
 * The subnet manager says how many packets it has sent so far. It sweeps the subnet when something changed:
 * has it, and nothing was noticed, then what changed cannot be noticed (a host that was swapped, all within a
 * light sweep), and the answer is true. dirty: something was at this light sweep.
 */
bool view_manager(struct view *view, uint32_t count, bool dirty);
/* The way to the subnet manager with this LID. False: it is nowhere in the inventory. */
bool view_manager_path(const struct view *view, uint16_t lid, struct smp_path *path);

/*
 * The switches whose ports are to be read now, at most what the budget allows and at least one: suspects,
 * then, where the others are asked for, too, unsettled ones, those whose bit stands, then in turn. *list has
 * room for all of them.
 */
uint32_t view_pick(struct view *view, bool others, uint32_t *list);
/* The edges that are to be asked now; as above. */
uint32_t view_pick_edges(struct view *view, uint32_t *list);

/* ---- reading a few switches anew ---- */

/* What is at the other end of a switch's port. */
struct behind {
    bool there;
    bool fdr10;
    uint8_t info[ATTRIBUTE_SIZE];      /* NodeInfo */
    uint8_t desc[ATTRIBUTE_SIZE];      /* of what is no switch */
    uint8_t port_info[ATTRIBUTE_SIZE]; /* likewise */
    uint32_t made;                     /* the port in the new inventory */
};

/* A port of a switch that is read anew. */
struct reread_port {
    uint8_t info[ATTRIBUTE_SIZE]; /* PortInfo */
    bool fdr10;
    struct behind behind;
    uint32_t made;
};

struct reread {
    uint32_t node; /* of the last inventory */
    bool found, read;
    struct smp_path path;
    uint8_t info[ATTRIBUTE_SIZE], desc[ATTRIBUTE_SIZE], switch_info[ATTRIBUTE_SIZE];
    struct reread_port *ports; /* from port 0 on */
    unsigned num_ports;
};

struct reread_sweep {
    const struct fab_inventory *last;
    struct view view; /* for routes: ports of what is not read yet count as down */
    struct smp_port *port;
    struct reread *rereads; /* room for all switches */
    uint32_t n_rereads;
    uint32_t *which; /* node of the last inventory: its reread, FAB_NONE */
};

/* It was found and not yet asked. */
static inline bool switches_fresh(const struct reread *reread)
{
    return reread->found && !reread->read;
}

/* The inventory of it. */
int switches_build(struct reread_sweep *sweep, struct fab_inventory *inv, struct fab_err *err);

#endif
