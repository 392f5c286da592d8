/* finding.c - how one finds what is not usual, and how it is noted. */
#include "topo/changes/finding.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "topo/base/array.h"
#include "topo/base/hostlist.h"
#include "topo/base/natural.h"
#include "topo/base/order.h"
#include "topo/base/text.h"
#include "topo/model/host_name.h"

void *check_array(struct check *c, size_t n, size_t size)
{
    void *array = c->rc == PMIXFAB_OK ? calloc(n + 1, size) : NULL;
    if (array == NULL && c->rc == PMIXFAB_OK)
        c->rc = PMIXFAB_ERR_NOMEM;
    return array;
}

/* ---- what it is about ------------------------------------------------------------------------------- */

struct fab_about fab_about_node(const struct fab_node *node)
{
    return (struct fab_about){.end[0].guid = node->guid};
}

struct fab_about fab_about_port(const struct fab_inventory *inv, const struct fab_port *port)
{
    return (struct fab_about){.end[0] = {inv->nodes[port->node].guid, port->num}};
}

struct fab_about fab_about_cable(const struct fab_inventory *inv, const struct fab_port *port)
{
    struct fab_about about = fab_about_port(inv, port);
    if (port->peer != FAB_NONE)
        about.end[1] = fab_about_port(inv, &inv->ports[port->peer]).end[0];
    return about;
}

struct fab_about fab_about_text(const char *text)
{
    return (struct fab_about){.text = text};
}

struct fab_about check_about_state(struct fab_about about, uint64_t state)
{
    about.state = state;
    return about;
}

/* It goes into the store, and operators write it down: the bytes that are hashed are the same everywhere. */
uint64_t fab_finding_id(enum fab_check_kind kind, const struct fab_about *about)
{
    const bool swap = (FAB_ORDER(about->end[0].guid, about->end[1].guid)
                           ?: FAB_ORDER(about->end[0].port, about->end[1].port)) > 0;
    char text[FAB_LINK_TEXT];
    int len =
        snprintf(text, sizeof(text), "%s %" PRIx64 " %" PRIu32 " %" PRIx64 " %" PRIu32 " %.1000s",
                 fab_check_name(check_family(kind)), about->end[swap].guid, about->end[swap].port,
                 about->end[!swap].guid, about->end[!swap].port, about->text == NULL ? "" : about->text);
    return check_hash(text, (size_t)len, 0) ?: 1;
}

void fab_finding_id_text(uint64_t id, char text[FAB_FINDING_ID_TEXT])
{
    snprintf(text, FAB_FINDING_ID_TEXT, "%016" PRIx64, id);
}

bool fab_finding_id_matches(const char text[FAB_FINDING_ID_TEXT], const char *digits)
{
    return strlen(digits) >= FAB_FINDING_DIGITS && strncmp(text, digits, strlen(digits)) == 0;
}

/* ---- noting it -------------------------------------------------------------------------------------- */

int fab_findings_add(struct fab_findings *findings, enum fab_check_kind kind, struct fab_about about,
                     const char *where, const char *what)
{
    char clean_what[CHECK_WHAT_TEXT], clean[FAB_LINK_TEXT];
    size_t len = fab_text_clean(clean_what, sizeof(clean_what), what, strlen(what), NULL) + 1;
    size_t at = fab_text_clean(clean, sizeof(clean), where, strlen(where), NULL) + 1;
    char *text =
        FAB_ARRAY_ROOM(&findings->findings, &findings->cap, findings->n + 1) ? malloc(at + len) : NULL;
    if (text == NULL)
        return PMIXFAB_ERR_NOMEM;
    memcpy(text, clean, at);
    memcpy(text + at, clean_what, len);
    findings->findings[findings->n++] = (struct fab_finding){.kind = kind,
                                                             .id = fab_finding_id(kind, &about),
                                                             .state = about.state,
                                                             .end = {about.end[0], about.end[1]},
                                                             .where = text,
                                                             .what = text + at};
    return PMIXFAB_OK;
}

int fab_findings_copy(struct fab_findings *to, const struct fab_findings *from)
{
    if (!FAB_ARRAY_ROOM(&to->findings, &to->cap, to->n + from->n))
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t i = 0; i < from->n; i++) {
        struct fab_finding *copy = &to->findings[to->n];
        const struct fab_finding *finding = &from->findings[i];
        const size_t at = strlen(finding->where) + 1, len = at + strlen(finding->what) + 1;
        *copy = *finding;
        copy->where = malloc(len);
        if (copy->where == NULL)
            return PMIXFAB_ERR_NOMEM;
        copy->what = copy->where + at;
        memcpy(copy->where, finding->where, len);
        to->n++;
    }
    return PMIXFAB_OK;
}

