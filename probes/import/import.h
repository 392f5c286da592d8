/*
 * import.h - fabrics that somebody wrote down by names: what schedulers, clouds and people have.
 *
 * Such files say which host or switch is below which switch. They have no GUIDs and mostly no ports, so these
 * are made of the names: they stay when other names come and go.
 *   - GUIDs are locally administered ones (the first byte is 2), which no vendor hands out.
 *   - The port of a switch is the number at the end of the name below it, where that is free (1 for n1, n255,
 *     n509), else the lowest free one; cables to switches above have the highest ports.
 *   - A host has an HCA for each of its cables: HCA-1, HCA-2, ... in the order of the file.
 */
#ifndef FAB_PROBES_IMPORT_IMPORT_H
#define FAB_PROBES_IMPORT_IMPORT_H

#include <yaml.h>

#include "probes/core/source_file.h"

extern const struct probe probe_nodes, probe_slurm, probe_topograph;

source_file_reader nodes_parse, slurm_parse, topograph_parse;

/* ---- a fabric of which only names are known ---- */

struct wired_node;
struct wired_cable;

struct wiring {
    const char *file;
    struct fab_err *err;
    struct wired_node *nodes; /* by kind, part and name (uthash) */
    struct wired_cable *cables;
    uint32_t n_cables, cap_cables;
    uint32_t n_lists;                         /* that were read */
    struct fab_subnet views[FAB_MAX_SUBNETS]; /* of each part its name; n_views 0: the parts have none */
    uint32_t n_views;
};

/* Where something stands in the file. */
struct wiring_place {
    uint32_t line, column;
};

/* What both names of a cable are. `part` tells apart what has equal names: a file may hold several fabrics.
 */
struct wiring_end {
    const char *name;
    size_t len;
    struct wiring_place place;
    uint8_t part;
    bool is_switch;
};

/*
 * The next part is a topology of this name, of hosts that other parts may show, too. What a plane's name
 * cannot have becomes '_'. PMIXFAB_ERR_CONFLICT: a part has this name; _RANGE: too many parts.
 */
int wiring_view(struct wiring *w, const struct wiring_end *name, bool is_default);

/*
 * Switches that no cable joins, and that share hosts, are topologies of the same hosts: each becomes a part
 * that is called after its topmost switch. Once all cables are there; the only part until now.
 */
int wiring_find_views(struct wiring *w);

/* Explain at a place: "file:line:column: ...". Returns code. */
int wiring_fail(const struct wiring *w, struct wiring_place at, int code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* A host or a switch, which is added where it is not there. PMIXFAB_ERR_SYNTAX: its name is none; _NOMEM. */
int wiring_node(struct wiring *w, const struct wiring_end *end, struct wired_node **out);
/* The switch or host that was added by this name; NULL: none was. */
const struct wired_node *wiring_find(const struct wiring *w, const struct wiring_end *end);

/* A cable to a switch. PMIXFAB_ERR_CONFLICT: from itself; _NOMEM. */
struct wiring_link {
    struct wired_node *below, *above;
    struct wiring_place place;
    uint8_t port; /* of the switch above; 0: not said */
    uint8_t width, speed;
};
int wiring_cable(struct wiring *w, const struct wiring_link *link);

/*
 * A cable to each of a list of hosts or switches, as Slurm writes lists. `list` is what all of them are:
 * part, kind and place. A switch must have been added (PMIXFAB_ERR_NOTFOUND); a name that stands twice is
 * PMIXFAB_ERR_CONFLICT.
 */
int wiring_list(struct wiring *w, struct wired_node *above, const char *names, const struct wiring_end *list);

/* The switch is below another one, by one cable however often it is said. PMIXFAB_ERR_CONFLICT: it is below a
 * third.
 */
int wiring_parent(struct wiring *w, struct wired_node *below, struct wired_node *above,
                  struct wiring_place place);

/* Fill inv (initialised, empty) and finish it. Refused: no cable at all, ports that are taken or that no
 * switch has. */
int wiring_inventory(struct wiring *w, struct fab_inventory *inv);

void wiring_destroy(struct wiring *w);

/* ---- a YAML document, of which JSON is one form, by libyaml: its parts and their places ---- */

struct yaml_file {
    const struct wiring *w; /* for messages */
    yaml_document_t document;
};

/* The first document. PMIXFAB_ERR_SYNTAX with the place, _NOMEM. On success yaml_file_close() it. */
int yaml_file_open(struct yaml_file *f, const struct wiring *w, const char *text, size_t len);
void yaml_file_close(struct yaml_file *f);

struct wiring_place yaml_file_place(const yaml_node_t *node);

/* The value of a mapping's key; NULL: there is none, or `map` is no mapping. */
const yaml_node_t *yaml_file_get(struct yaml_file *f, const yaml_node_t *map, const char *key);

/*
 * Items of a sequence: i = 0, 1, ... until NULL. What is NULL or a null has none. Anything else than a
 * sequence is itself the only one.
 */
const yaml_node_t *yaml_file_item(struct yaml_file *f, const yaml_node_t *list, size_t i);

/* The scalar as the name of a switch or a host; `end` gets name and place. PMIXFAB_ERR_SYNTAX: it is no
 * scalar. */
int yaml_file_name(const struct yaml_file *f, const yaml_node_t *node, const char *what,
                   struct wiring_end *end);

#endif
