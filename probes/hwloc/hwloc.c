/* hwloc.c - the probe `hwloc`: network and RDMA devices of a machine, and their places in it. */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probes/core/facts.h"
#include "probes/core/record.h"
#include "probes/hwloc/hwloc_priv.h"
#include "topo/base/cpus.h"

/* ---- the place of a device in the machine ---- */

#define MAX_BRIDGES 32 /* in a chain */

static bool is_pci_bridge(hwloc_obj_t obj)
{
    return obj != NULL && obj->type == HWLOC_OBJ_BRIDGE &&
           obj->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI;
}

/*
 * A link of PCI Express has one device at its end, number 0. So only the bus inside a switch has bridges with
 * other numbers.
 */
static bool is_inside_switch(hwloc_obj_t above)
{
    for (hwloc_obj_t child = above->io_first_child; child != NULL; child = child->next_sibling) {
        if (is_pci_bridge(child) && child->attr->bridge.upstream.pci.dev != 0)
            return true;
    }
    return false;
}

hwloc_obj_t hwloc_switch_above(hwloc_obj_t pci)
{
    hwloc_obj_t chain[MAX_BRIDGES]; /* from the device upwards */
    unsigned n = 0;
    for (hwloc_obj_t at = pci->parent; is_pci_bridge(at) && n < MAX_BRIDGES; at = at->parent)
        chain[n++] = at;
    /* Without a visible root port, as in virtual machines, the topmost bridge is the switch itself. */
    if (n >= 2 && is_inside_switch(chain[n - 1]))
        return chain[n - 1];
    /* root port, upstream port, downstream port; a card with one bridge of its own has no third */
    return n >= 3 ? chain[n - 2] : NULL;
}

/*
 * Skip a list that is too long for a fact: no machine numbers its processors this way. A damaged recording
 * may have an infinite set.
 */
static void cpus_fact(hwloc_const_bitmap_t set, enum fab_fact kind, struct probe_item *item)
{
    struct fab_cpus cpus = {{0}};
    char text[FAB_REPORT_MAX_TEXT + 1];
    for (int cpu = hwloc_bitmap_first(set); cpu >= 0 && cpu < FAB_CPUS_MAX; cpu = hwloc_bitmap_next(set, cpu))
        fab_cpus_add(&cpus, (unsigned)cpu);
    if (fab_cpus_text(&cpus, text, sizeof(text)))
        fact_printf(item, kind, "%s", text);
}

/*
 * Add the NUMA node of the device's parent. If there are several NUMA nodes, add none. But if they are
 * different memories of the same processors (a socket's DRAM and its HBM), add the first. Return false if
 * none is added.
 */
static bool numa_fact(hwloc_topology_t machine, hwloc_obj_t near, struct probe_item *item)
{
    unsigned number;
    hwloc_obj_t first = NULL;
    hwloc_bitmap_foreach_begin(number, near->nodeset)
    {
        hwloc_obj_t node = hwloc_get_numanode_obj_by_os_index(machine, number);
        if (node == NULL)
            continue;
        if (first == NULL)
            first = node;
        else if (!hwloc_bitmap_isequal(node->cpuset, first->cpuset))
            return false;
    }
    hwloc_bitmap_foreach_end();
    if (first != NULL)
        fact_printf(item, FAB_FACT_NUMA, "%u", first->os_index);
    return first != NULL;
}

static bool package_fact(hwloc_topology_t machine, hwloc_obj_t near, struct probe_item *item)
{
    for (hwloc_obj_t package = hwloc_get_next_obj_by_type(machine, HWLOC_OBJ_PACKAGE, NULL); package != NULL;
         package = hwloc_get_next_obj_by_type(machine, HWLOC_OBJ_PACKAGE, package)) {
        if (package->os_index != HWLOC_UNKNOWN_INDEX &&
            hwloc_bitmap_isincluded(near->cpuset, package->cpuset)) {
            fact_printf(item, FAB_FACT_PACKAGE, "%u", package->os_index);
            cpus_fact(package->cpuset, FAB_FACT_PACKAGE_CPUS, item);
            return true;
        }
    }
    return false;
}

