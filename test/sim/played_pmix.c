/*
 * played_pmix.c - the parts of a site outside of the daemon, played: the PMIx server's process, which records
 * what is announced, and munge with the resolver, by which hosts deliver. Every host has the address 10.B.C.D
 * of its number.
 */
#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/base/timer.h"
#include "fabricd/pmix/pmix_server.h"
#include "fabricd/serving/rundir.h"
#include "fabricd/sources/entry.h"
#include "probes/core/record.h"
#include "test/fabrics/reports.h"
#include "test/sim/played.h"

#define OWN_ADDRESS "10.255.0.1" /* of the scheduler's host */

struct announcement {
    void (*done)(void *cbdata);
    void *cbdata;
    struct timer *timer;
};

static struct {
    struct sim *sim;
    bool serving;                /* the scheduler serves, */
    char rundir[4096];           /* this run directory */
    struct event_plane *pending; /* of the generation that is being published */
    uint32_t n_pending;
    bool answered; /* the delivery of a hand, and how */
    int code;
    char reason[512];
    char unresolved[64]; /* a host whose name no name server answers for */
} played;

/* ---- munge and the resolver
 * ------------------------------------------------------------------------------------------- */

/* A credential has its maker, his address and the payload in its text. */
static munge_err_t played_encode(const void *bytes, size_t size, char **text)
{
    const struct sim_node *node = node_running();
    struct in_addr address;
    if (node != NULL && node_munge_hangs(node)) {
        seam_hold();
        return EMUNGE_SOCKET;
    }
    if (node == NULL)
        inet_pton(AF_INET, OWN_ADDRESS, &address);
    else
        sim_address(node_host(node), &address);
    char *out = *text = malloc(32 + 2 * size);
    if (out == NULL)
        sim_fail("out of memory");
    out += sprintf(out, "MUNGE:%08x:", (unsigned)address.s_addr);
    for (size_t i = 0; i < size; i++)
        out += sprintf(out, "%02x", ((const unsigned char *)bytes)[i]);
    return EMUNGE_SUCCESS;
}

static munge_err_t played_decode(const char *text, struct credential_payload *out)
{
    unsigned address, byte;
    *out = (struct credential_payload){.maker = {.uid = (uid_t)-1}};
    if (sscanf(text, "MUNGE:%8x:", &address) != 1)
        return EMUNGE_CRED_INVALID;
    const char *hex = text + strlen("MUNGE:00000000:");
    unsigned char *bytes = malloc(strlen(hex) / 2 + 1);
    if (bytes == NULL)
        sim_fail("out of memory");
    *out = (struct credential_payload){.bytes = bytes, .maker = {.uid = 0, .origin = {address}}};
    for (; sscanf(hex, "%2x", &byte) == 1; hex += 2)
        bytes[out->size++] = (unsigned char)byte;
    return EMUNGE_SUCCESS;
}

void sim_address(const char *host, struct in_addr *address)
{
    const unsigned number = (unsigned)strtoul(host + strcspn(host, "0123456789"), NULL, 10);
    address->s_addr = htonl(10u << 24 | (number & 0x7fffff));
}

static int played_resolve(const char *host, int family, struct credential_addresses *out)
{
    struct sockaddr_in *address = &out->at[0].v4;
    (void)family;
    out->n = 0;
    if (strcmp(host, played.unresolved) == 0)
        return EAI_AGAIN;
    *address = (struct sockaddr_in){.sin_family = AF_INET};
    if (strcmp(host, "scheduler") == 0)
        inet_pton(AF_INET, OWN_ADDRESS, &address->sin_addr);
    else
        sim_address(host, &address->sin_addr);
    out->n = 1;
    return 0;
}

void sim_unresolved(struct sim *s, const char *host)
{
    sim_note(s, "hand: no name server answers for %s", host == NULL ? "nobody" : host);
    snprintf(played.unresolved, sizeof(played.unresolved), "%s", host == NULL ? "" : host);
}

static const struct credential_calls played_calls = {played_encode, played_decode, played_resolve};

void front_begin(struct sim *s)
{
    free(played.pending);
    memset(&played, 0, sizeof(played));
    played.sim = s;
    credential_calls = &played_calls;
}

/* ---- deliveries of hands -------------------------------------------------------------------------- */

static void on_delivered(int code, uint64_t held, const char *reason, void *cbdata)
{
    (void)held, (void)cbdata;
    played.answered = true;
    played.code = code;
    snprintf(played.reason, sizeof(played.reason), "%s", reason);
}

/* Time passes only where nothing else is left to do. */
int front_deliver(struct sim *s, const char *from, unsigned uid, const void *bytes, size_t size)
{
    struct credential_maker maker = {.uid = uid};
    void *copy = malloc(size + 1);
    if (copy == NULL)
        sim_fail("out of memory");
    memcpy(copy, bytes, size);
    sim_address(from, &maker.origin);
    played.answered = false;
    ingest_deliver(sim_ingest(s), &maker, copy, size, on_delivered, NULL);
    for (unsigned i = 0; !played.answered && i < 1000; i++) {
        sim_run_until_idle(s);
        if (!played.answered)
            sim_advance(s, SIM_MS);
    }
    if (!played.answered)
        sim_fail("a delivery is not answered");
    if (played.code != PMIXFAB_OK)
        sim_note(s, "delivery: refused: %s", played.reason);
    return played.code;
}

