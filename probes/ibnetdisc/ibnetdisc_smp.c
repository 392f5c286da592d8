/*
 * ibnetdisc_smp.c - find the port of this host, send requests (several in flight), and read counters of
 * ports.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probes/core/facts.h"
#include "probes/ibnetdisc/ibnetdisc.h"

/*
 * ---- avoid a search of libibnetdisc that grows with the square of the fabric.
 *
 * After a discovery the library searches for chassis: for every node it walks a list of all system image
 * GUIDs, twice. That is a third of a sweep at 10,000 hosts, and would be a minute at 100,000; it cannot be
 * configured. We number chassis ourselves (observed.c), so the search is useless here. It skips a node
 * without a system image GUID, and the library reads that GUID with libibmad's mad_get_field64(). It finds
 * the function below instead, because a program's own functions go before those of its libraries. With
 * another linker, or another library, the search takes place and nothing else changes.
 *
 * The raw bytes of a node still contain the GUID for the probe.
 */

static _Thread_local bool hidden;

void ibnetdisc_hide_systems(bool hide)
{
    hidden = hide;
}

/* The function of libibmad. */
static uint64_t read_field(void *buf, int base_offs, enum MAD_FIELDS field)
{
    static _Atomic(uintptr_t) address;
    uintptr_t at = atomic_load_explicit(&address, memory_order_relaxed);
    if (at == 0) {
        at = (uintptr_t)dlsym(RTLD_NEXT, "mad_get_field64");
        atomic_store_explicit(&address, at, memory_order_relaxed);
    }
    return at == 0 ? 0 : ((uint64_t(*)(void *, int, enum MAD_FIELDS))at)(buf, base_offs, field);
}

uint64_t mad_get_field64(void *buf, int base_offs, enum MAD_FIELDS field)
{
    return hidden && field == IB_NODE_SYSTEM_GUID_F ? 0 : read_field(buf, base_offs, field);
}

/* ---- the port of this host ---- */

#define MAD_CLASS_DIR "/sys/class/infiniband_mad"

