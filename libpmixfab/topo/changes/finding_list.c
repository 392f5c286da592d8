/* finding_list.c - findings: their words and order, what they are about, and how a check adds one. */
#include "topo/changes/check.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "topo/base/array.h"
#include "topo/base/natural.h"
#include "topo/base/order.h"
#include "topo/base/text.h"
#include "topo/changes/changes_private.h"

static const struct {
    const char *name;
    enum fab_severity severity;
    const char *hint;
} kinds[] = {
    [FAB_CHECK_STALE] =
        {"stale", FAB_SEVERITY_ERROR,
         "what is served is older than that; put right what it says, then: fabricctl refresh"},
    [FAB_CHECK_NO_CABLE] = {"no-cable", FAB_SEVERITY_ERROR,
                            "is this host's own cable in, and its port up (ibstat)? Then: fabricctl refresh"},
    [FAB_CHECK_PARTIAL] = {"partial", FAB_SEVERITY_ERROR,
                           "does what is there hang, or restart? When it is gone for good: fabricctl refresh "
                           "--accept-partial"},
    [FAB_CHECK_HISTORY_GONE] =
        {"history-gone", FAB_SEVERITY_ERROR,
         "is there a backup that has them? (fabricctl restore FILE) Else, when it is known: "
         "fabricctl ack FINDING"},
    [FAB_CHECK_HISTORY_CHANGED] =
        {"history-changed", FAB_SEVERITY_ERROR,
         "look at the disk; restore a backup that fabricctl check --store finds good, or acknowledge it"},
    [FAB_CHECK_LOST] = {"lost", FAB_SEVERITY_ERROR,
                        "is it up, and its cables in? When it is gone for good: fabricctl forget NAME"},
    [FAB_CHECK_MISSING] = {"missing", FAB_SEVERITY_ERROR,
                           "is it up, and its cable in? When it is gone for good: fabricctl forget NAME"},
    [FAB_CHECK_FLAPPING] =
        {"flapping", FAB_SEVERITY_ERROR,
         "reseat or replace the cable, look at what is at its ends; it is believed again when it "
         "is quiet, or now: fabricctl refresh --release"},
    [FAB_CHECK_DUPLICATE_NAME] = {"duplicate-name", FAB_SEVERITY_ERROR,
                                  "give each a name of its own: its node description, or a line of the "
                                  "configured map"},
    [FAB_CHECK_CLAIMED_TWICE] = {"claimed-twice", FAB_SEVERITY_ERROR,
                                 "which host is it in? (ibstat there) Name it in the HCA's description or "
                                 "the configured map; or stop "
                                 "fabricd on the other one, then: fabricctl forget OTHER"},
    [FAB_CHECK_NO_MANAGER] = {"no-manager", FAB_SEVERITY_ERROR,
                              "does a subnet manager run? (sminfo; systemctl status opensm)"},
    [FAB_CHECK_MANAGER_GONE] = {"manager-gone", FAB_SEVERITY_ERROR,
                                "start it, or another one: until then what comes up stays inactive "
                                "(sminfo; systemctl status opensm)"},
    [FAB_CHECK_MANAGER_CHANGED] = {"manager-changed", FAB_SEVERITY_WARNING,
                                   "does the usual one still run, and is its priority the highest? Was it "
                                   "meant to be so: fabricctl ack FINDING"},
    [FAB_CHECK_PMIX_REPLACED] =
        {"pmix-replaced", FAB_SEVERITY_WARNING,
         "does it come again? Then somebody sends what it does not survive: fabricctl "
         "status says who; see docs/operations.md"},
    [FAB_CHECK_PORT_DISABLED] =
        {"port-disabled", FAB_SEVERITY_WARNING,
         "is that meant? Else: ibportstate LID PORT enable (LIDs: fabricctl switches)"},
    [FAB_CHECK_COUNTERS] = {"counters-grow", FAB_SEVERITY_WARNING,
                            "reseat or replace the cable, then the devices at its ends; see fabricctl "
                            "counters"},
    [FAB_CHECK_DISABLED_PORTS] = {"disabled-ports", FAB_SEVERITY_NOTICE,
                                  "if one is to be used: ibportstate LID PORT enable"},
    [FAB_CHECK_PORT_DOWN] = {"port-down", FAB_SEVERITY_ERROR,
                             "look at the cable and at both of its ports; was one disabled?"},
    [FAB_CHECK_INACTIVE_LONG] =
        {"inactive-long", FAB_SEVERITY_ERROR,
         "does the subnet manager know the port? Look at its log, and at what is at the "
         "other end"},
    [FAB_CHECK_NAME_MAP] =
        {"name-map", FAB_SEVERITY_WARNING,
         "put right what it says: what is new goes unnamed, or by its old name, until then"},
    [FAB_CHECK_METRICS] =
        {"metrics-failed", FAB_SEVERITY_WARNING,
         "put right what it says (fabricd --check-config), or change [metrics]; until then the "
         "site's monitoring sees nothing new"},
    [FAB_CHECK_OLD_CAPTURE] = {"old-capture", FAB_SEVERITY_WARNING,
                               "does what writes the file still run? What is served is as old as the file"},
    [FAB_CHECK_LINK_LOST] = {"link-lost", FAB_SEVERITY_WARNING,
                             "is the cable in, and are both of its ports up? When it was taken out for good: "
                             "fabricctl forget FINDING"},
    [FAB_CHECK_INACTIVE] = {"inactive", FAB_SEVERITY_WARNING,
                            "the subnet manager has not brought it up: look at the manager's log"},
    [FAB_CHECK_SLOW_LINK] = {"slow-link", FAB_SEVERITY_WARNING,
                             "reseat or replace the cable; compare the speeds and widths that both ports are "
                             "set to (ibportstate)"},
    [FAB_CHECK_WRONG_RAIL] =
        {"wrong-rail", FAB_SEVERITY_WARNING,
         "plug it into the leaf of its rail; fabricctl rails shows which leaves those are"},
    [FAB_CHECK_FEW_UPLINKS] = {"few-uplinks", FAB_SEVERITY_WARNING,
                               "look for a cable that is out, dead, or plugged in elsewhere"},
    [FAB_CHECK_FEW_PORTS] = {"few-ports", FAB_SEVERITY_WARNING,
                             "is an HCA dead or not in its slot, or a cable out? (lspci and ibstat there)"},
    [FAB_CHECK_MANY_PORTS] = {"many-ports", FAB_SEVERITY_WARNING,
                              "do two hosts have this name? Compare the GUIDs: fabricctl devices HOST"},
    [FAB_CHECK_CONFUSING_NAME] =
        {"confusing-name", FAB_SEVERITY_WARNING,
         "give each host a name of its own: its node description, or a line of the configured map"},
    [FAB_CHECK_SAME_NAME] = {"same-name", FAB_SEVERITY_WARNING,
                             "give the host or the switch another name: its node description, or a line of "
                             "the configured map"},
    [FAB_CHECK_SELF_CABLE] = {"self-cable", FAB_SEVERITY_WARNING,
                              "one end is in the wrong port: where should it be?"},
    [FAB_CHECK_NOWHERE] = {"leads-nowhere", FAB_SEVERITY_WARNING,
                           "what is at the other end does not answer: a hung device, or firmware that wants "
                           "a reset"},
    [FAB_CHECK_NOT_SWEPT] = {"not-swept", FAB_SEVERITY_WARNING,
                             "is it in a fabric that this fabricd does not sweep? Else look at its cable"},
    [FAB_CHECK_CONFLICT] = {"conflict", FAB_SEVERITY_WARNING,
                            "ask both again: fabricctl refresh --host HOST; if it stays, look at the port"},
    [FAB_CHECK_SLOW_SLOT] = {"slow-slot", FAB_SEVERITY_WARNING,
                             "reseat the card, or put it into a wider or newer slot (lspci -vv: LnkSta)"},
    [FAB_CHECK_NOT_REPORTED] = {"not-reported", FAB_SEVERITY_NOTICE,
                                "does the host's driver know the device? (ibv_devinfo there)"},
    [FAB_CHECK_FIRMWARE] = {"firmware", FAB_SEVERITY_NOTICE, "bring it to the version of the others"},
    [FAB_CHECK_OTHER_KIND] = {"other-kind", FAB_SEVERITY_NOTICE,
                              "were they built so? Else compare one of them with the others"},
    [FAB_CHECK_UNNAMED] = {"unnamed", FAB_SEVERITY_NOTICE,
                           "set its node description, [names] pattern, or a line of the configured map"},
};

