/*
 * import.h - fabrics described by names: the files of schedulers, clouds and people.
 *
 * Such files list the hosts and switches below each switch. They have no GUIDs and mostly no ports. So GUIDs
 * and ports are made of the names, and stay when other names come and go.
 * - GUIDs are locally administered (the first byte is 2), and no vendor uses them.
 * - The port of a switch is the number at the end of the name below it, if that is free (1 for n1, n255,
 *   n509), else the lowest free one; cables to switches above have the highest ports.
 * - A host has an HCA for each of its cables: HCA-1, HCA-2, ... in the order of the file.
 */
#ifndef FAB_PROBES_IMPORT_IMPORT_H
#define FAB_PROBES_IMPORT_IMPORT_H

#include <yaml.h>

#include "probes/core/source_file.h"

extern const struct probe probe_nodes, probe_slurm, probe_topograph;

source_file_reader nodes_parse, slurm_parse, topograph_parse;

/* ---- a fabric known by names only ---- */

struct wired_node;
struct wired_cable;

struct wiring {
    const char *file;
    struct fab_err *err;
    struct wired_node *nodes; /* by kind, part and name (uthash) */
    struct wired_cable *cables;
    uint32_t n_cables, cap_cables;
    uint32_t n_lists;                         /* number of lists read */
    struct fab_subnet views[FAB_MAX_SUBNETS]; /* the name of each part; n_views 0: the parts have none */
    uint32_t n_views;
};

/* A position in the file. */
struct wiring_place {
    uint32_t line, column;
};

/* One end of a cable. `part` distinguishes equal names: a file may hold several fabrics. */
struct wiring_end {
    const char *name;
    size_t len;
    struct wiring_place place;
    uint8_t part;
    bool is_switch;
};

/*
 * Begin the next part, a topology with this name. Other parts may contain the same hosts. Characters that a
 * plane's name cannot have become '_'. PMIXFAB_ERR_CONFLICT: a part has this name already; _RANGE: too many
 * parts.
 */
int wiring_view(struct wiring *w, const struct wiring_end *name, bool is_default);

/*
 * Split the only part so far: switches without a cable between them that share hosts are topologies of the
 * same hosts. Each becomes a part named after its topmost switch. Call it after all cables are added.
 */
int wiring_find_views(struct wiring *w);

/* Report a failure at a position: "file:line:column: ...". Return code. */
int wiring_fail(const struct wiring *w, struct wiring_place at, int code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Find or add a host or a switch. PMIXFAB_ERR_SYNTAX: an invalid name; _NOMEM. */
int wiring_node(struct wiring *w, const struct wiring_end *end, struct wired_node **out);
/* Find a switch or host by name; NULL: no such node. */
const struct wired_node *wiring_find(const struct wiring *w, const struct wiring_end *end);

/* Add a cable to a switch. PMIXFAB_ERR_CONFLICT: the cable is from the switch to itself; _NOMEM. */
struct wiring_link {
    struct wired_node *below, *above;
    struct wiring_place place;
    uint8_t port; /* of the switch above; 0: not given */
    uint8_t width, speed;
};
int wiring_cable(struct wiring *w, const struct wiring_link *link);

/*
 * Add a cable to each of a list of hosts or switches, in Slurm's form. `list` has their part, kind and
 * position. A switch must have been added (PMIXFAB_ERR_NOTFOUND); a repeated name is PMIXFAB_ERR_CONFLICT.
 */
int wiring_list(struct wiring *w, struct wired_node *above, const char *names, const struct wiring_end *list);

/*
 * Put a switch below another one, with one cable however often it is repeated. PMIXFAB_ERR_CONFLICT: it is
 * below a third.
 */
int wiring_parent(struct wiring *w, struct wired_node *below, struct wired_node *above,
                  struct wiring_place place);

/*
 * Fill inv (initialised, empty) and finish it. Rejected: no cable at all, ports that are in use or that no
 * switch has.
 */
int wiring_inventory(struct wiring *w, struct fab_inventory *inv);

void wiring_destroy(struct wiring *w);

/* ---- a YAML document (JSON is a subset), by libyaml: its parts and their positions ---- */

struct yaml_file {
    const struct wiring *w; /* for messages */
    yaml_document_t document;
};

/*
 * Open the first document. PMIXFAB_ERR_SYNTAX with the position, _NOMEM. On success close it with
 * yaml_file_close().
 */
int yaml_file_open(struct yaml_file *f, const struct wiring *w, const char *text, size_t len);
void yaml_file_close(struct yaml_file *f);

struct wiring_place yaml_file_place(const yaml_node_t *node);

/* Return the value of a mapping's key; NULL: no such key, or `map` is not a mapping. */
const yaml_node_t *yaml_file_get(struct yaml_file *f, const yaml_node_t *map, const char *key);

/*
 * Return items of a sequence: i = 0, 1, ... until NULL. NULL or a null has none. A node of another kind is
 * itself the only item.
 */
const yaml_node_t *yaml_file_item(struct yaml_file *f, const yaml_node_t *list, size_t i);

/*
 * Read a scalar as the name of a switch or a host; `end` gets name and position. PMIXFAB_ERR_SYNTAX: not a
 * scalar.
 */
int yaml_file_name(const struct yaml_file *f, const yaml_node_t *node, const char *what,
                   struct wiring_end *end);

#endif
