/* A device's attributes, from what its host and the sweep say of it. */

#include <pmix.h>

#include "pmix/answers/device.h"
#include "pmix/answers/value.h"
#include "test/fabrics/details.h"
#include "test/unit/snapshot_world.h"

/* A plane of a made-up fabric with these details. */
static struct pmixfab *plane_of(const struct fab_inventory *inv, const struct fab_details *details)
{
    const struct fab_snapshot_meta meta = {
        .generation = 1, .is_default = 1, .name = "ib0", .vendor = "Plane & Sons", .identifier = "x"};
    SCOPED(fab_planes) planes = {0};
    SCOPED(layer) layer;
    planes = planes_of(inv);
    layer_make(&layer, planes.planes, &meta, details);
    return layer_open(&layer);
}

static const char *said(const struct pmixfab *fab, uint32_t index, const char *kind)
{
    return pmixfab_fact_text(fab, index, kind);
}

/* The attribute is this text; NULL: there is none. */
static void is_text(const struct pmixfab *fab, uint32_t index, const char *key, const char *text)
{
    pmix_value_t value = {0};
    pmix_status_t rc = fab_device_attribute(fab, index, key, &value);
    assert_int_equal(rc, text == NULL ? PMIX_ERR_NOT_FOUND : PMIX_SUCCESS);
    if (text != NULL) {
        assert_int_equal(value.type, PMIX_STRING);
        assert_string_equal(value.data.string, text);
    }
    fab_value_free(&value);
}

static void is_size(const struct pmixfab *fab, uint32_t index, const char *key, size_t size)
{
    pmix_value_t value = {0};
    pmix_status_t rc = fab_device_attribute(fab, index, key, &value);
    assert_int_equal(rc, size == 0 ? PMIX_ERR_NOT_FOUND : PMIX_SUCCESS);
    if (size != 0) {
        assert_int_equal(value.type, PMIX_SIZE);
        assert_int_equal(value.data.size, size);
    }
}

static const char *first_of(const char *a, const char *b)
{
    return a != NULL ? a : b;
}

static void check(const struct pmixfab *fab, uint32_t i)
{
    static const char *const seen[] = {"", "subnet", "node", "subnet,node"};
    const struct pmixfab_device device = device_at(fab, i);
    const char *guid = printed("0x%016llx", (unsigned long long)device.port_guid);
    is_text(fab, i, PMIX_FABRIC_DEVICE_VENDOR,
            first_of(said(fab, i, "vendor"), device.seen & PMIXFAB_SEEN_SUBNET ? "Plane & Sons" : "unknown"));
    is_text(fab, i, PMIX_FABRIC_DEVICE_VENDORID,
            first_of(said(fab, i, "part-id"), said(fab, i, "vendor-id")));
    is_text(fab, i, PMIX_FABRIC_DEVICE_DRIVER, said(fab, i, "driver"));
    is_text(fab, i, PMIX_FABRIC_DEVICE_FIRMWARE, said(fab, i, "firmware"));
    is_text(fab, i, PMIX_FABRIC_DEVICE_PCI_DEVID, said(fab, i, "pci"));
    is_text(fab, i, PMIX_FABRIC_DEVICE_BUS_TYPE,
            first_of(said(fab, i, "bus"), said(fab, i, "pci") != NULL ? "PCI" : "unknown"));
    is_text(fab, i, PMIX_FABRIC_DEVICE_TYPE,
            first_of(said(fab, i, "type"), (device.seen & 1) != 0 ? "InfiniBand" : NULL));
    is_text(fab, i, PMIX_FABRIC_DEVICE_ADDRESS, guid);
    is_text(fab, i, PMIXFAB_KEY_SEEN, seen[device.seen]);
    is_size(fab, i, PMIX_FABRIC_DEVICE_MTU, said(fab, i, "mtu") == NULL ? 0 : 4096);
    is_size(fab, i, PMIX_FABRIC_DEVICE_SPEED, device.mbps * 1000000);
}

/* As a whole it is the attributes that there are, one by one. */
static unsigned check_whole(const struct pmixfab *fab, uint32_t i)
{
    pmix_value_t whole = {0};
    assert_int_equal(fab_device_value(fab, i, &whole), PMIX_SUCCESS);
    const pmix_info_t *info = whole.data.darray->array;
    size_t n = whole.data.darray->size;
    assert_string_equal(info[0].key, PMIX_DEVICE_ID);
    for (size_t k = 0; k < n; k++) {
        pmix_value_t one = {0};
        assert_true(fab_device_knows(info[k].key));
        assert_int_equal(fab_device_attribute(fab, i, info[k].key, &one), PMIX_SUCCESS);
        assert_int_equal(one.type, info[k].value.type);
        if (one.type == PMIX_STRING)
            assert_string_equal(one.data.string, info[k].value.data.string);
        assert_int_equal(PMIX_INFO_IS_END(&info[k]) != 0, k == n - 1);
        fab_value_free(&one);
    }
    fab_value_free(&whole);
    return (unsigned)n;
}

