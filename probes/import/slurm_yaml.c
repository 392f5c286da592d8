/*
 * slurm_yaml.c - topology.yaml: several topologies, each of which is a plane of its own, called as the
 * topology is.
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

#include <strings.h>

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

static bool slurm_yaml_is_true(const yaml_node_t *node)
{
    static const char *const words[] = {"true", "yes", "on", "1"};
    for (size_t i = 0; node != NULL && node->type == YAML_SCALAR_NODE && i < sizeof(words) / sizeof(words[0]);
         i++)
        if (strcasecmp((const char *)node->data.scalar.value, words[i]) == 0)
            return true;
    return false;
}

/* Its switches are the part number n_views. */
static int slurm_yaml_topology(struct slurm_reader *r, const yaml_node_t *topology)
{
    struct wiring_end end;
    const yaml_node_t *tree = yaml_file_get(&r->yaml, topology, "tree"),
                      *block = yaml_file_get(&r->yaml, topology, "block"),
                      *list = tree != NULL ? yaml_file_get(&r->yaml, tree, "switches")
                                           : yaml_file_get(&r->yaml, block, "blocks"),
                      *name = yaml_file_get(&r->yaml, topology, "topology"), *item;
    const uint8_t part = (uint8_t)r->w.n_views;
    if (name == NULL)
        return wiring_fail(&r->w, yaml_file_place(topology), PMIXFAB_ERR_SYNTAX,
                           "expected `topology:` and its name, as Slurm's topology.yaml has it");
    int rc = yaml_file_name(&r->yaml, name, "a name", &end);
    if (rc == PMIXFAB_OK && tree == NULL && block == NULL)
        probe_note(r->sink, PMIXFAB_LOG_INFO,
                   "%s:%u:%u: topology \"%.64s\" has neither a tree nor blocks: left out", r->w.file,
                   end.place.line, end.place.column, end.name);
    else if (rc == PMIXFAB_OK)
        rc = wiring_view(&r->w, &end,
                         slurm_yaml_is_true(yaml_file_get(&r->yaml, topology, "cluster_default")));
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
        rc = slurm_yaml_topology(r, topology);
    return rc;
}

void slurm_close_yaml(struct slurm_reader *r)
{
    if (r->yaml_open)
        yaml_file_close(&r->yaml);
}
