/*
 * ethernet.c - the probe `ethernet`: this host's network interfaces and their addresses, by the kernel.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/sockios.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <netpacket/packet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "probes/core/facts.h"
#include "probes/core/record.h"
#include "probes/ethernet/ethernet.h"

/* ---- a network interface in /sys/class/net ------------------------------------------------- */

#define MAX_DEPTH 4 /* a VLAN on a bond on an interface is 2 */

/* The data of an interface in sysfs. Empty texts and zeros: unknown. */
struct ethernet_device {
    bool found;    /* sysfs has this very interface, and not one of the same name elsewhere */
    bool hardware; /* it, or an interface below it, has a device */
    bool own;      /* it has a device itself */
    char bus[16];
    char pci[16]; /* in the form of FAB_FACT_PCI */
    unsigned vendor, part;
    char driver[64];
    char state[16]; /* text of operstate */
    unsigned mtu, speed;
};

/* Read the target of a link; return false if it is not a link. */
static bool ethernet_read_link(const char *folder, const char *name, char out[PATH_MAX])
{
    char path[PATH_MAX];
    return (size_t)snprintf(path, sizeof(path), "%s/%s", folder, name) < sizeof(path) &&
           realpath(path, out) != NULL;
}

/* Return whether it is this process's interface of that name. Another namespace's sysfs may be mounted. */
static bool is_this(const char *folder, unsigned index, const unsigned char *mac, size_t n)
{
    char text[128];
    if (sysfs_number(folder, "ifindex") != index)
        return false;
    if (n == 0 || !sysfs_line(folder, "address", text, sizeof(text)))
        return n == 0;
    for (size_t i = 0; i < n; i++) {
        unsigned byte;
        if (strlen(text) < 3 * i + 2 || sscanf(text + 3 * i, "%2x", &byte) != 1 || byte != mac[i])
            return false;
    }
    return true;
}

/*
 * The nearest folder above the device that names a bus decides. So a virtio device on PCI is on PCI, but an
 * adapter on USB is not on the bus of the USB controller.
 */
static void read_bus(const char *device, struct ethernet_device *out)
{
    char path[PATH_MAX];
    sysfs_link(device, "subsystem", out->bus, sizeof(out->bus));
    snprintf(path, sizeof(path), "%s", device);
    for (char *slash = strrchr(path, '/'); slash != NULL && slash > path; slash = strrchr(path, '/')) {
        if (strncmp(slash + 1, "usb", 3) == 0 && isdigit((unsigned char)slash[4])) {
            strcpy(out->bus, "USB");
            return;
        }
        if (probe_pci_text(slash + 1, out->pci, sizeof(out->pci))) {
            strcpy(out->bus, "PCI");
            out->vendor = sysfs_number(path, "vendor");
            out->part = sysfs_number(path, "device");
            return;
        }
        *slash = '\0';
    }
}

/* Return whether it, or an interface below it (of a VLAN, a bond, a bridge with its ports), has a device. */
static bool has_hardware(const char *folder, unsigned depth)
{
    char path[PATH_MAX];
    bool found = ethernet_read_link(folder, "device", path);
    DIR *dir = found || depth == 0 ? NULL : opendir(folder);
    if (dir == NULL)
        return found;
    for (struct dirent *entry = readdir(dir); entry != NULL && !found; entry = readdir(dir))
        found = strncmp(entry->d_name, "lower_", 6) == 0 && ethernet_read_link(folder, entry->d_name, path) &&
                has_hardware(path, depth - 1);
    closedir(dir);
    return found;
}

static void ethernet_sysfs(const char *sysfs, const char *interface, unsigned index, const unsigned char *mac,
                           size_t n, struct ethernet_device *out)
{
    char folder[PATH_MAX], device[PATH_MAX];
    memset(out, 0, sizeof(*out));
    if ((size_t)snprintf(folder, sizeof(folder), "%s/class/net/%s", sysfs, interface) >= sizeof(folder) ||
        !is_this(folder, index, mac, n))
        return;
    out->found = true;
    out->own = ethernet_read_link(folder, "device", device);
    out->hardware = has_hardware(folder, MAX_DEPTH);
    out->mtu = sysfs_number(folder, "mtu");
    out->speed = sysfs_number(folder, "speed");
    if (!sysfs_line(folder, "operstate", out->state, sizeof(out->state)))
        out->state[0] = '\0';
    if (!out->own) {
        strcpy(out->bus, "virtual");
        return;
    }
    read_bus(device, out);
    sysfs_link(device, "driver", out->driver, sizeof(out->driver));
}

