/* hostlist.h - lists of hosts as Slurm writes them: "node[0001-0004,7],login1". */
#ifndef FAB_TOPO_BASE_HOSTLIST_H
#define FAB_TOPO_BASE_HOSTLIST_H

#include <stddef.h>
#include <stdint.h>

#include "topo/base/error.h"

#define FAB_HOSTLIST_MAX 1000000 /* names of one list: what is more is a slip of the keyboard */

/* Names in the order of the list, as often as they stand there. */
struct fab_hostlist {
    char **names;
    uint32_t n;
    uint32_t room;
};

/*
 * Names, separated by commas or white space. Ranges in brackets: "n[1-3,7]", several of them in a name
 * ("r[1-2]n[01-18]"), the last one counting fastest; the width of a range's first number is that of all of
 * it. On error *out is empty. PMIXFAB_ERR_SYNTAX: the message says what, and at which character.
 * PMIXFAB_ERR_RANGE: more than FAB_HOSTLIST_MAX names.
 */
int fab_hostlist_parse(const char *text, struct fab_hostlist *out, struct fab_err *err);
/* The same for who can take no more than `most` names: a short text may stand for a million. */
int fab_hostlist_parse_most(const char *text, uint32_t most, struct fab_hostlist *out, struct fab_err *err);
void fab_hostlist_free(struct fab_hostlist *list);

/*
 * The names, in their order, in the short form. What is in one pair of brackets has one prefix; a run is of
 * numbers of one width, or of numbers without leading zeros. Free with free(); NULL without memory. Names
 * with brackets, commas or white space in them do not come back.
 */
char *fab_hostlist_fold(const char *const *names, size_t n);

#endif
