/* ibnetdisc_smp.c - questions through libibumad, several in flight. */
#include "probes/ibnetdisc/ibnetdisc_smp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* umad_size() is another one when a port is open than before. */
#define PACKET (sizeof(struct ib_user_mad) + IB_MAD_SIZE)

struct smp_port {
    int fd, agent, class;
    unsigned flight, timeout_ms, retries;
    uint32_t next; /* transaction number of the next question */
    uint64_t sent;
    void *out, *in;     /* a packet each way */
    uint32_t *waiting;  /* transaction numbers of those in flight, 0: a free place */
    uint32_t *question; /* and which questions they are */
};

bool smp_path_extend(struct smp_path *path, unsigned num)
{
    if (path->n >= sizeof(path->p) || num > UINT8_MAX)
        return false;
    path->p[path->n++] = (uint8_t)num;
    return true;
}

uint64_t smp_sent(const struct smp_port *port)
{
    return port->sent;
}

void smp_close(struct smp_port *port)
{
    if (port == NULL)
        return;
    if (port->fd >= 0 && port->agent >= 0)
        umad_unregister(port->fd, port->agent);
    if (port->fd >= 0)
        umad_close_port(port->fd);
    free(port->out);
    free(port->in);
    free(port->waiting);
    free(port->question);
    free(port);
}

int smp_open(const umad_port_t *at, int class, unsigned flight, unsigned timeout_ms, unsigned retries,
             struct smp_port **out, struct fab_err *err)
{
    *out = NULL;
    struct smp_port *port = calloc(1, sizeof(*port));
    if (port == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "ibnetdisc: out of memory");
    *port = (struct smp_port){.fd = -1,
                              .agent = -1,
                              .class = class,
                              .flight = flight,
                              .timeout_ms = timeout_ms,
                              .retries = retries,
                              .next = 1};
    port->out = calloc(1, PACKET);
    port->in = calloc(1, PACKET);
    port->waiting = calloc(flight, sizeof(*port->waiting));
    port->question = calloc(flight, sizeof(*port->question));
    if (port->out == NULL || port->in == NULL || port->waiting == NULL || port->question == NULL) {
        smp_close(port);
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "ibnetdisc: out of memory");
    }
    port->fd = umad_open_port(at->ca_name, at->portnum);
    port->agent = port->fd < 0 ? -1 : umad_register(port->fd, class, 1, 0, NULL);
    if (port->agent < 0) {
        smp_close(port);
        return fab_fail(err, PMIXFAB_ERR_IO,
                        "ibnetdisc:%s:%d: the port cannot be opened; check the access to "
                        "/dev/infiniband/umad*",
                        at->ca_name, at->portnum);
    }
    *out = port;
    return PMIXFAB_OK;
}

/* Into a free place; false where the packet could not be sent. */
static bool send_one(struct smp_port *port, const struct smp *smp, unsigned place, uint32_t index)
{
    const uint32_t transaction = port->next;
    port->next = port->next == UINT32_MAX ? 1 : port->next + 1;
    const bool routed = port->class == IB_PERFORMANCE_CLASS;
    uint8_t data[IB_PC_DATA_SZ] = {0};
    ib_rpc_t rpc = {
        .mgtclass = port->class,
        .method = IB_MAD_METHOD_GET,
        .attr = {.id = smp->attribute, .mod = routed ? 0 : smp->modifier},
        .dataoffs = IB_SMP_DATA_OFFS, /* and IB_PC_DATA_OFFS, which is the same */
        .datasz = routed ? IB_PC_DATA_SZ : IB_SMP_DATA_SIZE,
        .trid = transaction,
    };
    ib_portid_t to = {.drpath = {.cnt = smp->path.n, .drslid = 0xffff, .drdlid = 0xffff}};
    memcpy(to.drpath.p + 1, smp->path.p, smp->path.n);
    if (routed) {
        to = (ib_portid_t){.lid = smp->lid, .qp = 1, .qkey = IB_DEFAULT_QP1_QKEY};
        mad_set_field(data, 0, IB_PC_PORT_SELECT_F, smp->modifier);
    }
    memset(port->out, 0, PACKET);
    if (mad_build_pkt(port->out, &rpc, &to, NULL, routed ? data : NULL) < 0 ||
        umad_send(port->fd, port->agent, port->out, IB_MAD_SIZE, (int)port->timeout_ms, (int)port->retries) <
            0)
        return false;
    port->waiting[place] = transaction;
    port->question[place] = index;
    port->sent++;
    return true;
}

/* A packet has come. The place that it frees, or FAB_NONE where nobody waited for it. */
static uint32_t take_one(struct smp_port *port, struct smp *questions, size_t *silent)
{
    uint8_t *mad = umad_get_mad(port->in);
    const uint32_t transaction = (uint32_t)mad_get_field64(mad, 0, IB_MAD_TRID_F);
    uint32_t place = 0;
    while (place < port->flight && (transaction == 0 || port->waiting[place] != transaction))
        place++;
    if (place == port->flight)
        return FAB_NONE;
    port->waiting[place] = 0;
    struct smp *smp = &questions[port->question[place]];
    const int status = umad_status(port->in);
    if (status != 0) {
        *silent += 1;
        return place;
    }
    if ((mad_get_field(mad, 0, IB_DRSMP_STATUS_F) & 0x7fff) != 0) {
        smp->refused = true; /* it answers, but not that question */
        return place;
    }
    smp->answered = true;
    memcpy(smp->data, mad + IB_SMP_DATA_OFFS, ATTRIBUTE_SIZE);
    return place;
}

/* The next question from *next on that has somewhere to go; false: there is none. */
static bool next_question(const struct smp_port *port, const struct smp *questions, size_t n, size_t *next)
{
    while (*next < n && port->class == IB_PERFORMANCE_CLASS && questions[*next].lid == 0)
        *next += 1;
    return *next < n;
}

int smp_ask(struct smp_port *port, struct smp *questions, size_t n, size_t patience, struct fab_err *err)
{
    /* umad_recv() may give up by itself before the kernel does; this long nothing at all is a fault. */
    const int patience_ms = (int)(port->timeout_ms * (port->retries + 1) * 2 + 1000);
    size_t next = 0, out = 0, silent = 0;
    for (size_t i = 0; i < n; i++)
        questions[i].answered = questions[i].refused = false;
    memset(port->waiting, 0, port->flight * sizeof(*port->waiting));
    for (uint32_t place = 0; place < port->flight && next_question(port, questions, n, &next);
         place++, next++, out++)
        if (!send_one(port, &questions[next], place, (uint32_t)next))
            return fab_fail(err, PMIXFAB_ERR_IO, "ibnetdisc: a packet cannot be sent: %s", strerror(errno));
    while (out > 0) {
        int length = IB_MAD_SIZE;
        if (umad_recv(port->fd, port->in, &length, patience_ms) < 0) {
            if (errno == EINTR)
                continue;
            return fab_fail(err, PMIXFAB_ERR_IO, "ibnetdisc: no packet comes back: %s", strerror(errno));
        }
        const uint32_t place = take_one(port, questions, &silent);
        if (place == FAB_NONE)
            continue;
        out--;
        if (silent > patience || !next_question(port, questions, n, &next))
            continue;
        if (!send_one(port, &questions[next], place, (uint32_t)next))
            return fab_fail(err, PMIXFAB_ERR_IO, "ibnetdisc: a packet cannot be sent: %s", strerror(errno));
        next++;
        out++;
    }
    return PMIXFAB_OK;
}