/*
 * ---- the probe `ethernet`: this host's network interfaces and their addresses, from the kernel. The
 * interfaces and their addresses come from netlink (getifaddrs), so they are those of the network namespace;
 * sysfs and ethtool add more data.
 */

#define MAX_ADDRESSES 32 /* of an interface */
#define IPOIB_LENGTH  20 /* of a hardware address: 4 bytes of queue pair, and the port's GID */

struct interface {
    const struct ifaddrs *at;
    const struct sockaddr_ll *hardware;
    struct ethernet_device device;
    struct ethtool_drvinfo driver; /* empty texts: none */
    bool software;
};

/* The label of an address may be "eth0:1". */
static bool same_interface(const struct ifaddrs *a, const char *name)
{
    size_t len = strcspn(a->ifa_name, ":");
    return strlen(name) == len && memcmp(a->ifa_name, name, len) == 0;
}

static unsigned mask_length(const void *mask, size_t n)
{
    const unsigned char *bytes = mask;
    unsigned bits = 0;
    for (size_t i = 0; i < n; i++)
        bits += (unsigned)__builtin_popcount(bytes[i]);
    return bits;
}

/* Write "10.91.0.2/16"; return false if it is not an IP address, or one that every link has (fe80::). */
static bool ethernet_address_text(const struct ifaddrs *a, char *out, size_t size)
{
    char text[INET6_ADDRSTRLEN];
    unsigned length;
    if (a->ifa_addr == NULL)
        return false;
    if (a->ifa_addr->sa_family == AF_INET) {
        const struct sockaddr_in *at = (const void *)a->ifa_addr, *mask = (const void *)a->ifa_netmask;
        length = mask == NULL ? 32 : mask_length(&mask->sin_addr, 4);
        inet_ntop(AF_INET, &at->sin_addr, text, sizeof(text));
    } else if (a->ifa_addr->sa_family == AF_INET6) {
        const struct sockaddr_in6 *at = (const void *)a->ifa_addr, *mask = (const void *)a->ifa_netmask;
        if (IN6_IS_ADDR_LINKLOCAL(&at->sin6_addr))
            return false;
        length = mask == NULL ? 128 : mask_length(&mask->sin6_addr, 16);
        inet_ntop(AF_INET6, &at->sin6_addr, text, sizeof(text));
    } else {
        return false;
    }
    snprintf(out, size, "%s/%u", text, length);
    return true;
}

static bool has_address(const struct ethernet_host *host, const char *name)
{
    char text[64];
    for (const struct ifaddrs *a = host->addresses; a != NULL; a = a->ifa_next)
        if (same_interface(a, name) && ethernet_address_text(a, text, sizeof(text)))
            return true;
    return false;
}

static void add_addresses(const struct ethernet_host *host, struct probe_item *item)
{
    char text[64];
    unsigned n = 0;
    for (const struct ifaddrs *a = host->addresses; a != NULL && item->rc == PMIXFAB_OK; a = a->ifa_next) {
        if (!same_interface(a, item->what) || !ethernet_address_text(a, text, sizeof(text)))
            continue;
        if (n++ == MAX_ADDRESSES) {
            probe_note(item->sink, PMIXFAB_LOG_WARNING,
                       "ethernet: %s has more than %d addresses; the rest are left out", item->what,
                       MAX_ADDRESSES);
            break;
        }
        item->rc = fab_report_fact(item->report, item->index, FAB_FACT_ADDRESS, text);
    }
}

/* Add the MAC of Ethernet; for IPoIB the port's GUID, which is the end of its hardware address. */
static void add_hardware_address(const struct sockaddr_ll *at, struct probe_item *item)
{
    if (at->sll_hatype == ARPHRD_ETHER && at->sll_halen == 6)
        fact_mac(item, at->sll_addr);
    else if (at->sll_hatype == ARPHRD_INFINIBAND && at->sll_halen == IPOIB_LENGTH)
        /* the kernel's address is longer than the structure's array; getifaddrs() has room for it */
        fact_guid(
            item, FAB_FACT_PORT_GUID,
            probe_be((const uint8_t *)at + offsetof(struct sockaddr_ll, sll_addr) + IPOIB_LENGTH - 8, 8));
}

