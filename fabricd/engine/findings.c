/* findings.c - the memory of findings: checks, the store, the log, JSON. */
#include "fabricd/engine/findings.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/base/log.h"
#include "fabricd/control/connection.h"
#include "topo/base/array.h"
#include "topo/base/natural.h"
#include "topo/base/order.h"
#include "topo/base/search.h"

#define AGAIN  (60 * INT64_C(1000000)) /* until the store is tried again */
#define LOGGED 20 /* logged findings of one check and severity: a storm must not fill the log */

struct findings {
    const struct config *config;
    struct store *store;
    struct finding **all;   /* by id */
    struct finding **there; /* the present ones, in order */
    uint32_t n, n_there, room;
    bool failed;                   /* no memory while it was read */
    struct store_finding *dropped; /* removed, but perhaps still in the store; only their ids */
    uint32_t n_dropped, cap_dropped;
    json_t *news;
    uint32_t told[FAB_SEVERITY_ERROR + 1]; /* in this check, by severity */
    bool tell;
    bool changed; /* the last check reported an event */
    bool unsaved; /* the store did not take the last check, and that was logged */
};

/* ---- one finding, and all of them from and into the store ------------------------------------------ */

static enum fab_check_kind kind_of(const char *name, size_t len)
{
    int kind = 1;
    while (kind < FAB_CHECK_KINDS && (strncmp(fab_check_name((enum fab_check_kind)kind), name, len) != 0 ||
                                      fab_check_name((enum fab_check_kind)kind)[len] != '\0'))
        kind++;
    return (enum fab_check_kind)kind; /* FAB_CHECK_KINDS: no such kind */
}

/* NULL: no memory. */
static struct finding *finding_new(enum fab_check_kind kind, const struct store_finding *row)
{
    struct finding *finding = calloc(1, sizeof(*finding));
    char *place = strdup(row->place), *what = strdup("");
    if (finding == NULL || place == NULL || what == NULL) {
        free(finding);
        free(place);
        free(what);
        return NULL;
    }
    *finding = (struct finding){.row = *row, .kind = kind, .what = what};
    finding->row.kind = fab_check_name(kind);
    finding->row.place = place;
    return finding;
}

static void finding_free(struct finding *finding)
{
    if (finding == NULL)
        return;
    free((char *)finding->row.place);
    free(finding->what);
    free(finding);
}

/* Skip a row of a kind that does not exist any more: it cannot be found again. */
static int findings_load_row(const struct store_finding *row, void *cbdata)
{
    struct findings *findings = cbdata;
    const enum fab_check_kind kind = kind_of(row->kind, strlen(row->kind));
    if (kind == FAB_CHECK_KINDS)
        return 0;
    struct finding *finding =
        FAB_ARRAY_ROOM(&findings->all, &findings->room, findings->n + 1) ? finding_new(kind, row) : NULL;
    if (finding != NULL)
        findings->all[findings->n++] = finding;
    findings->failed = finding == NULL;
    return findings->failed;
}

static int findings_compare_id(const void *x, const void *y)
{
    const struct finding *const *a = x, *const *b = y;
    return FAB_ORDER((*a)->row.id, (*b)->row.id);
}

static int findings_save(struct findings *findings, struct fab_err *err)
{
    uint32_t n = 0;
    const struct store_finding **rows = calloc(findings->n + findings->n_dropped + 1, sizeof(*rows));
    if (rows == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "findings: out of memory");
    for (uint32_t i = 0; i < findings->n_dropped; i++)
        rows[n++] = &findings->dropped[i];
    for (uint32_t i = 0; i < findings->n; i++)
        if (findings->all[i]->unsaved)
            rows[n++] = &findings->all[i]->row;
    int rc = n == 0 ? PMIXFAB_OK : store_findings_put(findings->store, rows, n, err);
    free(rows);
    if (rc != PMIXFAB_OK)
        return rc;
    findings->n_dropped = 0;
    for (uint32_t i = 0; i < findings->n; i++)
        findings->all[i]->unsaved = false;
    return PMIXFAB_OK;
}

