/*
 * ibnetdisc_view.h - what a light sweep of a subnet believes, and what it should ask next.
 *
 * Decisions only: questions and answers come in, differences from the last inventory go out.
 * Three things are looked at. A switch sets the bit PortStateChange when a port's state changes; the subnet
 * manager clears it when it has swept, so that a light sweep may come too late for it. So the states of all
 * switch ports are read, too, in turns within a budget: of a small subnet all of them at each light sweep, of
 * a large one a few switches, those first whose bit is set. And ports that the subnet manager is about to
 * bring up are asked until they are.
 */
#ifndef FAB_PROBES_IBNETDISC_IBNETDISC_VIEW_H
#define FAB_PROBES_IBNETDISC_IBNETDISC_VIEW_H

#include "probes/core/probe.h"
#include "probes/ibnetdisc/ibnetdisc_smp.h"

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

#endif
