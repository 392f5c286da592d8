/*
 * environment.h - environment variables that make communication libraries use a certain device, in the form
 * of each library (docs/design/place.md has the sources).
 *
 * These functions do not allocate, lock or send requests, so that they can be called in a forked child.
 */
#ifndef FAB_PLACE_ENVIRONMENT_H
#define FAB_PLACE_ENVIRONMENT_H

#include "pmixfab.h"

/* Bits: libraries whose variables are wanted. */
enum fab_env {
    FAB_ENV_UCX = 1,
    FAB_ENV_NCCL = 2,
    FAB_ENV_OFI = 4,
    FAB_ENV_PSM3 = 8,
    FAB_ENV_OPX = 16,
    FAB_ENV_NVSHMEM = 32
};

#define FAB_ENV_SETTINGS 6
/* The words, for messages. */
#define FAB_ENV_WORDS "ucx, nccl, ofi, psm3, opx, nvshmem"

struct fab_env_setting {
    const char *name; /* static */
    char value[80];
};

/*
 * Parse words such as "ucx,nccl" to bits; empty or NULL is 0. PMIXFAB_ERR_SYNTAX: another word; *wanted has
 * the words before it.
 */
int fab_env_parse(const char *text, unsigned *wanted);

/* The source of a variable's value: the job's environment, fabricd, or the PMIx library. */
enum fab_env_from { FAB_ENV_SITE, FAB_ENV_FABRICD, FAB_ENV_LIBRARY };
#define FAB_ENV_FROMS 3

/*
 * Parse "site,fabricd,library": the first one that has a value wins. Missing words follow in this order; NULL
 * or empty is this order. PMIXFAB_ERR_SYNTAX: another word, or a word twice; it and the rest are ignored.
 */
int fab_env_order_parse(const char *text, enum fab_env_from order[FAB_ENV_FROMS]);

/* Return the first value of this order; NULL: none. `values` by enum fab_env_from. */
const char *fab_env_choose(const enum fab_env_from order[FAB_ENV_FROMS],
                           const char *const values[FAB_ENV_FROMS]);

/* Return a variable that fabricd or the PMIx library (from 7 on) sets; NULL: i is past the last. */
#define FAB_ENV_VARIABLES FAB_ENV_SETTINGS
const char *fab_env_variable(unsigned i);

/*
 * Write the wanted settings for a device that env (NULL, or texts up to NULL) does not contradict. Return
 * their number. Return 0 if there is no such device, it is not up, it is not an RDMA device, or its node has
 * not reported it (`fabricd --role node`). A sweep does not contain the node's name of a device.
 *
 * A variable that is in env stays, with any value. A setting is left out if another variable contradicts it.
 * For example, UCX_TLS may select transports that the device does not have, or FI_VERBS_IFACE may name
 * another device. It is also left out if the
 * library would read the name as something else, such as a number.
 */
unsigned fab_env_settings(const struct pmixfab *fab, uint32_t device, unsigned wanted, char *const *env,
                          struct fab_env_setting out[FAB_ENV_SETTINGS]);

#endif
