/* report_diff.c - differences between two reports of a host. */
#include "topo/changes/changes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/changes/changes_private.h"
#include "topo/model/report_devices.h"

#define WHAT_TEXT (FAB_HOST_MAX + DEVICE_LABEL + 40)

/* Two reports of one host, side by side. */
struct report_walk {
    const char *host;
    char subjects[FAB_HOST_MAX + 2]; /* the host, and the end of the list */
    struct devices before, after;
    struct diff_out out;
};

static void report_diff_append(struct report_walk *w, enum fab_change_kind kind, const struct devices *of,
                               const struct device *device, const char *fact, const char *before,
                               const char *after)
{
    const char *guid = device_text(of, device, FAB_FACT_NODE_GUID);
    const char *port = device_text(of, device, FAB_FACT_PORT);
    char what[WHAT_TEXT];

    snprintf(what, sizeof(what), "%s %s%s%s", w->host, device->label, fact == NULL ? "" : ": ",
             fact == NULL ? "" : fact);
    diff_put(&w->out, &(struct fab_change){
                          .kind = kind,
                          .guid = guid == NULL ? 0 : strtoull(guid, NULL, 16),
                          .port = guid == NULL || port == NULL ? 0 : (uint32_t)strtoul(port, NULL, 10),
                          .what = what,
                          .before = (char *)before,
                          .after = (char *)after,
                          .why = "the host reports it",
                          .subjects = w->subjects,
                          .n_raw = 1});
}

/* Return the word for a device. */
static const char *device_kind_text(const struct devices *of, const struct device *device)
{
    static const enum fab_fact kinds[] = {FAB_FACT_PART, FAB_FACT_DRIVER, FAB_FACT_TYPE};
    const char *text = NULL;

    for (unsigned i = 0; text == NULL && i < sizeof(kinds) / sizeof(kinds[0]); i++)
        text = device_text(of, device, kinds[i]);
    return text != NULL ? text : "device";
}

static enum fab_change_kind fact_change_kind(unsigned fact)
{
    static const enum fab_change_kind kinds[FAB_FACTS] = {
        [FAB_FACT_FIRMWARE] = FAB_CHANGE_FIRMWARE, [FAB_FACT_DRIVER] = FAB_CHANGE_DRIVER,
        [FAB_FACT_STATE] = FAB_CHANGE_STATE,       [FAB_FACT_SPEED] = FAB_CHANGE_SPEED,
        [FAB_FACT_MTU] = FAB_CHANGE_MTU,           [FAB_FACT_LID] = FAB_CHANGE_LID,
    };
    return fact < FAB_FACTS && kinds[fact] != 0 ? kinds[fact] : FAB_CHANGE_FACT;
}

/* Texts of one kind. */
struct texts {
    const struct device_said *list;
    uint32_t n;
};

/* Return the texts of `kind` that begin at *at, and move *at past them. */
static struct texts next_texts(const struct devices *of, const struct device *device, uint32_t *at,
                               unsigned kind)
{
    struct texts texts = {&of->said[*at], 0};
    for (; *at < device->first + device->n && of->said[*at].kind == kind; ++*at)
        texts.n++;
    return texts;
}

static bool texts_contain(struct texts texts, const char *text)
{
    for (uint32_t i = 0; i < texts.n; i++) {
        if (strcmp(texts.list[i].text, text) == 0)
            return true;
    }
    return false;
}

static bool all_in(struct texts a, struct texts b)
{
    for (uint32_t i = 0; i < a.n; i++) {
        if (!texts_contain(b, a.list[i].text))
            return false;
    }
    return true;
}

/* Write "a, b": all texts, or those that the other side does not have. */
static void texts_join(struct texts texts, struct texts other, bool only_own, char out[DIFF_VALUE_TEXT])
{
    size_t used = 0;

    out[0] = '\0';
    for (uint32_t i = 0; i < texts.n && used < DIFF_VALUE_TEXT; i++) {
        if (only_own && texts_contain(other, texts.list[i].text))
            continue;
        int n =
            snprintf(out + used, DIFF_VALUE_TEXT - used, "%s%s", used == 0 ? "" : ", ", texts.list[i].text);
        used += n < 0 ? 0 : (size_t)n;
    }
}

static void report_diff_texts(struct report_walk *w, const struct device *device, unsigned kind,
                              struct texts b, struct texts a)
{
    char before[DIFF_VALUE_TEXT], after[DIFF_VALUE_TEXT];
    enum fab_change_kind change = fact_change_kind(kind);

    if (all_in(b, a) && all_in(a, b))
        return;
    texts_join(b, a, fab_fact_many(kind), before);
    texts_join(a, b, fab_fact_many(kind), after);
    report_diff_append(w, change, &w->after, device, change == FAB_CHANGE_FACT ? fab_fact_name(kind) : NULL,
                       before, after);
}

