#include "fabricd/engine/findings.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/base/log.h"
#include "fabricd/engine/memory.h"
#include "topo/base/array.h"
#include "topo/base/natural.h"
#include "topo/base/order.h"
#include "topo/base/search.h"

int findings_new(const struct config *config, struct store *store, struct findings **out, struct fab_err *err)
{
    struct findings *findings = calloc(1, sizeof(*findings));
    *out = findings;
    if (findings == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    *findings = (struct findings){.config = config, .store = store};
    return findings_load(findings, err);
}

void findings_free(struct findings *findings)
{
    if (findings == NULL)
        return;
    for (int kind = 0; kind < FAB_CHECK_KINDS; kind++)
        fab_findings_destroy(&findings->otherwise[kind]);
    for (uint32_t i = 0; i < findings->n; i++)
        finding_free(findings->all[i]);
    free(findings->all);
    free(findings->there);
    free(findings->dropped);
    json_decref(findings->news);
    free(findings);
}

void findings_replace(struct findings *findings, enum fab_check_kind kind, struct fab_findings *list)
{
    fab_findings_destroy(&findings->otherwise[kind]);
    findings->otherwise[kind] = *list;
    *list = (struct fab_findings){0};
}

/* ---- a look ---------------------------------------------------------------------------------------- */

/* A look on its way: all that is found now, and all that will be remembered. */
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

static void look_collect(struct looking *look, const struct fab_findings *list)
{
    for (uint32_t i = 0; i < list->n; i++)
        look->found[look->n_found++] = &list->findings[i];
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

/* As the finding is now: its texts. False: no memory. */
static bool look_describe(struct finding *finding, const struct fab_finding *found)
{
    const size_t len = strlen(found->what);
    char behind[LOOK_BEHIND];
    look_behind(found, behind);
    const bool said =
        strncmp(finding->what, found->what, len) != 0 || strcmp(finding->what + len, behind) != 0;
    const bool moved = strcmp(finding->row.place, found->where) != 0;
    char *what = NULL, *place = moved ? strdup(found->where) : NULL;
    if (said && asprintf(&what, "%s%s", found->what, behind) < 0)
        what = NULL;
    if ((said && what == NULL) || (moved && place == NULL)) {
        free(what);
        free(place);
        return false;
    }
    if (said) {
        free(finding->what);
        finding->what = what;
    }
    finding->share = found->share;
    memcpy(finding->end, found->end, sizeof(finding->end));
    finding->switches = found->switches;
    finding->hosts = found->hosts;
    finding->all = found->all;
    if (moved) {
        free((char *)finding->row.place);
        finding->row.place = place;
        finding->unsaved = true;
    }
    return true;
}

/* What does not become active is graver after a while. */
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

/* It was known, and is there. */
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
    /* What is lost after it was missing is what the operator knows of. */
    const bool worse = row->state != found->state || (kind != finding->kind && kind != FAB_CHECK_LOST);
    const bool changed = worse || kind != finding->kind;
    const bool stays = finding->cause != 0 && found->cause == 0; /* when what it hung on is gone */
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

static bool look_first(struct looking *look, const struct fab_finding *found)
{
    struct finding *finding = finding_new(found->id, found->kind, found->where);
    if (finding == NULL || !look_describe(finding, found)) {
        finding_free(finding);
        return false;
    }
    finding->cause = found->cause;
    finding->row.since = finding->row.came = look->now;
    finding->row.comings = 1;
    finding->row.state = found->state;
    finding->unsaved = true;
    look->next[look->n++] = finding;
    findings_tell(look->findings, finding, FINDING_CAME);
    return true;
}

/* It is not there; false: it has been away for long enough to be forgotten. */
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

/* Both lists are by id. What is found twice counts once; without memory for one, that one is not known. */
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

/* Are n as many as before, the same and in the same order? To see that is much less work than to sort them.
 */
static bool look_in_order(const struct findings *findings, uint32_t n)
{
    struct finding *const *there = findings->there;
    for (uint32_t i = 0; n == findings->n_there && i < n; i++)
        if (there[i]->row.gone != 0 || (i > 0 && look_compare_there(&there[i - 1], &there[i]) > 0))
            return false;
    return n == findings->n_there;
}

static void look_take(struct looking *look, struct finding **there)
{
    struct findings *findings = look->findings;
    uint32_t n = 0;
    free(findings->all);
    findings->all = look->next;
    findings->n = look->n;
    for (uint32_t i = 0; i < findings->n; i++)
        n += findings->all[i]->row.gone == 0;
    if (look_in_order(findings, n)) {
        free(there);
        return;
    }
    free(findings->there);
    findings->there = there;
    findings->n_there = 0;
    for (uint32_t i = 0; i < findings->n; i++)
        if (findings->all[i]->row.gone == 0)
            there[findings->n_there++] = findings->all[i];
    if (findings->n_there > 1)
        qsort(there, findings->n_there, sizeof(*there), look_compare_there);
}

int findings_look(struct findings *findings, const struct fab_findings *served, int64_t now, bool tell,
                  struct fab_err *err)
{
    struct looking look = {.findings = findings, .now = now};
    struct fab_err why = {""};
    size_t room = served->n + 1u;
    for (int kind = 0; kind < FAB_CHECK_KINDS; kind++)
        room += findings->otherwise[kind].n;
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
    look_collect(&look, served);
    for (int kind = 0; kind < FAB_CHECK_KINDS; kind++)
        look_collect(&look, &findings->otherwise[kind]);
    if (look.n_found > 1)
        qsort(look.found, look.n_found, sizeof(*look.found), look_compare_found);
    look_merge(&look);
    look_take(&look, there);
    free(look.found);
    findings_told(findings);
    const bool failed = findings_save(findings, &why) != PMIXFAB_OK;
    if (failed && !findings->unsaved)
        log_warning("findings: not stored yet: %s", why.text);
    findings->unsaved = failed;
    return PMIXFAB_OK;
}

/* ---- questions ------------------------------------------------------------------------------------- */

int64_t findings_wait(const struct findings *findings, int64_t now)
{
    int64_t first = findings->unsaved ? now + FINDINGS_AGAIN : INT64_MAX;
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
    struct finding key = {.kind = 1};
    const struct finding *const one = &key;
    const size_t len = strcspn(place, " ");
    char *end = NULL;
    while (key.kind < FAB_CHECK_KINDS &&
           (strncmp(fab_check_name(key.kind), place, len) != 0 || fab_check_name(key.kind)[len] != '\0'))
        key.kind++;
    key.row.id = strtoull(place + len, &end, 16);
    if (key.kind == FAB_CHECK_KINDS || *end != ' ')
        return false;
    key.row.place = end + 1;
    *out = FAB_LOWER_BOUND(0, findings->n_there, i, look_compare_there(&findings->there[i], &one) <= 0);
    return true;
}

/* What hangs on another finding is known when that is. */
static const struct finding *findings_cause(const struct findings *findings, const struct finding *finding)
{
    const uint64_t id = finding->cause;
    if (id == 0)
        return finding;
    const uint32_t at = FAB_LOWER_BOUND(0, findings->n, i, findings->all[i]->row.id < id);
    return at < findings->n && findings->all[at]->row.id == id ? findings->all[at] : finding;
}

static bool findings_is_acked(const struct findings *findings, const struct finding *finding)
{
    return finding->row.acked != 0 || findings_cause(findings, finding)->row.acked != 0;
}

uint32_t findings_count(const struct findings *findings, enum fab_check_kind kind, bool acked)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < findings->n_there; i++)
        n += findings->there[i]->kind == kind && findings_is_acked(findings, findings->there[i]) == acked;
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
