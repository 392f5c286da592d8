/*
 * verbs_machine.h - the machine that the stand-in for libibverbs describes.
 *
 *   {"sysfs": "/tmp/x/sys", "fails": {...}, "devices": [
 *     {"name": "mlx5_0", "node": 1, "transport": 0, "guid": "0x98039b0300fa1234", "system": "0x98...",
 *      "firmware": "20.31.1014", "vendor": 713, "part": 4123, "old": false, "fails": {...},
 *      "ports": [
 *       {"state": 4, "lid": 17, "link": 1, "width": 2, "speed": 64, "mtu": 5, "gids": ["fe80::1"],
 *        "fails": {...}}]}]}
 *
 * Below "sysfs" stands class/infiniband/NAME; default: a folder that is not there.
 * Numbers are those of verbs.h. "old": a driver without the newer operations. "fails" names operations, and
 * how they fail: a number of errno.h, "hang" or "crash". Those of the machine: "list"; of a device: "open",
 * "query"; of a port: "query", "gid".
 */
#ifndef STANDIN_VERBS_MACHINE_H
#define STANDIN_VERBS_MACHINE_H

#include <infiniband/verbs.h>
#include <jansson.h>

/* A device: what it is to others first. */
struct standin_device {
    struct ibv_device device;
    json_t *json;
};

/* Of the file that STANDIN_VERBS names; NULL: it is not set, so there is no device. Ends the process, with a
 * line on standard error, where the file is none. */
json_t *standin_machine(void);

/* How an operation of this machine, device or port ends: 0 or a number of errno.h. Hangs and crashes here. */
int standin_fails(const json_t *of, const char *operation);

long standin_number(const json_t *of, const char *key, long otherwise);
const char *standin_text(const json_t *of, const char *key, const char *otherwise);
__be64 standin_guid(const json_t *of, const char *key);

/* Port `number` of a device; NULL: it has none. */
json_t *standin_port(const json_t *device, unsigned number);

/* Fill in what the port says. */
void standin_port_attr(const json_t *port, struct ibv_port_attr *attr);

#endif
