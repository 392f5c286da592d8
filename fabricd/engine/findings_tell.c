/* findings_tell.c - findings in the log, and as JSON. */
#include <inttypes.h>

#include "fabricd/base/log.h"
#include "fabricd/control/connection.h"
#include "fabricd/engine/memory.h"

#define LOGGED 20 /* findings of one look and severity: a storm does not fill the log */

static const struct {
    const char *name, *words;
} findings_events[] = {
    [FINDING_CAME] = {"came", ""},
    [FINDING_AGAIN] = {"again", "came again, and is told once more when it has been gone for an hour: "},
    [FINDING_GONE] = {"gone", "gone: "},
    [FINDING_CHANGED] = {"changed", "changed: "},
    [FINDING_UNACKED] = {"unacked", "the acknowledgement is over: "},
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

void findings_tell(struct findings *findings, const struct finding *finding, enum finding_event event)
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

void findings_told(struct findings *findings)
{
    uint32_t more = 0;
    for (int i = 0; i <= FAB_SEVERITY_ERROR; i++) {
        more += findings->told[i] > LOGGED ? findings->told[i] - LOGGED : 0;
        findings->told[i] = 0;
    }
    if (more > 0)
        log_warning("findings: %u more came or went: fabricctl check", (unsigned)more);
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

/* What all of a kind say; there may be thousands of them. Never given back. */
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

/* The nodes and ports that it is about, so that a program need not read names. */
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