int findings_new(const struct config *config, struct store *store, struct findings **out, struct fab_err *err)
{
    struct findings *findings = calloc(1, sizeof(*findings));
    *out = findings;
    if (findings == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    *findings = (struct findings){.config = config, .store = store};
    int rc = store_findings_load(store, findings_load_row, findings, err);
    if (rc == PMIXFAB_OK && findings->failed)
        rc = fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    if (findings->n > 1)
        qsort(findings->all, findings->n, sizeof(*findings->all), findings_compare_id);
    return rc;
}

void findings_free(struct findings *findings)
{
    if (findings == NULL)
        return;
    for (uint32_t i = 0; i < findings->n; i++)
        finding_free(findings->all[i]);
    free(findings->all);
    free(findings->there);
    free(findings->dropped);
    json_decref(findings->news);
    free(findings);
}

/* ---- as JSON --------------------------------------------------------------------------------------- */

/* Add the texts that all findings of a kind share; there may be thousands of findings. Never freed. */
static void findings_put_kind(json_t *object, enum fab_check_kind kind)
{
    static const char *const keys[] = {"severity", "kind", "hint"};
    static json_t *words[FAB_CHECK_KINDS][3];
    if (words[kind][0] == NULL) {
        words[kind][0] = json_string(fab_severity_name(fab_check_severity(kind)));
        words[kind][1] = json_string(fab_check_name(kind));
        words[kind][2] = json_string(fab_check_hint(kind));
    }
    for (size_t i = 0; i < 3; i++)
        json_object_set_nocheck(object, keys[i], words[kind][i]);
}

/* Return the nodes and ports of the finding, so that programs need not parse names. */
static json_t *findings_ends(const struct finding *finding)
{
    json_t *ends = json_array();
    for (size_t i = 0; i < 2; i++)
        if (finding->end[i].guid != 0)
            json_array_append_new(
                ends,
                json_pack("{s:o, s:o}", "guid", json_sprintf("0x%016" PRIx64, finding->end[i].guid), "port",
                          finding->end[i].port == 0 ? json_null() : json_integer(finding->end[i].port)));
    return ends;
}

json_t *findings_json(const struct finding *finding)
{
    const struct store_finding *row = &finding->row;
    char id[FAB_FINDING_ID_TEXT];
    json_t *object = json_object();
    fab_finding_id_text(row->id, id);
    json_object_set_new_nocheck(object, "id", json_string_nocheck(id));
    findings_put_kind(object, finding->kind);
    json_object_set_new_nocheck(object, "where", json_string(row->place));
    json_object_set_new_nocheck(object, "what", json_string(finding->what));
    json_object_set_new_nocheck(object, "since", control_time(row->since));
    json_object_set_new_nocheck(object, "count", json_integer(row->comings));
    json_object_set_new_nocheck(object, "acked", control_time(row->acked));
    json_object_set_new_nocheck(object, "acked_until", control_time(row->acked_until));
    json_object_set_new_nocheck(object, "acked_by",
                                row->acked == 0 ? json_null() : json_integer(row->acked_by));
    json_object_set_new_nocheck(object, "bisection_gone",
                                finding->share > 0 ? json_real(finding->share) : json_null());
    json_object_set_new_nocheck(object, "ends", findings_ends(finding));
    fab_finding_id_text(finding->cause, id);
    json_object_set_new_nocheck(object, "cause", finding->cause != 0 ? json_string_nocheck(id) : json_null());
    json_object_set_new_nocheck(object, "switches_behind", json_integer(finding->switches));
    json_object_set_new_nocheck(object, "hosts_behind", json_integer(finding->hosts));
    return object;
}

/* ---- the log and the hook -------------------------------------------------------------------------- */

enum finding_event { FINDING_CAME, FINDING_AGAIN, FINDING_GONE, FINDING_CHANGED, FINDING_UNACKED };

static const struct {
    const char *name, *words;
} findings_events[] = {
    [FINDING_CAME] = {"came", ""},
    [FINDING_AGAIN] = {"again", "came again, not reported again before it has been gone for an hour: "},
    [FINDING_GONE] = {"gone", "gone: "},
    [FINDING_CHANGED] = {"changed", "changed: "},
    [FINDING_UNACKED] = {"unacked", "the acknowledgement has ended: "},
};

static void findings_log(const struct finding *finding, enum finding_event event)
{
    const enum fab_severity severity = fab_check_severity(finding->kind);
    const bool bad = event != FINDING_GONE && severity > FAB_SEVERITY_NOTICE && finding->row.acked == 0 &&
                     finding->cause == 0;
    char id[FAB_FINDING_ID_TEXT];
    fab_finding_id_text(finding->row.id, id);
    log_line(bad ? PMIXFAB_LOG_WARNING : PMIXFAB_LOG_INFO, "finding %.8s: %s%s %s: %s%s%s", id,
             findings_events[event].words, fab_severity_name(severity), fab_check_name(finding->kind),
             finding->row.place, finding->what[0] != '\0' ? ": " : "", finding->what);
}

/* Log an event, and store it for the hook. */
static void findings_tell(struct findings *findings, const struct finding *finding, enum finding_event event)
{
    findings->changed = true;
    if (findings->told[fab_check_severity(finding->kind)]++ < LOGGED)
        findings_log(finding, event);
    json_t *told = findings->tell ? findings_json(finding) : NULL;
    if (told == NULL)
        return;
    if (findings->news == NULL)
        findings->news = json_array();
    json_object_set_new(told, "event", json_string(findings_events[event].name));
    json_array_append_new(findings->news, told);
}

/* Note the end of a check. */
static void findings_told(struct findings *findings)
{
    uint32_t more = 0;
    for (int i = 0; i <= FAB_SEVERITY_ERROR; i++) {
        more += findings->told[i] > LOGGED ? findings->told[i] - LOGGED : 0;
        findings->told[i] = 0;
    }
    if (more > 0)
        log_warning("findings: %u more came or went: see fabricctl check", (unsigned)more);
}

bool findings_changed(const struct findings *findings)
{
    return findings->changed;
}

json_t *findings_news(struct findings *findings)
{
    json_t *news = findings->news;
    findings->news = NULL;
    return news;
}

/* ---- a check --------------------------------------------------------------------------------------- */

/* A check in progress: its findings, and the new list of remembered ones. */
struct looking {
    struct findings *findings;
    int64_t now;
    const struct fab_finding **found; /* by id */
    uint32_t n_found;
    struct finding **next;
    uint32_t n;
};

#define LOOK_BEHIND 160

static int look_compare_found(const void *x, const void *y)
{
    const struct fab_finding *const *a = x, *const *b = y;
    return FAB_ORDER((*a)->id, (*b)->id);
}

static int look_compare_there(const void *x, const void *y)
{
    const struct finding *const *a = x, *const *b = y;
    return FAB_ORDER(fab_check_severity((*b)->kind), fab_check_severity((*a)->kind))
           ?: FAB_ORDER((*a)->kind, (*b)->kind) ?: fab_natural_cmp((*a)->row.place, (*b)->row.place)
           ?: FAB_ORDER((*a)->row.id, (*b)->row.id);
}

/* "; and 2 switches and 32 hosts behind it" */
static void look_behind(const struct fab_finding *found, char text[LOOK_BEHIND])
{
    const struct {
        uint32_t n;
        const char *one, *many;
    } things[] = {{found->switches, "switch", "switches"},
                  {found->hosts, "host", "hosts"},
                  {found->hcas, "HCA", "HCAs"}};
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < sizeof(things) / sizeof(things[0]); i++)
        if (things[i].n > 0)
            used += (size_t)snprintf(text + used, LOOK_BEHIND - used, "%s%" PRIu32 " %s",
                                     used > 0 ? " and " : "; and ", things[i].n,
                                     things[i].n == 1 ? things[i].one : things[i].many);
    if (used > 0)
        used += (size_t)snprintf(text + used, LOOK_BEHIND - used, " behind it");
    if (found->hcas_of_host > 0)
        snprintf(text + used, LOOK_BEHIND - used, "; and %" PRIu32 " other HCA%s of its host",
                 found->hcas_of_host, found->hcas_of_host == 1 ? "" : "s");
}