static void hwloc_place_facts(hwloc_topology_t machine, hwloc_obj_t device, hwloc_obj_t pci,
                              struct probe_item *item)
{
    hwloc_obj_t near = hwloc_get_non_io_ancestor_obj(machine, device);
    bool placed = near != NULL && near->nodeset != NULL && hwloc_bitmap_weight(near->nodeset) > 0 &&
                  numa_fact(machine, near, item);
    if (near != NULL && near->cpuset != NULL && hwloc_bitmap_weight(near->cpuset) > 0) {
        placed |= package_fact(machine, near, item);
        if (placed) /* a device of the machine as a whole is equally near to all processors */
            cpus_fact(near->cpuset, FAB_FACT_CPUS, item);
    }
    if (pci == NULL)
        return;
    hwloc_obj_t above = hwloc_switch_above(pci);
    if (above != NULL) {
        const struct hwloc_pcidev_attr_s *at = &above->attr->bridge.upstream.pci;
        fact_pci(item, FAB_FACT_SWITCH, at->domain, at->bus, at->dev, at->func);
    }
    double gbytes = pci->attr->pcidev.linkspeed; /* per second; 0: unknown */
    if (gbytes > 0 && gbytes < 100000)
        fact_printf(item, FAB_FACT_SLOT_SPEED, "%ld", lround(gbytes * 8000));
}

/*
 * ---- one network or OpenFabrics device as facts.
 *
 * hwloc stores data from sysfs as pairs of texts: "Address" of an interface, "NodeGUID", "SysImageGUID",
 * "Port1State", "Port1LID", "Port1GID0" of an RDMA device.
 */

#define MAX_PORT      254
#define PCI_ETHERNET  0x0200 /* class */
#define PCI_FABRIC    0x0207
#define IPOIB_ADDRESS 20 /* bytes: 4 of a queue pair, and the port's GID */

/* Parse "248a:0703:001e:39fe"; 0: another text. */
static uint64_t guid_parse(const char *text)
{
    uint64_t guid = 0;
    unsigned digits = 0;
    for (; text != NULL && *text != '\0'; text++) {
        char digit[2] = {*text, '\0'};
        if (*text == ':')
            continue;
        if (!isxdigit((unsigned char)*text) || ++digits > 16)
            return 0;
        guid = guid << 4 | strtoul(digit, NULL, 16);
    }
    return digits == 16 ? guid : 0;
}

/* Parse "00:21:5E:c4:86:1a", of any length; 0: another text. Return the number of bytes. */
static unsigned address_parse(const char *text, uint8_t *bytes, unsigned max)
{
    unsigned n = 0;
    while (text != NULL && n < max && isxdigit((unsigned char)text[0]) && isxdigit((unsigned char)text[1])) {
        char byte[3] = {text[0], text[1], '\0'};
        bytes[n++] = (uint8_t)strtoul(byte, NULL, 16);
        if (text[2] == '\0')
            return n;
        if (text[2] != ':')
            return 0;
        text += 3;
    }
    return 0;
}

/* Return the PCI device that an OS device is a part of; NULL: none. */
static hwloc_obj_t hwloc_pci_of(hwloc_obj_t device)
{
    hwloc_obj_t at = device->parent;
    while (at != NULL && at->type == HWLOC_OBJ_OS_DEVICE)
        at = at->parent;
    return at != NULL && at->type == HWLOC_OBJ_PCI_DEVICE ? at : NULL;
}

/* Add the facts that all items of a device share. */
static void common_facts(hwloc_topology_t machine, hwloc_obj_t device, hwloc_obj_t pci,
                         struct probe_item *item)
{
    if (pci != NULL) {
        const struct hwloc_pcidev_attr_s *at = &pci->attr->pcidev;
        const char *vendor = hwloc_obj_get_info_by_name(pci, "PCIVendor");
        const char *part = hwloc_obj_get_info_by_name(pci, "PCIDevice");
        fact_add(item, FAB_FACT_BUS, "PCI");
        fact_pci(item, FAB_FACT_PCI, at->domain, at->bus, at->dev, at->func);
        fact_printf(item, FAB_FACT_VENDOR_ID, "0x%04x", at->vendor_id);
        fact_printf(item, FAB_FACT_PART_ID, "0x%04x", at->device_id);
        if (vendor != NULL)
            fact_printf(item, FAB_FACT_VENDOR, "%s", vendor);
        if (part != NULL)
            fact_printf(item, FAB_FACT_PART, "%s", part);
    } else if (device->parent->type != HWLOC_OBJ_BRIDGE) {
        fact_add(item, FAB_FACT_BUS, "virtual");
    } /* else it is below a PCI device of another kind, such as a USB controller, which is not kept */
    hwloc_place_facts(machine, device, pci, item);
}

