/*
 * simulate.h - `fabricctl simulate`: messages of jobs between hosts of a plane, timed by SimGrid
 * (docs/design/simulate.md).
 */
#ifndef FABRICCTL_SIMULATE_SIMULATE_H
#define FABRICCTL_SIMULATE_SIMULATE_H

#include "fabricctl/core/ctl.h"
#include "fabricctl/export/export.h"

enum ctl_exit ctl_simulate(const struct ctl *ctl);

/* ---- patterns ---- */

#define SIM_PATTERNS      "alltoall, ring, halo3, allreduce"
#define SIM_MESSAGES_MAX  2000000
#define SIM_BYTES_MAX     2147483647 /* of one message: the maximum of MPI */
#define SIM_BYTES_DEFAULT 1048576

struct sim_message {
    uint32_t step, from, to; /* ranks; a rank ends a step before it begins the next one */
    uint32_t bytes;
};

/* The messages of one job, by step. */
struct sim_messages {
    struct sim_message *all;
    uint32_t n, room;
};

/*
 * Make the messages of a pattern, or of a file with lines FROM TO BYTES. bytes: 0: the default. The caller
 * frees messages->all in any case.
 */
enum ctl_exit sim_pattern(const char *pattern, uint32_t ranks, uint64_t bytes, struct sim_messages *messages);

/* ---- runs of SimGrid ---- */

/* The programs of SimGrid. */
struct sim_programs {
    char *main, *replay;
};

/* Find them, from smpirun in PATH or in FABRICD_SMPIRUN. Free them in any case. */
enum ctl_exit sim_programs_find(struct sim_programs *programs);
void sim_programs_free(struct sim_programs *programs);

/* Make a private folder for the files of runs. path is "" on failure. */
#define SIM_FOLDER 1024
enum ctl_exit sim_folder_make(char path[static SIM_FOLDER]);
/* Open a file of the folder for writing. NULL: with a message. */
FILE *sim_folder_file(const char *folder, const char *name);
/* Close a file. Return false with a message if a write failed. */
bool sim_folder_close(FILE *file, const char *folder, const char *name);
void sim_folder_remove(const char *folder);

/*
 * Run the replay of the folder's files "platform.xml", "hosts" and "traces". ends[rank] becomes the time of
 * the last action of each of the ranks, in seconds.
 */
enum ctl_exit sim_replay(const struct sim_programs *programs, const char *folder, uint32_t ranks,
                         double *ends);

#endif