/* Update the texts of a finding. False: no memory. */
static bool look_describe(struct finding *finding, const struct fab_finding *found)
{
    const size_t len = strlen(found->what);
    char behind[LOOK_BEHIND], *what = finding->what, *place = (char *)finding->row.place;
    look_behind(found, behind);
    const bool moved = strcmp(place, found->where) != 0;
    if ((strncmp(what, found->what, len) != 0 || strcmp(what + len, behind) != 0) &&
        asprintf(&what, "%s%s", found->what, behind) < 0)
        return false;
    if (moved && (place = strdup(found->where)) == NULL) {
        free(what != finding->what ? what : NULL);
        return false;
    }
    free(what != finding->what ? finding->what : NULL);
    free(moved ? (char *)finding->row.place : NULL);
    finding->what = what;
    finding->row.place = place;
    finding->unsaved |= moved;
    finding->share = found->share;
    finding->all = found->all;
    finding->switches = found->switches;
    finding->hosts = found->hosts;
    memcpy(finding->end, found->end, sizeof(finding->end));
    return true;
}

/* Return the kind: an inactive port is a graver finding after a while. */
static enum fab_check_kind look_kind(const struct looking *look, const struct finding *finding,
                                     const struct fab_finding *found)
{
    const int64_t patience = look->findings->config->inactive_seconds * INT64_C(1000000);
    return found->kind == FAB_CHECK_INACTIVE && patience > 0 && look->now - finding->row.came >= patience
               ? FAB_CHECK_INACTIVE_LONG
               : found->kind;
}

