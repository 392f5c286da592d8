/*
 * hwloc.c - the probe `hwloc`: network and RDMA devices of a machine and where in it they are, as hwloc knows
 * it. The machine is this host or one that was recorded, with `lstopo FILE.xml` or `fabricd --record`.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probes/core/record.h"
#include "probes/hwloc/hwloc_priv.h"

#define HEAD_SIZE 1024 /* bytes at a file's beginning that say what it is */

/* These look for GPUs and displays, which takes longer than all the rest: as plugins, and where they are
 * built in. x86 asks every processor by itself, for caches that are not wanted here. */
#define OTHER_PLUGINS                                                                                        \
    "hwloc_cuda.so,hwloc_nvml.so,hwloc_opencl.so,hwloc_rsmi.so,hwloc_levelzero.so,hwloc_gl.so"
static const char *const others[] = {"cuda", "nvml", "opencl", "rsmi", "levelzero", "gl", "x86"};

/* Keep what is asked for. Groups stay: they are where a device is when it is near a part of a package. */
static int hwloc_configure(hwloc_topology_t machine)
{
    static const hwloc_obj_type_t unwanted[] = {HWLOC_OBJ_CORE,     HWLOC_OBJ_L1CACHE,  HWLOC_OBJ_L2CACHE,
                                                HWLOC_OBJ_L3CACHE,  HWLOC_OBJ_L4CACHE,  HWLOC_OBJ_L5CACHE,
                                                HWLOC_OBJ_L1ICACHE, HWLOC_OBJ_L2ICACHE, HWLOC_OBJ_L3ICACHE};
    int rc = hwloc_topology_set_flags(
        machine, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED | HWLOC_TOPOLOGY_FLAG_NO_DISTANCES |
                     HWLOC_TOPOLOGY_FLAG_NO_MEMATTRS | HWLOC_TOPOLOGY_FLAG_NO_CPUKINDS);
    for (size_t i = 0; i < sizeof(unwanted) / sizeof(unwanted[0]) && rc == 0; i++)
        rc = hwloc_topology_set_type_filter(machine, unwanted[i], HWLOC_TYPE_FILTER_KEEP_NONE);
    if (rc == 0)
        rc = hwloc_topology_set_io_types_filter(machine, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]) && rc == 0; i++)
        hwloc_topology_set_components(machine, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, others[i]);
    return rc;
}

/* Free with hwloc_topology_destroy(); NULL: *code says why. */
static hwloc_topology_t hwloc_load(const char *path, int *code)
{
    hwloc_topology_t machine = NULL;
    *code = PMIXFAB_ERR_NOMEM;
    if (hwloc_topology_init(&machine) != 0)
        return NULL;
    *code = path == NULL ? PMIXFAB_ERR_IO : PMIXFAB_ERR_CORRUPT;
    if ((path == NULL || hwloc_topology_set_xml(machine, path) == 0) && hwloc_configure(machine) == 0 &&
        hwloc_topology_load(machine) == 0)
        return machine;
    hwloc_topology_destroy(machine);
    return NULL;
}

/*
 * hwloc 2.9 does not check whether a recorded machine's objects have the sets that it counts on, and crashes
 * on some damaged files. So a file is first read by a process that may.
 */
