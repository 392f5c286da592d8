/*
 * environment.h - what makes communication libraries use a certain device: variables of a process's
 * environment, in the form that each library expects (docs/design/place.md has the sources).
 *
 * Nothing here allocates, locks or asks anybody, so that it can be called in a forked child.
 */
#ifndef FAB_PLACE_ENVIRONMENT_H
#define FAB_PLACE_ENVIRONMENT_H

#include "pmixfab.h"

/* Bits: whose variables are wanted. */
enum fab_env { FAB_ENV_UCX = 1, FAB_ENV_NCCL = 2, FAB_ENV_OFI = 4 };

#define FAB_ENV_SETTINGS 3

struct fab_env_setting {
    const char *name; /* static */
    char value[80];
};

/* "ucx,nccl,ofi" as bits; empty or NULL is 0. PMIXFAB_ERR_SYNTAX: another word; *wanted has those before. */
int fab_env_parse(const char *text, unsigned *wanted);

/*
 * The settings that are wanted for a device and that env (NULL, or texts up to NULL) does not contradict.
 * Returns their number; 0 where `device` is none, is not up, is no RDMA device, or where its node has not
 * reported it (`fabricd --role node`): a sweep does not know what the node calls it.
 *
 * A variable that env has stays, with whatever value. So do those that another one contradicts: UCX_TLS may
 * leave transports that the device has not, FI_VERBS_IFACE may mean another device.
 */
unsigned fab_env_settings(const struct pmixfab *fab, uint32_t device, unsigned wanted, char *const *env,
                          struct fab_env_setting out[FAB_ENV_SETTINGS]);

#endif
