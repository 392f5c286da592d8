/* Network interfaces of made hosts: a folder in sysfs's place, made addresses, a made
 * ethtool. What the kernel really says is test_probe_ethernet.py's. */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <netpacket/packet.h>
#include <sys/stat.h>
#include <unistd.h>

#include "probes/ethernet/ethernet.h"
#include "test/unit/report_text.h"

static char sysfs[64];

FIXTURE(make_folder)
{
    strcpy(sysfs, "/tmp/test_probe_ethernet.XXXXXX");
    return mkdtemp(sysfs) == NULL ? -1 : 0;
}

FIXTURE(remove_sysfs)
{
    return remove_folder(sysfs);
}

/* All folders on the way to a path below sysfs. */
static void make_way(const char *path)
{
    char whole[512];
    snprintf(whole, sizeof(whole), "%s/%s", sysfs, path);
    for (char *slash = strchr(whole + strlen(sysfs) + 1, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        assert_true(mkdir(whole, 0755) == 0 || errno == EEXIST);
        *slash = '/';
    }
}

static void put(const char *path, const char *text)
{
    make_way(path);
    write_file(printed("%s/%s", sysfs, path), text, strlen(text));
}

static void link_to(const char *path, const char *target)
{
    make_way(path);
    const char *from = printed("%s/%s", sysfs, path), *to = printed("%s/%s", sysfs, target);
    assert_int_equal(symlink(to, from), 0);
}

/* An interface as sysfs has it: its folder below `device` (or among the virtual ones), its link in class/net.
 */
static void interface(const char *name, const char *device, int index, const char *mac, const char *state,
                      const char *mtu, const char *speed)
{
    const struct {
        const char *file, *text;
    } files[] = {{"address", mac}, {"operstate", state}, {"mtu", mtu}, {"speed", speed}};
    const char *home = printed("%s/net/%s", device != NULL ? device : "devices/virtual", name);
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        if (files[i].text != NULL)
            put(printed("%s/%s", home, files[i].file), files[i].text);
    }
    put(printed("%s/ifindex", home), printed("%d\n", index));
    link_to(printed("class/net/%s", name), home);
    if (device != NULL)
        link_to(printed("%s/device", home), device);
}

/* ---- addresses ---- */

struct address {
    struct ifaddrs entry;
    char name[32];
    /* As getifaddrs() lays it out: with room for addresses that are longer than the structure's array. */
    union {
        struct sockaddr_ll ll;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
        unsigned char bytes[64];
    } at, mask;
};

struct host {
    struct address list[700];
    unsigned n;
};

static struct address *add(struct host *h, const char *name, unsigned flags)
{
    assert_true(h->n < 700);
    struct address *a = &h->list[h->n++];
    memset(a, 0, sizeof(*a));
    snprintf(a->name, sizeof(a->name), "%s", name);
    a->entry.ifa_name = a->name;
    a->entry.ifa_flags = flags;
    a->entry.ifa_addr = (struct sockaddr *)&a->at;
    if (h->n > 1)
        h->list[h->n - 2].entry.ifa_next = &a->entry;
    return a;
}

static void hardware(struct host *h, const char *name, int index, unsigned type, const char *mac,
                     unsigned flags)
{
    struct address *a = add(h, name, flags);
    unsigned n = 0;
    a->at.ll.sll_family = AF_PACKET;
    a->at.ll.sll_ifindex = index;
    a->at.ll.sll_hatype = (unsigned short)type;
    for (; mac[3 * n] != '\0' && mac[3 * n + 1] != '\0'; n++) {
        unsigned byte;
        assert_int_equal(sscanf(mac + 3 * n, "%2x", &byte), 1);
        a->at.bytes[offsetof(struct sockaddr_ll, sll_addr) + n] = (unsigned char)byte;
        if (mac[3 * n + 2] == '\0') {
            n++;
            break;
        }
    }
    a->at.ll.sll_halen = (unsigned char)n;
}

