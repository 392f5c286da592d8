/*
 * front.c - the parts of a site outside of the daemon, played: the PMIx server's process, which records what
 * is announced, and munge with the resolver, by which hosts deliver. Every host has the address 10.B.C.D of
 * its number.
 */
#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/base/timer.h"
#include "fabricd/checker/checker.h"
#include "fabricd/front/front.h"
#include "fabricd/sources/entry.h"
#include "probes/core/record.h"
#include "test/fabrics/reports.h"
#include "test/sim/played.h"
#include "topo/base/array.h"

#define OWN_ADDRESS "10.255.0.1" /* of the scheduler's host */
#define CREDENTIALS 64           /* that were made and are not opened yet */

struct announcement {
    void (*done)(void *cbdata);
    void *cbdata;
    struct timer *timer;
};

struct credential {
    void *bytes;
    size_t size;
    unsigned uid;
    char address[INET_ADDRSTRLEN];
};

static struct {
    struct sim *sim;
    struct served *served;
    void (*deliver)(const char *credential, uint64_t number, void *cbdata);
    void *deliver_cbdata;
    void (*begin)(void *cbdata);
    void *begin_cbdata;
    struct credential credentials[CREDENTIALS];
    uint64_t made;
    uint64_t answered; /* the delivery that was answered last, and how */
    int code;
    uint64_t held;
    char reason[512];
    char unresolved[64]; /* a host whose name no name server answers for */
} played;

/* ---- munge and the resolver
 * ------------------------------------------------------------------------------------------- */

static munge_err_t played_decode(struct checker *checker, const char *credential,
                                 struct ingest_credential *out)
{
    (void)checker;
    const uint64_t number = strtoull(credential + strlen("MUNGE:"), NULL, 10);
    struct credential *c = &played.credentials[number % CREDENTIALS];
    if (c->bytes == NULL)
        return EMUNGE_CRED_REPLAYED;
    *out = (struct ingest_credential){.bytes = c->bytes, .size = (int)c->size, .uid = c->uid};
    inet_pton(AF_INET, c->address, &out->origin);
    c->bytes = NULL;
    return EMUNGE_SUCCESS;
}

/* "node0012" is 10.0.0.12 */
static void address_of(const char *host, char text[INET_ADDRSTRLEN])
{
    const unsigned number = (unsigned)strtoul(host + strcspn(host, "0123456789"), NULL, 10);
    snprintf(text, INET_ADDRSTRLEN, "10.%u.%u.%u", number >> 16 & 127, number >> 8 & 255, number & 255);
}

static int played_resolve(struct checker *checker, const char *host, struct ingest_addresses *out)
{
    (void)checker;
    char text[INET_ADDRSTRLEN];
    if (strcmp(host, played.unresolved) == 0)
        return EAI_AGAIN;
    address_of(host, text);
    out->n = inet_pton(AF_INET, text, &out->at[0]) == 1;
    return out->n > 0 ? 0 : EAI_NONAME;
}

void sim_unresolved(struct sim *s, const char *host)
{
    sim_note(s, "hand: no name server answers for %s", host == NULL ? "nobody" : host);
    snprintf(played.unresolved, sizeof(played.unresolved), "%s", host == NULL ? "" : host);
}

static bool played_is_ours(struct checker *checker, struct in_addr address)
{
    (void)checker;
    struct in_addr own;
    return inet_pton(AF_INET, OWN_ADDRESS, &own) == 1 && own.s_addr == address.s_addr;
}

static const struct ingest_calls played_calls = {played_decode, played_resolve, played_is_ours, 0, NULL};

void front_begin(struct sim *s)
{
    for (size_t i = 0; i < CREDENTIALS; i++)
        free(played.credentials[i].bytes);
    memset(&played, 0, sizeof(played));
    played.sim = s;
    ingest_calls = &played_calls;
}

static struct credential *next_credential(const char *address, unsigned uid)
{
    struct credential *c = &played.credentials[++played.made % CREDENTIALS];
    free(c->bytes);
    snprintf(c->address, sizeof(c->address), "%s", address);
    c->uid = uid;
    return c;
}