/* Report one device, before and after, under its new name. */
static void report_diff_device(struct report_walk *w, const struct device *b, const struct device *a)
{
    uint32_t i = b->first, k = a->first;
    bool renamed = strcmp(b->label, a->label) != 0;

    if (renamed)
        report_diff_append(w, FAB_CHANGE_NAME, &w->after, a, NULL, b->label, a->label);
    while (i < b->first + b->n || k < a->first + a->n) {
        unsigned kind_b = i < b->first + b->n ? w->before.said[i].kind : FAB_FACTS;
        unsigned kind_a = k < a->first + a->n ? w->after.said[k].kind : FAB_FACTS;
        unsigned kind = kind_b < kind_a ? kind_b : kind_a;
        struct texts texts_b = next_texts(&w->before, b, &i, kind),
                     texts_a = next_texts(&w->after, a, &k, kind);
        bool in_label = kind == FAB_FACT_NAME || kind == FAB_FACT_PORT || kind == FAB_FACT_INTERFACE;
        if (!(renamed && in_label))
            report_diff_texts(w, a, kind, texts_b, texts_a);
    }
}

static bool same_id(const struct device *b, const struct device *a)
{
    return b->id != NULL && a->id != NULL && strcmp(b->id, a->id) == 0;
}

static void report_diff_match(struct report_walk *w, uint32_t b, uint32_t a)
{
    w->before.list[b].match = a;
    w->after.list[a].match = b;
}

/* Match labels; both lists are in their order. strict: not if the devices are known to differ. */
static void match_labels(struct report_walk *w, bool strict)
{
    uint32_t b = 0, a = 0;

    while (b < w->before.n && a < w->after.n) {
        const struct device *x = &w->before.list[b], *y = &w->after.list[a];
        int order = strcmp(x->label, y->label);
        bool another = x->id != NULL && y->id != NULL && !same_id(x, y);
        if (order == 0 && x->match == FAB_NONE && y->match == FAB_NONE && !(strict && another))
            report_diff_match(w, b, a);
        b += order <= 0;
        a += order >= 0;
    }
}

/* Match the same GUID or MAC under another name. Reports are short: at most FAB_REPORT_MAX_ITEMS of each. */
static void match_ids(struct report_walk *w)
{
    for (uint32_t b = 0; b < w->before.n; b++)
        for (uint32_t a = 0; w->before.list[b].match == FAB_NONE && a < w->after.n; a++)
            if (w->after.list[a].match == FAB_NONE && same_id(&w->before.list[b], &w->after.list[a]))
                report_diff_match(w, b, a);
}

/* Match devices by name and id, else by id, else by name: another card in its place. */
static void compare_reports(struct report_walk *w)
{
    match_labels(w, true);
    match_ids(w);
    match_labels(w, false);
    for (uint32_t i = 0; i < w->before.n; i++) {
        const struct device *device = &w->before.list[i];
        if (device->match == FAB_NONE)
            report_diff_append(w, FAB_CHANGE_DEVICE_LOST, &w->before, device, NULL,
                               device_kind_text(&w->before, device), "");
        else
            report_diff_device(w, device, &w->after.list[device->match]);
    }
    for (uint32_t i = 0; i < w->after.n; i++) {
        const struct device *device = &w->after.list[i];
        if (device->match == FAB_NONE)
            report_diff_append(w, FAB_CHANGE_DEVICE_ADDED, &w->after, device, NULL, "",
                               device_kind_text(&w->after, device));
    }
}

/* Add one change for the host as a whole. */
static void put_host(struct report_walk *w, bool came, const struct devices *devices)
{
    char text[40];

    snprintf(text, sizeof(text), "%" PRIu32 " device%s", devices->n, devices->n == 1 ? "" : "s");
    diff_put(&w->out, &(struct fab_change){.kind = came ? FAB_CHANGE_REPORT_ADDED : FAB_CHANGE_REPORT_LOST,
                                           .what = (char *)w->host,
                                           .before = came ? "" : text,
                                           .after = came ? text : "",
                                           .why = came ? "the host reports for the first time"
                                                       : "its report was forgotten",
                                           .subjects = w->subjects,
                                           .n_raw = 1});
}

int fab_report_changes(const struct fab_report *before, const struct fab_report *after, struct fab_diff *diff)
{
    struct report_walk w = {.out = {.diff = diff}};
    const struct fab_report *any = before != NULL ? before : after;
    uint32_t n = diff->n, n_lost = diff->n_lost;

    if (any == NULL || (before != NULL && !before->finished) || (after != NULL && !after->finished) ||
        (before != NULL && after != NULL && strcmp(before->host, after->host) != 0))
        return PMIXFAB_ERR_INVAL;
    w.host = any->host;
    memcpy(w.subjects, w.host, strlen(w.host)); /* zeroed: the end of the list is there */
    if (before != NULL)
        w.out.rc = report_devices(before, &w.before);
    if (after != NULL && w.out.rc == PMIXFAB_OK)
        w.out.rc = report_devices(after, &w.after);
    if (w.out.rc == PMIXFAB_OK && before != NULL && after != NULL)
        compare_reports(&w);
    else if (w.out.rc == PMIXFAB_OK)
        put_host(&w, before == NULL, before == NULL ? &w.after : &w.before);
    report_devices_free(&w.before);
    report_devices_free(&w.after);
    diff->n_lost = n_lost; /* the fabric lost nothing */
    if (w.out.rc == PMIXFAB_OK) {
        fab_diff_sort(diff);
        return PMIXFAB_OK;
    }
    while (diff->n > n)
        free(diff->changes[--diff->n].what);
    return w.out.rc;
}
