/* diff_list.c - changes in an operator's words. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/base/array.h"
#include "topo/base/text.h"
#include "topo/changes/text_sizes.h"

static const char *const kinds[] = {
    [FAB_CHANGE_HOST_ADDED] = "host-added",
    [FAB_CHANGE_HOST_LOST] = "host-lost",
    [FAB_CHANGE_DEVICE_ADDED] = "device-added",
    [FAB_CHANGE_DEVICE_LOST] = "device-lost",
    [FAB_CHANGE_SWITCH_ADDED] = "switch-added",
    [FAB_CHANGE_SWITCH_LOST] = "switch-lost",
    [FAB_CHANGE_LINK_ADDED] = "link-added",
    [FAB_CHANGE_LINK_LOST] = "link-lost",
    [FAB_CHANGE_LINK_RATE] = "link-rate",
    [FAB_CHANGE_PORT_STATE] = "port-state",
    [FAB_CHANGE_NAME] = "name",
    [FAB_CHANGE_LID] = "lid",
    [FAB_CHANGE_OTHER] = "other",
    [FAB_CHANGE_REPORT_ADDED] = "report-added",
    [FAB_CHANGE_REPORT_LOST] = "report-lost",
    [FAB_CHANGE_FIRMWARE] = "firmware",
    [FAB_CHANGE_DRIVER] = "driver",
    [FAB_CHANGE_STATE] = "state",
    [FAB_CHANGE_SPEED] = "speed",
    [FAB_CHANGE_MTU] = "mtu",
    [FAB_CHANGE_FACT] = "fact",
    [FAB_CHANGE_HCA_REPLACED] = "hca-replaced",
    [FAB_CHANGE_HOST_MOVED] = "host-moved",
    [FAB_CHANGE_CABLE_MOVED] = "cable-moved",
    [FAB_CHANGE_SWITCH_REPLACED] = "switch-replaced",
    [FAB_CHANGE_PORT_DOWN] = "port-down",
    [FAB_CHANGE_PORT_UP] = "port-up",
    [FAB_CHANGE_INDEX] = "index",
    [FAB_CHANGE_HOST_MISSING] = "host-missing",
    [FAB_CHANGE_HOST_BACK] = "host-back",
    [FAB_CHANGE_SWITCH_MISSING] = "switch-missing",
    [FAB_CHANGE_SWITCH_BACK] = "switch-back",
    [FAB_CHANGE_PORT_MISSING] = "port-missing",
    [FAB_CHANGE_PORT_BACK] = "port-back",
    [FAB_CHANGE_LINK_BACK] = "link-back",
    [FAB_CHANGE_FLAPPING] = "flapping",
    [FAB_CHANGE_INACTIVE] = "inactive",
    [FAB_CHANGE_PLANE_KIND] = "plane-kind",
    [FAB_CHANGE_PLANE_SHAPE] = "plane-shape",
    [FAB_CHANGE_DEFAULT_PLANE] = "default-plane",
};

#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

const char *fab_change_name(enum fab_change_kind kind)
{
    return (size_t)kind < N_KINDS && kinds[kind] != NULL ? kinds[kind] : "unknown";
}

void diff_guid_text(uint64_t guid, char text[DIFF_GUID_TEXT])
{
    snprintf(text, DIFF_GUID_TEXT, "0x%016" PRIx64, guid);
}

/* Bytes of a list of subjects, its end too. */
static size_t subjects_size(const char *subjects)
{
    const char *at = subjects;
    while (*at != '\0')
        at = fab_subject_next(at);
    return (size_t)(at - subjects) + 1;
}

/* All texts share one piece of memory, which `what` owns. */
void diff_put(struct diff_walk *w, const struct fab_change *like)
{
    struct fab_diff *diff = w->diff;
    char before[DIFF_VALUE_TEXT], after[DIFF_VALUE_TEXT], why[DIFF_WHY_TEXT];

    if (w->rc == 0 && !FAB_ARRAY_ROOM(&diff->changes, &diff->cap, diff->n + 1))
        w->rc = PMIXFAB_ERR_NOMEM;
    if (w->rc != 0)
        return;
    size_t n_before = fab_text_clean(before, sizeof(before), like->before, strlen(like->before), NULL) + 1;
    size_t n_after = fab_text_clean(after, sizeof(after), like->after, strlen(like->after), NULL) + 1;
    size_t n_why = fab_text_clean(why, sizeof(why), like->why, strlen(like->why), NULL) + 1;
    size_t n_what = strlen(like->what) + 1, n_subjects = subjects_size(like->subjects);
    char *text = malloc(n_what + n_before + n_after + n_why + n_subjects);
    if (text == NULL) {
        w->rc = PMIXFAB_ERR_NOMEM;
        return;
    }
    struct fab_change *change = &diff->changes[diff->n++];
    *change = *like;
    change->what = text;
    memcpy(text, like->what, n_what);
    change->before = memcpy(text += n_what, before, n_before);
    change->after = memcpy(text += n_before, after, n_after);
    change->why = memcpy(text += n_after, why, n_why);
    change->subjects = memcpy(text + n_why, like->subjects, n_subjects);
}

void diff_add(struct diff_walk *w, enum fab_change_kind kind, uint64_t guid, uint32_t port, const char *what,
              const char *before, const char *after)
{
    diff_put(w, &(struct fab_change){.kind = kind,
                                     .guid = guid,
                                     .port = port,
                                     .what = (char *)what,
                                     .before = (char *)before,
                                     .after = (char *)after,
                                     .why = "",
                                     .subjects = "",
                                     .n_raw = 1});
    if (w->rc == 0)
        w->diff->n_lost += kind == FAB_CHANGE_HOST_LOST || kind == FAB_CHANGE_DEVICE_LOST ||
                           kind == FAB_CHANGE_SWITCH_LOST || kind == FAB_CHANGE_LINK_LOST;
}

void diff_number(struct diff_walk *w, const char *of, uint64_t guid, uint32_t port, const char *word,
                 uint64_t before, uint64_t after, int digits)
{
    char what[FAB_LINK_TEXT], b[24], a[24];

    if (before == after)
        return;
    snprintf(what, sizeof(what), "%s: %s", of, word);
    if (digits > 0) {
        snprintf(b, sizeof(b), "0x%0*" PRIx64, digits, before);
        snprintf(a, sizeof(a), "0x%0*" PRIx64, digits, after);
    } else {
        snprintf(b, sizeof(b), "%" PRIu64, before);
        snprintf(a, sizeof(a), "%" PRIu64, after);
    }
    diff_add(w, FAB_CHANGE_OTHER, guid, port, what, b, a);
}

void diff_lid(struct diff_walk *w, const char *what, uint64_t guid, uint32_t port, unsigned before,
              unsigned after)
{
    char a[16], b[16];

    if (before == after)
        return;
    snprintf(a, sizeof(a), "%u", before);
    snprintf(b, sizeof(b), "%u", after);
    diff_add(w, FAB_CHANGE_LID, guid, port, what, a, b);
}

void fab_diff_destroy(struct fab_diff *diff)
{
    if (diff == NULL)
        return;
    for (uint32_t i = 0; i < diff->n; i++)
        free(diff->changes[i].what);
    free(diff->changes);
    *diff = (struct fab_diff){0};
}