const char *front_credential(const char *host, unsigned uid, const void *bytes, size_t size)
{
    static char text[32];
    char address[INET_ADDRSTRLEN];
    address_of(host, address);
    struct credential *c = next_credential(address, uid);
    c->bytes = malloc(size + 1);
    if (c->bytes == NULL)
        sim_fail("out of memory");
    memcpy(c->bytes, bytes, size);
    c->size = size;
    snprintf(text, sizeof(text), "MUNGE:%llu", (unsigned long long)played.made);
    return text;
}

bool front_bring(const char *credential, uint64_t number)
{
    if (played.deliver == NULL)
        return false;
    played.deliver(credential, number, played.deliver_cbdata);
    return true;
}

static uint64_t deliver(const struct fab_report *report, const char *address, unsigned uid)
{
    struct fab_delivery delivery = {.digest = fab_report_digest(report)};
    char text[32];
    void *body = NULL;
    struct credential *c = next_credential(address, uid);
    snprintf(delivery.host, sizeof(delivery.host), "%s", report->host);
    if (fab_report_encode(report, &body, &delivery.size) != PMIXFAB_OK)
        sim_fail("out of memory");
    delivery.body = body;
    if (fab_delivery_encode(&delivery, &c->bytes, &c->size) != PMIXFAB_OK)
        sim_fail("out of memory");
    free(body);
    snprintf(text, sizeof(text), "MUNGE:%llu", (unsigned long long)played.made);
    if (played.deliver == NULL)
        sim_fail("nobody takes deliveries");
    played.deliver(text, played.made, played.deliver_cbdata);
    return played.made;
}

/* Until the delivery is answered; time passes only where nothing else is left to do. */
static int answer_of(struct sim *s, uint64_t number)
{
    for (unsigned i = 0; played.answered != number && i < 1000; i++) {
        sim_run_until_idle(s);
        if (played.answered != number)
            sim_advance(s, SIM_MS);
    }
    if (played.answered != number)
        sim_fail("a delivery is not answered");
    if (played.code != PMIXFAB_OK)
        sim_note(s, "delivery: refused: %s", played.reason);
    return played.code;
}

int front_deliver(struct sim *s, const char *from, unsigned uid, const void *bytes, size_t size)
{
    const char *credential = front_credential(from, uid, bytes, size);
    const uint64_t number = played.made;
    if (!front_bring(credential, number))
        sim_fail("nobody takes deliveries");
    return answer_of(s, number);
}

int sim_deliver(struct sim *s, const char *host, const char *firmware)
{
    struct host_hca hcas[8];
    struct fab_report report;
    struct fab_err err = {""};
    char address[INET_ADDRSTRLEN];
    unsigned n = 0;
    while (n < 8 && (hcas[n].node = site_hca(sim_site(s), host, n, &hcas[n].port)) != 0)
        n++;
    if (host_report(host, hcas, n, firmware, &report, &err) != PMIXFAB_OK)
        sim_fail("%s: %s", host, err.text);
    address_of(host, address);
    sim_note(s, "delivery: %s, %u HCAs, firmware %s", host, n, firmware);
    const uint64_t number = deliver(&report, address, 0);
    fab_report_destroy(&report);
    return answer_of(s, number);
}

/* As the host's own probes would report it: the items of all sources. */
int sim_deliver_record(struct sim *s, const char *record)
{
    struct fab_report report;
    char address[INET_ADDRSTRLEN];
    report_of_record(record, &report);
    address_of(report.host, address);
    sim_note(s, "delivery: %s, %u items", report.host, report.n_items);
    const uint64_t number = deliver(&report, address, 0);
    fab_report_destroy(&report);
    return answer_of(s, number);
}

/* ---- the PMIx server's process
 * ------------------------------------------------------------------------------------------ */

struct front {
    int unused;
};

struct front *front_new(void)
{
    static struct front front;
    return &front;
}

void front_free(struct front *front)
{
    (void)front;
}

int front_start(struct front *front, struct event_base *base, const struct config *config,
                struct served *served, struct fab_err *err)
{
    played.served = served;
    (void)front, (void)base, (void)config, (void)err;
    if (played.begin != NULL)
        played.begin(played.begin_cbdata);
    relay_up(true);
    return PMIXFAB_OK;
}

