/* yaml_file.c - libyaml's documents as the readers take them. */
#include "probes/import/yaml_file.h"

#include <string.h>

int yaml_file_open(struct yaml_file *f, const struct wiring *w, const char *text, size_t len)
{
    yaml_parser_t parser;
    int rc = PMIXFAB_OK;
    *f = (struct yaml_file){.w = w};
    if (yaml_parser_initialize(&parser) == 0)
        return fab_fail(w->err, PMIXFAB_ERR_NOMEM, "%s: out of memory", w->file);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
    if (yaml_parser_load(&parser, &f->document) == 0) {
        const struct wiring_place at = {(uint32_t)parser.problem_mark.line + 1,
                                        (uint32_t)parser.problem_mark.column + 1};
        rc = parser.error == YAML_MEMORY_ERROR
                 ? fab_fail(w->err, PMIXFAB_ERR_NOMEM, "%s: out of memory", w->file)
                 : wiring_fail(w, at, PMIXFAB_ERR_SYNTAX, "this is no YAML: %s",
                               parser.problem != NULL ? parser.problem : "it cannot be read");
    } else if (yaml_document_get_root_node(&f->document) == NULL) {
        yaml_document_delete(&f->document);
        rc = wiring_fail(w, (struct wiring_place){1, 1}, PMIXFAB_ERR_TRUNCATED, "the file is empty");
    }
    yaml_parser_delete(&parser);
    return rc;
}

void yaml_file_close(struct yaml_file *f)
{
    yaml_document_delete(&f->document);
}

struct wiring_place yaml_file_place(const yaml_node_t *node)
{
    return (struct wiring_place){(uint32_t)node->start_mark.line + 1, (uint32_t)node->start_mark.column + 1};
}

static bool is_text(const yaml_node_t *node, const char *text)
{
    return node != NULL && node->type == YAML_SCALAR_NODE &&
           strcmp((const char *)node->data.scalar.value, text) == 0;
}

const yaml_node_t *yaml_file_get(struct yaml_file *f, const yaml_node_t *map, const char *key)
{
    if (map == NULL || map->type != YAML_MAPPING_NODE)
        return NULL;
    for (const yaml_node_pair_t *pair = map->data.mapping.pairs.start; pair < map->data.mapping.pairs.top;
         pair++)
        if (is_text(yaml_document_get_node(&f->document, pair->key), key))
            return yaml_document_get_node(&f->document, pair->value);
    return NULL;
}

static bool is_null(const yaml_node_t *node)
{
    return node == NULL ||
           (node->type == YAML_SCALAR_NODE && node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
            (is_text(node, "") || is_text(node, "null") || is_text(node, "~")));
}

const yaml_node_t *yaml_file_item(struct yaml_file *f, const yaml_node_t *list, size_t i)
{
    if (is_null(list))
        return NULL;
    if (list->type != YAML_SEQUENCE_NODE)
        return i == 0 ? list : NULL;
    const yaml_node_item_t *items = list->data.sequence.items.start;
    return i < (size_t)(list->data.sequence.items.top - items)
               ? yaml_document_get_node(&f->document, items[i])
               : NULL;
}

int yaml_file_name(const struct yaml_file *f, const yaml_node_t *node, const char *what,
                   struct wiring_end *end)
{
    end->place = yaml_file_place(node);
    if (node->type != YAML_SCALAR_NODE)
        return wiring_fail(f->w, end->place, PMIXFAB_ERR_SYNTAX, "%s should be a text", what);
    end->name = (const char *)node->data.scalar.value;
    end->len = node->data.scalar.length;
    if (strlen(end->name) != end->len)
        return wiring_fail(f->w, end->place, PMIXFAB_ERR_SYNTAX, "%s has a byte 0 in it", what);
    return PMIXFAB_OK;
}