static bool is_check_kind(enum fab_check_kind kind)
{
    return kind >= FAB_CHECK_STALE && kind < FAB_CHECK_KINDS;
}

const char *fab_check_name(enum fab_check_kind kind)
{
    return is_check_kind(kind) ? kinds[kind].name : "unknown";
}

const char *fab_check_hint(enum fab_check_kind kind)
{
    return is_check_kind(kind) ? kinds[kind].hint : "";
}

enum fab_severity fab_check_severity(enum fab_check_kind kind)
{
    return is_check_kind(kind) ? kinds[kind].severity : FAB_SEVERITY_NOTICE;
}

const char *fab_severity_name(enum fab_severity severity)
{
    return severity == FAB_SEVERITY_ERROR ? "error" : severity == FAB_SEVERITY_WARNING ? "warning" : "notice";
}

/* ---- what it is about ------------------------------------------------------------------------------- */

struct fab_about fab_about_node(const struct fab_node *node)
{
    return (struct fab_about){.end[0].guid = node->guid};
}

struct fab_about fab_about_port(const struct fab_inventory *inv, const struct fab_port *port)
{
    return (struct fab_about){.end[0] = {inv->nodes[port->node].guid, port->num}};
}

struct fab_about fab_about_cable(const struct fab_inventory *inv, const struct fab_port *port)
{
    struct fab_about about = fab_about_port(inv, port);
    if (port->peer != FAB_NONE)
        about.end[1] = fab_about_port(inv, &inv->ports[port->peer]).end[0];
    return about;
}

