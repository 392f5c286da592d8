/*
 * ibnetdisc_partial.h - reading a few switches anew, in three parts: which, and the way to them
 * (ibnetdisc_partial.c); what they and their neighbours answer (ibnetdisc_ask.c); the inventory that this
 * makes of the last one (ibnetdisc_build.c).
 */
#ifndef FAB_PROBES_IBNETDISC_IBNETDISC_PARTIAL_H
#define FAB_PROBES_IBNETDISC_IBNETDISC_PARTIAL_H

#include "probes/fabric/observed.h"
#include "probes/ibnetdisc/ibnetdisc_view.h"

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

struct partial {
    const struct fab_inventory *last;
    struct view view; /* for routes: ports of what is not read yet count as down */
    struct smp_port *port;
    struct reread *rereads; /* room for all switches */
    uint32_t n_rereads;
    uint32_t *which; /* node of the last inventory: its reread, FAB_NONE */
};

/* It was found and not yet asked. */
static inline bool partial_fresh(const struct reread *reread)
{
    return reread->found && !reread->read;
}

/* Ask those that are fresh. */
int partial_ask(struct partial *partial, struct fab_err *err);

/* PMIXFAB_ERR_UNSUPPORTED with the reason. */
int partial_surprise(struct fab_err *err, const char *what);

/* The inventory of it. */
int partial_build(struct partial *partial, struct fab_inventory *inv, struct fab_err *err);

#endif
