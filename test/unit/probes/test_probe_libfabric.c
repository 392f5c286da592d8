/* From libfabric's list to facts: made lists of cards that are not here, random
 * ones, and the real list of this host. */
#include <arpa/inet.h>
#include <netinet/in.h>

#include "probes/libfabric/libfabric.h"
#include "test/unit/report_text.h"

extern const struct probe fabricd_probe;

/* A host with these interfaces. */
static enum fact_interface interface(const char *name)
{
    if (strcmp(name, "lo") == 0)
        return FACT_LOOPBACK;
    return strncmp(name, "eth", 3) == 0 ? FACT_INTERFACE : FACT_NO_INTERFACE;
}

/* An entry of the list with everything that hangs on it. */
struct made {
    struct fi_info info;
    struct fi_fabric_attr fabric;
    struct fi_domain_attr domain;
    struct fi_ep_attr ep;
    struct fid_nic nic;
    struct fi_device_attr device;
    struct fi_bus_attr bus;
    struct fi_link_attr link;
    unsigned char address[64];
};

static void make(struct made *m, const char *provider, const char *domain, uint32_t protocol)
{
    memset(m, 0, sizeof(*m));
    m->fabric.prov_name = (char *)provider;
    m->domain.name = (char *)domain;
    m->ep.protocol = protocol;
    m->info.fabric_attr = &m->fabric;
    m->info.domain_attr = &m->domain;
    m->info.ep_attr = &m->ep;
}

static void make_nic(struct made *m, const struct fi_device_attr *device, const struct fi_pci_attr *pci,
                     const struct fi_link_attr *link)
{
    m->info.nic = &m->nic;
    m->device = *device;
    m->nic.device_attr = &m->device;
    if (pci != NULL) {
        m->bus.bus_type = FI_BUS_PCI;
        m->bus.attr.pci = *pci;
        m->nic.bus_attr = &m->bus;
    }
    m->link = *link;
    m->nic.link_attr = &m->link;
}

static void make_address(struct made *m, uint32_t format, size_t at, const char *text, int family,
                         size_t size)
{
    m->info.addr_format = format;
    m->info.src_addr = m->address;
    m->info.src_addrlen = size;
    assert_int_equal(inet_pton(family, text, m->address + at), 1);
}

static const struct fi_info *chain(struct made *list, size_t n)
{
    for (size_t i = 0; i + 1 < n; i++)
        list[i].info.next = &list[i + 1].info;
    return &list[0].info;
}

static void expect(struct made *list, size_t n, const char *items)
{
    struct fab_report report = {0};
    assert_int_equal(libfabric_report(chain(list, n), interface, &report), PMIXFAB_OK);
    expect_items(&report, items);
}

/* One port of InfiniBand, told many times: as domains of several kinds, bare and in layers. */
TEST(test_verbs)
{
    const struct fi_device_attr device = {.name = "mlx5_0",
                                          .device_id = "0x101b",
                                          .device_version = "0",
                                          .vendor_id = "0x02c9",
                                          .firmware = "20.31.1014"};
    const struct fi_pci_attr pci = {.domain_id = 0, .bus_id = 0xc1, .device_id = 0, .function_id = 1};
    const struct fi_link_attr link = {
        .mtu = 4096, .speed = 200000000000, .state = FI_LINK_UP, .network_type = "InfiniBand"};
    struct made list[5];
    make(&list[0], "verbs", "mlx5_0", FI_PROTO_RDMA_CM_IB_RC);
    make_address(&list[0], FI_SOCKADDR_IB, 8, "fe80::b859:9f03:c1:1", AF_INET6, 48);
    make(&list[1], "verbs;ofi_rxm", "mlx5_0", FI_PROTO_RXM);
    make_address(&list[1], FI_SOCKADDR_IN, 4, "10.1.0.7", AF_INET, 16);
    make(&list[2], "verbs", "mlx5_0-xrc", FI_PROTO_RDMA_CM_IB_XRC);
    make(&list[3], "verbs", "mlx5_0-dgram", FI_PROTO_IB_UD);
    make_address(&list[3], FI_ADDR_IB_UD, 0, "fe80::b859:9f03:c1:1", AF_INET6, 32);
    make(&list[4], "verbs;ofi_rxd", "mlx5_0-dgram", FI_PROTO_RXD);
    for (int i = 0; i < 5; i++)
        make_nic(&list[i], &device, &pci, &link);
    expect(list, 5,
           "{'source': 'libfabric', 'name': 'mlx5_0', 'port-guid': '0xb8599f0300c10001', 'pci': "
           "'0000:c1:00:01', 'bus': 'PCI', 'part-id': '0x101b', 'firmware': '20.31.1014', 'type': "
           "'InfiniBand', 'state': 'up', 'mtu': '4096', 'speed': '200000', 'gid': ['fe80::b859:9f03:c1:1'], "
           "'provider': ['verbs', 'verbs;ofi_rxd', 'verbs;ofi_rxm'], 'protocol': ['FI_PROTO_IB_UD', "
           "'FI_PROTO_RDMA_CM_IB_RC', 'FI_PROTO_RDMA_CM_IB_XRC', 'FI_PROTO_RXD', 'FI_PROTO_RXM']}\n");
}

