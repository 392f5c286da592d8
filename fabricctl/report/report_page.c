/*
 * report_page.c - the page: what was built, with this fabric's data in the middle.
 */
#include <stdlib.h>
#include <string.h>

#include "fabricctl/core/ctl.h"
#include "fabricctl/export/export.h"
#include "fabricctl/report/report_page.h"
#include "fabricctl/show/show.h"

#define REPORT_CHANGES  50  /* the latest ones */
#define REPORT_FINDINGS 500 /* the gravest ones, and then those that hang on them */
#define REPORT_SECONDS  30

/* Ask the daemon; what it does not say stands in the page, and a line says so. */
static json_t *report_ask(const struct ctl *ctl, json_t *request, const char *what, json_t *missing)
{
    char why[CTL_WHY_SIZE] = "over PMIx only the planes can be read";
    json_t *answer = NULL;
    if (ctl->uri != NULL)
        json_decref(request);
    else
        ctl_control_ask(ctl->rundir, request, REPORT_SECONDS, &answer, why);
    if (answer == NULL) {
        ctl_error("the page is without %s: %s", what, why);
        json_object_set_new(missing, what, ctl_json_text(why));
    }
    return answer;
}

static void report_findings(json_t *findings, json_t *page)
{
    size_t n = json_array_size(findings);
    json_t *chosen = json_array();
    json_object_set_new(page, "n_findings", json_integer((json_int_t)n));
    for (int hangs = 0; hangs < 2; hangs++)
        for (size_t i = 0; i < n && json_array_size(chosen) < REPORT_FINDINGS; i++)
            if (json_is_string(json_object_get(json_array_get(findings, i), "cause")) == (hangs == 1))
                json_array_append(chosen, json_array_get(findings, i));
    json_object_set_new(page, "findings", chosen);
}

/* What `history` and `check` show, for programs. */
static void report_daemon(const struct ctl *ctl, json_t *page)
{
    struct ctl rows = *ctl;
    json_t *missing = json_object(), *answer;
    rows.format = CTL_JSON;
    rows.columns = NULL;
    answer = report_ask(ctl, json_pack("{s:s, s:i}", "op", "history", "limit", REPORT_CHANGES), "changes",
                        missing);
    if (answer != NULL)
        json_object_set_new(page, "changes", ctl_changes_json(&rows, json_object_get(answer, "changes")));
    json_decref(answer);
    answer = report_ask(ctl, json_pack("{s:s, s:b}", "op", "check", "lost", 1), "findings", missing);
    if (answer != NULL) {
        report_findings(json_object_get(answer, "findings"), page);
        json_object_set(page, "lost", json_object_get(answer, "lost"));
    }
    json_decref(answer);
    json_object_set_new(page, "missing", missing);
}

static bool report_planes(const struct ctl_view *view, json_t *page)
{
    json_t *planes = json_array(), *shared = ctl_shared_names(view);
    bool good = true;
    json_object_set_new(page, "planes", planes);
    for (size_t i = 0; good && i < view->n; i++) {
        struct pmixfab_plane plane;
        json_t *one = NULL;
        if (pmixfab_plane(view->planes[i], &plane) == 0)
            one = report_plane_json(view->planes[i], &plane, shared);
        good =
            one != NULL && json_object_set_new(one, "costs", report_costs_json(view->planes[i], &plane)) == 0;
        json_array_append(planes, one);
        json_decref(one);
    }
    json_decref(shared);
    return good;
}

/* In a page a script ends at the first "</script", whatever stands around it: no < gets there as it is. */
static int put_escaped(const char *text, size_t size, void *cbdata)
{
    FILE *out = cbdata;
    while (size > 0) {
        const char *special = memchr(text, '<', size);
        size_t plain = special != NULL ? (size_t)(special - text) : size;
        if (fwrite(text, 1, plain, out) != plain || (special != NULL && fputs("\\u003c", out) < 0))
            return -1;
        plain += special != NULL;
        text += plain;
        size -= plain;
    }
    return 0;
}

/* The data as text; free() it. NULL without memory. */
static char *report_text(const json_t *page, size_t *size)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, size);
    int rc;
    if (out == NULL)
        return NULL;
    rc = json_dump_callback(page, put_escaped, out, CTL_JSON_FLAGS);
    if (fclose(out) == 0 && rc == 0)
        return text;
    free(text);
    return NULL;
}

static enum ctl_exit report_write(const struct ctl *ctl, const json_t *page)
{
    struct ctl_target target;
    size_t size = 0;
    char *text = report_text(page, &size);
    enum ctl_exit status;
    if (text == NULL)
        return ctl_nomem();
    ctl_catch_interrupts();
    status = ctl_target_open(ctl->output, &target);
    if (status == CTL_DONE)
        status = ctl_target_write(&target, report_page_head, report_page_head_size);
    if (status == CTL_DONE)
        status = ctl_target_write(&target, text, size);
    if (status == CTL_DONE)
        status = ctl_target_write(&target, report_page_tail, report_page_tail_size);
    free(text);
    return ctl_target_close(&target, false, status);
}

enum ctl_exit ctl_report(const struct ctl *ctl)
{
    char made[CTL_TIME_SIZE];
    struct ctl_view view;
    enum ctl_exit status;
    json_t *page;
    if (ctl->output == NULL)
        return ctl_usage("nowhere to write: report: give -o FILE.html");
    status = ctl_view_all(ctl, &view);
    if (status != CTL_DONE)
        return status;
    page = json_pack("{s:s, s:s, s:o}", "version", PMIXFAB_VERSION, "made",
                     ctl_time(ctl_now() * 1000000, made), "source", ctl_json_text(ctl_source_location(ctl)));
    if (page == NULL)
        status = ctl_nomem();
    else if (!report_planes(&view, page))
        status = ctl_error("no report: %s: memory ran out, or a snapshot contradicts itself",
                           ctl_source_location(ctl));
    ctl_view_close(&view);
    if (status == CTL_DONE) {
        report_daemon(ctl, page);
        status = report_write(ctl, page);
    }
    json_decref(page);
    return status;
}
