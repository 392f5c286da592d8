/*
 * verbs.c - a stand-in for libibverbs: the functions by which programs look at RDMA devices, telling of a
 * machine that a file describes. Nothing can be sent. Loaded by tests only.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/standin/verbs_machine.h"

#undef ibv_query_port /* the header's, which calls an operation of the context */

/* What libibverbs exports for its own programs; no header declares it. */
int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned index, unsigned *type);
const char *ibv_get_sysfs_path(void);
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);

struct list {
    json_t *machine;
    struct ibv_device *devices[]; /* what the caller gets; ended by NULL */
};

static const json_t *json_of(struct ibv_device *device)
{
    return ((struct standin_device *)device)->json;
}

static struct ibv_device *make_device(json_t *json, const char *sysfs)
{
    struct standin_device *made = calloc(1, sizeof(*made));
    if (made == NULL)
        return NULL;
    const char *name = standin_text(json, "name", "");
    made->json = json_incref(json);
    made->device.node_type = (enum ibv_node_type)standin_number(json, "node", IBV_NODE_CA);
    made->device.transport_type = (enum ibv_transport_type)standin_number(json, "transport", 0);
    snprintf(made->device.name, sizeof(made->device.name), "%s", name);
    snprintf(made->device.ibdev_path, sizeof(made->device.ibdev_path), "%s/class/infiniband/%s", sysfs, name);
    return &made->device;
}

struct ibv_device **ibv_get_device_list(int *count)
{
    json_t *machine = standin_machine();
    json_t *devices = json_object_get(machine, "devices");
    size_t n = json_array_size(devices);
    int failed = standin_fails(machine, "list");
    struct list *list = failed != 0 ? NULL : calloc(1, sizeof(*list) + (n + 1) * sizeof(list->devices[0]));
    if (list == NULL) {
        json_decref(machine);
        errno = failed != 0 ? failed : ENOMEM;
        return NULL;
    }
    list->machine = machine;
    for (size_t i = 0; i < n; i++)
        list->devices[i] =
            make_device(json_array_get(devices, i), standin_text(machine, "sysfs", "/nonexistent"));
    if (count != NULL)
        *count = (int)n;
    return list->devices;
}

void ibv_free_device_list(struct ibv_device **devices)
{
    struct list *list = (struct list *)((char *)devices - offsetof(struct list, devices));
    for (size_t i = 0; devices[i] != NULL; i++) {
        json_decref(((struct standin_device *)devices[i])->json);
        free(devices[i]);
    }
    json_decref(list->machine);
    free(list);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
    return device->name;
}

__be64 ibv_get_device_guid(struct ibv_device *device)
{
    return standin_guid(json_of(device), "guid");
}

int ibv_get_device_index(struct ibv_device *device)
{
    (void)device;
    return -1;
}

static int query_port(struct ibv_context *context, uint8_t number, struct ibv_port_attr *attr, size_t size)
{
    struct ibv_port_attr all;
    const json_t *port = standin_port(json_of(context->device), number);
    int failed = port == NULL ? EINVAL : standin_fails(port, "query");
    if (failed != 0)
        return failed;
    standin_port_attr(port, &all);
    memset(attr, 0, size);
    memcpy(attr, &all, size < sizeof(all) ? size : sizeof(all));
    return 0;
}

/* What programs call that were made before the operation, or whose driver has none: the attributes of then.
 */
int ibv_query_port(struct ibv_context *context, uint8_t number, struct _compat_ibv_port_attr *attr)
{
    return query_port(context, number, (struct ibv_port_attr *)attr,
                      offsetof(struct ibv_port_attr, flags) + 1);
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    int failed = standin_fails(json_of(device), "open");
    struct verbs_context *made = failed != 0 ? NULL : calloc(1, sizeof(*made));
    if (made == NULL) {
        errno = failed != 0 ? failed : ENOMEM;
        return NULL;
    }
    made->sz = sizeof(*made);
    if (json_is_true(json_object_get(json_of(device), "old")))
        made->sz -= sizeof(made->query_port); /* the newest one stands first */
    made->query_port = query_port;
    made->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
    made->context.device = device;
    made->context.cmd_fd = made->context.async_fd = -1;
    return &made->context;
}

int ibv_close_device(struct ibv_context *context)
{
    free(verbs_get_ctx(context));
    return 0;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    const json_t *device = json_of(context->device);
    int failed = standin_fails(device, "query");
    if (failed != 0)
        return failed;
    memset(attr, 0, sizeof(*attr));
    const char *firmware = standin_text(device, "firmware", ""); /* a long one has no 0 at its end */
    memcpy(attr->fw_ver, firmware, strnlen(firmware, sizeof(attr->fw_ver)));
    attr->node_guid = standin_guid(device, "guid");
    attr->sys_image_guid = standin_guid(device, "system");
    attr->vendor_id = (uint32_t)standin_number(device, "vendor", 0x2c9);
    attr->vendor_part_id = (uint32_t)standin_number(device, "part", 0);
    attr->phys_port_cnt = (uint8_t)json_array_size(json_object_get(device, "ports"));
    return 0;
}

int ibv_query_gid(struct ibv_context *context, uint8_t number, int index, union ibv_gid *gid)
{
    const json_t *port = standin_port(json_of(context->device), number);
    const json_t *text = json_array_get(json_object_get(port, "gids"), (size_t)index);
    int failed = text == NULL ? EINVAL : standin_fails(port, "gid");
    if (failed == 0 && inet_pton(AF_INET6, json_string_value(text), gid->raw) != 1)
        failed = EINVAL;
    if (failed != 0)
        errno = failed;
    return failed == 0 ? 0 : -1;
}

int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned index, unsigned *type)
{
    (void)context;
    (void)port;
    *type = index % 2;
    return 0;
}

int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
    (void)context;
    (void)port;
    (void)index;
    *pkey = htobe16(0xffff);
    return 0;
}

int ibv_fork_init(void)
{
    return 0;
}

const char *ibv_get_sysfs_path(void)
{
    return "/sys";
}

/* As the real one: its length, without the line's end; -1. */
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
{
    char path[1024];
    snprintf(path, sizeof(path), "%s/%s", dir, file);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, buf, size - 1);
    if (fd >= 0)
        close(fd);
    if (n < 0)
        return -1;
    if (n > 0 && buf[n - 1] == '\n')
        n--;
    buf[n] = '\0';
    return (int)n;
}

const char *ibv_node_type_str(enum ibv_node_type type)
{
    return type == IBV_NODE_CA ? "InfiniBand channel adapter" : "other";
}

const char *ibv_wc_status_str(enum ibv_wc_status status)
{
    (void)status;
    return "unknown";
}

enum ibv_fork_status ibv_is_fork_initialized(void)
{
    return IBV_FORK_DISABLED;
}

const char *ibv_port_state_str(enum ibv_port_state state)
{
    static const char *const names[] = {"NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"};
    return (unsigned)state <= 5 ? names[state] : "unknown";
}

const char *ibv_event_type_str(enum ibv_event_type event)
{
    (void)event;
    return "event";
}
