/* names_priv.h - private to names.c, which names nodes, and names_map.c, which splits texts. */
#ifndef FAB_TOPO_MODEL_NAMES_PRIV_H
#define FAB_TOPO_MODEL_NAMES_PRIV_H

#include <regex.h>
#include <stdbool.h>

#include "topo/model/names.h"

#define NAMES_DESC_MAX 64 /* bytes of an InfiniBand node description; the rest is ignored */
#define NAMES_MAX_SIZE 256
#define NAMES_GROUPS   10 /* groups of a pattern, the whole match included */

/* A line of a node-name-map. */
struct fab_map_entry {
    uint64_t guid;
    char *name;
    uint32_t line, column;
    bool whole; /* the whole name is the host */
};

/* An operator's own pattern. */
struct fab_pattern {
    regex_t regex;
    bool compiled; /* regex is in use; else the default is matched without it */
};

struct fab_names {
    struct fab_pattern hosts, switches;
    struct fab_map_entry *map; /* by GUID */
    uint32_t n_map;
};

/* The parts of a text. */
struct names_split {
    const char *host, *device; /* device NULL: none */
    size_t host_len, device_len;
};

/* Return the map's entry for a node, or NULL. */
const struct fab_map_entry *fab_names_mapped(const struct fab_names *names, uint64_t guid);
/* Split a mapped name of an HCA. *out points into text, which is changed. */
void names_split_mapped(const struct fab_names *names, const struct fab_map_entry *entry,
                        char text[NAMES_MAX_SIZE], struct names_split *out);
/*
 * Split a description. Return false if it has no name. The text ends within NAMES_DESC_MAX bytes; *out points
 * into it.
 */
bool names_split_text(const struct fab_names *names, const char *text, struct names_split *out);
/* Write the name of a switch with this description. */
void names_switch_text(const struct fab_names *names, const char *desc, char out[NAMES_MAX_SIZE]);

#endif
