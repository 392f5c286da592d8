/*
 * import.h - fabrics that somebody wrote down by names: what schedulers, clouds and people have. Each reader
 * is a source_file_reader: it takes memory and believes nothing of it.
 */
#ifndef FAB_PROBES_IMPORT_IMPORT_H
#define FAB_PROBES_IMPORT_IMPORT_H

#include "probes/core/source_file.h"

extern const struct probe probe_nodes, probe_slurm, probe_topograph;

source_file_reader nodes_parse, slurm_parse, topograph_parse;

#endif