/* RoCE has GIDs, too, but they hold no port GUID. */
TEST(test_roce)
{
    const struct fi_device_attr device = {.name = "mlx5_2", .vendor_id = "0x02c9"};
    const struct fi_link_attr link = {
        .mtu = 1024, .speed = 25000000000, .state = FI_LINK_DOWN, .network_type = "Ethernet"};
    struct made list[1];
    make(&list[0], "verbs", "mlx5_2-dgram", FI_PROTO_IB_UD);
    make_address(&list[0], FI_ADDR_IB_UD, 0, "::ffff:10.2.0.7", AF_INET6, 32);
    make_nic(&list[0], &device, NULL, &link);
    expect(list, 1,
           "{'source': 'libfabric', 'name': 'mlx5_2', 'type': 'Ethernet', 'state': 'down', 'mtu': '1024', "
           "'speed': '25000', 'gid': ['::ffff:10.2.0.7'], 'provider': ['verbs'], 'protocol': "
           "['FI_PROTO_IB_UD']}\n");
}

TEST(test_efa)
{
    const struct fi_device_attr device = {
        .name = "rdmap0s6", .device_id = "0xefa1", .vendor_id = "0x1d0f", .driver = "efa", .firmware = "0.0"};
    const struct fi_pci_attr pci = {.domain_id = 0, .bus_id = 0, .device_id = 6, .function_id = 0};
    const struct fi_link_attr link = {.address = "EFA-fe80::46:d9ff:fe6e:bb5",
                                      .mtu = 8760,
                                      .speed = 100000000000,
                                      .state = FI_LINK_UP,
                                      .network_type = "Ethernet"};
    struct made list[2];
    make(&list[0], "efa", "rdmap0s6-rdm", FI_PROTO_EFA);
    make(&list[1], "efa", "rdmap0s6-dgrm", FI_PROTO_IB_UD);
    make_address(&list[1], FI_ADDR_EFA, 0, "fe80::46:d9ff:fe6e:bb5", AF_INET6, 32);
    for (int i = 0; i < 2; i++)
        make_nic(&list[i], &device, &pci, &link);
    expect(list, 2,
           "{'source': 'libfabric', 'name': 'rdmap0s6', 'pci': '0000:00:06:00', 'bus': 'PCI', 'vendor-id': "
           "'0x1d0f', 'part-id': '0xefa1', 'driver': 'efa', 'firmware': '0.0', 'type': 'Ethernet', 'state': "
           "'up', 'mtu': '8760', 'speed': '100000', 'gid': ['fe80::46:d9ff:fe6e:bb5'], 'provider': ['efa'], "
           "'protocol': ['FI_PROTO_EFA', 'FI_PROTO_IB_UD']}\n");
}

/* Slingshot and Omni-Path, whose addresses are numbers of their own kinds; a LID is one of them. */
TEST(test_cxi_and_opx)
{
    const struct fi_device_attr cassini = {.name = "cxi0",
                                           .device_id = "0x501",
                                           .device_version = "2",
                                           .vendor_id = "0x17db",
                                           .driver = "cxi_core",
                                           .firmware = "1.5.41"};
    const struct fi_pci_attr pci = {.domain_id = 0x10, .bus_id = 0xd5, .device_id = 0, .function_id = 0};
    const struct fi_link_attr slingshot = {.address = "0x2a1",
                                           .mtu = 2048,
                                           .speed = 200000000000,
                                           .state = FI_LINK_UP,
                                           .network_type = "HPC Ethernet"};
    const struct fi_device_attr hfi = {.name = "hfi1_0", .device_id = "0x24f0", .vendor_id = "0x8086"};
    const struct fi_link_attr omnipath = {.address = "0x1f",
                                          .mtu = 10240,
                                          .speed = 100000000000,
                                          .state = FI_LINK_UP,
                                          .network_type = "OmniPath"};
    struct made list[2];
    make(&list[0], "cxi", "cxi0", FI_PROTO_CXI);
    make_nic(&list[0], &cassini, &pci, &slingshot);
    make(&list[1], "opx", "hfi1_0", FI_PROTO_OPX);
    make_nic(&list[1], &hfi, NULL, &omnipath);
    expect(list, 2,
           "{'source': 'libfabric', 'name': 'cxi0', 'pci': '0010:d5:00:00', 'bus': 'PCI', 'vendor-id': "
           "'0x17db', 'part-id': '0x0501', 'driver': 'cxi_core', 'firmware': '1.5.41', 'type': 'Ethernet', "
           "'state': 'up', 'mtu': '2048', 'speed': '200000', 'provider': ['cxi'], 'protocol': "
           "['FI_PROTO_CXI']}\n"
           "{'source': 'libfabric', 'name': 'hfi1_0', 'vendor-id': '0x8086', 'part-id': '0x24f0', 'state': "
           "'up', 'mtu': '10240', 'speed': '100000', 'lid': '31', 'provider': ['opx'], 'protocol': "
           "['FI_PROTO_OPX']}\n");
}