static void address(struct host *h, const char *name, const char *text, unsigned length)
{
    struct address *a = add(h, name, 0);
    bool v6 = strchr(text, ':') != NULL;
    unsigned char *mask = v6 ? a->mask.in6.sin6_addr.s6_addr : (unsigned char *)&a->mask.in.sin_addr;
    a->at.in.sin_family = v6 ? AF_INET6 : AF_INET;
    assert_int_equal(inet_pton(v6 ? AF_INET6 : AF_INET, text,
                               v6 ? (void *)&a->at.in6.sin6_addr : (void *)&a->at.in.sin_addr),
                     1);
    for (unsigned i = 0; i < length; i++)
        mask[i / 8] |= (unsigned char)(0x80 >> i % 8);
    a->entry.ifa_netmask = (struct sockaddr *)&a->mask;
}

/* ---- ethtool ---- */

struct driver {
    const char *interface, *driver, *firmware, *bus;
};

static bool ask(const char *name, struct ethtool_drvinfo *info, void *cbdata)
{
    memset(info, 0, sizeof(*info));
    for (const struct driver *d = cbdata; d->interface != NULL; d++) {
        if (strcmp(d->interface, name) != 0)
            continue;
        snprintf(info->driver, sizeof(info->driver), "%s", d->driver);
        snprintf(info->fw_version, sizeof(info->fw_version), "%s", d->firmware);
        snprintf(info->bus_info, sizeof(info->bus_info), "%s", d->bus);
        return true;
    }
    return false;
}

/* Only of a name that says so. */
static unsigned mtu(const char *name, void *cbdata)
{
    (void)cbdata;
    return strcmp(name, "p1") == 0 ? 1400 : 0;
}

static void expect(const struct host *h, const struct driver *drivers, const char *items)
{
    struct fab_report report = {0};
    const struct ethernet_host host = {sysfs, &h->list[0].entry, drivers != NULL ? ask : NULL, mtu,
                                       (void *)drivers};
    assert_int_equal(ethernet_report(&host, NULL, &report), PMIXFAB_OK);
    expect_items(&report, items);
}

#define UP (IFF_UP | IFF_RUNNING)

static struct host host;

/* A card with all that there is to say of it. */
TEST(test_card)
{
    const struct driver drivers[] = {{"ens1f0", "mlx5_core", "20.31.1014 (MT_0000000222)", "0000:c1:00.0"},
                                     {0}};
    memset(&host, 0, sizeof(host));
    put("devices/pci0000:c0/0000:c1:00.0/vendor", "0x15b3\n");
    put("devices/pci0000:c0/0000:c1:00.0/device", "0x101b\n");
    link_to("devices/pci0000:c0/0000:c1:00.0/subsystem", "bus/pci/");
    make_way("bus/pci/drivers/mlx5_core/");
    link_to("devices/pci0000:c0/0000:c1:00.0/driver", "bus/pci/drivers/mlx5_core");
    interface("ens1f0", "devices/pci0000:c0/0000:c1:00.0", 3, "00:21:5e:c4:86:1a\n", "up\n", "9000\n",
              "100000\n");
    hardware(&host, "ens1f0", 3, ARPHRD_ETHER, "00:21:5e:c4:86:1a", UP);
    address(&host, "ens1f0", "10.91.0.2", 16);
    address(&host, "ens1f0:1", "10.92.0.2", 24);
    address(&host, "ens1f", "10.93.0.2", 24); /* another one */
    address(&host, "ens1f0", "fe80::221:5eff:fec4:861a", 64);
    address(&host, "ens1f0", "fd00::2", 64);
    expect(
        &host, drivers,
        "{'source': 'ethernet', 'interface': 'ens1f0', 'mac': '00:21:5e:c4:86:1a', 'pci': '0000:c1:00:00', "
        "'bus': 'PCI', 'vendor-id': '0x15b3', 'part-id': '0x101b', 'driver': 'mlx5_core', 'firmware': "
        "'20.31.1014', 'type': 'Ethernet', 'state': 'up', 'mtu': '9000', 'speed': '100000', 'address': "
        "['10.91.0.2/16', '10.92.0.2/24', 'fd00::2/64']}\n");
    /* The driver's name stands in sysfs, too. */
    expect(
        &host, NULL,
        "{'source': 'ethernet', 'interface': 'ens1f0', 'mac': '00:21:5e:c4:86:1a', 'pci': '0000:c1:00:00', "
        "'bus': 'PCI', 'vendor-id': '0x15b3', 'part-id': '0x101b', 'driver': 'mlx5_core', 'type': "
        "'Ethernet', 'state': 'up', 'mtu': '9000', 'speed': '100000', 'address': ['10.91.0.2/16', "
        "'10.92.0.2/24', 'fd00::2/64']}\n");
}

