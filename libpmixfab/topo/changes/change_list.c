/* change_list.c - lists of changes with their texts. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "topo/base/array.h"
#include "topo/base/natural.h"
#include "topo/base/order.h"
#include "topo/base/text.h"
#include "topo/changes/changes_private.h"

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

const char *fab_change_name(enum fab_change_kind kind)
{
    return (size_t)kind < sizeof(kinds) / sizeof(kinds[0]) && kinds[kind] != NULL ? kinds[kind] : "unknown";
}

/* Return the bytes of a list of subjects, its terminating 0 included. */
static size_t subjects_size(const char *subjects)
{
    const char *at = subjects;
    while (*at != '\0')
        at = fab_subject_next(at);
    return (size_t)(at - subjects) + 1;
}

void diff_put(struct diff_out *out, const struct fab_change *like)
{
    struct fab_diff *diff = out->diff;
    const char *what = like->what, *subjects = like->subjects ?: "";
    const struct {
        const char *text;
        size_t size;
    } parts[] = {{like->before ?: "", DIFF_VALUE_TEXT},
                 {like->after ?: "", DIFF_VALUE_TEXT},
                 {like->why ?: "", DIFF_WHY_TEXT}};
    char clean[3][DIFF_WHY_TEXT];
    size_t n[3], n_what = strlen(what) + 1, n_subjects = subjects_size(subjects);

    if (out->rc == 0 && !FAB_ARRAY_ROOM(&diff->changes, &diff->cap, diff->n + 1))
        out->rc = PMIXFAB_ERR_NOMEM;
    if (out->rc != 0)
        return;
    for (int i = 0; i < 3; i++)
        n[i] = fab_text_clean(clean[i], parts[i].size, parts[i].text, strlen(parts[i].text), NULL) + 1;
    char *text = malloc(n_what + n[0] + n[1] + n[2] + n_subjects);
    if (text == NULL) {
        out->rc = PMIXFAB_ERR_NOMEM;
        return;
    }
    struct fab_change *change = &diff->changes[diff->n++];
    *change = *like;
    change->what = memcpy(text, what, n_what);
    change->before = memcpy(text += n_what, clean[0], n[0]);
    change->after = memcpy(text += n[0], clean[1], n[1]);
    change->why = memcpy(text += n[1], clean[2], n[2]);
    change->subjects = memcpy(text + n[2], subjects, n_subjects);
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

static int compare_changes(const void *a, const void *b)
{
    const struct fab_change *x = a, *y = b;
    return FAB_ORDER(x->kind, y->kind) ?: fab_natural_cmp(x->what, y->what) ?: FAB_ORDER(x->guid, y->guid)
           ?: FAB_ORDER(x->port, y->port);
}

void fab_diff_sort(struct fab_diff *diff)
{
    if (diff->n > 1)
        qsort(diff->changes, diff->n, sizeof(*diff->changes), compare_changes);
}

int diff_finish(struct diff_out *out)
{
    if (out->rc == PMIXFAB_OK)
        fab_diff_sort(out->diff);
    return out->rc;
}

int fab_diff_move(struct fab_diff *to, struct fab_diff *from)
{
    if (!FAB_ARRAY_ROOM(&to->changes, &to->cap, (uint64_t)to->n + from->n))
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t i = 0; i < from->n; i++)
        to->changes[to->n++] = from->changes[i];
    to->n_lost += from->n_lost;
    free(from->changes);
    *from = (struct fab_diff){0};
    return PMIXFAB_OK;
}

int fab_diff_repeat(struct fab_diff *diff, const struct fab_diff *from)
{
    struct diff_out out = {.diff = diff};

    for (uint32_t i = 0; i < from->n; i++)
        diff_put(&out, &from->changes[i]);
    return diff_finish(&out);
}

/*
 * ---- a change of a cable or a node that is not a difference of two inventories
 * -------------------------------
 */

/* The texts of one end. */
struct end_words {
    char text[FAB_NODE_TEXT + 16];
    char subject[FAB_NODE_TEXT]; /* a list of one subject, or none */
    size_t n_subject;
    bool is_switch;
};

static struct end_words end_words(const struct fab_inventory *const *invs, uint32_t n_invs,
                                  struct fab_told_end end)
{
    struct end_words words = {.n_subject = 0};
    char node[FAB_NODE_TEXT];
    snprintf(node, sizeof(node), "0x%016" PRIx64, end.guid);
    for (uint32_t i = 0, at = FAB_NONE; i < n_invs && at == FAB_NONE; i++) {
        at = fab_inventory_find(invs[i], end.guid);
        if (at == FAB_NONE)
            continue;
        const char *name = fab_node_known_as(invs[i], &invs[i]->nodes[at]);
        fab_node_text(invs[i], &invs[i]->nodes[at], node);
        words.is_switch = invs[i]->nodes[at].kind == FAB_SWITCH;
        words.n_subject = fab_text_clean(words.subject, sizeof(words.subject) - 1, name, strlen(name), NULL);
        words.n_subject += words.n_subject > 0;
    }
    if (end.port == 0)
        snprintf(words.text, sizeof(words.text), "%s", node);
    else
        snprintf(words.text, sizeof(words.text), "%s[%" PRIu32 "]", node, end.port);
    return words;
}

int fab_diff_append(struct fab_diff *diff, enum fab_change_kind kind, const struct fab_inventory *const *invs,
                    uint32_t n_invs, struct fab_told_end end, struct fab_told_end far, const char *before,
                    const char *after, const char *why)
{
    struct diff_out out = {.diff = diff};
    struct end_words first = end_words(invs, n_invs, end), second = {.n_subject = 0};
    char what[2 * sizeof(first.text) + 4], subjects[2 * FAB_NODE_TEXT] = "";

    if (far.guid != 0) {
        second = end_words(invs, n_invs, far);
        if (!first.is_switch && second.is_switch) {
            const struct end_words turned = first;
            first = second;
            second = turned;
        }
    }
    snprintf(what, sizeof(what), "%s%s%s", first.text, far.guid != 0 ? " - " : "", second.text);
    memcpy(subjects, first.subject, first.n_subject);
    memcpy(subjects + first.n_subject, second.subject, second.n_subject);
    diff_put(&out, &(struct fab_change){.kind = kind,
                                        .guid = end.guid,
                                        .port = end.port,
                                        .what = what,
                                        .before = (char *)before,
                                        .after = (char *)after,
                                        .why = why,
                                        .subjects = subjects});
    return out.rc;
}

int fab_diff_tell(struct fab_diff *diff, enum fab_change_kind kind, const struct fab_inventory *const *invs,
                  uint32_t n_invs, struct fab_told_end end, struct fab_told_end far, const char *before,
                  const char *after, const char *why)
{
    struct diff_out out = {diff, fab_diff_append(diff, kind, invs, n_invs, end, far, before, after, why)};
    return diff_finish(&out);
}