/* What older providers do not say of a card is the domain's name, or nothing at all. */
TEST(test_without_nic)
{
    struct made list[3];
    make(&list[0], "verbs", "mlx4_0-xrc", FI_PROTO_RDMA_CM_IB_XRC);
    make(&list[1], "psm2", "psm2", FI_PROTO_PSMX2);
    make(&list[2], "psm3", "eth7", FI_PROTO_PSMX3); /* over sockets its card is an interface */
    expect(
        list, 3,
        "{'source': 'libfabric', 'name': 'mlx4_0', 'provider': ['verbs'], 'protocol': "
        "['FI_PROTO_RDMA_CM_IB_XRC']}\n"
        "{'source': 'libfabric', 'interface': 'eth7', 'provider': ['psm3'], 'protocol': ['FI_PROTO_PSMX3']}\n"
        "{'source': 'libfabric', 'provider': ['psm2'], 'protocol': ['FI_PROTO_PSMX2']}\n");
}

TEST(test_software)
{
    struct made list[6];
    make(&list[0], "tcp;ofi_rxm", "eth0", FI_PROTO_RXM);
    list[0].fabric.name = "10.91.0.0/16";
    make_address(&list[0], FI_SOCKADDR_IN, 4, "10.91.0.2", AF_INET, 16);
    make(&list[1], "sockets", "eth0", FI_PROTO_SOCK_TCP);
    list[1].fabric.name = "fd00::/64";
    make_address(&list[1], FI_SOCKADDR_IN6, 8, "fd00::2", AF_INET6, 28);
    make(&list[2], "tcp", "eth0", FI_PROTO_SOCK_TCP);
    list[2].fabric.name = "fe80::/64";
    make_address(&list[2], FI_SOCKADDR_IN6, 8, "fe80::2", AF_INET6, 28);
    make(&list[3], "tcp", "lo", FI_PROTO_SOCK_TCP);
    make(&list[4], "shm", "shm", FI_PROTO_SHM);
    make(&list[5], "efa", "eth0", FI_PROTO_EFA); /* of the same name, and not of software */
    expect(list, 6,
           "{'source': 'libfabric', 'interface': 'eth0', 'address': ['10.91.0.2/16', 'fd00::2/64'], "
           "'provider': ['sockets', 'tcp', 'tcp;ofi_rxm'], 'protocol': ['FI_PROTO_RXM', "
           "'FI_PROTO_SOCK_TCP'], 'software': 'yes'}\n"
           "{'source': 'libfabric', 'interface': 'eth0', 'provider': ['efa'], 'protocol': ['FI_PROTO_EFA']}\n"
           "{'source': 'libfabric', 'provider': ['shm'], 'protocol': ['FI_PROTO_SHM'], 'software': 'yes'}\n");
}

TEST(test_names_of_software)
{
    assert_true(libfabric_is_software("tcp"));
    assert_true(libfabric_is_software("TCP;ofi_rxm"));
    assert_true(libfabric_is_software("ofi_rxm;tcp"));
    assert_true(libfabric_is_software("udp;ofi_rxd"));
    assert_true(libfabric_is_software("shm"));
    assert_true(libfabric_is_software("ofi_rxm"));
    assert_false(libfabric_is_software("verbs;ofi_rxm"));
    assert_false(libfabric_is_software("ofi_rxm;verbs"));
    assert_false(libfabric_is_software("tcpx"));
    assert_false(libfabric_is_software(""));
}