void check_add(struct check *c, enum fab_check_kind kind, struct fab_about about, const char *where,
               const char *fmt, ...)
{
    char what[CHECK_WHAT_TEXT];
    va_list args;
    if (c->rc != PMIXFAB_OK)
        return;
    va_start(args, fmt);
    vsnprintf(what, sizeof(what), fmt, args);
    va_end(args);
    c->rc = fab_findings_add(c->out, kind, about, where, what);
}

/* ---- what is usual --------------------------------------------------------------------------------- */

#define PEERS 3 /* fewer have no usual */

uint64_t check_hash(const char *text, size_t len, uint64_t seed)
{
    return XXH3_64bits_withSeed(text, len, seed);
}

uint64_t check_stem(const char *host)
{
    char stem[FAB_HOST_MAX + 1];
    size_t n = 0;
    for (const char *s = host; *s != '\0' && n < sizeof(stem); s++) {
        bool digit = isdigit((unsigned char)*s) != 0;
        if (!digit)
            stem[n++] = *s;
        else if (n == 0 || stem[n - 1] != '#')
            stem[n++] = '#';
    }
    return check_hash(stem, n, 0);
}

void check_rate_text(uint64_t mbps, char text[32])
{
    snprintf(text, 32, "%g Gb/s", (double)mbps / 1000);
}

static int compare_votes(const void *x, const void *y)
{
    const struct check_vote *a = x, *b = y;
    return FAB_ORDER(a->group, b->group) ?: FAB_ORDER(a->value, b->value) ?: FAB_ORDER(a->index, b->index);
}

/* Of the n votes of one group, sorted: what the middle one has, which more than half have, or nobody does. */
static struct check_usual count_group(const struct check_vote *votes, uint32_t n)
{
    struct check_usual usual = {.value = votes[n / 2].value, .of = n};
    for (uint32_t i = 0; i < n; i++)
        usual.n += votes[i].value == usual.value;
    return usual;
}

bool check_is_usual(const struct check_usual *usual)
{
    return usual->of >= PEERS && usual->n > usual->of / 2;
}

void check_sort_votes(struct check_vote *votes, uint32_t n)
{
    if (n > 1)
        qsort(votes, n, sizeof(*votes), compare_votes);
}

void check_count_all(struct check *c, struct check_vote *votes, uint32_t n, check_odd_fn fn, void *cbdata)
{
    if (n == 0 || c->rc != PMIXFAB_OK)
        return;
    check_sort_votes(votes, n);
    for (uint32_t from = 0, to = 0; from < n; from = to) {
        while (to < n && votes[to].group == votes[from].group)
            to++;
        const struct check_usual usual = count_group(votes + from, to - from);
        for (uint32_t i = from; i < to; i++)
            fn(c, &votes[i], &usual, cbdata);
    }
}

/* Who wants to hear of those only that have something else than is usual. */
struct odd_only {
    check_odd_fn fn;
    void *cbdata;
};

static void pass_on_odd(struct check *c, const struct check_vote *vote, const struct check_usual *usual,
                        void *cbdata)
{
    const struct odd_only *only = cbdata;
    if (check_is_usual(usual) && vote->value != usual->value)
        only->fn(c, vote, usual, only->cbdata);
}

void check_count(struct check *c, struct check_vote *votes, uint32_t n, check_odd_fn fn, void *cbdata)
{
    check_count_all(c, votes, n, pass_on_odd, &(struct odd_only){fn, cbdata});
}

/* ---- what a whole kind has in common ---------------------------------------------------------------- */

static int check_compare_names(const void *x, const void *y)
{
    const char *const *a = x, *const *b = y;
    return fab_natural_cmp(*a, *b);
}

void check_kind(struct check *c, uint64_t identity, const char **names, uint32_t n, uint64_t state,
                const char *what)
{
    char where[256], text[32];
    uint32_t kept = 0;
    qsort(names, n, sizeof(*names), check_compare_names);
    for (uint32_t i = 0; i < n; i++)
        if (kept == 0 || strcmp(names[kept - 1], names[i]) != 0)
            names[kept++] = names[i];
    char *list = fab_hostlist_fold(names, kept);
    if (list == NULL) {
        c->rc = PMIXFAB_ERR_NOMEM;
        return;
    }
    snprintf(where, sizeof(where), "%.240s%s", list, strlen(list) > 240 ? " ..." : "");
    snprintf(text, sizeof(text), "%016" PRIx64, identity);
    check_add(c, FAB_CHECK_OTHER_KIND, check_about_state(fab_about_text(text), state), where, "%s", what);
    free(list);
}