/* The address of an interface is a MAC, or, with InfiniBand, holds the GUID of its port. */
static void interface_facts(hwloc_obj_t device, hwloc_obj_t pci, struct probe_item *item)
{
    uint8_t address[IPOIB_ADDRESS] = {0};
    unsigned class = pci == NULL ? 0 : pci->attr->pcidev.class_id;
    const char *port = hwloc_obj_get_info_by_name(device, "Port");
    unsigned n = address_parse(hwloc_obj_get_info_by_name(device, "Address"), address, sizeof(address));
    fact_printf(item, FAB_FACT_INTERFACE, "%s", device->name);
    if (n == IPOIB_ADDRESS) {
        fact_add(item, FAB_FACT_TYPE, "InfiniBand");
        fact_guid(item, FAB_FACT_PORT_GUID, probe_be(address + 12, 8));
        if (port != NULL)
            fact_printf(item, FAB_FACT_PORT, "%s", port);
    } else if (n == 6) {
        if (class == PCI_ETHERNET || class == PCI_FABRIC)
            fact_add(item, FAB_FACT_TYPE, "Ethernet");
        fact_mac(item, address);
    }
}

/* Return 12 for "Port12State" and "State"; 0: another name. */
static unsigned hwloc_port_number(const char *name, const char *what)
{
    unsigned port = 0;
    if (strncmp(name, "Port", 4) != 0)
        return 0;
    for (name += 4; isdigit((unsigned char)*name) && port <= MAX_PORT; name++)
        port = 10 * port + (unsigned)(*name - '0');
    return port <= MAX_PORT && strncmp(name, what, strlen(what)) == 0 ? port : 0;
}

/*
 * Return the port's GUID, the end of the first GID of an InfiniBand port. With RoCE and other networks the
 * GID is made of a MAC (ff:fe in the middle) or an IP address. A LID proves that the port is InfiniBand.
 */
static uint64_t port_guid(const uint8_t gid[16], unsigned long lid)
{
    bool of_mac = gid[11] == 0xff && gid[12] == 0xfe;
    bool of_address = gid[0] != 0xfe && lid == 0;
    return lid != 0 || !(of_mac || of_address) ? probe_be(gid + 8, 8) : 0;
}

static void state_fact(struct probe_item *item, const char *text)
{
    unsigned long state = strtoul(text, NULL, 10);
    fact_add(item, FAB_FACT_STATE, state == 0 || state > 5 ? "unknown" : state == 4 ? "up" : "down");
}

static void hwloc_port_facts(hwloc_obj_t device, unsigned port, struct probe_item *item)
{
    unsigned long lid = 0;
    uint8_t gid[16], first[16];
    bool has_first = false;
    for (unsigned i = 0; i < device->infos_count; i++) {
        const char *name = device->infos[i].name, *value = device->infos[i].value;
        if (hwloc_port_number(name, "State") == port) {
            state_fact(item, value);
        } else if (hwloc_port_number(name, "LID") == port) {
            lid = strtoul(value, NULL, 0);
        } else if (hwloc_port_number(name, "GID") == port && inet_pton(AF_INET6, value, gid) == 1) {
            probe_item_gid(item, gid);
            if (strcmp(strstr(name, "GID"), "GID0") == 0) {
                memcpy(first, gid, sizeof(first));
                has_first = true;
            }
        }
    }
    fact_printf(item, FAB_FACT_PORT, "%u", port);
    if (lid != 0) {
        fact_printf(item, FAB_FACT_LID, "%lu", lid);
        fact_add(item, FAB_FACT_TYPE, "InfiniBand");
    }
    if (has_first)
        fact_guid(item, FAB_FACT_PORT_GUID, port_guid(first, lid));
}