static const char *ethernet_state_text(const struct interface *i)
{
    if (i->device.state[0] == '\0') {
        const unsigned runs = IFF_UP | IFF_RUNNING;
        return (i->at->ifa_flags & runs) == runs ? "up" : "down";
    }
    if (strcmp(i->device.state, "up") == 0 || strcmp(i->device.state, "unknown") == 0)
        return i->device.state;
    return "down"; /* also dormant, lowerlayerdown, notpresent, testing */
}

/* Read "20.31.1014 (MT_0000000222)": Mellanox's drivers append the name of the board. */
static void firmware_text(const struct interface *i, char *out, size_t size)
{
    snprintf(out, size, "%.*s", (int)sizeof(i->driver.fw_version), i->driver.fw_version);
    if (strncmp(i->driver.driver, "mlx", 3) == 0)
        out[strcspn(out, " ")] = '\0';
    if (strcmp(out, "N/A") == 0)
        out[0] = '\0';
}

static void ethernet_add_device(const struct interface *i, struct probe_item *item)
{
    const struct ethernet_device *device = &i->device;
    char firmware[64], number[16], pci[16] = "";
    firmware_text(i, firmware, sizeof(firmware));
    if (device->found)
        strcpy(pci, device->pci);
    else
        probe_pci_text(i->driver.bus_info, pci, sizeof(pci));
    fact_add(item, FAB_FACT_PCI, pci);
    fact_add(item, FAB_FACT_BUS, device->found ? device->bus : pci[0] != '\0' ? "PCI" : "");
    fact_add(item, FAB_FACT_DRIVER, i->driver.driver[0] != '\0' ? i->driver.driver : device->driver);
    fact_add(item, FAB_FACT_FIRMWARE, firmware);
    fact_add(item, FAB_FACT_STATE, ethernet_state_text(i));
    fact_add(item, FAB_FACT_TYPE, i->hardware->sll_hatype == ARPHRD_INFINIBAND ? "InfiniBand" : "Ethernet");
    fact_add(item, FAB_FACT_SOFTWARE, i->software ? "yes" : "");
    if (device->vendor > 0 && device->vendor <= 0xffff)
        fact_printf(item, FAB_FACT_VENDOR_ID, "0x%04x", device->vendor);
    if (device->part > 0 && device->part <= 0xffff)
        fact_printf(item, FAB_FACT_PART_ID, "0x%04x", device->part);
    if (device->mtu > 0)
        fact_printf(item, FAB_FACT_MTU, "%u", device->mtu);
    if (device->speed > 0) {
        /* a software interface's speed is a constant */
        snprintf(number, sizeof(number), "%u", device->speed);
        (i->software ? fact_estimate : fact_add)(item, FAB_FACT_SPEED, number);
    }
}

/* Without sysfs the driver's name decides. */
static bool ethernet_is_software(const struct interface *i)
{
    static const char *const drivers[] = {"veth", "bridge", "dummy", "tun", "openvswitch", "vxlan"};
    if (i->device.found)
        return !i->device.hardware;
    for (size_t k = 0; k < sizeof(drivers) / sizeof(drivers[0]); k++)
        if (strcmp(i->driver.driver, drivers[k]) == 0)
            return true;
    return false;
}

/* Return false for an interface of another kind. */
static bool ethernet_read_interface(const struct ethernet_host *host, const struct ifaddrs *a,
                                    struct interface *out)
{
    memset(out, 0, sizeof(*out));
    if (a->ifa_addr == NULL || a->ifa_addr->sa_family != AF_PACKET || (a->ifa_flags & IFF_LOOPBACK) != 0 ||
        strlen(a->ifa_name) >= IF_NAMESIZE)
        return false;
    out->at = a;
    out->hardware = (const void *)a->ifa_addr;
    if (out->hardware->sll_hatype != ARPHRD_ETHER && out->hardware->sll_hatype != ARPHRD_INFINIBAND)
        return false;
    const unsigned char *mac = (const unsigned char *)a->ifa_addr + offsetof(struct sockaddr_ll, sll_addr);
    ethernet_sysfs(host->sysfs, a->ifa_name, (unsigned)out->hardware->sll_ifindex, mac,
                   out->hardware->sll_halen <= IPOIB_LENGTH ? out->hardware->sll_halen : 0, &out->device);
    if (!out->device.found && host->mtu != NULL)
        out->device.mtu = host->mtu(a->ifa_name, host->cbdata);
    if (host->driver == NULL || !host->driver(a->ifa_name, &out->driver, host->cbdata))
        memset(&out->driver, 0, sizeof(out->driver));
    out->driver.driver[sizeof(out->driver.driver) - 1] = '\0';
    out->driver.bus_info[sizeof(out->driver.bus_info) - 1] = '\0';
    out->software = ethernet_is_software(out);
    return true;
}