static int deliver(struct sim *s, const struct fab_report *report)
{
    struct fab_delivery delivery = {.digest = fab_report_digest(report)};
    void *body = NULL, *bytes = NULL;
    size_t size = 0;
    snprintf(delivery.host, sizeof(delivery.host), "%s", report->host);
    if (fab_report_encode(report, &body, &delivery.size) != PMIXFAB_OK)
        sim_fail("out of memory");
    delivery.body = body;
    if (fab_delivery_encode(&delivery, &bytes, &size) != PMIXFAB_OK)
        sim_fail("out of memory");
    const int code = front_deliver(s, report->host, 0, bytes, size);
    free(body);
    free(bytes);
    return code;
}

int sim_deliver(struct sim *s, const char *host, const char *firmware)
{
    struct host_hca hcas[8];
    struct fab_report report;
    struct fab_err err = {""};
    unsigned n = 0;
    while (n < 8 && (hcas[n].node = site_hca(sim_site(s), host, n, &hcas[n].port)) != 0)
        n++;
    if (host_report(host, hcas, n, firmware, &report, &err) != PMIXFAB_OK)
        sim_fail("%s: %s", host, err.text);
    sim_note(s, "delivery: %s, %u HCAs, firmware %s", host, n, firmware);
    const int code = deliver(s, &report);
    fab_report_destroy(&report);
    return code;
}

/* As the host's own probes would report it: the items of all sources. */
int sim_deliver_record(struct sim *s, const char *record)
{
    struct fab_report report;
    report_of_record(record, &report);
    sim_note(s, "delivery: %s, %u items", report.host, report.n_items);
    const int code = deliver(s, &report);
    fab_report_destroy(&report);
    return code;
}

/* ---- the PMIx server's process
 * ------------------------------------------------------------------------------------------ */

struct pmix_server {
    bool serves; /* the scheduler's; not of a daemon that runs once */
};

struct pmix_server *pmix_server_new(void)
{
    return calloc(1, sizeof(struct pmix_server));
}

void pmix_server_free(struct pmix_server *server)
{
    free(server);
}

int pmix_server_start(struct pmix_server *server, struct event_base *base, const struct config *config,
                      struct fab_err *err)
{
    (void)base, (void)err;
    if (node_running() != NULL)
        return PMIXFAB_OK;
    server->serves = played.serving = true;
    snprintf(played.rundir, sizeof(played.rundir), "%s", config->rundir);
    return PMIXFAB_OK;
}

void pmix_server_stop(struct pmix_server *server)
{
    if (server->serves)
        server->serves = played.serving = false;
}

struct served *front_served(void)
{
    return played.serving ? sim_served(played.sim) : NULL;
}

const char *pmix_server_uri(const struct pmix_server *server)
{
    (void)server;
    return node_running() != NULL ? "" : "played.0;tcp4://127.0.0.1:1";
}

void pmix_server_repair(struct pmix_server *server)
{
    (void)server;
}

static void on_announced(void *arg)
{
    struct announcement announcement = *(struct announcement *)arg;
    timer_free(announcement.timer);
    free(arg);
    announcement.done(announcement.cbdata);
}

/* Nodes have no such process here: what they say to callers means nothing. */
void pmix_server_wait(struct pmix_server *server, uint64_t generation, void (*next)(void *cbdata),
                      void *cbdata)
{
    if (!server->serves) {
        next(cbdata);
        return;
    }
    struct announcement *announcement = calloc(1, sizeof(*announcement));
    if (announcement == NULL)
        sim_fail("out of memory");
    *announcement = (struct announcement){
        .done = next, .cbdata = cbdata, .timer = timer_new(NULL, on_announced, announcement)};
    sim_on_announced(played.sim, false, played.pending, played.n_pending, generation);
    timer_fire(announcement->timer);
}

void pmix_server_on_replaced(struct pmix_server *server, void (*fn)(void *cbdata), void *cbdata)
{
    (void)server, (void)fn, (void)cbdata;
}

void pmix_server_status(const struct pmix_server *server, struct pmix_server_status *status)
{
    (void)server;
    *status = (struct pmix_server_status){.pid = 1, .why = ""};
}

/* ---- the run directory's file `pending` ------------------------------------------------------------- */

/* Of the daemon that serves. */
static bool is_served(const char *rundir)
{
    return played.serving && node_running() == NULL && strcmp(rundir, played.rundir) == 0;
}

void rundir_begin(const char *rundir, uint64_t generation, const struct event_plane *planes, uint32_t n)
{
    if (!is_served(rundir))
        return;
    free(played.pending);
    played.pending = calloc((size_t)n + 1, sizeof(*planes));
    if (played.pending == NULL)
        sim_fail("out of memory");
    if (n > 0)
        memcpy(played.pending, planes, n * sizeof(*planes));
    played.n_pending = n;
    sim_on_announced(played.sim, true, planes, n, generation);
}

void rundir_end(const char *rundir)
{
    (void)rundir;
}

void rundir_set_stale(const char *rundir, struct served *served, bool stale)
{
    if (is_served(rundir) && served_is_stale(served) != stale)
        sim_note(played.sim, "served: %s", stale ? "stale" : "fresh");
    served_set_stale(served, stale);
    rundir_mark_stale(rundir, stale);
}
