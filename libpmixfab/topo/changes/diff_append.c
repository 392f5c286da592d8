/* diff_append.c - a change that is not between two inventories, about a cable or a node. */
#include <inttypes.h>
#include <stdio.h>

#include "topo/base/text.h"
#include "topo/changes/text_sizes.h"

/* The name of this node, as the next one in the list; the list's end behind it. */
static size_t add_subject(const struct fab_inventory *inv, const struct fab_node *node, char *list,
                          size_t size)
{
    const char *name = fab_node_known_as(inv, node);
    size_t n = fab_text_clean(list, size - 1, name, strlen(name), NULL);
    n += n > 0;
    list[n] = '\0';
    return n;
}

/* What is told of one end. */
struct end_words {
    char text[FAB_NODE_TEXT + 16];
    char subject[FAB_NODE_TEXT]; /* a list of one, or none */
    size_t n_subject;
    bool is_switch;
};

static void say_end(const struct fab_inventory *const *invs, uint32_t n_invs, struct fab_told_end end,
                    struct end_words *out)
{
    char node[FAB_NODE_TEXT];
    snprintf(node, sizeof(node), "0x%016" PRIx64, end.guid);
    *out = (struct end_words){.subject = ""};
    for (uint32_t i = 0; i < n_invs; i++) {
        uint32_t at = fab_inventory_find(invs[i], end.guid);
        if (at == FAB_NONE)
            continue;
        fab_node_text(invs[i], &invs[i]->nodes[at], node);
        out->is_switch = invs[i]->nodes[at].kind == FAB_SWITCH;
        out->n_subject = add_subject(invs[i], &invs[i]->nodes[at], out->subject, sizeof(out->subject));
        break;
    }
    if (end.port == 0)
        snprintf(out->text, sizeof(out->text), "%s", node);
    else
        snprintf(out->text, sizeof(out->text), "%s[%" PRIu32 "]", node, end.port);
}

int fab_diff_append(struct fab_diff *diff, enum fab_change_kind kind, const struct fab_inventory *const *invs,
                    uint32_t n_invs, struct fab_told_end end, struct fab_told_end far, const char *before,
                    const char *after, const char *why)
{
    struct diff_walk walk = {.diff = diff};
    struct end_words one, other;
    char what[2 * sizeof(one.text) + 4], subjects[2 * FAB_NODE_TEXT] = "";

    say_end(invs, n_invs, end, &one);
    if (far.guid == 0) {
        snprintf(what, sizeof(what), "%s", one.text);
        memcpy(subjects, one.subject, one.n_subject + 1);
    } else {
        say_end(invs, n_invs, far, &other);
        const bool turned = !one.is_switch && other.is_switch;
        const struct end_words *first = turned ? &other : &one, *second = turned ? &one : &other;
        snprintf(what, sizeof(what), "%s - %s", first->text, second->text);
        memcpy(subjects, first->subject, first->n_subject + 1);
        memcpy(subjects + first->n_subject, second->subject, second->n_subject + 1);
    }
    diff_put(&walk, &(struct fab_change){.kind = kind,
                                         .guid = end.guid,
                                         .port = end.port,
                                         .what = what,
                                         .before = (char *)before,
                                         .after = (char *)after,
                                         .why = why,
                                         .subjects = subjects,
                                         .n_raw = 0});
    return walk.rc;
}

int fab_diff_tell(struct fab_diff *diff, enum fab_change_kind kind, const struct fab_inventory *const *invs,
                  uint32_t n_invs, struct fab_told_end end, struct fab_told_end far, const char *before,
                  const char *after, const char *why)
{
    int rc = fab_diff_append(diff, kind, invs, n_invs, end, far, before, after, why);
    if (rc == PMIXFAB_OK)
        fab_diff_sort(diff);
    return rc;
}

int fab_diff_repeat(struct fab_diff *diff, const struct fab_diff *from)
{
    struct diff_walk walk = {.diff = diff};

    for (uint32_t i = 0; i < from->n; i++)
        diff_put(&walk, &from->changes[i]);
    if (walk.rc == PMIXFAB_OK)
        fab_diff_sort(diff);
    return walk.rc;
}
