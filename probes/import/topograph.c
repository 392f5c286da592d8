/*
 * topograph.c - the probe `topograph`: a model of NVIDIA's topograph, and the JSON of its engine `graph`.
 *
 *   switches:                                {"instances": [
 *     core: {switches: [leaf1, leaf2]}         {"id": "n1", "network_layers": ["leaf1", "core"]},
 *   blocks:                                    {"id": "n2", "network_layers": ["leaf1", "core"]}
 *   - switch: leaf1                          ]}
 *     nodes: ["n[1-2]"]
 *
 * Network layers go upwards from a node's own switch. Labels and annotations (accelerators, regions) do not
 * describe this fabric. They are left out, with a remark. JSON is read as YAML, so that errors give the
 * position.
 */
#include "probes/import/import.h"

#include <stdlib.h>

struct topograph_reader {
    struct wiring w;
    struct yaml_file yaml;
    uint32_t n_apart;   /* nodes and instances without a switch */
    uint32_t n_domains; /* with labels or an accelerator */
};

static int topograph_switch(struct topograph_reader *r, const yaml_node_t *name, struct wiring_end *end,
                            struct wired_node **out)
{
    end->part = 0;
    end->is_switch = true;
    return yaml_file_name(&r->yaml, name, "a switch's name", end) ?: wiring_node(&r->w, end, out);
}

static bool topograph_has_domain(struct topograph_reader *r, const yaml_node_t *of)
{
    static const char *const keys[] = {"labels", "annotations", "nvlink", "accelerator",
                                       "accelerator_layers"};
    bool has = false;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        has |= yaml_file_get(&r->yaml, of, keys[i]) != NULL;
    return has;
}

/* ---- the model ---- */

static int topograph_nodes(struct topograph_reader *r, struct wired_node *above, const yaml_node_t *nodes)
{
    const yaml_node_t *node;
    struct wiring_end list = {0};
    int rc = PMIXFAB_OK;
    for (size_t i = 0; rc == PMIXFAB_OK && (node = yaml_file_item(&r->yaml, nodes, i)) != NULL; i++)
        rc = yaml_file_name(&r->yaml, node, "a node's name", &list)
                 ?: wiring_list(&r->w, above, list.name, &(struct wiring_end){.place = list.place});
    return rc;
}

/* models of topograph before 0.5 have nodes here */
static int topograph_switches(struct topograph_reader *r, const yaml_node_t *switches)
{
    struct wiring_end end;
    struct wired_node *above, *below;
    const yaml_node_t *name;
    int rc = PMIXFAB_OK;
    if (switches->type != YAML_MAPPING_NODE)
        return wiring_fail(&r->w, yaml_file_place(switches), PMIXFAB_ERR_SYNTAX,
                           "`switches` should have a name and a colon for each switch");
    for (const yaml_node_pair_t *pair = switches->data.mapping.pairs.start;
         pair < switches->data.mapping.pairs.top && rc == PMIXFAB_OK; pair++) {
        const yaml_node_t *value = yaml_document_get_node(&r->yaml.document, pair->value),
                          *children = yaml_file_get(&r->yaml, value, "switches");
        rc = topograph_switch(r, yaml_document_get_node(&r->yaml.document, pair->key), &end, &above);
        for (size_t i = 0; rc == PMIXFAB_OK && (name = yaml_file_item(&r->yaml, children, i)) != NULL; i++)
            rc = topograph_switch(r, name, &end, &below) ?: wiring_parent(&r->w, below, above, end.place);
        if (rc == PMIXFAB_OK)
            rc = topograph_nodes(r, above, yaml_file_get(&r->yaml, value, "nodes"));
    }
    return rc;
}

static int topograph_block(struct topograph_reader *r, const yaml_node_t *block)
{
    struct wiring_end end = {.is_switch = true};
    struct wired_node *above;
    const yaml_node_t *name = yaml_file_get(&r->yaml, block, "switch"),
                      *nodes = yaml_file_get(&r->yaml, block, "nodes");
    r->n_domains += topograph_has_domain(r, block);
    if (nodes == NULL)
        return wiring_fail(&r->w, yaml_file_place(block), PMIXFAB_ERR_SYNTAX, "a block without `nodes`");
    if (name == NULL) {
        r->n_apart++;
        return PMIXFAB_OK;
    }
    int rc = yaml_file_name(&r->yaml, name, "a switch's name", &end);
    if (rc == PMIXFAB_OK && wiring_find(&r->w, &end) == NULL)
        rc = wiring_fail(&r->w, end.place, PMIXFAB_ERR_NOTFOUND,
                         "there is no switch of this name in `switches`");
    if (rc == PMIXFAB_OK)
        rc = wiring_node(&r->w, &end, &above);
    return rc == PMIXFAB_OK ? topograph_nodes(r, above, nodes) : rc;
}

