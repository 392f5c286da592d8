/* Hosts that are called otherwise, many at once: as one by one. */
#include "test/unit/handmade.h"

#include "topo/base/text.h"
#include "topo/correlate/correlation.h"

#define RENAMED "the same GUIDs under another host's name"

/* HCAs with a cable each: which host has which is all that counts here. */
static void make_hcas(struct fab_inventory *inv, uint32_t n)
{
    uint32_t leaf = FAB_NONE;
    fab_inventory_init(inv);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t hca = hand_node(inv, FAB_HCA, 0x100000 + 2 * i, "", 1, 0);
        if (i % 200 == 0)
            leaf = hand_node(inv, FAB_SWITCH, 0x900000 + i, "", 200, 0);
        hand_cable(inv, hca, 1, leaf, i % 200 + 1);
    }
    hand_finish(inv);
}

static void call(struct fab_inventory *inv, uint32_t hca, const char *host, const char *name)
{
    struct fab_node *node = &inv->nodes[fab_inventory_find(inv, 0x100000 + 2 * hca)];
    node->host = fab_inventory_string(inv, host, strlen(host));
    node->name = fab_inventory_string(inv, name, strlen(name));
}

/* ---- the plain way: of each change all others are looked at ---------------------------------------- */

static bool plain_renamed(const struct correlation *s, uint32_t raw, const char **from, const char **to)
{
    const struct fab_change *change = &s->raw->changes[raw];
    if (change->kind != FAB_CHANGE_NAME || s->taken[raw])
        return false;
    const struct fab_node *b = &s->before->nodes[fab_inventory_find(s->before, change->guid)];
    const struct fab_node *a = &s->after->nodes[fab_inventory_find(s->after, change->guid)];
    *from = fab_str(s->before, b->host);
    *to = fab_str(s->after, a->host);
    return strcmp(*from, *to) != 0;
}

/* The reason, where so many devices are called otherwise, this one first. */
static void plain_why(const struct correlation *s, uint64_t guid, uint32_t n, char why[DIFF_WHY_TEXT])
{
    char more[40] = "";
    if (n > 1)
        snprintf(more, sizeof(more), ", and %u more", n - 1);
    snprintf(why, DIFF_WHY_TEXT, RENAMED);
    if (n > 0)
        snprintf(why, DIFF_WHY_TEXT, RENAMED "; device %s is called %s now%s",
                 fab_str(s->before, s->before->nodes[fab_inventory_find(s->before, guid)].name),
                 fab_str(s->after, s->after->nodes[fab_inventory_find(s->after, guid)].name), more);
}

static bool plain_device_renamed(const struct correlation *s, uint64_t guid)
{
    return strcmp(fab_str(s->before, s->before->nodes[fab_inventory_find(s->before, guid)].name),
                  fab_str(s->after, s->after->nodes[fab_inventory_find(s->after, guid)].name)) != 0;
}

/* The first that nobody took, looking at all. */
static uint32_t plain_host(const struct correlation *s, enum fab_change_kind kind, const char *name)
{
    char what[FAB_NODE_TEXT];
    fab_text_clean(what, sizeof(what), name, strlen(name), NULL);
    for (uint32_t i = 0; i < s->raw->n; i++)
        if (s->raw->changes[i].kind == kind && !s->taken[i] && strcmp(s->raw->changes[i].what, what) == 0)
            return i;
    return FAB_NONE;
}

static void plain_way(struct correlation *s)
{
    for (uint32_t i = 0; i < s->raw->n; i++) {
        const char *from, *to, *other_from, *other_to;
        char clean_from[FAB_NODE_TEXT], clean_to[FAB_NODE_TEXT], why[DIFF_WHY_TEXT];
        if (!plain_renamed(s, i, &from, &to))
            continue;
        uint32_t lost = plain_host(s, FAB_CHANGE_HOST_LOST, from);
        uint32_t added = plain_host(s, FAB_CHANGE_HOST_ADDED, to);
        if (lost == FAB_NONE || added == FAB_NONE)
            continue;
        claim_raw_this(s, lost);
        claim_raw_this(s, added);
        uint32_t devices = 0;
        uint64_t first = 0;
        for (uint32_t k = 0; k < s->raw->n; k++)
            if (plain_renamed(s, k, &other_from, &other_to) && strcmp(from, other_from) == 0 &&
                strcmp(to, other_to) == 0) {
                const uint64_t guid = claim_raw_this(s, k)->guid;
                if (plain_device_renamed(s, guid) && devices++ == 0)
                    first = guid;
            }
        plain_why(s, first, devices, why);
        correlation_subject(s, from);
        correlation_subject(s, to);
        fab_text_clean(clean_from, sizeof(clean_from), from, strlen(from), NULL);
        fab_text_clean(clean_to, sizeof(clean_to), to, strlen(to), NULL);
        s->past.renamed = true;
        correlation_conclude(s, FAB_CHANGE_NAME, s->raw->changes[i].guid, 0, clean_from, clean_from, clean_to,
                             why);
    }
}

