/*
 * ibnetdisc.c - the probe `ibnetdisc`: ask a live InfiniBand subnet through libibnetdisc.
 *
 * The library prints to standard error, can abort or hang its process, and returns what it has when a part of
 * the subnet does not answer. The first two are why probes run in a child; the third shows in the inventory
 * as ports that are up and lead nowhere.
 */
#include <errno.h>
#include <infiniband/umad.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "probes/ibnetdisc.h"
#include "probes/probes.h"

#define MAD_CLASS_DIR "/sys/class/infiniband_mad"

/* Requests in flight: 32 is about ten times as fast as the library's 2, and more gains nothing. */
#define DEFAULT_MAX_SMPS   32u
#define DEFAULT_TIMEOUT_MS 1000u
#define DEFAULT_RETRIES    3u

int ibnetdisc_target(const char *arg, char ca[UMAD_CA_NAME_LEN], int *port, struct fab_err *err)
{
    ca[0] = '\0';
    *port = 0;
    if (arg == NULL)
        return PMIXFAB_OK;
    size_t len = strcspn(arg, ":");
    if (len >= UMAD_CA_NAME_LEN ||
        strspn(arg, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.") < len)
        return fab_fail(err, PMIXFAB_ERR_INVAL,
                        "ibnetdisc:%s: no name of an HCA; give ibnetdisc[:CA[:PORT]], as ibnetdisc:mlx5_0:1",
                        arg);
    if (arg[len] == ':') {
        const char *p = arg + len + 1;
        unsigned v = 0;
        for (; *p >= '0' && *p <= '9' && v < 1000; p++)
            v = v * 10 + (unsigned)(*p - '0');
        if (*p != '\0' || v < 1 || v > 254)
            return fab_fail(err, PMIXFAB_ERR_INVAL, "ibnetdisc:%s: \"%s\" is no port; give 1 to 254", arg,
                            arg + len + 1);
        *port = (int)v;
    }
    memcpy(ca, arg, len);
    ca[len] = '\0';
    return PMIXFAB_OK;
}

static int check(const struct probe_config *config, struct fab_err *err)
{
    char ca[UMAD_CA_NAME_LEN];
    int port;
    return ibnetdisc_target(config->arg, ca, &port, err);
}

static int available(char *text, size_t size)
{
    char names[UMAD_MAX_DEVICES][UMAD_CA_NAME_LEN];
    if (access(MAD_CLASS_DIR, F_OK) != 0) {
        snprintf(text, size, "no InfiniBand port: " MAD_CLASS_DIR " is absent (is ib_umad loaded?)");
        return PMIXFAB_ERR_NOTFOUND;
    }
    if (umad_init() < 0) {
        snprintf(text, size, "no InfiniBand port: " MAD_CLASS_DIR " cannot be used");
        return PMIXFAB_ERR_NOTFOUND;
    }
    int n = umad_get_cas_names(names, UMAD_MAX_DEVICES);
    if (n <= 0) {
        snprintf(text, size, "no InfiniBand port: " MAD_CLASS_DIR " names no HCA");
        return PMIXFAB_ERR_NOTFOUND;
    }
    snprintf(text, size, "%d InfiniBand HCA%s, the first is %.*s", n, n == 1 ? "" : "s", UMAD_CA_NAME_LEN,
             names[0]);
    return PMIXFAB_OK;
}

static int run(const struct probe_config *config, const struct probe_sink *sink, struct fab_inventory *inv,
               struct fab_err *err)
{
    char ca[UMAD_CA_NAME_LEN], why[200];
    int port;
    struct observed seen;
    int rc = ibnetdisc_target(config->arg, ca, &port, err);
    if (rc != PMIXFAB_OK)
        return rc;
    ibnd_config_t how = {
        .max_smps = config->max_smps != 0 ? config->max_smps : DEFAULT_MAX_SMPS,
        .timeout_ms = config->timeout_ms != 0 ? config->timeout_ms : DEFAULT_TIMEOUT_MS,
        .retries = config->retries != 0 ? config->retries : DEFAULT_RETRIES,
        .flags = IBND_CONFIG_MLX_EPI, /* FDR10 stands there only */
    };
    if (available(why, sizeof(why)) != PMIXFAB_OK)
        return fab_fail(err, PMIXFAB_ERR_NOTFOUND, "ibnetdisc: %s", why);
    ibnd_fabric_t *fabric = ibnd_discover_fabric(ca[0] != '\0' ? ca : NULL, port, NULL, &how);
    if (fabric == NULL)
        return fab_fail(err, PMIXFAB_ERR_IO,
                        "ibnetdisc%s%s: the subnet cannot be discovered; check the HCA's port, the access to "
                        "/dev/infiniband/umad* and the subnet manager",
                        ca[0] != '\0' ? ":" : "", ca);
    rc = ibnetdisc_observe(fabric, &seen, err);
    if (rc == PMIXFAB_OK)
        rc = observed_inventory(&seen, sink, inv, err);
    if (rc == PMIXFAB_OK && inv->n_dangling > 0)
        probe_note(sink, PMIXFAB_LOG_WARNING,
                   "%u ports are up and lead nowhere: a part of the subnet did not answer", inv->n_dangling);
    observed_free(&seen);
    ibnd_destroy_fabric(fabric);
    return rc;
}

const struct probe probe_ibnetdisc = {
    .name = "ibnetdisc",
    .summary = "[CA[:PORT]]: the InfiniBand subnet that an HCA of this host is on",
    .check = check,
    .run = run,
    .available = available,
};