static void rdma_facts(hwloc_obj_t device, struct probe_item *item)
{
    fact_printf(item, FAB_FACT_NAME, "%s", device->name);
    fact_guid(item, FAB_FACT_NODE_GUID, guid_parse(hwloc_obj_get_info_by_name(device, "NodeGUID")));
    fact_guid(item, FAB_FACT_SYSTEM_GUID, guid_parse(hwloc_obj_get_info_by_name(device, "SysImageGUID")));
}

/* Return the next port after `after` with data; 0: none. */
static unsigned next_port(hwloc_obj_t device, unsigned after)
{
    unsigned next = 0;
    for (unsigned i = 0; i < device->infos_count; i++) {
        unsigned port = hwloc_port_number(device->infos[i].name, "");
        if (port > after && (next == 0 || port < next))
            next = port;
    }
    return next;
}

static int hwloc_device_report(hwloc_topology_t machine, hwloc_obj_t device, const struct probe_sink *sink,
                               struct fab_report *report)
{
    struct probe_item item;
    hwloc_obj_t pci = hwloc_pci_of(device);
    bool rdma = device->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS;
    unsigned port = rdma ? next_port(device, 0) : 0;
    do {
        probe_item_open(&item, FAB_FROM_HWLOC, device->name, sink, report);
        if (rdma)
            rdma_facts(device, &item);
        else
            interface_facts(device, pci, &item);
        if (port != 0)
            hwloc_port_facts(device, port, &item);
        common_facts(machine, device, pci, &item);
        port = port == 0 ? 0 : next_port(device, port);
    } while (port != 0 && item.rc == PMIXFAB_OK);
    return item.rc;
}

/*
 * ---- the probe `hwloc`: network and RDMA devices of a machine and their places in it, from hwloc. The
 * machine is this host or a recorded one, from `lstopo FILE.xml` or `fabricd --record`.
 */

#define HEAD_SIZE 1024 /* bytes at a file's beginning that identify it */

/*
 * These search for GPUs and displays, which takes longer than all the rest: as plugins, and if they are built
 * in. x86 queries every processor for caches, which are not needed here.
 */
#define OTHER_PLUGINS                                                                                        \
    "hwloc_cuda.so,hwloc_nvml.so,hwloc_opencl.so,hwloc_rsmi.so,hwloc_levelzero.so,hwloc_gl.so"
static const char *const others[] = {"cuda", "nvml", "opencl", "rsmi", "levelzero", "gl", "x86"};

/* Keep the needed objects. Groups stay: they are the place of a device that is near a part of a package. */
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

/* Load the machine, to be freed with hwloc_topology_destroy(); NULL: *code has the error. */
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
 * hwloc 2.9 does not check that a recorded machine's objects have the sets that it needs, and crashes on some
 * damaged files. So a file is first read by a process that may crash.
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

/* Read the beginning of a file as text; empty if it cannot be read. */
static void hwloc_peek(const char *path, char text[HEAD_SIZE])
{
    FILE *file = fopen(path, "re");
    size_t n = file == NULL ? 0 : fread(text, 1, HEAD_SIZE - 1, file);
    text[n] = '\0';
    if (file != NULL)
        fclose(file);
}

/* Return whether it is JSON, from `fabricd --record`; hwloc itself writes XML. */
static bool is_record(const char *path)
{
    char head[HEAD_SIZE];
    hwloc_peek(path, head);
    return head[strspn(head, " \t\r\n\xef\xbb\xbf")] == '{';
}

/* Files of a later major version are read in part or not at all. */
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
                    "hwloc: %s: recorded with hwloc %u.%u, but this hwloc is version %u; record it with "
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
        return fab_fail(err, PMIXFAB_ERR_CORRUPT, "hwloc: %s: so damaged that hwloc crashes on it", path);
    *out = hwloc_load(path, &code);
    if (*out != NULL)
        return PMIXFAB_OK;
    if (code == PMIXFAB_ERR_CORRUPT)
        return fab_fail(err, code, "hwloc: %s: not a machine that hwloc can read; record one with lstopo",
                        path);
    return fab_fail(err, code, "hwloc: cannot read this machine: %s", pmixfab_strerror(code));
}

/* hwloc itself silently uses this host when the file of HWLOC_XMLFILE does not exist. */
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