/* ---- both on the same ------------------------------------------------------------------------------ */

struct announced {
    struct fab_diff diff;
    struct correlation story;
};

/* As much of a story as is looked at; what others took before is the same for both. */
static void tell(struct announced *told, const struct fab_inventory *before,
                 const struct fab_inventory *after, const struct fab_diff *raw, uint64_t dice,
                 void (*way)(struct correlation *s))
{
    memset(told, 0, sizeof(*told));
    told->story =
        (struct correlation){.before = before, .after = after, .raw = raw, .out = {.diff = &told->diff}};
    told->story.taken = calloc(raw->n + 1u, sizeof(bool));
    assert_non_null(told->story.taken);
    for (uint32_t i = 0; i < raw->n; i++)
        told->story.taken[i] = fabric_random_next(&dice) % 16 == 0;
    way(&told->story);
    assert_int_equal(told->story.out.rc, PMIXFAB_OK);
    assert_int_equal(told->story.n_taken, 0);
}

static void forget(struct announced *told)
{
    free(told->story.taken);
    free(told->story.subjects.text);
    fab_diff_destroy(&told->diff);
}

static void assert_same(const struct announced *a, const struct announced *b)
{
    assert_int_equal(a->diff.n, b->diff.n);
    for (uint32_t i = 0; i < a->diff.n; i++) {
        const struct fab_change *x = &a->diff.changes[i], *y = &b->diff.changes[i];
        assert_int_equal(x->guid, y->guid);
        assert_int_equal(x->n_raw, y->n_raw);
        assert_true(x->renamed && y->renamed);
        assert_string_equal(x->what, y->what);
        assert_string_equal(x->before, y->before);
        assert_string_equal(x->after, y->after);
        assert_string_equal(x->why, y->why);
        assert_string_equal(x->subjects, y->subjects);
        assert_string_equal(fab_subject_next(x->subjects), fab_subject_next(y->subjects));
    }
    assert_memory_equal(a->story.taken, b->story.taken, a->story.raw->n * sizeof(bool));
}

/* Most HCAs of a host go to the same other one; names are few, and some are only the same when cleaned. */
static void random_names(struct fab_inventory *before, struct fab_inventory *after, uint32_t n,
                         uint64_t *dice)
{
    static const char *const names[] = {"h0", "h1", "h2",  "h3",     "h4",     "h5", "n0",
                                        "n1", "n2", "n10", "x\001y", "x\002y", "x?y"};
    const uint64_t n_names = sizeof(names) / sizeof(names[0]);
    uint64_t to[16];
    for (uint64_t i = 0; i < n_names; i++)
        to[i] = fabric_random_next(dice) % n_names;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t host = fabric_random_next(dice) % n_names, other = to[host];
        if (fabric_random_next(dice) % 8 == 0)
            other = fabric_random_next(dice) % n_names;
        const char *name = printed("HCA-%u", i);
        call(before, i, names[host], name);
        call(after, i, names[other], fabric_random_next(dice) % 16 == 0 ? "HCA-other" : name);
    }
}

TEST(test_as_one_by_one)
{
    uint32_t renamed = 0, several = 0;
    for (uint64_t seed = 1; seed <= 1500; seed++) {
        SCOPED(fab_inventory) before, after;
        SCOPED(fab_diff) raw;
        struct announced one, all;
        uint64_t dice = seed * 7919;
        uint32_t n = 1 + (uint32_t)(seed % 20);
        make_hcas(&before, n);
        make_hcas(&after, n);
        random_names(&before, &after, n, &dice);
        assert_int_equal(fab_diff_compute(&before, &after, &raw), 0);
        tell(&one, &before, &after, &raw, seed, plain_way);
        tell(&all, &before, &after, &raw, seed, correlation_renamed);
        assert_same(&all, &one);
        renamed += all.diff.n;
        for (uint32_t i = 0; i < all.diff.n; i++)
            several += all.diff.changes[i].n_raw > 3;
        forget(&one);
        forget(&all);
    }
    assert_true(renamed > 500 && several > 50);
}
