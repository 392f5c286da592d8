/*
 * launch.h - what every process of a job is told of the fabric before it starts: made of snapshots and of the
 * hosts of the job's ranks, without a server. The room launch is for whoever hosts a job's PMIx server: the
 * component in another's, and our own.
 *
 * Which key stands where, and what it costs: docs/design/component.md, "Launch information".
 */
#ifndef FAB_PMIX_LAUNCH_LAUNCH_H
#define FAB_PMIX_LAUNCH_LAUNCH_H

#include <pmix_common.h>
#include <stdbool.h>

#include "pmixfab.h"

/* PMIX_SWITCH_PEERS takes this many bytes at most: of the ranks here, and of those elsewhere. Of either all
 * are told or none. */
#define FAB_LAUNCH_PEERS_HERE      (64u << 20)
#define FAB_LAUNCH_PEERS_ELSEWHERE (4u << 20)

/* PMIX_FABRIC_DEVICE by its PMIX_DEVICE_ID: of a job with more devices those of this host only, because the
 * library looks for one among all. Of a host with more, none. */
#define FAB_LAUNCH_DEVICES 64u

/* PMIX_FABRIC_DEVICES at the ranks here, too, and not only at their node: so many devices in all. The nearest
 * device: so many ranks. */
#define FAB_LAUNCH_RANK_DEVICES 1024u

/* In a job with more devices, those of other hosts are described with what the standard requires, no more. */
#define FAB_LAUNCH_WHOLE_DEVICES 256u

struct fab_launch_job {
    const struct pmixfab *const *planes; /* the default one first */
    uint32_t n_planes;
    const char *const *hosts; /* as the launcher calls them, each once */
    uint32_t n_hosts;
    const uint32_t *host_of; /* of each rank: an index in hosts; FAB_NONE: not told */
    uint32_t n_ranks;
    uint32_t here;                   /* an index in hosts; FAB_NONE: no rank of the job is on this host */
    const char *const *cpus;         /* of each rank here, ascending: what it is bound to, or NULL; or NULL */
    struct pmixfab_nearest *nearest; /* room for one of each rank here, or NULL */
    bool standard;                   /* coordinates as the standard has them; else single ones */
};

/*
 * Takes one piece of information. Of rank PMIX_RANK_WILDCARD: the job's; a node's is a PMIX_NODE_INFO_ARRAY
 * there, with the PMIX_HOSTNAME first. The value is lent.
 */
typedef pmix_status_t (*fab_launch_put_fn)(void *to, pmix_rank_t rank, const char *key, pmix_value_t *value);

/*
 * Does the library keep keys apart that are not its own? From 5.0 to 6.1 each process numbers them as it
 * meets them, and shares a job's information by these numbers: a process would find what is put under such a
 * key under one of its own, and take it for another process's. There no such key is put, nor looked for.
 */
bool fab_launch_may_put(const char *key);

/* What came of it. */
struct fab_launch_told {
    uint32_t hosts;   /* of the job, that a plane has */
    uint32_t unknown; /* that none has, or that could be several of one */
    uint32_t planes;  /* with hosts of the job */
    bool peers;       /* of the ranks elsewhere, too */
    uint32_t plane;   /* that `nearest` is of; FAB_NONE: nothing stands there */
    uint32_t host;    /* of that plane: this one */
};

/*
 * Hand over everything that is known of a job. An error of put() ends it and is returned, as is
 * PMIX_ERR_NOMEM. What is not known is left out: with no plane that has a host of the job nothing is put.
 */
pmix_status_t fab_launch_fill(const struct fab_launch_job *job, fab_launch_put_fn put, void *to,
                              struct fab_launch_told *told);

/*
 * Before that, in a server. From 5 on the library keeps a job's information for its clients in shared memory
 * of a fixed size: three times what it has when packed, times a parameter. What is told here is arrays of
 * pmix_info_t, which have up to twenty times their packed size in memory, and the library aborts the server
 * where they do not fit. The parameter is raised to 8; only pages that are written to cost memory.
 */
void fab_launch_make_room(void);

#endif