/* ---- the graph ---- */

static int topograph_instance(struct topograph_reader *r, const yaml_node_t *instance)
{
    struct wiring_end self = {0}, end;
    struct wiring_link link = {0};
    struct wired_node *below = NULL, *above = NULL;
    const yaml_node_t *id = yaml_file_get(&r->yaml, instance, "id"),
                      *layers = yaml_file_get(&r->yaml, instance, "network_layers"), *layer;
    r->n_domains += topograph_has_domain(r, instance);
    if (id == NULL)
        return wiring_fail(&r->w, yaml_file_place(instance), PMIXFAB_ERR_SYNTAX,
                           "an instance without an `id`");
    int rc = yaml_file_name(&r->yaml, id, "an instance's id", &self);
    if (yaml_file_item(&r->yaml, layers, 0) == NULL) {
        r->n_apart++;
        return rc;
    }
    if (rc == PMIXFAB_OK && wiring_find(&r->w, &self) != NULL)
        return wiring_fail(&r->w, self.place, PMIXFAB_ERR_CONFLICT, "a second instance of this id");
    for (size_t i = 0; rc == PMIXFAB_OK && (layer = yaml_file_item(&r->yaml, layers, i)) != NULL; i++) {
        rc = topograph_switch(r, layer, &end, &above);
        link = (struct wiring_link){.above = above, .place = self.place};
        if (rc == PMIXFAB_OK && below == NULL)
            rc = wiring_node(&r->w, &self, &link.below) ?: wiring_cable(&r->w, &link);
        else if (rc == PMIXFAB_OK)
            rc = wiring_parent(&r->w, below, above, end.place);
        below = above;
    }
    return rc;
}

/* ---- the whole ---- */

static int topograph_read(struct topograph_reader *r)
{
    const yaml_node_t *root = yaml_document_get_root_node(&r->yaml.document), *item,
                      *instances = yaml_file_get(&r->yaml, root, "instances"),
                      *switches = yaml_file_get(&r->yaml, root, "switches"),
                      *blocks = yaml_file_get(&r->yaml, root, "blocks");
    int rc = PMIXFAB_OK;
    if (instances == NULL && switches == NULL && blocks == NULL)
        return wiring_fail(
            &r->w, yaml_file_place(root), PMIXFAB_ERR_SYNTAX,
            "expected `switches` and `blocks` of a topograph model, or `instances` of its graph");
    for (size_t i = 0; rc == PMIXFAB_OK && (item = yaml_file_item(&r->yaml, instances, i)) != NULL; i++)
        rc = topograph_instance(r, item);
    if (rc == PMIXFAB_OK && switches != NULL)
        rc = topograph_switches(r, switches);
    for (size_t i = 0; rc == PMIXFAB_OK && (item = yaml_file_item(&r->yaml, blocks, i)) != NULL; i++)
        rc = topograph_block(r, item);
    if (rc == PMIXFAB_OK && r->w.nodes == NULL)
        rc = wiring_fail(&r->w, yaml_file_place(root), PMIXFAB_ERR_SYNTAX, "no switch in the file");
    return rc;
}

int topograph_parse(const char *file, const char *text, size_t len, const struct probe_sink *sink,
                    struct fab_inventory *inv, struct fab_err *err)
{
    struct topograph_reader r = {.w = {.file = file, .err = err}};
    int rc = yaml_file_open(&r.yaml, &r.w, text, len);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = topograph_read(&r) ?: wiring_find_views(&r.w) ?: wiring_inventory(&r.w, inv);
    if (rc == PMIXFAB_OK && r.n_apart > 0)
        probe_note(sink, PMIXFAB_LOG_INFO, "%s: %u blocks or instances are at no switch: left out", file,
                   r.n_apart);
    if (rc == PMIXFAB_OK && r.n_domains > 0)
        probe_note(sink, PMIXFAB_LOG_INFO,
                   "%s: labels of %u blocks or instances (accelerators, zones) are left out: planes do not "
                   "have them",
                   file, r.n_domains);
    yaml_file_close(&r.yaml);
    wiring_destroy(&r.w);
    return rc;
}

SOURCE_FILE_PROBE(topograph, "topograph",
                  "PATH: a model of NVIDIA's topograph, or the JSON of its engine graph", topograph_parse);
