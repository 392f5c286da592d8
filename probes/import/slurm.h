/* slurm.h - inside of the reader of Slurm's topologies: what both of its files say. */
#ifndef FAB_PROBES_IMPORT_SLURM_H
#define FAB_PROBES_IMPORT_SLURM_H

#include "probes/import/wiring.h"
#include "probes/import/yaml_file.h"

/* A switch or a block, and what is below it; texts belong to the reader. */
struct slurm_switch {
    struct wiring_end self;
    struct wired_node *node;
    const char *switches, *nodes; /* lists; NULL: it has none */
    struct wiring_place switches_at, nodes_at;
    bool is_block;
};

struct slurm_reader {
    struct wiring w;
    const struct probe_sink *sink;
    struct slurm_switch *switches;
    uint32_t n_switches, room;
    char **texts; /* of topology.conf */
    uint32_t n_texts, texts_room;
    struct yaml_file yaml; /* of topology.yaml */
    bool yaml_open;
};

/* ---- slurm_switches.c ---- */

/* Another switch or block. PMIXFAB_ERR_CONFLICT: a second one of this name. */
int slurm_define(struct slurm_reader *r, const struct slurm_switch *defined);
/* All of them are there: cable what is below each. */
int slurm_wire(struct slurm_reader *r);

/* ---- slurm_yaml.c: topology.yaml, which stays open until the lists are read ---- */

int slurm_read_yaml(struct slurm_reader *r, const char *text, size_t len);
void slurm_close_yaml(struct slurm_reader *r);

#endif