/* IPoIB: no MAC, but the port's GUID. */
TEST(test_infiniband)
{
    static const char mac[] = "80:00:00:28:fe:80:00:00:00:00:00:00:b8:59:9f:03:00:c1:00:01";
    memset(&host, 0, sizeof(host));
    interface("ib0", "devices/pci0000:c0/0000:c1:00.1", 4, mac, "down\n", "2044\n", NULL);
    hardware(&host, "ib0", 4, ARPHRD_INFINIBAND, mac, IFF_UP);
    expect(&host, NULL,
           "{'source': 'ethernet', 'interface': 'ib0', 'port-guid': '0xb8599f0300c10001', 'pci': "
           "'0000:c1:00:01', 'bus': 'PCI', 'type': 'InfiniBand', 'state': 'down', 'mtu': '2044'}\n");
}

/* Where a device is: on PCI by way of virtio, on USB though that is on PCI, on a bus of its own. */
TEST(test_buses)
{
    const struct driver drivers[] = {
        {"eth0", "virtio_net", "", "0000:00:03.0"}, {"usb0", "r8152", "N/A", "usb-0000:00:14.0-1"}, {0}};
    memset(&host, 0, sizeof(host));
    link_to("devices/pci0000:00/0000:00:03.0/virtio2/subsystem", "bus/virtio/");
    make_way("bus/virtio/");
    interface("eth0", "devices/pci0000:00/0000:00:03.0/virtio2", 10, "02:fc:00:00:00:01\n", "unknown\n",
              "1400\n", "-1\n");
    interface("usb0", "devices/pci0000:00/0000:00:14.0/usb2/2-1/2-1:1.0", 11, "00:e0:4c:00:00:01",
              "dormant\n", "1500", "4294967295\n");
    make_way("bus/vmbus/");
    link_to("devices/vmbus/1234-5678/subsystem", "bus/vmbus");
    interface("eth9", "devices/vmbus/1234-5678", 12, "00:15:5d:00:00:01\n", "up\n", "0\n", "0\n");
    hardware(&host, "eth0", 10, ARPHRD_ETHER, "02:fc:00:00:00:01", UP);
    hardware(&host, "usb0", 11, ARPHRD_ETHER, "00:e0:4c:00:00:01", UP);
    hardware(&host, "eth9", 12, ARPHRD_ETHER, "00:15:5d:00:00:01", UP);
    expect(&host, drivers,
           "{'source': 'ethernet', 'interface': 'eth0', 'mac': '02:fc:00:00:00:01', 'pci': '0000:00:03:00', "
           "'bus': 'PCI', 'driver': 'virtio_net', 'type': 'Ethernet', 'state': 'unknown', 'mtu': '1400'}\n"
           "{'source': 'ethernet', 'interface': 'eth9', 'mac': '00:15:5d:00:00:01', 'bus': 'vmbus', 'type': "
           "'Ethernet', 'state': 'up'}\n"
           "{'source': 'ethernet', 'interface': 'usb0', 'mac': '00:e0:4c:00:00:01', 'bus': 'USB', 'driver': "
           "'r8152', 'type': 'Ethernet', 'state': 'down', 'mtu': '1500'}\n");
}

