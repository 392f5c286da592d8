/*
 * slurm_yaml.c - topology.yaml: several topologies, each of which is a part of the fabric that is not joined
 * with the others.
 *
 *   - topology: fast
 *     tree:
 *       switches:
 *         - switch: top
 *           children: leaf[1-2]
 *         - switch: leaf1
 *           nodes: n[1-4]
 *   - topology: nvlink
 *     block:
 *       block_sizes: [18]
 *       blocks:
 *         - block: b1
 *           nodes: n[1-18]
 */
#include "probes/import/slurm.h"

#define MOST_PARTS 200

static int slurm_yaml_list(const struct slurm_reader *r, const yaml_node_t *node, const char **list,
                           struct wiring_place *place)
{
    struct wiring_end end;
    if (node == NULL)
        return PMIXFAB_OK;
    int rc = yaml_file_name(&r->yaml, node, "a list of hosts or switches", &end);
    if (rc != PMIXFAB_OK)
        return rc;
    *list = end.name;
    *place = end.place;
    return PMIXFAB_OK;
}

/* `- switch: NAME` or `- block: NAME`, and what is below. */
static int slurm_yaml_switch(struct slurm_reader *r, const yaml_node_t *item, uint8_t part, bool is_block)
{
    struct slurm_switch defined = {.is_block = is_block};
    const yaml_node_t *name = yaml_file_get(&r->yaml, item, is_block ? "block" : "switch");
    if (name == NULL)
        return wiring_fail(&r->w, yaml_file_place(item), PMIXFAB_ERR_SYNTAX, "expected `%s:` and its name",
                           is_block ? "block" : "switch");
    int rc =
        yaml_file_name(&r->yaml, name, "a name", &defined.self)
            ?: slurm_yaml_list(r, yaml_file_get(&r->yaml, item, "nodes"), &defined.nodes, &defined.nodes_at);
    if (rc == PMIXFAB_OK && !is_block)
        rc = slurm_yaml_list(r, yaml_file_get(&r->yaml, item, "children"), &defined.switches,
                             &defined.switches_at);
    defined.self.part = part;
    defined.self.is_switch = true;
    return rc == PMIXFAB_OK ? slurm_define(r, &defined) : rc;
}

static int slurm_yaml_topology(struct slurm_reader *r, const yaml_node_t *topology, uint8_t part)
{
    const yaml_node_t *tree = yaml_file_get(&r->yaml, topology, "tree"),
                      *block = yaml_file_get(&r->yaml, topology, "block"),
                      *list = tree != NULL ? yaml_file_get(&r->yaml, tree, "switches")
                                           : yaml_file_get(&r->yaml, block, "blocks"),
                      *item;
    int rc = PMIXFAB_OK;
    if (yaml_file_get(&r->yaml, topology, "topology") == NULL)
        return wiring_fail(&r->w, yaml_file_place(topology), PMIXFAB_ERR_SYNTAX,
                           "expected `topology:` and its name, as Slurm's topology.yaml has it");
    if (tree == NULL && block == NULL) {
        const struct wiring_place at = yaml_file_place(topology);
        probe_note(r->sink, PMIXFAB_LOG_INFO,
                   "%s:%u:%u: this topology has neither a tree nor blocks: left out", r->w.file, at.line,
                   at.column);
    }
    for (size_t i = 0; rc == PMIXFAB_OK && (item = yaml_file_item(&r->yaml, list, i)) != NULL; i++)
        rc = slurm_yaml_switch(r, item, part, tree == NULL);
    return rc;
}

int slurm_read_yaml(struct slurm_reader *r, const char *text, size_t len)
{
    const yaml_node_t *topology;
    int rc = yaml_file_open(&r->yaml, &r->w, text, len);
    r->yaml_open = rc == PMIXFAB_OK;
    const yaml_node_t *root = r->yaml_open ? yaml_document_get_root_node(&r->yaml.document) : NULL;
    for (size_t i = 0; rc == PMIXFAB_OK && (topology = yaml_file_item(&r->yaml, root, i)) != NULL; i++)
        rc = i < MOST_PARTS ? slurm_yaml_topology(r, topology, (uint8_t)i)
                            : wiring_fail(&r->w, yaml_file_place(topology), PMIXFAB_ERR_RANGE,
                                          "more than %d topologies", MOST_PARTS);
    return rc;
}

void slurm_close_yaml(struct slurm_reader *r)
{
    if (r->yaml_open)
        yaml_file_close(&r->yaml);
}
