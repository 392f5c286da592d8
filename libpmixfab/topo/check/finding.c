/* finding.c - how one finds what is not usual, and how it is noted. */
#include "topo/check/finding.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "topo/base/array.h"
#include "topo/base/order.h"
#include "topo/base/text.h"

void *check_array(struct check *c, size_t n, size_t size)
{
    void *array = c->rc == PMIXFAB_OK ? calloc(n + 1, size) : NULL;
    if (array == NULL && c->rc == PMIXFAB_OK)
        c->rc = PMIXFAB_ERR_NOMEM;
    return array;
}

int fab_findings_add(struct fab_findings *findings, enum fab_check_kind kind, const char *where,
                     const char *what)
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
    findings->findings[findings->n++] = (struct fab_finding){.kind = kind, .where = text, .what = text + at};
    return PMIXFAB_OK;
}

void check_add(struct check *c, enum fab_check_kind kind, const char *where, const char *fmt, ...)
{
    char what[CHECK_WHAT_TEXT];
    va_list args;
    if (c->rc != PMIXFAB_OK)
        return;
    va_start(args, fmt);
    vsnprintf(what, sizeof(what), fmt, args);
    va_end(args);
    c->rc = fab_findings_add(c->out, kind, where, what);
}

/* ---- what is usual --------------------------------------------------------------------------------- */

#define PEERS 3 /* fewer have no usual */

uint64_t check_hash(const char *text, size_t len, uint64_t seed)
{
    return XXH3_64bits_withSeed(text, len, seed);
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

/* The n votes of one group, sorted. More than half have what the middle one has, or nobody is in a majority.
 */
static void count_group(struct check *c, const struct check_vote *votes, uint32_t n, check_odd_fn fn,
                        void *cbdata)
{
    struct check_usual usual = {.value = votes[n / 2].value, .of = n};
    for (uint32_t i = 0; i < n; i++)
        usual.n += votes[i].value == usual.value;
    if (n < PEERS || usual.n <= n / 2)
        return;
    for (uint32_t i = 0; i < n; i++)
        if (votes[i].value != usual.value)
            fn(c, &votes[i], &usual, cbdata);
}

void check_count(struct check *c, struct check_vote *votes, uint32_t n, check_odd_fn fn, void *cbdata)
{
    if (n == 0 || c->rc != PMIXFAB_OK)
        return;
    qsort(votes, n, sizeof(*votes), compare_votes);
    for (uint32_t from = 0, to = 0; from < n; from = to) {
        while (to < n && votes[to].group == votes[from].group)
            to++;
        count_group(c, votes + from, to - from, fn, cbdata);
    }
}
