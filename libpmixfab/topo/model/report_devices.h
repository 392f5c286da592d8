/*
 * report_devices.h - the items of a report put together to devices, as far as people's words need it.
 */
#ifndef FAB_TOPO_MODEL_REPORT_DEVICES_H
#define FAB_TOPO_MODEL_REPORT_DEVICES_H

#include "topo/model/report.h"

#define DEVICE_LABEL 80

/* What is said of a device, by whomever: each text of a kind once. */
struct device_said {
    const char *text;
    uint32_t device;
    uint8_t kind;
};

struct device {
    const char *label; /* "mlx5_0[1]", "eth0", "0000:c1:00:01" */
    const char *id;    /* port GUID, else MAC; NULL: none known */
    uint32_t first, n; /* what is said of it: by kind, then text */
    uint32_t match;    /* for the caller: FAB_NONE at first */
};

/* By label. The texts are the report's. */
struct devices {
    char (*labels)[DEVICE_LABEL]; /* of each item */
    struct device_said *said;
    struct device *list;
    uint32_t n;
};

/* Estimates and facts that change by themselves are left out. PMIXFAB_ERR_NOMEM. */
int report_devices(const struct fab_report *report, struct devices *out);
void report_devices_free(struct devices *devices);

/* First text of a kind, NULL: none. */
const char *device_text(const struct devices *devices, const struct device *device, unsigned kind);

#endif