struct served *front_served(void)
{
    return played.served;
}

/* Nodes have no such process here: what they call means nothing. */
void front_stop(struct front *front)
{
    (void)front;
    if (node_running() != NULL)
        return;
    relay_up(false);
    played.served = NULL;
}

const char *front_uri(const struct front *front)
{
    (void)front;
    return node_running() != NULL ? "" : "played.0;tcp4://127.0.0.1:1";
}

void front_serve(struct front *front)
{
    (void)front;
    if (node_running() == NULL)
        relay_tell();
}

void front_stale(struct front *front, bool stale)
{
    (void)front;
    if (node_running() != NULL)
        return;
    sim_note(played.sim, "served: %s", stale ? "stale" : "fresh");
    relay_tell();
}

static void on_announced(void *arg)
{
    struct announcement announcement = *(struct announcement *)arg;
    timer_free(announcement.timer);
    free(arg);
    announcement.done(announcement.cbdata);
}

void front_announce(struct front *front, bool pending, const struct event_plane *planes, uint32_t n,
                    uint64_t generation, void (*done)(void *cbdata), void *cbdata)
{
    (void)front;
    struct announcement *announcement = calloc(1, sizeof(*announcement));
    if (announcement == NULL)
        sim_fail("out of memory");
    *announcement = (struct announcement){
        .done = done, .cbdata = cbdata, .timer = timer_new(NULL, on_announced, announcement)};
    sim_on_announced(played.sim, pending, planes, n, generation);
    timer_fire(announcement->timer);
}

void front_held(struct front *front, const char *host, uint64_t digest)
{
    (void)front, (void)host, (void)digest;
    relay_held(host, digest);
}

void front_scan(struct front *front, const char *host)
{
    (void)front;
    sim_note(played.sim, "scan request: %s", host == NULL ? "all hosts" : host);
    relay_scan(host);
}

void front_on_delivery(struct front *front, void (*fn)(const char *credential, uint64_t number, void *cbdata),
                       void *cbdata)
{
    (void)front;
    played.deliver = fn;
    played.deliver_cbdata = cbdata;
}

void front_on_begin(struct front *front, void (*fn)(void *cbdata), void *cbdata)
{
    (void)front;
    played.begin = fn;
    played.begin_cbdata = cbdata;
}

void front_on_replaced(struct front *front, void (*fn)(void *cbdata), void *cbdata)
{
    (void)front, (void)fn, (void)cbdata;
}

void front_answer(struct front *front, uint64_t number, int code, uint64_t held, const char *reason)
{
    (void)front;
    if (relay_answered(number, code, held, reason))
        return;
    played.answered = number;
    played.code = code;
    played.held = held;
    snprintf(played.reason, sizeof(played.reason), "%s", reason);
}

void front_turn_away(struct front *front, uint64_t number)
{
    front_answer(front, number, INGEST_NOBODY, 0, "nobody takes deliveries");
}

void front_status(const struct front *front, struct front_status *status)
{
    (void)front;
    *status = (struct front_status){.pid = 1, .why = ""};
}

bool front_refused(const struct front *front, unsigned *at, struct front_refused *out)
{
    (void)front, (void)at, (void)out;
    return false;
}

/* ---- the credential worker: nobody asks it here, as munge is played
 * ------------------------------------------------------- */

int checker_start(struct event_base *base, struct front *front, struct checker **out)
{
    (void)base, (void)front;
    *out = NULL;
    return PMIXFAB_OK;
}

void checker_stop(struct checker *checker)
{
    (void)checker;
}

void checker_free(struct checker *checker)
{
    (void)checker;
}

bool checker_ask_and_wait(struct checker *checker, enum checker_kind kind, const char *text,
                          struct checker_opened *out)
{
    (void)checker, (void)kind, (void)text, (void)out;
    sim_fail("the credential worker is asked");
}

void checker_status(const struct checker *checker, struct checker_status *status)
{
    (void)checker;
    *status = (struct checker_status){.why = ""};
}
