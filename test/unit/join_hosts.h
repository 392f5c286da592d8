/* join_hosts.h - hosts that report and what is made of it, joined with what was swept, for tests. */
#ifndef TEST_UNIT_JOIN_HOSTS_H
#define TEST_UNIT_JOIN_HOSTS_H

#include "test/unit/handmade.h"
#include "test/unit/report_say.h"
#include "test/unit/report_world.h"

#define HOSTS_MAX 8

/* {0}: nothing is swept, nobody reports. */
struct hosts {
    struct fab_report reports[HOSTS_MAX];
    const struct fab_report *list[HOSTS_MAX]; /* of all: the order in which they are joined */
    uint32_t n;
    struct fab_inventory swept;
    struct fab_joined joined;
    char lines[8192]; /* what the last join remarked */
};

static inline void hosts_destroy(struct hosts *h)
{
    for (uint32_t i = 0; i < h->n; i++)
        fab_report_destroy(&h->reports[i]);
    fab_inventory_destroy(&h->swept);
    fab_joined_destroy(&h->joined);
}

/* One more host; what it says can be added until it is joined. */
static inline struct fab_report *hosts_begin(struct hosts *h, const char *name)
{
    struct fab_report *report = &h->reports[h->n];
    assert_true(h->n < HOSTS_MAX);
    h->list[h->n++] = report;
    world_begin(report, name);
    return report;
}

/* One more host, which says this (report_say.h). */
static inline struct fab_report *hosts_add(struct hosts *h, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static inline struct fab_report *hosts_add(struct hosts *h, const char *name, const char *fmt, ...)
{
    struct fab_report *report = hosts_begin(h, name);
    va_list args;
    va_start(args, fmt);
    report_say_list(report, fmt, args);
    va_end(args);
    return report;
}

/* Nobody reports any more; the sweep stays. */
static inline void hosts_silence(struct hosts *h)
{
    for (uint32_t i = 0; i < h->n; i++)
        fab_report_destroy(&h->reports[i]);
    h->n = 0;
}

static inline void hosts_keep_line(const char *line, void *cbdata)
{
    struct hosts *h = cbdata;
    size_t len = strlen(h->lines);
    assert_true(len + strlen(line) + 2 < sizeof(h->lines) && strchr(line, '\n') == NULL);
    snprintf(h->lines + len, sizeof(h->lines) - len, "%s\n", line);
}

/* What holds of all that is joined. */
static inline void hosts_check(const struct fab_joined *joined)
{
    const struct fab_details *d = &joined->details;
    assert_true(joined->inv.finished);
    assert_int_equal(d->n_ports, joined->inv.n_ports);
    SCOPED(fab_planes) planes = planes_of(&joined->inv);
    assert_int_equal(d->first[0], 0);
    for (uint32_t p = 0; p < d->n_ports; p++) {
        bool hca = joined->inv.nodes[joined->inv.ports[p].node].kind == FAB_HCA;
        assert_true(d->first[p] <= d->first[p + 1]);
        assert_true(d->seen[p] != 0);
        if (!hca)
            assert_int_equal(d->first[p], d->first[p + 1]);
        for (uint32_t f = d->first[p]; f < d->first[p + 1]; f++) {
            const struct fab_detail *fact = &d->facts[f];
            assert_true(fact->kind > 0 && fact->kind < FAB_FACTS && fact->sources != 0);
            assert_true(fact->text > 0 && fact->text < d->pool_size);
            assert_int_equal(fab_fact_check((enum fab_fact)fact->kind, d->pool + fact->text, NULL), 0);
            if (f == d->first[p] || fact[-1].kind != fact->kind)
                assert_true((fact->flags & FAB_DETAIL_CHOSEN) != 0);
            else
                assert_true(fact[-1].kind < fact->kind + 1);
        }
    }
}

/* Any reports with what is swept. past NULL: nothing was published before. */
static inline void hosts_join_list(struct hosts *h, const struct fab_report *const *list, uint32_t n,
                                   const struct fab_ethernet_plane *planes, uint32_t n_planes,
                                   const struct fab_prior_owners *past)
{
    if (!h->swept.finished)
        hand_finish(&h->swept);
    h->lines[0] = '\0';
    fab_joined_destroy(&h->joined);
    must_do(fab_join(
        NULL, &(struct fab_join_input){&h->swept, list, NULL, n, planes, n_planes, past, hosts_keep_line, h},
        &h->joined, fresh_err()));
    hosts_check(&h->joined);
}

static inline void hosts_join(struct hosts *h, const struct fab_ethernet_plane *planes, uint32_t n_planes,
                              const struct fab_prior_owners *past)
{
    for (uint32_t i = 0; i < h->n; i++)
        world_finish(&h->reports[i]);
    hosts_join_list(h, h->list, h->n, planes, n_planes, past);
}

static inline const struct fab_node *hosts_node(const struct hosts *h, uint64_t guid)
{
    uint32_t node = fab_inventory_find(&h->joined.inv, guid);
    assert_int_not_equal(node, FAB_NONE);
    return &h->joined.inv.nodes[node];
}

static inline uint32_t hosts_port(const struct hosts *h, uint64_t guid, unsigned num)
{
    return fab_inventory_port(&h->joined.inv, fab_inventory_find(&h->joined.inv, guid), num);
}

/* Host and name of a node: "a mlx5_0". */
static inline void assert_called(const struct hosts *h, uint64_t guid, const char *host_and_name)
{
    const struct fab_node *node = hosts_node(h, guid);
    char text[200];
    snprintf(text, sizeof(text), "%s %s", fab_str(&h->joined.inv, node->host),
             fab_str(&h->joined.inv, node->name));
    assert_string_equal(text, host_and_name);
}

/* What is believed of a port: "state up, numa 1, gid" - of a kind without a text nothing is known. */
static inline void assert_facts(const struct fab_joined *joined, uint32_t port, const char *facts)
{
    char list[400], *rest = NULL;
    snprintf(list, sizeof(list), "%s", facts);
    for (char *fact = strtok_r(list, ",", &rest); fact != NULL; fact = strtok_r(NULL, ",", &rest)) {
        char *kind = fact + strspn(fact, " "), *text = strchr(kind, ' ');
        if (text != NULL)
            *text++ = '\0';
        assert_int_not_equal(fab_fact_parse(kind), 0);
        const char *is = world_text(joined, port, fab_fact_parse(kind));
        if (text == NULL ? is != NULL : is == NULL || strcmp(is, text) != 0)
            fail_msg("%s is %s, not %s", kind, is == NULL ? "unknown" : is, text == NULL ? "unknown" : text);
    }
}

#endif