static bool hwloc_survives(const char *path)
{
    int status = 0, code;
    pid_t child = fork();
    if (child < 0)
        return true;
    if (child == 0) {
        const struct rlimit none = {0, 0};
        int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        setrlimit(RLIMIT_CORE, &none);
        dup2(null, STDERR_FILENO);
        hwloc_load(path, &code);
        _exit(0);
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* The beginning of a file, as a text; empty where it cannot be read. */
static void hwloc_peek(const char *path, char text[HEAD_SIZE])
{
    FILE *file = fopen(path, "re");
    size_t n = file == NULL ? 0 : fread(text, 1, HEAD_SIZE - 1, file);
    text[n] = '\0';
    if (file != NULL)
        fclose(file);
}

/* JSON, as `fabricd --record` writes it; hwloc itself writes XML. */
static bool is_record(const char *path)
{
    char head[HEAD_SIZE];
    hwloc_peek(path, head);
    return head[strspn(head, " \t\r\n\xef\xbb\xbf")] == '{';
}

/* Files of a later major version are not read, or not in full. */
static int check_version(const char *path, struct fab_err *err)
{
    static const char start[] = "<topology version=\"";
    char head[HEAD_SIZE];
    unsigned major = 0, minor = 0;
    hwloc_peek(path, head);
    const char *at = strstr(head, start);
    if (at == NULL || sscanf(at + sizeof(start) - 1, "%u.%u", &major, &minor) < 1 ||
        major <= hwloc_get_api_version() >> 16)
        return PMIXFAB_OK;
    return fab_fail(err, PMIXFAB_ERR_NEWER,
                    "hwloc: %s: is of hwloc %u.%u, and this hwloc is version %u; record it with "
                    "lstopo --export-xml-flags v2, or with fabricd --record",
                    path, major, minor, hwloc_get_api_version() >> 16);
}

int hwloc_machine_load(const char *path, hwloc_topology_t *out, struct fab_err *err)
{
    int code;
    *out = NULL;
    setenv("HWLOC_PLUGINS_BLACKLIST", OTHER_PLUGINS, 0);
    if (path != NULL && access(path, R_OK) != 0)
        return fab_fail(err, errno == ENOENT ? PMIXFAB_ERR_NOTFOUND : PMIXFAB_ERR_IO, "hwloc: %s: %s", path,
                        strerror(errno));
    if (path != NULL && check_version(path, err) != PMIXFAB_OK)
        return PMIXFAB_ERR_NEWER;
    if (path != NULL && !hwloc_survives(path))
        return fab_fail(err, PMIXFAB_ERR_CORRUPT, "hwloc: %s: is so damaged that hwloc crashes on it", path);
    *out = hwloc_load(path, &code);
    if (*out != NULL)
        return PMIXFAB_OK;
    if (code == PMIXFAB_ERR_CORRUPT)
        return fab_fail(err, code, "hwloc: %s: is no machine that hwloc can read; record one with lstopo",
                        path);
    return fab_fail(err, code, "hwloc: this machine cannot be looked at: %s", pmixfab_strerror(code));
}

/* hwloc itself falls back to this host, in silence, when the file that HWLOC_XMLFILE names is not there. */
static const char *machine_path(const struct probe_config *config)
{
    const char *path = config->arg;
    if (path == NULL)
        path = getenv("HWLOC_XMLFILE");
    return path == NULL || path[0] == '\0' ? NULL : path;
}

static bool hwloc_is_wanted(hwloc_obj_t device)
{
    return device->name != NULL && (device->attr->osdev.type == HWLOC_OBJ_OSDEV_NETWORK ||
                                    device->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS);
}

static int hwloc_scan(const struct probe_config *config, const struct probe_sink *sink,
                      struct fab_report *report, struct fab_err *err)
{
    hwloc_topology_t machine = NULL;
    const char *path = machine_path(config);
    unsigned n = 0;
    if (path != NULL && is_record(path))
        return record_scan(path, FAB_FROM_HWLOC, report, err);
    int rc = hwloc_machine_load(path, &machine, err);
    if (rc != PMIXFAB_OK)
        return rc;
    for (hwloc_obj_t at = hwloc_get_next_osdev(machine, NULL); at != NULL && rc == PMIXFAB_OK;
         at = hwloc_get_next_osdev(machine, at)) {
        if (!hwloc_is_wanted(at))
            continue;
        rc = hwloc_device_report(machine, at, sink, report);
        n++;
    }
    hwloc_topology_destroy(machine);
    if (rc != PMIXFAB_OK)
        return fab_fail(err, rc, "hwloc: %s: %s", path == NULL ? "this machine" : path, pmixfab_strerror(rc));
    if (n == 0)
        return fab_fail(err, PMIXFAB_ERR_UNSUPPORTED, "hwloc: %s has no network and no RDMA device",
                        path == NULL ? "this machine" : path);
    return PMIXFAB_OK;
}

static int hwloc_available(char *text, size_t size)
{
    struct fab_err err = {{0}};
    const struct probe_config config = {0};
    hwloc_topology_t machine = NULL;
    unsigned interfaces = 0, rdma = 0;
    int rc = hwloc_machine_load(machine_path(&config), &machine, &err);
    if (rc != PMIXFAB_OK) {
        snprintf(text, size, "%s", err.text);
        return rc;
    }
    for (hwloc_obj_t at = hwloc_get_next_osdev(machine, NULL); at != NULL;
         at = hwloc_get_next_osdev(machine, at)) {
        if (hwloc_is_wanted(at) && at->attr->osdev.type == HWLOC_OBJ_OSDEV_NETWORK)
            interfaces++;
        else if (hwloc_is_wanted(at))
            rdma++;
    }
    snprintf(text, size, "%u network interface%s and %u RDMA device%s", interfaces,
             interfaces == 1 ? "" : "s", rdma, rdma == 1 ? "" : "s");
    hwloc_topology_destroy(machine);
    return interfaces + rdma > 0 ? PMIXFAB_OK : PMIXFAB_ERR_UNSUPPORTED;
}

__attribute__((visibility("default"))) const struct probe fabricd_probe = {
    .name = "hwloc",
    .scan = hwloc_scan,
    .available = hwloc_available,
};
