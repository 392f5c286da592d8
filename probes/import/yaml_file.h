/* yaml_file.h - a YAML document, of which JSON is one form, by libyaml: its parts and their places. */
#ifndef FAB_PROBES_IMPORT_YAML_FILE_H
#define FAB_PROBES_IMPORT_YAML_FILE_H

#include <yaml.h>

#include "probes/import/wiring.h"

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