struct fab_about fab_about_text(const char *text)
{
    return (struct fab_about){.text = text};
}

/* It goes into the store, and operators write it down: the bytes that are hashed are the same everywhere. */
uint64_t fab_finding_id(enum fab_check_kind kind, const struct fab_about *about)
{
    const bool swap = (FAB_ORDER(about->end[0].guid, about->end[1].guid)
                           ?: FAB_ORDER(about->end[0].port, about->end[1].port)) > 0;
    /* what is lost was missing, and goes on as the same */
    const char *name = fab_check_name(kind == FAB_CHECK_LOST ? FAB_CHECK_MISSING : kind);
    char text[FAB_LINK_TEXT];
    int len = snprintf(text, sizeof(text), "%s %" PRIx64 " %" PRIu32 " %" PRIx64 " %" PRIu32 " %.1000s", name,
                       about->end[swap].guid, about->end[swap].port, about->end[!swap].guid,
                       about->end[!swap].port, about->text == NULL ? "" : about->text);
    return check_hash(text, (size_t)len, 0) ?: 1;
}

void fab_finding_id_text(uint64_t id, char text[FAB_FINDING_ID_TEXT])
{
    snprintf(text, FAB_FINDING_ID_TEXT, "%016" PRIx64, id);
}

bool fab_finding_id_matches(const char text[FAB_FINDING_ID_TEXT], const char *digits)
{
    return strlen(digits) >= FAB_FINDING_DIGITS && strncmp(text, digits, strlen(digits)) == 0;
}

/* ---- noting it -------------------------------------------------------------------------------------- */

