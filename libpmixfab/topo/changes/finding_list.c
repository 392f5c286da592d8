/* finding_list.c - findings: names, advice, order, subjects, and how a check adds one. */
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
    [FAB_CHECK_STALE] = {"stale", FAB_SEVERITY_ERROR,
                         "the served data are older than the failed sweep; fix the reported error, then run: "
                         "fabricctl refresh"},
    [FAB_CHECK_NO_CABLE] =
        {"no-cable", FAB_SEVERITY_ERROR,
         "check that this host's own cable is in and its port is up (ibstat), then run: fabricctl refresh"},
    [FAB_CHECK_PARTIAL] = {"partial", FAB_SEVERITY_ERROR,
                           "check for a device that hangs or restarts there; if it was removed for good, "
                           "run: fabricctl refresh --accept-partial"},
    [FAB_CHECK_HISTORY_GONE] = {"history-gone", FAB_SEVERITY_ERROR,
                                "restore a backup that contains them (fabricctl restore FILE), or accept the "
                                "loss: fabricctl ack FINDING"},
    [FAB_CHECK_HISTORY_CHANGED] = {"history-changed", FAB_SEVERITY_ERROR,
                                   "check the disk; restore a backup that passes fabricctl check --store, or "
                                   "accept the change: fabricctl ack FINDING"},
    [FAB_CHECK_LOST] =
        {"lost", FAB_SEVERITY_ERROR,
         "check that it is up and its cables are in; if it was removed for good, run: fabricctl forget NAME"},
    [FAB_CHECK_MISSING] =
        {"missing", FAB_SEVERITY_ERROR,
         "check that it is up and its cable is in; if it was removed for good, run: fabricctl forget NAME"},
    [FAB_CHECK_FLAPPING] = {"flapping", FAB_SEVERITY_ERROR,
                            "reseat or replace the cable and check the devices at its ends; suppression ends "
                            "when the link is quiet, or at once with: fabricctl refresh --release"},
    [FAB_CHECK_DUPLICATE_NAME] =
        {"duplicate-name", FAB_SEVERITY_ERROR,
         "give each its own name, in its node description or in a line of the configured map"},
    [FAB_CHECK_CLAIMED_TWICE] =
        {"claimed-twice", FAB_SEVERITY_ERROR,
         "find out which host it is in (ibstat there); name that host in the HCA's description or the "
         "configured map, or stop fabricd on the other host and run: fabricctl forget OTHER"},
    [FAB_CHECK_NO_MANAGER] = {"no-manager", FAB_SEVERITY_ERROR,
                              "check that a subnet manager runs (sminfo; systemctl status opensm)"},
    [FAB_CHECK_MANAGER_GONE] =
        {"manager-gone", FAB_SEVERITY_ERROR,
         "start it, or another one (sminfo; systemctl status opensm); until then new links stay inactive"},
    [FAB_CHECK_MANAGER_CHANGED] = {"manager-changed", FAB_SEVERITY_WARNING,
                                   "check that the usual one runs and has the highest priority; if the "
                                   "change is intended, run: fabricctl ack FINDING"},
    [FAB_CHECK_PMIX_REPLACED] = {"pmix-replaced", FAB_SEVERITY_WARNING,
                                 "if it happens again, find the client that sends the fatal message: "
                                 "fabricctl status names it; see docs/operations.md"},
    [FAB_CHECK_COMPONENT] = {"component-unfit", FAB_SEVERITY_WARNING,
                             "install the component that was built for this PMIx library, then restart "
                             "fabricd; fabricd --available lists the components of a host"},
    [FAB_CHECK_PORT_DISABLED] =
        {"port-disabled", FAB_SEVERITY_WARNING,
         "if this is not intended, run: ibportstate LID PORT enable (LIDs: fabricctl switches)"},
    [FAB_CHECK_COUNTERS] = {"counters-grow", FAB_SEVERITY_WARNING,
                            "reseat or replace the cable, then the devices at its ends; see fabricctl "
                            "counters"},
    [FAB_CHECK_DISABLED_PORTS] = {"disabled-ports", FAB_SEVERITY_NOTICE,
                                  "to use one of them, run: ibportstate LID PORT enable"},
    [FAB_CHECK_PORT_DOWN] = {"port-down", FAB_SEVERITY_ERROR,
                             "check the cable and both of its ports: one may be disabled"},
    [FAB_CHECK_INACTIVE_LONG] = {"inactive-long", FAB_SEVERITY_ERROR,
                                 "check that the subnet manager manages the port: look at its log, and at "
                                 "the device at the other end"},
    [FAB_CHECK_NAME_MAP] = {"name-map", FAB_SEVERITY_WARNING,
                            "fix the reported error; until then new devices have no name or their old name"},
    [FAB_CHECK_METRICS] = {"metrics-failed", FAB_SEVERITY_WARNING,
                           "fix the reported error (fabricd --check-config), or change [metrics]; until then "
                           "the site's monitoring gets no new values"},
    [FAB_CHECK_SLURM] =
        {"slurm-differs", FAB_SEVERITY_WARNING,
         "run: fabricctl slurm diff FILE; then fabricctl slurm apply FILE --repair as Slurm's "
         "user, or look at fabricd-slurm and slurmctld"},
    [FAB_CHECK_SLURM_REMARK] = {"slurm-remark", FAB_SEVERITY_NOTICE,
                                "run: fabricctl slurm diff FILE; add the nodes to slurm.conf, or export with "
                                "--nodes slurm; empty switches go with the next start of slurmctld"},
    [FAB_CHECK_EXPORTS_HELD] = {"exports-held", FAB_SEVERITY_NOTICE,
                                "when the work is done, run: fabricctl export --release"},
    [FAB_CHECK_OLD_CAPTURE] =
        {"old-capture", FAB_SEVERITY_WARNING,
         "check that the program that writes the file still runs; fabricd serves data as old as the file"},
    [FAB_CHECK_LINK_LOST] = {"link-lost", FAB_SEVERITY_WARNING,
                             "check that the cable is in and both of its ports are up; if it was removed for "
                             "good, run: fabricctl forget FINDING"},
    [FAB_CHECK_INACTIVE] = {"inactive", FAB_SEVERITY_WARNING,
                            "check the subnet manager's log: the manager has not brought the port up"},
    [FAB_CHECK_SLOW_LINK] = {"slow-link", FAB_SEVERITY_WARNING,
                             "reseat or replace the cable; compare the speeds and widths that both ports are "
                             "set to (ibportstate)"},
    [FAB_CHECK_WRONG_RAIL] = {"wrong-rail", FAB_SEVERITY_WARNING,
                              "plug it into the leaf of its rail; fabricctl rails lists the leaves"},
    [FAB_CHECK_FEW_UPLINKS] = {"few-uplinks", FAB_SEVERITY_WARNING,
                               "look for a cable that is out, dead, or plugged in elsewhere"},
    [FAB_CHECK_FEW_PORTS] =
        {"few-ports", FAB_SEVERITY_WARNING,
         "check for a cable that is out, or an HCA that is dead or not in its slot (lspci and ibstat there)"},
    [FAB_CHECK_MANY_PORTS] =
        {"many-ports", FAB_SEVERITY_WARNING,
         "check for two hosts with this name: compare the GUIDs of fabricctl devices HOST"},
    [FAB_CHECK_CONFUSING_NAME] =
        {"confusing-name", FAB_SEVERITY_WARNING,
         "give each host its own name, in its node description or in a line of the configured map"},
    [FAB_CHECK_SAME_NAME] =
        {"same-name", FAB_SEVERITY_WARNING,
         "rename the host or the switch, in its node description or in a line of the configured map"},
    [FAB_CHECK_SELF_CABLE] = {"self-cable", FAB_SEVERITY_WARNING,
                              "find the end that is in the wrong port and move it"},
    [FAB_CHECK_NOWHERE] =
        {"leads-nowhere", FAB_SEVERITY_WARNING,
         "check the device at the other end: it may hang, or its firmware may need a reset"},
    [FAB_CHECK_NOT_SWEPT] =
        {"not-swept", FAB_SEVERITY_WARNING,
         "check its cable, and whether it is in a fabric that this fabricd does not sweep"},
    [FAB_CHECK_CONFLICT] = {"conflict", FAB_SEVERITY_WARNING,
                            "run: fabricctl refresh --host HOST; if the conflict stays, check the port"},
    [FAB_CHECK_SLOW_SLOT] = {"slow-slot", FAB_SEVERITY_WARNING,
                             "reseat the card, or move it to a wider or newer slot (lspci -vv: LnkSta)"},
    [FAB_CHECK_NOT_REPORTED] = {"not-reported", FAB_SEVERITY_NOTICE,
                                "check that the host's driver detects the device (ibv_devinfo there)"},
    [FAB_CHECK_FIRMWARE] = {"firmware", FAB_SEVERITY_NOTICE, "install the version that the others have"},
    [FAB_CHECK_OTHER_KIND] = {"other-kind", FAB_SEVERITY_NOTICE,
                              "if they were not built this way, compare one of them with the others"},
    [FAB_CHECK_UNNAMED] = {"unnamed", FAB_SEVERITY_NOTICE,
                           "set its node description, a [names] pattern, or a line of the configured map"},
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

/* ---- the subject of a finding ---------------------------------------------------------------------- */

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

/* The id is stored, and operators write it down: the hashed bytes must be the same on every machine. */
uint64_t fab_finding_id(enum fab_check_kind kind, const struct fab_about *about)
{
    const bool swap = (FAB_ORDER(about->end[0].guid, about->end[1].guid)
                           ?: FAB_ORDER(about->end[0].port, about->end[1].port)) > 0;
    /* a lost thing was missing before and keeps its id */
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

/* ---- adding a finding ------------------------------------------------------------------------------ */

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