static void look_unack(struct looking *look, struct finding *finding, bool changed)
{
    struct store_finding *row = &finding->row;
    const bool over = row->acked_until != 0 && row->acked_until <= look->now;
    if (row->acked == 0 || (!changed && !over))
        return;
    row->acked = row->acked_until = 0;
    row->acked_by = 0;
    finding->unsaved = true;
    if (!changed)
        findings_tell(look->findings, finding, FINDING_UNACKED);
}

/* Process a known finding that is present. */
static void look_again(struct looking *look, struct finding *finding, const struct fab_finding *found)
{
    struct store_finding *row = &finding->row;
    const bool back = row->gone != 0;
    if (back) {
        row->came = look->now;
        row->gone = 0;
        row->comings += row->comings < UINT32_MAX;
    }
    const enum fab_check_kind kind = look_kind(look, finding, found);
    /* A device that is lost after it was missing is no news to the operator. */
    const bool worse = row->state != found->state || (kind != finding->kind && kind != FAB_CHECK_LOST);
    const bool changed = worse || kind != finding->kind;
    const bool stays = finding->cause != 0 && found->cause == 0; /* the finding that caused it is gone */
    finding->cause = found->cause;
    finding->unsaved |= back || changed;
    finding->kind = kind;
    row->kind = fab_check_name(kind);
    row->state = found->state;
    look_unack(look, finding, worse);
    if (back && row->comings == 2)
        findings_tell(look->findings, finding, FINDING_AGAIN);
    else if (!back && (changed || stays))
        findings_tell(look->findings, finding, FINDING_CHANGED);
}

/* Add a new finding. Without memory it is dropped. */
static void look_first(struct looking *look, const struct fab_finding *found)
{
    struct finding *finding = finding_new(found->kind, &(struct store_finding){.id = found->id,
                                                                               .place = found->where,
                                                                               .state = found->state,
                                                                               .since = look->now,
                                                                               .came = look->now,
                                                                               .comings = 1});
    if (finding == NULL || !look_describe(finding, found)) {
        finding_free(finding);
        return;
    }
    finding->cause = found->cause;
    finding->unsaved = true;
    look->next[look->n++] = finding;
    findings_tell(look->findings, finding, FINDING_CAME);
}

/* Process a known finding that is absent. False: it was absent long enough to be forgotten. */
static bool look_gone(struct looking *look, struct finding *finding)
{
    struct findings *findings = look->findings;
    struct store_finding *row = &finding->row;
    look_unack(look, finding, false);
    if (row->gone == 0) {
        row->gone = look->now;
        finding->unsaved = true;
        if (row->comings == 1)
            findings_tell(findings, finding, FINDING_GONE);
        finding->what[0] = '\0';
        return true;
    }
    if (look->now >= row->gone && look->now - row->gone < FINDINGS_QUIET)
        return true;
    if (row->comings > 1)
        findings_tell(findings, finding, FINDING_GONE);
    if (FAB_ARRAY_ROOM(&findings->dropped, &findings->cap_dropped, findings->n_dropped + 1))
        findings->dropped[findings->n_dropped++] = (struct store_finding){.id = row->id};
    return false;
}

/* Compare both lists, which are in the order of ids. Duplicates count once. */
static void look_merge(struct looking *look)
{
    struct findings *findings = look->findings;
    for (uint32_t a = 0, f = 0; a < findings->n || f < look->n_found;) {
        struct finding *known = a < findings->n ? findings->all[a] : NULL;
        const struct fab_finding *found = f < look->n_found ? look->found[f] : NULL;
        const int order = found == NULL ? -1 : known == NULL ? 1 : FAB_ORDER(known->row.id, found->id);
        if (order > 0)
            look_first(look, found);
        else
            look->next[look->n++] = known;
        if (order == 0 && look_describe(known, found))
            look_again(look, known, found);
        if (order < 0 && known != NULL && !look_gone(look, known)) {
            look->n--;
            finding_free(known);
        }
        a += order <= 0;
        if (order >= 0)
            while (f < look->n_found && look->found[f]->id == found->id)
                f++;
    }
}

