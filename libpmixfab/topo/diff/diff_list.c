/* diff_text.c - changes in an operator's words. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/base/text.h"
#include "topo/diff/text_sizes.h"

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
};

#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

const char *fab_change_name(enum fab_change_kind kind)
{
    return (size_t)kind < N_KINDS && kinds[kind] != NULL ? kinds[kind] : "unknown";
}

void diff_name_text(enum fab_node_kind kind, uint64_t guid, const char *host, const char *name,
                    char text[DIFF_NODE_TEXT])
{
    int n;

    if (kind != FAB_HCA)
        host = "";
    if (*host == '\0' && *name == '\0')
        n = snprintf(text, DIFF_NODE_TEXT, "0x%016" PRIx64, guid);
    else
        n = snprintf(text, DIFF_NODE_TEXT, "%s%s%s", host, *host != '\0' && *name != '\0' ? " " : "", name);
    fab_text_clean(text, DIFF_NODE_TEXT, text, n < 0 ? 0 : DIFF_NODE_TEXT - 1, NULL);
}

void diff_node_text(const struct fab_inventory *inv, const struct fab_node *node, char text[DIFF_NODE_TEXT])
{
    diff_name_text(node->kind, node->guid, fab_str(inv, node->host), fab_str(inv, node->name), text);
}

void diff_port_text(const struct fab_inventory *inv, const struct fab_port *port, char text[DIFF_PORT_TEXT])
{
    char node[DIFF_NODE_TEXT];
    diff_node_text(inv, &inv->nodes[port->node], node);
    snprintf(text, DIFF_PORT_TEXT, "%s[%u]", node, port->num);
}

void diff_link_text(const struct fab_inventory *inv, const struct fab_port *port, char text[DIFF_WHAT_TEXT])
{
    const struct fab_port *peer = &inv->ports[port->peer];
    char a[DIFF_PORT_TEXT], b[DIFF_PORT_TEXT];

    if (inv->nodes[port->node].kind != FAB_SWITCH && inv->nodes[peer->node].kind == FAB_SWITCH) {
        const struct fab_port *end = port;
        port = peer;
        peer = end;
    }
    diff_port_text(inv, port, a);
    diff_port_text(inv, peer, b);
    snprintf(text, DIFF_WHAT_TEXT, "%s - %s", a, b);
}

void diff_rate_text(const struct fab_port *port, char text[32])
{
    if (port->width == 0 && port->speed == FAB_SPEED_UNKNOWN)
        snprintf(text, 32, "?");
    else if (port->width == 0)
        snprintf(text, 32, "?x%s", fab_speed_name(port->speed));
    else
        snprintf(text, 32, "%ux%s", port->width, fab_speed_name(port->speed));
}

const char *diff_state_text(unsigned state)
{
    static const char *const names[] = {"UNKNOWN", "DOWN", "INIT", "ARMED", "ACTIVE"};
    return state < sizeof(names) / sizeof(names[0]) ? names[state] : "UNKNOWN";
}

static bool diff_reserve(struct diff_walk *w)
{
    struct fab_diff *diff = w->diff;

    if (diff->n < diff->cap)
        return true;
    uint32_t cap = diff->cap == 0 ? 16 : diff->cap * 2;
    struct fab_change *bigger = realloc(diff->changes, cap * sizeof(*bigger));
    if (bigger == NULL) {
        w->rc = PMIXFAB_ERR_NOMEM;
        return false;
    }
    diff->changes = bigger;
    diff->cap = cap;
    return true;
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

    if (w->rc != 0 || !diff_reserve(w))
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
    char what[DIFF_WHAT_TEXT], b[24], a[24];

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

void fab_diff_destroy(struct fab_diff *diff)
{
    if (diff == NULL)
        return;
    for (uint32_t i = 0; i < diff->n; i++)
        free(diff->changes[i].what);
    free(diff->changes);
    *diff = (struct fab_diff){0};
}
