/*
 * ibnetdisc_smp.h - many questions to the subnet's nodes at once, by directed route or LID.
 *
 * For what lies between two discoveries: libibnetdisc can only ask everything. A question goes to the node
 * that a path of port numbers leads to, so it needs no subnet manager and no forwarding table.
 */
#ifndef FAB_PROBES_IBNETDISC_IBNETDISC_SMP_H
#define FAB_PROBES_IBNETDISC_IBNETDISC_SMP_H

#include <infiniband/mad.h>
#include <infiniband/umad.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probes/fabric/observed.h"

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

#endif