/* Software has an item where it has an address. What stands on hardware is not software. */
TEST(test_software)
{
    memset(&host, 0, sizeof(host));
    interface("veth0", NULL, 20, "02:00:00:00:00:20\n", "up\n", "1500\n", "10000\n");
    interface("veth1", NULL, 21, "02:00:00:00:00:21\n", "up\n", "1500\n", "10000\n");
    interface("ens2", "devices/pci0000:00/0000:00:05.0", 22, "02:00:00:00:00:22\n", "up\n", "1500\n", NULL);
    interface("bond0", NULL, 23, "02:00:00:00:00:22\n", "up\n", "1500\n", "25000\n");
    interface("vlan7", NULL, 24, "02:00:00:00:00:22\n", "up\n", "1500\n", "25000\n");
    interface("br0", NULL, 25, "02:00:00:00:00:20\n", "up\n", "1500\n", NULL);
    link_to("devices/virtual/net/bond0/lower_ens2", "class/net/ens2");
    link_to("devices/virtual/net/vlan7/lower_bond0", "class/net/bond0");
    link_to("devices/virtual/net/br0/lower_veth0", "class/net/veth0");
    hardware(&host, "lo", 1, ARPHRD_LOOPBACK, "00:00:00:00:00:00", UP | IFF_LOOPBACK);
    address(&host, "lo", "127.0.0.1", 8);
    hardware(&host, "veth0", 20, ARPHRD_ETHER, "02:00:00:00:00:20", UP);
    hardware(&host, "veth1", 21, ARPHRD_ETHER, "02:00:00:00:00:21", UP);
    address(&host, "veth1", "10.91.0.2", 24);
    address(&host, "veth0", "fe80::1", 64);
    hardware(&host, "ens2", 22, ARPHRD_ETHER, "02:00:00:00:00:22", UP);
    hardware(&host, "bond0", 23, ARPHRD_ETHER, "02:00:00:00:00:22", UP);
    hardware(&host, "vlan7", 24, ARPHRD_ETHER, "02:00:00:00:00:22", UP);
    hardware(&host, "br0", 25, ARPHRD_ETHER, "02:00:00:00:00:20", UP);
    hardware(&host, "tun0", 26, ARPHRD_NONE, "", UP);
    address(&host, "tun0", "10.8.0.2", 24);
    expect(
        &host, NULL,
        "{'source': 'ethernet', 'interface': 'bond0', 'mac': '02:00:00:00:00:22', 'bus': 'virtual', "
        "'type': 'Ethernet', 'state': 'up', 'mtu': '1500', 'speed': '25000'}\n"
        "{'source': 'ethernet', 'interface': 'ens2', 'mac': '02:00:00:00:00:22', 'pci': '0000:00:05:00', "
        "'bus': 'PCI', 'type': 'Ethernet', 'state': 'up', 'mtu': '1500'}\n"
        "{'source': 'ethernet', 'interface': 'veth1', 'mac': '02:00:00:00:00:21', 'bus': 'virtual', "
        "'type': 'Ethernet', 'state': 'up', 'mtu': '1500', 'address': ['10.91.0.2/24'], 'software': 'yes', "
        "'estimates': {'speed': '10000'}}\n"
        "{'source': 'ethernet', 'interface': 'vlan7', 'mac': '02:00:00:00:00:22', 'bus': 'virtual', "
        "'type': 'Ethernet', 'state': 'up', 'mtu': '1500', 'speed': '25000'}\n");
}

/* A sysfs of another namespace knows other interfaces by the same names; what is left comes from elsewhere */
TEST(test_other_sysfs)
{
    const struct driver drivers[] = {{"p0", "mlx5_core", "16.35.2000", "0000:41:00.1"},
                                     {"p1", "veth", "", ""},
                                     {"p2", "veth", "", ""},
                                     {0}};
    memset(&host, 0, sizeof(host));
    interface("p0", "devices/pci0000:00/0000:00:06.0", 30, "02:00:00:00:00:30\n", "up\n", "1500\n", "1000\n");
    interface("p1", "devices/pci0000:00/0000:00:07.0", 31, "02:00:00:00:00:31\n", "up\n", "1500\n", "1000\n");
    hardware(&host, "p0", 3000, ARPHRD_ETHER, "02:00:00:00:00:30", UP);   /* another index */
    hardware(&host, "p1", 31, ARPHRD_ETHER, "02:00:00:00:00:99", IFF_UP); /* another address */
    hardware(&host, "p2", 32, ARPHRD_ETHER, "00:00:00:00:00:00", UP);
    address(&host, "p1", "10.91.0.1", 24);
    address(&host, "p2", "10.91.0.2", 24);
    expect(
        &host, drivers,
        "{'source': 'ethernet', 'interface': 'p0', 'mac': '02:00:00:00:00:30', 'pci': '0000:41:00:01', "
        "'bus': 'PCI', 'driver': 'mlx5_core', 'firmware': '16.35.2000', 'type': 'Ethernet', 'state': 'up'}\n"
        "{'source': 'ethernet', 'interface': 'p1', 'mac': '02:00:00:00:00:99', 'driver': 'veth', 'type': "
        "'Ethernet', 'state': 'down', 'mtu': '1400', 'address': ['10.91.0.1/24'], 'software': 'yes'}\n"
        "{'source': 'ethernet', 'interface': 'p2', 'driver': 'veth', 'type': 'Ethernet', 'state': 'up', "
        "'address': ['10.91.0.2/24'], 'software': 'yes'}\n");
}

