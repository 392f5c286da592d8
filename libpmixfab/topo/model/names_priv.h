/* names_priv.h - between names.c, which names nodes, and names_map.c, which has what they say. */
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

/* What a text says: pieces of it. */
struct names_split {
    const char *host, *device; /* device NULL: none said */
    size_t host_len, device_len;
};

/* What the map says of a node, NULL: nothing. */
const struct fab_map_entry *fab_names_mapped(const struct fab_names *names, uint64_t guid);
/* What a mapped name of an HCA says. *out points into text, which is changed. */
void names_split_mapped(const struct fab_names *names, const struct fab_map_entry *entry,
                        char text[NAMES_MAX_SIZE], struct names_split *out);
/* False: the text names nobody. It ends within NAMES_DESC_MAX bytes; *out points into it. */
bool names_split_text(const struct fab_names *names, const char *text, struct names_split *out);
/* What a switch is called that describes itself so. */
void names_switch_text(const struct fab_names *names, const char *desc, char out[NAMES_MAX_SIZE]);

#endif
