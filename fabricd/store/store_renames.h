/* store_renames.h - the names under which a host or a switch was known, one after the other. */
#ifndef FABRICD_STORE_STORE_RENAMES_H
#define FABRICD_STORE_STORE_RENAMES_H

#include "fabricd/store/store.h"
#include "topo/changes/changes.h"

/* So many names at most are followed. */
#define STORE_NAMES_MAX 64

/*
 * A common table expression: `line`, the names that belong to the history of ?3, each with the generations
 * (after, until] in which it does. The name itself: always. From there back through what was called otherwise
 * until it got the name, as long as it had that one; and on, through what is called otherwise since. Whoever
 * else had such a name before or later is not followed.
 */
#define STORE_LINE                                                                                           \
    "WITH RECURSIVE line (name, after, until, way) AS ("                                                     \
    " SELECT ?3, 0, 9223372036854775807, 0"                                                                  \
    " UNION SELECT r.former, ifnull((SELECT max(o.generation) FROM renamed AS o"                             \
    "   WHERE o.former = r.former AND o.generation < r.generation), 0), r.generation, -1"                    \
    "  FROM line JOIN renamed AS r ON r.name = line.name"                                                    \
    "  WHERE way <= 0 AND r.generation > line.after AND r.generation <= line.until"                          \
    " UNION SELECT r.name, r.generation - 1, ifnull((SELECT min(o.generation) FROM renamed AS o"             \
    "   WHERE o.former = r.name AND o.generation > r.generation), 9223372036854775807), 1"                   \
    "  FROM line JOIN renamed AS r ON r.former = line.name"                                                  \
    "  WHERE way >= 0 AND r.generation > line.after AND r.generation <= line.until"                          \
    " LIMIT 64) "

/*
 * Of changes with `renamed`: what was called as the first of its subjects is called as the second since this
 * generation. Where several were called so, or are called so now, nothing is written. In a transaction.
 */
int store_write_renamed(struct store *store, uint64_t generation, const struct fab_diff *diff,
                        struct fab_err *err);

struct store_name {
    const char *name;
    uint64_t from, to; /* generations in which it is followed; to 0: until now */
};
typedef int (*store_name_fn)(const struct store_name *name, void *cbdata); /* non-zero ends the walk */

/* The other names that store_history() follows for `what`, by name, each with its generations. fn must not
 * call the store. */
int store_names(struct store *store, const char *what, store_name_fn fn, void *cbdata, struct fab_err *err);

#endif