/* Sort the present findings. A check whether the order is unchanged is much cheaper than sorting. */
static void look_sort(struct findings *findings, struct finding **there)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < findings->n; i++)
        n += findings->all[i]->row.gone == 0;
    bool same = n == findings->n_there;
    for (uint32_t i = 0; same && i < n; i++)
        same = findings->there[i]->row.gone == 0 &&
               (i == 0 || look_compare_there(&findings->there[i - 1], &findings->there[i]) <= 0);
    if (same) {
        free(there);
        return;
    }
    free(findings->there);
    findings->there = there;
    findings->n_there = 0;
    for (uint32_t i = 0; i < findings->n; i++)
        if (findings->all[i]->row.gone == 0)
            there[findings->n_there++] = findings->all[i];
    qsort(there, findings->n_there, sizeof(*there), look_compare_there);
}

int findings_look(struct findings *findings, const struct fab_findings *const *lists, uint32_t n_lists,
                  int64_t now, bool tell, struct fab_err *err)
{
    struct looking look = {.findings = findings, .now = now};
    struct fab_err why = {""};
    size_t room = 1;
    for (uint32_t l = 0; l < n_lists; l++)
        room += lists[l]->n;
    look.found = calloc(room, sizeof(*look.found));
    look.next = calloc(room + findings->n, sizeof(*look.next));
    struct finding **there = calloc(room + findings->n, sizeof(*there));
    if (look.found == NULL || look.next == NULL || there == NULL) {
        free(look.found);
        free(look.next);
        free(there);
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "check: out of memory");
    }
    findings->tell = tell;
    findings->changed = false;
    for (uint32_t l = 0; l < n_lists; l++)
        for (uint32_t i = 0; i < lists[l]->n; i++)
            look.found[look.n_found++] = &lists[l]->findings[i];
    qsort(look.found, look.n_found, sizeof(*look.found), look_compare_found);
    look_merge(&look);
    free(look.found);
    free(findings->all);
    findings->all = look.next;
    findings->n = look.n;
    look_sort(findings, there);
    findings_told(findings);
    const bool failed = findings_save(findings, &why) != PMIXFAB_OK;
    if (failed && !findings->unsaved)
        log_warning("findings: not stored yet: %s", why.text);
    findings->unsaved = failed;
    return PMIXFAB_OK;
}

/* ---- queries --------------------------------------------------------------------------------------- */

int64_t findings_wait(const struct findings *findings, int64_t now)
{
    int64_t first = findings->unsaved ? now + AGAIN : INT64_MAX;
    for (uint32_t i = 0; i < findings->n; i++) {
        const struct finding *finding = findings->all[i];
        int64_t due =
            finding->row.acked != 0 && finding->row.acked_until != 0 ? finding->row.acked_until : INT64_MAX;
        int64_t other = INT64_MAX;
        if (finding->row.gone != 0)
            other = finding->row.gone + FINDINGS_QUIET;
        else if (finding->kind == FAB_CHECK_INACTIVE && findings->config->inactive_seconds > 0)
            other = finding->row.came + findings->config->inactive_seconds * INT64_C(1000000);
        due = other < due ? other : due;
        first = due < first ? due : first;
    }
    return first == INT64_MAX ? -1 : first > now ? first - now : 0;
}

const struct finding *const *findings_all(const struct findings *findings, uint32_t *n)
{
    *n = findings->n_there;
    return (const struct finding *const *)findings->there;
}

json_t *findings_place(const struct finding *finding)
{
    return json_sprintf("%s %" PRIx64 " %s", fab_check_name(finding->kind), finding->row.id,
                        finding->row.place);
}

bool findings_behind(const struct findings *findings, const char *place, uint32_t *out)
{
    const size_t len = strcspn(place, " ");
    struct finding key = {.kind = kind_of(place, len)};
    const struct finding *const one = &key;
    char *end = NULL;
    key.row.id = strtoull(place + len, &end, 16);
    if (key.kind == FAB_CHECK_KINDS || *end != ' ')
        return false;
    key.row.place = end + 1;
    *out = FAB_LOWER_BOUND(0, findings->n_there, i, look_compare_there(&findings->there[i], &one) <= 0);
    return true;
}

/* Return the finding that caused this one, or itself: it is acknowledged with its cause. */
static const struct finding *findings_cause(const struct findings *findings, const struct finding *finding)
{
    const uint64_t id = finding->cause;
    if (id == 0)
        return finding;
    const uint32_t at = FAB_LOWER_BOUND(0, findings->n, i, findings->all[i]->row.id < id);
    return at < findings->n && findings->all[at]->row.id == id ? findings->all[at] : finding;
}