int ibnetdisc_target(const char *arg, char ca[UMAD_CA_NAME_LEN], int *port, struct fab_err *err)
{
    ca[0] = '\0';
    *port = 0;
    if (arg == NULL)
        return PMIXFAB_OK;
    size_t len = strcspn(arg, ":");
    if (len >= UMAD_CA_NAME_LEN ||
        strspn(arg, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.") < len)
        return fab_fail(
            err, PMIXFAB_ERR_INVAL,
            "ibnetdisc:%s: not the name of an HCA; give ibnetdisc[:CA[:PORT]], as ibnetdisc:mlx5_0:1", arg);
    if (arg[len] == ':') {
        const char *p = arg + len + 1;
        unsigned v = 0;
        for (; *p >= '0' && *p <= '9' && v < 1000; p++)
            v = v * 10 + (unsigned)(*p - '0');
        if (*p != '\0' || v < 1 || v > 254)
            return fab_fail(err, PMIXFAB_ERR_INVAL, "ibnetdisc:%s: \"%s\" is not a port; give 1 to 254", arg,
                            arg + len + 1);
        *port = (int)v;
    }
    memcpy(ca, arg, len);
    ca[len] = '\0';
    return PMIXFAB_OK;
}

const char *ibnetdisc_state_name(unsigned state)
{
    const char *const names[] = {"no state", "down", "init", "armed", "active"};
    return names[state <= 4 ? state : 0];
}

/*
 * Use libibumad first, because its ports may be simulated, and the files only to explain its error. (Its list
 * of HCAs is useless: it names one even if there is none.)
 */
int ibnetdisc_port(const char *ca, int num, umad_port_t *port, char *why, size_t size)
{
    char name[UMAD_CA_NAME_LEN];
    snprintf(name, sizeof(name), "%s", ca);
    if (umad_init() == 0 && umad_get_port(name[0] != '\0' ? name : NULL, num, port) == 0)
        return PMIXFAB_OK;
    if ((ca[0] != '\0' || num > 0) && umad_get_port(NULL, 0, port) == 0) {
        char wanted[16] = "";
        if (num > 0)
            snprintf(wanted, sizeof(wanted), ":%d", num);
        snprintf(why, size, "no InfiniBand port %s%s on this host; there is %s:%d", ca, wanted, port->ca_name,
                 port->portnum);
        umad_release_port(port);
    } else if (access(MAD_CLASS_DIR, F_OK) != 0) {
        snprintf(why, size,
                 "no InfiniBand port: " MAD_CLASS_DIR
                 " is absent (no HCA, or the module ib_umad is not loaded)");
    } else {
        snprintf(why, size, "no InfiniBand port: " MAD_CLASS_DIR " lists none that can be read");
    }
    return PMIXFAB_ERR_NOTFOUND;
}

/*
 * A port that no subnet manager has brought up sees itself at most. That must not pass for the whole subnet.
 */
static int check_port(const umad_port_t *port, struct fab_err *err)
{
    if (strcmp(port->link_layer, "Ethernet") == 0)
        return fab_fail(err, PMIXFAB_ERR_NOTFOUND,
                        "ibnetdisc:%s:%d: the port runs Ethernet; give another one, as ibnetdisc:mlx5_0:1",
                        port->ca_name, port->portnum);
    if (port->state == FAB_PORT_INIT || port->state == FAB_PORT_ARMED)
        return fab_fail(err, PMIXFAB_ERR_NOTFOUND,
                        "ibnetdisc:%s:%d: no subnet manager has brought the port up (state %s); start OpenSM",
                        port->ca_name, port->portnum, ibnetdisc_state_name(port->state));
    if (port->state != FAB_PORT_ACTIVE)
        return fab_fail(err, PMIXFAB_ERR_NOTFOUND,
                        "ibnetdisc:%s:%d: the port has no link (state %s); check its cable", port->ca_name,
                        port->portnum, ibnetdisc_state_name(port->state));
    return PMIXFAB_OK;
}

int ibnetdisc_usable(const struct probe_config *config, umad_port_t *port, struct fab_err *err)
{
    char ca[UMAD_CA_NAME_LEN], why[200];
    int num;
    int rc = ibnetdisc_target(config->arg, ca, &num, err);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = ibnetdisc_port(ca, num, port, why, sizeof(why));
    if (rc != PMIXFAB_OK)
        return fab_fail(err, rc, "ibnetdisc: %s", why);
    rc = check_port(port, err);
    if (rc != PMIXFAB_OK)
        umad_release_port(port);
    return rc;
}

/* ---- requests through libibumad, several in flight ---- */

/* umad_size() changes when a port is opened. */
#define PACKET (sizeof(struct ib_user_mad) + IB_MAD_SIZE)

struct smp_port {
    int fd, agent, class;
    unsigned flight, timeout_ms, retries;
    uint32_t next; /* transaction number of the next request */
    uint64_t sent;
    void *out, *in;     /* a packet each way */
    uint32_t *waiting;  /* transaction numbers of those in flight, 0: a free place */
    uint32_t *question; /* and the requests that they belong to */
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
                        "ibnetdisc:%s:%d: cannot open the port; check the access to /dev/infiniband/umad*",
                        at->ca_name, at->portnum);
    }
    *out = port;
    return PMIXFAB_OK;
}

/* Send into a free place; return false if the packet could not be sent. */
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

/* Receive a packet. Return the place that it frees, or FAB_NONE if it belongs to no request. */
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
        smp->refused = true; /* it answers, but not that request */
        return place;
    }
    smp->answered = true;
    memcpy(smp->data, mad + IB_SMP_DATA_OFFS, ATTRIBUTE_SIZE);
    return place;
}

/* Find the next request from *next on with a destination; return false if there is none. */
static bool next_question(const struct smp_port *port, const struct smp *questions, size_t n, size_t *next)
{
    while (*next < n && port->class == IB_PERFORMANCE_CLASS && questions[*next].lid == 0)
        *next += 1;
    return *next < n;
}