/* A provider that fills in nothing, or nonsense: what is no fact is missing, the rest stands. */
TEST(test_nonsense)
{
    static char longest[600];
    const struct fi_device_attr device = {
        .name = longest, .device_id = "0x12345", .vendor_id = "seven", .driver = "a\nb\xff", .firmware = ""};
    const struct fi_pci_attr pci = {.domain_id = 0, .bus_id = 1, .device_id = 77, .function_id = 9};
    const struct fi_link_attr link = {
        .address = "nowhere", .mtu = 0, .speed = 999999, .state = 99, .network_type = ""};
    struct made list[3];
    struct fi_info nothing = {0};
    struct fab_report report = {0};
    memset(longest, 'n', sizeof(longest) - 1);
    assert_int_equal(libfabric_report(&nothing, interface, &report), PMIXFAB_OK);
    assert_int_equal(libfabric_report(NULL, interface, &report), PMIXFAB_OK);
    expect_items(&report, "");
    make(&list[0], "verbs", "x", 0);
    make_nic(&list[0], &device, &pci, &link);
    make(&list[1], "tcp", "eth0", 12345678);
    list[1].fabric.name = "10.91.0.0/44";
    make_address(&list[1], FI_SOCKADDR_IN, 4, "10.91.0.2", AF_INET, 16);
    make(&list[2], "tcp", "eth0", 1U << 31 | 5); /* a protocol of the provider alone */
    list[2].fabric.name = "10.91.0.0/16";
    make_address(&list[2], FI_SOCKADDR_IN, 4, "10.91.0.3", AF_INET, 7); /* shorter than such an address */
    longest[63] = '\0';
    OWNED(free) char *items = NULL;
    assert_true(
        asprintf(
            &items,
            "{'source': 'libfabric', 'name': '%s', 'bus': 'PCI', 'driver': 'a?b?', 'provider': ['verbs']}\n"
            "{'source': 'libfabric', 'interface': 'eth0', 'provider': ['tcp'], 'software': 'yes'}\n",
            longest) > 0);
    longest[63] = 'n';
    expect(list, 3, items);
}

/* ---- held against the plain way ---- */

/* Is there exactly one item with this name, and does it have the provider if it has room for it? */
static void must_hold(const struct fab_report *report, enum fab_fact kind, const char *name, bool software,
                      const char *provider)
{
    unsigned items = 0, providers = 0;
    bool found = false;
    for (uint32_t i = 0; i < report->n_items; i++) {
        const char *is = fab_report_text(report, i, kind);
        if (is == NULL || strcmp(is, name) != 0 ||
            (fab_report_text(report, i, FAB_FACT_SOFTWARE) != NULL) != software)
            continue;
        items++;
        for (uint32_t f = report->items[i].first; f < report->items[i].first + report->items[i].n; f++) {
            if (report->facts[f].kind != FAB_FACT_PROVIDER)
                continue;
            providers++;
            found = found || strcmp(report->pool + report->facts[f].text, provider) == 0;
        }
    }
    assert_int_equal(items, 1);
    assert_true(found || providers == FACTS_MANY);
}

/* More providers and protocols than an item can hold. */
TEST(test_many)
{
    static struct made list[300];
    static char names[300][16];
    SCOPED(fab_report) report = {0};
    for (unsigned i = 0; i < 300; i++) {
        snprintf(names[i], sizeof(names[i]), "p%u", i);
        const char *gid = printed("fe80::%x", i + 1);
        make(&list[i], names[i], "mlx5_0", 1 + i % 20);
        make_address(&list[i], FI_ADDR_IB_UD, 0, gid, AF_INET6, 32);
    }
    assert_int_equal(libfabric_report(chain(list, 300), interface, &report), PMIXFAB_OK);
    free(report_text(&report));
    assert_int_equal(report.n_items, 1);
    assert_int_equal(report.items[0].n, 1 + 3 * FACTS_MANY);
}

/* ---- the real library on this host ---- */

TEST(test_this_host)
{
    const struct probe_config config = {0};
    SCOPED(fab_report) report = {0};
    struct fab_err err = {{0}};
    struct fi_info *list = NULL;
    char text[256] = "";
    int rc = fabricd_probe.scan(&config, NULL, &report, &err);
    if (rc == PMIXFAB_ERR_UNSUPPORTED)
        skip();
    if (rc != PMIXFAB_OK)
        fail_msg("%s", err.text);
    free(report_text(&report));
    assert_int_equal(fi_getinfo(FI_VERSION(1, 9), NULL, NULL, 0, NULL, &list), 0);
    for (const struct fi_info *info = list; info != NULL; info = info->next) {
        const char *domain = info->domain_attr->name, *provider = info->fabric_attr->prov_name;
        if (libfabric_is_software(provider) && fact_interface(domain) == FACT_INTERFACE)
            must_hold(&report, FAB_FACT_INTERFACE, domain, true, provider);
    }
    fi_freeinfo(list);
    for (uint32_t i = 0; i < report.n_items; i++) {
        assert_int_equal(report.items[i].source, FAB_FROM_LIBFABRIC);
        assert_non_null(fab_report_text(&report, i, FAB_FACT_PROVIDER));
    }
    assert_int_equal(fabricd_probe.available(text, sizeof(text)), PMIXFAB_OK);
    assert_non_null(strstr(text, "libfabric "));
}