TEST(every_fact_stands_in_its_attribute)
{
    unsigned most = 0, fewest = 99;
    for (uint64_t seed = 0; seed < 40; seed++) {
        SCOPED(fab_inventory) inv;
        SCOPED_BY(fabric_details_destroy) struct fab_details details;
        inv = generated("fattree2:3,2,3");
        assert_int_equal(fabric_details(&inv, seed, &details), 0);
        OWNED(pmixfab_close) struct pmixfab *fab = plane_of(&inv, &details);
        for (uint32_t i = 0; i < plane_at(fab).n_devices; i++) {
            unsigned n = check_whole(fab, i);
            check(fab, i);
            most = n > most ? n : most;
            fewest = n < fewest ? n : fewest;
        }
    }
    assert_int_equal(most, 20);
    assert_true(fewest < 16);
}

/* ---- devices as no sweep sees them ------------------------------------------------------------------- */

struct one_fact {
    enum fab_fact kind; /* ascending */
    const char *text;
};

/* Two hosts, an HCA each; of each HCA the same facts, seen by its host alone. */
static struct pmixfab *told(const struct one_fact *facts, uint32_t n)
{
    SCOPED(fab_inventory) inv = {0};
    SCOPED_BY(fabric_details_destroy) struct fab_details details;
    char pool[256] = "";
    uint32_t used = 1, k = 0;
    inv = generated("fattree2:2,1,1");
    details = (struct fab_details){
        .n_ports = inv.n_ports,
        .first = calloc(inv.n_ports + 1u, sizeof(*details.first)),
        .facts = calloc((size_t)inv.n_ports * n + 1, sizeof(*details.facts)),
        .places = calloc(inv.n_ports, sizeof(*details.places)),
        .seen = calloc(inv.n_ports, sizeof(*details.seen)),
    };
    for (uint32_t p = 0; p < inv.n_ports; p++) {
        details.seen[p] = FAB_SEEN_NODE;
        details.first[p] = k;
        for (uint32_t i = 0; inv.nodes[inv.ports[p].node].kind == FAB_HCA && i < n; i++) {
            details.facts[k++] = (struct fab_detail){.text = used,
                                                     .sources = 1u << FAB_FROM_VERBS,
                                                     .kind = (uint8_t)facts[i].kind,
                                                     .flags = FAB_DETAIL_CHOSEN};
            used += (uint32_t)sprintf(pool + used, "%s", facts[i].text) + 1;
        }
    }
    details.first[inv.n_ports] = k;
    details.pool = malloc(used);
    memcpy(details.pool, pool, used);
    details.pool_size = used;
    struct pmixfab *fab = plane_of(&inv, &details);
    return fab;
}

TEST(ethernet_has_a_mac)
{
    const struct one_fact with[] = {{FAB_FACT_MAC, "b8:59:9f:fa:12:35"}, {FAB_FACT_TYPE, "Ethernet"}};
    const struct one_fact without[] = {{FAB_FACT_TYPE, "Ethernet"}};
    OWNED(pmixfab_close) struct pmixfab *fab = told(with, 2);
    is_text(fab, 1, PMIX_FABRIC_DEVICE_TYPE, "Ethernet");
    is_text(fab, 1, PMIX_FABRIC_DEVICE_ADDRESS, "b8:59:9f:fa:12:35");
    is_text(fab, 1, PMIXFAB_KEY_SEEN, "node");
    pmixfab_close(fab);
    fab = told(without, 1); /* a RoCE port: its GUID is no address of its link */
    is_text(fab, 1, PMIX_FABRIC_DEVICE_ADDRESS, NULL);
}

TEST(what_nobody_says_is_not_guessed)
{
    const struct one_fact vendor_only[] = {{FAB_FACT_PCI, "0000:c1:00:01"}, {FAB_FACT_VENDOR_ID, "0x15b3"}};
    const struct one_fact odd[] = {
        {FAB_FACT_VENDOR_ID, "0x15b3"}, {FAB_FACT_PART_ID, "0x101b"}, {FAB_FACT_MTU, "0"}};
    OWNED(pmixfab_close) struct pmixfab *fab = told(vendor_only, 2);
    is_text(fab, 0, PMIX_FABRIC_DEVICE_TYPE, NULL); /* an RDMA device that no sweep saw may be either */
    is_text(fab, 0, PMIX_FABRIC_DEVICE_VENDORID, "0x15b3");
    is_text(fab, 0, PMIX_FABRIC_DEVICE_BUS_TYPE, "PCI"); /* it has an address there */
    is_text(fab, 0, PMIX_FABRIC_DEVICE_DRIVER, NULL);
    is_text(fab, 9, PMIX_FABRIC_DEVICE_DRIVER, NULL);
    is_text(fab, 0, "pmix.fabdev.nothing", NULL);
    pmixfab_close(fab);
    fab = told(odd, 3);
    is_text(fab, 0, PMIX_FABRIC_DEVICE_VENDORID, "0x101b");
    is_text(fab, 0, PMIX_FABRIC_DEVICE_BUS_TYPE, "unknown");
    is_size(fab, 0, PMIX_FABRIC_DEVICE_MTU, 0);
}
