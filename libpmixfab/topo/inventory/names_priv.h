/*
 * names_priv.h - shared by names.c and names_map.c only.
 */
#ifndef FAB_TOPO_INVENTORY_NAMES_PRIV_H
#define FAB_TOPO_INVENTORY_NAMES_PRIV_H

#include <regex.h>
#include <stdbool.h>

#include "topo/inventory/names.h"

/* A line of a node-name-map. */
struct fab_map_entry {
    uint64_t guid;
    char *name;
    uint32_t line, column;
};

struct fab_names {
    regex_t regex;
    bool compiled;             /* regex is in use; else the default pattern, matched by hand */
    unsigned device_group;     /* 0: the pattern names no device */
    struct fab_map_entry *map; /* by GUID */
    uint32_t n_map;
};

/* The name that the map gives to a node, NULL: none. */
const char *fab_names_mapped(const struct fab_names *names, uint64_t guid);

#endif
