/* names_priv.h - between names.c and the reader of maps. */
#ifndef FAB_TOPO_MODEL_NAMES_PRIV_H
#define FAB_TOPO_MODEL_NAMES_PRIV_H

#include <regex.h>
#include <stdbool.h>

#include "topo/model/names.h"

#define NAMES_DESC_MAX 64 /* bytes of an InfiniBand node description; what is longer is not looked at */
#define NAMES_MAX_SIZE 256
#define NAMES_GROUPS   10 /* of a pattern, the whole of it included */

/* A line of a node-name-map. */
struct fab_map_entry {
    uint64_t guid;
    char *name;
    uint32_t line, column;
    bool whole; /* the name of a host is all of it */
};

/* An operator's own pattern. */
struct fab_pattern {
    regex_t regex;
    bool compiled; /* regex is in use; else the default, matched by hand */
};

struct fab_names {
    struct fab_pattern hosts, switches;
    struct fab_map_entry *map; /* by GUID */
    uint32_t n_map;
};

/* What the map says of a node, NULL: nothing. */
const struct fab_map_entry *fab_names_mapped(const struct fab_names *names, uint64_t guid);

/* Decide of each name of the map that the pattern does not fit whether its first word is the host's name.
 * PMIXFAB_ERR_NOMEM. */
int names_first_words(struct fab_names *names);

#endif
