/* hostlist.h - lists of hosts in Slurm's form: "node[0001-0004,7],login1". */
#ifndef FAB_TOPO_BASE_HOSTLIST_H
#define FAB_TOPO_BASE_HOSTLIST_H

#include <stddef.h>
#include <stdint.h>

#include "topo/base/error.h"

#define FAB_HOSTLIST_MAX 1000000 /* names in one list; more are taken for a typing error */

/* The names in the order of the list; repeated names stay. */
struct fab_hostlist {
    char **names;
    uint32_t n;
    uint32_t room;
};

/*
 * Expand a list of names separated by commas or white space. Names may have ranges in brackets: "n[1-3,7]",
 * also several ("r[1-2]n[01-18]"), the last one counting fastest. The first number of a range sets its width.
 * On error *out is empty. PMIXFAB_ERR_SYNTAX: the message names the fault and the character.
 * PMIXFAB_ERR_RANGE: more than FAB_HOSTLIST_MAX names.
 */
int fab_hostlist_parse(const char *text, struct fab_hostlist *out, struct fab_err *err);
/* As above, with a limit of `most` names: a short text can stand for a million. */
int fab_hostlist_parse_most(const char *text, uint32_t most, struct fab_hostlist *out, struct fab_err *err);
void fab_hostlist_free(struct fab_hostlist *list);

/*
 * Write the names in the short form, in their order. Each pair of brackets belongs to one prefix; a run has
 * numbers of one width, or numbers without leading zeros. Free the result with free(); NULL without memory.
 * Names that contain brackets, commas or white space cannot be parsed again.
 */
char *fab_hostlist_fold(const char *const *names, size_t n);

#endif