uint32_t findings_count(const struct findings *findings, enum fab_check_kind kind, bool acked)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < findings->n_there; i++)
        n += findings->there[i]->kind == kind &&
             (findings->there[i]->row.acked != 0 ||
              findings_cause(findings, findings->there[i])->row.acked != 0) == acked;
    return n;
}

json_t *findings_summary(const struct findings *findings)
{
    json_int_t open[FAB_SEVERITY_ERROR + 1] = {0}, acked = 0, folded = 0;
    const struct finding *worst = NULL;
    for (uint32_t i = 0; i < findings->n_there; i++) {
        const struct finding *finding = findings->there[i];
        if (findings_cause(findings, finding) != finding) {
            folded++;
        } else if (finding->row.acked != 0) {
            acked++;
        } else {
            worst = worst != NULL ? worst : finding;
            open[fab_check_severity(finding->kind)]++;
        }
    }
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:o}", "errors", open[FAB_SEVERITY_ERROR], "warnings",
                     open[FAB_SEVERITY_WARNING], "notices", open[FAB_SEVERITY_NOTICE], "acknowledged", acked,
                     "folded", folded, "worst", worst != NULL ? findings_json(worst) : json_null());
}

/* ---- acknowledgements ------------------------------------------------------------------------------ */

/* Return whether the text has this name as a separate word. */
static bool ack_mentions(const char *text, const char *name)
{
    const size_t len = strlen(name);
    for (const char *at = strstr(text, name); at != NULL; at = strstr(at + 1, name)) {
        const bool begins = at == text || (!isalnum((unsigned char)at[-1]) && strchr("._-", at[-1]) == NULL);
        const char end = at[len];
        if (begins && (end == '\0' || (!isalnum((unsigned char)end) && strchr("._-", end) == NULL)))
            return true;
    }
    return false;
}

static bool ack_is_about(const struct finding *finding, const char *which)
{
    char id[FAB_FINDING_ID_TEXT];
    fab_finding_id_text(finding->row.id, id);
    return fab_finding_id_matches(id, which) || strcmp(fab_check_name(finding->kind), which) == 0 ||
           ack_mentions(finding->row.place, which);
}

/* The findings of one call, and their previous state. */
struct ack_page {
    uint32_t n;
    struct finding *chosen[FINDINGS_ACKS];
    struct store_finding before[FINDINGS_ACKS];
};

static struct ack_page *ack_put_page(const struct findings *findings, const struct findings_ack *ack,
                                     int64_t now, uint32_t *at)
{
    struct ack_page *page = calloc(1, sizeof(*page));
    for (; page != NULL && *at < findings->n_there && page->n < FINDINGS_ACKS; ++*at) {
        struct finding *finding = findings->there[*at];
        if (!ack_is_about(finding, ack->which))
            continue;
        page->chosen[page->n] = finding;
        page->before[page->n++] = finding->row;
        finding->row.acked = ack->cancel ? 0 : now;
        finding->row.acked_until = ack->cancel || ack->seconds == 0 ? 0 : now + ack->seconds * 1000000;
        finding->row.acked_by = ack->cancel ? 0 : ack->uid;
        finding->unsaved = true;
    }
    return page;
}

int findings_ack(struct findings *findings, const struct findings_ack *ack, int64_t now, uint32_t *at,
                 json_t *list, struct fab_err *err)
{
    const bool first = *at == 0;
    if (ack->seconds < 0 || ack->seconds > FINDINGS_MAX_ACK)
        return fab_fail(err, PMIXFAB_ERR_RANGE, "ack: give a time from 1 second to %d days",
                        FINDINGS_MAX_ACK / 86400);
    if (ack->which[0] == '\0')
        return fab_fail(err, PMIXFAB_ERR_SYNTAX, "ack: name a finding");
    struct ack_page *page = ack_put_page(findings, ack, now, at);
    if (page == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "ack: out of memory");
    int rc = page->n == 0 && first ? fab_fail(err, PMIXFAB_ERR_NOTFOUND,
                                              "ack: no finding %s: `fabricctl check` lists them", ack->which)
                                   : findings_save(findings, err);
    for (uint32_t i = 0; i < page->n; i++) {
        if (rc == PMIXFAB_OK)
            json_array_append_new(list, findings_json(page->chosen[i]));
        else
            page->chosen[i]->row = page->before[i];
    }
    free(page);
    return rc;
}