int fab_findings_add(struct fab_findings *findings, enum fab_check_kind kind, struct fab_about about,
                     const char *where, const char *what)
{
    char clean_what[CHECK_WHAT_TEXT], clean[FAB_LINK_TEXT];
    size_t len = fab_text_clean(clean_what, sizeof(clean_what), what, strlen(what), NULL) + 1;
    size_t at = fab_text_clean(clean, sizeof(clean), where, strlen(where), NULL) + 1;
    char *text =
        FAB_ARRAY_ROOM(&findings->findings, &findings->cap, findings->n + 1) ? malloc(at + len) : NULL;
    if (text == NULL)
        return PMIXFAB_ERR_NOMEM;
    memcpy(text, clean, at);
    memcpy(text + at, clean_what, len);
    findings->findings[findings->n++] = (struct fab_finding){.kind = kind,
                                                             .id = fab_finding_id(kind, &about),
                                                             .state = about.state,
                                                             .end = {about.end[0], about.end[1]},
                                                             .where = text,
                                                             .what = text + at};
    return PMIXFAB_OK;
}

static int compare_findings(const void *x, const void *y)
{
    const struct fab_finding *a = x, *b = y;
    return FAB_ORDER(fab_check_severity(b->kind), fab_check_severity(a->kind))
           ?: FAB_ORDER(a->kind, b->kind) ?: fab_natural_cmp(a->where, b->where)
           ?: strcmp(a->what, b->what);
}

void fab_findings_sort(struct fab_findings *findings)
{
    if (findings->n > 1)
        qsort(findings->findings, findings->n, sizeof(*findings->findings), compare_findings);
}

void fab_findings_destroy(struct fab_findings *findings)
{
    if (findings == NULL)
        return;
    for (uint32_t i = 0; i < findings->n; i++)
        free(findings->findings[i].where);
    free(findings->findings);
    *findings = (struct fab_findings){0};
}

/* ---- a check ----------------------------------------------------------------------------------------- */

uint64_t check_hash(const void *bytes, size_t len, uint64_t seed)
{
    return XXH3_64bits_withSeed(bytes, len, seed);
}

void *check_array(struct check *c, size_t n, size_t size)
{
    void *array = c->rc == PMIXFAB_OK ? fab_scratch_array(&c->scratch, n, size) : NULL;
    if (array == NULL && c->rc == PMIXFAB_OK)
        c->rc = PMIXFAB_ERR_NOMEM;
    return array;
}

struct check_at check_at_node(const struct fab_inventory *inv, uint32_t node, uint64_t state)
{
    struct check_at at = {.about = fab_about_node(&inv->nodes[node])};
    at.about.state = state;
    fab_node_text(inv, &inv->nodes[node], at.where);
    return at;
}

struct check_at check_at_port(const struct fab_inventory *inv, uint32_t port)
{
    struct check_at at = {.about = fab_about_port(inv, &inv->ports[port])};
    fab_port_text(inv, &inv->ports[port], at.where);
    return at;
}

struct check_at check_at_cable(const struct fab_inventory *inv, uint32_t port, uint64_t state)
{
    struct check_at at = {.about = fab_about_cable(inv, &inv->ports[port])};
    at.about.state = state;
    fab_link_text(inv, &inv->ports[port], at.where);
    return at;
}

struct check_at check_at_name(const char *identity, const char *where, uint64_t state)
{
    struct check_at at = {.about = {.text = identity, .state = state}};
    snprintf(at.where, sizeof(at.where), "%s", where);
    return at;
}

void check_add(struct check *c, enum fab_check_kind kind, struct check_at at, const char *fmt, ...)
{
    char what[CHECK_WHAT_TEXT];
    va_list args;
    if (c->rc != PMIXFAB_OK)
        return;
    va_start(args, fmt);
    vsnprintf(what, sizeof(what), fmt, args);
    va_end(args);
    c->rc = fab_findings_add(c->out, kind, at.about, at.where, what);
}

const struct fab_detail *check_fact(const struct check *c, uint32_t port, enum fab_fact kind)
{
    const struct fab_details *details = c->details;
    for (uint32_t f = details->first[port]; f < details->first[port + 1]; f++)
        if (details->facts[f].kind == kind && (details->facts[f].flags & FAB_DETAIL_CHOSEN) != 0)
            return &details->facts[f];
    return NULL;
}

const char *check_fact_text(const struct check *c, uint32_t port, enum fab_fact kind)
{
    const struct fab_detail *fact = check_fact(c, port, kind);
    return fact == NULL ? NULL : c->details->pool + fact->text;
}