int smp_ask(struct smp_port *port, struct smp *questions, size_t n, size_t patience, struct fab_err *err)
{
    /* umad_recv() may give up before the kernel does; silence for this long is an error. */
    const int patience_ms = (int)(port->timeout_ms * (port->retries + 1) * 2 + 1000);
    size_t next = 0, out = 0, silent = 0;
    for (size_t i = 0; i < n; i++)
        questions[i].answered = questions[i].refused = false;
    memset(port->waiting, 0, port->flight * sizeof(*port->waiting));
    for (uint32_t place = 0; place < port->flight && next_question(port, questions, n, &next);
         place++, next++, out++)
        if (!send_one(port, &questions[next], place, (uint32_t)next))
            return fab_fail(err, PMIXFAB_ERR_IO, "ibnetdisc: cannot send a packet: %s", strerror(errno));
    while (out > 0) {
        int length = IB_MAD_SIZE;
        if (umad_recv(port->fd, port->in, &length, patience_ms) < 0) {
            if (errno == EINTR)
                continue;
            return fab_fail(err, PMIXFAB_ERR_IO, "ibnetdisc: no packet is received: %s", strerror(errno));
        }
        const uint32_t place = take_one(port, questions, &silent);
        if (place == FAB_NONE)
            continue;
        out--;
        if (silent > patience || !next_question(port, questions, n, &next))
            continue;
        if (!send_one(port, &questions[next], place, (uint32_t)next))
            return fab_fail(err, PMIXFAB_ERR_IO, "ibnetdisc: cannot send a packet: %s", strerror(errno));
        next++;
        out++;
    }
    return PMIXFAB_OK;
}

/* ---- counters of ports, by queries to the performance management of their devices ---- */

#define COUNTERS_TIMEOUT_MS 200u
#define COUNTERS_RETRIES    2u
#define EXTENDED            0x600 /* of a ClassPortInfo's capabilities: counters of 64 bits */

static const struct {
    enum probe_counter counter;
    int field, extended; /* extended 0: there is none */
} fields[] = {
    {COUNTER_SYMBOL_ERRORS, IB_PC_ERR_SYM_F, 0},
    {COUNTER_LINK_RECOVERIES, IB_PC_LINK_RECOVERS_F, 0},
    {COUNTER_LINK_DOWNED, IB_PC_LINK_DOWNED_F, 0},
    {COUNTER_RECEIVE_ERRORS, IB_PC_ERR_RCV_F, 0},
    {COUNTER_LOCAL_INTEGRITY, IB_PC_ERR_LOCALINTEG_F, 0},
    {COUNTER_BUFFER_OVERRUNS, IB_PC_ERR_EXCESS_OVR_F, 0},
    {COUNTER_REMOTE_ERRORS, IB_PC_ERR_PHYSRCV_F, 0},
    {COUNTER_DISCARDS, IB_PC_XMT_DISCARDS_F, 0},
    {COUNTER_SENT_WORDS, IB_PC_XMT_BYTES_F, IB_PC_EXT_XMT_BYTES_F},
    {COUNTER_RECEIVED_WORDS, IB_PC_RCV_BYTES_F, IB_PC_EXT_RCV_BYTES_F},
    {COUNTER_SENT_PACKETS, IB_PC_XMT_PKTS_F, IB_PC_EXT_XMT_PKTS_F},
    {COUNTER_RECEIVED_PACKETS, IB_PC_RCV_PKTS_F, IB_PC_EXT_RCV_PKTS_F},
};

/* Return the LID of a port's performance management; 0: none. */
static uint16_t lid_of(const struct fab_inventory *inv, uint64_t guid, uint32_t num)
{
    const uint32_t n = fab_inventory_find(inv, guid);
    if (n == FAB_NONE)
        return 0;
    if (inv->nodes[n].kind == FAB_SWITCH)
        return inv->nodes[n].lid;
    const uint32_t port = fab_inventory_port(inv, n, num);
    return port == FAB_NONE ? 0 : inv->ports[port].lid;
}

