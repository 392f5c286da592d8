/*
 * run.h - start a parallel job with its ranks in the order of the fabric.
 *
 * `fabricctl run COMMAND` reads the command line of a launcher, finds the hosts of the job, computes a host
 * for each rank from the served snapshot, and starts the launcher with a file of one host a rank.
 */
#ifndef FABRICCTL_RUN_RUN_H
#define FABRICCTL_RUN_RUN_H

#include "fabricctl/core/ctl.h"

/* Start the command of the arguments, and return its exit status. */
enum ctl_exit ctl_run_job(const struct ctl *ctl);

#define RUN_WHY 800 /* bytes of a message */

/* Write a message and return `code`. */
int run_why(char why[static RUN_WHY], int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* ---- the command line of a launcher (launcher.c) ---- */

enum run_launcher { RUN_OPENMPI, RUN_HYDRA, RUN_SRUN };

struct run_command {
    enum run_launcher launcher;
    char *const *words;
    int n;
    int app;              /* the first word after the launcher's options */
    bool *drop;           /* for each word: it is replaced, and left out */
    const char *hosts;    /* list of hosts; NULL: none */
    const char *hostfile; /* NULL: none */
    uint32_t ranks;       /* 0: not given, as the numbers below */
    uint32_t per_node, nodes, cpus;
};

/*
 * Read the words of a command. Return false if the command has to start unchanged: `why` holds the reason.
 * The words must outlive the command; free it with run_command_free() in any case.
 */
bool run_command_read(char *const *words, int n, struct run_command *out, char why[static RUN_WHY]);
/*
 * Return the words that start `ranks` ranks on the hosts of a file with one host a line: an array that ends
 * with NULL. *option: room for words that are made here. Free both with free(). NULL without memory.
 */
char **run_command_words(const struct run_command *command, const char *file, uint32_t ranks, char **option);
void run_command_free(struct run_command *command);

/* ---- the hosts of a job (job_hosts.c) ---- */

/* Different hosts; slots: the number of ranks that the launcher would start there at most. */
struct run_hosts {
    char **names;
    uint32_t *slots;
    uint32_t n, room;
    uint32_t ranks; /* ranks of the job */
};

/*
 * Find the hosts and the number of ranks: in the command, else in the environment of Slurm, PBS or LSF. The
 * slots of all hosts have room for the ranks. Return false as above. Free with run_hosts_free() in any case.
 */
bool run_hosts_find(const struct run_command *command, struct run_hosts *out, char why[static RUN_WHY]);
void run_hosts_free(struct run_hosts *hosts);

/* ---- the communication of a job (traffic.c) ---- */

#define RUN_DIMS 8

/* Bytes between ranks, symmetric: those of rank r are first[r] to first[r + 1] - 1 of `to` and `bytes`. */
struct run_traffic {
    uint32_t n; /* ranks */
    uint32_t *first, *to;
    double *bytes;
    uint32_t dims[RUN_DIMS], n_dims; /* of a grid; 0: a matrix */
};

/* Return whether the text is a grid. */
bool run_is_grid(const char *text);
/* Read "8x8x4": one byte between neighbours; the last coordinate counts fastest, and no row is closed to a
 * ring. */
int run_traffic_grid(const char *text, uint32_t ranks, struct run_traffic *out, char why[static RUN_WHY]);
/* Read a file with lines "FROM TO BYTES". */
int run_traffic_read(const char *path, uint32_t ranks, struct run_traffic *out, char why[static RUN_WHY]);
void run_traffic_free(struct run_traffic *traffic);

/* ---- ranks and hosts (mapping.c, scotch.c) ---- */

/*
 * Divide vertices 0 to n - 1 of a graph into side 0 with `left` vertices, more or less, and side 1, so that
 * few bytes cross. Return false if there is no answer.
 */
typedef bool run_divide_fn(uint32_t n, const uint32_t *first, const uint32_t *to, const double *bytes,
                           uint32_t left, uint8_t *side);

/* By Scotch. NULL in a build without it. */
run_divide_fn *run_scotch(void);

/* Return the sum of bytes x cost. costs: n_hosts x n_hosts; host_of: per rank. */
double run_cost(const struct run_traffic *traffic, const uint16_t *costs, uint32_t n_hosts,
                const uint32_t *host_of);
/*
 * Map ranks to hosts in the order of the fabric. slots: their sum is the number of ranks. host_of: in, the
 * ranks in order; out, a mapping that does not cost more. divide: a second way to divide ranks; NULL: none.
 * PMIXFAB_ERR_NOMEM leaves host_of unchanged.
 */
int run_map(const struct run_traffic *traffic, const uint16_t *costs, const uint32_t *slots, uint32_t n_hosts,
            run_divide_fn *divide, uint32_t *host_of);

/* ---- start (start.c) ---- */

/* Replace this process by the command. Return only on failure, with a message. */
enum ctl_exit run_exec(char *const *words);
/* Start the command, pass signals on, and wait for its end. Return its exit status. */
enum ctl_exit run_and_wait(char *const *words);

#endif
