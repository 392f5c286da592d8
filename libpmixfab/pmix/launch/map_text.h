/*
 * map_text.h - PMIX_NODE_MAP and PMIX_PROC_MAP as the library's PMIx_generate_regex() and _ppn() write them
 * where they do not compress them: "pmix[node[4:1-16,20],login]", "pmix[0-3;4,5]" or "raw:0-3;4,5", or the
 * bare lists. The library's own parser dies of what it did not write.
 */
#ifndef FAB_PMIX_LAUNCH_MAP_TEXT_H
#define FAB_PMIX_LAUNCH_MAP_TEXT_H

#include <stdbool.h>

#define FAB_MAP_NODES (1u << 17) /* at most */

/* The names of the nodes, up to NULL; fab_map_free() them. NULL: that is no map, or no memory. */
char **fab_map_nodes(const char *text);

/* The ranks of each node, as they stand there; likewise. */
char **fab_map_ranks(const char *text);

void fab_map_free(char **list); /* NULL allowed */

#endif