/* Send to those with a LID; the others stay unanswered. */
static int ask_attribute(struct smp_port *port, struct smp *questions, const uint16_t *lids,
                         const struct probe_reading *list, uint32_t n, uint16_t attribute,
                         struct fab_err *err)
{
    for (uint32_t i = 0; i < n; i++)
        questions[i] = (struct smp){.lid = lids[i], .attribute = attribute, .modifier = list[i].num};
    return smp_ask(port, questions, n, n, err);
}

static void read_plain(const struct smp *question, struct probe_reading *reading)
{
    uint8_t data[IB_PC_DATA_SZ] = {0};
    memcpy(data, question->data, sizeof(question->data));
    reading->state = question->answered ? READING_GOOD : question->refused ? READING_REFUSED : READING_SILENT;
    for (size_t k = 0; question->answered && k < sizeof(fields) / sizeof(fields[0]); k++)
        reading->value[fields[k].counter] = mad_get_field(data, 0, fields[k].field);
}

static void read_extended(const struct smp *question, struct probe_reading *reading)
{
    uint8_t data[IB_PC_DATA_SZ] = {0};
    memcpy(data, question->data, sizeof(question->data));
    for (size_t k = 0; question->answered && k < sizeof(fields) / sizeof(fields[0]); k++)
        if (fields[k].extended != 0)
            reading->value[fields[k].counter] = mad_get_field64(data, 0, fields[k].extended);
}

static int read_all(struct smp_port *port, struct smp *questions, const uint16_t *lids,
                    struct probe_reading *list, uint32_t n, struct fab_err *err)
{
    uint16_t *extended = calloc(n + 1, sizeof(*extended));
    if (extended == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "ibnetdisc: out of memory");
    int rc = ask_attribute(port, questions, lids, list, n, CLASS_PORT_INFO, err);
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < n; i++)
        if (questions[i].answered && (probe_be(questions[i].data + 2, 2) & EXTENDED) != 0)
            extended[i] = lids[i];
    if (rc == PMIXFAB_OK)
        rc = ask_attribute(port, questions, lids, list, n, IB_GSI_PORT_COUNTERS, err);
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < n; i++)
        if (lids[i] != 0)
            read_plain(&questions[i], &list[i]);
    if (rc == PMIXFAB_OK)
        rc = ask_attribute(port, questions, extended, list, n, IB_GSI_PORT_COUNTERS_EXT, err);
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < n; i++)
        if (extended[i] != 0)
            read_extended(&questions[i], &list[i]);
    free(extended);
    return rc;
}

int ibnetdisc_counters(const struct probe_config *config, const struct fab_inventory *last,
                       struct probe_reading *list, uint32_t n, struct fab_err *err)
{
    umad_port_t at;
    struct smp_port *port = NULL;
    struct smp *questions = calloc(n + 1, sizeof(*questions));
    uint16_t *lids = calloc(n + 1, sizeof(*lids));
    uint32_t known = 0;
    int rc = PMIXFAB_OK;
    if (questions == NULL || lids == NULL) {
        free(questions);
        free(lids);
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "ibnetdisc: out of memory for %u ports", n);
    }
    for (uint32_t i = 0; i < n; i++) {
        lids[i] = list[i].state == READING_NONE ? lid_of(last, list[i].guid, list[i].num) : 0;
        known += lids[i] != 0;
    }
    if (known > 0) {
        rc = ibnetdisc_usable(config, &at, err);
        if (rc == PMIXFAB_OK) {
            rc = smp_open(&at, IB_PERFORMANCE_CLASS,
                          config->max_smps != 0 ? config->max_smps : IBNETDISC_MAX_SMPS, COUNTERS_TIMEOUT_MS,
                          COUNTERS_RETRIES, &port, err);
            if (rc == PMIXFAB_OK)
                rc = read_all(port, questions, lids, list, n, err);
            smp_close(port);
            umad_release_port(&at);
        }
    }
    free(questions);
    free(lids);
    return rc;
}