/* More addresses and more software than anybody wants: bounded, with a note. */
TEST(test_bounds)
{
    const struct driver drivers[] = {{"many", "igb", "", "0000:01:00.0"}, {0}};
    struct notes notes = {0};
    const struct probe_sink sink = {count_note, &notes};
    const struct ethernet_host many = {sysfs, &host.list[0].entry, ask, mtu, (void *)drivers};
    SCOPED(fab_report) report = {0};
    memset(&host, 0, sizeof(host));
    hardware(&host, "many", 40, ARPHRD_ETHER, "02:00:00:00:00:40", UP);
    for (unsigned i = 1; i < 100; i++)
        address(&host, "many", printed("10.91.0.%u", i), 24);
    assert_int_equal(ethernet_report(&many, &sink, &report), PMIXFAB_OK);
    free(report_text(&report));
    assert_int_equal(notes.n, 1);
    assert_non_null(strstr(notes.last, "many has more than"));
    assert_true(report.items[0].n <= FAB_REPORT_MAX_FACTS);
}

TEST(test_containers)
{
    const struct driver none[] = {{0}};
    struct notes notes = {0};
    const struct probe_sink sink = {count_note, &notes};
    struct driver drivers[301] = {{0}};
    char names[300][16], text[32];
    const struct ethernet_host many = {sysfs, &host.list[0].entry, ask, mtu, drivers};
    const struct ethernet_host bare = {sysfs, &host.list[0].entry, ask, mtu, (void *)none};
    SCOPED(fab_report) report = {0};
    memset(&host, 0, sizeof(host));
    for (unsigned i = 0; i < 300; i++) {
        snprintf(names[i], sizeof(names[i]), "c%u", i);
        snprintf(text, sizeof(text), "10.91.%u.%u", i / 200, 1 + i % 200);
        drivers[i] = (struct driver){names[i], "veth", "", ""};
        hardware(&host, names[i], (int)(100 + i), ARPHRD_ETHER, "02:00:00:00:00:50", UP);
        address(&host, names[i], text, 16);
    }
    assert_int_equal(ethernet_report(&many, &sink, &report), PMIXFAB_OK);
    assert_int_equal(report.n_items, ETHERNET_MAX_SOFTWARE);
    assert_int_equal(notes.n, 1);
    assert_non_null(strstr(notes.last, "44 of 300"));
    fab_report_destroy(&report);
    assert_int_equal(ethernet_report(&bare, &sink, &report), PMIXFAB_OK); /* not known to be software */
    assert_int_equal(report.n_items, 300);
    assert_int_equal(notes.n, 1);
}

TEST(test_pci)
{
    static const char *const wrong[] = {"",           "0000:c1:00",        "0000:c1:00.0x", "c1:00.0",
                                        "virtio2",    "0000:c1:00:01",     " 0000:c1:00.1", "0000:g1:00.1",
                                        "pci0000:00", "usb-0000:00:14.0-1"};
    char text[16];
    assert_true(probe_pci_text("0000:c1:00.1", text, sizeof(text)));
    assert_string_equal(text, "0000:c1:00:01");
    assert_true(probe_pci_text("10000:E1:1f.7", text, sizeof(text)));
    assert_string_equal(text, "10000:e1:1f:07");
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_false(probe_pci_text(wrong[i], text, sizeof(text)));
}

TEST_GROUP(make_folder, remove_sysfs)