static int add_interface(const struct ethernet_host *host, const struct interface *i,
                         const struct probe_sink *sink, struct fab_report *report)
{
    struct probe_item item;
    probe_item_open(&item, FAB_FROM_ETHERNET, i->at->ifa_name, sink, report);
    fact_add(&item, FAB_FACT_INTERFACE, i->at->ifa_name);
    add_hardware_address(i->hardware, &item);
    ethernet_add_device(i, &item);
    add_addresses(host, &item);
    return item.rc;
}

int ethernet_report(const struct ethernet_host *host, const struct probe_sink *sink,
                    struct fab_report *report)
{
    unsigned n_software = 0;
    int rc = PMIXFAB_OK;
    for (const struct ifaddrs *a = host->addresses; a != NULL && rc == PMIXFAB_OK; a = a->ifa_next) {
        struct interface i;
        if (!ethernet_read_interface(host, a, &i))
            continue;
        if (i.software && !has_address(host, i.at->ifa_name))
            continue;
        if (i.software && n_software++ >= ETHERNET_MAX_SOFTWARE)
            continue;
        rc = add_interface(host, &i, sink, report);
    }
    if (n_software > ETHERNET_MAX_SOFTWARE)
        probe_note(sink, PMIXFAB_LOG_WARNING, "ethernet: %u of %u software interfaces are left out",
                   n_software - ETHERNET_MAX_SOFTWARE, n_software);
    return rc;
}

static bool ask_driver(const char *interface, struct ethtool_drvinfo *info, void *cbdata)
{
    struct ifreq request = {0};
    const int *fd = cbdata;
    if (*fd < 0)
        return false;
    memset(info, 0, sizeof(*info));
    info->cmd = ETHTOOL_GDRVINFO;
    snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", interface);
    request.ifr_data = (void *)info;
    return ioctl(*fd, SIOCETHTOOL, &request) == 0;
}

static unsigned ethernet_query_mtu(const char *interface, void *cbdata)
{
    struct ifreq request = {0};
    const int *fd = cbdata;
    snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", interface);
    return *fd >= 0 && ioctl(*fd, SIOCGIFMTU, &request) == 0 && request.ifr_mtu > 0
               ? (unsigned)request.ifr_mtu
               : 0;
}

static int ethernet_scan(const struct probe_config *config, const struct probe_sink *sink,
                         struct fab_report *report, struct fab_err *err)
{
    struct ifaddrs *addresses = NULL;
    if (config->arg != NULL)
        return record_scan(config->arg, FAB_FROM_ETHERNET, report, err);
    if (getifaddrs(&addresses) != 0)
        return fab_fail(err, errno == ENOMEM ? PMIXFAB_ERR_NOMEM : PMIXFAB_ERR_IO,
                        "ethernet: cannot list the network interfaces: %s", strerror(errno));
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const struct ethernet_host host = {"/sys", addresses, ask_driver, ethernet_query_mtu, &fd};
    uint32_t before = report->n_items;
    int rc = ethernet_report(&host, sink, report);
    if (fd >= 0)
        close(fd);
    freeifaddrs(addresses);
    if (rc != PMIXFAB_OK)
        return fab_fail(err, rc, "ethernet: %s", pmixfab_strerror(rc));
    return report->n_items > before
               ? PMIXFAB_OK
               : fab_fail(err, PMIXFAB_ERR_UNSUPPORTED, "ethernet: no network interface but loopback");
}

static int ethernet_available(char *text, size_t size)
{
    return fact_available(ethernet_scan, "", "network interface", text, size);
}

__attribute__((visibility("default"))) const struct probe fabricd_probe = {
    .name = "ethernet",
    .scan = ethernet_scan,
    .available = ethernet_available,
};
