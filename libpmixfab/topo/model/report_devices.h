/* report_devices.h - the items of a report put together to devices, as needed for texts. */
#ifndef FAB_TOPO_MODEL_REPORT_DEVICES_H
#define FAB_TOPO_MODEL_REPORT_DEVICES_H

#include "topo/model/report.h"

#define DEVICE_LABEL 80

/* The reported texts of a device: each text of a kind once, from any source. */
struct device_said {
    const char *text;
    uint32_t device;
    uint8_t kind;
};

struct device {
    const char *label; /* "mlx5_0[1]", "eth0", "0000:c1:00:01" */
    const char *id;    /* port GUID, else MAC; NULL: unknown */
    uint32_t first, n; /* its texts: by kind, then text */
    uint32_t match;    /* for the caller: FAB_NONE at first */
};

/* In order of labels. The texts belong to the report. */
struct devices {
    char (*labels)[DEVICE_LABEL]; /* of each item */
    struct device_said *said;
    struct device *list;
    uint32_t n;
};

/* Find the devices. Estimates and facts that change on their own are left out. PMIXFAB_ERR_NOMEM. */
int report_devices(const struct fab_report *report, struct devices *out);
void report_devices_free(struct devices *devices);

/* Return the first text of a kind, or NULL. */
const char *device_text(const struct devices *devices, const struct device *device, unsigned kind);

#endif
