/*
 * launch.h - make launch information, the fabric data that every process of a job has at its start. It is
 * made from snapshots and from the hosts of the job's ranks, without a server. The room launch is for the
 * program that hosts the PMIx server of a job: fabric-host, or another program with the component.
 *
 * The keys and their cost: docs/design/component.md, "Launch information".
 */
#ifndef FAB_PMIX_LAUNCH_LAUNCH_H
#define FAB_PMIX_LAUNCH_LAUNCH_H

#include <pmix_common.h>
#include <stdbool.h>

#include "pmixfab.h"

/*
 * Maximum bytes of PMIX_SWITCH_PEERS: for the ranks here, and for those of other hosts. For each of the two,
 * all are put or none.
 */
#define FAB_LAUNCH_PEERS_HERE      (64u << 20)
#define FAB_LAUNCH_PEERS_ELSEWHERE (4u << 20)

/*
 * PMIX_FABRIC_DEVICE by its PMIX_DEVICE_ID: in a job with more devices only those of this host are put,
 * because the library searches all of them. On a host with more, none.
 */
#define FAB_LAUNCH_DEVICES 64u

/*
 * PMIX_FABRIC_DEVICES at the ranks here, and not only at their node: maximum number of devices in total. The
 * nearest device: maximum number of ranks.
 */
#define FAB_LAUNCH_RANK_DEVICES 1024u

/* In a job with more devices, those of other hosts have only the attributes that the standard requires. */
#define FAB_LAUNCH_WHOLE_DEVICES 256u

/* The PMIX_NODEID of a host that the library would take for another one. No launcher counts so far. */
#define FAB_LAUNCH_NODE (UINT32_MAX - 1)

struct fab_launch_job {
    const struct pmixfab *const *planes; /* the default one first */
    uint32_t n_planes;
    const char *const *hosts; /* with the launcher's names, each once */
    uint32_t n_hosts;
    const uint32_t *host_of; /* of each rank: an index in hosts; FAB_NONE: unknown */
    uint32_t n_ranks;
    uint32_t here;                   /* an index in hosts; FAB_NONE: no rank of the job is on this host */
    const char *const *cpus;         /* of each rank here, ascending: its binding, or NULL; or NULL for all */
    struct pmixfab_nearest *nearest; /* room for one of each rank here, or NULL */
    bool standard;                   /* coordinates in the form of the standard; else single ones */
    const char *clash;               /* another host, which gets FAB_LAUNCH_NODE as its number; or NULL */
};

/*
 * Store one piece of information. With rank PMIX_RANK_WILDCARD, it belongs to the job. The information of a
 * node is then a PMIX_NODE_INFO_ARRAY, with the PMIX_HOSTNAME first. The value is borrowed.
 */
typedef pmix_status_t (*fab_launch_put_fn)(void *to, pmix_rank_t rank, const char *key, pmix_value_t *value);

/*
 * Return whether this key may be put, and looked for. With PMIx 5.0 to 6.1 no foreign key is used. In these
 * versions each process numbers foreign keys in the order of use, and the information of a job is shared by
 * these numbers. So a process would find the value under another key.
 */
bool fab_launch_may_put(const char *key);

/* The result. */
struct fab_launch_told {
    uint32_t hosts;   /* hosts of the job that are in a plane */
    uint32_t unknown; /* hosts that are in none, or are ambiguous */
    uint32_t planes;  /* with hosts of the job */
    bool peers;       /* the ranks of other hosts have them, too */
    uint32_t plane;   /* the plane of `nearest`; FAB_NONE: nothing is there */
    uint32_t host;    /* this host in that plane */
};

/*
 * Put everything known about a job. An error of put() ends it and is returned, as is PMIX_ERR_NOMEM. Unknown
 * values are left out: if no plane has a host of the job, nothing is put.
 */
pmix_status_t fab_launch_fill(const struct fab_launch_job *job, fab_launch_put_fn put, void *to,
                              struct fab_launch_told *told);

/*
 * Call this first in a server. PMIx 5 and later keep the information of a job for its clients in shared
 * memory of a fixed size: three times its packed size, times a parameter. Launch information consists of
 * arrays of pmix_info_t, which take up to twenty times their packed size in memory. If they do not fit, the
 * library aborts the server. This function raises the parameter to 8. Only pages that are written take
 * memory.
 */
void fab_launch_make_room(void);

#endif
